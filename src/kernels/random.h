/* random.h: arrays of random numbers, the same for any number of threads. */
#pragma once
#include <stdbool.h>

#include "base/rng.h"
#include "base/threadpool.h"

typedef enum RandomType {
    RANDOM_HALF,
    RANDOM_BFLOAT16,
    RANDOM_FLOAT,
    RANDOM_DOUBLE,
    RANDOM_INT32, /* also uint32 */
    RANDOM_INT64, /* also uint64 */
} RandomType;

typedef enum RandomKind {
    RANDOM_UNIFORM,   /* floats in [0, 1), integers of all bits */
    RANDOM_NORMAL,    /* mean 0, deviation 1 */
    RANDOM_TRUNCATED, /* the same, within 2 deviations */
    RANDOM_RANGE,     /* integers in [low, low + range) */
} RandomKind;

typedef struct RandomSpec {
    RandomKind kind;
    RandomType type;
    uint64_t low, range; /* of RANDOM_RANGE; range > 0 */
} RandomSpec;

void random_fill(ThreadPool *pool, const RandomSpec *spec, Philox start, void *to, int64_t n);

/* One number of a gamma or Poisson distribution, from its own stretch of the generator. */
double random_gamma(Philox p, double alpha);
double random_poisson(Philox p, double rate, double most);
/* One number of a binomial distribution with 0 < probability <= 1/2. Of mean 10 and more another method serves, which takes its
 * numbers from another place: p is then to be skipped by 256 for each number, else by 42. */
double random_binomial(Philox p, double count, double probability, bool large_mean);

/* Draws `samples` classes with probabilities proportional to e^logits, two numbers of the stream for each; logits are changed. */
void random_classes(PhiloxStream *s, double *logits, int64_t classes, int64_t samples, int64_t *out);

void random_shuffle(Philox p, int64_t *items, int64_t n);
