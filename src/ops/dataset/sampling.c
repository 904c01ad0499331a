/* sampling.c: SamplingDataset, which keeps a share of the elements, and SleepDataset, which takes its time for each. */
#include "base/clock.h"
#include "base/rng.h"
#include "base/thread.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"

const OpDef dataset_sampling_ops[] = {
    {"SamplingDataset", "input_dataset: variant, rate: float, seed: int64, seed2: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"SleepDataset", "input_dataset: variant, sleep_microseconds: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ExperimentalSleepDataset", "input_dataset: variant, sleep_microseconds: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {0},
};

/* ---- Sampling ---- */

typedef struct SamplingDataset {
    Dataset base;
    float rate;
    uint64_t seed, seed2;
} SamplingDataset;

typedef struct SamplingIterator {
    DatasetIterator base;
    uint64_t seed, seed2;
    PhiloxStream stream;
    int64_t drawn;
} SamplingIterator;

static void reset_stream(SamplingIterator *s) {
    Philox p = philox_from_seeds(s->seed, s->seed2);
    philox_skip(&p, (uint64_t)s->drawn / 4);
    s->stream = philox_stream(p);
    for (int64_t i = 0; i < s->drawn % 4; i++) philox_stream_next(&s->stream);
}

static Error *start_sampling(DatasetIterator *it, IteratorContext *c) {
    SamplingIterator *s = (SamplingIterator *)it;
    s->seed = ((SamplingDataset *)it->dataset)->seed;
    s->seed2 = ((SamplingDataset *)it->dataset)->seed2;
    reset_stream(s);
    return iterator_start_input(it, c);
}

static Error *next_sample(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    SamplingIterator *s = (SamplingIterator *)it;
    for (;;) {
        *end = !it->input;
        Error *err = *end ? NULL : iterator_next(it->input, c, out, end);
        if (err) return err;
        if (*end) {
            iterator_free(it->input);
            it->input = NULL;
            return NULL;
        }
        s->drawn++;
        if (uniform_float(philox_stream_next(&s->stream)) < ((SamplingDataset *)it->dataset)->rate) return NULL;
        tuple_clear(out, it->dataset->component_count);
    }
}

static Error *save_sampling(DatasetIterator *it, IteratorState *s) {
    SamplingIterator *i = (SamplingIterator *)it;
    state_put_int(s, i->drawn);
    state_put_int(s, (int64_t)i->seed);
    state_put_int(s, (int64_t)i->seed2);
    return iterator_save_input(it, s);
}

static Error *restore_sampling(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    SamplingIterator *i = (SamplingIterator *)it;
    int64_t seed = 0, seed2 = 0;
    Error *err = state_get_range(s, 0, INT64_MAX, &i->drawn);
    if (!err) err = state_get_int(s, &seed);
    if (!err) err = state_get_int(s, &seed2);
    if (err) return err;
    i->seed = (uint64_t)seed;
    i->seed2 = (uint64_t)seed2;
    reset_stream(i);
    return iterator_restore_input(it, c, s);
}

static const DatasetKind sampling_kind = {.name = "Sampling",
                                          .size = sizeof(SamplingDataset),
                                          .iterator_size = sizeof(SamplingIterator),
                                          .start = start_sampling,
                                          .next = next_sample,
                                          .save = save_sampling,
                                          .restore = restore_sampling};

static Error *run_sampling(KernelContext *k) {
    Dataset *in = NULL;
    int64_t seed = 0, seed2 = 0;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err && k->in[1]->shape.rank != 0) err = error_invalid("rate must be a scalar");
    if (!err) err = kernel_int64(k, 2, "seed", &seed);
    if (!err) err = kernel_int64(k, 3, "seed2", &seed2);
    if (err) return err;
    SamplingDataset *d = (SamplingDataset *)dataset_like(&sampling_kind, in);
    bool chosen = seed || seed2;
    d->rate = *tensor_f32(k->in[1]);
    d->seed = chosen ? (uint64_t)seed : rng_entropy();
    d->seed2 = chosen ? (uint64_t)seed2 : rng_entropy();
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

/* ---- Sleeping ---- */

typedef struct SleepDataset {
    Dataset base;
    int64_t pause_us;
} SleepDataset;

typedef struct Sleeper {
    pthread_mutex_t mutex; /* guards woken */
    pthread_cond_t cond;
    bool woken;
} Sleeper;

static void wake(void *arg) {
    Sleeper *s = arg;
    pthread_mutex_lock(&s->mutex);
    s->woken = true;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->mutex);
}

static Error *pause_for(IteratorContext *c, int64_t pause_us) {
    Sleeper s = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    CancelWatch watch = {0};
    int64_t now = clock_mono_ns(), deadline;
    if (__builtin_mul_overflow(pause_us, 1000, &deadline) || __builtin_add_overflow(deadline, now, &deadline))
        deadline = INT64_MAX;
    cond_init(&s.cond);
    bool watching = cancel_watch(c->cancel, &watch, wake, &s);
    pthread_mutex_lock(&s.mutex);
    for (bool time = watching; time && !s.woken;) time = cond_wait_until(&s.cond, &s.mutex, deadline);
    pthread_mutex_unlock(&s.mutex);
    if (watching) cancel_unwatch(c->cancel, &watch);
    pthread_cond_destroy(&s.cond);
    pthread_mutex_destroy(&s.mutex);
    return iterator_cancelled(c);
}

static Error *next_after_pause(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    Error *err = pause_for(c, ((SleepDataset *)it->dataset)->pause_us);
    return err ? err : iterator_next(it->input, c, out, end);
}

static int64_t count_input(const Dataset *d) {
    return dataset_cardinality(d->inputs[0]);
}

static const DatasetKind sleep_kind = {.name = "Sleep",
                                       .size = sizeof(SleepDataset),
                                       .cardinality = count_input,
                                       .start = iterator_start_input,
                                       .next = next_after_pause};

static Error *run_sleep(KernelContext *k) {
    Dataset *in = NULL;
    int64_t pause_us = 0;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "sleep_microseconds", &pause_us);
    if (!err && pause_us < 0) err = error_invalid("`sleep_microseconds` must be >= 0");
    if (err) return err;
    SleepDataset *d = (SleepDataset *)dataset_like(&sleep_kind, in);
    d->pause_us = pause_us;
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

const KernelDef dataset_sampling_cpu[] = {
    {"SamplingDataset", .run = run_sampling},
    {"SleepDataset", .run = run_sleep},
    {"ExperimentalSleepDataset", .run = run_sleep},
    {0},
};
