/* random_id.c: 64 random bits; a generator per thread, seeded by the kernel. */
#include "cluster/random_id.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static _Thread_local uint64_t state;
static _Thread_local unsigned seeded_for; /* generation */
static _Atomic unsigned generation = 1;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

/* A process that was forked must not go on as its parent does. */
static void forked(void) {
    generation++;
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forked);
}

static void seed(void) {
    pthread_once(&watched, watch_forks);
    if (getrandom(&state, sizeof state, 0) != sizeof state) state = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15ull ^ (uint64_t)getpid();
    seeded_for = generation;
}

static uint64_t next(void) {
    if (seeded_for != generation) seed();
    uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

int64_t random_id(void) {
    uint64_t id = 0;
    while (id == 0) id = next();
    return (int64_t)id;
}

int64_t random_step_id(void) {
    return (int64_t)((uint64_t)random_id() & ((1ull << 57) - 1)) | 1;
}
