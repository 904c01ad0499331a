/* sparse_batch.c: DenseToSparseBatchDataset: batches of tensors of different shapes, each batch a sparse tensor. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"
#include "ops/sparse_tensor.h"

const OpDef dataset_sparse_ops[] = {
    {"DenseToSparseBatchDataset", "input_dataset: variant, batch_size: int64, row_shape: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ExperimentalDenseToSparseBatchDataset", "input_dataset: variant, batch_size: int64, row_shape: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {0},
};

typedef struct SparseBatchDataset {
    Dataset base;
    int64_t size;
    PartialShape row; /* -1: as large as the largest */
} SparseBatchDataset;

static int64_t sparse_cardinality(const Dataset *base) {
    int64_t n = dataset_cardinality(base->inputs[0]), size = ((const SparseBatchDataset *)base)->size;
    return n < 0 ? n : n / size + (n % size != 0);
}

static Error *check_row(const SparseBatchDataset *d, const Shape *s) {
    ErrorCode code = CODE_OK;
    if (s->rank != d->row.rank) code = CODE_INVALID_ARGUMENT;
    for (int a = 0; a < s->rank && code == CODE_OK; a++)
        if (d->row.dims[a] >= 0 && s->dims[a] > d->row.dims[a]) code = CODE_DATA_LOSS;
    if (code == CODE_OK) return NULL;
    return error_new(code, "Input element had shape (%s) that is %s the row shape (%s).", shape_text(s).text,
                     code == CODE_DATA_LOSS ? "larger than" : "incompatible with", shape_text(&d->row).text);
}

/* The dense shape of a batch of these rows. */
static Shape batch_shape(const SparseBatchDataset *d, Tensor *const *rows, int64_t n) {
    Shape out = {.rank = d->row.rank + 1, .dims = {n}};
    for (int a = 0; a < d->row.rank; a++) {
        out.dims[a + 1] = d->row.dims[a] < 0 ? 0 : d->row.dims[a];
        for (int64_t i = 0; i < n && d->row.dims[a] < 0; i++)
            if (rows[i]->shape.dims[a] > out.dims[a + 1]) out.dims[a + 1] = rows[i]->shape.dims[a];
    }
    return out;
}

static void put_indices(const Shape *s, int64_t row, int64_t *to) {
    int64_t n = shape_count(s);
    for (int64_t i = 0; i < n; i++, to += s->rank + 1) {
        int64_t rest = i;
        to[0] = row;
        for (int a = s->rank - 1; a >= 0; rest /= s->dims[a], a--) to[a + 1] = rest % s->dims[a];
    }
}

static Error *make_sparse(const SparseBatchDataset *d, Tensor *const *rows, int64_t n, Tensor **out) {
    Shape dense = batch_shape(d, rows, n);
    Tensor *parts[3] = {NULL, NULL, NULL};
    int64_t total = 0, at = 0;
    Error *err = NULL;
    for (int64_t i = 0; i < n; i++) total += rows[i]->count;
    Shape shapes[] = {shape_matrix(total, d->row.rank + 1), shape_vector(total), shape_vector(d->row.rank + 1)};
    DataType types[] = {DT_INT64, d->base.inputs[0]->types[0], DT_INT64};
    for (int i = 0; i < 3 && !err; i++) err = tensor_new(types[i], &shapes[i], &parts[i]);
    for (int64_t i = 0; i < n && !err; i++) {
        put_indices(&rows[i]->shape, i, tensor_i64(parts[0]) + at * dense.rank);
        elements_copy(types[1], element_to(parts[1], at), rows[i]->data, rows[i]->count);
        at += rows[i]->count;
    }
    if (!err) {
        sparse_put_shape(parts[2], &dense);
        err = sparse_variant(parts[0], parts[1], parts[2], out);
    }
    for (int i = 0; i < 3; i++) tensor_unref(parts[i]);
    return err;
}

static Error *next_batch(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    const SparseBatchDataset *d = (const SparseBatchDataset *)it->dataset;
    Tensor **rows = NULL;
    size_t capacity = 0;
    int64_t n = 0;
    bool ended = false;
    Error *err = NULL;
    while (n < d->size && !err && !ended) {
        Tensor *row = NULL;
        err = iterator_next(it->input, c, &row, &ended);
        if (err || ended) break;
        rows = vec_reserve(rows, &capacity, (size_t)n + 1, sizeof *rows);
        rows[n++] = row;
        err = check_row(d, &row->shape);
    }
    *end = !err && n == 0;
    if (!err && n > 0) err = make_sparse(d, rows, n, &out[0]);
    for (int64_t i = 0; i < n; i++) tensor_unref(rows[i]);
    free(rows);
    return err;
}

static const DatasetKind sparse_batch_kind = {
    .name = "DenseToSparseBatch", .size = sizeof(SparseBatchDataset), .cardinality = sparse_cardinality,
    .start = iterator_start_input, .next = next_batch,
};

static Error *read_row(const Tensor *t, PartialShape *out) {
    if (t->shape.rank != 1) return error_invalid("row_shape must be a vector");
    if (t->count >= SHAPE_MAX_RANK) return error_invalid("row_shape has too many dimensions");
    *out = (PartialShape){.rank = (int)t->count};
    for (int a = 0; a < out->rank; a++) {
        out->dims[a] = tensor_i64(t)[a];
        if (out->dims[a] < -1) return error_invalid("Dimension %d of row_shape is %lld", a, (long long)out->dims[a]);
    }
    return NULL;
}

static Error *run_sparse_batch(KernelContext *k) {
    Dataset *in = NULL;
    int64_t size = 0;
    PartialShape row;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "batch_size", &size);
    if (!err && size <= 0) err = error_invalid("Batch size must be greater than zero.");
    if (!err) err = read_row(k->in[2], &row);
    if (!err && in->component_count != 1)
        err = error_invalid("DenseToSparseBatchDataset only supports inputs with a single component.");
    if (err) return err;
    DataType types[] = {DT_VARIANT};
    SparseBatchDataset *d = (SparseBatchDataset *)dataset_new(&sparse_batch_kind, types, 1, &in, 1);
    d->size = size;
    d->row = row;
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

const KernelDef dataset_sparse_cpu[] = {
    {"DenseToSparseBatchDataset", .run = run_sparse_batch},
    {"ExperimentalDenseToSparseBatchDataset", .run = run_sparse_batch},
    {0},
};
