/* random_state.c: the generator that a seeded op keeps from step to step. */
#include "ops/random_state.h"

Error *random_state_init(const Node *node, void *state) {
    RandomState *s = state;
    int64_t seed, seed2;
    Error *err = node_attr_int(node, "seed", &seed);
    if (!err) err = node_attr_int(node, "seed2", &seed2);
    if (err) return err;
    bool unseeded = seed == 0 && seed2 == 0;
    s->generator =
        unseeded ? philox_from_seeds(rng_entropy(), rng_entropy()) : philox_from_seeds((uint64_t)seed, (uint64_t)seed2);
    pthread_mutex_init(&s->mutex, NULL);
    return NULL;
}

void random_state_clear(void *state) {
    pthread_mutex_destroy(&((RandomState *)state)->mutex);
}

Philox random_state_reserve(RandomState *s, uint64_t groups) {
    pthread_mutex_lock(&s->mutex);
    Philox now = s->generator;
    philox_skip(&s->generator, groups);
    pthread_mutex_unlock(&s->mutex);
    return now;
}
