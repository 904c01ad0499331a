/* matmul.c: gradients of matrix products. */
#include "gradients/rule.h"

/* The product of two matrices, either of them transposed; and which kind of product it is. */
typedef Output Product(Builder *b, Output x, Output y, bool transpose_x, bool transpose_y);

/* For z = op(x) op(y), both sides' gradients as products of dz and the other side. */
static void product_gradients(Builder *b, Product *product, Output x, Output y, Output dz, bool tx, bool ty, Output *dx,
                              Output *dy) {
    if (dx) *dx = tx ? product(b, y, dz, ty, true) : product(b, dz, y, false, !ty);
    if (dy) *dy = ty ? product(b, dz, x, true, tx) : product(b, x, dz, !tx, false);
}

static void matmul_grad(Builder *b, Rule *r) {
    Output dx = {0}, dy = {0};
    bool tx = rule_bool(b, r, "transpose_a"), ty = rule_bool(b, r, "transpose_b");
    Output x = rule_wants(r, 1) ? b_conj(b, rule_in(r, 0)) : NO_OUTPUT,
           y = rule_wants(r, 0) ? b_conj(b, rule_in(r, 1)) : NO_OUTPUT;
    product_gradients(b, b_matmul, x, y, rule_dy(r, 0), tx, ty, rule_wants(r, 0) ? &dx : NULL,
                      rule_wants(r, 1) ? &dy : NULL);
    rule_set(r, 0, dx);
    rule_set(r, 1, dy);
}

static Output sparse_matmul(Builder *b, Output x, Output y, bool tx, bool ty) {
    b_with_bool(b, "transpose_a", tx);
    b_with_bool(b, "transpose_b", ty);
    return b_op2(b, "SparseMatMul", x, y);
}

/* Operands of SparseMatMul are float or bfloat16, its result is float. */
static void sparse_matmul_grad(Builder *b, Rule *r) {
    Output dx = {0}, dy = {0}, x = rule_in(r, 0), y = rule_in(r, 1);
    bool tx = rule_bool(b, r, "transpose_a"), ty = rule_bool(b, r, "transpose_b");
    product_gradients(b, sparse_matmul, x, y, rule_dy(r, 0), tx, ty, rule_wants(r, 0) ? &dx : NULL,
                      rule_wants(r, 1) ? &dy : NULL);
    if (has(dx)) rule_set(r, 0, b_cast(b, dx, output_dtype(x)));
    if (has(dy)) rule_set(r, 1, b_cast(b, dy, output_dtype(y)));
}

static void batch_matmul_grad(Builder *b, Rule *r) {
    Output dx = {0}, dy = {0}, x = rule_wants(r, 1) ? rule_in(r, 0) : NO_OUTPUT,
           y = rule_wants(r, 0) ? rule_in(r, 1) : NO_OUTPUT;
    bool tx = rule_bool(b, r, "adj_x"), ty = rule_bool(b, r, "adj_y");
    product_gradients(b, b_batch_matmul, x, y, rule_dy(r, 0), tx, ty, rule_wants(r, 0) ? &dx : NULL,
                      rule_wants(r, 1) ? &dy : NULL);
    Output sx = rule_in_shape(r, 0), sy = rule_in_shape(r, 1);
    Node *axes = b_node(b, "BroadcastGradientArgs", (Output[]){b_items(b, sx, 0, -2), b_items(b, sy, 0, -2)}, 2);
    if (has(dx)) rule_set(r, 0, b_reshape(b, b_sum(b, dx, output_of(axes, 0), false), sx));
    if (has(dy)) rule_set(r, 1, b_reshape(b, b_sum(b, dy, output_of(axes, 1), false), sy));
}

const GradientDef matmul_gradients[] = {
    {"BatchMatMul", batch_matmul_grad},   {"BatchMatMulV2", batch_matmul_grad},
    {"BatchMatMulV3", batch_matmul_grad}, {"MatMul", matmul_grad},
    {"SparseMatMul", sparse_matmul_grad}, {0},
};
