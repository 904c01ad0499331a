/* fill_empty_rows.c: SparseFillEmptyRows and RaggedFillEmptyRows: rows without a value get a default one; and their gradients. */
#include "kernels/accumulate.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/sparse_tensor.h"

const OpDef fill_empty_rows_ops[] = {
    {"SparseFillEmptyRows",
     "indices: int64, values: T, dense_shape: int64, default_value: T -> output_indices: int64, output_values: T, "
     "empty_row_indicator: bool, reverse_index_map: int64",
     "T: type", 0},
    {"SparseFillEmptyRowsGrad", "reverse_index_map: int64, grad_values: T -> d_values: T, d_default_value: T",
     "T: type", 0},
    {"RaggedFillEmptyRows",
     "value_rowids: int64, values: T, nrows: int64, default_value: T -> output_value_rowids: int64, output_values: T, "
     "empty_row_indicator: bool, reverse_index_map: int64",
     "T: type", 0},
    {"RaggedFillEmptyRowsGrad", "reverse_index_map: int64, grad_values: T -> d_values: T, d_default_value: T", "T: type", 0},
    {0},
};

/* Values and where each stands, `rank` numbers for each, the row first. */
typedef struct PlacedValues {
    const int64_t *indices;
    const Tensor *values;
    int64_t count, rows;
    int rank;
    bool ragged; /* places are a vector of rows */
} PlacedValues;

static Error *check_rows(const PlacedValues *p, const Tensor *fallback) {
    if (fallback->shape.rank != 0)
        return error_invalid("default_value must be a scalar, saw: %s", shape_text(&fallback->shape).text);
    if (p->rows == 0 && p->count > 0)
        return error_invalid("Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = %lld", (long long)p->count);
    for (int64_t i = 0; i < p->count; i++) {
        int64_t row = p->indices[i * p->rank];
        if (row < 0 && !p->ragged) return error_invalid("indices(%lld, 0) is invalid: %lld < 0", (long long)i, (long long)row);
        if (row < 0 || row >= p->rows)
            return error_invalid("indices(%lld, 0) is invalid: %lld >= %lld", (long long)i, (long long)row, (long long)p->rows);
    }
    return NULL;
}

/* Where the first value of each row goes, in `to`; how many rows are empty. */
static int64_t plan_rows(const PlacedValues *p, bool *empty, int64_t *to) {
    int64_t added = 0;
    for (int64_t r = 0; r < p->rows; r++) to[r] = 0;
    for (int64_t i = 0; i < p->count; i++) to[p->indices[i * p->rank]]++;
    for (int64_t r = 0, sum = 0; r < p->rows; r++) {
        int64_t n = to[r];
        empty[r] = n == 0;
        added += n == 0;
        to[r] = sum;
        sum += n ? n : 1;
    }
    return added;
}

static void fill_rows(const PlacedValues *p, const bool *empty, int64_t *to, const Tensor *fallback, int64_t *places, Tensor *values, int64_t *map) {
    const int rank = p->rank;
    for (int64_t r = 0; r < p->rows; r++) {
        if (!empty[r]) continue;
        memset(places + to[r] * rank, 0, (size_t)rank * sizeof *places);
        places[to[r] * rank] = r;
        elements_copy(values->dtype, element_to(values, to[r]), fallback->data, 1);
    }
    for (int64_t i = 0; i < p->count; i++) {
        int64_t at = to[p->indices[i * rank]]++;
        memcpy(places + at * rank, p->indices + i * rank, (size_t)rank * sizeof *places);
        elements_copy(values->dtype, element_to(values, at), element_at(p->values, i), 1);
        map[i] = at;
    }
}

/* Outputs: places, values, which rows were empty, where each value went. */
static Error *fill(KernelContext *k, const PlacedValues *p) {
    Shape rows = shape_vector(p->rows), map_shape = shape_vector(p->count);
    Tensor *empty = kernel_output(k, 2, &rows), *map = empty ? kernel_output(k, 3, &map_shape) : NULL;
    Tensor *next = map ? kernel_scratch(k, DT_INT64, &rows) : NULL;
    if (!next) return NULL;
    int64_t total = p->count + plan_rows(p, tensor_bool(empty), tensor_i64(next));
    Shape vector = shape_vector(total), matrix = shape_matrix(total, p->rank);
    Tensor *places = kernel_output(k, 0, p->ragged && p->rows > 0 ? &vector : &matrix), *values = places ? kernel_output(k, 1, &vector) : NULL;
    if (values) fill_rows(p, tensor_bool(empty), tensor_i64(next), k->in[3], tensor_i64(places), values, tensor_i64(map));
    tensor_unref(next);
    return NULL;
}

static Error *run_sparse(KernelContext *k) {
    SparseView v;
    if (k->in[2]->shape.rank != 1) return error_invalid("dense_shape must be a vector, saw: %s", shape_text(&k->in[2]->shape).text);
    if (k->in[0]->shape.rank != 2) return error_invalid("indices must be a matrix, saw: %s", shape_text(&k->in[0]->shape).text);
    if (k->in[1]->shape.rank != 1) return error_invalid("values must be a vector, saw: %s", shape_text(&k->in[1]->shape).text);
    if (sparse_ranks_differ(k->in[0], k->in[2]))
        return error_invalid("The length of `dense_shape` (%lld) must match the second dimension of `indices` (%lld).", (long long)k->in[2]->count, (long long)k->in[0]->shape.dims[1]);
    if (sparse_counts_differ(k->in[0], k->in[1]))
        return error_invalid("The length of `values` (%lld) must match the first dimension of `indices` (%lld).", (long long)k->in[1]->count, (long long)k->in[0]->shape.dims[0]);
    Error *err = sparse_view("Input", k->in[0], k->in[1], k->in[2], &v);
    if (err) return err;
    if (v.shape.rank == 0) return error_invalid("Dense shape cannot be empty.");
    PlacedValues p = {.indices = v.indices, .values = v.values, .count = v.nnz, .rows = v.shape.dims[0], .rank = v.shape.rank};
    err = check_rows(&p, k->in[3]);
    return err ? err : fill(k, &p);
}

static Error *run_ragged(KernelContext *k) {
    const Tensor *rows = k->in[0], *values = k->in[1], *count = k->in[2];
    if (rows->shape.rank != 1) return error_invalid("value_rowids must be a vector, saw: %s", shape_text(&rows->shape).text);
    if (values->shape.rank != 1) return error_invalid("values must be a vector, saw: %s", shape_text(&values->shape).text);
    if (rows->count != values->count)
        return error_invalid("The length of `values` (%lld) must match the first dimension of `value_rowids` (%lld).", (long long)values->count,
                             (long long)rows->count);
    if (count->shape.rank != 0) return error_invalid("nrows must be a scalar, saw: %s", shape_text(&count->shape).text);
    PlacedValues p = {.indices = tensor_i64(rows), .values = values, .count = rows->count, .rows = tensor_i64(count)[0], .rank = 1, .ragged = true};
    if (p.rows < 0) return error_invalid("Expected shape dimensions to be non-negative, got %lld", (long long)p.rows);
    Error *err = check_rows(&p, k->in[3]);
    return err ? err : fill(k, &p);
}

static Error *run_grad(KernelContext *k) {
    const Tensor *map = k->in[0], *grad = k->in[1];
    const RowMath *math = row_math(grad->dtype);
    if (map->shape.rank != 1)
        return error_invalid("reverse_index_map must be a vector, saw: %s", shape_text(&map->shape).text);
    if (grad->shape.rank != 1)
        return error_invalid("grad_values must be a vector, saw: %s", shape_text(&grad->shape).text);
    if (!math) return kernel_lacks_type(k->node, grad->dtype);
    Shape scalar = SHAPE_SCALAR;
    Tensor *values = kernel_output(k, 0, &map->shape), *fallback = values ? kernel_output(k, 1, &scalar) : NULL;
    Tensor *used = fallback ? kernel_scratch(k, DT_BOOL, &grad->shape) : NULL;
    if (!used) return NULL;
    Error *err = NULL;
    size_t size = dtype_size(grad->dtype);
    memset(used->data, 0, tensor_bytes(used));
    memset(fallback->data, 0, tensor_bytes(fallback));
    for (int64_t i = 0; i < map->count && !err; i++) {
        int64_t at = tensor_i64(map)[i];
        if (at < 0 || at >= grad->count) {
            err = error_invalid("Elements in reverse index must be in [0, %lld) but got %lld", (long long)grad->count,
                                (long long)at);
        } else {
            memcpy(element_to(values, i), element_at(grad, at), size);
            tensor_bool(used)[at] = true;
        }
    }
    for (int64_t i = 0; i < grad->count && !err; i++)
        if (!tensor_bool(used)[i]) math->add(fallback->data, element_at(grad, i), 1);
    tensor_unref(used);
    return err;
}

const KernelDef fill_empty_rows_cpu[] = {
    {"SparseFillEmptyRows", .run = run_sparse},
    {"SparseFillEmptyRowsGrad", .run = run_grad},
    {"RaggedFillEmptyRows", .run = run_ragged},
    {"RaggedFillEmptyRowsGrad", .run = run_grad},
    {0},
};
