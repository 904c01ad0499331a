/* random_state.h: RandomState, the generator that a seeded op keeps from step to step. */
#pragma once
#include <pthread.h>

#include "base/rng.h"
#include "graph/graph.h"

typedef struct RandomState {
    pthread_mutex_t mutex; /* guards generator */
    Philox generator;
} RandomState;

/* From the attributes seed and seed2; both zero: a different sequence each time. */
Error *random_state_init(const Node *node, void *state) MUST_CHECK;
void random_state_clear(void *state);
/* The generator as it is now; it then moves on by `groups` groups of four numbers. */
Philox random_state_reserve(RandomState *s, uint64_t groups);
