/* batch_norm.c: gradients of batch normalisation, and of its gradient. */
#include "gradients/backprop.h"
#include "gradients/rule.h"

static bool is_v3(const Rule *r) {
    return str_ends(rule_node(r)->op, STR("V3"));
}

static bool channels_first(Builder *b, Rule *r) {
    Str format = rule_string(b, r, "data_format");
    return str_is(format, "NCHW") || str_is(format, "NCDHW");
}

/* Channels last, or back again. */
static Output channels_moved(Builder *b, Rule *r, Output x, bool to_last) {
    static const int last[2][5] = {{0, 2, 3, 1}, {0, 2, 3, 4, 1}}, first[2][5] = {{0, 3, 1, 2}, {0, 4, 1, 2, 3}};
    int deep = str_is(rule_string(b, r, "data_format"), "NCDHW");
    return b_transpose(b, x, b_i32s(b, 4 + deep, to_last ? last[deep] : first[deep]));
}

/* In training the gradient op takes the statistics of the batch; else the ones that were given, and only channels last.
 */
static void batch_norm_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    bool training = rule_bool(b, r, "is_training"), moved = !training && channels_first(b, r);
    Output dy = rule_dy(r, 0), x = rule_in(r, 0);
    if (moved) {
        dy = channels_moved(b, r, dy, true);
        x = channels_moved(b, r, x, true);
    }
    Output inputs[] = {dy,
                       x,
                       rule_in(r, 1),
                       training ? rule_out(r, 3) : rule_in(r, 3),
                       training ? rule_out(r, 4) : rule_in(r, 4),
                       NO_OUTPUT};
    if (is_v3(r)) inputs[5] = rule_out(r, 5);
    if (moved) b_with_string(b, "data_format", str_is(rule_string(b, r, "data_format"), "NCHW") ? "NHWC" : "NDHWC");
    b_with_attrs_of(b, n);
    const char *op = is_v3(r)                         ? "FusedBatchNormGradV3"
                     : node_is(n, "FusedBatchNormV2") ? "FusedBatchNormGradV2"
                                                      : "FusedBatchNormGrad";
    Node *grads = b_node(b, op, inputs, is_v3(r) ? 6 : 5);
    Output dx = output_of(grads, 0);
    if (rule_wants(r, 0)) rule_set(r, 0, moved ? channels_moved(b, r, dx, false) : dx);
    if (rule_wants(r, 1)) rule_set(r, 1, output_of(grads, 1));
    if (rule_wants(r, 2)) rule_set(r, 2, output_of(grads, 2));
}

/* FusedBatchNormGrad again, of ops that can be differentiated: dx, dscale and doffset from values with channels last.
 */
static void compose(Builder *b, Rule *r, const Output *in, bool training, Output out[3]) {
    Output dy = in[0], x = in[1], scale = in[2], mean = in[3], variance = in[4];
    Output rank = b_rank(b, x), axes = b_range(b, b_i32(b, 0), b_shift(b, rank, -1));
    DataType type = output_dtype(x), inner = output_dtype(scale);
    dy = b_cast(b, dy, inner);
    x = b_cast(b, x, inner);
    double epsilon = rule_float(b, r, "epsilon");
    Output shape = b_shape(b, x), count = b_cast(b, b_prod(b, b_items(b, shape, 0, -1), b_i32(b, 0)), inner);
    if (training) {
        mean = b_div(b, b_sum(b, x, axes, false), count);
        variance = b_div(b, b_sum(b, b_square(b, b_sub(b, x, mean)), axes, false), count);
    }
    Output centred = b_sub(b, x, mean), inverse = b_op1(b, "Rsqrt", b_shift(b, variance, epsilon));
    Output doffset = b_sum(b, dy, axes, false),
           dscale = b_mul(b, b_sum(b, b_mul(b, dy, centred), axes, false), inverse);
    Output dx = dy;
    if (training) {
        Output mean_dy = b_div(b, doffset, count),
               projected =
                   b_mul(b, centred,
                         b_mul(b, b_square(b, inverse), b_div(b, b_sum(b, b_mul(b, dy, centred), axes, false), count)));
        dx = b_sub(b, b_sub(b, dy, mean_dy), projected);
    }
    out[0] = b_cast(b, b_mul(b, b_mul(b, dx, scale), inverse), type);
    out[1] = dscale;
    out[2] = doffset;
}

static void batch_norm_grad_grad(Builder *b, Rule *r) {
    bool training = rule_bool(b, r, "is_training"), moved = channels_first(b, r);
    if (r->scope->loop) {
        b_fail(b, error_unimplemented("Second gradients of batch normalisation inside of a loop"));
        return;
    }
    Output in[5], own[5], dys[3], ys[3];
    for (int i = 0; i < 5; i++) own[i] = rule_in(r, i);
    /* Identities keep the walk inside of what is composed here. */
    for (int i = 0; i < 5; i++) own[i] = in[i] = b_identity(b, own[i]);
    for (int i = 0; moved && i < 2; i++) in[i] = channels_moved(b, r, own[i], true);
    compose(b, r, in, training, ys);
    for (int i = 0; i < 3; i++) dys[i] = i || !moved ? rule_dy(r, i) : channels_moved(b, r, rule_dy(r, 0), true);
    Output xs[] = {own[0], own[1], own[2]}, found[3];
    if (b->error) return;
    b_fail(b, gradients_add(b->g, ys, 3, xs, 3, dys, b->scope.ptr, found));
    for (int i = 0; !b->error && i < 3; i++)
        if (rule_wants(r, i)) rule_set(r, i, found[i]);
}

const GradientDef batch_norm_gradients[] = {
    {"FusedBatchNorm", batch_norm_grad},
    {"FusedBatchNormGrad", batch_norm_grad_grad},
    {"FusedBatchNormGradV2", batch_norm_grad_grad},
    {"FusedBatchNormGradV3", batch_norm_grad_grad},
    {"FusedBatchNormV2", batch_norm_grad},
    {"FusedBatchNormV3", batch_norm_grad},
    {0},
};
