/* unary.c: gradients of functions of one value. */
#include <math.h>

#include "gradients/rule.h"

/* dx = dy times the derivative, conjugated for complex numbers. */
static void set_scaled(Builder *b, Rule *r, Output derivative) {
    rule_set(r, 0, b_mul(b, rule_dy(r, 0), derivative));
}

static Output x_of(Builder *b, Rule *r) {
    return b_conj(b, rule_in(r, 0));
}

static Output y_of(Builder *b, Rule *r) {
    return b_conj(b, rule_out(r, 0));
}

static Output one_minus_square(Builder *b, Output x) {
    return b_from(b, 1, b_square(b, x));
}

static void abs_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Sign", rule_in(r, 0)));
}

static Output as_complex(Builder *b, Output real, Output imaginary) {
    b_with_type(b, "Tout", output_dtype(real) == DT_DOUBLE ? DT_COMPLEX128 : DT_COMPLEX64);
    return b_op2(b, "Complex", real, imaginary);
}

static Output real_as_complex(Builder *b, Output real) {
    return as_complex(b, real, b_zeros_like(b, real));
}

static void complex_abs_grad(Builder *b, Rule *r) {
    Output dy = real_as_complex(b, rule_dy(r, 0)), y = real_as_complex(b, rule_out(r, 0));
    rule_set(r, 0, b_op2(b, "DivNoNan", b_mul(b, dy, rule_in(r, 0)), y));
}

static Output part(Builder *b, const char *op, Output x) {
    b_with_type(b, "Tout", output_dtype(x) == DT_COMPLEX128 ? DT_DOUBLE : DT_FLOAT);
    return b_op1(b, op, x);
}

static void angle_grad(Builder *b, Rule *r) {
    Output z = rule_in(r, 0);
    Output turned = as_complex(b, part(b, "Imag", z), part(b, "Real", z));
    Output dy = real_as_complex(b, rule_dy(r, 0));
    rule_set(r, 0, b_neg(b, b_mul(b, dy, b_op1(b, "Reciprocal", turned))));
}

static void real_grad(Builder *b, Rule *r) {
    rule_set(r, 0, real_as_complex(b, rule_dy(r, 0)));
}

static void imag_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    rule_set(r, 0, as_complex(b, b_zeros_like(b, dy), dy));
}

static void complex_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    rule_set_reduced(b, r, 0, part(b, "Real", dy), 1, part(b, "Imag", dy));
}

static void conj_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_conj(b, rule_dy(r, 0)));
}

static void neg_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_neg(b, rule_dy(r, 0)));
}

static void square_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_scale(b, x_of(b, r), 2));
}

static void exp_grad(Builder *b, Rule *r) {
    set_scaled(b, r, y_of(b, r));
}

static void expm1_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Exp", x_of(b, r)));
}

static void log_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Reciprocal", x_of(b, r)));
}

static void log1p_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Reciprocal", b_shift(b, x_of(b, r), 1)));
}

static void sinh_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Cosh", x_of(b, r)));
}

static void cosh_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Sinh", x_of(b, r)));
}

static void asinh_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_div(b, rule_dy(r, 0), b_op1(b, "Cosh", y_of(b, r))));
}

static void acosh_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_div(b, rule_dy(r, 0), b_op1(b, "Sinh", y_of(b, r))));
}

static void atanh_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Reciprocal", one_minus_square(b, x_of(b, r))));
}

static void sin_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Cos", x_of(b, r)));
}

static void cos_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_neg(b, b_op1(b, "Sin", x_of(b, r))));
}

static void tan_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_square(b, b_op1(b, "Reciprocal", b_op1(b, "Cos", x_of(b, r)))));
}

static void asin_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Reciprocal", b_op1(b, "Sqrt", one_minus_square(b, x_of(b, r)))));
}

static void acos_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_neg(b, b_op1(b, "Reciprocal", b_op1(b, "Sqrt", one_minus_square(b, x_of(b, r))))));
}

static void atan_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Reciprocal", b_shift(b, b_square(b, x_of(b, r)), 1)));
}

/* ---- Ops that have their own gradient op, of the result and its gradient; those can be differentiated again ---- */

static void by_result(Builder *b, Rule *r, const char *op) {
    rule_set(r, 0, b_op2(b, op, rule_out(r, 0), rule_dy(r, 0)));
}

static void sqrt_grad(Builder *b, Rule *r) {
    by_result(b, r, "SqrtGrad");
}

static void rsqrt_grad(Builder *b, Rule *r) {
    by_result(b, r, "RsqrtGrad");
}

static void reciprocal_grad(Builder *b, Rule *r) {
    by_result(b, r, "ReciprocalGrad");
}

static void tanh_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_op2(b, "TanhGrad", y_of(b, r), rule_dy(r, 0)));
}

static void sigmoid_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_op2(b, "SigmoidGrad", y_of(b, r), rule_dy(r, 0)));
}

static void reciprocal_grad_grad(Builder *b, Rule *r) {
    Output y = x_of(b, r), dy = rule_dy(r, 0);
    if (rule_wants(r, 0)) rule_set(r, 0, b_mul(b, b_mul(b, b_scale(b, b_conj(b, dy), -2), rule_in(r, 1)), y));
    if (rule_wants(r, 1)) rule_set(r, 1, b_op2(b, "ReciprocalGrad", y, dy));
}

static void sqrt_grad_grad(Builder *b, Rule *r) {
    Output scaled = b_div(b, rule_dy(r, 0), rule_in(r, 0));
    if (rule_wants(r, 0)) rule_set(r, 0, b_mul(b, b_neg(b, b_conj(b, scaled)), rule_out(r, 0)));
    if (rule_wants(r, 1)) rule_set(r, 1, b_scale(b, scaled, 0.5));
}

static void rsqrt_grad_grad(Builder *b, Rule *r) {
    Output y = x_of(b, r), dy = rule_dy(r, 0);
    if (rule_wants(r, 0))
        rule_set(r, 0, b_mul(b, b_mul(b, b_scale(b, b_conj(b, dy), -1.5), rule_in(r, 1)), b_square(b, y)));
    if (rule_wants(r, 1)) rule_set(r, 1, b_op2(b, "RsqrtGrad", y, dy));
}

static void tanh_grad_grad(Builder *b, Rule *r) {
    Output y = x_of(b, r), dy = rule_dy(r, 0);
    if (rule_wants(r, 0)) rule_set(r, 0, b_mul(b, b_mul(b, b_scale(b, dy, -2), b_conj(b, rule_in(r, 1))), y));
    if (rule_wants(r, 1)) rule_set(r, 1, b_op2(b, "TanhGrad", y, dy));
}

static void sigmoid_grad_grad(Builder *b, Rule *r) {
    Output y = x_of(b, r), dy = rule_dy(r, 0);
    Output both = b_mul(b, dy, b_conj(b, rule_in(r, 1)));
    if (rule_wants(r, 0)) rule_set(r, 0, b_sub(b, both, b_mul(b, b_scale(b, both, 2), y)));
    if (rule_wants(r, 1)) rule_set(r, 1, b_op2(b, "SigmoidGrad", y, dy));
}

/* ---- Special functions ---- */

static void set_scaled_exp(Builder *b, Rule *r, double factor, Output exponent) {
    set_scaled(b, r, b_scale(b, b_op1(b, "Exp", exponent), factor));
}

static void erf_grad(Builder *b, Rule *r) {
    set_scaled_exp(b, r, M_2_SQRTPI, b_neg(b, b_square(b, x_of(b, r))));
}

static void erfc_grad(Builder *b, Rule *r) {
    set_scaled_exp(b, r, -M_2_SQRTPI, b_neg(b, b_square(b, x_of(b, r))));
}

static void erfinv_grad(Builder *b, Rule *r) {
    set_scaled_exp(b, r, sqrt(M_PI) / 2, b_square(b, rule_out(r, 0)));
}

static void ndtri_grad(Builder *b, Rule *r) {
    set_scaled_exp(b, r, sqrt(2 * M_PI), b_scale(b, b_square(b, rule_out(r, 0)), 0.5));
}

static void lgamma_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Digamma", x_of(b, r)));
}

static void digamma_grad(Builder *b, Rule *r) {
    Output x = x_of(b, r);
    set_scaled(b, r, b_op2(b, "Polygamma", b_ones_like(b, x), x));
}

static void bessel_i0e_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0);
    set_scaled(b, r, b_sub(b, b_op1(b, "BesselI1e", x), b_mul(b, b_op1(b, "Sign", x), rule_out(r, 0))));
}

/* At 0 the derivative is 0.5; the formula divides by x. */
static void bessel_i1e_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0);
    Output is_zero = b_op2(b, "Equal", x, b_zeros_like(b, x)), safe = b_select(b, is_zero, b_ones_like(b, x), x);
    Output slope = b_add(b, b_op1(b, "Sign", x), b_op1(b, "Reciprocal", safe));
    Output derivative = b_sub(b, b_op1(b, "BesselI0e", safe), b_mul(b, rule_out(r, 0), slope));
    set_scaled(b, r, b_select(b, is_zero, b_scalar(b, output_dtype(x), 0.5), derivative));
}

/* ---- Types, and functions that are flat almost everywhere ---- */

static void cast_grad(Builder *b, Rule *r) {
    DataType from = rule_type(b, r, "SrcT");
    if (dtype_is_float(from) || dtype_is_complex(from)) rule_set(r, 0, b_cast(b, rule_dy(r, 0), from));
}

static void sign_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_zeros_like(b, rule_in(r, 0)));
}

const GradientDef unary_gradients[] = {
    {"Abs", abs_grad},
    {"Acos", acos_grad},
    {"Acosh", acosh_grad},
    {"Angle", angle_grad},
    {"Asin", asin_grad},
    {"Asinh", asinh_grad},
    {"Atan", atan_grad},
    {"Atanh", atanh_grad},
    {"BesselI0e", bessel_i0e_grad},
    {"BesselI1e", bessel_i1e_grad},
    {"Cast", cast_grad},
    {"Complex", complex_grad},
    {"ComplexAbs", complex_abs_grad},
    {"Conj", conj_grad},
    {"Cos", cos_grad},
    {"Cosh", cosh_grad},
    {"Digamma", digamma_grad},
    {"Erf", erf_grad},
    {"Erfc", erfc_grad},
    {"Erfinv", erfinv_grad},
    {"Exp", exp_grad},
    {"Expm1", expm1_grad},
    {"Imag", imag_grad},
    {"Inv", reciprocal_grad},
    {"InvGrad", reciprocal_grad_grad},
    {"Lgamma", lgamma_grad},
    {"Log", log_grad},
    {"Log1p", log1p_grad},
    {"Ndtri", ndtri_grad},
    {"Neg", neg_grad},
    {"Real", real_grad},
    {"Reciprocal", reciprocal_grad},
    {"ReciprocalGrad", reciprocal_grad_grad},
    {"Rsqrt", rsqrt_grad},
    {"RsqrtGrad", rsqrt_grad_grad},
    {"Sigmoid", sigmoid_grad},
    {"SigmoidGrad", sigmoid_grad_grad},
    {"Sign", sign_grad},
    {"Sin", sin_grad},
    {"Sinh", sinh_grad},
    {"Sqrt", sqrt_grad},
    {"SqrtGrad", sqrt_grad_grad},
    {"Square", square_grad},
    {"Tan", tan_grad},
    {"Tanh", tanh_grad},
    {"TanhGrad", tanh_grad_grad},
    {0},
};
