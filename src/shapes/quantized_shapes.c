/* quantized_shapes.c: rules of ops on integers that stand for floats: those of the ops on floats, and scalars for the ranges. */
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

const ShapeRow quantized_rules[] = {
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
