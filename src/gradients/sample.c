/* sample.c: gradients of random numbers by the parameters of their distribution. */
#include <float.h>
#include <math.h>

#include "gradients/rule.h"

static void gamma_grad(Builder *b, Rule *r, int alpha) {
    Output sample = rule_out(r, 0), slope = b_op2(b, "RandomGammaGrad", rule_in(r, alpha), sample);
    rule_set_reduced_to(b, r, alpha, b_mul(b, rule_dy(r, 0), slope), b_shape(b, sample));
}

static void random_gamma_grad(Builder *b, Rule *r) {
    gamma_grad(b, r, 1);
}

static void stateless_gamma_v2_grad(Builder *b, Rule *r) {
    gamma_grad(b, r, 2);
}

static void stateless_gamma_v3_grad(Builder *b, Rule *r) {
    gamma_grad(b, r, 4);
}

/* How much of the standard normal distribution is below x. */
static Output below(Builder *b, Output x) {
    return b_scale(b, b_op1(b, "Erfc", b_scale(b, x, -sqrt(0.5))), 0.5);
}

/* e^((sample^2 - bound^2) / 2) * share */
static Output by_bound(Builder *b, Output sample, Output bound, Output log_share) {
    return b_op1(b, "Exp", b_add(b, b_scale(b, b_sub(b, b_square(b, sample), b_square(b, bound)), 0.5), log_share));
}

/* The share of the samples below one stays when a parameter moves. By the mean and the deviation TensorFlow takes the bounds to move along. */
static void bounded_normal_grad(Builder *b, Rule *r) {
    Output x = rule_out(r, 0), dy = rule_dy(r, 0), mean = rule_in(r, 2), deviation = rule_in(r, 3);
    Output sample = b_div(b, b_sub(b, x, mean), deviation), low = b_div(b, b_sub(b, rule_in(r, 4), mean), deviation),
           high = b_div(b, b_sub(b, rule_in(r, 5), mean), deviation), shape = b_shape(b, x);
    DataType type = output_dtype(x);
    double least = type == DT_DOUBLE ? DBL_MIN : type == DT_FLOAT ? FLT_MIN : 0x1p-14, step = type == DT_DOUBLE ? DBL_EPSILON : type == DT_FLOAT ? FLT_EPSILON : 0x1p-10;
    Output share = b_div(b, b_sub(b, below(b, sample), below(b, low)), b_sub(b, below(b, high), below(b, low)));
    share = b_op2(b, "Maximum", b_op2(b, "Minimum", share, b_scalar(b, type, 1 - step)), b_scalar(b, type, least));
    rule_set_reduced_to(b, r, 2, dy, shape);
    rule_set_reduced_to(b, r, 3, b_mul(b, dy, sample), shape);
    rule_set_reduced_to(b, r, 4, b_mul(b, dy, by_bound(b, sample, low, b_op1(b, "Log1p", b_neg(b, share)))), shape);
    rule_set_reduced_to(b, r, 5, b_mul(b, dy, by_bound(b, sample, high, b_op1(b, "Log", share))), shape);
}

const GradientDef sample_gradients[] = {
    {"RandomGamma", random_gamma_grad},
    {"StatelessParameterizedTruncatedNormal", bounded_normal_grad},
    {"StatelessRandomGammaV2", stateless_gamma_v2_grad},
    {"StatelessRandomGammaV3", stateless_gamma_v3_grad},
    {0},
};
