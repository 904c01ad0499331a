/* quantized_shapes.c: rules of ops on integers that stand for floats: those of the ops on floats, and scalars for the ranges. */
#include "graph/uniform_window.h"
#include "shapes/rule_list.h"

static void concat_old(ShapeContext *c) {
    concat_inputs(c, 1, (c->in_count - 1) / 3, 0);
}

static void concat_v2(ShapeContext *c) {
    int n = (c->in_count - 1) / 3;
    concat_inputs(c, 0, n, n);
}

static void instance_norm(ShapeContext *c) {
    ctx_out(c, 0, c->in[0]);
}

static void max_pool(ShapeContext *c) {
    rule_max_pool(c);
    for (int i = 1; i < 3; i++) ctx_out(c, i, SHAPE_SCALAR);
}

/* Each channel may have its range; that of the results has the shape of the filter's maxima. */
static void channel_conv(ShapeContext *c) {
    int at = c->in_count - 2;
    for (int i = at; i < at + 2; i++) ctx_rank_at_most(c, c->in[i], 1);
    rule_conv2d(c);
    for (int i = 1; i < 3; i++) ctx_out(c, i, c->in[at + 1]);
}

static void narrow_channel_conv(ShapeContext *c) {
    for (int i = c->in_count - 4; i < c->in_count - 2; i++) ctx_rank_at_most(c, c->in[i], 1);
    rule_conv2d(c);
}

/* The scales and zero points of a tensor of that size along the axis are scalars, or vectors of that size. */
static void uniform_scales(ShapeContext *c, int at, int64_t size) {
    PartialShape scales = ctx_rank_at_most(c, c->in[at], 1), zeros = ctx_rank_at_most(c, c->in[at + 1], 1);
    if (scales.rank < 0 || zeros.rank < 0 || ctx_failed(c)) return;
    if (scales.rank != zeros.rank) ctx_fail(c, "scales and zero_points must have same rank.");
    if (scales.rank == 0 || ctx_failed(c)) return;
    ctx_merge_dim(c, scales.dims[0], size);
    ctx_merge_dim(c, zeros.dims[0], size);
}

static void uniform_dot(ShapeContext *c) {
    PartialShape a = ctx_in_rank(c, 0, 2), b = ctx_in_rank(c, 1, 2);
    ctx_merge_dim(c, shape_dim(a, 1), shape_dim(b, 0));
    const int64_t columns = shape_dim(b, 1);
    if (c->in_count == 8) {
        ctx_want_scalar(c, 2);
        ctx_want_scalar(c, 3);
        uniform_scales(c, 4, columns);
        uniform_scales(c, 6, columns);
    } else {
        uniform_scales(c, 2, columns);
    }
    PartialShape out = shape_unknown_dims(2);
    out.dims[0] = shape_dim(a, 0);
    out.dims[1] = columns;
    ctx_out(c, 0, out);
}

/* Only when all of both tensors is known is anything said but the rank. */
static void uniform_conv(ShapeContext *c) {
    PartialShape a = ctx_rank_at_least(c, c->in[0], 2), b = ctx_rank_at_least(c, c->in[1], 2);
    if (a.rank >= 0) b = ctx_rank(c, b, a.rank);
    if (b.rank >= 0) a = ctx_rank(c, a, b.rank);
    const bool full = c->in_count == 8;
    if (full) {
        ctx_want_scalar(c, 2);
        ctx_want_scalar(c, 3);
    }
    for (int i = full ? 4 : 2; i < c->in_count; i++) ctx_rank_at_most(c, c->in[i], 1);
    if (ctx_failed(c)) return;
    if (!shape_is_full(a) || !shape_is_full(b)) {
        ctx_out(c, 0, a.rank < 0 ? SHAPE_UNKNOWN : shape_unknown_dims(a.rank));
        return;
    }
    UniformWindow window = {0};
    WindowPlan plan = {0};
    Error *err = uniform_window_init(&window, c->node);
    if (!err) err = uniform_window_plan(&window, &a, &b, &plan);
    if (err) {
        ctx_fail(c, "%s", err->message);
        error_free(err);
        return;
    }
    const int64_t made = plan.shape.dims[plan.out[1]];
    for (int i = full ? 4 : 2; i < c->in_count; i += 2) uniform_scales(c, i, made);
    ctx_out(c, 0, plan.shape);
}

const ShapeRow quantized_rules[] = {
    {"UniformDequantize", rule_same, 0},
    {"UniformQuantize", rule_same, 0},
    {"UniformQuantizedAdd", rule_broadcast, 0},
    {"UniformQuantizedClipByValue", rule_same, 0},
    {"UniformQuantizedConvolution", uniform_conv, 0},
    {"UniformQuantizedConvolutionHybrid", uniform_conv, 0},
    {"UniformQuantizedDot", uniform_dot, 0},
    {"UniformQuantizedDotHybrid", uniform_dot, 0},
    {"UniformRequantize", rule_same, 0},
    {"QuantizeDownAndShrinkRange", 0, "S [] [] -> S [] []"},
    {"QuantizedAdd", rule_broadcast, "* * [] [] [] [] -> * [] []"},
    {"QuantizedAvgPool", rule_avg_pool, "* [] [] -> * [] []"},
    {"QuantizedBatchNormWithGlobalNormalization", 0, "[a,b,c,d] * * [d] * * [d] * * [d] * * [d] * * -> [a,b,c,d] [] []"},
    {"QuantizedBiasAdd", rule_bias_add, "* * [] [] [] [] -> * [] []"},
    {"QuantizedConcat", concat_old, "* * [] [] -> * [] []"},
    {"QuantizedConcatV2", concat_v2, "* * [] [] -> * [] []"},
    {"QuantizedConv2D", rule_conv2d, "* * [] [] [] [] -> * [] []"},
    {"QuantizedConv2DAndRelu", channel_conv, "* * [] []"},
    {"QuantizedConv2DAndReluAndRequantize", narrow_channel_conv, "* * [] [] * * [] [] -> * [] []"},
    {"QuantizedConv2DAndRequantize", rule_conv2d, "* * [] [] [] [] [] [] -> * [] []"},
    {"QuantizedConv2DPerChannel", channel_conv, "* * [] []"},
    {"QuantizedConv2DWithBias", channel_conv, "* * [?] [] []"},
    {"QuantizedConv2DWithBiasAndRelu", channel_conv, "* * [?] [] []"},
    {"QuantizedConv2DWithBiasAndReluAndRequantize", narrow_channel_conv, "* * [?] [] [] * * [] [] -> * [] []"},
    {"QuantizedConv2DWithBiasAndRequantize", narrow_channel_conv, "* * [?] [] [] * * [] [] -> * [] []"},
    {"QuantizedDepthwiseConv2D", rule_depthwise_conv2d, 0},
    {"QuantizedDepthwiseConv2DWithBias", rule_depthwise_conv2d, 0},
    {"QuantizedDepthwiseConv2DWithBiasAndRelu", rule_depthwise_conv2d, 0},
    {"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize", rule_depthwise_conv2d, 0},
    {"QuantizedInstanceNorm", instance_norm, "[?,?,?,?] [] [] -> * [] []"},
    {"QuantizedMatMul", rule_matmul, "* * [] [] [] [] -> * [] []"},
    {"QuantizedMatMulWithBias", rule_matmul, "* * [?] [] [] [] [] -> * [] []"},
    {"QuantizedMatMulWithBiasAndDequantize", rule_matmul, "* * [?] [] [] [] [] [] [] -> *"},
    {"QuantizedMatMulWithBiasAndRelu", rule_matmul, "* * [?] [] [] [] [] -> * [] []"},
    {"QuantizedMatMulWithBiasAndReluAndRequantize", rule_matmul, "* * [?] [] [] [] [] [] [] -> * [] []"},
    {"QuantizedMatMulWithBiasAndRequantize", rule_matmul, "* * [?] [] [] [] [] [] [] -> * [] []"},
    {"QuantizedMaxPool", max_pool, "* [] [] -> * [] []"},
    {"QuantizedMul", rule_broadcast, "* * * * * * -> * [] []"},
    {"QuantizedRelu", 0, "S [] [] -> S [] []"},
    {"QuantizedRelu6", 0, "S [] [] -> S [] []"},
    {"QuantizedReshape", rule_reshape, "* * [] [] -> * [] []"},
    {"QuantizedResizeBilinear", rule_resize, "* * [] [] -> * [] []"},
    {"RequantizationRange", 0, "* [] [] -> [] []"},
    {"RequantizationRangePerChannel", 0, "* [?] [?] -> [] []"},
    {"Requantize", 0, "S [] [] [] [] -> S [] []"},
    {"RequantizePerChannel", 0, "S [?] [?] [] [] -> S [] []"},
    {0},
};
