/* metrics.c: how good a model is: on one batch, or counted over many in local variables. */
#include "rill/layers.h"
#include "train/graph_internal.h"
#include "train/labels.h"

static RillTensor hits(RillGraph *g, const char *what, RillTensor logits, RillTensor labels) {
    labels_check(g, what, logits, labels, 1);
    return rill_cast(g, rill_equal(g, rill_argmax(g, logits, -1), rill_cast(g, labels, TF_INT64)), TF_FLOAT);
}

RillTensor rill_accuracy(RillGraph *g, RillTensor logits, RillTensor labels) {
    return rill_reduce_mean(g, hits(g, __func__, logits, labels), NULL, 0, false);
}

/* part / whole, each summed over the updates; 0 when there was nothing. */
static RillMetric ratio(RillGraph *g, const char *name, RillTensor part, RillTensor whole) {
    RillVariableOptions local = {.local = true, .init = {.kind = RILL_INIT_ZEROS}};
    rill_name_push(g, name);
    RillVariable *total = rill_variable(g, "total", NULL, 0, &local), *count = rill_variable(g, "count", NULL, 0, &local);
    TF_Operation *updates[] = {rill_assign_add(g, total, part), rill_assign_add(g, count, whole)};
    TF_Operation *resets[] = {rill_variable_initializer(total), rill_variable_initializer(count)};
    RillMetric m = {.value = rill_binary(g, "DivNoNan", rill_variable_value(total), rill_variable_value(count))};
    m.update = rill_group(g, "update", updates, 2);
    m.reset = rill_group(g, "reset", resets, 2);
    rill_name_pop(g);
    return rill_graph_failed(g) ? (RillMetric){0} : m;
}

static RillTensor sum(RillGraph *g, RillTensor x) {
    return rill_reduce_sum(g, rill_cast(g, x, TF_FLOAT), NULL, 0, false);
}

static RillTensor size(RillGraph *g, RillTensor x) {
    return rill_cast(g, rill_unary(g, "Size", x), TF_FLOAT);
}

RillMetric rill_metric_mean(RillGraph *g, const char *name, RillTensor values) {
    return ratio(g, name, sum(g, values), size(g, values));
}

RillMetric rill_metric_accuracy(RillGraph *g, const char *name, RillTensor logits, RillTensor labels) {
    return rill_metric_mean(g, name, hits(g, __func__, logits, labels));
}

RillMetric rill_metric_mean_squared(RillGraph *g, const char *name, RillTensor predictions, RillTensor labels) {
    labels_check(g, __func__, predictions, labels, 0);
    return rill_metric_mean(g, name, rill_binary(g, "SquaredDifference", predictions, rill_cast(g, labels, rill_type(predictions))));
}

static RillTensor as_bool(RillGraph *g, RillTensor x) {
    return rill_cast(g, x, TF_BOOL);
}

RillMetric rill_metric_precision(RillGraph *g, const char *name, RillTensor predictions, RillTensor labels) {
    labels_check(g, __func__, predictions, labels, 0);
    RillTensor said = as_bool(g, predictions), both = rill_binary(g, "LogicalAnd", said, as_bool(g, labels));
    return ratio(g, name, sum(g, both), sum(g, said));
}

RillMetric rill_metric_recall(RillGraph *g, const char *name, RillTensor predictions, RillTensor labels) {
    labels_check(g, __func__, predictions, labels, 0);
    RillTensor true_ones = as_bool(g, labels), both = rill_binary(g, "LogicalAnd", as_bool(g, predictions), true_ones);
    return ratio(g, name, sum(g, both), sum(g, true_ones));
}

RillMetric rill_metric_top_k(RillGraph *g, const char *name, RillTensor logits, RillTensor labels, int k) {
    labels_flatten(g, __func__, &logits, &labels, true);
    RillTensor in[] = {logits, rill_cast(g, labels, TF_INT64), rill_const_i64(g, k)};
    return rill_metric_mean(g, name, rill_cast(g, rill_op(g, "InTopKV2", NULL, in, 3, NULL, 0), TF_FLOAT));
}
