/* sparse_tensor.c: how sparse tensors are checked. */
#include "ops/sparse_tensor.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

Error *sparse_shape_of(const Tensor *vector, Shape *out) {
    if (vector->shape.rank != 1)
        return error_invalid("Input shape should be a vector but received shape %s", shape_text(&vector->shape).text);
    if (vector->count > SHAPE_MAX_RANK)
        return error_invalid("A sparse tensor of rank %lld is not supported", (long long)vector->count);
    Shape s = {.rank = (int)vector->count};
    for (int d = 0; d < s.rank; d++) {
        s.dims[d] = index_at(vector, d);
        if (s.dims[d] < 0)
            return error_invalid("Expected shape dimensions to be non-negative, got %lld", (long long)s.dims[d]);
    }
    *out = s;
    return NULL;
}

Error *sparse_view(const char *what, const Tensor *indices, const Tensor *values, const Tensor *shape,
                   SparseView *out) {
    SparseView v = {.indices_tensor = indices, .values = values};
    if (indices->shape.rank != 2)
        return error_invalid("%s indices should be a matrix but received shape %s", what,
                             shape_text(&indices->shape).text);
    if (values && values->shape.rank != 1)
        return error_invalid("%s values should be a vector but received shape %s", what,
                             shape_text(&values->shape).text);
    if (shape->shape.rank != 1)
        return error_invalid("%s shape should be a vector but received shape %s", what, shape_text(&shape->shape).text);
    v.nnz = indices->shape.dims[0];
    if (values && values->count != v.nnz)
        return error_invalid("indices and values rows (indexing dimension) must match. (indices = %lld, values = %lld)",
                             (long long)v.nnz, (long long)values->count);
    if (shape->count != indices->shape.dims[1]) return error_invalid("Order length must be SparseTensor rank.");
    Error *err = sparse_shape_of(shape, &v.shape);
    v.indices = indices->dtype == DT_INT64 ? tensor_i64(indices) : NULL;
    if (!err) *out = v;
    return err;
}

Error *sparse_check_made(const Tensor *indices, const Tensor *values) {
    if (values->shape.rank != 1)
        return error_invalid("vals must be a vec, but got: %s", shape_text(&values->shape).text);
    if (indices->shape.rank > 0 && indices->shape.dims[0] != values->count)
        return error_invalid("indices and values rows (indexing dimension) must match. (indices = %lld, values = %lld)",
                             (long long)indices->shape.dims[0], (long long)values->count);
    if (indices->shape.rank != 2)
        return error_invalid("indices must be a matrix, but got: %s", shape_text(&indices->shape).text);
    return NULL;
}

Error *sparse_check_named(const char *name, const Tensor *indices, const Tensor *values, const Tensor *shape) {
    if (indices->shape.rank != 2)
        return error_invalid("Input %s_indices should be a matrix but received shape: %s", name,
                             shape_text(&indices->shape).text);
    if (values->shape.rank != 1 || shape->shape.rank != 1)
        return error_invalid("Inputs %s_values and %s_shape should be vectors but received shapes: %s and %s", name,
                             name, shape_text(&values->shape).text, shape_text(&shape->shape).text);
    return NULL;
}

Error *sparse_check_at(const Tensor *indices, const Tensor *values, const Tensor *shape, int at) {
    if (indices->shape.rank != 2)
        return error_invalid("Input indices should be a matrix but received shape %s at position %d",
                             shape_text(&indices->shape).text, at);
    if (values->shape.rank != 1)
        return error_invalid("Input values should be a vector but received shape %s at position %d",
                             shape_text(&values->shape).text, at);
    if (shape->shape.rank != 1)
        return error_invalid("Input shapes should be a vector but received shape %s at position %d",
                             shape_text(&shape->shape).text, at);
    return NULL;
}

bool sparse_counts_differ(const Tensor *indices, const Tensor *values) {
    return indices->shape.rank == 2 && values->shape.rank == 1 && values->count != indices->shape.dims[0];
}

bool sparse_ranks_differ(const Tensor *indices, const Tensor *shape) {
    return indices->shape.rank == 2 && shape->shape.rank == 1 && shape->count != indices->shape.dims[1];
}

Error *sparse_check_sizes(const Tensor *indices, const Tensor *values, const Tensor *shape) {
    if (sparse_counts_differ(indices, values))
        return error_invalid("Number of elements in indices (%lld) and values (%lld) do not match",
                             (long long)indices->shape.dims[0], (long long)values->count);
    if (sparse_ranks_differ(indices, shape))
        return error_invalid("Index rank (%lld) and shape rank (%lld) do not match", (long long)indices->shape.dims[1],
                             (long long)shape->count);
    return NULL;
}

Error *sparse_check_ranks(const Tensor *indices, const Tensor *values, const Tensor *shape) {
    if (indices->shape.rank != 2)
        return error_invalid("Sparse indices must be rank 2 but is rank %d", indices->shape.rank);
    if (values->shape.rank != 1)
        return error_invalid("Sparse values must be rank 1 but is rank %d", values->shape.rank);
    if (shape->shape.rank != 1) return error_invalid("Sparse shape must be rank 1 but is rank %d", shape->shape.rank);
    return sparse_check_sizes(indices, values, shape);
}

Error *sparse_check_tuples(const SparseView *s) {
    for (int64_t i = 0; i < s->nnz; i++) {
        const int64_t *at = s->indices + i * s->shape.rank;
        bool inside = true;
        for (int d = 0; d < s->shape.rank; d++) inside = inside && at[d] >= 0 && at[d] < s->shape.dims[d];
        if (inside) continue;
        StrBuf text = {0};
        for (int d = 0; d < s->shape.rank; d++) strbuf_addf(&text, "%s%lld", d ? ", " : "", (long long)at[d]);
        Error *err = error_invalid("Sparse index tuple indices[%lld, :] = [%.*s] is out of bounds", (long long)i,
                                   STR_ARG(strbuf_str(&text)));
        strbuf_clear(&text);
        return err;
    }
    return NULL;
}

/* "indices[2] = [0,5]" and what is wrong with it. */
static Error *index_error(const SparseView *s, int64_t i, const char *what) {
    Shape at = {.rank = s->shape.rank};
    for (int d = 0; d < at.rank; d++) at.dims[d] = index_at(s->indices_tensor, i * at.rank + d);
    StrBuf text = {0};
    for (int d = 0; d < at.rank; d++) strbuf_addf(&text, "%s%lld", d ? "," : "", (long long)at.dims[d]);
    Error *err = error_invalid("indices[%lld] = [%.*s] %s", (long long)i, STR_ARG(strbuf_str(&text)), what);
    strbuf_clear(&text);
    return err;
}

static Error *outside(const SparseView *s, int64_t i) {
    char text[320];
    snprintf(text, sizeof text, "is out of bounds: need 0 <= index < %s", shape_text(&s->shape).text);
    return index_error(s, i, text);
}

/* The first row that lies outside, or that does not come after the one before it, and how it compares with that in
 * *order: 1 comes after, 0 is the same. -1: none. Indices are int64 or int32: compiled for each. */
static inline __attribute__((always_inline)) int64_t first_wrong(const void *indices, bool wide, const SparseView *s,
                                                                 bool ordered, int *order) {
    const int rank = s->shape.rank;
    for (int64_t i = 0; i < s->nnz; i++) {
        *order = i == 0 ? 1 : 0;
        for (int64_t e = i * rank, d = 0; d < rank; d++, e++) {
            int64_t at = wide ? ((const int64_t *)indices)[e] : ((const int32_t *)indices)[e];
            if (at < 0 || at >= s->shape.dims[d]) {
                *order = 1;
                return i;
            }
            if (*order != 0) continue;
            int64_t before = wide ? ((const int64_t *)indices)[e - rank] : ((const int32_t *)indices)[e - rank];
            *order = (at > before) - (at < before);
        }
        if (ordered && *order <= 0) return i;
    }
    return -1;
}

/* Whether no row of a matrix is wrong, without jumps. */
static inline __attribute__((always_inline)) bool all_right(const void *indices, bool wide, const SparseView *s, bool ordered) {
    const uint64_t rows = (uint64_t)s->shape.dims[0], columns = (uint64_t)s->shape.dims[1];
    int64_t last_row = -1, last_column = 0;
    bool right = true;
    for (int64_t e = 0; e < 2 * s->nnz; e += 2) {
        int64_t row = wide ? ((const int64_t *)indices)[e] : ((const int32_t *)indices)[e];
        int64_t column = wide ? ((const int64_t *)indices)[e + 1] : ((const int32_t *)indices)[e + 1];
        right &= ((uint64_t)row < rows) & ((uint64_t)column < columns);
        right &= !ordered | (row > last_row) | ((row == last_row) & (column > last_column));
        last_row = row;
        last_column = column;
    }
    return right;
}

Error *sparse_check_indices(const SparseView *s, bool ordered) {
    const Tensor *t = s->indices_tensor;
    int order = 1;
    if (s->shape.rank == 2 && (t->dtype == DT_INT64 ? all_right(t->data, true, s, ordered) : all_right(t->data, false, s, ordered))) return NULL;
    int64_t i = t->dtype == DT_INT64 ? first_wrong(t->data, true, s, ordered, &order)
                                     : first_wrong(t->data, false, s, ordered, &order);
    if (i < 0) return NULL;
    if (order > 0) return outside(s, i);
    if (order == 0) return index_error(s, i, "is repeated");
    return index_error(s, i,
                       "is out of order. Many sparse ops require sorted indices.\n    Use `tf.sparse.reorder` to "
                       "create a correctly ordered copy.\n\n");
}

Error *sparse_check_inside(const SparseView *s) {
    return sparse_check_indices(s, false);
}

Error *sparse_shape_count(const Shape *s, int64_t *out) {
    int64_t n = 1;
    bool empty = false;
    for (int d = 0; d < s->rank; d++) empty = empty || s->dims[d] == 0;
    for (int d = 0; d < s->rank && !empty; d++) {
        if (__builtin_mul_overflow(n, s->dims[d], &n))
            return error_invalid("The number of elements of a sparse tensor of shape %s is too large",
                                 shape_text(s).text);
    }
    *out = empty ? 0 : n;
    return NULL;
}

void sparse_put_shape(Tensor *to, const Shape *shape) {
    for (int d = 0; d < shape->rank; d++) tensor_i64(to)[d] = shape->dims[d];
}

bool sparse_output(KernelContext *k, int first, int64_t nnz, const Shape *shape, SparseOut *out) {
    Shape matrix = shape_matrix(nnz, shape->rank), vector = shape_vector(nnz), dims = shape_vector(shape->rank);
    out->indices = kernel_output(k, first, &matrix);
    out->values = out->indices ? kernel_output(k, first + 1, &vector) : NULL;
    out->shape = out->values ? kernel_output(k, first + 2, &dims) : NULL;
    if (!out->shape) return false;
    sparse_put_shape(out->shape, shape);
    return true;
}
