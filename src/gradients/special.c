/* special.c: gradients of Bessel functions, of integrals, and of the dilogarithm. */
#include <math.h>

#include "gradients/rule.h"

static void set_scaled(Builder *b, Rule *r, Output derivative) {
    rule_set(r, 0, b_mul(b, rule_dy(r, 0), derivative));
}

static void i0_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "BesselI1", rule_in(r, 0)));
}

static void j0_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_neg(b, b_op1(b, "BesselJ1", rule_in(r, 0))));
}

static void k0_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_neg(b, b_op1(b, "BesselK1", rule_in(r, 0))));
}

static void y0_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_neg(b, b_op1(b, "BesselY1", rule_in(r, 0))));
}

static void k0e_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_sub(b, rule_out(r, 0), b_op1(b, "BesselK1e", rule_in(r, 0))));
}

/* f(x) - y / x, and `at_zero` there. */
static void first_order(Builder *b, Rule *r, const char *zeroth, double at_zero) {
    Output x = rule_in(r, 0);
    Output is_zero = b_op2(b, "Equal", x, b_zeros_like(b, x)), safe = b_select(b, is_zero, b_ones_like(b, x), x);
    Output derivative = b_sub(b, b_op1(b, zeroth, safe), b_div(b, rule_out(r, 0), safe));
    set_scaled(b, r, b_select(b, is_zero, b_scalar(b, output_dtype(x), at_zero), derivative));
}

/* TensorFlow takes 1 at 0, where the true value is 0.5. */
static void i1_grad(Builder *b, Rule *r) {
    first_order(b, r, "BesselI0", 1);
}

static void j1_grad(Builder *b, Rule *r) {
    first_order(b, r, "BesselJ0", 0.5);
}

static void y1_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0);
    set_scaled(b, r, b_sub(b, b_op1(b, "BesselY0", x), b_div(b, rule_out(r, 0), x)));
}

static void k1_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0);
    set_scaled(b, r, b_sub(b, b_neg(b, b_op1(b, "BesselK0", x)), b_div(b, rule_out(r, 0), x)));
}

static void k1e_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0), shrunk = b_mul(b, rule_out(r, 0), b_from(b, 1, b_op1(b, "Reciprocal", x)));
    set_scaled(b, r, b_sub(b, shrunk, b_op1(b, "BesselK0e", x)));
}

static void dawsn_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_from(b, 1, b_scale(b, b_mul(b, rule_in(r, 0), rule_out(r, 0)), 2)));
}

static void expint_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0);
    set_scaled(b, r, b_div(b, b_op1(b, "Exp", x), x));
}

static void fresnel_cos_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Cos", b_scale(b, b_square(b, rule_in(r, 0)), M_PI_2)));
}

static void fresnel_sin_grad(Builder *b, Rule *r) {
    set_scaled(b, r, b_op1(b, "Sin", b_scale(b, b_square(b, rule_in(r, 0)), M_PI_2)));
}

/* log(x) / (1 - x), and its limit at 1. */
static void spence_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0), one = b_ones_like(b, x);
    Output is_one = b_op2(b, "Equal", x, one), safe = b_select(b, is_one, b_scale(b, one, 2), x);
    Output derivative = b_div(b, b_op1(b, "Log", safe), b_from(b, 1, safe));
    set_scaled(b, r, b_select(b, is_one, b_neg(b, one), derivative));
}

const GradientDef special_gradients[] = {
    {"BesselI0", i0_grad}, {"BesselI1", i1_grad}, {"BesselJ0", j0_grad}, {"BesselJ1", j1_grad}, {"BesselK0", k0_grad}, {"BesselK0e", k0e_grad},
    {"BesselK1", k1_grad}, {"BesselK1e", k1e_grad}, {"BesselY0", y0_grad}, {"BesselY1", y1_grad}, {"Dawsn", dawsn_grad}, {"Expint", expint_grad},
    {"FresnelCos", fresnel_cos_grad}, {"FresnelSin", fresnel_sin_grad}, {"Spence", spence_grad},
    {0},
};
