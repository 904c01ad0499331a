/* schedule.c: learning rates that follow the global step. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "rill/optimizer.h"
#include "train/graph_internal.h"

static RillTensor step_f32(RillGraph *g) {
    return rill_cast(g, rill_variable_value(rill_global_step(g)), TF_FLOAT);
}

/* step / steps, as a whole number with staircase. */
static RillTensor progress(RillGraph *g, int64_t steps, bool staircase) {
    if (steps <= 0) rill_graph_fail(g, TF_INVALID_ARGUMENT, "A learning rate decays over %lld steps: at least one, please", (long long)steps);
    RillTensor p = rill_div(g, step_f32(g), rill_const_f32(g, (float)steps));
    return staircase ? rill_unary(g, "Floor", p) : p;
}

/* step / steps, at most 1. */
static RillTensor fraction(RillGraph *g, int64_t steps) {
    return rill_binary(g, "Minimum", progress(g, steps, false), rill_const_f32(g, 1));
}

RillTensor rill_decay_exponential(RillGraph *g, double rate, int64_t steps, double factor, bool staircase) {
    return rill_scale(g, rill_binary(g, "Pow", rill_const_f32(g, (float)factor), progress(g, steps, staircase)), rate);
}

RillTensor rill_decay_natural_exp(RillGraph *g, double rate, int64_t steps, double factor, bool staircase) {
    return rill_scale(g, rill_unary(g, "Exp", rill_scale(g, progress(g, steps, staircase), -factor)), rate);
}

RillTensor rill_decay_inverse_time(RillGraph *g, double rate, int64_t steps, double factor, bool staircase) {
    RillTensor below = rill_add(g, rill_const_f32(g, 1), rill_scale(g, progress(g, steps, staircase), factor));
    return rill_div(g, rill_const_f32(g, (float)rate), below);
}

RillTensor rill_decay_polynomial(RillGraph *g, double rate, int64_t steps, double end, double power) {
    RillTensor left = rill_sub(g, rill_const_f32(g, 1), fraction(g, steps));
    RillTensor shape = rill_binary(g, "Pow", left, rill_const_f32(g, (float)power));
    return rill_add(g, rill_scale(g, shape, rate - end), rill_const_f32(g, (float)end));
}

RillTensor rill_decay_cosine(RillGraph *g, double rate, int64_t steps, double alpha) {
    RillTensor wave = rill_unary(g, "Cos", rill_scale(g, fraction(g, steps), M_PI));
    RillTensor shape = rill_scale(g, rill_add(g, wave, rill_const_f32(g, 1)), 0.5);
    return rill_scale(g, rill_add(g, rill_scale(g, shape, 1 - alpha), rill_const_f32(g, (float)alpha)), rate);
}

/* The value at how many boundaries lie below the step. */
RillTensor rill_piecewise(RillGraph *g, const int64_t *boundaries, int count, const double *values) {
    float *rates = xcalloc((size_t)count + 1, sizeof *rates);
    for (int i = 0; i <= count; i++) rates[i] = (float)values[i];
    for (int i = 1; i < count; i++)
        if (boundaries[i] <= boundaries[i - 1]) rill_graph_fail(g, TF_INVALID_ARGUMENT, "Boundary %d of a learning rate, %lld, is not above the one before", i, (long long)boundaries[i]);
    RillTensor edges = rill_const(g, "boundaries", TF_INT64, (int64_t[]){count}, 1, boundaries);
    RillTensor passed = rill_cast(g, rill_binary(g, "Greater", rill_variable_value(rill_global_step(g)), edges), TF_INT32);
    RillTensor in[] = {rill_const(g, "values", TF_FLOAT, (int64_t[]){count + 1}, 1, rates), rill_reduce_sum(g, passed, (int32_t[]){0}, 1, false), rill_const_i32(g, 0)};
    free(rates);
    return rill_op(g, "GatherV2", "piecewise", in, 3, NULL, 0);
}

RillTensor rill_warm_up(RillGraph *g, RillTensor rate, int64_t steps) {
    return rill_mul(g, rate, rill_cast(g, fraction(g, steps), rill_type(rate)));
}
