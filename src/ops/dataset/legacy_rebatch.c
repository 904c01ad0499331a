/* legacy_rebatch.c: RebatchDataset: each batch cut into as many parts as there are replicas. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/elements.h"
#include "ops/op_list.h"

#define REBATCH(name)                                                          \
    {name, "input_dataset: variant, num_replicas: int64 -> handle: variant",   \
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; use_fallback: bool = true", 0}

const OpDef dataset_legacy_rebatch_ops[] = {
    REBATCH("RebatchDataset"),
    REBATCH("ExperimentalRebatchDataset"),
    {0},
};

typedef struct PartsDataset {
    Dataset base;
    int64_t parts;
} PartsDataset;

typedef struct PartsIterator {
    DatasetIterator base;
    Tensor **batch;
    int64_t part; /* which comes next; parts: a new batch is needed */
} PartsIterator;

static Error *start_parts(DatasetIterator *it, IteratorContext *c) {
    PartsIterator *p = (PartsIterator *)it;
    p->batch = tuple_new(it->dataset->component_count);
    p->part = ((PartsDataset *)it->dataset)->parts;
    return iterator_start_input(it, c);
}

static Error *check_rows(const PartsIterator *p) {
    int n = p->base.dataset->component_count;
    for (int i = 0; i < n; i++) {
        if (p->batch[i]->shape.rank == 0)
            return error_invalid("Cannot rebatch dataset: All components must have at least one dimension. Perhaps your input dataset is not batched? Component %d is scalar.", i);
        if (p->batch[i]->shape.dims[0] != p->batch[0]->shape.dims[0])
            return error_invalid("Cannot rebatch dataset: All components must have the same size 0th dimension. Component %d has a different size 0th dimension than component 0", i);
    }
    return NULL;
}

static Error *next_part(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    PartsIterator *p = (PartsIterator *)it;
    int n = it->dataset->component_count;
    int64_t parts = ((PartsDataset *)it->dataset)->parts;
    Error *err = NULL;
    if (p->part >= parts) {
        tuple_clear(p->batch, n);
        err = iterator_next(it->input, c, p->batch, end);
        if (!err && !*end) err = check_rows(p);
        if (err) tuple_clear(p->batch, n);
        if (err || *end) return err;
        p->part = 0;
    }
    for (int i = 0; !err && i < n; i++) {
        int64_t rows = p->batch[i]->shape.dims[0], size = rows / parts + (rows % parts != 0), from = size * p->part, to = from + size;
        err = rows_of(p->batch[i], from < rows ? from : rows, to < rows ? to : rows, &out[i]);
    }
    if (!err) p->part++;
    return err;
}

static void stop_parts(DatasetIterator *it) {
    tuple_free(((PartsIterator *)it)->batch, it->dataset->component_count);
}

static Error *save_parts(DatasetIterator *it, IteratorState *s) {
    PartsIterator *p = (PartsIterator *)it;
    bool open = p->part < ((PartsDataset *)it->dataset)->parts;
    state_put_int(s, open);
    Error *err = open ? state_put_element(s, p->batch, it->dataset->component_count) : NULL;
    if (open) state_put_int(s, p->part);
    return err ? err : iterator_save_input(it, s);
}

static Error *restore_parts(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    PartsIterator *p = (PartsIterator *)it;
    int64_t open = 0;
    Error *err = state_get_range(s, 0, 1, &open);
    if (!err && open) {
        err = state_get_element(s, it->dataset->types, it->dataset->component_count, p->batch);
        if (!err) err = check_rows(p);
        if (!err) err = state_get_range(s, 0, ((PartsDataset *)it->dataset)->parts, &p->part);
    }
    return err ? err : iterator_restore_input(it, c, s);
}

static const DatasetKind parts_kind = {.name = "Rebatch",
                                       .size = sizeof(PartsDataset),
                                       .iterator_size = sizeof(PartsIterator),
                                       .start = start_parts,
                                       .next = next_part,
                                       .save = save_parts,
                                       .restore = restore_parts,
                                       .stop = stop_parts};

static Error *run_rebatch(KernelContext *k) {
    Dataset *in = NULL;
    int64_t parts = 0;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "num_replicas", &parts);
    if (!err && parts <= 0) err = error_invalid("num_replicas must be greater than zero.");
    if (err) return err;
    PartsDataset *d = (PartsDataset *)dataset_like(&parts_kind, in);
    d->parts = parts;
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

const KernelDef dataset_legacy_rebatch_cpu[] = {
    {"RebatchDataset", .run = run_rebatch},
    {"ExperimentalRebatchDataset", .run = run_rebatch},
    {0},
};
