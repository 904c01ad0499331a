/* map.c: datasets that pass each element through a function: map, filter, take_while, scan. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/iterator_path.h"
#include "ops/dataset/map_result.h"
#include "ops/op_list.h"

const OpDef dataset_map_ops[] = {
    {"MapDataset", "input_dataset: variant, other_arguments: Targuments -> handle: variant",
     "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "use_inter_op_parallelism: bool = true; preserve_cardinality: bool = false; force_synchronous: bool = false; "
     "metadata: string = ''",
     0},
    {"ExperimentalMapDataset", "input_dataset: variant, other_arguments: Targuments -> handle: variant",
     "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "use_inter_op_parallelism: bool = true; preserve_cardinality: bool = false; force_synchronous: bool = false",
     0},
    {"FilterDataset", "input_dataset: variant, other_arguments: Targuments -> handle: variant",
     "predicate: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "metadata: string = ''",
     0},
    {"ParallelFilterDataset",
     "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int64 -> handle: variant",
     "predicate: func; deterministic: string = 'default'; Targuments: list(type) >= 0; output_types: list(type) >= "
     "1; output_shapes: list(shape) >= 1; metadata: string = ''",
     0},
    {"TakeWhileDataset", "input_dataset: variant, other_arguments: Targuments -> handle: variant",
     "predicate: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "metadata: string = ''",
     0},
    {"ExperimentalTakeWhileDataset", "input_dataset: variant, other_arguments: Targuments -> handle: variant",
     "predicate: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ScanDataset", "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments -> handle: variant",
     "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: "
     "list(shape) >= 1; preserve_cardinality: bool = false; use_default_device: bool = true; metadata: string = ''",
     0},
    {"ExperimentalScanDataset",
     "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments -> handle: variant",
     "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: "
     "list(shape) >= 1; preserve_cardinality: bool = false",
     0},
    {0},
};

static int64_t count_input(const Dataset *d) {
    return dataset_cardinality(d->inputs[0]);
}

/* ---- Map ---- */

typedef struct MapDataset {
    Dataset base;
    bool keep_count; /* the function may not end the sequence */
} MapDataset;

Error *map_result(Error *err, bool keep_count, bool *end) {
    if (!err || err->code != CODE_OUT_OF_RANGE) return err;
    if (keep_count) {
        Error *told = error_invalid("Function invocation produced OutOfRangeError: %s", err->message);
        error_free(err);
        return told;
    }
    error_free(err);
    *end = true;
    return NULL;
}

Error *mapped_result(const DatasetIterator *it, Error *err, bool keep_count, bool *end) {
    if (err && err->code != CODE_OUT_OF_RANGE) return iterator_function_error(it, err);
    return map_result(err, keep_count, end);
}

static int64_t count_mapped(const Dataset *d) {
    return ((const MapDataset *)d)->keep_count ? count_input(d) : CARDINALITY_UNKNOWN;
}

static Error *next_mapped(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    Dataset *d = it->dataset, *in = d->inputs[0];
    Tensor **element = tuple_new(in->component_count);
    Error *err = iterator_next(it->input, c, element, end);
    if (!err && !*end)
        err = mapped_result(
            it, dataset_call(d->closure, c, element, in->component_count, d->types, d->component_count, out),
            ((MapDataset *)d)->keep_count, end);
    tuple_free(element, in->component_count);
    return err;
}

static const DatasetKind map_kind = {.name = "Map",
                                     .size = sizeof(MapDataset),
                                     .cardinality = count_mapped,
                                     .start = iterator_start_input,
                                     .next = next_mapped,
                                     .is_map = true};

static Error *run_map(KernelContext *k) {
    Dataset *in = NULL, *d = NULL;
    bool keep_count = false;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = node_attr_bool(k->node, "preserve_cardinality", &keep_count);
    if (!err) err = dataset_from_attr(k, &map_kind, "output_types", &in, 1, &d);
    if (err) return err;
    ((MapDataset *)d)->keep_count = keep_count;
    err = kernel_closure(k, "f", "Targuments", 1, &d->closure, NULL);
    if (err)
        dataset_unref(d);
    else
        kernel_set_dataset(k, 0, d);
    return err;
}

/* ---- Filter and take_while ---- */

static const DatasetKind filter_kind;

static Error *keeps(const DatasetIterator *it, IteratorContext *c, Tensor *const *element, bool *keep) {
    Dataset *d = it->dataset;
    Tensor *answer = NULL;
    Error *err = dataset_call(d->closure, c, element, d->component_count, NULL, 1, &answer);
    if (err) return it->kind == &filter_kind ? iterator_function_error(it, err) : err;
    if (answer->dtype != DT_BOOL || answer->count != 1)
        err = error_invalid(it->kind == &filter_kind ? "Filter predicate `f` must return a scalar bool." : "`predicate` must returns a scalar bool tensor."); /* sic */
    else
        *keep = *tensor_bool(answer);
    tensor_unref(answer);
    return err;
}

static Error *next_filtered(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    Dataset *d = it->dataset;
    for (bool keep = false; !keep;) {
        tuple_clear(out, d->component_count);
        Error *err = iterator_next(it->input, c, out, end);
        if (!err && !*end) err = keeps(it, c, out, &keep);
        if (err || *end) return err;
    }
    return NULL;
}

static Error *next_while(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    bool keep = false;
    *end = !it->input;
    if (*end) return NULL;
    Error *err = iterator_next(it->input, c, out, end);
    if (!err && !*end) err = keeps(it, c, out, &keep);
    if (err) return err;
    if (keep) return NULL;
    *end = true;
    iterator_free(it->input);
    it->input = NULL;
    return NULL;
}

static const DatasetKind filter_kind = {.name = "Filter", .start = iterator_start_input, .next = next_filtered};
static const DatasetKind while_kind = {.name = "TakeWhile", .start = iterator_start_input, .next = next_while};

static Error *run_predicate(KernelContext *k, const DatasetKind *kind) {
    Dataset *in = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (err) return err;
    Dataset *d = dataset_like(kind, in);
    err = kernel_closure(k, "predicate", "Targuments", 1, &d->closure, NULL);
    if (err)
        dataset_unref(d);
    else
        kernel_set_dataset(k, 0, d);
    return err;
}

static Error *run_filter(KernelContext *k) {
    return run_predicate(k, &filter_kind);
}

static Error *run_take_while(KernelContext *k) {
    return run_predicate(k, &while_kind);
}

/* ---- Scan: a state goes from call to call ---- */

typedef struct ScanDataset {
    Dataset base;
    Tensor **initial;
    DataType *types; /* of the state, then of the output */
    int state_count;
    bool keep_count;
} ScanDataset;

typedef struct ScanIterator {
    DatasetIterator base;
    Tensor **state;
} ScanIterator;

static void destroy_scan(Dataset *d) {
    ScanDataset *s = (ScanDataset *)d;
    tuple_free(s->initial, s->state_count);
    free(s->types);
}

static int64_t count_scan(const Dataset *d) {
    return ((const ScanDataset *)d)->keep_count ? count_input(d) : CARDINALITY_UNKNOWN;
}

static Error *start_scan(DatasetIterator *it, IteratorContext *c) {
    ScanDataset *d = (ScanDataset *)it->dataset;
    ScanIterator *s = (ScanIterator *)it;
    s->state = tuple_new(d->state_count);
    tuple_copy(s->state, d->initial, d->state_count);
    return iterator_start_input(it, c);
}

static Error *next_scanned(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    ScanDataset *d = (ScanDataset *)it->dataset;
    ScanIterator *s = (ScanIterator *)it;
    int in_count = it->dataset->inputs[0]->component_count, n = d->state_count,
        out_count = it->dataset->component_count;
    Tensor **args = tuple_new(n + in_count), **rets = tuple_new(n + out_count);
    Error *err = iterator_next(it->input, c, args + n, end);
    if (!err && !*end) {
        tuple_copy(args, s->state, n);
        err = map_result(dataset_call(it->dataset->closure, c, args, n + in_count, d->types, n + out_count, rets),
                         d->keep_count, end);
    }
    if (!err && !*end) {
        tuple_clear(s->state, n);
        tuple_move(s->state, rets, n);
        tuple_move(out, rets + n, out_count);
    }
    tuple_free(args, n + in_count);
    tuple_free(rets, n + out_count);
    return err;
}

static void stop_scan(DatasetIterator *it) {
    tuple_free(((ScanIterator *)it)->state, ((ScanDataset *)it->dataset)->state_count);
}

static Error *save_scan(DatasetIterator *it, IteratorState *s) {
    Error *err = state_put_element(s, ((ScanIterator *)it)->state, ((ScanDataset *)it->dataset)->state_count);
    return err ? err : iterator_save_input(it, s);
}

static Error *restore_scan(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    ScanDataset *d = (ScanDataset *)it->dataset;
    Tensor **state = tuple_new(d->state_count);
    Error *err = state_get_element(s, d->types, d->state_count, state);
    if (!err) {
        tuple_free(((ScanIterator *)it)->state, d->state_count);
        ((ScanIterator *)it)->state = state;
        return iterator_restore_input(it, c, s);
    }
    free(state);
    return err;
}

static const DatasetKind scan_kind = {.name = "Scan",
                                      .size = sizeof(ScanDataset),
                                      .iterator_size = sizeof(ScanIterator),
                                      .destroy = destroy_scan,
                                      .cardinality = count_scan,
                                      .start = start_scan,
                                      .next = next_scanned,
                                      .save = save_scan,
                                      .restore = restore_scan,
                                      .stop = stop_scan};

static Error *run_scan(KernelContext *k) {
    Dataset *in = NULL, *d = NULL;
    DataType *types = NULL;
    int count = 0;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = node_attr_types(k->node, "Tstate", &types, &count);
    if (!err) err = dataset_from_attr(k, &scan_kind, "output_types", &in, 1, &d);
    if (err) {
        free(types);
        return err;
    }
    ScanDataset *s = (ScanDataset *)d;
    s->state_count = count;
    s->types = xrealloc(types, (size_t)(count + d->component_count) * sizeof *types);
    for (int i = 0; i < d->component_count; i++) s->types[count + i] = d->types[i];
    s->initial = tuple_new(count);
    tuple_copy(s->initial, k->in + 1, count);
    err = node_attr_bool(k->node, "preserve_cardinality", &s->keep_count);
    if (!err) err = kernel_closure(k, "f", "Targuments", 1 + count, &d->closure, NULL);
    if (err)
        dataset_unref(d);
    else
        kernel_set_dataset(k, 0, d);
    return err;
}

const KernelDef dataset_map_cpu[] = {
    {"MapDataset", .run = run_map},
    {"ExperimentalMapDataset", .run = run_map},
    {"FilterDataset", .run = run_filter},
    {"ParallelFilterDataset", .run = run_filter},
    {"TakeWhileDataset", .run = run_take_while},
    {"ExperimentalTakeWhileDataset", .run = run_take_while},
    {"ScanDataset", .run = run_scan},
    {"ExperimentalScanDataset", .run = run_scan},
    {0},
};
