/* batch_norm.c: FusedBatchNorm in its three forms and with an activation, _FusedBatchNormEx, and the gradients. */
#include "kernels/batch_norm.h"

#include <math.h>
#include <string.h>

#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef batch_norm_ops[] = {
    {"FusedBatchNorm",
     "x: T, scale: T, offset: T, mean: T, variance: T -> y: T, batch_mean: T, batch_variance: T, reserve_space_1: T, "
     "reserve_space_2: T",
     "T: {float}; epsilon: float = 9.9999997e-05; exponential_avg_factor: float = 1.0; data_format: {'NHWC', 'NCHW'} "
     "= 'NHWC'; is_training: bool = true",
     0},
    {"FusedBatchNormV2",
     "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, "
     "reserve_space_2: U",
     "T: {half, bfloat16, float}; U: {float}; epsilon: float = 9.9999997e-05; exponential_avg_factor: float = 1.0; "
     "data_format: {'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = true",
     0},
    {"FusedBatchNormV3",
     "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, "
     "reserve_space_2: U, reserve_space_3: U",
     "T: {half, bfloat16, float}; U: {bfloat16, float}; epsilon: float = 9.9999997e-05; exponential_avg_factor: "
     "float = 1.0; data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'; is_training: bool = true",
     0},
    {"_FusedBatchNormEx",
     "x: T, scale: U, offset: U, mean: U, variance: U, side_input: num_side_inputs * T -> y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, "
     "reserve_space_2: U, reserve_space_3: U",
     "T: {half, float, bfloat16}; U: {float}; epsilon: float = 9.9999997e-05; exponential_avg_factor: float = 1.0; num_side_inputs: int >= 0 = 0; "
     "activation_mode: string = 'Identity'; data_format: {'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = true",
     0},
    {"FusedBatchNormGrad",
     "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T -> x_backprop: T, scale_backprop: T, "
     "offset_backprop: T, reserve_space_3: T, reserve_space_4: T",
     "T: {float}; epsilon: float = 9.9999997e-05; data_format: {'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = "
     "true",
     0},
    {"FusedBatchNormGradV2",
     "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U -> x_backprop: T, scale_backprop: U, "
     "offset_backprop: U, reserve_space_3: U, reserve_space_4: U",
     "T: {half, bfloat16, float}; U: {float}; epsilon: float = 9.9999997e-05; data_format: {'NHWC', 'NCHW'} = "
     "'NHWC'; is_training: bool = true",
     0},
    {"FusedBatchNormGradV3",
     "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U -> x_backprop: "
     "T, scale_backprop: U, offset_backprop: U, reserve_space_4: U, reserve_space_5: U",
     "T: {half, bfloat16, float}; U: {float}; epsilon: float = 9.9999997e-05; data_format: {'NHWC', 'NCHW', 'NDHWC', "
     "'NCDHW'} = 'NHWC'; is_training: bool = true",
     0},
    {0},
};

typedef struct NormState {
    float epsilon, factor; /* factor: how much the new averages count */
    bool channels_first, training;
    bool relu; /* of _FusedBatchNormEx */
} NormState;

static Error *norm_init(const Node *node, void *state) {
    NormState *st = state;
    Str format, value;
    Error *err = node_attr_float(node, "epsilon", &st->epsilon);
    if (!err) err = node_attr_bool(node, "is_training", &st->training);
    if (!err) err = node_attr_string(node, "data_format", &format);
    if (err) return err;
    st->channels_first = str_starts(format, STR("NC"));
    st->factor = 1;
    return node_attr(node, "exponential_avg_factor", &value)
               ? node_attr_float(node, "exponential_avg_factor", &st->factor)
               : NULL;
}

static Error *norm_ex_init(const Node *node, void *state) {
    NormState *st = state;
    Str mode = {0};
    int64_t sides = 0;
    Error *err = norm_init(node, state);
    if (!err) err = node_attr_string(node, "activation_mode", &mode);
    if (!err) err = node_attr_int(node, "num_side_inputs", &sides);
    if (err) return err;
    st->relu = str_is(mode, "Relu");
    if (!st->relu && !str_is(mode, "Identity")) return error_invalid("Unsupported fused batch norm activation mode: %.*s", STR_ARG(mode));
    if (sides > 1) return error_invalid("FusedBatchNorm accepts at most one side input.");
    return NULL;
}

static BatchNormType type_of(DataType t) {
    return t == DT_HALF ? BATCH_NORM_F16 : t == DT_BFLOAT16 ? BATCH_NORM_BF16 : BATCH_NORM_F32;
}

/* Checks x and finds its channels. */
static Error *norm_sizes(const NormState *st, const Tensor *x, BatchNorm *b) {
    int rank = x->shape.rank;
    if (rank != 4 && rank != 5) return error_invalid("input must be 4 or 5-dimensional%s", shape_text(&x->shape).text);
    int c = st->channels_first ? 1 : rank - 1;
    b->outer = shape_prod(&x->shape, 0, c);
    b->channels = x->shape.dims[c];
    b->inner = shape_prod(&x->shape, c + 1, rank);
    b->epsilon = st->epsilon;
    b->type = type_of(x->dtype);
    b->training = st->training;
    return NULL;
}

/* Input i is a vector of floats. */
static Error *check_vector(const KernelContext *k, int i, const char *what) {
    const Tensor *t = k->in[i];
    if (t->dtype != DT_FLOAT) return error_unimplemented("%s of type %s", what, dtype_name(t->dtype));
    if (t->shape.rank != 1) return error_invalid("%s must be 1-dimensional%s", what, shape_text(&t->shape).text);
    return NULL;
}

/* Input i has an element for each channel. */
static Error *check_channels(const KernelContext *k, int i, const char *what, int64_t channels) {
    const Tensor *t = k->in[i];
    if (t->count != channels) {
        return error_invalid("%s must have the same number of elements as the channels of x, got %lld and %lld", what,
                             (long long)t->count, (long long)channels);
    }
    return NULL;
}

/* Memory for the parts of a sum; NULL, with k->error, when there is none. */
static Tensor *parts_for(KernelContext *k, BatchNorm *b) {
    Shape room = shape_vector((int64_t)batch_norm_part_count(b));
    Tensor *t = kernel_scratch(k, DT_DOUBLE, &room);
    b->parts = t ? tensor_f64(t) : NULL;
    return t;
}

/* The new running averages; the variance is made unbiased. */
static void running_averages(KernelContext *k, const BatchNorm *b, float factor, float *mean, float *variance) {
    const float *old_mean = tensor_f32(k->in[3]), *old_variance = tensor_f32(k->in[4]);
    double pixels = (double)(b->outer * b->inner);
    float adjust = (float)(pixels / (pixels > 1 ? pixels - 1 : 1));
    for (int64_t c = 0; c < b->channels; c++) {
        mean[c] = b->mean[c];
        variance[c] = b->variance[c] * adjust;
        if (factor == 1) continue;
        mean[c] = (1 - factor) * old_mean[c] + factor * mean[c];
        variance[c] = (1 - factor) * old_variance[c] + factor * variance[c];
    }
}

static Error *norm_run(KernelContext *k) {
    const NormState *st = k->state;
    Tensor *x = k->in[0], *out[6] = {NULL};
    BatchNorm b = {.x = x->data, .scale = tensor_f32(k->in[1]), .offset = tensor_f32(k->in[2])};
    Error *err = norm_sizes(st, x, &b);
    if (!err) err = check_vector(k, 1, "scale");
    if (!err) err = check_vector(k, 2, "offset");
    if (!err) err = check_vector(k, 3, "estimated_mean");
    if (!err) err = check_vector(k, 4, "estimated_variance");
    if (!err) err = check_channels(k, 1, "scale", b.channels);
    if (!err) err = check_channels(k, 2, "offset", b.channels);
    if (!err && !st->training) {
        err = check_channels(k, 3, "When is_training=false, mean", b.channels);
        if (!err) err = check_channels(k, 4, "When is_training=false, variance", b.channels);
    } else if (!err && st->factor != 1) {
        err = check_channels(k, 3, "When exponential_avg_factor != 1, mean", b.channels);
        if (!err) err = check_channels(k, 4, "When exponential_avg_factor != 1, variance", b.channels);
    }
    if (err) return err;

    Shape vector = shape_vector(b.channels), scalar = SHAPE_SCALAR;
    for (int i = 0; i < k->output_count; i++) {
        out[i] = i == 0 ? kernel_output_from(k, 0, 0, &x->shape) : kernel_output(k, i, i == 5 ? &scalar : &vector);
        if (!out[i]) return NULL;
        if (i == 5) memset(out[i]->data, 0, tensor_bytes(out[i]));
    }
    float *mean = tensor_f32(out[1]), *variance = tensor_f32(out[2]);
    b.mean = tensor_f32(out[3]);
    b.variance = tensor_f32(out[4]);
    b.y = out[0]->data;
    if (x->count == 0) {
        for (int64_t c = 0; c < b.channels; c++) mean[c] = variance[c] = b.mean[c] = b.variance[c] = NAN;
        return NULL;
    }
    if (st->training) {
        Tensor *parts = parts_for(k, &b);
        if (!parts) return NULL;
        batch_norm_moments(&b, k->pool);
        tensor_unref(parts);
        running_averages(k, &b, st->factor, mean, variance);
    } else {
        for (int64_t c = 0; c < b.channels; c++) {
            mean[c] = b.mean[c] = tensor_f32(k->in[3])[c];
            variance[c] = b.variance[c] = tensor_f32(k->in[4])[c];
        }
    }
    batch_norm_normalize(&b, k->pool);
    return NULL;
}

typedef struct NormTail {
    void *y;
    const void *side; /* NULL: none */
    bool relu;
} NormTail;

#define BODY "ops/norm_activation.inc"
#include "kernels/each_float.inc"

/* y = activation(normalised + side input) */
static Error *norm_ex_run(KernelContext *k) {
    static RangeFn *const tails[DT_COUNT] = {FLOAT_TYPES(norm_tail)};
    const NormState *st = k->state;
    const Tensor *side = k->input_count > 5 ? k->in[5] : NULL;
    if (side && !shape_eq(&side->shape, &k->in[0]->shape)) {
        return error_invalid("side_input shape must be equal to input shape: %s != %s", shape_text(&side->shape).text, shape_text(&k->in[0]->shape).text);
    }
    if (k->in[0]->shape.rank != 4) return error_invalid("input must be 4-dimensional%s", shape_text(&k->in[0]->shape).text);
    Error *err = norm_run(k);
    if (err || k->error || !k->out[0]) return err;
    NormTail tail = {k->out[0]->data, side ? side->data : NULL, st->relu};
    threadpool_parallel_for(k->pool, k->out[0]->count, 32768, tails[k->out[0]->dtype], &tail);
    return NULL;
}

/* Inputs: dy, x, scale, and the mean and variance that the forward op used. */
static Error *norm_grad_run(KernelContext *k) {
    const NormState *st = k->state;
    Tensor *dy = k->in[0], *x = k->in[1], *out[5];
    BatchNorm b = {.x = x->data,
                   .dy = dy->data,
                   .scale = tensor_f32(k->in[2]),
                   .mean = tensor_f32(k->in[3]),
                   .variance = tensor_f32(k->in[4])};
    Error *err = norm_sizes(st, dy, &b);
    if (!err) err = norm_sizes(st, x, &b);
    if (!err) err = check_vector(k, 2, "scale");
    if (!err) err = check_vector(k, 3, "saved mean");
    if (!err) err = check_vector(k, 4, "saved variance");
    if (!err && !shape_eq(&dy->shape, &x->shape)) {
        err = error_invalid("x and y_backprop must have same shape, but x has shape %s and y_backprop has shape %s",
                            shape_text(&x->shape).text, shape_text(&dy->shape).text);
    }
    if (!err) err = check_channels(k, 2, "scale", b.channels);
    if (!err) err = check_channels(k, 3, "reserve_space_1", b.channels);
    if (!err) err = check_channels(k, 4, "reserve_space_2", b.channels);
    if (err) return err;

    Shape vector = shape_vector(b.channels), empty = shape_vector(0);
    for (int i = 0; i < 5; i++) {
        out[i] = i == 0 ? kernel_output_from(k, 0, 0, &x->shape) : kernel_output(k, i, i < 3 ? &vector : &empty);
        if (!out[i]) return NULL;
    }
    b.y = out[0]->data;
    b.sum_dy_x = tensor_f32(out[1]);
    b.sum_dy = tensor_f32(out[2]);
    Tensor *parts = parts_for(k, &b);
    if (!parts) return NULL;
    batch_norm_sums(&b, k->pool);
    if (x->count > 0) batch_norm_grad(&b, k->pool);
    tensor_unref(parts);
    /* An empty batch has no variance, and adds nothing. */
    for (int64_t c = 0; c < b.channels && x->count > 0; c++) b.sum_dy_x[c] /= sqrtf(b.variance[c] + b.epsilon);
    return NULL;
}

#define TYPES(run) [DT_FLOAT] = run, [DT_HALF] = run, [DT_BFLOAT16] = run
#define STATE .state_size = sizeof(NormState), .init = norm_init, .flags = KERNEL_EXPENSIVE

const KernelDef batch_norm_cpu[] = {
    {"FusedBatchNorm", .by_type = {TYPES(norm_run)}, STATE},
    {"FusedBatchNormV2", .by_type = {TYPES(norm_run)}, STATE},
    {"FusedBatchNormV3", .by_type = {TYPES(norm_run)}, STATE},
    {"_FusedBatchNormEx", .by_type = {TYPES(norm_ex_run)}, .state_size = sizeof(NormState), .init = norm_ex_init, .flags = KERNEL_EXPENSIVE},
    {"FusedBatchNormGrad", .by_type = {TYPES(norm_grad_run)}, STATE},
    {"FusedBatchNormGradV2", .by_type = {TYPES(norm_grad_run)}, STATE},
    {"FusedBatchNormGradV3", .by_type = {TYPES(norm_grad_run)}, STATE},
    {0},
};
