/* choose.c: DirectedInterleaveDataset, IgnoreErrorsDataset, UniqueDataset, and datasets that are their input. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/log.h"
#include "base/memory.h"
#include "ops/dataset/batch.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"
#include "proto/wire.h"

const OpDef dataset_choose_ops[] = {
    {"DirectedInterleaveDataset",
     "selector_input_dataset: variant, data_input_datasets: N * variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; N: int >= 1; stop_on_empty_dataset: bool = false",
     0},
    {"ExperimentalDirectedInterleaveDataset",
     "selector_input_dataset: variant, data_input_datasets: N * variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; N: int >= 1", 0},
    {"IgnoreErrorsDataset", "input_dataset: variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; log_warning: bool = false", 0},
    {"ExperimentalIgnoreErrorsDataset", "input_dataset: variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; log_warning: bool = false", 0},
    {"UniqueDataset", "input_dataset: variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", 0},
    {"ExperimentalUniqueDataset", "input_dataset: variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"OptionsDataset", "input_dataset: variant -> handle: variant",
     "serialized_options: string; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string ="
     " ''",
     0},
    {"ModelDataset", "input_dataset: variant -> handle: variant",
     "algorithm: int = 0; cpu_budget: int = 0; ram_budget: int = 0; output_types: list(type) >= 1; output_shapes: "
     "list(shape) >= 1",
     0},
    {"RewriteDataset", "input_dataset: variant, rewrite_name: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"OptimizeDataset", "input_dataset: variant, optimizations: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; optimization_configs: list(string) = []", 0},
    {"OptimizeDatasetV2",
     "input_dataset: variant, optimizations_enabled: string, optimizations_disabled: string, optimizations_default: "
     "string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; optimization_configs: list(string) = []", 0},
    {"FinalizeDataset", "input_dataset: variant -> handle: variant",
     "has_captured_ref: bool = false; output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"PrivateThreadPoolDataset", "input_dataset: variant, num_threads: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ExperimentalPrivateThreadPoolDataset", "input_dataset: variant, num_threads: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"MaxIntraOpParallelismDataset", "input_dataset: variant, max_intra_op_parallelism: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ExperimentalMaxIntraOpParallelismDataset",
     "input_dataset: variant, max_intra_op_parallelism: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"NonSerializableDataset", "input_dataset: variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ExperimentalNonSerializableDataset", "input_dataset: variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"BytesProducedStatsDataset", "input_dataset: variant, tag: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ExperimentalBytesProducedStatsDataset", "input_dataset: variant, tag: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"LatencyStatsDataset", "input_dataset: variant, tag: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ExperimentalLatencyStatsDataset", "input_dataset: variant, tag: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"AssertCardinalityDataset", "input_dataset: variant, cardinality: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"WrapDatasetVariant", "input_handle: variant -> output_handle: variant", "", 0},
    {"UnwrapDatasetVariant", "input_handle: variant -> output_handle: variant", "", 0},
    {0},
};

/* ---- Directed interleave: the first input says which of the others is next ---- */

typedef struct DirectedDataset {
    Dataset base;
    bool stop_on_empty;
} DirectedDataset;

typedef struct DirectedIterator {
    DatasetIterator base;   /* input: the selector */
    DatasetIterator **data; /* NULL once ended */
    int active;
} DirectedIterator;

static Error *start_directed(DatasetIterator *it, IteratorContext *c) {
    DirectedIterator *d = (DirectedIterator *)it;
    int n = it->dataset->input_count - 1;
    d->data = xcalloc((size_t)n + 1, sizeof *d->data);
    Error *err = iterator_start_input(it, c);
    for (int i = 0; !err && i < n; i++) err = dataset_iterate(it->dataset->inputs[i + 1], c, &d->data[i]);
    d->active = n;
    return err;
}

static void end_directed(DirectedIterator *d) {
    for (int i = 0; i < d->base.dataset->input_count - 1; i++) {
        iterator_free(d->data[i]);
        d->data[i] = NULL;
    }
    d->active = 0;
}

static void stop_directed(DatasetIterator *it) {
    DirectedIterator *d = (DirectedIterator *)it;
    if (d->data) end_directed(d);
    free(d->data);
}

static Error *select_input(DirectedIterator *d, IteratorContext *c, int64_t *index, bool *end) {
    Tensor *t = NULL;
    Error *err = iterator_next(d->base.input, c, &t, end);
    if (err || *end) return err;
    int n = d->base.dataset->input_count - 1;
    if (t->count != 1)
        err = error_invalid("Selector must be a scalar.");
    else
        *index = *tensor_i64(t);
    if (!err && (*index < 0 || *index >= n))
        err = error_invalid("Selector index out of range: %lld >= %d", (long long)*index, n);
    tensor_unref(t);
    return err;
}

static Error *next_directed(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    DirectedIterator *d = (DirectedIterator *)it;
    while (d->active) {
        int64_t index = 0;
        Error *err = select_input(d, c, &index, end);
        if (err) return err;
        if (*end) {
            end_directed(d);
            return NULL;
        }
        if (!d->data[index]) continue;
        bool ended = false;
        err = iterator_next(d->data[index], c, out, &ended);
        if (err || !ended) return err;
        iterator_free(d->data[index]);
        d->data[index] = NULL;
        d->active--;
        if (((DirectedDataset *)it->dataset)->stop_on_empty) end_directed(d);
    }
    *end = true;
    return NULL;
}

static Error *save_directed(DatasetIterator *it, IteratorState *s) {
    DirectedIterator *d = (DirectedIterator *)it;
    Error *err = iterator_save_input(it, s);
    for (int i = 0; !err && i < it->dataset->input_count - 1; i++) {
        state_put_int(s, d->data[i] != NULL);
        if (d->data[i]) err = iterator_save(d->data[i], s);
    }
    return err;
}

static Error *restore_directed(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    DirectedIterator *d = (DirectedIterator *)it;
    Error *err = iterator_restore_input(it, c, s);
    for (int i = 0; !err && i < it->dataset->input_count - 1; i++) {
        int64_t present = 0;
        err = state_get_range(s, 0, 1, &present);
        if (!err && present) err = iterator_restore(d->data[i], c, s);
        if (err || present) continue;
        iterator_free(d->data[i]);
        d->data[i] = NULL;
        d->active--;
    }
    return err;
}

static const DatasetKind directed_kind = {.name = "DirectedInterleave",
                                          .size = sizeof(DirectedDataset),
                                          .iterator_size = sizeof(DirectedIterator),
                                          .start = start_directed,
                                          .next = next_directed,
                                          .save = save_directed,
                                          .restore = restore_directed,
                                          .stop = stop_directed};

static Error *run_directed(KernelContext *k) {
    Dataset **inputs = xcalloc((size_t)k->input_count, sizeof *inputs);
    bool stop_on_empty = false;
    Str value;
    Error *err = NULL;
    for (int i = 0; !err && i < k->input_count; i++) err = kernel_dataset(k, i, &inputs[i]);
    if (!err && (inputs[0]->component_count != 1 || inputs[0]->types[0] != DT_INT64))
        err = error_invalid("The selector input must be a dataset of scalar int64 elements.");
    for (int i = 2; !err && i < k->input_count; i++) {
        bool same = inputs[i]->component_count == inputs[1]->component_count;
        for (int j = 0; same && j < inputs[1]->component_count; j++) same = inputs[i]->types[j] == inputs[1]->types[j];
        if (!same)
            err = error_invalid(
                "All inputs must have the same output_types. Input %d has different types than input 0.", i - 1);
    }
    if (!err && node_attr(k->node, "stop_on_empty_dataset", &value)) attr_bool(value, &stop_on_empty);
    if (!err) {
        DirectedDataset *d = (DirectedDataset *)dataset_new(&directed_kind, inputs[1]->types,
                                                            inputs[1]->component_count, inputs, k->input_count);
        d->stop_on_empty = stop_on_empty;
        kernel_set_dataset(k, 0, &d->base);
    }
    free(inputs);
    return err;
}

/* ---- Ignore errors ---- */

static IteratorContext dropping(const IteratorContext *c) {
    IteratorContext inner = *c;
    inner.drops_errors = true;
    return inner;
}

static Error *start_without_errors(DatasetIterator *it, IteratorContext *c) {
    IteratorContext inner = dropping(c);
    return iterator_start_input(it, &inner);
}

static Error *next_without_errors(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    IteratorContext inner = dropping(c);
    for (;;) {
        Error *err = iterator_next(it->input, &inner, out, end);
        if (!err || cancel_is_set(c->cancel)) return err;
        error_free(err);
    }
}

static const DatasetKind ignore_kind = {
    .name = "IgnoreErrors", .start = start_without_errors, .next = next_without_errors};

static Error *run_ignore_errors(KernelContext *k) {
    Dataset *in = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) kernel_set_dataset(k, 0, dataset_like(&ignore_kind, in));
    return err;
}

/* ---- Unique: elements not seen before ---- */

typedef struct UniqueIterator {
    DatasetIterator base;
    StrMap seen; /* the bytes of an element -> themselves, owned */
} UniqueIterator;

/* Its bytes, malloced. */
static Str element_bytes(const Tensor *t) {
    StrBuf b = {0};
    for (int64_t i = 0; t->dtype == DT_STRING && i < t->count; i++) {
        Str s = tstring_str(&tensor_str(t)[i]);
        strbuf_addf(&b, "%zu:", s.len);
        strbuf_add(&b, s);
    }
    if (t->dtype != DT_STRING) strbuf_add(&b, (Str){t->data, tensor_bytes(t)});
    size_t len = b.len;
    return (Str){strbuf_detach(&b), len};
}

static bool remember(UniqueIterator *u, Str take) {
    if (strmap_get(&u->seen, take)) {
        free((char *)take.ptr);
        return false;
    }
    strmap_put(&u->seen, take, (char *)take.ptr);
    return true;
}

static Error *next_unique(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    for (;;) {
        Error *err = iterator_next(it->input, c, out, end);
        if (err || *end) return err;
        if (remember((UniqueIterator *)it, element_bytes(out[0]))) return NULL;
        tuple_clear(out, 1);
    }
}

static void stop_unique(DatasetIterator *it) {
    UniqueIterator *u = (UniqueIterator *)it;
    size_t at = 0;
    void *value;
    while (strmap_next(&u->seen, &at, NULL, &value)) free(value);
    strmap_clear(&u->seen);
}

static Error *save_unique(DatasetIterator *it, IteratorState *s) {
    UniqueIterator *u = (UniqueIterator *)it;
    size_t at = 0;
    Str key;
    state_put_int(s, (int64_t)u->seen.count);
    while (strmap_next(&u->seen, &at, &key, NULL)) state_put_text(s, key);
    return iterator_save_input(it, s);
}

static Error *restore_unique(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    int64_t count = 0;
    Error *err = state_get_range(s, 0, INT64_MAX, &count);
    for (int64_t i = 0; !err && i < count; i++) {
        Str text;
        err = state_get_text(s, &text);
        if (!err) remember((UniqueIterator *)it, (Str){str_dup(text), text.len});
    }
    return err ? err : iterator_restore_input(it, c, s);
}

static const DatasetKind unique_kind = {.name = "Unique",
                                        .iterator_size = sizeof(UniqueIterator),
                                        .start = iterator_start_input,
                                        .next = next_unique,
                                        .save = save_unique,
                                        .restore = restore_unique,
                                        .stop = stop_unique};

static Error *run_unique(KernelContext *k) {
    Dataset *in = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err && (in->component_count != 1 ||
                 (in->types[0] != DT_INT32 && in->types[0] != DT_INT64 && in->types[0] != DT_STRING)))
        err = error_invalid(
            "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` component.");
    if (!err) kernel_set_dataset(k, 0, dataset_like(&unique_kind, in));
    return err;
}

/* ---- What only tunes or observes ---- */

static Error *run_same(KernelContext *k) {
    Dataset *in = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) kernel_set_output(k, 0, tensor_ref(k->in[0]));
    return err;
}

/* Whether serialised options leave TensorFlow's optimiser what it does by default. Options: optimization_options=3. OptimizationOptions:
   apply_default_optimizations=1 map_and_batch_fusion=9. */
static bool joins_batches(Str options) {
    WireReader all = wire_reader(options);
    while (wire_next(&all)) {
        if (all.field != 3 || all.type != WIRE_BYTES) continue;
        WireReader r = wire_reader(all.bytes);
        while (wire_next(&r))
            if ((r.field == 1 || r.field == 9) && r.type == WIRE_VARINT && r.number == 0) return false;
    }
    return true;
}

static const DatasetKind options_kind = {.name = "Options", .is_wrapper = true};

static Error *run_options(KernelContext *k) {
    Dataset *in = NULL, *apart = NULL;
    Str options = STR("");
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = node_attr_string(k->node, "serialized_options", &options);
    if (err) return err;
    if (!joins_batches(options)) apart = batch_dataset_apart(in);
    kernel_set_dataset(k, 0, dataset_like(&options_kind, apart ? apart : in));
    if (apart) dataset_unref(apart);
    return NULL;
}

/* ---- Assert cardinality ---- */

typedef struct AssertDataset {
    Dataset base;
    int64_t count;
} AssertDataset;

typedef struct AssertIterator {
    DatasetIterator base;
    int64_t at;
} AssertIterator;

/* "1 element", "an infinite number of elements". */
static void describe_count(int64_t count, char *out, size_t size) {
    if (count == CARDINALITY_INFINITE)
        snprintf(out, size, "an infinite number of elements");
    else
        snprintf(out, size, "%lld element%s", (long long)count, count == 1 ? "" : "s");
}

static Error *wrong_count(int64_t want, const char *how, int64_t got) {
    char wanted[48], seen[48];
    describe_count(want, wanted, sizeof wanted);
    describe_count(got, seen, sizeof seen);
    return error_new(CODE_FAILED_PRECONDITION, "Input dataset was expected to contain %s but contained %s %s.", wanted, how, seen);
}

static Error *next_counted(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    AssertIterator *a = (AssertIterator *)it;
    int64_t want = ((AssertDataset *)it->dataset)->count;
    Error *err = iterator_next(it->input, c, out, end);
    if (err) return err;
    a->at += !*end;
    if (*end && want != a->at) return wrong_count(want, "only", a->at);
    if (!*end && want != CARDINALITY_INFINITE && a->at > want) return wrong_count(want, "at least", a->at);
    return NULL;
}

static Error *save_assert(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, ((AssertIterator *)it)->at);
    return iterator_save_input(it, s);
}

static Error *restore_assert(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    Error *err = state_get_range(s, 0, INT64_MAX, &((AssertIterator *)it)->at);
    return err ? err : iterator_restore_input(it, c, s);
}

static int64_t count_asserted(const Dataset *d) {
    return ((const AssertDataset *)d)->count;
}

static const DatasetKind assert_kind = {.name = "AssertCardinality",
                                        .size = sizeof(AssertDataset),
                                        .iterator_size = sizeof(AssertIterator),
                                        .cardinality = count_asserted,
                                        .start = iterator_start_input,
                                        .next = next_counted,
                                        .save = save_assert,
                                        .restore = restore_assert};

static Error *run_assert_cardinality(KernelContext *k) {
    Dataset *in = NULL;
    int64_t count = 0;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "cardinality", &count);
    if (err) return err;
    AssertDataset *d = (AssertDataset *)dataset_like(&assert_kind, in);
    d->count = count;
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

const KernelDef dataset_choose_cpu[] = {
    {"DirectedInterleaveDataset", .run = run_directed},
    {"ExperimentalDirectedInterleaveDataset", .run = run_directed},
    {"IgnoreErrorsDataset", .run = run_ignore_errors},
    {"ExperimentalIgnoreErrorsDataset", .run = run_ignore_errors},
    {"UniqueDataset", .run = run_unique},
    {"ExperimentalUniqueDataset", .run = run_unique},
    {"AssertCardinalityDataset", .run = run_assert_cardinality},
    {"OptionsDataset", .run = run_options},
    {"ModelDataset", .run = run_same},
    {"RewriteDataset", .run = run_same},
    {"OptimizeDataset", .run = run_same},
    {"OptimizeDatasetV2", .run = run_same},
    {"FinalizeDataset", .run = run_same},
    {"PrivateThreadPoolDataset", .run = run_same},
    {"ExperimentalPrivateThreadPoolDataset", .run = run_same},
    {"MaxIntraOpParallelismDataset", .run = run_same},
    {"ExperimentalMaxIntraOpParallelismDataset", .run = run_same},
    {"NonSerializableDataset", .run = run_same},
    {"ExperimentalNonSerializableDataset", .run = run_same},
    {"BytesProducedStatsDataset", .run = run_same},
    {"ExperimentalBytesProducedStatsDataset", .run = run_same},
    {"LatencyStatsDataset", .run = run_same},
    {"ExperimentalLatencyStatsDataset", .run = run_same},
    {"WrapDatasetVariant", .run = run_same},
    {"UnwrapDatasetVariant", .run = run_same},
    {0},
};
