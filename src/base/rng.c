/* rng.c: Philox4x32-10, a counter-based generator, counted as TensorFlow counts it. */
#include "base/rng.h"

#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

Philox philox_from_state(uint64_t key, uint64_t low, uint64_t high) {
    return (Philox){{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)},
                    {(uint32_t)key, (uint32_t)(key >> 32)}};
}

Philox philox_from_seeds(uint64_t seed, uint64_t seed2) {
    return philox_from_state(seed, 0, seed2);
}

Philox philox_from_stateless(uint64_t seed, uint64_t seed2) {
    Philox p = philox_from_state(0x02461e293ec8f720u, seed, seed2);
    uint32_t mixed[4];
    philox_next(&p, mixed);
    return (Philox){{0, 0, mixed[2], mixed[3]}, {mixed[0], mixed[1]}};
}

void philox_skip(Philox *p, uint64_t count) {
    uint64_t low = philox_counter(p, 0), high = philox_counter(p, 1), sum = low + count;
    *p = philox_from_state(philox_key(p), sum, high + (sum < low));
}

void philox_next(Philox *p, uint32_t out[4]) {
    uint32_t c0 = p->counter[0], c1 = p->counter[1], c2 = p->counter[2], c3 = p->counter[3];
    uint32_t k0 = p->key[0], k1 = p->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
    for (int i = 0; i < 4 && ++p->counter[i] == 0; i++) continue;
}

uint64_t philox_key(const Philox *p) {
    return p->key[0] | (uint64_t)p->key[1] << 32;
}

uint64_t philox_counter(const Philox *p, int half) {
    return p->counter[half * 2] | (uint64_t)p->counter[half * 2 + 1] << 32;
}

PhiloxStream philox_stream(Philox p) {
    return (PhiloxStream){.philox = p, .used = 4};
}

uint32_t philox_stream_next(PhiloxStream *s) {
    if (s->used == 4) {
        philox_next(&s->philox, s->group);
        s->used = 0;
    }
    return s->group[s->used++];
}

float uniform_float(uint32_t x) {
    uint32_t bits = 0x3f800000u | (x & 0x7fffffu);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f - 1.0f;
}

double uniform_double(uint32_t x0, uint32_t x1) {
    uint64_t bits = (uint64_t)1023 << 52 | (uint64_t)(x0 & 0xfffffu) << 32 | x1;
    double d;
    memcpy(&d, &bits, sizeof d);
    return d - 1.0;
}

uint64_t rng_entropy(void) {
    uint64_t x;
    if (getrandom(&x, sizeof x, 0) != (ssize_t)sizeof x) x = (uint64_t)clock_wall_ns();
    return x;
}

uint32_t philox_stream_below(PhiloxStream *s, uint32_t n) {
    if ((n & (n - 1)) == 0) return philox_stream_next(s) & (n - 1);
    uint32_t rest = UINT32_MAX % n + 1, x;
    do {
        x = philox_stream_next(s);
    } while (x < rest); /* what would favour small numbers */
    return x % n;
}
