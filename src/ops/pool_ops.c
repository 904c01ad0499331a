/* pool_ops.c: MaxPool, AvgPool, their three-dimensional forms, MaxPoolWithArgmax, and the gradients. */
#include <stdlib.h>
#include <string.h>

#include "base/float16.h"
#include "kernels/pool.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"
#include "ops/window.h"

const OpDef pool_ops_ops[] = {
    {"MaxPool", "input: T -> output: T",
     "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float; ksize: list(int) "
     ">= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "
     "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     0},
    {"MaxPoolV2", "input: T, ksize: int32, strides: int32 -> output: T",
     "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float; padding: {'SAME', "
     "'VALID'}; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     0},
    {"MaxPoolGrad", "orig_input: T, orig_output: T, grad: T -> output: T",
     "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: "
     "list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: {float, double, int32, uint8, int16, int8, int64, "
     "bfloat16, uint16, half, uint32, uint64} = float",
     0},
    {"MaxPoolGradV2", "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T",
     "padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: {float, double, int32, uint8, int16, "
     "int8, int64, bfloat16, uint16, half, uint32, uint64} = float",
     0},
    {"MaxPoolWithArgmax", "input: T -> output: T, argmax: Targmax",
     "ksize: list(int) >= 4; strides: list(int) >= 4; Targmax: {int32, int64} = int64; padding: {'SAME', 'VALID'}; "
     "include_batch_in_index: bool = false; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "
     "half, uint32, uint64}",
     0},
    {"MaxPoolGradWithArgmax", "input: T, grad: T, argmax: Targmax -> output: T",
     "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; include_batch_in_index: bool = "
     "false; Targmax: {int32, int64}; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
     "uint32, uint64}",
     0},
    {"AvgPool", "value: T -> output: T",
     "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW'} = "
     "'NHWC'; T: {half, bfloat16, float, double}",
     0},
    {"AvgPoolGrad", "orig_input_shape: int32, grad: T -> output: T",
     "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW'} = "
     "'NHWC'; T: {half, bfloat16, float, double}",
     0},
    {"MaxPool3D", "input: T -> output: T",
     "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', 'NCDHW'} = "
     "'NDHWC'; T: {half, bfloat16, float}",
     0},
    {"MaxPool3DGrad", "orig_input: TInput, orig_output: TInput, grad: T -> output: T",
     "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', 'NCDHW'} = "
     "'NDHWC'; T: {half, bfloat16, float} = float; TInput: {half, bfloat16, float} = float",
     0},
    {"MaxPool3DGradGrad", "orig_input: T, orig_output: T, grad: T -> output: T",
     "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"MaxPoolGradGradV2", "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T",
     "padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"MaxPoolGradGrad", "orig_input: T, orig_output: T, grad: T -> output: T",
     "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"AvgPool3D", "input: T -> output: T",
     "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', 'NCDHW'} = "
     "'NDHWC'; T: {half, bfloat16, float, double}",
     0},
    {"AvgPool3DGrad", "orig_input_shape: int32, grad: T -> output: T",
     "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', 'NCDHW'} = "
     "'NDHWC'; T: {half, bfloat16, float, double}",
     0},
    {0},
};

typedef struct PoolState {
    int rank; /* of the images: 4 or 5 */
    bool channels_first;
    bool same, is_explicit;
    int64_t ksize[5], strides[5], pads[10];
    bool average;       /* AvgPool and its like */
    bool include_batch; /* MaxPoolWithArgmax */
} PoolState;

static Error *check_window(const PoolState *st) {
    int c = st->channels_first ? 1 : st->rank - 1;
    for (int d = 0; d < st->rank; d++) {
        bool fits = st->ksize[d] > 0 && st->ksize[d] <= INT32_MAX;
        if (!fits && st->rank == 5) return error_invalid("Sliding window ksize field must have non-negative dimensions");
        if (!fits && st->average) return error_invalid("ksize must be a positive int32 value, got:%lld", (long long)st->ksize[d]);
        if (!fits) {
            return error_invalid(
                "Sliding window ksize must be positive. The specified or inferred ksize is: %lld,%lld,%lld,%lld",
                (long long)st->ksize[0], (long long)st->ksize[1], (long long)st->ksize[2], (long long)st->ksize[3]);
        }
        if (st->strides[d] <= 0 || st->strides[d] > INT32_MAX) {
            return error_invalid("Sliding window stride must be positive, got %lld", (long long)st->strides[d]);
        }
    }
    if (st->ksize[0] != 1 || st->strides[0] != 1) {
        return error_unimplemented("Pooling is not yet supported on the batch dimension.");
    }
    if (st->rank == 5 && (st->ksize[c] != 1 || st->strides[c] != 1)) {
        return error_unimplemented("Pooling is not yet supported on the depth dimension.");
    }
    return NULL;
}

/* A pool of flat images goes over rows and columns or over channels, not both; `channels` are those of the image. */
static Error *check_depth(const PoolState *st, int64_t channels) {
    int c = st->channels_first ? 1 : st->rank - 1;
    int64_t size = st->ksize[c];
    if (st->rank != 4 || size == 1) return NULL;
    for (int d = 1; d < st->rank; d++) {
        if (d != c && st->ksize[d] != 1) {
            return error_unimplemented("MaxPooling supports exactly one of pooling across depth or pooling across width/height.");
        }
    }
    if (channels % size != 0) {
        return error_unimplemented("Depthwise max pooling requires the depth window to evenly divide the input depth");
    }
    if (st->strides[c] == size) return NULL;
    return error_unimplemented("Depthwise max pooling requires the depth window to equal the depth stride");
}

static Error *read_list(const Node *node, const char *name, int64_t *out, int want) {
    int64_t *items = NULL;
    int count = 0;
    Error *err = node_attr_ints(node, name, &items, &count);
    if (!err && count != want) {
        err = error_invalid("%.*s: %s must specify %d dimensions, got %d", STR_ARG(node->op), name, want, count);
    }
    if (!err) memcpy(out, items, (size_t)want * sizeof *out);
    free(items);
    return err;
}

static Error *pool_init(const Node *node, void *state) {
    PoolState *st = state;
    Str padding, value, format = STR("NHWC");
    Error *err = node_attr_string(node, "padding", &padding);
    if (!err && node_attr(node, "data_format", &value)) err = node_attr_string(node, "data_format", &format);
    if (err) return err;
    st->same = str_is(padding, "SAME");
    st->is_explicit = str_is(padding, "EXPLICIT");
    st->rank = str_ends(format, STR("DHWC")) || str_is(format, "NCDHW") ? 5 : 4;
    st->channels_first = str_starts(format, STR("NC"));
    st->average = str_starts(node->op, STR("Avg"));
    if (str_is(format, "NCHW_VECT_C")) return error_unimplemented("data format NCHW_VECT_C");
    if (node_attr(node, "include_batch_in_index", &value)) {
        err = node_attr_bool(node, "include_batch_in_index", &st->include_batch);
    }
    if (!err && st->is_explicit) err = read_list(node, "explicit_paddings", st->pads, 2 * st->rank);
    if (!err && st->is_explicit) err = window_check_pads(st->pads, 2 * st->rank, st->rank, st->channels_first ? 1 : st->rank - 1);
    if (err || !node_attr(node, "ksize", &value)) return err;
    err = read_list(node, "ksize", st->ksize, st->rank);
    if (!err) err = read_list(node, "strides", st->strides, st->rank);
    if (!err) err = check_window(st);
    return err;
}

typedef struct PoolJob {
    PoolShape shape;
    void *z;
    const void *x, *dz;
    const void *pooled; /* the maxima, for their gradient */
    int64_t *at;
} PoolJob;

/* The window of the second forms of MaxPool is an input; `first` is ksize, the next strides. */
static Error *read_window(const KernelContext *k, int first, PoolState *st) {
    for (int i = 0; i < 2; i++) {
        const Tensor *t = k->in[first + i];
        if (t->count != 4) { /* of any shape, as in TensorFlow */
            return error_invalid("Sliding window %s field must specify 4 dimensions", i == 0 ? "ksize" : "stride");
        }
        for (int d = 0; d < 4; d++) {
            (i == 0 ? st->ksize : st->strides)[d] = tensor_index(t, d);
            if (i == 0 && st->ksize[d] <= 0) return error_invalid("Sliding window ksize must be positive.");
        }
    }
    return check_window(st);
}

/* The image of a forward op, whose rank TensorFlow refuses in other words than that of a gradient. */
static Error *check_image(const KernelContext *k, const PoolState *st) {
    const Tensor *x = k->in[0];
    bool with_argmax = node_is(k->node, "MaxPoolWithArgmax");
    if (with_argmax && x->shape.rank != 4) return error_invalid("tensor_in must be 4-dimensional (2)");
    if (with_argmax && x->count == 0) return error_invalid("tensor_in must not be empty (2)");
    if (st->rank == 5) return NULL;
    if (x->shape.rank == 4) return check_depth(st, x->shape.dims[st->channels_first ? 1 : 3]);
    return error_invalid("tensor_in_shape must have 2 spatial dimensions. %d %d", x->shape.rank, st->channels_first);
}

/* The three inputs of a gradient of MaxPool; `last` is what TensorFlow calls the third. */
static Error *check_ranks(const KernelContext *k, const PoolState *st, const char *last) {
    const char *names[] = {"tensor_in", "tensor_out", last};
    for (int i = 0; i < 3; i++) {
        if (k->in[i]->shape.rank != st->rank) return error_invalid("%s must be %d-dimensional", names[i], st->rank);
    }
    return NULL;
}

static Error *check_shape(const char *what, const Shape *want, const Shape *got) {
    if (shape_eq(want, got)) return NULL;
    return error_invalid("Expected %s shape to be %s, but got %s", what, shape_text(want).text, shape_text(got).text);
}

/* Where the windows of an image of shape `in` are; *out is the shape of the pooled image. */
static Error *pool_shape(const PoolState *st, const Shape *in, PoolShape *s, Shape *out) {
    int c = st->channels_first ? 1 : st->rank - 1, first = st->channels_first ? 2 : 1;
    if (in->rank != st->rank) {
        return error_invalid("tensor_in must be %d-dimensional", st->rank);
    }
    *s = (PoolShape){.batch = in->dims[0], .channels = in->dims[c], .channels_first = st->channels_first};
    *out = *in;
    for (int i = 0; i < 3; i++) {
        int d = first + i - (5 - st->rank); /* flat images have no depth */
        s->in[i] = s->out[i] = s->k[i] = s->stride[i] = 1;
        if (st->rank == 4 && i == 0) continue;
        int64_t n = in->dims[d], k = st->ksize[d], stride = st->strides[d], after = 0;
        s->in[i] = n;
        s->k[i] = k;
        s->stride[i] = stride;
        if (st->same) {
            s->out[i] = (n + stride - 1) / stride;
            int64_t pad = (s->out[i] - 1) * stride + k - n;
            s->pad[i] = pad > 0 ? pad / 2 : 0;
        } else {
            s->pad[i] = st->is_explicit ? st->pads[2 * d] : 0;
            after = st->is_explicit ? st->pads[2 * d + 1] : 0;
            if (s->pad[i] >= k || after >= k) {
                bool is_before = s->pad[i] >= k;
                return error_invalid("%s padding %lld needs to be smaller than the window size %lld",
                                     i == 2 ? is_before ? "Left" : "Right" : is_before ? "Top" : "Bottom",
                                     (long long)(is_before ? s->pad[i] : after), (long long)k);
            }
            s->out[i] = (n + s->pad[i] + after - k + stride) / stride;
            if (s->out[i] < 0) {
                return error_invalid(
                    "Computed output size would be negative: %lld [input_size: %lld, effective_filter_size: "
                    "%lld, stride: %lld]",
                    (long long)s->out[i], (long long)n, (long long)k, (long long)stride);
            }
        }
        out->dims[d] = s->out[i];
    }
    return NULL;
}

static void pool_images(KernelContext *k, PoolJob *job, RangeFn *range) {
    const PoolShape *s = &job->shape;
    double work = 1.0 * (double)s->out[0] * (double)s->out[1] * (double)s->out[2] * (double)s->k[0] * (double)s->k[1] * (double)s->k[2] * (double)s->channels;
    threadpool_parallel_for(k->pool, s->batch, (int64_t)(32768 / (work > 1 ? work : 1)) + 1, range, job);
}

/* Pooling across channels: they become the width of an image with one channel. */
static Error *depth_pool(KernelContext *k, const PoolState *st, RangeFn *range) {
    const Tensor *x = k->in[0];
    int64_t channels = x->shape.dims[x->shape.rank - 1], size = st->ksize[st->rank - 1];
    if (st->channels_first) return error_unimplemented("Depthwise max pooling of channels that come first");
    Shape out = x->shape;
    out.dims[out.rank - 1] = channels / size;
    Tensor *z = kernel_output(k, 0, &out);
    if (!z || z->count == 0) return NULL;
    PoolJob job = {.z = z->data, .x = x->data};
    job.shape = (PoolShape){.batch = z->count / out.dims[out.rank - 1],
                            .channels = 1,
                            .in = {1, 1, channels},
                            .out = {1, 1, channels / size},
                            .k = {1, 1, size},
                            .stride = {1, 1, size}};
    pool_images(k, &job, range);
    return NULL;
}

static bool has_depth(const PoolState *st) {
    return st->ksize[st->channels_first ? 1 : st->rank - 1] != 1;
}

static Error *max_run(KernelContext *k, RangeFn *range) {
    PoolState st = *(const PoolState *)k->state;
    PoolJob job = {.x = k->in[0]->data};
    Shape out;
    Error *err = node_is(k->node, "MaxPoolV2") ? read_window(k, 1, &st) : NULL;
    if (!err) err = check_image(k, &st);
    if (err) return err;
    if (has_depth(&st) && k->output_count == 1) return depth_pool(k, &st, range);
    for (int d = 0; has_depth(&st) && d < st.rank; d++) st.ksize[d] = st.strides[d] = 1; /* as TensorFlow: the places of all */
    err = pool_shape(&st, &k->in[0]->shape, &job.shape, &out);
    if (err) return err;
    Tensor *z = kernel_output(k, 0, &out);
    if (!z) return NULL;
    job.z = z->data;
    job.shape.finite = st.rank == 4; /* as TensorFlow's MaxPool; MaxPoolWithArgmax and MaxPool3D do otherwise */
    if (k->output_count == 1) {
        if (z->count > 0) pool_images(k, &job, range);
        return NULL;
    }
    Tensor *at = kernel_output(k, 1, &out), *wide = at ? kernel_scratch(k, DT_INT64, &out) : NULL;
    if (!wide) return NULL;
    job.at = tensor_i64(wide);
    if (z->count > 0) pool_images(k, &job, range);
    int64_t each = job.shape.batch ? k->in[0]->count / job.shape.batch : 0,
            of = job.shape.batch ? z->count / job.shape.batch : 1;
    for (int64_t i = 0; i < wide->count; i++) index_put(at, i, job.at[i] + (st.include_batch ? i / of * each : 0));
    tensor_unref(wide);
    return NULL;
}

/* Inputs: the image, the pooled image, the gradient of that. */
static Error *max_grad_run(KernelContext *k, RangeFn *range) {
    PoolState st = *(const PoolState *)k->state;
    PoolJob job = {.x = k->in[0]->data, .pooled = k->in[1]->data, .dz = k->in[2]->data};
    Shape out;
    if (k->in[0]->dtype != k->in[2]->dtype) return error_unimplemented("%.*s of mixed types", STR_ARG(k->node->op));
    Error *err = check_ranks(k, &st, "out_backprop");
    if (!err && node_is(k->node, "MaxPoolGradV2")) err = read_window(k, 3, &st);
    if (!err && (has_depth(&st) || st.strides[st.channels_first ? 1 : st.rank - 1] != 1)) {
        err = error_unimplemented("MaxPoolingGrad is not yet supported on the depth dimension.");
    }
    if (!err) err = pool_shape(&st, &k->in[0]->shape, &job.shape, &out);
    if (!err) err = check_shape("orig_output", &out, &k->in[1]->shape);
    if (!err) err = check_shape("grad", &out, &k->in[2]->shape);
    if (err) return err;
    Tensor *dx = kernel_output(k, 0, &k->in[0]->shape);
    if (!dx) return NULL;
    job.z = dx->data;
    if (dx->count > 0) pool_images(k, &job, range);
    return NULL;
}

/* Inputs: the image, the pooled image, and a gradient like the image: it is read where the maxima are. */
static Error *max_grad_grad_run(KernelContext *k, RangeFn *range) {
    PoolState st = *(const PoolState *)k->state;
    const Tensor *x = k->in[0], *dx = k->in[2];
    PoolJob job = {.x = x->data};
    Shape out;
    if (x->dtype != dx->dtype) return error_unimplemented("%.*s of mixed types", STR_ARG(k->node->op));
    Error *err = check_ranks(k, &st, "out_grad_backprop");
    if (!err && node_is(k->node, "MaxPoolGradGradV2")) err = read_window(k, 3, &st);
    if (!err && (has_depth(&st) || st.strides[st.channels_first ? 1 : st.rank - 1] != 1)) {
        err = error_unimplemented("MaxPoolingGradGrad is not yet supported on the depth dimension.");
    }
    if (!err) err = pool_shape(&st, &x->shape, &job.shape, &out);
    if (!err) err = check_shape("orig_output", &out, &k->in[1]->shape);
    if (!err) err = check_shape("grad", &x->shape, &dx->shape);
    if (err) return err;
    Tensor *z = kernel_output(k, 0, &out), *at = z ? kernel_scratch(k, DT_INT64, &out) : NULL;
    if (!at) return NULL;
    job.z = z->data;
    job.at = tensor_i64(at);
    if (z->count > 0) pool_images(k, &job, range);
    size_t size = dtype_size(z->dtype);
    int64_t each = job.shape.batch ? x->count / job.shape.batch : 0, of = job.shape.batch ? z->count / job.shape.batch : 1;
    for (int64_t i = 0; i < z->count; i++)
        memcpy((char *)z->data + (size_t)i * size, (const char *)dx->data + (size_t)(i / of * each + job.at[i]) * size, size);
    tensor_unref(at);
    return NULL;
}

/* Inputs: the image, the gradient, and where in the image each element of it belongs. */
static Error *argmax_grad(KernelContext *k) {
    const PoolState *st = k->state;
    const Tensor *x = k->in[0], *dz = k->in[1], *at = k->in[2];
    const RowMath *math = row_math(x->dtype);
    if (!math) return error_unimplemented("MaxPoolGradWithArgmax of %s", dtype_name(x->dtype));
    PoolShape sizes;
    Shape out;
    Error *err = check_image(k, st);
    if (!err) err = pool_shape(st, &x->shape, &sizes, &out);
    if (!err) err = check_shape("grad", &out, &dz->shape);
    if (!err) err = check_shape("argmax", &out, &at->shape);
    if (err) return err;
    int64_t batch = x->shape.dims[0];
    Tensor *dx = kernel_output(k, 0, &x->shape);
    if (!dx) return NULL;
    if (dx->count > 0) memset(dx->data, 0, tensor_bytes(dx));
    size_t size = dtype_size(dx->dtype);
    for (int64_t i = 0; i < dz->count; i++) {
        int64_t image = i / (dz->count / batch);
        int64_t to = tensor_index(at, i) + (st->include_batch ? 0 : image * (x->count / batch));
        if (to < 0 || to >= x->count) {
            return error_invalid("argmax[%lld] = %lld is outside of the input", (long long)i,
                                 (long long)tensor_index(at, i));
        }
        math->add((char *)dx->data + (size_t)to * size, (const char *)dz->data + (size_t)i * size, 1);
    }
    return NULL;
}

static Error *refuse_depth(const PoolState *st) {
    if (!has_depth(st)) return NULL;
    return error_unimplemented("Non-spatial pooling is not yet supported. Volunteers? :)");
}

static Error *avg_run(KernelContext *k, RangeFn *range) {
    const PoolState *st = k->state;
    PoolJob job = {.x = k->in[0]->data};
    Shape out;
    Error *err = check_image(k, st);
    if (!err) err = refuse_depth(st);
    if (!err) err = pool_shape(st, &k->in[0]->shape, &job.shape, &out);
    if (err) return err;
    Tensor *z = kernel_output(k, 0, &out);
    if (!z) return NULL;
    job.z = z->data;
    if (z->count > 0) pool_images(k, &job, range);
    return NULL;
}

/* The windows of a gradient of shape `dz`, which need not be that of the pooled image, end inside of an image of shape `in`. */
static Error *check_reach(const PoolShape *s, const Shape *in, const Shape *dz) {
    if (shape_count(dz) == 0) return NULL;
    for (int64_t r = 0; r < dz->dims[1]; r++) {
        for (int64_t c = 0; c < dz->dims[2]; c++) {
            int64_t at[2] = {r, c}, end[2];
            for (int i = 0; i < 2; i++) {
                int64_t size = s->in[i + 1], start = at[i] * s->stride[i + 1];
                if (start > size) return error_invalid("index * stride must be less than or equal to input size");
                end[i] = start - s->pad[i + 1] + s->k[i + 1] < size ? start - s->pad[i + 1] + s->k[i + 1] : size;
            }
            int64_t last = 0, count = shape_count(in);
            bool is_far = __builtin_mul_overflow(dz->dims[0] - 1, s->in[1], &last) || __builtin_add_overflow(last, end[0] - 1, &last) ||
                          __builtin_mul_overflow(last, s->in[2], &last) || __builtin_add_overflow(last, end[1] - 1, &last);
            if (is_far) last = INT64_MAX;
            if (last >= count) {
                return error_invalid("Output only has %lld elements but computation requested would use element with index=%lld", (long long)count, (long long)last);
            }
        }
    }
    return NULL;
}

/* Inputs: the shape of the image, the gradient of the pooled image. */
static Error *avg_grad_run(KernelContext *k, RangeFn *range) {
    const PoolState *st = k->state;
    PoolJob job = {.dz = k->in[1]->data};
    Shape in, out;
    if (k->in[0]->shape.rank != 1 || k->in[0]->count != st->rank) {
        return error_invalid("%s must be 1-dimensional and %d elements", st->rank == 4 ? "out_backprop" : "tensor_in", st->rank);
    }
    if (k->in[1]->shape.rank != st->rank) return error_invalid("out_backprop must be %d-dimensional", st->rank);
    for (int d = 0; d < st->rank; d++) {
        int64_t size = tensor_index(k->in[0], d);
        if (size < 0) return error_invalid("Expected a non-negative size, got %lld", (long long)size);
    }
    Error *err = refuse_depth(st);
    if (!err) err = kernel_shape_input(k, 0, &in);
    if (!err) err = pool_shape(st, &in, &job.shape, &out);
    if (err) return err;
    if (st->rank == 5 && in.dims[0] != k->in[1]->shape.dims[0]) {
        return error_invalid("Expected first dimension of tensor_in_shape and out_backprop to match, got %lld and %lld",
                             (long long)in.dims[0], (long long)k->in[1]->shape.dims[0]);
    }
    if (!shape_eq(&out, &k->in[1]->shape) && st->rank == 4 && !st->channels_first && shape_count(&in) > 0) err = check_reach(&job.shape, &in, &k->in[1]->shape);
    if (!err) err = check_shape("grad", &out, &k->in[1]->shape);
    if (err) return err;
    Tensor *dx = kernel_output(k, 0, &in);
    if (!dx) return NULL;
    job.z = dx->data;
    if (dx->count > 0) pool_images(k, &job, range);
    return NULL;
}

#define BODY "ops/pool_float.inc"
#include "kernels/each_float.inc"
#undef BODY
#define BODY "ops/pool_types.inc"
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"

#define STATE .state_size = sizeof(PoolState), .init = pool_init, .flags = KERNEL_EXPENSIVE

const KernelDef pool_ops_cpu[] = {
    {"MaxPool", .by_type = {REAL_TYPES(max)}, STATE},
    {"MaxPoolV2", .by_type = {REAL_TYPES(max)}, STATE},
    {"MaxPoolGrad", .by_type = {REAL_TYPES(max_grad)}, STATE},
    {"MaxPoolGradV2", .by_type = {REAL_TYPES(max_grad)}, STATE},
    {"MaxPoolGradGrad", .by_type = {REAL_TYPES(max_grad_grad)}, STATE},
    {"MaxPoolGradGradV2", .by_type = {REAL_TYPES(max_grad_grad)}, STATE},
    {"MaxPoolWithArgmax", .by_type = {REAL_TYPES(max)}, STATE},
    {"MaxPoolGradWithArgmax", .run = argmax_grad, STATE},
    {"AvgPool", .by_type = {FLOAT_TYPES(avg)}, STATE},
    {"AvgPoolGrad", .by_type = {FLOAT_TYPES(avg_grad)}, STATE},
    {"MaxPool3D", .by_type = {FLOAT_TYPES(max)}, STATE},
    {"MaxPool3DGrad", .by_type = {FLOAT_TYPES(max_grad_all)}, STATE},
    {"MaxPool3DGradGrad", .by_type = {FLOAT_TYPES(max_grad_grad)}, STATE},
    {"AvgPool3D", .by_type = {FLOAT_TYPES(avg)}, STATE},
    {"AvgPool3DGrad", .by_type = {FLOAT_TYPES(avg_grad)}, STATE},
    {0},
};
