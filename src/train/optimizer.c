/* optimizer.c: from a loss to a training operation. */
#include "rill/optimizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/graph_internal.h"
#include "train/methods.h"
#include "train/optimizer_internal.h"

RillGradient *rill_compute_gradients(RillGraph *g, RillTensor loss, int *count) {
    *count = 0;
    if (rill_graph_failed(g) || !tensor_ok(loss)) {
        rill_graph_fail(g, TF_INVALID_ARGUMENT, "The loss is not a tensor of the graph");
        return NULL;
    }
    int n = 0;
    for (int i = 0; i < g->variable_count; i++) n += g->variables[i]->is_trainable ? g->variables[i]->part_count : 0;
    RillGradient *out = xcalloc((size_t)n + 1, sizeof *out);
    for (int i = 0; i < g->variable_count; i++)
        for (int j = 0; g->variables[i]->is_trainable && j < g->variables[i]->part_count; j++) out[(*count)++] = (RillGradient){.variable = g->variables[i], .part = j};
    if (n == 0) rill_graph_fail(g, TF_INVALID_ARGUMENT, "There are no trainable variables");
    RillTensor *handles = xcalloc((size_t)n + 1, sizeof *handles), *values = xcalloc((size_t)n + 1, sizeof *values), *indices = xcalloc((size_t)n + 1, sizeof *indices);
    for (int i = 0; i < n; i++) handles[i] = out[i].variable->parts[out[i].part].handle;
    graph_gradients(g, &loss, 1, handles, n, values, indices);
    for (int i = 0; i < n; i++) {
        out[i].values = values[i];
        out[i].indices = indices[i];
    }
    free(handles);
    free(values);
    free(indices);
    if (!rill_graph_failed(g)) return out;
    free(out);
    *count = 0;
    return NULL;
}

/* ---- Clipping ---- */

void rill_clip_by_value(RillGraph *g, RillGradient *gradients, int count, double value) {
    for (int i = 0; i < count; i++) {
        RillGradient *d = &gradients[i];
        if (!tensor_ok(d->values)) continue;
        TF_DataType type = d->variable->type;
        d->values = rill_op(g, "ClipByValue", NULL, (RillTensor[]){d->values, rill_const_as(g, type, -value), rill_const_as(g, type, value)}, 3, NULL, 0);
    }
}

void rill_clip_by_global_norm(RillGraph *g, RillGradient *gradients, int count, double norm) {
    RillTensor *squares = xcalloc((size_t)count + 1, sizeof *squares);
    int n = 0;
    rill_name_push(g, "clip_by_global_norm");
    for (int i = 0; i < count; i++)
        if (tensor_ok(gradients[i].values)) squares[n++] = rill_cast(g, rill_unary(g, "L2Loss", gradients[i].values), TF_FLOAT);
    if (n) {
        RillTensor total = rill_unary(g, "Sqrt", rill_scale(g, rill_add_n(g, squares, n), 2));
        /* min(1, norm / total), and not a number when the norm is not finite: TensorFlow's formula */
        RillTensor limit = rill_const_f32(g, (float)norm), one = rill_const_f32(g, 1);
        RillTensor factor = rill_mul(g, limit, rill_binary(g, "Minimum", rill_div(g, one, total), rill_div(g, one, limit)));
        for (int i = 0; i < count; i++)
            if (tensor_ok(gradients[i].values)) gradients[i].values = rill_mul(g, gradients[i].values, rill_cast(g, factor, gradients[i].variable->type));
    }
    rill_name_pop(g);
    free(squares);
}

void optimizer_clip(RillGraph *g, const RillOptimizer *o, RillGradient *gradients, int count) {
    if (o->clip_value > 0) rill_clip_by_value(g, gradients, count, o->clip_value);
    if (o->clip_norm > 0) rill_clip_by_global_norm(g, gradients, count, o->clip_norm);
}

/* ---- Applying ---- */

TF_Operation *rill_apply_gradients(RillGraph *g, const RillOptimizer *o, const RillGradient *gradients, int count, bool count_step) {
    TF_Operation **ops = xcalloc((size_t)count + 2, sizeof *ops);
    int n = 0;
    const RillVariable *first = NULL;
    for (int i = 0; !first && i < count; i++)
        if (tensor_ok(gradients[i].values)) first = gradients[i].variable;
    if ((unsigned)o->method >= RILL_METHOD_COUNT) rill_graph_fail(g, TF_INVALID_ARGUMENT, "%d is no method of optimization", (int)o->method);
    if (!first) rill_graph_fail(g, TF_INVALID_ARGUMENT, "No gradient was given for any variable: the loss depends on none of them");
    if (rill_graph_failed(g)) {
        free(ops);
        return NULL;
    }
    MethodState m;
    rill_name_push(g, "train");
    method_begin(&m, g, o, first);
    for (int i = 0; i < count; i++)
        if (tensor_ok(gradients[i].values)) ops[n++] = method_apply(&m, &gradients[i]);
    TF_Operation *last = method_end(&m, ops, n);
    if (last) ops[n++] = last;
    TF_Operation *done;
    if (count_step) {
        rill_control_push(g, ops, n);
        done = rill_assign_add(g, rill_global_step(g), rill_const_i64(g, 1));
        rill_control_pop(g);
    } else {
        done = rill_group(g, "update", ops, n);
    }
    rill_name_pop(g);
    free(ops);
    return done;
}

RillTensor optimizer_loss(RillGraph *g, RillTensor loss) {
    int n = g->lists[LIST_LOSSES].count;
    if (!n || rill_graph_failed(g)) return loss;
    RillTensor *all = xcalloc((size_t)n + 1, sizeof *all);
    all[0] = loss;
    for (int i = 0; i < n; i++) all[i + 1] = rill_cast(g, (RillTensor){g->lists[LIST_LOSSES].items[i].op, g->lists[LIST_LOSSES].items[i].index}, rill_type(loss));
    RillTensor total = rill_add_n(g, all, n + 1);
    free(all);
    return total;
}

TF_Operation *optimizer_with_updates(RillGraph *g, TF_Operation *train) {
    int n = g->lists[LIST_UPDATES].count;
    if (!n || !train) return train;
    TF_Operation **ops = xcalloc((size_t)n + 1, sizeof *ops);
    ops[0] = train;
    for (int i = 0; i < n; i++) ops[i + 1] = g->lists[LIST_UPDATES].items[i].op;
    TF_Operation *all = rill_group(g, "train_op", ops, n + 1);
    free(ops);
    return all;
}

TF_Operation *rill_minimize(RillGraph *g, const RillOptimizer *o, RillTensor loss) {
    int count;
    RillGradient *gradients = rill_compute_gradients(g, optimizer_loss(g, loss), &count);
    if (!gradients) return NULL;
    optimizer_clip(g, o, gradients, count);
    TF_Operation *train = rill_apply_gradients(g, o, gradients, count, true);
    free(gradients);
    return optimizer_with_updates(g, train);
}
