/* layers.c: dense, convolution, pooling, dropout, activations. */
#include "rill/layers.h"

#include <math.h>

#include "train/graph_internal.h"

RillTensor rill_activate(RillGraph *g, RillTensor x, RillActivation a) {
    static const char *const ops[] = {[RILL_RELU] = "Relu", [RILL_RELU6] = "Relu6", [RILL_LEAKY_RELU] = "LeakyRelu", [RILL_TANH] = "Tanh", [RILL_SIGMOID] = "Sigmoid",
                                      [RILL_SOFTMAX] = "Softmax", [RILL_ELU] = "Elu", [RILL_SELU] = "Selu", [RILL_SOFTPLUS] = "Softplus"};
    if (a == RILL_LINEAR) return x;
    if (a == RILL_SWISH) return rill_mul(g, x, rill_unary(g, "Sigmoid", x));
    if (a == RILL_GELU) { /* x * (1 + erf(x / sqrt 2)) / 2 */
        RillTensor bell = rill_unary(g, "Erf", rill_scale(g, x, M_SQRT1_2));
        return rill_mul(g, rill_scale(g, x, 0.5), rill_add(g, bell, rill_const_as(g, rill_type(x), 1)));
    }
    if ((unsigned)a >= sizeof ops / sizeof ops[0]) {
        rill_graph_fail(g, TF_INVALID_ARGUMENT, "%d is no activation", (int)a);
        return NO_TENSOR;
    }
    return rill_unary(g, ops[a], x);
}

void rill_add_loss(RillGraph *g, RillTensor penalty) {
    if (tensor_ok(penalty)) graph_list_add(g, LIST_LOSSES, (RillListItem){.op = penalty.oper, .index = penalty.index});
}

void rill_add_update(RillGraph *g, TF_Operation *update) {
    if (update) graph_list_add(g, LIST_UPDATES, (RillListItem){.op = update});
}

/* The last dimension of x, which must be known. */
static int64_t channels_of(RillGraph *g, const char *layer, RillTensor x, int rank) {
    RillShape s = rill_shape(g, x);
    if (rill_graph_failed(g)) return 0;
    if (s.rank < 1 || s.dims[s.rank - 1] < 0 || (rank && s.rank != rank)) {
        rill_graph_fail(g, TF_INVALID_ARGUMENT, "Layer %s: its input %s must have %s dimensions and a known last one; its rank is %d", layer, TF_OperationName(x.oper),
                        rank == 4 ? "4" : "one or more", s.rank);
        return 0;
    }
    return s.dims[s.rank - 1];
}

static RillTensor weights(RillGraph *g, const char *name, const int64_t *dims, int rank, TF_DataType type, const RillInit *init, double l2) {
    RillVariable *v = rill_variable(g, name, dims, rank, &(RillVariableOptions){.type = type, .init = *init});
    RillTensor value = rill_variable_value(v);
    if (l2 > 0 && v) rill_add_loss(g, rill_scale(g, rill_unary(g, "L2Loss", value), l2));
    return value;
}

static RillTensor finish(RillGraph *g, RillTensor y, int64_t units, bool no_bias, const RillInit *bias, RillActivation a) {
    if (!no_bias) {
        RillInit zeros = {.kind = RILL_INIT_ZEROS};
        RillTensor b = weights(g, "bias", &units, 1, rill_type(y), bias->kind == RILL_INIT_DEFAULT ? &zeros : bias, 0);
        y = rill_binary(g, "BiasAdd", y, b);
    }
    return rill_activate(g, y, a);
}

RillTensor rill_dense(RillGraph *g, const char *name, RillTensor x, const RillDense *o) {
    int64_t in = channels_of(g, name, x, 0), dims[] = {in, o->units};
    if (rill_graph_failed(g)) return NO_TENSOR;
    rill_name_push(g, name);
    RillTensor kernel = weights(g, "kernel", dims, 2, rill_type(x), &o->kernel, o->l2);
    RillShape s = rill_shape(g, x);
    RillTensor y;
    if (s.rank == 2) {
        y = rill_matmul(g, x, kernel, false, false);
    } else { /* rows of all outer dimensions */
        int64_t flat[] = {-1, in};
        y = rill_matmul(g, rill_reshape(g, x, flat, 2), kernel, false, false);
        RillTensor cut[] = {rill_unary(g, "Shape", x), rill_const_i32s(g, (int32_t[]){0}, 1), rill_const_i32s(g, (int32_t[]){s.rank - 1}, 1), rill_const_i32s(g, (int32_t[]){1}, 1)};
        RillTensor outer = rill_op(g, "StridedSlice", NULL, cut, 4, NULL, 0);
        RillTensor shape = rill_concat(g, (RillTensor[]){outer, rill_const_i32s(g, (int32_t[]){o->units}, 1)}, 2, 0);
        y = rill_binary(g, "Reshape", y, shape);
    }
    y = finish(g, y, o->units, o->no_bias, &o->bias, o->activation);
    rill_name_pop(g);
    return y;
}

RillTensor rill_conv2d(RillGraph *g, const char *name, RillTensor x, const RillConv *o) {
    int64_t in = channels_of(g, name, x, 4), height = o->height ? o->height : o->size, width = o->width ? o->width : o->size;
    if (!rill_graph_failed(g) && (height < 1 || width < 1 || o->filters < 1))
        rill_graph_fail(g, TF_INVALID_ARGUMENT, "Layer %s: %d filters of %lldx%lld are none", name, o->filters, (long long)height, (long long)width);
    if (rill_graph_failed(g)) return NO_TENSOR;
    int64_t dims[] = {height, width, in, o->filters}, stride = o->stride ? o->stride : 1, dilation = o->dilation ? o->dilation : 1;
    int64_t strides[] = {1, stride, stride, 1}, dilations[] = {1, dilation, dilation, 1};
    rill_name_push(g, name);
    RillTensor kernel = weights(g, "kernel", dims, 4, rill_type(x), &o->kernel, o->l2);
    RillAttr attrs[] = {RILL_INTS("strides", strides, 4), RILL_STRING("padding", o->valid ? "VALID" : "SAME"), RILL_INTS("dilations", dilations, 4)};
    RillTensor y = rill_op(g, "Conv2D", NULL, (RillTensor[]){x, kernel}, 2, attrs, 3);
    y = finish(g, y, o->filters, o->no_bias, &o->bias, o->activation);
    rill_name_pop(g);
    return y;
}

static RillTensor pool(RillGraph *g, const char *op, RillTensor x, int size, int stride, bool valid) {
    int64_t window[] = {1, size, size, 1}, strides[] = {1, stride, stride, 1};
    return rill_op(g, op, NULL, &x, 1, (RillAttr[]){RILL_INTS("ksize", window, 4), RILL_INTS("strides", strides, 4), RILL_STRING("padding", valid ? "VALID" : "SAME")}, 3);
}

RillTensor rill_max_pool(RillGraph *g, RillTensor x, int size, int stride, bool valid) {
    return pool(g, "MaxPool", x, size, stride, valid);
}

RillTensor rill_avg_pool(RillGraph *g, RillTensor x, int size, int stride, bool valid) {
    return pool(g, "AvgPool", x, size, stride, valid);
}

RillTensor rill_global_avg_pool(RillGraph *g, RillTensor x) {
    return rill_reduce_mean(g, x, (int32_t[]){1, 2}, 2, false);
}

RillTensor rill_flatten(RillGraph *g, RillTensor x) {
    RillShape s = rill_shape(g, x);
    int64_t rest = 1;
    for (int i = 1; i < s.rank; i++) rest = s.dims[i] < 0 || rest < 0 ? -1 : rest * s.dims[i];
    if (s.rank < 1 || (rest < 0 && s.dims[0] < 0)) {
        if (tensor_ok(x)) rill_graph_fail(g, TF_INVALID_ARGUMENT, "rill_flatten: too little is known of the shape of %s", TF_OperationName(x.oper));
        return NO_TENSOR;
    }
    return rill_reshape(g, x, (int64_t[]){rest < 0 ? s.dims[0] : -1, rest}, 2);
}

RillTensor rill_dropout(RillGraph *g, RillTensor x, double rate) {
    if (rate < 0 || rate >= 1) {
        rill_graph_fail(g, TF_INVALID_ARGUMENT, "A dropout rate of %g is not in [0, 1)", rate);
        return NO_TENSOR;
    }
    if (rate == 0) return x;
    TF_DataType type = rill_type(x);
    int64_t seed, seed2;
    graph_seeds(g, &seed, &seed2);
    rill_name_push(g, "dropout");
    RillTensor shape = rill_unary(g, "Shape", x);
    RillTensor drawn = rill_op(g, "RandomUniform", NULL, &shape, 1, (RillAttr[]){RILL_TYPE("dtype", type), RILL_INT("seed", seed), RILL_INT("seed2", seed2)}, 3);
    RillTensor stays = rill_cast(g, rill_binary(g, "GreaterEqual", drawn, rill_const_as(g, type, rate)), type);
    RillTensor y = rill_mul(g, rill_scale(g, x, 1 / (1 - rate)), stays);
    rill_name_pop(g);
    return y;
}
