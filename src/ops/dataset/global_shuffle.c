/* global_shuffle.c: GlobalShuffleDataset, WeightedFlatMapDataset: elements taken by their place in datasets whose size is known. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/dataset_origin.h"
#include "ops/dataset/element_list.h"
#include "ops/dataset/seed_generator.h"
#include "ops/index_shuffle.h"
#include "ops/op_list.h"

const OpDef dataset_global_shuffle_ops[] = {
    {"GlobalShuffleDataset", "input_dataset: variant, seed: int64, seed2: int64, seed_generator: resource -> handle: variant",
     "reshuffle_each_iteration: bool = true; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", OP_STATEFUL},
    {"WeightedFlatMapDataset", "input_datasets: N * variant, weights: M * double -> handle: variant",
     "N: int >= 2; M: int >= 2; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", 0},
    {0},
};

/* ---- What TensorFlow can take elements of by their place ---- */

static const char *const indexable[] = {"RangeDataset",     "TensorSliceDataset", "MapDataset",      "ParallelMapDatasetV2",  "BatchDatasetV2", "ConcatenateDataset",   "ZipDataset",
                                        "RepeatDataset",    "TakeDataset",        "SkipDataset",     "PrefetchDataset",       "ShardDataset",   "GlobalShuffleDataset", "CacheDataset",
                                        "CacheDatasetV2",   "ListDataset",        "TensorDataset",   "WeightedFlatMapDataset"};

/* (takes nothing) NULL: it can. */
static Error *check_indexable(const Dataset *d) {
    Str op = dataset_origin_op(d);
    const Tensor *second = dataset_origin_input(d, 1), *third = dataset_origin_input(d, 2);
    bool known = false;
    for (size_t i = 0; i < sizeof indexable / sizeof *indexable; i++) known = known || str_is(op, indexable[i]);
    if (!known) return error_new(CODE_FAILED_PRECONDITION, "%.*s does not support random access.", STR_ARG(op));
    if (str_is(op, "RepeatDataset") && second && tensor_i64(second)[0] < 0)
        return error_new(CODE_FAILED_PRECONDITION, "`repeat(%lld)` does not support random access of tf.data datasets.", (long long)tensor_i64(second)[0]);
    if (str_is(op, "BatchDatasetV2") && third && !tensor_bool(third)[0])
        return error_new(CODE_FAILED_PRECONDITION, "BatchDatasetV2 does not support global shuffling with `drop_remainder=False`.");
    Error *err = NULL;
    for (int i = 0; !err && i < d->input_count; i++) err = check_indexable(d->inputs[i]);
    return err;
}

/* ---- GlobalShuffle ---- */

typedef struct GlobalShuffle {
    Dataset base;
    SeedGenerator *seeds; /* a reference */
} GlobalShuffle;

typedef struct GlobalShuffleIterator {
    DatasetIterator base;
    uint64_t seeds[4]; /* of which three count */
    int64_t at, count;
    bool read; /* elements has them all */
    ElementList elements;
} GlobalShuffleIterator;

static void destroy_shuffle(Dataset *d) {
    seeds_unref(((GlobalShuffle *)d)->seeds);
}

static int64_t count_input(const Dataset *d) {
    return dataset_cardinality(d->inputs[0]);
}

static Error *start_shuffle(DatasetIterator *it, IteratorContext *c) {
    GlobalShuffleIterator *s = (GlobalShuffleIterator *)it;
    SeedGenerator *g = ((GlobalShuffle *)it->dataset)->seeds;
    seeds_draw(g, &s->seeds[0], &s->seeds[1]);
    seeds_draw(g, &s->seeds[2], &s->seeds[3]);
    s->count = dataset_cardinality(it->dataset->inputs[0]);
    return iterator_start_input(it, c);
}

static Error *read_all(GlobalShuffleIterator *s, IteratorContext *c) {
    DatasetIterator *it = &s->base;
    Error *err = NULL;
    for (bool end = false; !err && !end && s->elements.count < s->count;) {
        Tensor **element = tuple_new(it->dataset->component_count);
        err = iterator_next(it->input, c, element, &end);
        if (!err && !end)
            element_list_add(&s->elements, element);
        else
            tuple_free(element, it->dataset->component_count);
    }
    s->read = !err;
    return err;
}

static Error *next_shuffled(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    GlobalShuffleIterator *s = (GlobalShuffleIterator *)it;
    const uint32_t seed[3] = {(uint32_t)s->seeds[0], (uint32_t)s->seeds[1], (uint32_t)s->seeds[2]};
    *end = s->at >= s->count;
    if (*end) return NULL;
    Error *err = s->read ? NULL : read_all(s, c);
    if (err) return err;
    int64_t place = (int64_t)index_shuffle((uint64_t)s->at, seed, (uint64_t)(s->count - 1), 8);
    *end = place >= s->elements.count;
    if (*end) return NULL;
    tuple_copy(out, s->elements.items[place], it->dataset->component_count);
    s->at++;
    return NULL;
}

static void stop_shuffle(DatasetIterator *it) {
    element_list_clear(&((GlobalShuffleIterator *)it)->elements, it->dataset->component_count);
}

static Error *save_shuffle(DatasetIterator *it, IteratorState *s) {
    GlobalShuffleIterator *g = (GlobalShuffleIterator *)it;
    SeedState seeds = seeds_state(((GlobalShuffle *)it->dataset)->seeds);
    state_put_int(s, g->at);
    for (int i = 0; i < 3; i++) state_put_int(s, (int64_t)g->seeds[i]);
    state_put_int(s, seeds.seed);
    state_put_int(s, seeds.seed2);
    state_put_int(s, seeds.drawn);
    return NULL;
}

static Error *restore_shuffle(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    GlobalShuffleIterator *g = (GlobalShuffleIterator *)it;
    SeedState seeds = {0};
    (void)c;
    Error *err = state_get_range(s, 0, INT64_MAX, &g->at);
    for (int i = 0; !err && i < 3; i++) err = state_get_int(s, (int64_t *)&g->seeds[i]);
    if (!err) err = state_get_int(s, &seeds.seed);
    if (!err) err = state_get_int(s, &seeds.seed2);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &seeds.drawn);
    if (!err) seeds_restore(((GlobalShuffle *)it->dataset)->seeds, seeds);
    return err;
}

static const DatasetKind shuffle_kind = {.name = "GlobalShuffle",
                                         .size = sizeof(GlobalShuffle),
                                         .iterator_size = sizeof(GlobalShuffleIterator),
                                         .destroy = destroy_shuffle,
                                         .cardinality = count_input,
                                         .start = start_shuffle,
                                         .next = next_shuffled,
                                         .save = save_shuffle,
                                         .restore = restore_shuffle,
                                         .stop = stop_shuffle};

static Error *run_shuffle(KernelContext *k) {
    Dataset *in = NULL;
    int64_t seed = 0, seed2 = 0;
    bool reshuffle = true;
    SeedGenerator *seeds = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (err) return err;
    Error *refused = check_indexable(in);
    if (refused)
        err = error_new(CODE_FAILED_PRECONDITION, "`global_shuffle` requires all upstream transformations be compatible with random access. Got: FAILED_PRECONDITION: %s",
                        refused->message);
    error_free(refused);
    int64_t n = err ? 0 : dataset_cardinality(in);
    if (!err && n <= 0)
        err = error_invalid("`global_shuffle` requires the input dataset to have a non-empty finite cardinality. Got cardinality %lld for dataset %sDatasetOp::Dataset",
                            (long long)n, in->kind->name);
    if (!err) err = kernel_int64(k, 1, "seed", &seed);
    if (!err) err = kernel_int64(k, 2, "seed2", &seed2);
    if (!err) err = node_attr_bool(k->node, "reshuffle_each_iteration", &reshuffle);
    if (!err) err = kernel_seeds(k, 3, &seeds);
    if (err) return err;
    GlobalShuffle *d = (GlobalShuffle *)dataset_like(&shuffle_kind, in);
    d->seeds = seeds ? seeds : seeds_new(seed, seed2, !reshuffle);
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

/* ---- WeightedFlatMap: of each input the first ones, as many as its weight says, until one of them has no more ---- */

typedef struct WeightedDataset {
    Dataset base;
    int64_t *counts; /* of each input */
} WeightedDataset;

typedef struct WeightedIterator {
    DatasetIterator base;
    int64_t which, at;
} WeightedIterator;

static void destroy_weighted(Dataset *d) {
    free(((WeightedDataset *)d)->counts);
}

static int64_t count_weighted(const Dataset *d) {
    int64_t sum = 0;
    for (int i = 0; i < d->input_count; i++) sum += ((const WeightedDataset *)d)->counts[i];
    return sum;
}

static Error *next_weighted(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    WeightedIterator *w = (WeightedIterator *)it;
    const WeightedDataset *d = (const WeightedDataset *)it->dataset;
    while (w->which < it->dataset->input_count && w->at >= d->counts[w->which]) {
        iterator_free(it->input);
        it->input = NULL;
        w->which++;
        w->at = 0;
    }
    *end = w->which >= it->dataset->input_count;
    if (*end) return NULL;
    Error *err = it->input ? NULL : dataset_iterate(it->dataset->inputs[w->which], c, &it->input);
    if (!err) err = iterator_next(it->input, c, out, end);
    if (!err) w->at++;
    return err;
}

static Error *save_weighted(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, ((WeightedIterator *)it)->which);
    state_put_int(s, ((WeightedIterator *)it)->at);
    state_put_int(s, it->input != NULL);
    return it->input ? iterator_save(it->input, s) : NULL;
}

static Error *restore_weighted(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    WeightedIterator *w = (WeightedIterator *)it;
    int64_t present = 0;
    Error *err = state_get_range(s, 0, it->dataset->input_count, &w->which);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &w->at);
    if (!err) err = state_get_range(s, 0, w->which < it->dataset->input_count, &present);
    if (err || !present) return err;
    err = dataset_iterate(it->dataset->inputs[w->which], c, &it->input);
    return err ? err : iterator_restore(it->input, c, s);
}

static const DatasetKind weighted_kind = {.name = "WeightedFlatMap",
                                          .size = sizeof(WeightedDataset),
                                          .iterator_size = sizeof(WeightedIterator),
                                          .destroy = destroy_weighted,
                                          .cardinality = count_weighted,
                                          .next = next_weighted,
                                          .save = save_weighted,
                                          .restore = restore_weighted};

/* counts: how many there are; becomes how many are taken. */
static Error *apply_weights(const double *weights, int64_t *counts, int64_t n) {
    double most = 0, least = INFINITY;
    int64_t first = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, weights[i]);
    if (!(most > 0)) return error_invalid("The weights of a weighted flat map must have a positive number among them.");
    for (int64_t i = 0; i < n; i++) {
        double count = (double)counts[i] * weights[i] / most;
        if (least > count) {
            least = count;
            first = i;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        double count = floor(least * weights[i] / weights[first]);
        if (!(count <= (double)counts[i]))
            return error_invalid("Input %lld needs to have at least %lld elements. It only has %lld elements.", (long long)i, isfinite(count) ? (long long)count : -1,
                                 (long long)counts[i]);
        counts[i] = (int64_t)count;
    }
    return NULL;
}

static Error *run_weighted(KernelContext *k) {
    int64_t n = 0, m = 0;
    Error *err = node_attr_int(k->node, "N", &n);
    if (!err) err = node_attr_int(k->node, "M", &m);
    if (!err && n != m)
        err = error_invalid("`input_datasets` and `weights` of the WeightedFlatMap must have the same size. Got %lld datasets and %lld weights.", (long long)n, (long long)m);
    if (err) return err;
    Dataset **inputs = xcalloc((size_t)n + 1, sizeof *inputs), *d = NULL;
    double *weights = xcalloc((size_t)n + 1, sizeof *weights);
    int64_t *counts = xcalloc((size_t)n + 1, sizeof *counts);
    for (int i = 0; !err && i < n; i++) {
        const Tensor *w = k->in[n + i];
        err = kernel_dataset(k, i, &inputs[i]);
        if (!err && w->shape.rank != 0) err = error_invalid("weights must be scalars");
        if (err) break;
        weights[i] = tensor_f64(w)[0];
        counts[i] = dataset_cardinality(inputs[i]);
        if (counts[i] <= 0)
            err = error_invalid("`weighted_flat_map` requires all input datasets to have a non-empty finite cardinality. Got cardinality %lld for input %d.", (long long)counts[i], i);
    }
    if (!err) err = apply_weights(weights, counts, n);
    if (!err) err = dataset_from_attr(k, &weighted_kind, "output_types", inputs, (int)n, &d);
    if (!err) {
        ((WeightedDataset *)d)->counts = counts;
        counts = NULL;
        kernel_set_dataset(k, 0, d);
    }
    free(inputs);
    free(weights);
    free(counts);
    return err;
}

const KernelDef dataset_global_shuffle_cpu[] = {
    {"GlobalShuffleDataset", .run = run_shuffle},
    {"WeightedFlatMapDataset", .run = run_weighted},
    {0},
};
