/* seed_generator.c: generators of seeds as resources: AnonymousSeedGenerator, DummySeedGenerator and the like. */
#include "ops/dataset/seed_generator.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/rng.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"

const OpDef dataset_seed_ops[] = {
    {"DummySeedGenerator", "-> handle: resource", "", OP_STATEFUL},
    {"DummyIterationCounter", "-> handle: resource", "", OP_STATEFUL},
    {"AnonymousSeedGenerator", "seed: int64, seed2: int64, reshuffle: bool -> handle: resource, deleter: variant", "",
     OP_STATEFUL},
    {"AnonymousRandomSeedGenerator", "seed: int64, seed2: int64 -> handle: resource, deleter: variant", "",
     OP_STATEFUL},
    {"DeleteSeedGenerator", "handle: resource, deleter: variant ->", "", OP_STATEFUL},
    {"DeleteRandomSeedGenerator", "handle: resource, deleter: variant ->", "", OP_STATEFUL},
    {0},
};

struct SeedGenerator {
    Resource base;
    pthread_mutex_t mutex; /* guards all below */
    uint64_t seed, seed2;
    bool fixed;
    PhiloxStream stream;
    int64_t drawn;
};

static void destroy_seeds(Resource *r) {
    pthread_mutex_destroy(&((SeedGenerator *)r)->mutex);
    free(r);
}

static const ResourceType seed_generator_type = {
    .type_name = "N10tensorflow4data20SeedGeneratorManagerE", .what = "seed generator", .destroy = destroy_seeds};

SeedGenerator *seeds_new(int64_t seed, int64_t seed2, bool fixed) {
    SeedGenerator *g = xcalloc(1, sizeof *g);
    resource_init(&g->base, &seed_generator_type);
    pthread_mutex_init(&g->mutex, NULL);
    bool chosen = seed || seed2;
    g->seed = chosen ? (uint64_t)seed : rng_entropy();
    g->seed2 = chosen ? (uint64_t)seed2 : rng_entropy();
    g->fixed = fixed;
    g->stream = philox_stream(philox_from_seeds(g->seed, g->seed2));
    return g;
}

void seeds_unref(SeedGenerator *g) {
    if (g) resource_unref(&g->base);
}

void seeds_draw(SeedGenerator *g, uint64_t *seed, uint64_t *seed2) {
    pthread_mutex_lock(&g->mutex);
    *seed = g->fixed ? g->seed : philox_stream_next(&g->stream);
    *seed2 = g->fixed ? g->seed2 : philox_stream_next(&g->stream);
    g->drawn += 2;
    pthread_mutex_unlock(&g->mutex);
}

SeedState seeds_state(SeedGenerator *g) {
    pthread_mutex_lock(&g->mutex);
    SeedState s = {(int64_t)g->seed, (int64_t)g->seed2, g->drawn};
    pthread_mutex_unlock(&g->mutex);
    return s;
}

void seeds_restore(SeedGenerator *g, SeedState s) {
    pthread_mutex_lock(&g->mutex);
    g->seed = (uint64_t)s.seed;
    g->seed2 = (uint64_t)s.seed2;
    g->drawn = s.drawn;
    Philox p = philox_from_seeds(g->seed, g->seed2);
    philox_skip(&p, (uint64_t)s.drawn / 4);
    g->stream = philox_stream(p);
    for (int64_t i = 0; i < s.drawn % 4; i++) philox_stream_next(&g->stream);
    pthread_mutex_unlock(&g->mutex);
}

Error *kernel_seeds(KernelContext *k, int i, SeedGenerator **out) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, i, &seed_generator_type, &r);
    *out = err ? NULL : (SeedGenerator *)r;
    if (err && err->code == CODE_NOT_FOUND) {
        error_free(err);
        err = NULL;
    }
    return err;
}

/* ---- Kernels ---- */

static void release(void *direct) {
    resource_unref(direct);
}

static Error *run_dummy(KernelContext *k) {
    kernel_set_output(k, 0, kernel_make_handle(k, STR(""), STR("dummy_seed_generator"), &seed_generator_type));
    return NULL;
}

/* The handle owns the generator; the second output stands for the right to delete it. */
static Error *run_anonymous(KernelContext *k) {
    int64_t seed = 0, seed2 = 0;
    bool reshuffle = true;
    Error *err = kernel_int64(k, 0, "seed", &seed);
    if (!err) err = kernel_int64(k, 1, "seed2", &seed2);
    if (!err && k->input_count > 2) err = kernel_bool(k, 2, "reshuffle", &reshuffle);
    if (err) return err;
    Tensor *t = kernel_make_handle(k, STR(""), STR("anonymous_seed_generator"), &seed_generator_type);
    if (!t) return NULL;
    ResourceHandle *h = tensor_handles(t)[0];
    h->direct = seeds_new(seed, seed2, !reshuffle);
    h->release_direct = release;
    kernel_set_output(k, 0, t);
    kernel_output(k, 1, &SHAPE_SCALAR);
    return NULL;
}

static Error *run_delete(KernelContext *k) {
    (void)k; /* it goes with its last handle */
    return NULL;
}

const KernelDef dataset_seed_cpu[] = {
    {"DummySeedGenerator", .run = run_dummy},
    {"DummyIterationCounter", .run = run_dummy}, /* nothing looks it up either */
    {"AnonymousSeedGenerator", .run = run_anonymous},
    {"AnonymousRandomSeedGenerator", .run = run_anonymous},
    {"DeleteSeedGenerator", .run = run_delete},
    {"DeleteRandomSeedGenerator", .run = run_delete},
    {0},
};
