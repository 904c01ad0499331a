/* banded.c: gradients of products with and solutions of matrices that are given by their diagonals. */
#include "gradients/rule.h"

/* x[..., from:to, :] when axis is -2, x[..., from:to] when it is -1; to 0: to the end. */
static Output part(Builder *b, Output x, int axis, int from, int to) {
    int n = 1 - axis;
    Output begin = b_i32s(b, n, (int[]){0, from, 0}), end = b_i32s(b, n, (int[]){0, to, 0});
    Output ones = b_i32s(b, n, (int[]){1, 1, 1});
    int open_end = to == 0 ? 2 : 0, rest = axis == -2 ? 4 : 0; /* masks: the ellipsis is the first item */
    b_with_int(b, "ellipsis_mask", 1);
    b_with_int(b, "begin_mask", rest);
    b_with_int(b, "end_mask", open_end | rest);
    return b_op4(b, "StridedSlice", x, begin, end, ones);
}

/* What stood after each along the axis, a zero at the end. */
static Output shift_back(Builder *b, Output x, int axis) {
    Output zero = b_zeros_like(b, part(b, x, axis, 0, 1));
    return b_concat2(b, part(b, x, axis, 1, 0), zero, axis);
}

/* What stood before each along the axis, a zero at the beginning. */
static Output shift_on(Builder *b, Output x, int axis) {
    Output zero = b_zeros_like(b, part(b, x, axis, 0, 1));
    return b_concat2(b, zero, part(b, x, axis, 0, -1), axis);
}

static Output row_sums(Builder *b, Output x) {
    return b_sum(b, x, b_i32(b, -1), false);
}

static void tridiagonal_matmul_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), x = b_conj(b, rule_in(r, 3));
    Output by_super = b_mul(b, shift_back(b, x, -2), dy), by_main = b_mul(b, x, dy), by_sub = b_mul(b, shift_on(b, x, -2), dy);
    rule_set(r, 0, b_expand(b, row_sums(b, by_super), -2));
    rule_set(r, 1, b_expand(b, row_sums(b, by_main), -2));
    rule_set(r, 2, b_expand(b, row_sums(b, by_sub), -2));
    Output super = b_swap_last(b, rule_in(r, 0), true), diag = b_swap_last(b, rule_in(r, 1), true);
    Output sub = b_swap_last(b, rule_in(r, 2), true);
    Output both = b_add(b, shift_on(b, b_mul(b, super, dy), -2), b_mul(b, diag, dy));
    rule_set(r, 3, b_add(b, both, shift_back(b, b_mul(b, sub, dy), -2)));
}

/* Three rows, each [..., n], as [..., 3, n]. */
static Output stack_rows(Builder *b, Output super, Output diag, Output sub) {
    Output rows[] = {b_expand(b, super, -2), b_expand(b, diag, -2), b_expand(b, sub, -2)};
    return b_concat(b, rows, 3, -2);
}

static Output row_of(Builder *b, Output diagonals, int i) {
    return b_squeeze(b, part(b, diagonals, -2, i, i + 1), -2);
}

static void tridiagonal_solve_grad(Builder *b, Rule *r) {
    Output diagonals = rule_in(r, 0), x = rule_out(r, 0);
    bool pivoting = rule_bool(b, r, "partial_pivoting"), perturb = rule_bool(b, r, "perturb_singular");
    Output transposed = stack_rows(b, shift_back(b, row_of(b, diagonals, 2), -1), row_of(b, diagonals, 1),
                                   shift_on(b, row_of(b, diagonals, 0), -1));
    b_with_bool(b, "partial_pivoting", pivoting);
    b_with_bool(b, "perturb_singular", perturb);
    Output d_right = b_op2(b, "TridiagonalSolve", transposed, rule_dy(r, 0));
    rule_set(r, 1, d_right);
    if (!rule_wants(r, 0)) return;
    Output super = row_sums(b, b_mul(b, d_right, shift_back(b, x, -2))), diag = row_sums(b, b_mul(b, d_right, x));
    Output sub = row_sums(b, b_mul(b, d_right, shift_on(b, x, -2)));
    rule_set(r, 0, b_neg(b, stack_rows(b, super, diag, sub)));
}

static void banded_solve_grad(Builder *b, Rule *r) {
    bool lower = rule_bool(b, r, "lower"), is_adjoint = rule_bool(b, r, "adjoint");
    Output x = rule_out(r, 0), shape = rule_in_shape(r, 0), right_shape = rule_in_shape(r, 1);
    b_with_bool(b, "lower", lower);
    b_with_bool(b, "adjoint", !is_adjoint);
    Output d_right = b_op2(b, "BandedTriangularSolve", rule_in(r, 0), rule_dy(r, 0));
    Node *axes = b_node(b, "BroadcastGradientArgs", (Output[]){b_items(b, shape, 0, -2), b_items(b, right_shape, 0, -2)}, 2);
    if (rule_wants(r, 1)) rule_set(r, 1, b_reshape(b, b_sum(b, d_right, output_of(axes, 1), false), right_shape));
    if (!rule_wants(r, 0)) return;
    Output full = b_neg(b, is_adjoint ? b_batch_matmul(b, x, d_right, false, true) : b_batch_matmul(b, d_right, x, false, true));
    Output far = b_shift(b, b_item(b, shape, -2), -1), zero = b_i32(b, 0);
    Output between = lower ? b_pack(b, (Output[]){b_neg(b, far), zero}, 2) : b_pack(b, (Output[]){zero, far}, 2);
    Output padding = b_scalar(b, rule_type(b, r, "T"), 0);
    b_with_string(b, "align", "LEFT_RIGHT");
    Output bands = b_op3(b, "MatrixDiagPartV3", full, between, padding);
    rule_set(r, 0, b_reshape(b, b_sum(b, bands, output_of(axes, 0), false), shape));
}

const GradientDef banded_gradients[] = {
    {"BandedTriangularSolve", banded_solve_grad},
    {"TridiagonalMatMul", tridiagonal_matmul_grad},
    {"TridiagonalSolve", tridiagonal_solve_grad},
    {0},
};
