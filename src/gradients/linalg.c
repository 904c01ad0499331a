/* linalg.c: gradients of inverses, determinants, solutions and factors of matrices. */
#include "gradients/rule.h"

static Output adjoint(Builder *b, Output x) {
    return b_swap_last(b, x, true);
}

static Output inverse(Builder *b, Output x, bool adjoint_x) {
    b_with_bool(b, "adjoint", adjoint_x);
    return b_op1(b, "MatrixInverse", x);
}

static Output solve(Builder *b, Output a, Output y, bool adjoint_a) {
    b_with_bool(b, "adjoint", adjoint_a);
    return b_op2(b, "MatrixSolve", a, y);
}

static Output triangle_solve(Builder *b, Output a, Output y, bool lower, bool adjoint_a) {
    b_with_bool(b, "lower", lower);
    b_with_bool(b, "adjoint", adjoint_a);
    return b_op2(b, "MatrixTriangularSolve", a, y);
}

static Output lower_part(Builder *b, Output x) {
    return b_op3(b, "MatrixBandPart", x, b_i32(b, -1), b_i32(b, 0));
}

static Output upper_part(Builder *b, Output x) {
    return b_op3(b, "MatrixBandPart", x, b_i32(b, 0), b_i32(b, -1));
}

static Output diagonal(Builder *b, Output x) {
    return b_op1(b, "MatrixDiagPart", x);
}

/* Ones on the diagonal of matrices like x. */
static Output eye_like(Builder *b, Output x) {
    Output zeros = b_zeros_like(b, x);
    return b_op2(b, "MatrixSetDiag", zeros, b_ones_like(b, diagonal(b, zeros)));
}

/* One factor for each matrix of a batch. */
static Output scale_matrices(Builder *b, Output factors, Output matrices) {
    return b_mul(b, b_expand(b, b_expand(b, factors, -1), -1), matrices);
}

static void inverse_grad(Builder *b, Rule *r) {
    bool is_adjoint = rule_bool(b, r, "adjoint");
    Output y = rule_out(r, 0), right = b_batch_matmul(b, rule_dy(r, 0), y, is_adjoint, !is_adjoint);
    rule_set(r, 0, b_neg(b, b_batch_matmul(b, y, right, !is_adjoint, false)));
}

static void determinant_grad(Builder *b, Rule *r) {
    Output factors = b_mul(b, rule_dy(r, 0), rule_out(r, 0));
    rule_set(r, 0, scale_matrices(b, factors, inverse(b, rule_in(r, 0), true)));
}

static void log_determinant_grad(Builder *b, Rule *r) {
    rule_set(r, 0, scale_matrices(b, rule_dy(r, 1), inverse(b, rule_in(r, 0), true)));
}

static void solve_grad(Builder *b, Rule *r) {
    bool is_adjoint = rule_bool(b, r, "adjoint");
    Output x = rule_out(r, 0), db = solve(b, rule_in(r, 0), rule_dy(r, 0), !is_adjoint);
    if (rule_wants(r, 0))
        rule_set(r, 0,
                 b_neg(b, is_adjoint ? b_batch_matmul(b, x, db, false, true) : b_batch_matmul(b, db, x, false, true)));
    if (rule_wants(r, 1)) rule_set(r, 1, db);
}

static void triangular_solve_grad(Builder *b, Rule *r) {
    bool lower = rule_bool(b, r, "lower"), is_adjoint = rule_bool(b, r, "adjoint");
    Output x = rule_out(r, 0), db = triangle_solve(b, rule_in(r, 0), rule_dy(r, 0), lower, !is_adjoint);
    Output sa = rule_in_shape(r, 0), sb = rule_in_shape(r, 1);
    Node *axes = b_node(b, "BroadcastGradientArgs", (Output[]){b_items(b, sa, 0, -2), b_items(b, sb, 0, -2)}, 2);
    if (rule_wants(r, 0)) {
        Output da =
            b_neg(b, is_adjoint ? b_batch_matmul(b, x, db, false, true) : b_batch_matmul(b, db, x, false, true));
        da = lower ? lower_part(b, da) : upper_part(b, da);
        rule_set(r, 0, b_reshape(b, b_sum(b, da, output_of(axes, 0), false), sa));
    }
    if (rule_wants(r, 1)) rule_set(r, 1, b_reshape(b, b_sum(b, db, output_of(axes, 1), false), sb));
}

static void cholesky_grad(Builder *b, Rule *r) {
    Output l = rule_out(r, 0), inverse_l = triangle_solve(b, l, eye_like(b, l), true, false);
    Output middle = b_batch_matmul(b, l, rule_dy(r, 0), true, false);
    middle = lower_part(b, b_op2(b, "MatrixSetDiag", middle, b_scale(b, diagonal(b, middle), 0.5)));
    Output da = b_batch_matmul(b, b_batch_matmul(b, inverse_l, middle, true, false), inverse_l, false, false);
    rule_set(r, 0, b_scale(b, b_add(b, da, adjoint(b, da)), 0.5));
}

/* The Kronecker product of two batches of square matrices. */
static Output kronecker(Builder *b, Output x, Output y, Output batch, Output n) {
    Output one = b_i32s(b, 1, (int[]){1}), size = b_mul(b, n, n);
    Output left = b_reshape(b, x, b_concat(b, (Output[]){batch, n, one, n, one}, 5, 0));
    Output right = b_reshape(b, y, b_concat(b, (Output[]){batch, one, n, one, n}, 5, 0));
    return b_reshape(b, b_mul(b, left, right), b_concat(b, (Output[]){batch, size, size}, 3, 0));
}

/* y y = x, so dy y + y dy = dx: a linear system for all elements of dy at once. */
static void square_root_grad(Builder *b, Rule *r) {
    Output y = rule_out(r, 0), shape = b_shape(b, y), batch = b_items(b, shape, 0, -2), n = b_items(b, shape, -1, 0),
           eye = eye_like(b, y);
    Output system = b_add(b, kronecker(b, eye, b_swap_last(b, y, false), batch, n), kronecker(b, y, eye, batch, n));
    Output flat = b_concat(b, (Output[]){batch, b_mul(b, n, n), b_i32s(b, 1, (int[]){1})}, 3, 0);
    Output found = solve(b, system, b_reshape(b, b_swap_last(b, rule_dy(r, 0), false), flat), false);
    rule_set(r, 0, b_swap_last(b, b_reshape(b, found, shape), false));
}

/* ---- Least squares ---- */

static Output gramian_solve(Builder *b, Output a, Output ridge, bool of_columns, Output y) {
    Output gramian = b_batch_matmul(b, a, a, of_columns, !of_columns);
    return solve(b, b_add(b, gramian, b_mul(b, ridge, eye_like(b, gramian))), y, false);
}

/* Which of the two ways to solve was right is known when it runs: both are here, and one lives. */
static void least_squares_grad(Builder *b, Rule *r) {
    if (!rule_bool(b, r, "fast")) b_fail(b, error_unimplemented("Gradient not defined for fast=False"));
    Output shape = rule_in_shape(r, 0), tall = b_op2(b, "GreaterEqual", b_item(b, shape, -2), b_item(b, shape, -1));
    Output values[] = {rule_in(r, 0), rule_in(r, 1), rule_out(r, 0), rule_dy(r, 0),
                       b_cast(b, rule_in(r, 2), output_dtype(rule_in(r, 0)))},
           side[2][5];
    for (int i = 0; i < 5; i++) {
        Node *n = b_node(b, "Switch", (Output[]){values[i], tall}, 2);
        side[0][i] = output_of(n, 0);
        side[1][i] = output_of(n, 1);
    }
    Output a = side[1][0], y = side[1][1], x = side[1][2], dx = side[1][3];
    Output z = gramian_solve(b, a, side[1][4], true, dx), xz = b_batch_matmul(b, x, z, false, true);
    Output both = b_add(b, xz, b_swap_last(b, xz, false));
    Output da_tall = b_sub(b, b_batch_matmul(b, y, z, false, true), b_batch_matmul(b, a, both, false, false)),
           dy_tall = b_batch_matmul(b, a, z, false, false);
    a = side[0][0], y = side[0][1], dx = side[0][3];
    Output dy_wide = gramian_solve(b, a, side[0][4], false, b_batch_matmul(b, a, dx, false, false)),
           half = gramian_solve(b, a, side[0][4], false, y);
    Output first = b_batch_matmul(b, dy_wide, b_batch_matmul(b, half, a, true, false), false, false);
    Output rest = b_sub(b, dx, b_batch_matmul(b, a, dy_wide, true, false));
    Output da_wide = b_sub(b, b_batch_matmul(b, half, rest, false, true), first);
    if (rule_wants(r, 0)) rule_set(r, 0, b_op2(b, "Merge", da_wide, da_tall));
    if (rule_wants(r, 1)) rule_set(r, 1, b_op2(b, "Merge", dy_wide, dy_tall));
}

const GradientDef linalg_gradients[] = {
    {"Cholesky", cholesky_grad},
    {"LogMatrixDeterminant", log_determinant_grad},
    {"MatrixDeterminant", determinant_grad},
    {"MatrixInverse", inverse_grad},
    {"MatrixSolve", solve_grad},
    {"MatrixSolveLs", least_squares_grad},
    {"MatrixSquareRoot", square_root_grad},
    {"MatrixTriangularSolve", triangular_solve_grad},
    {0},
};
