/* indexed_slices.c: sums of gradients, dense and sparse. */
#include <stdlib.h>

#include "base/memory.h"
#include "gradients/backprop.h"

/* The rows added up in zeros of the dense shape. */
Output gradient_dense(Builder *b, Gradient x) {
    if (!has(x.indices)) return x.values;
    Output rows = b_item(b, x.dense_shape, 0);
    Output flat = b_op3(b, "UnsortedSegmentSum", x.values, x.indices, rows);
    return b_reshape(b, flat, x.dense_shape);
}

/* Rows behind rows: an index that comes twice is added twice by whoever uses the result. */
static Gradient join_rows(Builder *b, const Gradient *parts, int count) {
    Output *values = xcalloc((size_t)count, sizeof *values), *indices = xcalloc((size_t)count, sizeof *indices);
    bool same_type = true;
    for (int i = 0; i < count; i++) same_type &= output_dtype(parts[i].indices) == output_dtype(parts[0].indices);
    for (int i = 0; i < count; i++) {
        values[i] = parts[i].values;
        indices[i] = same_type ? parts[i].indices : b_cast(b, parts[i].indices, DT_INT64);
    }
    Gradient sum = {b_concat(b, values, count, 0), b_concat(b, indices, count, 0), parts[0].dense_shape};
    free(values);
    free(indices);
    return sum;
}

Gradient gradient_no_rows(Builder *b, Output shape, DataType type, DataType index_type) {
    Output zero = b_i32s(b, 1, (int[]){0});
    Output rows = b_concat2(b, zero, b_items(b, shape, 1, 0), 0);
    return (Gradient){b_fill(b, rows, b_scalar(b, type, 0)), b_cast(b, b_slice(b, shape, zero, zero), index_type), shape};
}

Gradient gradient_sum(Builder *b, const Gradient *parts, int count) {
    if (count == 1) return parts[0];
    bool sparse = true;
    for (int i = 0; i < count; i++) sparse &= has(parts[i].indices);
    if (sparse) return join_rows(b, parts, count);
    Output *terms = xcalloc((size_t)count, sizeof *terms);
    for (int i = 0; i < count; i++) terms[i] = gradient_dense(b, parts[i]);
    Gradient sum = {.values = b_op(b, "AddN", terms, count)};
    free(terms);
    return sum;
}
