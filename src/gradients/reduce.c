/* reduce.c: gradients of sums and other reductions, and of running sums. */
#include <float.h>

#include "gradients/rule.h"

/* int32 axes of the node, a vector without negative ones. */
static Output axes_of(Builder *b, Rule *r, Output rank) {
    Output axes = b_cast(b, b_flatten(b, rule_in(r, 1)), DT_INT32);
    return b_op2(b, "FloorMod", b_add(b, axes, rank), rank);
}

/* The shape of the input with ones where it was reduced: what the result would have with keep_dims. */
static Output kept_shape(Builder *b, Output shape, Output axes, Output rank) {
    Output ones = b_fill(b, b_shape(b, axes), b_i32(b, 1));
    return b_op(b, "DynamicStitch", (Output[]){b_range(b, b_i32(b, 0), rank), axes, shape, ones}, 4);
}

typedef struct Reduced {
    Output shape, rank, axes, kept;
} Reduced;

static Reduced reduced_of(Builder *b, Rule *r) {
    Reduced m = {.shape = rule_in_shape(r, 0)};
    m.rank = b_size(b, m.shape);
    m.axes = axes_of(b, r, m.rank);
    m.kept = kept_shape(b, m.shape, m.axes, m.rank);
    return m;
}

static Output spread(Builder *b, const Reduced *m, Output x) {
    return b_broadcast(b, b_reshape(b, x, m->kept), m->shape);
}

static void sum_grad(Builder *b, Rule *r) {
    Reduced m = reduced_of(b, r);
    rule_set(r, 0, spread(b, &m, rule_dy(r, 0)));
}

static void mean_grad(Builder *b, Rule *r) {
    Reduced m = reduced_of(b, r);
    Output count = b_prod(b, b_gather(b, m.shape, m.axes), b_i32(b, 0)), dy = rule_dy(r, 0);
    rule_set(r, 0, b_div(b, spread(b, &m, dy), b_cast(b, count, output_dtype(dy))));
}

/* Equal extremes share the gradient. */
static void extreme_grad(Builder *b, Rule *r) {
    Reduced m = reduced_of(b, r);
    Output dy = b_reshape(b, rule_dy(r, 0), m.kept), y = b_reshape(b, rule_out(r, 0), m.kept);
    Output hits = b_cast(b, b_op2(b, "Equal", y, rule_in(r, 0)), output_dtype(dy));
    Output count = b_reshape(b, b_sum(b, hits, m.axes, false), m.kept);
    rule_set(r, 0, b_mul(b, b_div(b, hits, count), dy));
}

static Output running(Builder *b, const char *op, Output x, Output axis, bool exclusive, bool reverse) {
    b_with_bool(b, "exclusive", exclusive);
    b_with_bool(b, "reverse", reverse);
    return b_op2(b, op, x, axis);
}

/* The product of all other elements, as the product of those before and those behind: right with zeros too. */
static void prod_grad(Builder *b, Rule *r) {
    Reduced m = reduced_of(b, r);
    Output zero = b_i32(b, 0);
    Node *others = b_node(b, "ListDiff", (Output[]){b_range(b, zero, m.rank), m.axes}, 2);
    Output other = output_of(others, 0), perm = b_concat2(b, m.axes, other, 0);
    Output rows = b_prod(b, b_gather(b, m.shape, m.axes), zero), columns = b_prod(b, b_gather(b, m.shape, other), zero);
    Output turned = b_transpose(b, rule_in(r, 0), perm);
    Output matrix = b_reshape(b, turned, b_pack(b, (Output[]){rows, columns}, 2));
    Output before = running(b, "Cumprod", matrix, zero, true, false),
           behind = running(b, "Cumprod", matrix, zero, true, true);
    Output rest = b_reshape_like(b, b_mul(b, b_conj(b, before), b_conj(b, behind)), turned);
    Output derivative = b_transpose(b, rest, b_op1(b, "InvertPermutation", perm));
    rule_set(r, 0, b_reshape(b, b_mul(b, spread(b, &m, rule_dy(r, 0)), derivative), m.shape));
}

static void euclidean_norm_grad(Builder *b, Rule *r) {
    Reduced m = reduced_of(b, r);
    Output dy = b_reshape(b, rule_dy(r, 0), m.kept), y = b_reshape(b, rule_out(r, 0), m.kept);
    rule_set(r, 0, b_div(b, rule_in(r, 0), b_div(b, y, dy)));
}

static void cumsum_grad(Builder *b, Rule *r) {
    rule_set(
        r, 0,
        running(b, "Cumsum", rule_dy(r, 0), rule_in(r, 1), rule_bool(b, r, "exclusive"), !rule_bool(b, r, "reverse")));
}

static void cumprod_grad(Builder *b, Rule *r) {
    bool exclusive = rule_bool(b, r, "exclusive"), reverse = rule_bool(b, r, "reverse");
    Output x = rule_in(r, 0), axis = rule_in(r, 1);
    Output sum = running(b, "Cumsum", b_mul(b, rule_out(r, 0), rule_dy(r, 0)), axis, exclusive, !reverse);
    rule_set(r, 0, b_op2(b, "DivNoNan", sum, x));
}

/* Positive and negative gradients apart, for their logarithms. */
static void cumulative_logsumexp_grad(Builder *b, Rule *r) {
    bool exclusive = rule_bool(b, r, "exclusive"), reverse = rule_bool(b, r, "reverse");
    Output x = rule_in(r, 0), axis = rule_in(r, 1), y = rule_out(r, 0), dy = rule_dy(r, 0), parts[2];
    DataType type = output_dtype(x);
    double lowest = type == DT_DOUBLE     ? -DBL_MAX
                    : type == DT_HALF     ? -65504
                    : type == DT_BFLOAT16 ? -3.3895313892515355e38
                                          : -FLT_MAX;
    for (int i = 0; i < 2; i++) {
        Output signed_dy = i ? b_neg(b, dy) : dy, zero = b_scalar(b, type, 0);
        Output log =
            b_select(b, b_op2(b, "Greater", signed_dy, zero), b_op1(b, "Log", signed_dy), b_scalar(b, type, lowest));
        Output sum = running(b, "CumulativeLogsumexp", b_sub(b, log, y), axis, exclusive, !reverse);
        parts[i] = b_op1(b, "Exp", b_add(b, sum, x));
    }
    rule_set(r, 0, b_sub(b, parts[0], parts[1]));
}

static void l2_loss_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_mul(b, rule_in(r, 0), rule_dy(r, 0)));
}

const GradientDef reduce_gradients[] = {
    {"Cumprod", cumprod_grad},
    {"Cumsum", cumsum_grad},
    {"CumulativeLogsumexp", cumulative_logsumexp_grad},
    {"EuclideanNorm", euclidean_norm_grad},
    {"L2Loss", l2_loss_grad},
    {"Max", extreme_grad},
    {"Mean", mean_grad},
    {"Min", extreme_grad},
    {"Prod", prod_grad},
    {"Sum", sum_grad},
    {0},
};
