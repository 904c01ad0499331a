/* sparse.c: gradients of sparse tensors (indices, values, shape): only values have gradients. */
#include "gradients/rule.h"

/* Where each value went, undone. */
static void reorder_grad(Builder *b, Rule *r) {
    Output indices = rule_in(r, 0), count = b_item(b, b_shape(b, indices), 0);
    Output inputs[] = {indices, b_range(b, b_i32(b, 0), count), rule_in(r, 2)};
    Node *n = b_node(b, "SparseReorder", inputs, 3);
    rule_set(r, 1, b_gather(b, rule_dy(r, 1), b_op1(b, "InvertPermutation", output_of(n, 1))));
}

static void add_grad(Builder *b, Rule *r) {
    Output inputs[] = {rule_dy(r, 1), rule_in(r, 0), rule_in(r, 3), rule_out(r, 0)};
    Node *n = b_node(b, "SparseAddGrad", inputs, 4);
    if (rule_wants(r, 1)) rule_set(r, 1, output_of(n, 0));
    if (rule_wants(r, 4)) rule_set(r, 4, output_of(n, 1));
}

static void dense_add_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    if (rule_wants(r, 1)) rule_set(r, 1, b_op2(b, "GatherNd", dy, rule_in(r, 0)));
    if (rule_wants(r, 3)) rule_set(r, 3, dy);
}

static void reduce_sum_grad(Builder *b, Rule *r) {
    Output shape = b_cast(b, rule_in(r, 2), DT_INT32), rank = b_size(b, shape), axes = b_flatten(b, rule_in(r, 3));
    axes = b_op2(b, "FloorMod", b_add(b, axes, rank), rank);
    Output ones = b_fill(b, b_shape(b, axes), b_i32(b, 1));
    Output kept = b_op(b, "DynamicStitch", (Output[]){b_range(b, b_i32(b, 0), rank), axes, shape, ones}, 4);
    Output scale = b_cast(b, b_op2(b, "FloorDiv", shape, b_op2(b, "Maximum", kept, b_i32(b, 1))), DT_INT64);
    Output where = b_op2(b, "FloorDiv", rule_in(r, 0), b_op2(b, "Maximum", scale, b_ones_like(b, scale)));
    rule_set(r, 1, b_op2(b, "GatherNd", b_reshape(b, rule_dy(r, 0), kept), where));
}

static void slice_grad(Builder *b, Rule *r) {
    rule_set(r, 1, b_op4(b, "SparseSliceGrad", rule_dy(r, 1), rule_in(r, 0), rule_in(r, 3), rule_out(r, 0)));
}

static void matmul_grad(Builder *b, Rule *r) {
    bool adjoint_a = rule_bool(b, r, "adjoint_a"), adjoint_b = rule_bool(b, r, "adjoint_b");
    Output indices = rule_in(r, 0), dy = rule_dy(r, 0);
    if (rule_wants(r, 3)) {
        Output inputs[] = {indices, rule_in(r, 1), rule_in(r, 2), dy};
        b_with_bool(b, "adjoint_a", !adjoint_a);
        Output db = b_op(b, "SparseTensorDenseMatMul", inputs, 4);
        rule_set(r, 3, adjoint_b ? b_swap_last(b, db, true) : db);
    }
    if (!rule_wants(r, 1)) return;
    Output sides = b_transpose(b, indices, b_i32s(b, 2, (int[]){1, 0}));
    Output rows = b_gather(b, sides, b_i32(b, 0)), columns = b_gather(b, sides, b_i32(b, 1));
    Output other = adjoint_b ? b_swap_last(b, rule_in(r, 3), true) : rule_in(r, 3);
    Output left = b_gather(b, dy, adjoint_a ? columns : rows),
           right = b_conj(b, b_gather(b, other, adjoint_a ? rows : columns));
    Output dvalues = b_sum(b, b_mul(b, left, right), b_i32(b, 1), false);
    rule_set(r, 1, adjoint_a ? b_conj(b, dvalues) : dvalues);
}

/* The element of the dense operand that each value met: it is broadcast to the sparse one. */
static Output dense_indices(Builder *b, Rule *r) {
    Output shape = rule_in(r, 2), dense = b_cast(b, rule_in_shape(r, 3), DT_INT64);
    Output more = b_sub(b, b_size(b, shape), b_size(b, dense)), added = b_expand(b, more, 0);
    Output wide = b_concat2(b, b_fill(b, added, b_scalar(b, DT_INT64, 1)), dense, 0);
    Output scaled = b_op2(b, "FloorDiv", rule_in(r, 0), b_op2(b, "FloorDiv", shape, wide));
    return b_slice(b, scaled, b_concat2(b, b_i32s(b, 1, (int[]){0}), added, 0), b_i32s(b, 2, (int[]){-1, -1}));
}

static void set_dense(Builder *b, Rule *r, Output where, Output values) {
    rule_set(r, 3, b_op3(b, "ScatterNd", where, values, b_cast(b, rule_in_shape(r, 3), DT_INT64)));
}

static void cwise_mul_grad(Builder *b, Rule *r) {
    Output where = dense_indices(b, r), dy = rule_dy(r, 0);
    if (rule_wants(r, 1)) rule_set(r, 1, b_mul(b, dy, b_op2(b, "GatherNd", rule_in(r, 3), where)));
    if (rule_wants(r, 3)) set_dense(b, r, where, b_mul(b, dy, rule_in(r, 1)));
}

static void cwise_div_grad(Builder *b, Rule *r) {
    Output where = dense_indices(b, r), dy = rule_dy(r, 0), dense = b_op2(b, "GatherNd", rule_in(r, 3), where);
    if (rule_wants(r, 1)) rule_set(r, 1, b_div(b, dy, dense));
    if (rule_wants(r, 3)) set_dense(b, r, where, b_mul(b, dy, b_div(b, b_neg(b, rule_in(r, 1)), b_square(b, dense))));
}

/* dx = (dy - sum of dy y over the row) y */
static void softmax_grad(Builder *b, Rule *r) {
    Output indices = rule_in(r, 0), shape = rule_in(r, 2), y = rule_out(r, 0), dy = rule_dy(r, 0),
           weighted = b_mul(b, y, dy), last = b_i32s(b, 1, (int[]){-1});
    b_with_bool(b, "keep_dims", true);
    Output sums = b_op4(b, "SparseReduceSum", indices, weighted, shape, last);
    rule_set(r, 1, b_mul(b, b_op4(b, "SparseDenseCwiseAdd", indices, dy, shape, b_neg(b, sums)), y));
}

static void fill_empty_rows_grad(Builder *b, Rule *r) {
    const char *op = str_starts(rule_node(r)->op, STR("Ragged")) ? "RaggedFillEmptyRowsGrad" : "SparseFillEmptyRowsGrad";
    Node *n = b_node(b, op, (Output[]){rule_out(r, 3), rule_dy(r, 1)}, 2);
    if (rule_wants(r, 1)) rule_set(r, 1, output_of(n, 0));
    if (rule_wants(r, 3)) rule_set(r, 3, output_of(n, 1));
}

static Output sum_all(Builder *b, Output x) {
    return b_sum(b, x, b_range(b, b_i32(b, 0), b_rank(b, x)), false);
}

/* (indices, shape, values, default) -> dense */
static void to_dense_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), dvalues = b_op2(b, "GatherNd", dy, rule_in(r, 0));
    if (rule_wants(r, 2)) rule_set(r, 2, dvalues);
    if (rule_wants(r, 3)) rule_set(r, 3, b_sub(b, sum_all(b, dy), sum_all(b, dvalues)));
}

static void no_gradient(Builder *b, Rule *r) {
    b_fail(b, error_unimplemented("Gradient for %.*s is not implemented.", STR_ARG(rule_node(r)->op)));
}

const GradientDef sparse_gradients[] = {
    {"SparseAdd", add_grad},
    {"SparseDenseCwiseAdd", no_gradient},
    {"SparseDenseCwiseDiv", cwise_div_grad},
    {"SparseDenseCwiseMul", cwise_mul_grad},
    {"RaggedFillEmptyRows", fill_empty_rows_grad},
    {"SparseFillEmptyRows", fill_empty_rows_grad},
    {"SparseReduceSum", reduce_sum_grad},
    {"SparseReorder", reorder_grad},
    {"SparseSlice", slice_grad},
    {"SparseSoftmax", softmax_grad},
    {"SparseSparseMaximum", no_gradient},
    {"SparseSparseMinimum", no_gradient},
    {"SparseTensorDenseAdd", dense_add_grad},
    {"SparseTensorDenseMatMul", matmul_grad},
    {"SparseToDense", to_dense_grad},
    {0},
};
