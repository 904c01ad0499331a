/* parallel_map.c: ParallelMapDataset, MapAndBatchDataset: several calls of the function at once, results in order.

   One thread pulls the input and starts calls, which run on the compute pool; at most `limit` calls or results are
   there at a time. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/batch.h"
#include "ops/dataset/map_result.h"
#include "ops/op_list.h"

const OpDef dataset_parallel_map_ops[] = {
    {"ParallelMapDataset",
     "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int32 -> handle: variant",
     "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "use_inter_op_parallelism: bool = true; sloppy: bool = false; preserve_cardinality: bool = false; metadata: "
     "string = ''",
     0},
    {"ParallelMapDatasetV2",
     "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int64 -> handle: variant",
     "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "use_inter_op_parallelism: bool = true; deterministic: string = 'default'; preserve_cardinality: bool = false; "
     "use_unbounded_threadpool: bool = false; metadata: string = ''",
     0},
    {"MapAndBatchDataset",
     "input_dataset: variant, other_arguments: Targuments, batch_size: int64, num_parallel_calls: int64, "
     "drop_remainder: bool -> handle: variant",
     "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "preserve_cardinality: bool = false; metadata: string = ''",
     0},
    {"ExperimentalMapAndBatchDataset",
     "input_dataset: variant, other_arguments: Targuments, batch_size: int64, num_parallel_calls: int64, "
     "drop_remainder: bool -> handle: variant",
     "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "preserve_cardinality: bool = false",
     0},
    {0},
};

typedef struct ParallelMapDataset {
    Dataset base;
    int64_t calls; /* as asked */
    bool keep_count;
} ParallelMapDataset;

typedef struct ParallelMapIterator ParallelMapIterator;

typedef struct Call {
    ParallelMapIterator *owner;
    Tensor **out; /* of component_count; NULL when it failed or is the end */
    Error *err;
    bool end, done;
} Call;

struct ParallelMapIterator {
    DatasetIterator base;
    pthread_mutex_t input_mutex; /* held while the input moves and a call starts; taken before mutex */
    pthread_mutex_t mutex;       /* guards all below */
    pthread_cond_t changed;
    Call **ring; /* in order of the input */
    int head, count, limit;
    int running;
    bool started, stopping, ended;
    Cancel own;
    ClosureScope *scope;
    bool drops_errors;
    pthread_t thread;
};

static Error *start_parallel_map(DatasetIterator *it, IteratorContext *c) {
    ParallelMapIterator *p = (ParallelMapIterator *)it;
    pthread_mutex_init(&p->input_mutex, NULL);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->changed, NULL);
    cancel_init(&p->own);
    p->scope = c->scope;
    p->drops_errors = c->drops_errors;
    p->limit = dataset_parallelism(((ParallelMapDataset *)it->dataset)->calls);
    p->ring = xcalloc((size_t)p->limit, sizeof *p->ring);
    return iterator_start_input(it, c);
}

static void call_free(Call *call, int components) {
    if (!call) return;
    tuple_free(call->out, components);
    error_free(call->err);
    free(call);
}

static bool is_quiet(const ParallelMapIterator *p) {
    return p->running == 0;
}

static void stop_parallel_map(DatasetIterator *it) {
    ParallelMapIterator *p = (ParallelMapIterator *)it;
    pthread_mutex_lock(&p->mutex);
    p->stopping = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    cancel_now(&p->own, error_derived(error_new(CODE_CANCELLED, "The iterator was destroyed")));
    if (p->started) pthread_join(p->thread, NULL);
    pthread_mutex_lock(&p->mutex);
    while (!is_quiet(p)) pthread_cond_wait(&p->changed, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
    for (int i = 0; i < p->count; i++) call_free(p->ring[(p->head + i) % p->limit], it->dataset->component_count);
    free(p->ring);
    cancel_clear(&p->own);
    pthread_mutex_destroy(&p->mutex);
    pthread_mutex_destroy(&p->input_mutex);
    pthread_cond_destroy(&p->changed);
}

static void call_done(void *arg, Error *err, Tensor **rets, int ret_count) {
    Call *call = arg;
    ParallelMapIterator *p = call->owner;
    const Dataset *d = p->base.dataset;
    if (!err) err = dataset_check_results(rets, ret_count, d->types, d->component_count);
    if (err) {
        tuple_free(rets, ret_count);
        rets = NULL;
    }
    bool end = false;
    err = mapped_result(&p->base, err, ((const ParallelMapDataset *)d)->keep_count, &end);
    pthread_mutex_lock(&p->mutex);
    call->out = rets;
    call->err = err;
    call->end = end;
    call->done = true;
    p->running--;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
}

/* Pulls one element and starts its call; false when there is nothing more to do. */
static bool start_call(ParallelMapIterator *p) {
    Dataset *d = p->base.dataset, *in = d->inputs[0];
    IteratorContext c = {.cancel = &p->own, .scope = p->scope, .drops_errors = p->drops_errors};
    Tensor **element = tuple_new(in->component_count);
    Call *call = xcalloc(1, sizeof *call);
    call->owner = p;
    pthread_mutex_lock(&p->input_mutex);
    Error *err = iterator_next(p->base.input, &c, element, &call->end);
    bool calls = !err && !call->end, more = !call->end;
    call->err = err;
    call->done = !calls;
    pthread_mutex_lock(&p->mutex);
    p->ring[(p->head + p->count++) % p->limit] = call;
    p->running += calls;
    more = more && !p->stopping;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    if (calls) closure_start(d->closure, p->scope, &p->own, element, in->component_count, call_done, call);
    pthread_mutex_unlock(&p->input_mutex);
    tuple_free(element, in->component_count);
    return more;
}

static void *run_calls(void *arg) {
    ParallelMapIterator *p = arg;
    for (bool more = true; more;) {
        pthread_mutex_lock(&p->mutex);
        while (!p->stopping && p->count == p->limit) pthread_cond_wait(&p->changed, &p->mutex);
        more = !p->stopping;
        pthread_mutex_unlock(&p->mutex);
        if (more) more = start_call(p);
    }
    return NULL;
}

static bool first_is_done(void *arg) {
    ParallelMapIterator *p = arg;
    return p->count && p->ring[p->head]->done;
}

static Error *start_thread(ParallelMapIterator *p) {
    const Call *last = p->count ? p->ring[(p->head + p->count - 1) % p->limit] : NULL;
    if (p->started || (last && last->end)) return NULL; /* the latter: as restored */
    if (pthread_create(&p->thread, NULL, run_calls, p) != 0)
        return error_new(CODE_RESOURCE_EXHAUSTED, "A thread to map elements could not be started");
    pthread_setname_np(p->thread, "parallel_map");
    p->started = true;
    return NULL;
}

static Error *next_parallel_map(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    ParallelMapIterator *p = (ParallelMapIterator *)it;
    *end = p->ended;
    if (*end) return NULL;
    Call *call = NULL;
    pthread_mutex_lock(&p->mutex);
    Error *err = start_thread(p);
    if (!err && iterator_wait(c, &p->mutex, &p->changed, first_is_done, p)) {
        call = p->ring[p->head];
        p->head = (p->head + 1) % p->limit;
        p->count--;
        p->ended = call->end;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->mutex);
    if (!call) return err ? err : iterator_cancelled(c);
    *end = call->end;
    err = call->err;
    call->err = NULL;
    if (!err && !call->end) tuple_move(out, call->out, it->dataset->component_count);
    call_free(call, it->dataset->component_count);
    return err;
}

static Error *save_parallel_map(DatasetIterator *it, IteratorState *s) {
    ParallelMapIterator *p = (ParallelMapIterator *)it;
    Error *err = NULL;
    pthread_mutex_lock(&p->input_mutex); /* no new calls */
    pthread_mutex_lock(&p->mutex);
    while (!is_quiet(p)) pthread_cond_wait(&p->changed, &p->mutex);
    state_put_int(s, p->ended);
    state_put_int(s, p->count);
    for (int i = 0; !err && i < p->count; i++) {
        const Call *call = p->ring[(p->head + i) % p->limit];
        state_put_int(s, call->end);
        state_put_error(s, call->err);
        if (!call->end && !call->err) err = state_put_element(s, call->out, it->dataset->component_count);
    }
    pthread_mutex_unlock(&p->mutex);
    if (!err) err = iterator_save_input(it, s);
    pthread_mutex_unlock(&p->input_mutex);
    return err;
}

static Error *restore_parallel_map(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    ParallelMapIterator *p = (ParallelMapIterator *)it;
    const Dataset *d = it->dataset;
    int64_t ended = 0, count = 0, end = 0;
    Error *err = state_get_range(s, 0, 1, &ended);
    if (!err) err = state_get_range(s, 0, 1024, &count);
    if (!err && count > p->limit) { /* saved where there were more cores */
        p->limit = (int)count;
        p->ring = xrealloc(p->ring, (size_t)count * sizeof *p->ring);
    }
    p->ended = ended;
    for (int64_t i = 0; !err && i < count; i++) {
        Call *call = xcalloc(1, sizeof *call);
        call->owner = p;
        call->done = true;
        p->ring[p->count++] = call;
        err = state_get_range(s, 0, 1, &end);
        call->end = end;
        if (!err) err = state_get_error(s, &call->err);
        if (err || call->end || call->err) continue;
        call->out = tuple_new(d->component_count);
        err = state_get_element(s, d->types, d->component_count, call->out);
    }
    return err ? err : iterator_restore_input(it, c, s);
}

static int64_t count_mapped(const Dataset *d) {
    return ((const ParallelMapDataset *)d)->keep_count ? dataset_cardinality(d->inputs[0]) : CARDINALITY_UNKNOWN;
}

static const DatasetKind parallel_map_kind = {.name = "ParallelMap",
                                              .size = sizeof(ParallelMapDataset),
                                              .iterator_size = sizeof(ParallelMapIterator),
                                              .cardinality = count_mapped,
                                              .start = start_parallel_map,
                                              .next = next_parallel_map,
                                              .save = save_parallel_map,
                                              .restore = restore_parallel_map,
                                              .stop = stop_parallel_map,
                                              .is_map = true};

/* Up to where the numbers that follow the captured inputs begin. */
static Error *make_parallel_map(KernelContext *k, Dataset **out, int *next) {
    Dataset *in = NULL, *d = NULL;
    bool keep_count = false;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = node_attr_bool(k->node, "preserve_cardinality", &keep_count);
    if (!err) err = dataset_from_attr(k, &parallel_map_kind, "output_types", &in, 1, &d);
    if (err) return err;
    ((ParallelMapDataset *)d)->keep_count = keep_count;
    err = kernel_closure(k, "f", "Targuments", 1, &d->closure, next);
    if (err)
        dataset_unref(d);
    else
        *out = d;
    return err;
}

static Error *set_calls(KernelContext *k, int i, Dataset *d) {
    int64_t calls = 0;
    Error *err = kernel_int64(k, i, "num_parallel_calls", &calls);
    if (!err && calls != -1 && calls <= 0) err = error_invalid("num_parallel_calls must be greater than zero.");
    ((ParallelMapDataset *)d)->calls = calls;
    return err;
}

static Error *run_parallel_map(KernelContext *k) {
    Dataset *d = NULL;
    int next = 0;
    Error *err = make_parallel_map(k, &d, &next);
    if (err) return err;
    err = set_calls(k, next, d);
    if (err)
        dataset_unref(d);
    else
        kernel_set_dataset(k, 0, d);
    return err;
}

static Error *run_map_and_batch(KernelContext *k) {
    Dataset *d = NULL;
    int next = 0;
    int64_t size = 0;
    bool drop = false;
    Error *err = make_parallel_map(k, &d, &next);
    if (err) return err;
    err = kernel_int64(k, next, "batch_size", &size);
    if (!err && size <= 0) err = error_invalid("batch_size must be greater than zero.");
    if (!err) err = set_calls(k, next + 1, d);
    if (!err) err = kernel_bool(k, next + 2, "drop_remainder", &drop);
    if (!err) kernel_set_dataset(k, 0, fused_batch_dataset_new(d, size, drop));
    dataset_unref(d);
    return err;
}

const KernelDef dataset_parallel_map_cpu[] = {
    {"ParallelMapDataset", .run = run_parallel_map},
    {"ParallelMapDatasetV2", .run = run_parallel_map},
    {"MapAndBatchDataset", .run = run_map_and_batch},
    {"ExperimentalMapAndBatchDataset", .run = run_map_and_batch},
    {0},
};
