/* norm_layers.c: batch and layer normalisation, embeddings, LSTM. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "rill/layers.h"
#include "train/graph_internal.h"

static RillTensor row_variable(RillGraph *g, const char *name, int64_t size, TF_DataType type, RillInitKind init, bool trainable, RillVariable **out) {
    RillVariable *v = rill_variable(g, name, &size, 1, &(RillVariableOptions){.type = type, .init = {.kind = init}, .not_trainable = !trainable});
    if (out) *out = v;
    return rill_variable_value(v);
}

static int64_t last_dim(RillGraph *g, const char *name, RillTensor x) {
    RillShape s = rill_shape(g, x);
    if (s.rank > 0 && s.dims[s.rank - 1] >= 0) return s.dims[s.rank - 1];
    if (tensor_ok(x)) rill_graph_fail(g, TF_INVALID_ARGUMENT, "Layer %s: the last dimension of %s must be known", name, TF_OperationName(x.oper));
    return 0;
}

/* moving -= (1 - momentum) * (moving - now) */
static void move_average(RillGraph *g, const RillVariable *moving, RillTensor now, double momentum) {
    if (!moving) return;
    RillTensor step = rill_scale(g, rill_sub(g, moving->value, now), 1 - momentum);
    rill_add_update(g, rill_assign_sub(g, moving, step));
}

RillTensor rill_batch_norm(RillGraph *g, const char *name, RillTensor x, const RillBatchNorm *o) {
    double momentum = o->momentum ? o->momentum : 0.99, epsilon = o->epsilon ? o->epsilon : 1e-3;
    int64_t size = last_dim(g, name, x);
    RillShape s = rill_shape(g, x);
    if (rill_graph_failed(g)) return NO_TENSOR;
    TF_DataType type = rill_type(x);
    rill_name_push(g, name);
    RillVariable *mean_variable, *variance_variable;
    RillTensor gamma = row_variable(g, "gamma", size, type, RILL_INIT_ONES, true, NULL), beta = row_variable(g, "beta", size, type, RILL_INIT_ZEROS, true, NULL);
    RillTensor mean = row_variable(g, "moving_mean", size, type, RILL_INIT_ZEROS, false, &mean_variable);
    RillTensor variance = row_variable(g, "moving_variance", size, type, RILL_INIT_ONES, false, &variance_variable);
    RillTensor y;
    if (s.rank == 4) {
        RillTensor none = rill_const(g, "empty", type, (int64_t[]){0}, 1, NULL);
        RillTensor in[] = {x, gamma, beta, o->training ? none : mean, o->training ? none : variance};
        TF_Operation *op = rill_operation(g, "FusedBatchNormV3", NULL, in, 5, (RillAttr[]){RILL_FLOAT("epsilon", (float)epsilon), RILL_BOOL("is_training", o->training)}, 2);
        y = op ? (RillTensor){op, 0} : NO_TENSOR;
        if (o->training && op) {
            move_average(g, mean_variable, (RillTensor){op, 1}, momentum);
            move_average(g, variance_variable, (RillTensor){op, 2}, momentum);
        }
    } else {
        if (o->training) {
            int32_t axes[8];
            for (int i = 0; i + 1 < s.rank; i++) axes[i] = i;
            RillTensor now = rill_reduce_mean(g, x, axes, s.rank - 1, false);
            RillTensor spread = rill_reduce_mean(g, rill_binary(g, "SquaredDifference", x, now), axes, s.rank - 1, false);
            move_average(g, mean_variable, now, momentum);
            move_average(g, variance_variable, spread, momentum);
            mean = now;
            variance = spread;
        }
        RillTensor scale = rill_mul(g, rill_unary(g, "Rsqrt", rill_add(g, variance, rill_const_as(g, type, epsilon))), gamma);
        y = rill_add(g, rill_mul(g, rill_sub(g, x, mean), scale), beta);
    }
    rill_name_pop(g);
    return y;
}

RillTensor rill_layer_norm(RillGraph *g, const char *name, RillTensor x) {
    int64_t size = last_dim(g, name, x);
    if (rill_graph_failed(g)) return NO_TENSOR;
    TF_DataType type = rill_type(x);
    rill_name_push(g, name);
    RillTensor gamma = row_variable(g, "gamma", size, type, RILL_INIT_ONES, true, NULL), beta = row_variable(g, "beta", size, type, RILL_INIT_ZEROS, true, NULL);
    RillTensor mean = rill_reduce_mean(g, x, (int32_t[]){-1}, 1, true);
    RillTensor variance = rill_reduce_mean(g, rill_binary(g, "SquaredDifference", x, mean), (int32_t[]){-1}, 1, true);
    RillTensor scale = rill_unary(g, "Rsqrt", rill_add(g, variance, rill_const_as(g, type, 1e-6)));
    RillTensor y = rill_add(g, rill_mul(g, rill_mul(g, rill_sub(g, x, mean), scale), gamma), beta);
    rill_name_pop(g);
    return y;
}

/* ---- Embeddings ---- */

/* The rows of ids in a table in several parts: each part gathers its own ids where it lies, then they are put back in order. */
static RillTensor gather_parts(RillGraph *g, const RillVariable *v, RillTensor ids) {
    int parts = v->part_count;
    RillTensor flat = rill_reshape(g, ids, (int64_t[]){-1}, 1);
    int64_t *firsts = xcalloc((size_t)parts, sizeof *firsts);
    for (int i = 0; i < parts; i++) firsts[i] = v->parts[i].first;
    /* The part of an id is the number of first rows at or below it, less one. */
    RillTensor starts = rill_const(g, "first_rows", TF_INT64, (int64_t[]){parts}, 1, firsts);
    RillTensor column = rill_reshape(g, rill_cast(g, flat, TF_INT64), (int64_t[]){-1, 1}, 2);
    RillTensor at_or_above = rill_cast(g, rill_binary(g, "GreaterEqual", column, starts), TF_INT32);
    RillTensor part = rill_sub(g, rill_reduce_sum(g, at_or_above, (int32_t[]){1}, 1, false), rill_const_i32(g, 1));
    RillTensor shape = rill_unary(g, "Shape", flat);
    RillTensor in[] = {rill_const_i32(g, 0), rill_op(g, "Squeeze", NULL, &shape, 1, NULL, 0), rill_const_i32(g, 1)};
    RillTensor positions = rill_op(g, "Range", NULL, in, 3, NULL, 0);
    RillAttr split[] = {RILL_INT("num_partitions", parts)};
    TF_Operation *id_parts = rill_operation(g, "DynamicPartition", NULL, (RillTensor[]){rill_cast(g, flat, TF_INT64), part}, 2, split, 1);
    TF_Operation *position_parts = rill_operation(g, "DynamicPartition", NULL, (RillTensor[]){positions, part}, 2, split, 1);
    RillTensor *stitch = xcalloc((size_t)parts * 2, sizeof *stitch);
    for (int i = 0; id_parts && position_parts && i < parts; i++) {
        RillTensor row = rill_sub(g, (RillTensor){id_parts, i}, rill_const_i64(g, firsts[i]));
        stitch[i] = (RillTensor){position_parts, i};
        stitch[parts + i] = rill_op(g, "ResourceGather", NULL, (RillTensor[]){v->parts[i].handle, row}, 2, (RillAttr[]){RILL_TYPE("dtype", v->type)}, 1);
    }
    RillTensor rows = rill_op(g, "DynamicStitch", NULL, stitch, parts * 2, (RillAttr[]){RILL_INT("N", parts)}, 1);
    RillTensor whole = rill_concat(g, (RillTensor[]){rill_unary(g, "Shape", ids), rill_const_i32s(g, (int32_t[]){(int32_t)v->shape.dims[1]}, 1)}, 2, 0);
    free(stitch);
    free(firsts);
    return rill_binary(g, "Reshape", rows, whole);
}

RillTensor rill_embedding(RillGraph *g, const char *name, RillTensor ids, const RillEmbedding *o) {
    if (!rill_graph_failed(g) && (o->rows < 1 || o->width < 1)) rill_graph_fail(g, TF_INVALID_ARGUMENT, "Embedding %s has no rows or no width", name);
    if (rill_graph_failed(g)) return NO_TENSOR;
    int64_t dims[] = {o->rows, o->width};
    RillInit init = o->init;
    if (init.kind == RILL_INIT_DEFAULT) init = (RillInit){.kind = RILL_INIT_NORMAL, .b = 1 / sqrt(o->width)};
    rill_name_push(g, name);
    RillVariable *v = rill_variable(g, "embeddings", dims, 2, &(RillVariableOptions){.init = init, .partitions = o->partitions});
    RillTensor y = NO_TENSOR;
    if (v && v->part_count == 1)
        y = rill_op(g, "ResourceGather", NULL, (RillTensor[]){v->parts[0].handle, ids}, 2, (RillAttr[]){RILL_TYPE("dtype", v->type)}, 1);
    else if (v)
        y = gather_parts(g, v, ids);
    rill_name_pop(g);
    return y;
}

/* ---- LSTM ---- */

RillTensor rill_lstm(RillGraph *g, const char *name, RillTensor x, int units, bool only_last) {
    RillShape s = rill_shape(g, x);
    if (!rill_graph_failed(g) && (s.rank != 3 || s.dims[1] < 1 || s.dims[2] < 1))
        rill_graph_fail(g, TF_INVALID_ARGUMENT, "LSTM %s: its input %s must be [batch, time, features] with time and features known", name, TF_OperationName(x.oper));
    if (rill_graph_failed(g)) return NO_TENSOR;
    int steps = (int)s.dims[1];
    int64_t dims[] = {s.dims[2] + units, 4 * units}, gates = 4 * units;
    TF_DataType type = rill_type(x);
    rill_name_push(g, name);
    RillTensor kernel = rill_variable_value(rill_variable(g, "kernel", dims, 2, &(RillVariableOptions){.type = type}));
    RillTensor bias = rill_variable_value(rill_variable(g, "bias", &gates, 1, &(RillVariableOptions){.type = type, .init = {.kind = RILL_INIT_ZEROS}}));
    TF_Operation *split = rill_operation(g, "Unpack", NULL, &x, 1, (RillAttr[]){RILL_INT("num", steps), RILL_INT("axis", 1)}, 2);
    RillTensor *outs = xcalloc((size_t)steps, sizeof *outs), h = NO_TENSOR, c = NO_TENSOR;
    for (int i = 0; split && i < steps; i++) {
        RillTensor in = {split, i};
        if (i == 0) { /* zeros of the batch's size */
            RillTensor column = rill_op(g, "Slice", NULL, (RillTensor[]){in, rill_const_i32s(g, (int32_t[]){0, 0}, 2), rill_const_i32s(g, (int32_t[]){-1, 1}, 2)}, 3, NULL, 0);
            RillTensor zeros = rill_unary(g, "ZerosLike", column);
            h = c = rill_op(g, "Tile", NULL, (RillTensor[]){zeros, rill_const_i32s(g, (int32_t[]){1, units}, 2)}, 2, NULL, 0);
        }
        RillTensor all = rill_binary(g, "BiasAdd", rill_matmul(g, rill_concat(g, (RillTensor[]){in, h}, 2, 1), kernel, false, false), bias);
        TF_Operation *gate = rill_operation(g, "Split", NULL, (RillTensor[]){rill_const_i32(g, 1), all}, 2, (RillAttr[]){RILL_INT("num_split", 4)}, 1);
        if (!gate) break;
        /* input, new value, forget, output; the forget gate starts open */
        RillTensor forget = rill_unary(g, "Sigmoid", rill_add(g, (RillTensor){gate, 2}, rill_const_as(g, type, 1)));
        RillTensor fresh = rill_mul(g, rill_unary(g, "Sigmoid", (RillTensor){gate, 0}), rill_unary(g, "Tanh", (RillTensor){gate, 1}));
        c = rill_add(g, rill_mul(g, c, forget), fresh);
        h = rill_mul(g, rill_unary(g, "Sigmoid", (RillTensor){gate, 3}), rill_unary(g, "Tanh", c));
        outs[i] = h;
    }
    RillTensor y = only_last || rill_graph_failed(g) ? h : rill_stack(g, outs, steps, 1);
    free(outs);
    rill_name_pop(g);
    return rill_graph_failed(g) ? NO_TENSOR : y;
}
