/* losses.c: losses, the mean over the batch. */
#include "rill/layers.h"
#include "train/graph_internal.h"
#include "train/labels.h"

static RillTensor mean(RillGraph *g, RillTensor x) {
    return rill_reduce_mean(g, x, NULL, 0, false);
}

RillTensor rill_loss_sparse_softmax(RillGraph *g, RillTensor logits, RillTensor labels) {
    labels_flatten(g, __func__, &logits, &labels, true);
    return mean(g, rill_binary(g, "SparseSoftmaxCrossEntropyWithLogits", logits, labels));
}

RillTensor rill_loss_softmax(RillGraph *g, RillTensor logits, RillTensor labels) {
    labels_flatten(g, __func__, &logits, &labels, false);
    return mean(g, rill_binary(g, "SoftmaxCrossEntropyWithLogits", logits, rill_cast(g, labels, rill_type(logits))));
}

/* max(x, 0) - x * label + log(1 + exp(-|x|)): never overflows. */
RillTensor rill_loss_sigmoid(RillGraph *g, RillTensor logits, RillTensor labels) {
    labels_check(g, __func__, logits, labels, 0);
    labels = rill_cast(g, labels, rill_type(logits));
    RillTensor tail = rill_unary(g, "Log1p", rill_unary(g, "Exp", rill_unary(g, "Neg", rill_unary(g, "Abs", logits))));
    return mean(g, rill_add(g, rill_sub(g, rill_unary(g, "Relu", logits), rill_mul(g, logits, labels)), tail));
}

RillTensor rill_loss_mean_squared(RillGraph *g, RillTensor predictions, RillTensor labels) {
    labels_check(g, __func__, predictions, labels, 0);
    return mean(g, rill_binary(g, "SquaredDifference", predictions, rill_cast(g, labels, rill_type(predictions))));
}

static RillTensor distance(RillGraph *g, RillTensor predictions, RillTensor labels) {
    return rill_unary(g, "Abs", rill_sub(g, predictions, rill_cast(g, labels, rill_type(predictions))));
}

RillTensor rill_loss_absolute(RillGraph *g, RillTensor predictions, RillTensor labels) {
    labels_check(g, __func__, predictions, labels, 0);
    return mean(g, distance(g, predictions, labels));
}

/* Squared up to delta, straight beyond. */
RillTensor rill_loss_huber(RillGraph *g, RillTensor predictions, RillTensor labels, double delta) {
    labels_check(g, __func__, predictions, labels, 0);
    RillTensor far = distance(g, predictions, labels);
    RillTensor near = rill_binary(g, "Minimum", far, rill_const_as(g, rill_type(far), delta));
    RillTensor square = rill_scale(g, rill_mul(g, near, near), 0.5);
    return mean(g, rill_add(g, square, rill_scale(g, rill_sub(g, far, near), delta)));
}

RillTensor rill_loss_hinge(RillGraph *g, RillTensor logits, RillTensor labels) {
    labels_check(g, __func__, logits, labels, 0);
    TF_DataType type = rill_type(logits);
    RillTensor one = rill_const_as(g, type, 1), sign = rill_sub(g, rill_scale(g, rill_cast(g, labels, type), 2), one);
    return mean(g, rill_unary(g, "Relu", rill_sub(g, one, rill_mul(g, sign, logits))));
}

RillTensor rill_loss_log(RillGraph *g, RillTensor predictions, RillTensor labels) {
    labels_check(g, __func__, predictions, labels, 0);
    TF_DataType type = rill_type(predictions);
    RillTensor one = rill_const_as(g, type, 1), tiny = rill_const_as(g, type, 1e-7);
    labels = rill_cast(g, labels, type);
    RillTensor yes = rill_mul(g, labels, rill_unary(g, "Log", rill_add(g, predictions, tiny)));
    RillTensor no = rill_mul(g, rill_sub(g, one, labels), rill_unary(g, "Log", rill_add(g, rill_sub(g, one, predictions), tiny)));
    return mean(g, rill_unary(g, "Neg", rill_add(g, yes, no)));
}
