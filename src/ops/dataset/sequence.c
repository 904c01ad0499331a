/* sequence.c: take, skip, shard, repeat, zip, concatenate. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/shard.h"
#include "ops/op_list.h"

const OpDef dataset_sequence_ops[] = {
    {"TakeDataset", "input_dataset: variant, count: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", 0},
    {"SkipDataset", "input_dataset: variant, count: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", 0},
    {"ShardDataset", "input_dataset: variant, num_shards: int64, index: int64 -> handle: variant",
     "require_non_empty: bool = false; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: "
     "string = ''",
     0},
    {"RepeatDataset", "input_dataset: variant, count: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", 0},
    {"ZipDataset", "input_datasets: N * variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; N: int >= 1; metadata: string = ''", 0},
    {"ConcatenateDataset", "input_dataset: variant, another_dataset: variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", 0},
    {0},
};

/* With one or two numbers. */
typedef struct CountedDataset {
    Dataset base;
    int64_t count, index;
    bool non_empty; /* shard: fewer elements than shards are an error */
} CountedDataset;

typedef struct CountedIterator {
    DatasetIterator base;
    int64_t at;
    bool fresh; /* repeat: this round has given nothing yet */
} CountedIterator;

static int64_t count_of(const DatasetIterator *it) {
    return ((const CountedDataset *)it->dataset)->count;
}

static void end_input(DatasetIterator *it) {
    iterator_free(it->input);
    it->input = NULL;
}

static Error *save_counted(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, ((CountedIterator *)it)->at);
    state_put_int(s, ((CountedIterator *)it)->fresh);
    return iterator_save_input(it, s);
}

static Error *restore_counted(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    int64_t fresh = 0;
    Error *err = state_get_range(s, 0, INT64_MAX, &((CountedIterator *)it)->at);
    if (!err) err = state_get_range(s, 0, 1, &fresh);
    ((CountedIterator *)it)->fresh = fresh;
    return err ? err : iterator_restore_input(it, c, s);
}

/* ---- Take, skip, shard ---- */

static Error *next_taken(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    CountedIterator *t = (CountedIterator *)it;
    int64_t limit = count_of(it);
    *end = !it->input || (limit >= 0 && t->at >= limit);
    Error *err = *end ? NULL : iterator_next(it->input, c, out, end);
    if (err) return err;
    t->at++;
    if (*end) end_input(it);
    return NULL;
}

static int64_t count_taken(const Dataset *d) {
    int64_t n = dataset_cardinality(d->inputs[0]), limit = ((const CountedDataset *)d)->count;
    if (n == CARDINALITY_UNKNOWN || limit < 0) return n;
    return n == CARDINALITY_INFINITE || limit < n ? limit : n;
}

static Error *next_after_skip(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    CountedIterator *t = (CountedIterator *)it;
    *end = !it->input || count_of(it) < 0;
    while (!*end && t->at < count_of(it)) {
        Error *err = iterator_next(it->input, c, out, end);
        if (err) return err;
        if (*end) break;
        tuple_clear(out, it->dataset->component_count);
        t->at++;
    }
    Error *err = *end ? NULL : iterator_next(it->input, c, out, end);
    if (!err && *end) end_input(it);
    return err;
}

static int64_t count_after_skip(const Dataset *d) {
    int64_t n = dataset_cardinality(d->inputs[0]), skip = ((const CountedDataset *)d)->count;
    if (skip < 0) return 0;
    return n < 0 ? n : skip >= n ? 0 : n - skip;
}

/* After the first element of this shard: every other shard must have one too. */
static Error *see_other_shards(DatasetIterator *it, IteratorContext *c) {
    CountedIterator *t = (CountedIterator *)it;
    const CountedDataset *d = (const CountedDataset *)it->dataset;
    Tensor **other = tuple_new(it->dataset->component_count);
    Error *err = NULL;
    for (bool end = false; !err && t->at < d->count; t->at++) {
        err = iterator_next(it->input, c, other, &end);
        tuple_clear(other, it->dataset->component_count);
        if (!err && end)
            err = error_invalid(
                "Could not apply FILE based sharding: the dataset only has %lld file(s), which is not enough for the required %lld shards/workers. If you are using datasets "
                "with distribution strategy, consider setting the auto sharding policy to either DATA or OFF using the `experimental_distribute.auto_shard_policy` option of "
                "`tf.data.Options()`. Or, split your input files into a larger number of small files such that number of files is greater than number of shards/workers.",
                (long long)d->index + 1, (long long)d->count);
    }
    tuple_free(other, it->dataset->component_count);
    return err;
}

static Error *next_of_shard(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    CountedIterator *t = (CountedIterator *)it;
    const CountedDataset *d = (const CountedDataset *)it->dataset;
    *end = !it->input;
    while (!*end) {
        Error *err = iterator_next(it->input, c, out, end);
        if (err) return err;
        if (*end) break;
        if (t->at++ % d->count == d->index) return d->non_empty && t->at < d->count ? see_other_shards(it, c) : NULL;
        tuple_clear(out, it->dataset->component_count);
    }
    end_input(it);
    return NULL;
}

static int64_t count_shard(const Dataset *d) {
    const CountedDataset *s = (const CountedDataset *)d;
    int64_t n = dataset_cardinality(d->inputs[0]);
    return n < 0 ? n : n / s->count + (s->index < n % s->count);
}

/* ---- Repeat ---- */

static Error *next_repeated(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    CountedIterator *r = (CountedIterator *)it;
    int64_t rounds = count_of(it);
    for (;;) {
        *end = rounds >= 0 && r->at >= rounds;
        if (*end) return NULL;
        if (!it->input) {
            Error *err = iterator_start_input(it, c);
            if (err) return err;
            r->fresh = true;
        }
        Error *err = iterator_next(it->input, c, out, end);
        if (err) return err;
        bool empty = *end && r->fresh;
        r->fresh = false;
        if (!*end) return NULL;
        end_input(it);
        r->at++;
        /* A round without elements would be followed by endless others. */
        if (rounds < 0 && empty) return NULL;
    }
}

static int64_t count_repeated(const Dataset *d) {
    int64_t n = dataset_cardinality(d->inputs[0]), rounds = ((const CountedDataset *)d)->count, all;
    if (rounds == 0 || n == 0) return 0;
    if (rounds < 0) return n == CARDINALITY_UNKNOWN ? n : CARDINALITY_INFINITE;
    if (n < 0) return n;
    return __builtin_mul_overflow(n, rounds, &all) ? CARDINALITY_INFINITE : all;
}

#define COUNTED(kind_name, start_fn, next_fn, count_fn)                                                               \
    {                                                                                                                 \
        .name = kind_name, .size = sizeof(CountedDataset), .iterator_size = sizeof(CountedIterator),                  \
        .start = start_fn, .next = next_fn, .cardinality = count_fn, .save = save_counted, .restore = restore_counted \
    }
static const DatasetKind take_kind = COUNTED("Take", iterator_start_input, next_taken, count_taken);
static const DatasetKind skip_kind = COUNTED("Skip", iterator_start_input, next_after_skip, count_after_skip);
static const DatasetKind shard_kind = COUNTED("Shard", iterator_start_input, next_of_shard, count_shard);
static const DatasetKind repeat_kind = COUNTED("Repeat", NULL, next_repeated, count_repeated);

static Error *run_counted(KernelContext *k, const DatasetKind *kind) {
    Dataset *in = NULL;
    int64_t count = 0;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "count", &count);
    if (err) return err;
    Dataset *d = dataset_like(kind, in);
    ((CountedDataset *)d)->count = count;
    kernel_set_dataset(k, 0, d);
    return NULL;
}

static Error *run_take(KernelContext *k) {
    return run_counted(k, &take_kind);
}

static Error *run_skip(KernelContext *k) {
    return run_counted(k, &skip_kind);
}

static Error *run_repeat(KernelContext *k) {
    return run_counted(k, &repeat_kind);
}

Dataset *every_nth_dataset_new(Dataset *input, int64_t shards, int64_t index, bool non_empty) {
    CountedDataset *d = (CountedDataset *)dataset_like(&shard_kind, input);
    d->count = shards;
    d->index = index;
    d->non_empty = non_empty;
    return &d->base;
}

static Error *run_shard(KernelContext *k) {
    Dataset *in = NULL;
    int64_t shards = 0, index = 0;
    bool non_empty = false;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "num_shards", &shards);
    if (!err) err = kernel_int64(k, 2, "index", &index);
    if (!err) err = node_attr_bool(k->node, "require_non_empty", &non_empty);
    if (!err && shards <= 0)
        err = error_invalid("Number of shards must be greater than zero (currently num_shards = %lld).",
                            (long long)shards);
    if (!err && (index < 0 || index >= shards))
        err = error_invalid("Index must be between 0 and %lld (currently index = %lld).", (long long)shards - 1,
                            (long long)index);
    if (err) return err;
    kernel_set_dataset(k, 0, every_nth_dataset_new(in, shards, index, non_empty));
    return NULL;
}

/* ---- Zip ---- */

typedef struct ManyIterator {
    DatasetIterator base;
    DatasetIterator **inputs; /* NULL once ended */
    int64_t at;
} ManyIterator;

static Error *start_many(DatasetIterator *it, IteratorContext *c) {
    ManyIterator *m = (ManyIterator *)it;
    m->inputs = xcalloc((size_t)it->dataset->input_count + 1, sizeof *m->inputs);
    Error *err = NULL;
    for (int i = 0; !err && i < it->dataset->input_count; i++)
        err = dataset_iterate(it->dataset->inputs[i], c, &m->inputs[i]);
    return err;
}

static void stop_many(DatasetIterator *it) {
    ManyIterator *m = (ManyIterator *)it;
    for (int i = 0; m->inputs && i < it->dataset->input_count; i++) {
        iterator_free(m->inputs[i]);
        m->inputs[i] = NULL;
    }
    free(m->inputs);
    m->inputs = NULL;
}

static Error *next_zipped(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    ManyIterator *m = (ManyIterator *)it;
    *end = !m->inputs;
    Error *err = NULL;
    /* After an error the others move on too, so that they stay together. */
    for (int i = 0; !*end && i < it->dataset->input_count; i++) {
        Error *failed = iterator_next(m->inputs[i], c, out, end);
        if (err) {
            error_free(failed);
            *end = false;
        } else {
            err = failed;
        }
        out += it->dataset->inputs[i]->component_count;
    }
    if (!err && *end) stop_many(it);
    return err;
}

static Error *save_many(DatasetIterator *it, IteratorState *s) {
    ManyIterator *m = (ManyIterator *)it;
    Error *err = NULL;
    state_put_int(s, m->inputs != NULL);
    for (int i = 0; m->inputs && !err && i < it->dataset->input_count; i++) err = iterator_save(m->inputs[i], s);
    return err;
}

static Error *restore_many(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    ManyIterator *m = (ManyIterator *)it;
    int64_t present = 0;
    Error *err = state_get_range(s, 0, 1, &present);
    if (!err && !present) stop_many(it);
    for (int i = 0; !err && present && i < it->dataset->input_count; i++) err = iterator_restore(m->inputs[i], c, s);
    return err;
}

static int64_t count_zipped(const Dataset *d) {
    int64_t least = CARDINALITY_INFINITE;
    for (int i = 0; i < d->input_count; i++) {
        int64_t n = dataset_cardinality(d->inputs[i]);
        if (n == CARDINALITY_UNKNOWN) return n;
        if (n >= 0 && (least < 0 || n < least)) least = n;
    }
    return least;
}

static const DatasetKind zip_kind = {.name = "Zip",
                                     .iterator_size = sizeof(ManyIterator),
                                     .cardinality = count_zipped,
                                     .start = start_many,
                                     .next = next_zipped,
                                     .save = save_many,
                                     .restore = restore_many,
                                     .stop = stop_many};

static Error *run_zip(KernelContext *k) {
    Dataset **inputs = xcalloc((size_t)k->input_count + 1, sizeof *inputs);
    DataType *types = NULL;
    int count = 0, at = 0;
    Error *err = NULL;
    for (int i = 0; !err && i < k->input_count; i++) {
        err = kernel_dataset(k, i, &inputs[i]);
        if (!err) count += inputs[i]->component_count;
    }
    if (!err) {
        types = xcalloc((size_t)count + 1, sizeof *types);
        for (int i = 0; i < k->input_count; i++)
            for (int j = 0; j < inputs[i]->component_count; j++) types[at++] = inputs[i]->types[j];
        kernel_set_dataset(k, 0, dataset_new(&zip_kind, types, count, inputs, k->input_count));
    }
    free(types);
    free(inputs);
    return err;
}

/* ---- Concatenate ---- */

typedef struct ConcatenateIterator {
    DatasetIterator base;
    int64_t at; /* of the inputs */
} ConcatenateIterator;

static Error *next_concatenated(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    ConcatenateIterator *m = (ConcatenateIterator *)it;
    for (; m->at < it->dataset->input_count; m->at++) {
        Error *err = it->input ? NULL : dataset_iterate(it->dataset->inputs[m->at], c, &it->input);
        if (!err) err = iterator_next(it->input, c, out, end);
        if (err || !*end) return err;
        end_input(it);
    }
    *end = true;
    return NULL;
}

static Error *save_concatenated(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, ((ConcatenateIterator *)it)->at);
    state_put_int(s, it->input != NULL);
    return it->input ? iterator_save(it->input, s) : NULL;
}

static Error *restore_concatenated(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    ConcatenateIterator *m = (ConcatenateIterator *)it;
    int64_t present = 0;
    Error *err = state_get_range(s, 0, it->dataset->input_count, &m->at);
    if (!err) err = state_get_range(s, 0, m->at < it->dataset->input_count, &present);
    if (err || !present) return err;
    err = dataset_iterate(it->dataset->inputs[m->at], c, &it->input);
    return err ? err : iterator_restore(it->input, c, s);
}

static int64_t count_concatenated(const Dataset *d) {
    int64_t a = dataset_cardinality(d->inputs[0]), b = dataset_cardinality(d->inputs[1]);
    if (a == CARDINALITY_INFINITE || b == CARDINALITY_INFINITE) return CARDINALITY_INFINITE;
    return a < 0 || b < 0 ? CARDINALITY_UNKNOWN : a + b;
}

static const DatasetKind concatenate_kind = {.name = "Concatenate",
                                             .iterator_size = sizeof(ConcatenateIterator),
                                             .cardinality = count_concatenated,
                                             .next = next_concatenated,
                                             .save = save_concatenated,
                                             .restore = restore_concatenated};

static Error *run_concatenate(KernelContext *k) {
    Dataset *inputs[2] = {NULL};
    Error *err = kernel_dataset(k, 0, &inputs[0]);
    if (!err) err = kernel_dataset(k, 1, &inputs[1]);
    if (err) return err;
    bool same = inputs[0]->component_count == inputs[1]->component_count;
    for (int i = 0; same && i < inputs[0]->component_count; i++) same = inputs[0]->types[i] == inputs[1]->types[i];
    if (!same) return error_invalid("input dataset and dataset to concatenate have different output_types");
    kernel_set_dataset(k, 0, dataset_new(&concatenate_kind, inputs[0]->types, inputs[0]->component_count, inputs, 2));
    return NULL;
}

const KernelDef dataset_sequence_cpu[] = {
    {"TakeDataset", .run = run_take},
    {"SkipDataset", .run = run_skip},
    {"ShardDataset", .run = run_shard},
    {"RepeatDataset", .run = run_repeat},
    {"ZipDataset", .run = run_zip},
    {"ConcatenateDataset", .run = run_concatenate},
    {0},
};
