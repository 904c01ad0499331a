/* prefetch.c: PrefetchDataset, and the thread that runs ahead of an iterator. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/prefetcher.h"
#include "ops/op_list.h"

const OpDef dataset_prefetch_ops[] = {
    {"PrefetchDataset", "input_dataset: variant, buffer_size: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; slack_period: int = 0; legacy_autotune: bool ="
     " true; buffer_size_min: int = 0; metadata: string = ''",
     0},
    {0},
};

enum { AUTO_CAPACITY = 8 };

typedef struct Slot {
    Tensor **element;
    Error *err;
    bool end;
} Slot;

struct Prefetcher {
    pthread_mutex_t input_mutex; /* held while input moves; taken before mutex */
    DatasetIterator *input;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    Slot *ring;
    int64_t head, count, capacity;
    bool started, stopping, ended;
    Cancel own; /* of the thread */
    ClosureScope *scope;
    bool drops_errors;
    pthread_t thread;
};

Prefetcher *prefetcher_new(DatasetIterator *take, const IteratorContext *c, int64_t capacity) {
    Prefetcher *p = xcalloc(1, sizeof *p);
    pthread_mutex_init(&p->input_mutex, NULL);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->changed, NULL);
    cancel_init(&p->own);
    p->input = take;
    p->scope = c->scope;
    p->drops_errors = c->drops_errors;
    p->capacity = capacity;
    p->ring = xcalloc((size_t)capacity, sizeof *p->ring);
    return p;
}

static void slot_clear(Prefetcher *p, Slot *s) {
    tuple_free(s->element, p->input->dataset->component_count);
    error_free(s->err);
    *s = (Slot){0};
}

void prefetcher_free(Prefetcher *p) {
    if (!p) return;
    pthread_mutex_lock(&p->mutex);
    p->stopping = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    cancel_now(&p->own, error_derived(error_new(CODE_CANCELLED, "The iterator was destroyed")));
    if (p->started) pthread_join(p->thread, NULL);
    for (int64_t i = 0; i < p->count; i++) slot_clear(p, &p->ring[(p->head + i) % p->capacity]);
    free(p->ring);
    iterator_free(p->input);
    cancel_clear(&p->own);
    pthread_mutex_destroy(&p->mutex);
    pthread_mutex_destroy(&p->input_mutex);
    pthread_cond_destroy(&p->changed);
    free(p);
}

/* One element into the buffer; false when there is nothing more to do. */
static bool pull(Prefetcher *p) {
    IteratorContext c = {.cancel = &p->own, .scope = p->scope, .drops_errors = p->drops_errors};
    pthread_mutex_lock(&p->input_mutex);
    Slot s = {.element = tuple_new(p->input->dataset->component_count)};
    s.err = iterator_next(p->input, &c, s.element, &s.end);
    pthread_mutex_lock(&p->mutex);
    p->ring[(p->head + p->count++) % p->capacity] = s;
    bool more = !s.end && !p->stopping;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    pthread_mutex_unlock(&p->input_mutex);
    return more;
}

static void *run_ahead(void *arg) {
    Prefetcher *p = arg;
    for (bool more = true; more;) {
        pthread_mutex_lock(&p->mutex);
        while (!p->stopping && p->count == p->capacity) pthread_cond_wait(&p->changed, &p->mutex);
        more = !p->stopping;
        pthread_mutex_unlock(&p->mutex);
        if (more) more = pull(p);
    }
    return NULL;
}

static bool has_slot(void *arg) {
    return ((Prefetcher *)arg)->count > 0;
}

static Error *start_thread(Prefetcher *p) {
    bool complete = p->count && p->ring[(p->head + p->count - 1) % p->capacity].end; /* as restored */
    if (p->started || complete) return NULL;
    if (pthread_create(&p->thread, NULL, run_ahead, p) != 0)
        return error_new(CODE_RESOURCE_EXHAUSTED, "A thread to prefetch could not be started");
    pthread_setname_np(p->thread, "prefetch");
    p->started = true;
    return NULL;
}

Error *prefetcher_next(Prefetcher *p, IteratorContext *c, Tensor **out, bool *end) {
    *end = p->ended;
    if (*end) return NULL;
    pthread_mutex_lock(&p->mutex);
    Error *err = start_thread(p);
    bool ready = !err && iterator_wait(c, &p->mutex, &p->changed, has_slot, p);
    Slot s = {0};
    if (ready) {
        s = p->ring[p->head];
        p->ring[p->head] = (Slot){0};
        p->head = (p->head + 1) % p->capacity;
        p->count--;
        p->ended = s.end;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->mutex);
    if (!ready) return err ? err : iterator_cancelled(c);
    *end = s.end;
    err = s.err;
    s.err = NULL;
    if (!err && !s.end) tuple_move(out, s.element, p->input->dataset->component_count);
    slot_clear(p, &s);
    return err;
}

Error *prefetcher_save(Prefetcher *p, IteratorState *s) {
    Error *err = NULL;
    pthread_mutex_lock(&p->input_mutex);
    pthread_mutex_lock(&p->mutex);
    state_put_int(s, p->ended);
    state_put_int(s, p->count);
    for (int64_t i = 0; !err && i < p->count; i++) {
        const Slot *slot = &p->ring[(p->head + i) % p->capacity];
        state_put_int(s, slot->end);
        state_put_error(s, slot->err);
        if (!slot->end && !slot->err) err = state_put_element(s, slot->element, p->input->dataset->component_count);
    }
    pthread_mutex_unlock(&p->mutex);
    if (!err) err = iterator_save(p->input, s);
    pthread_mutex_unlock(&p->input_mutex);
    return err;
}

Error *prefetcher_restore(Prefetcher *p, IteratorContext *c, IteratorState *s) {
    const Dataset *d = p->input->dataset;
    int64_t ended = 0, count = 0, end = 0;
    Error *err = state_get_range(s, 0, 1, &ended);
    if (!err) err = state_get_range(s, 0, p->capacity, &count);
    p->ended = ended;
    for (int64_t i = 0; !err && i < count; i++) {
        Slot slot = {.element = tuple_new(d->component_count)};
        err = state_get_range(s, 0, 1, &end);
        slot.end = end;
        if (!err) err = state_get_error(s, &slot.err);
        if (!err && !slot.end && !slot.err) err = state_get_element(s, d->types, d->component_count, slot.element);
        p->ring[p->count++] = slot;
    }
    return err ? err : iterator_restore(p->input, c, s);
}

/* ---- The dataset ---- */

typedef struct PrefetchDataset {
    Dataset base;
    int64_t buffer_size;
} PrefetchDataset;

typedef struct PrefetchIterator {
    DatasetIterator base;
    Prefetcher *prefetcher; /* NULL: nothing is to be prefetched, input is used */
} PrefetchIterator;

static Error *start_prefetch(DatasetIterator *it, IteratorContext *c) {
    int64_t size = ((PrefetchDataset *)it->dataset)->buffer_size;
    Error *err = iterator_start_input(it, c);
    if (err || size == 0) return err;
    ((PrefetchIterator *)it)->prefetcher = prefetcher_new(it->input, c, size < 0 ? AUTO_CAPACITY : size);
    it->input = NULL;
    return NULL;
}

static Error *next_prefetched(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    Prefetcher *p = ((PrefetchIterator *)it)->prefetcher;
    return p ? prefetcher_next(p, c, out, end) : iterator_next(it->input, c, out, end);
}

static void stop_prefetch(DatasetIterator *it) {
    prefetcher_free(((PrefetchIterator *)it)->prefetcher);
}

static Error *save_prefetch(DatasetIterator *it, IteratorState *s) {
    Prefetcher *p = ((PrefetchIterator *)it)->prefetcher;
    return p ? prefetcher_save(p, s) : iterator_save_input(it, s);
}

static Error *restore_prefetch(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    Prefetcher *p = ((PrefetchIterator *)it)->prefetcher;
    return p ? prefetcher_restore(p, c, s) : iterator_restore_input(it, c, s);
}

static int64_t count_input(const Dataset *d) {
    return dataset_cardinality(d->inputs[0]);
}

static const DatasetKind prefetch_kind = {.name = "Prefetch",
                                          .size = sizeof(PrefetchDataset),
                                          .iterator_size = sizeof(PrefetchIterator),
                                          .cardinality = count_input,
                                          .start = start_prefetch,
                                          .next = next_prefetched,
                                          .save = save_prefetch,
                                          .restore = restore_prefetch,
                                          .stop = stop_prefetch};

static Error *run_prefetch(KernelContext *k) {
    Dataset *in = NULL;
    int64_t size = 0;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "buffer_size", &size);
    if (!err && size < -1) err = error_invalid("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning");
    if (!err && size > 1 << 24) err = error_invalid("buffer_size %lld is too large", (long long)size);
    if (err) return err;
    Dataset *d = dataset_like(&prefetch_kind, in);
    ((PrefetchDataset *)d)->buffer_size = size;
    kernel_set_dataset(k, 0, d);
    return NULL;
}

const KernelDef dataset_prefetch_cpu[] = {
    {"PrefetchDataset", .run = run_prefetch},
    {0},
};
