/* quantize.c: gradients of simulated quantisation, which pass values inside of its range. */
#include "gradients/rule.h"

static void fake_quant_args_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), x = rule_in(r, 0);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op2(b, "FakeQuantWithMinMaxArgsGradient", dy, x));
}

/* Ops on (dy, x, min, max) that give a gradient for each of the last three. */
static void by_range(Builder *b, Rule *r, const char *op) {
    Output inputs[] = {rule_dy(r, 0), rule_in(r, 0), rule_in(r, 1), rule_in(r, 2)};
    b_with_attrs_of(b, rule_node(r));
    Node *n = b_node(b, op, inputs, 4);
    for (int i = 0; i < 3; i++)
        if (rule_wants(r, i)) rule_set(r, i, output_of(n, i));
}

static void fake_quant_vars_grad(Builder *b, Rule *r) {
    by_range(b, r, "FakeQuantWithMinMaxVarsGradient");
}

static void fake_quant_channels_grad(Builder *b, Rule *r) {
    by_range(b, r, "FakeQuantWithMinMaxVarsPerChannelGradient");
}

static void straight_through(Builder *b, Rule *r) {
    (void)b;
    rule_set(r, 0, rule_dy(r, 0));
}

static void quantize_v4_grad(Builder *b, Rule *r) {
    by_range(b, r, "QuantizeAndDequantizeV4Grad");
}

/* Linear in its first input. */
static void quantize_v4_grad_grad(Builder *b, Rule *r) {
    Output inputs[] = {rule_dy(r, 0), rule_in(r, 1), rule_in(r, 2), rule_in(r, 3)};
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op(b, "QuantizeAndDequantizeV4Grad", inputs, 4));
}

const GradientDef quantize_gradients[] = {
    {"FakeQuantWithMinMaxArgs", fake_quant_args_grad},
    {"FakeQuantWithMinMaxVars", fake_quant_vars_grad},
    {"FakeQuantWithMinMaxVarsPerChannel", fake_quant_channels_grad},
    {"QuantizeAndDequantize", straight_through},
    {"QuantizeAndDequantizeV2", straight_through},
    {"QuantizeAndDequantizeV3", straight_through},
    {"QuantizeAndDequantizeV4", quantize_v4_grad},
    {"QuantizeAndDequantizeV4Grad", quantize_v4_grad_grad},
    {0},
};
