/* binary.c: gradients of element-wise functions of two or three values, which broadcast. */
#include "gradients/rule.h"

static Output cin(Builder *b, Rule *r, int i) {
    return b_conj(b, rule_in(r, i));
}

static void add_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    rule_set_reduced(b, r, 0, rule_wants(r, 0) ? dy : NO_OUTPUT, 1, rule_wants(r, 1) ? dy : NO_OUTPUT);
}

static void sub_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    rule_set_reduced(b, r, 0, rule_wants(r, 0) ? dy : NO_OUTPUT, 1, rule_wants(r, 1) ? b_neg(b, dy) : NO_OUTPUT);
}

static void product_grad(Builder *b, Rule *r, const char *op) {
    Output dy = rule_dy(r, 0), gx = {0}, gy = {0};
    if (rule_wants(r, 0)) gx = b_op2(b, op, dy, cin(b, r, 1));
    if (rule_wants(r, 1)) gy = b_op2(b, op, cin(b, r, 0), dy);
    rule_set_reduced(b, r, 0, gx, 1, gy);
}

static void mul_grad(Builder *b, Rule *r) {
    product_grad(b, r, "Mul");
}

static void mul_no_nan_grad(Builder *b, Rule *r) {
    product_grad(b, r, "MulNoNan");
}

static void quotient_grad(Builder *b, Rule *r, const char *op) {
    Output dy = rule_dy(r, 0), y = cin(b, r, 1), gx = {0}, gy = {0};
    if (rule_wants(r, 0)) gx = b_op2(b, op, dy, y);
    if (rule_wants(r, 1)) gy = b_mul(b, dy, b_op2(b, op, b_op2(b, op, b_neg(b, cin(b, r, 0)), y), y));
    rule_set_reduced(b, r, 0, gx, 1, gy);
}

static void div_grad(Builder *b, Rule *r) {
    quotient_grad(b, r, "RealDiv");
}

static void div_no_nan_grad(Builder *b, Rule *r) {
    quotient_grad(b, r, "DivNoNan");
}

static void floor_mod_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), gx = {0}, gy = {0};
    if (rule_wants(r, 0)) gx = dy;
    if (rule_wants(r, 1)) gy = b_mul(b, dy, b_neg(b, b_op2(b, "FloorDiv", rule_in(r, 0), rule_in(r, 1))));
    rule_set_reduced(b, r, 0, gx, 1, gy);
}

/* The logarithm of the base is taken as 0 where it is not defined: below 0 for real bases, at 0 for complex ones. */
static void pow_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), x = cin(b, r, 0), y = cin(b, r, 1), gx = {0}, gy = {0};
    if (rule_wants(r, 0)) gx = b_mul(b, b_mul(b, dy, y), b_op2(b, "Pow", x, b_shift(b, y, -1)));
    if (rule_wants(r, 1)) {
        bool is_complex = dtype_is_complex(output_dtype(x));
        Output mask = b_op2(b, is_complex ? "NotEqual" : "Greater", x, b_scalar(b, output_dtype(x), 0));
        Output safe = b_select(b, mask, x, b_ones_like(b, x));
        Output log = b_select(b, mask, b_op1(b, "Log", safe), b_zeros_like(b, x));
        gy = b_mul(b, b_mul(b, dy, b_conj(b, rule_out(r, 0))), log);
    }
    rule_set_reduced(b, r, 0, gx, 1, gy);
}

/* Of equal values the first one gets the gradient. */
static void extreme_grad(Builder *b, Rule *r, const char *compare) {
    Output dy = rule_dy(r, 0), mask = b_op2(b, compare, rule_in(r, 0), rule_in(r, 1)),
           zero = b_scalar(b, output_dtype(dy), 0), gx = {0}, gy = {0};
    if (rule_wants(r, 0)) gx = b_select(b, mask, dy, zero);
    if (rule_wants(r, 1)) gy = b_select(b, mask, zero, dy);
    rule_set_reduced(b, r, 0, gx, 1, gy);
}

static void maximum_grad(Builder *b, Rule *r) {
    extreme_grad(b, r, "GreaterEqual");
}

static void minimum_grad(Builder *b, Rule *r) {
    extreme_grad(b, r, "LessEqual");
}

static void squared_difference_grad(Builder *b, Rule *r) {
    Output g = b_mul(b, b_scale(b, rule_dy(r, 0), 2), b_sub(b, rule_in(r, 0), rule_in(r, 1)));
    rule_set_reduced(b, r, 0, rule_wants(r, 0) ? g : NO_OUTPUT, 1, rule_wants(r, 1) ? b_neg(b, g) : NO_OUTPUT);
}

static void atan2_grad(Builder *b, Rule *r) {
    Output y = rule_in(r, 0), x = rule_in(r, 1);
    Output scaled = b_div(b, rule_dy(r, 0), b_add(b, b_square(b, y), b_square(b, x)));
    rule_set_reduced(b, r, 0, b_mul(b, x, scaled), 1, b_mul(b, b_neg(b, y), scaled));
}

/* x log y and its like: where x is 0 everything is. */
static Output not_zero(Builder *b, Output x) {
    return b_cast(b, b_op2(b, "NotEqual", x, b_scalar(b, output_dtype(x), 0)), output_dtype(x));
}

static void xlogy_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0), y = rule_in(r, 1), dy = rule_dy(r, 0);
    Output gx = b_mul(b, b_op2(b, "Xlogy", not_zero(b, x), y), dy), gy = b_mul(b, b_op2(b, "Xdivy", x, y), dy);
    rule_set_reduced(b, r, 0, gx, 1, gy);
}

static void xlog1py_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0), y = rule_in(r, 1), dy = rule_dy(r, 0);
    Output gx = b_mul(b, b_op2(b, "Xlog1py", not_zero(b, x), y), dy),
           gy = b_mul(b, b_op2(b, "Xdivy", x, b_shift(b, y, 1)), dy);
    rule_set_reduced(b, r, 0, gx, 1, gy);
}

static void xdivy_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0), y = rule_in(r, 1), dy = rule_dy(r, 0);
    Output gx = b_mul(b, b_op2(b, "Xdivy", not_zero(b, x), y), dy);
    Output gy = b_mul(b, b_op2(b, "Xdivy", b_neg(b, x), b_square(b, y)), dy);
    rule_set_reduced(b, r, 0, gx, 1, gy);
}

/* exp((a-1) log x - x - log gamma(a)) */
static Output gamma_density(Builder *b, Output a, Output x) {
    Output power = b_mul(b, b_shift(b, a, -1), b_op1(b, "Log", x));
    return b_op1(b, "Exp", b_sub(b, b_sub(b, power, x), b_op1(b, "Lgamma", a)));
}

static void igamma_grad(Builder *b, Rule *r) {
    Output a = rule_in(r, 0), x = rule_in(r, 1), dy = rule_dy(r, 0), ga = {0}, gx = {0};
    if (rule_wants(r, 0)) ga = b_mul(b, b_op2(b, "IgammaGradA", a, x), dy);
    if (rule_wants(r, 1)) gx = b_mul(b, gamma_density(b, a, x), dy);
    rule_set_reduced(b, r, 0, ga, 1, gx);
}

static void igammac_grad(Builder *b, Rule *r) {
    Output a = rule_in(r, 0), x = rule_in(r, 1), dy = b_neg(b, rule_dy(r, 0)), ga = {0}, gx = {0};
    if (rule_wants(r, 0)) ga = b_mul(b, b_op2(b, "IgammaGradA", a, x), dy);
    if (rule_wants(r, 1)) gx = b_mul(b, gamma_density(b, a, x), dy);
    rule_set_reduced(b, r, 0, ga, 1, gx);
}

static void betainc_grad(Builder *b, Rule *r) {
    Output p = rule_in(r, 0), q = rule_in(r, 1), x = rule_in(r, 2);
    if (!rule_wants(r, 2)) return;
    Output log_beta =
        b_sub(b, b_add(b, b_op1(b, "Lgamma", p), b_op1(b, "Lgamma", q)), b_op1(b, "Lgamma", b_add(b, p, q)));
    Output tail = b_mul(b, b_shift(b, q, -1), b_op1(b, "Log1p", b_neg(b, x)));
    Output head = b_op2(b, "Xlogy", b_shift(b, p, -1), x);
    Output density = b_op1(b, "Exp", b_sub(b, b_add(b, tail, head), log_beta));
    rule_set_reduced(b, r, 0, NO_OUTPUT, 2, b_mul(b, density, rule_dy(r, 0)));
}

static void zeta_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0), q = rule_in(r, 1);
    if (!rule_wants(r, 1)) return;
    Output slope = b_mul(b, b_neg(b, x), b_op2(b, "Zeta", b_shift(b, x, 1), q));
    rule_set_reduced(b, r, 0, NO_OUTPUT, 1, b_mul(b, slope, rule_dy(r, 0)));
}

static void polygamma_grad(Builder *b, Rule *r) {
    if (!rule_wants(r, 1)) return;
    Output slope = b_op2(b, "Polygamma", b_shift(b, rule_in(r, 0), 1), rule_in(r, 1));
    rule_set_reduced(b, r, 0, NO_OUTPUT, 1, b_mul(b, slope, rule_dy(r, 0)));
}

static void next_after_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    rule_set_reduced(b, r, 0, rule_wants(r, 0) ? dy : NO_OUTPUT, 1, rule_wants(r, 1) ? b_zeros_like(b, dy) : NO_OUTPUT);
}

static void cross_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    if (rule_wants(r, 0)) rule_set(r, 0, b_op2(b, "Cross", rule_in(r, 1), dy));
    if (rule_wants(r, 1)) rule_set(r, 1, b_op2(b, "Cross", dy, rule_in(r, 0)));
}

static void select_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), zeros = b_zeros_like(b, dy), condition = rule_in(r, 0);
    if (rule_wants(r, 1)) rule_set(r, 1, b_op3(b, "Select", condition, dy, zeros));
    if (rule_wants(r, 2)) rule_set(r, 2, b_op3(b, "Select", condition, zeros, dy));
}

static void select_v2_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), condition = rule_in(r, 0), zero = b_scalar(b, output_dtype(dy), 0),
           shape = b_shape(b, dy);
    if (rule_wants(r, 1)) rule_set_reduced_to(b, r, 1, b_select(b, condition, dy, zero), shape);
    if (rule_wants(r, 2)) rule_set_reduced_to(b, r, 2, b_select(b, condition, zero, dy), shape);
}

static void clip_by_value_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0), low = rule_in(r, 1), high = rule_in(r, 2), dy = rule_dy(r, 0), shape = b_shape(b, dy);
    Output below = b_op2(b, "Less", x, low), above = b_op2(b, "Greater", x, high),
           zero = b_scalar(b, output_dtype(dy), 0);
    if (rule_wants(r, 0)) rule_set(r, 0, b_select(b, b_op2(b, "LogicalOr", below, above), zero, dy));
    if (rule_wants(r, 1)) rule_set_reduced_to(b, r, 1, b_select(b, below, dy, zero), shape);
    if (rule_wants(r, 2)) rule_set_reduced_to(b, r, 2, b_select(b, above, dy, zero), shape);
}

static void add_n_grad(Builder *b, Rule *r) {
    (void)b;
    Gradient dy = rule_sparse_dy(r, 0);
    for (int i = 0; i < rule_node(r)->input_count; i++)
        if (rule_wants(r, i)) rule_set_sparse(r, i, dy.values, dy.indices, dy.dense_shape);
}

const GradientDef binary_gradients[] = {
    {"AccumulateNV2", add_n_grad},
    {"Add", add_grad},
    {"AddN", add_n_grad},
    {"AddV2", add_grad},
    {"Atan2", atan2_grad},
    {"Betainc", betainc_grad},
    {"ClipByValue", clip_by_value_grad},
    {"Cross", cross_grad},
    {"Div", div_grad},
    {"DivNoNan", div_no_nan_grad},
    {"FloorMod", floor_mod_grad},
    {"Igamma", igamma_grad},
    {"Igammac", igammac_grad},
    {"Maximum", maximum_grad},
    {"Minimum", minimum_grad},
    {"Mul", mul_grad},
    {"MulNoNan", mul_no_nan_grad},
    {"NextAfter", next_after_grad},
    {"Polygamma", polygamma_grad},
    {"Pow", pow_grad},
    {"RealDiv", div_grad},
    {"Select", select_grad},
    {"SelectV2", select_v2_grad},
    {"SquaredDifference", squared_difference_grad},
    {"Sub", sub_grad},
    {"Xdivy", xdivy_grad},
    {"Xlog1py", xlog1py_grad},
    {"Xlogy", xlogy_grad},
    {"Zeta", zeta_grad},
    {0},
};
