/* factors.c: gradients of eigenvalues, singular values and QR. */
#include "gradients/rule.h"

static Output adjoint(Builder *b, Output x) {
    return b_swap_last(b, x, true);
}

static Output product(Builder *b, Output x, Output y) {
    return b_batch_matmul(b, x, y, false, false);
}

static Output diag(Builder *b, Output x) {
    return b_op1(b, "MatrixDiag", x);
}

static Output diag_part(Builder *b, Output x) {
    return b_op1(b, "MatrixDiagPart", x);
}

static Output safe_reciprocal(Builder *b, Output x) {
    return b_mul(b, x, b_op1(b, "Reciprocal", b_shift(b, b_mul(b, x, x), 1e-20)));
}

/* 1 / (x_j - x_i), 0 on the diagonal. */
static Output gaps(Builder *b, Output x) {
    Output differences = b_sub(b, b_expand(b, x, -2), b_expand(b, x, -1));
    return b_op2(b, "MatrixSetDiag", safe_reciprocal(b, differences), b_zeros_like(b, x));
}

static Output real_part(Builder *b, Output x) {
    if (!dtype_is_complex(output_dtype(x))) return x;
    b_with_type(b, "Tout", output_dtype(x) == DT_COMPLEX128 ? DT_DOUBLE : DT_FLOAT);
    return b_op1(b, "Real", x);
}

/* The factors of the node: its outputs, or computed here when it only gave the values. */
static void factors(Builder *b, Rule *r, const char *attr, const char *op, int count, Output *out) {
    if (rule_bool(b, r, attr)) {
        for (int i = 0; i < count; i++) out[i] = rule_out(r, i);
        return;
    }
    Output x = rule_in(r, 0);
    b_with_bool(b, attr, true);
    b_with_attrs_of(b, rule_node(r));
    Node *n = b_node(b, op, &x, 1);
    for (int i = 0; i < count; i++) out[i] = output_of(n, i);
}

static void self_adjoint_eig_grad(Builder *b, Rule *r) {
    Output ev[2];
    factors(b, r, "compute_v", "SelfAdjointEigV2", 2, ev);
    Output e = ev[0], v = ev[1], middle = diag(b, b_cast(b, rule_dy(r, 0), output_dtype(v)));
    if (rule_has_dy(r, 1))
        middle =
            b_add(b, middle,
                  b_mul(b, b_cast(b, gaps(b, e), output_dtype(v)), b_batch_matmul(b, v, rule_dy(r, 1), true, false)));
    Output da = product(b, v, b_batch_matmul(b, middle, v, false, true));
    da = b_op3(b, "MatrixBandPart", b_add(b, da, adjoint(b, da)), b_i32(b, -1), b_i32(b, 0));
    rule_set(r, 0, b_op2(b, "MatrixSetDiag", da, b_scale(b, diag_part(b, da), 0.5)));
}

static void eig_grad(Builder *b, Rule *r) {
    Output ev[2];
    factors(b, r, "compute_v", "Eig", 2, ev);
    Output e = ev[0], v = ev[1], vt = adjoint(b, v), middle = diag(b, rule_dy(r, 0));
    if (rule_has_dy(r, 1)) {
        Output vgv = product(b, vt, rule_dy(r, 1));
        Output along = diag(b, diag_part(b, b_cast(b, real_part(b, vgv), output_dtype(vgv))));
        Output rest = b_sub(b, vgv, product(b, product(b, vt, v), along));
        middle = b_add(b, middle, b_mul(b, b_conj(b, gaps(b, e)), rest));
    }
    Output da = b_op2(b, "MatrixSolve", vt, product(b, middle, vt));
    DataType type = output_dtype(rule_in(r, 0));
    rule_set(r, 0, dtype_is_complex(type) ? b_cast(b, da, type) : b_cast(b, real_part(b, da), type));
}

/* Columns [from, to) of matrices. */
static Output columns(Builder *b, Output x, Output from, Output to) {
    return b_op3(b, "GatherV2", x, b_range(b, from, to), b_i32(b, -1));
}

/* The part of an SVD's gradient that one of its sides adds when its matrix is not square: g outside of the space of u.
 * (u2: further columns, when there are any.) */
static Output outside(Builder *b, Output u1, Output g1, Output u2, Output g2) {
    Output gh = adjoint(b, g1);
    Output out = b_sub(b, gh, b_batch_matmul(b, product(b, gh, u1), u1, false, true));
    return b_sub(b, out, b_batch_matmul(b, b_batch_matmul(b, u1, g2, true, false), u2, false, true));
}

static void svd_grad(Builder *b, Rule *r) {
    Output f[3];
    factors(b, r, "compute_uv", "Svd", 3, f);
    DataType type = output_dtype(f[1]);
    Output s = b_cast(b, f[0], type), u = f[1], v = f[2], ds = diag(b, b_cast(b, rule_dy(r, 0), type));
    Output zero = b_i32(b, 0), k = b_item(b, b_shape(b, s), -1), wide_u = b_item(b, b_shape(b, u), -1),
           wide_v = b_item(b, b_shape(b, v), -1);
    Output u1 = columns(b, u, zero, k), v1 = columns(b, v, zero, k), middle = ds;
    bool uv = rule_bool(b, r, "compute_uv") && (rule_has_dy(r, 1) || rule_has_dy(r, 2));
    if (!uv) {
        rule_set(r, 0, product(b, u1, b_batch_matmul(b, ds, v1, false, true)));
        return;
    }
    Output gu = rule_dy(r, 1), gv = rule_dy(r, 2), gu1 = columns(b, gu, zero, k), gv1 = columns(b, gv, zero, k);
    Output gap = gaps(b, b_square(b, s)), s_matrix = diag(b, s), s_inverse = diag(b, safe_reciprocal(b, s));
    Output vgv = b_batch_matmul(b, v1, gv1, true, false);
    Output fu = b_mul(b, gap, b_batch_matmul(b, u1, gu1, true, false)), fv = b_mul(b, gap, vgv);
    middle = b_add(b, middle, product(b, b_add(b, fu, adjoint(b, fu)), s_matrix));
    middle = b_add(b, middle, product(b, s_matrix, b_add(b, fv, adjoint(b, fv))));
    if (dtype_is_complex(type)) { /* the phase that u and v share */
        Output phase = diag(b, diag_part(b, vgv));
        middle = b_add(b, middle, b_scale(b, product(b, s_inverse, b_sub(b, adjoint(b, phase), phase)), 0.5));
    }
    Output da = product(b, u1, b_batch_matmul(b, middle, v1, false, true));
    Output beside_v = outside(b, v1, gv1, columns(b, v, k, wide_v), columns(b, gv, k, wide_v));
    Output beside_u = outside(b, u1, gu1, columns(b, u, k, wide_u), columns(b, gu, k, wide_u));
    da = b_add(b, da, product(b, product(b, u1, s_inverse), beside_v));
    da = b_add(b, da, adjoint(b, product(b, product(b, v1, s_inverse), beside_u)));
    rule_set(r, 0, da);
}

/* x r^-1 */
static Output solve_right(Builder *b, Output x, Output upper) {
    Output flipped = adjoint(b, x);
    b_with_bool(b, "lower", false);
    b_with_bool(b, "adjoint", false);
    return adjoint(b, b_op2(b, "MatrixTriangularSolve", upper, flipped));
}

/* For a = q r with square r. */
static Output qr_square(Builder *b, Output q, Output upper, Output dq, Output dr) {
    Output qdq = b_batch_matmul(b, q, dq, true, false), rdr = b_batch_matmul(b, upper, dr, false, true);
    Output skew = b_add(b, b_sub(b, qdq, adjoint(b, qdq)), b_sub(b, rdr, adjoint(b, rdr)));
    Output lower = b_op3(b, "MatrixBandPart", skew, b_i32(b, -1), b_i32(b, 0));
    Output da = b_add(b, product(b, q, b_add(b, dr, solve_right(b, lower, upper))),
                      solve_right(b, b_sub(b, dq, product(b, q, qdq)), upper));
    if (!dtype_is_complex(output_dtype(q))) return da;
    Output m = diag(b, diag_part(b, b_sub(b, rdr, adjoint(b, qdq))));
    Output correction = b_sub(b, m, b_cast(b, real_part(b, m), output_dtype(q)));
    return b_add(b, da, solve_right(b, product(b, q, adjoint(b, correction)), upper));
}

/* A wide matrix is a square one with columns beside it; other matrices have none. More rows than columns with
 * full_matrices has no gradient: the columns are then out of range. */
static void qr_grad(Builder *b, Rule *r) {
    Output q = rule_out(r, 0), upper = rule_out(r, 1), dq = rule_dy(r, 0), dr = rule_dy(r, 1),
           shape = b_shape(b, upper), zero = b_i32(b, 0);
    Output k = b_item(b, shape, -2), n = b_item(b, shape, -1);
    Output beside = columns(b, rule_in(r, 0), k, n), dv = columns(b, dr, k, n);
    Output dx = qr_square(b, q, columns(b, upper, zero, k), b_add(b, dq, b_batch_matmul(b, beside, dv, false, true)),
                          columns(b, dr, zero, k));
    rule_set(r, 0, b_concat2(b, dx, product(b, q, dv), -1));
}

const GradientDef factors_gradients[] = {
    {"Eig", eig_grad}, {"Qr", qr_grad}, {"SelfAdjointEigV2", self_adjoint_eig_grad}, {"Svd", svd_grad}, {0},
};
