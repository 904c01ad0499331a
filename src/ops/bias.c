/* bias.c: BiasAdd, BiasAddV1, BiasAddGrad. */
#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef bias_ops[] = {
    {"BiasAdd", "value: T, bias: T -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; data_format: {'NHWC', 'NCHW'} = 'NHWC'",
     0},
    {"BiasAddV1", "value: T, bias: T -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {"BiasAddGrad", "out_backprop: T -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; data_format: {'NHWC', 'NCHW'} = 'NHWC'",
     0},
    {0},
};

typedef struct BiasState {
    bool channels_first;
} BiasState;

static Error *bias_init(const Node *node, void *state) {
    BiasState *st = state;
    Str format;
    Error *err = node_attr_string(node, "data_format", &format);
    if (!err) st->channels_first = str_starts(format, STR("NC"));
    return err;
}

typedef struct BiasJob {
    void *z, *sums;
    const void *x, *bias;
    int64_t outer, channels, inner; /* bias_run walks rows of `inner` elements */
    int bias_step;                  /* 1: a row has one bias for each element; 0: one for the row */
} BiasJob;

enum { SUM_COLUMNS = 64, SUM_ROWS = 256 }; /* of a gradient that are added up together */

/* The dimension of the channels. */
static Error *channel_axis(const BiasState *st, const Shape *s, int *out) {
    if (s->rank < 2) return error_invalid("Input tensor must be at least 2D: %s", shape_text(s).text);
    *out = st->channels_first ? 1 : s->rank - 1;
    return NULL;
}

static Error *bias_run(KernelContext *k, RangeFn *range, BinaryLoop *loop) {
    const BiasState *st = k->state;
    if (k->loop) {
        if (!st->channels_first) *k->loop = (ElementLoop){.binary = loop, .shapes = ELEMENTS_BIAS};
        return NULL;
    }
    Tensor *x = k->in[0], *bias = k->in[1];
    int axis = 0;
    Error *err = channel_axis(st, &x->shape, &axis);
    if (err) return err;
    if (bias->shape.rank != 1) return error_invalid("Biases must be 1D: %s", shape_text(&bias->shape).text);
    if (bias->count != x->shape.dims[axis]) {
        return error_invalid("Must provide as many biases as the %s dimension of the input tensor: %s vs. %s",
                             st->channels_first ? "channel" : "last", shape_text(&bias->shape).text,
                             shape_text(&x->shape).text);
    }
    Tensor *z = kernel_output_from(k, 0, 0, &x->shape);
    if (!z || z->count == 0) return NULL;
    BiasJob job = {.z = z->data, .x = x->data, .bias = bias->data, .channels = bias->count};
    job.inner = shape_prod(&x->shape, axis + 1, x->shape.rank);
    if (axis == x->shape.rank - 1) {
        job.inner = bias->count;
        job.bias_step = 1;
    }
    threadpool_parallel_for(k->pool, x->count / job.inner, 32768 / job.inner + 1, range, &job);
    return NULL;
}

static Error *bias_grad_run(KernelContext *k, RangeFn *range, size_t sum_size) {
    const BiasState *st = k->state;
    Tensor *x = k->in[0];
    int axis = 0;
    Error *err = channel_axis(st, &x->shape, &axis);
    if (err) return err;
    Shape shape = shape_vector(x->shape.dims[axis]);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || z->count == 0) return NULL;
    Shape room = shape_matrix(z->count, (int64_t)sum_size);
    Tensor *sums = kernel_scratch(k, DT_UINT8, &room);
    if (!sums) return NULL;
    BiasJob job = {.z = z->data, .sums = sums->data, .x = x->data, .channels = z->count};
    job.outer = shape_prod(&x->shape, 0, axis);
    job.inner = shape_prod(&x->shape, axis + 1, x->shape.rank);
    int64_t each = job.outer * job.inner;
    int64_t grain = 65536 / (each > 0 ? each : 1) + 1;
    threadpool_parallel_for(k->pool, z->count, grain < 16 ? 16 : grain, range, &job);
    tensor_unref(sums);
    return NULL;
}

#define BODY "ops/bias.inc"
#define PLUS(a, b) ((a) + (b))
#include "kernels/each_float.inc"
#include "kernels/each_complex.inc"
#undef PLUS
#define PLUS(a, b) (C)((W)(a) + (W)(b))
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"

#define FORMAT .state_size = sizeof(BiasState), .init = bias_init

const KernelDef bias_cpu[] = {
    {"BiasAdd", .by_type = {NUMBER_TYPES(bias_add)}, FORMAT, .flags = KERNEL_ELEMENTWISE},
    {"BiasAddV1", .by_type = {NUMBER_TYPES(bias_add)}, .state_size = sizeof(BiasState)},
    {"BiasAddGrad", .by_type = {NUMBER_TYPES(bias_grad)}, FORMAT},
    {0},
};
