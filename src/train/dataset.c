/* dataset.c: datasets in the graph, and their iterators. */
#include <stdlib.h>

#include "base/memory.h"
#include "rill/input.h"
#include "train/graph_internal.h"

enum { MAX_COMPONENTS = 16 };

struct RillDataset {
    RillGraph *g;
    RillTensor handle;
    TF_DataType types[MAX_COMPONENTS];
    RillShape shapes[MAX_COMPONENTS];
    int count;
};

static RillDataset *dataset_new(RillGraph *g) {
    RillDataset *d = xcalloc(1, sizeof *d);
    d->g = g;
    g->lists[LIST_DATASETS].free_object = free;
    graph_list_add(g, LIST_DATASETS, (RillListItem){.object = d});
    return d;
}

RillDataset *rill_dataset_records(RillGraph *g, const char *const *files, int count, const char *compression) {
    RillDataset *d = dataset_new(g);
    d->count = 1;
    d->types[0] = TF_STRING;
    RillTensor in[] = {rill_const_strings(g, files, count), rill_const_string(g, compression ? compression : ""), rill_const_i64(g, 256 << 10)};
    d->handle = rill_op(g, "TFRecordDataset", NULL, in, 3, NULL, 0);
    return d;
}

RillDataset *rill_dataset_slices(RillGraph *g, const RillTensor *tensors, int count) {
    RillDataset *d = dataset_new(g);
    if (count < 1 || count > MAX_COMPONENTS) rill_graph_fail(g, TF_INVALID_ARGUMENT, "A dataset has from 1 to %d components, not %d", MAX_COMPONENTS, count);
    if (rill_graph_failed(g)) return d;
    d->count = count;
    for (int i = 0; i < count; i++) {
        RillShape s = rill_shape(g, tensors[i]);
        d->types[i] = rill_type(tensors[i]);
        d->shapes[i].rank = s.rank < 0 ? -1 : s.rank - 1;
        for (int j = 1; j < s.rank; j++) d->shapes[i].dims[j - 1] = s.dims[j];
        if (s.rank == 0) rill_graph_fail(g, TF_INVALID_ARGUMENT, "rill_dataset_slices: %s is a scalar", TF_OperationName(tensors[i].oper));
    }
    RillAttr attrs[] = {RILL_TYPES("Toutput_types", d->types, count), {"output_shapes", RILL_ATTR_SHAPES, {0}, d->shapes, count}};
    d->handle = rill_op(g, "TensorSliceDataset", NULL, tensors, count, attrs, 2);
    return d;
}

/* A dataset made of another, with the same elements. */
static RillDataset *made_of(const RillDataset *from, const char *op, const RillTensor *inputs, int count) {
    RillDataset *d = dataset_new(from->g);
    *d = *from;
    RillTensor in[4] = {from->handle};
    for (int i = 0; i < count; i++) in[i + 1] = inputs[i];
    RillAttr attrs[] = {RILL_TYPES("output_types", d->types, d->count), {"output_shapes", RILL_ATTR_SHAPES, {0}, d->shapes, d->count}};
    d->handle = rill_op(from->g, op, NULL, in, count + 1, attrs, 2);
    return d;
}

RillDataset *rill_dataset_shuffle(RillDataset *d, int64_t buffer) {
    int64_t seed, seed2;
    graph_seeds(d->g, &seed, &seed2);
    return made_of(d, "ShuffleDataset", (RillTensor[]){rill_const_i64(d->g, buffer), rill_const_i64(d->g, seed), rill_const_i64(d->g, seed2)}, 3);
}

static RillDataset *by_number(const RillDataset *d, const char *op, int64_t n) {
    RillTensor number = rill_const_i64(d->g, n);
    return made_of(d, op, &number, 1);
}

RillDataset *rill_dataset_repeat(RillDataset *d, int64_t times) {
    return by_number(d, "RepeatDataset", times);
}

RillDataset *rill_dataset_take(RillDataset *d, int64_t count) {
    return by_number(d, "TakeDataset", count);
}

RillDataset *rill_dataset_skip(RillDataset *d, int64_t count) {
    return by_number(d, "SkipDataset", count);
}

RillDataset *rill_dataset_prefetch(RillDataset *d, int64_t buffer) {
    return by_number(d, "PrefetchDataset", buffer);
}

RillDataset *rill_dataset_shard(RillDataset *d, int64_t shards, int64_t index) {
    return made_of(d, "ShardDataset", (RillTensor[]){rill_const_i64(d->g, shards), rill_const_i64(d->g, index)}, 2);
}

RillDataset *rill_dataset_batch(RillDataset *d, int64_t size, bool drop_smaller) {
    RillDataset batched = *d;
    for (int i = 0; i < d->count; i++) {
        if (d->shapes[i].rank < 0 || d->shapes[i].rank >= 8) continue;
        batched.shapes[i].rank = d->shapes[i].rank + 1;
        batched.shapes[i].dims[0] = drop_smaller ? size : -1;
        for (int j = 0; j < d->shapes[i].rank; j++) batched.shapes[i].dims[j + 1] = d->shapes[i].dims[j];
    }
    return made_of(&batched, "BatchDatasetV2", (RillTensor[]){rill_const_i64(d->g, size), rill_const_bool(d->g, drop_smaller)}, 2);
}

void rill_dataset_next(RillDataset *d, RillTensor *out, int count) {
    RillGraph *g = d->g;
    for (int i = 0; i < count; i++) out[i] = NO_TENSOR;
    if (!rill_graph_failed(g) && count != d->count) rill_graph_fail(g, TF_INVALID_ARGUMENT, "The dataset has %d components, not %d", d->count, count);
    if (rill_graph_failed(g)) return;
    RillAttr attrs[] = {RILL_TYPES("output_types", d->types, d->count), {"output_shapes", RILL_ATTR_SHAPES, {0}, d->shapes, d->count}, RILL_STRING("shared_name", ""), RILL_STRING("container", "")};
    RillTensor iterator = rill_op(g, "IteratorV2", NULL, NULL, 0, attrs, 4);
    TF_Operation *made = rill_operation(g, "MakeIterator", NULL, (RillTensor[]){d->handle, iterator}, 2, NULL, 0);
    if (made) graph_list_add(g, LIST_TABLES, (RillListItem){.op = made});
    TF_Operation *next = rill_operation(g, "IteratorGetNext", NULL, &iterator, 1, attrs, 2);
    for (int i = 0; next && i < count; i++) out[i] = (RillTensor){next, i};
}
