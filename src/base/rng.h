/* rng.h: Philox4x32-10, a counter-based generator, counted as TensorFlow counts it. */
#pragma once
#include <stdint.h>

/* A value: each call gives the four numbers of the counter and adds one to it; skipping is adding. */
typedef struct Philox {
    uint32_t counter[4];
    uint32_t key[2];
} Philox;

Philox philox_from_seeds(uint64_t seed, uint64_t seed2);             /* seed is the key, seed2 the high counter */
Philox philox_from_state(uint64_t key, uint64_t low, uint64_t high); /* key and the halves of the counter */
Philox philox_from_stateless(uint64_t seed, uint64_t seed2);         /* the seeds scrambled, for stateless ops */
void philox_skip(Philox *p, uint64_t count);                         /* count groups of four */
void philox_next(Philox *p, uint32_t out[4]);
uint64_t philox_key(const Philox *p);
uint64_t philox_counter(const Philox *p, int half); /* 0: low, 1: high */

/* One number at a time. */
typedef struct PhiloxStream {
    Philox philox;
    uint32_t group[4];
    int used; /* of group; 4: take the next */
} PhiloxStream;

PhiloxStream philox_stream(Philox p);
uint32_t philox_stream_next(PhiloxStream *s);
uint32_t philox_stream_below(PhiloxStream *s, uint32_t n); /* in [0, n), each as likely; n > 0 */

/* Numbers in [0, 1) from random bits. */
float uniform_float(uint32_t x);
double uniform_double(uint32_t x0, uint32_t x1);

uint64_t rng_entropy(void); /* from the system */
