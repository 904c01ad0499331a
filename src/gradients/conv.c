/* conv.c: gradients of convolutions and pools, and of their gradients. */
#include "gradients/rule.h"

/* A convolution y = x * w, and what computes its gradients: all three take the same attributes. */
typedef struct ConvOps {
    const char *forward, *by_input, *by_filter;
} ConvOps;

static const ConvOps conv_ops[] = {
    {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"},
    {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"},
    {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"},
};

static const ConvOps *ops_of(const Rule *r) {
    Str op = rule_node(r)->op;
    for (size_t i = 0; i < sizeof conv_ops / sizeof *conv_ops; i++)
        if (str_is(op, conv_ops[i].forward) || str_is(op, conv_ops[i].by_input) || str_is(op, conv_ops[i].by_filter))
            return &conv_ops[i];
    return &conv_ops[0];
}

static Output forward(Builder *b, Rule *r, Output x, Output w) {
    b_with_attrs_of(b, rule_node(r));
    return b_op2(b, ops_of(r)->forward, x, w);
}

static Output by_input(Builder *b, Rule *r, Output shape, Output w, Output dy) {
    b_with_attrs_of(b, rule_node(r));
    return b_op3(b, ops_of(r)->by_input, shape, w, dy);
}

static Output by_filter(Builder *b, Rule *r, Output x, Output shape, Output dy) {
    b_with_attrs_of(b, rule_node(r));
    return b_op3(b, ops_of(r)->by_filter, x, shape, dy);
}

static void conv_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    if (rule_wants(r, 0)) rule_set(r, 0, by_input(b, r, rule_in_shape(r, 0), rule_in(r, 1), dy));
    if (rule_wants(r, 1)) rule_set(r, 1, by_filter(b, r, rule_in(r, 0), rule_in_shape(r, 1), dy));
}

/* (shape, filter, dy) -> dx */
static void conv_input_grad(Builder *b, Rule *r) {
    Output ddx = rule_dy(r, 0);
    if (rule_wants(r, 1)) rule_set(r, 1, by_filter(b, r, ddx, rule_in_shape(r, 1), rule_in(r, 2)));
    if (rule_wants(r, 2)) rule_set(r, 2, forward(b, r, ddx, rule_in(r, 1)));
}

/* (x, shape, dy) -> dfilter */
static void conv_filter_grad(Builder *b, Rule *r) {
    Output ddw = rule_dy(r, 0);
    if (rule_wants(r, 0)) rule_set(r, 0, by_input(b, r, rule_in_shape(r, 0), ddw, rule_in(r, 2)));
    if (rule_wants(r, 2)) rule_set(r, 2, forward(b, r, rule_in(r, 0), ddw));
}

static void dilation_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0), w = rule_in(r, 1), dy = rule_dy(r, 0);
    static const char *const parts[] = {"Dilation2DBackpropInput", "Dilation2DBackpropFilter"};
    for (int i = 0; i < 2; i++) {
        if (!rule_wants(r, i)) continue;
        b_with_attrs_of(b, rule_node(r));
        rule_set(r, i, b_op3(b, parts[i], x, w, dy));
    }
}

/* ---- Pools ---- */

static void avg_pool_grad(Builder *b, Rule *r) {
    Output shape = rule_in_shape(r, 0), dy = rule_dy(r, 0);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op2(b, node_is(rule_node(r), "AvgPool3D") ? "AvgPool3DGrad" : "AvgPoolGrad", shape, dy));
}

static void fractional_max_pool_grad(Builder *b, Rule *r) {
    Output in = rule_in(r, 0), out = rule_out(r, 0), dy = rule_dy(r, 0), rows = rule_out(r, 1), cols = rule_out(r, 2);
    b_with_bool(b, "overlapping", rule_bool(b, r, "overlapping"));
    rule_set(r, 0, b_op5(b, "FractionalMaxPoolGrad", in, out, dy, rows, cols));
}

static void fractional_avg_pool_grad(Builder *b, Rule *r) {
    Output shape = b_cast(b, rule_in_shape(r, 0), DT_INT64), dy = rule_dy(r, 0), rows = rule_out(r, 1), cols = rule_out(r, 2);
    b_with_bool(b, "overlapping", rule_bool(b, r, "overlapping"));
    rule_set(r, 0, b_op4(b, "FractionalAvgPoolGrad", shape, dy, rows, cols));
}

static void avg_pool_grad_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 1, b_op1(b, node_is(rule_node(r), "AvgPool3DGrad") ? "AvgPool3D" : "AvgPool", dy));
}

static void max_pool_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0), y = rule_out(r, 0), dy = rule_dy(r, 0);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op3(b, node_is(rule_node(r), "MaxPool3D") ? "MaxPool3DGrad" : "MaxPoolGrad", x, y, dy));
}

static void max_pool_v2_grad(Builder *b, Rule *r) {
    Output inputs[] = {rule_in(r, 0), rule_out(r, 0), rule_dy(r, 0), rule_in(r, 1), rule_in(r, 2)};
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op(b, "MaxPoolGradV2", inputs, 5));
}

static void max_pool_argmax_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0), dy = rule_dy(r, 0), where = rule_out(r, 1);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op3(b, "MaxPoolGradWithArgmax", x, dy, where));
}

/* (x, y, dy) -> dx, linear in dy: what flows back to it is taken from where the maxima were. */
static void max_pool_grad_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    Output inputs[5] = {rule_in(r, 0), rule_in(r, 1), rule_dy(r, 0)};
    for (int i = 3; i < n->input_count && i < 5; i++) inputs[i] = rule_in(r, i);
    const char *op = node_is(n, "MaxPool3DGrad")   ? "MaxPool3DGradGrad"
                     : node_is(n, "MaxPoolGradV2") ? "MaxPoolGradGradV2"
                                                   : "MaxPoolGradGrad";
    for (int i = 0; i < 2; i++)
        if (rule_wants(r, i)) rule_set(r, i, b_zeros_like(b, inputs[i]));
    b_with_attrs_of(b, n);
    if (rule_wants(r, 2)) rule_set(r, 2, b_op(b, op, inputs, n->input_count));
    b->like = NULL;
}

/* (x, y, ddx) -> ddy, linear in ddx */
static void max_pool_grad_grad_grad(Builder *b, Rule *r) {
    Output inputs[] = {rule_in(r, 0), rule_in(r, 1), rule_dy(r, 0)};
    for (int i = 0; i < 2; i++)
        if (rule_wants(r, i)) rule_set(r, i, b_zeros_like(b, inputs[i]));
    b_with_attrs_of(b, rule_node(r));
    if (rule_wants(r, 2))
        rule_set(r, 2,
                 b_op(b, node_is(rule_node(r), "MaxPool3DGradGrad") ? "MaxPool3DGrad" : "MaxPoolGrad", inputs, 3));
    b->like = NULL;
}

const GradientDef conv_gradients[] = {
    {"AvgPool", avg_pool_grad},
    {"AvgPool3D", avg_pool_grad},
    {"AvgPool3DGrad", avg_pool_grad_grad},
    {"AvgPoolGrad", avg_pool_grad_grad},
    {"Conv2D", conv_grad},
    {"Conv2DBackpropFilter", conv_filter_grad},
    {"Conv2DBackpropInput", conv_input_grad},
    {"Conv3D", conv_grad},
    {"Conv3DBackpropFilterV2", conv_filter_grad},
    {"Conv3DBackpropInputV2", conv_input_grad},
    {"DepthwiseConv2dNative", conv_grad},
    {"DepthwiseConv2dNativeBackpropFilter", conv_filter_grad},
    {"DepthwiseConv2dNativeBackpropInput", conv_input_grad},
    {"Dilation2D", dilation_grad},
    {"FractionalAvgPool", fractional_avg_pool_grad},
    {"FractionalMaxPool", fractional_max_pool_grad},
    {"MaxPool", max_pool_grad},
    {"MaxPool3D", max_pool_grad},
    {"MaxPool3DGrad", max_pool_grad_grad},
    {"MaxPool3DGradGrad", max_pool_grad_grad_grad},
    {"MaxPoolGrad", max_pool_grad_grad},
    {"MaxPoolGradGrad", max_pool_grad_grad_grad},
    {"MaxPoolGradV2", max_pool_grad_grad},
    {"MaxPoolV2", max_pool_v2_grad},
    {"MaxPoolWithArgmax", max_pool_argmax_grad},
    {0},
};
