/* nn.c: gradients of activations, biases, softmax and the losses on it. */
#include <stdlib.h>

#include "gradients/rule.h"

/* Ops whose gradient op takes dy and the result (or the input) of the op. */
static void by_op(Builder *b, Rule *r, const char *op, Output value) {
    Output dy = rule_dy(r, 0);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op2(b, op, dy, value));
}

static void relu_grad(Builder *b, Rule *r) {
    by_op(b, r, "ReluGrad", rule_out(r, 0));
}

static void relu6_grad(Builder *b, Rule *r) {
    by_op(b, r, "Relu6Grad", rule_out(r, 0));
}

static void elu_grad(Builder *b, Rule *r) {
    by_op(b, r, "EluGrad", rule_out(r, 0));
}

static void selu_grad(Builder *b, Rule *r) {
    by_op(b, r, "SeluGrad", rule_out(r, 0));
}

static void leaky_relu_grad(Builder *b, Rule *r) {
    by_op(b, r, "LeakyReluGrad", rule_in(r, 0));
}

static void softsign_grad(Builder *b, Rule *r) {
    by_op(b, r, "SoftsignGrad", rule_in(r, 0));
}

static void softplus_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_mul(b, rule_dy(r, 0), b_op1(b, "Sigmoid", rule_in(r, 0))));
}

/* A gradient op (dy, x) is linear in dy, and as good as constant in x. */
static void linear_grad_grad(Builder *b, Rule *r) {
    char *op = str_dup(rule_node(r)->op);
    Output x = rule_in(r, 1);
    if (rule_wants(r, 0)) by_op(b, r, op, x);
    if (rule_wants(r, 1)) rule_set(r, 1, b_zeros_like(b, x));
    free(op);
}

/* Those with an exponential part: where the result y is below 0 the derivative by it is dy. */
static void exponential_grad_grad(Builder *b, Rule *r) {
    char *op = str_dup(rule_node(r)->op);
    Output y = rule_in(r, 1);
    if (rule_wants(r, 0)) by_op(b, r, op, y);
    if (rule_wants(r, 1)) {
        Output below = b_op2(b, "Less", y, b_scalar(b, output_dtype(y), 0));
        rule_set(r, 1, b_where_or_zero(b, below, b_mul(b, rule_dy(r, 0), rule_in(r, 0))));
    }
    free(op);
}

static void softplus_grad_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), x = rule_in(r, 1);
    if (rule_wants(r, 0)) rule_set(r, 0, b_op2(b, "SoftplusGrad", dy, x));
    if (rule_wants(r, 1)) {
        Output bell = b_add(b, b_shift(b, b_op1(b, "Exp", b_neg(b, x)), 2), b_op1(b, "Exp", x));
        rule_set(r, 1, b_div(b, b_mul(b, dy, rule_in(r, 0)), bell));
    }
}

/* ---- Biases ---- */

static void bias_add_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    if (rule_wants(r, 0)) rule_set(r, 0, dy);
    b_with_attrs_of(b, rule_node(r));
    if (rule_wants(r, 1)) rule_set(r, 1, b_op1(b, "BiasAddGrad", dy));
    b->like = NULL;
}

static void bias_add_v1_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    if (rule_wants(r, 0)) rule_set(r, 0, dy);
    if (rule_wants(r, 1)) rule_set(r, 1, b_sum(b, dy, b_range(b, b_i32(b, 0), b_shift(b, b_rank(b, dy), -1)), false));
}

static void bias_add_grad_grad(Builder *b, Rule *r) {
    Output shape = rule_in_shape(r, 0), dy = rule_dy(r, 0);
    if (str_is(rule_string(b, r, "data_format"), "NCHW")) {
        Output behind = b_ones_like(b, b_items(b, shape, 2, 0));
        dy = b_reshape(b, dy, b_concat(b, (Output[]){b_i32s(b, 1, (int[]){1}), b_shape(b, dy), behind}, 3, 0));
    }
    rule_set(r, 0, b_broadcast(b, dy, shape));
}

/* ---- Softmax ---- */

static Output last_sum(Builder *b, Output x) {
    return b_sum(b, x, b_i32s(b, 1, (int[]){-1}), true);
}

static void softmax_grad(Builder *b, Rule *r) {
    Output y = rule_out(r, 0), dy = rule_dy(r, 0);
    rule_set(r, 0, b_mul(b, b_sub(b, dy, last_sum(b, b_mul(b, dy, y))), y));
}

static void log_softmax_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    rule_set(r, 0, b_sub(b, dy, b_mul(b, last_sum(b, dy), b_op1(b, "Exp", rule_out(r, 0)))));
}

/* Output 1 of the losses is their gradient by the logits; only gradients of gradients use it elsewhere. */
static Output logits_gradient(Builder *b, Rule *r, Output dloss) {
    Output dx = b_mul(b, dloss, rule_out(r, 1));
    if (!rule_has_dy(r, 1)) return dx;
    Output again = rule_dy(r, 1), y = b_op1(b, "Softmax", rule_in(r, 0));
    return b_add(b, dx, b_mul(b, b_sub(b, again, last_sum(b, b_mul(b, again, y))), y));
}

static void softmax_loss_grad(Builder *b, Rule *r) {
    Output dloss = b_expand(b, rule_dy(r, 0), -1), dlogits = {0}, dlabels = {0};
    if (rule_wants(r, 0)) dlogits = logits_gradient(b, r, dloss);
    if (rule_wants(r, 1)) dlabels = b_mul(b, dloss, b_neg(b, b_op1(b, "LogSoftmax", rule_in(r, 0))));
    rule_set_reduced(b, r, 0, dlogits, 1, dlabels);
}

static void sparse_softmax_loss_grad(Builder *b, Rule *r) {
    rule_set(r, 0, logits_gradient(b, r, b_expand(b, rule_dy(r, 0), -1)));
}

/* ---- Others ---- */

static void lrn_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), x = rule_in(r, 0), y = rule_out(r, 0);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op3(b, "LRNGrad", dy, x, y));
}

/* Rows of the input laid out flat: dy goes to where each of the k came from. */
static void top_k_grad(Builder *b, Rule *r) {
    Output shape = rule_in_shape(r, 0), indices = rule_out(r, 1), width = b_item(b, shape, -1);
    Output k = b_item(b, b_shape(b, indices), -1), minus = b_i32(b, -1);
    Output table = b_cast(b, b_reshape(b, indices, b_pack(b, (Output[]){minus, k}, 2)), DT_INT32);
    Output rows = b_item(b, b_shape(b, table), 0);
    Output starts = b_expand(b, b_mul(b, b_range(b, b_i32(b, 0), rows), width), -1);
    Output flat = b_expand(b, b_flatten(b, b_add(b, table, starts)), -1);
    Output size = b_expand(b, b_prod(b, shape, b_i32(b, 0)), 0);
    rule_set(r, 0, b_reshape(b, b_op3(b, "ScatterNd", flat, b_flatten(b, rule_dy(r, 0)), size), shape));
}

/* The loss gives its gradient by the inputs, time by batch by label. */
static void ctc_loss_grad(Builder *b, Rule *r) {
    Output dloss = b_expand(b, b_expand(b, rule_dy(r, 0), -1), 0);
    rule_set(r, 0, b_mul(b, dloss, rule_out(r, 1)));
}

static void global_norm_grad(Builder *b, Rule *r) {
    Output in[] = {rule_in(r, 0), rule_in(r, 1), rule_in(r, 2), rule_in(r, 4), rule_dy(r, 0)};
    b_with_attrs_of(b, rule_node(r));
    Node *grads = b_node(b, "BatchNormWithGlobalNormalizationGrad", in, 5);
    for (int i = 0; i < 5; i++) {
        if (rule_wants(r, i)) rule_set(r, i, output_of(grads, i));
    }
}

/* A whole LSTM: only its states and its outputs have gradients. TensorFlow's client takes BlockLSTMGrad for BlockLSTMV2 too, whose gates
 * are in another order; here each has its own. */
static void lstm_grad(Builder *b, Rule *r) {
    enum { INPUTS = 9, OUTPUTS = 7, CS = 1, H = 6 };
    Output in[INPUTS + OUTPUTS + 2];
    for (int i = 0; i < INPUTS; i++) in[i] = rule_in(r, i);
    for (int i = 0; i < OUTPUTS; i++) in[INPUTS + i] = rule_out(r, i);
    in[INPUTS + OUTPUTS] = rule_dy(r, CS);
    in[INPUTS + OUTPUTS + 1] = rule_dy(r, H);
    b_with_attrs_of(b, rule_node(r));
    Node *grads = b_node(b, node_is(rule_node(r), "BlockLSTM") ? "BlockLSTMGrad" : "BlockLSTMGradV2", in, INPUTS + OUTPUTS + 2);
    for (int i = 1; i < INPUTS; i++) {
        if (rule_wants(r, i)) rule_set(r, i, output_of(grads, i - 1));
    }
}

const GradientDef nn_gradients[] = {
    {"BiasAdd", bias_add_grad},
    {"BiasAddGrad", bias_add_grad_grad},
    {"BiasAddV1", bias_add_v1_grad},
    {"BatchNormWithGlobalNormalization", global_norm_grad},
    {"BlockLSTM", lstm_grad},
    {"BlockLSTMV2", lstm_grad},
    {"CTCLoss", ctc_loss_grad},
    {"CTCLossV2", ctc_loss_grad},
    {"Elu", elu_grad},
    {"EluGrad", exponential_grad_grad},
    {"LRN", lrn_grad},
    {"LeakyRelu", leaky_relu_grad},
    {"LeakyReluGrad", linear_grad_grad},
    {"LogSoftmax", log_softmax_grad},
    {"Relu", relu_grad},
    {"Relu6", relu6_grad},
    {"Relu6Grad", linear_grad_grad},
    {"ReluGrad", linear_grad_grad},
    {"Selu", selu_grad},
    {"SeluGrad", exponential_grad_grad},
    {"Softmax", softmax_grad},
    {"SoftmaxCrossEntropyWithLogits", softmax_loss_grad},
    {"Softplus", softplus_grad},
    {"SoftplusGrad", softplus_grad_grad},
    {"Softsign", softsign_grad},
    {"SparseSoftmaxCrossEntropyWithLogits", sparse_softmax_loss_grad},
    {"ApproxTopK", top_k_grad},
    {"TopK", top_k_grad},
    {"TopKV2", top_k_grad},
    {0},
};
