/* diag.c: gradients of diagonals. */
#include "gradients/rule.h"

static void diag_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_op1(b, "DiagPart", rule_dy(r, 0)));
}

static void diag_part_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_op1(b, "Diag", rule_dy(r, 0)));
}

/* The three versions of an op on diagonals: without k, with k, with k and align. */
static int version(const Rule *r) {
    Str op = rule_node(r)->op;
    return str_ends(op, STR("V3")) ? 3 : str_ends(op, STR("V2")) ? 2 : 1;
}

static Output part(Builder *b, Rule *r, Output x, Output k) {
    if (version(r) == 1) return b_op1(b, "MatrixDiagPart", x);
    Output padding = b_scalar(b, output_dtype(x), 0);
    b_with_attrs_of(b, rule_node(r));
    return b_op3(b, version(r) == 2 ? "MatrixDiagPartV2" : "MatrixDiagPartV3", x, k, padding);
}

static Output with_diagonal(Builder *b, Rule *r, Output x, Output diagonal, Output k) {
    if (version(r) == 1) return b_op2(b, "MatrixSetDiag", x, diagonal);
    b_with_attrs_of(b, rule_node(r));
    return b_op3(b, version(r) == 2 ? "MatrixSetDiagV2" : "MatrixSetDiagV3", x, diagonal, k);
}

static void matrix_diag_grad(Builder *b, Rule *r) {
    rule_set(r, 0, part(b, r, rule_dy(r, 0), version(r) > 1 ? rule_in(r, 1) : NO_OUTPUT));
}

static void matrix_diag_part_grad(Builder *b, Rule *r) {
    Output zeros = b_zeros_like(b, rule_in(r, 0));
    rule_set(r, 0, with_diagonal(b, r, zeros, rule_dy(r, 0), version(r) > 1 ? rule_in(r, 1) : NO_OUTPUT));
}

static void matrix_set_diag_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), k = version(r) > 1 ? rule_in(r, 2) : NO_OUTPUT;
    if (rule_wants(r, 0)) rule_set(r, 0, with_diagonal(b, r, dy, b_zeros_like(b, rule_in(r, 1)), k));
    if (rule_wants(r, 1)) rule_set(r, 1, part(b, r, dy, k));
}

const GradientDef diag_gradients[] = {
    {"Diag", diag_grad},
    {"DiagPart", diag_part_grad},
    {"MatrixDiag", matrix_diag_grad},
    {"MatrixDiagPart", matrix_diag_part_grad},
    {"MatrixDiagPartV2", matrix_diag_part_grad},
    {"MatrixDiagPartV3", matrix_diag_part_grad},
    {"MatrixDiagV2", matrix_diag_grad},
    {"MatrixDiagV3", matrix_diag_grad},
    {"MatrixSetDiag", matrix_set_diag_grad},
    {"MatrixSetDiagV2", matrix_set_diag_grad},
    {"MatrixSetDiagV3", matrix_set_diag_grad},
    {0},
};
