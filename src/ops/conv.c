/* conv.c: Conv2D, DepthwiseConv2dNative, their gradients by input and by filter; Conv, of images or volumes. */
#include <stdlib.h>
#include <string.h>

#include "kernels/conv2d.h"
#include "ops/as_float.h"
#include "ops/conv3d.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/window.h"

const OpDef conv_ops[] = {
    {"Conv2D", "input: T, filter: T -> output: T",
     "T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; padding: "
     "{'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
     "dilations: list(int) = [1, 1, 1, 1]",
     0},
    {"Conv2DBackpropInput", "input_sizes: int32, filter: T, out_backprop: T -> output: T",
     "T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; padding: "
     "{'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
     "dilations: list(int) = [1, 1, 1, 1]",
     0},
    {"Conv2DBackpropFilter", "input: T, filter_sizes: int32, out_backprop: T -> output: T",
     "T: {half, bfloat16, float, double}; strides: list(int); use_cudnn_on_gpu: bool = true; padding: {'SAME', "
     "'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: "
     "list(int) = [1, 1, 1, 1]",
     0},
    {"DepthwiseConv2dNative", "input: T, filter: T -> output: T",
     "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "
     "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, "
     "1]",
     0},
    {"DepthwiseConv2dNativeBackpropInput", "input_sizes: int32, filter: T, out_backprop: T -> output: T",
     "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "
     "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, "
     "1]",
     0},
    {"DepthwiseConv2dNativeBackpropFilter", "input: T, filter_sizes: int32, out_backprop: T -> output: T",
     "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "
     "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, "
     "1]",
     0},
    {"Conv", "input: T, filter: T -> output: T",
     "T: {half, bfloat16, float, double, int32}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "
     "explicit_paddings: list(int) = []; data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'; "
     "dilations: list(int) = []; batch_dims: int = 1; groups: int = 1",
     0},
    {0},
};

typedef struct ConvState {
    Window win; /* first: conv3d.h */
    bool depthwise; /* each channel has filters of its own: a convolution in as many groups, with the same memory */
    int64_t batch_dims; /* of Conv: how many the images have that are one to the convolution */
    Conv2dCache *cache;
} ConvState;

static Error *conv_init(const Node *node, void *state) {
    ConvState *st = state;
    Error *err = window_init(&st->win, node);
    if (err) return err;
    st->depthwise = str_starts(node->op, STR("Depthwise"));
    const Window *w = &st->win;
    if (w->strides[0] != 1 || w->strides[w->c] != 1) {
        return error_new(st->depthwise ? CODE_INVALID_ARGUMENT : CODE_UNIMPLEMENTED,
                         "Current implementation does not yet support strides in the batch and depth dimensions.");
    }
    if (w->strides[w->h] < 1 || w->strides[w->w] < 1) {
        return error_invalid("Row and column strides should be larger than 0.");
    }
    if (w->dilations[0] != 1 || w->dilations[w->c] != 1) {
        return error_unimplemented(
            "Current implementation does not yet support dilations in the batch and depth dimensions.");
    }
    if (w->dilations[w->h] < 1 || w->dilations[w->w] < 1) {
        return error_invalid("Dilated rates should be larger than 0.");
    }
    st->cache = conv2d_cache_new();
    return NULL;
}
static void conv_clear(void *state) {
    ConvState *st = state;
    conv2d_cache_free(st->cache);
    st->cache = NULL;
}

/* Works out all sizes from those of image and filter. */
static Error *conv_shape(const ConvState *st, const Shape *in, const Shape *filter, Conv2dShape *s) {
    const Window *w = &st->win;
    if (st->depthwise && in->rank != 4) return error_invalid("input must be 4-dimensional%s", shape_text(in).text);
    if (st->depthwise && filter->rank != 4)
        return error_invalid("filter must be 4-dimensional: %s", shape_text(filter).text);
    if (in->rank != 4) return error_invalid("convolution input must be 4-dimensional: %s", shape_text(in).text);
    if (filter->rank != 4)
        return error_invalid("convolution filter must be 4-dimensional: %s", shape_text(filter).text);
    if (filter->dims[2] == 0 && !st->depthwise) return error_invalid("filter depth must be stricly positive, got 0");
    for (int d = 0; d < 4; d++) {
        if (in->dims[d] > INT32_MAX || filter->dims[d] > INT32_MAX) {
            return error_invalid("convolution of %s with %s is too large", shape_text(in).text,
                                 shape_text(filter).text);
        }
        if (filter->dims[d] <= 0 && !st->depthwise && d < 3)
            return error_invalid("filter must not have zero elements (i.e. all dimensions must be non-zero)");
    }
    int64_t in_c = in->dims[w->c], filter_c = filter->dims[2], out_c = filter->dims[3];
    if (st->depthwise) {
        if (in_c != filter_c) {
            return error_invalid("input and filter must have the same depth: %lld vs %lld", (long long)in_c,
                                 (long long)filter_c);
        }
        out_c *= in_c;
        filter_c = 1;
    }
    if (in_c % filter_c != 0) {
        return error_invalid("input depth must be evenly divisible by filter depth: %lld vs %lld", (long long)in_c,
                             (long long)filter_c);
    }
    int64_t groups = in_c / filter_c;
    if (groups > 0 && out_c % groups != 0) {
        return error_invalid("output depth must be evenly divisible by number of groups: %lld vs %lld",
                             (long long)out_c, (long long)groups);
    }
    Span h, v;
    Error *err = window_span(w, w->h, in->dims[w->h], filter->dims[0], &h);
    if (!err) err = window_span(w, w->w, in->dims[w->w], filter->dims[1], &v);
    if (err) return err;
    *s = (Conv2dShape){
        .batch = in->dims[0],
        .in_h = in->dims[w->h],
        .in_w = in->dims[w->w],
        .in_c = in_c,
        .out_h = h.out,
        .out_w = v.out,
        .out_c = out_c,
        .k_h = filter->dims[0],
        .k_w = filter->dims[1],
        .groups = groups,
        .stride_h = w->strides[w->h],
        .stride_w = w->strides[w->w],
        .dilation_h = w->dilations[w->h],
        .dilation_w = w->dilations[w->w],
        .pad_top = h.before,
        .pad_left = v.before,
        .channels_first = w->channels_first,
    };
    return NULL;
}

static Shape image_shape(const Window *w, int64_t batch, int64_t h, int64_t wide, int64_t c) {
    Shape s = {.rank = 4};
    s.dims[0] = batch;
    s.dims[w->h] = h;
    s.dims[w->w] = wide;
    s.dims[w->c] = c;
    return s;
}

/* ---- Half types are computed in float, but for bfloat16 where the processor knows it ---- */

/* Calls it for all elements, among threads. */
static void finish(KernelContext *k, RangeCall done, const Tensor *t) {
    if (done.fn) threadpool_parallel_for(k->pool, t->count, 16384, done.fn, done.arg);
}

/* t[0..2] are image, filter and output; the one that `kind` computes is written. */
static Error *convolve(KernelContext *k, Conv2dKind kind, const Conv2dShape *s, Tensor *const *t) {
    const ConvState *st = k->state;
    int result = kind == CONV2D_FORWARD ? 2 : kind == CONV2D_BACK_INPUT ? 0 : 1;
    if (t[result]->count == 0) return NULL;
    if (t[0]->count == 0 || t[1]->count == 0 || t[2]->count == 0) {
        memset(t[result]->data, 0, tensor_bytes(t[result]));
        return NULL;
    }
    DataType dtype = t[0]->dtype;
    RangeCall done = kind == CONV2D_FORWARD ? kernel_tail(k, t[2]) : (RangeCall){0}, none = {0};
    if (dtype == DT_DOUBLE || dtype == DT_INT32) {
        if (dtype == DT_INT32 || !conv2d_patches_f64(kind, s, t[0]->data, t[1]->data, t[2]->data, k->pool))
            (dtype == DT_DOUBLE ? conv2d_plain_f64 : conv2d_plain_i32)(kind, s, t[0]->data, t[1]->data, t[2]->data);
        finish(k, done, t[2]);
        return NULL;
    }
    if (dtype == DT_BFLOAT16 && conv2d_onednn(st->cache, kind, CONV2D_BF16, s, t[0]->data, t[1]->data, t[2]->data, k->pool, done)) return NULL;
    Tensor *wide[3] = {NULL, NULL, NULL};
    float *data[3];
    Error *err = NULL;
    for (int i = 0; i < 3; i++) {
        data[i] = t[i]->data;
        if (dtype == DT_FLOAT) continue;
        wide[i] = kernel_scratch(k, DT_FLOAT, &t[i]->shape);
        if (!wide[i]) goto out;
        data[i] = wide[i]->data;
        if (i != result) floats_load(t[i], 0, t[i]->count, data[i]);
    }
    bool plain = !conv2d_onednn(st->cache, kind, CONV2D_F32, s, data[0], data[1], data[2], k->pool, wide[result] ? none : done);
    if (plain) conv2d_plain_f32(kind, s, data[0], data[1], data[2]);
    if (wide[result]) floats_store(data[result], t[result], 0, t[result]->count);
    if (plain || wide[result]) finish(k, done, t[result]);
out:
    for (int i = 0; i < 3; i++) tensor_unref(wide[i]);
    return err;
}

/* ---- The ops ---- */

static Error *conv2d_run(KernelContext *k) {
    const ConvState *st = k->state;
    Conv2dShape s;
    Error *err = conv_shape(st, &k->in[0]->shape, &k->in[1]->shape, &s);
    if (err) return err;
    Shape shape = image_shape(&st->win, s.batch, s.out_h, s.out_w, s.out_c);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    return convolve(k, CONV2D_FORWARD, &s, (Tensor *[]){k->in[0], k->in[1], z});
}

/* A shape that is given as an input; image sizes may be height and width alone. */
static Error *read_sizes(const KernelContext *k, int input, const char *what, Shape *out) {
    const Tensor *t = k->in[input];
    const bool of_filter = str_ends(k->node->op, STR("Filter"));
    if (((const ConvState *)k->state)->depthwise) {
        if (t->shape.rank != 1) {
            return error_invalid("Conv2DBackprop%s: %s input must be 1-dim, not %d", of_filter ? "Filter" : "Input", what,
                                 t->shape.rank);
        }
        if (t->count != 4) {
            return error_invalid("DepthwiseConv2DBackprop%s: %s must be 4-dimensional", of_filter ? "Filter" : "Input",
                                 of_filter ? "filter" : "input");
        }
        for (int d = 0; d < 4; d++) {
            if (tensor_index(t, d) < 0) return error_invalid("Dimension %d of %s must be >= 0", d, what);
        }
    }
    if (t->shape.rank != 1) return error_invalid("Conv2D%sBackprop%s: %s input must be 1-dim, not %d", of_filter ? "Custom" : "", of_filter ? "Filter" : "Input", what, t->shape.rank);
    if (t->count != 4 && of_filter) return error_invalid("Conv2DCustomBackpropFilter: filter must be 4-dimensional");
    if (t->count != 4) return error_invalid("Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: %lld", (long long)t->count);
    out->rank = 4;
    for (int d = 0; d < 4; d++) {
        out->dims[d] = tensor_index(t, d);
        if (out->dims[d] < 0) {
            return error_invalid("Dimension %lld must be >= 0", (long long)out->dims[d]);
        }
    }
    return NULL;
}

/* The checks of a gradient of DepthwiseConv2dNative that name what is wrong; `in` and `filter` may have any rank. */
static Error *check_depthwise(const KernelContext *k, const Shape *in, const Shape *filter) {
    const ConvState *st = k->state;
    const Window *w = &st->win;
    const Shape *dz = &k->in[2]->shape;
    const char *op = str_ends(k->node->op, STR("Input")) ? "DepthwiseConv2DBackpropInput" : "DepthwiseConv2DBackpropFilter";
    if (in->rank != 4) return error_invalid("%s: input must be 4-dimensional", op);
    if (filter->rank != 4) return error_invalid("%s: filter must be 4-dimensional", op);
    if (dz->rank != 4) return error_invalid("%s: out_backprop must be 4-dimensional", op);
    if (in->dims[0] != dz->dims[0]) return error_invalid("%s: input and out_backprop must have the same batch size", op);
    if (in->dims[w->c] != filter->dims[2]) return error_invalid("%s: input and filter must have the same in_depth", op);
    if (filter->dims[3] * in->dims[w->c] != dz->dims[w->c])
        return error_invalid("%s: depth_multiplier * in_depth not equal to out_depth", op);
    for (int i = 0; i < 2; i++) {
        int d = i == 0 ? w->h : w->w;
        Span span;
        Error *err = window_span(w, d, in->dims[d], filter->dims[i], &span);
        if (err) return err;
        if (span.out == dz->dims[d]) continue;
        return error_invalid("%s: Number of %s of out_backprop doesn't match computed: actual = %lld, computed = %lld",
                             op, i == 0 ? "rows" : "cols", (long long)dz->dims[d], (long long)span.out);
    }
    return NULL;
}

/* What TensorFlow's errors call a gradient of Conv2D. */
static const char *backprop_name(const KernelContext *k) {
    return str_ends(k->node->op, STR("Input")) ? "Conv2DCustomBackpropInput" : "Conv2DCustomBackpropFilter";
}

static Error *check_depth(const KernelContext *k, const Shape *in, const Shape *filter) {
    int c = ((const ConvState *)k->state)->win.c;
    if (in->rank != 4) return error_invalid("%s: input must be 4-dimensional", backprop_name(k));
    if (filter->rank != 4) return error_invalid("%s: filter must be 4-dimensional", backprop_name(k));
    if (filter->dims[2] <= 0) return error_invalid("%s: filter depth must be strictly greated than zero", backprop_name(k));
    if (in->dims[c] % filter->dims[2] == 0) return NULL;
    return error_invalid("%s: input depth must be evenly divisible by filter depth", backprop_name(k));
}

/* out_backprop must be what the forward convolution would give. */
static Error *check_backprop(const KernelContext *k, const Conv2dShape *s, const Shape *dz) {
    const Window *w = &((const ConvState *)k->state)->win;
    const char *op = backprop_name(k);
    if (dz->rank != 4) return error_invalid("%s: out_backprop must be 4-dimensional", op);
    if (dz->dims[0] != s->batch) {
        return error_invalid(
            "%s: input and out_backprop must have the same batch size. Input batch: %lld, outbackprop "
            "batch: %lld, batch_dim: 0",
            op, (long long)s->batch, (long long)dz->dims[0]);
    }
    if (dz->dims[w->c] != s->out_c) {
        return error_invalid("%s: filter and out_backprop must have the same out_depth", op);
    }
    for (int i = 0; i < 2; i++) {
        int d = i == 0 ? w->h : w->w;
        int64_t want = i == 0 ? s->out_h : s->out_w;
        if (dz->dims[d] == want) continue;
        return error_invalid(
            "%s: Size of out_backprop doesn't match computed: actual = %lld, computed = %lld "
            "spatial_dim: %d input: %lld filter: %lld output: %lld stride: %lld dilation: %lld",
            op, (long long)dz->dims[d], (long long)want, d, (long long)(i == 0 ? s->in_h : s->in_w),
            (long long)(i == 0 ? s->k_h : s->k_w), (long long)dz->dims[d], (long long)w->strides[d],
            (long long)w->dilations[d]);
    }
    return NULL;
}

static Error *back_input_run(KernelContext *k) {
    const ConvState *st = k->state;
    const Tensor *filter = k->in[1], *dz = k->in[2], *sizes = k->in[0];
    Conv2dShape s;
    Shape in = SHAPE_SCALAR;
    Error *err = NULL;
    if (!st->depthwise && dz->shape.rank != 4) return error_invalid("input_sizes must be 4-dimensional, got: %d", dz->shape.rank);
    if (!st->depthwise && sizes->shape.rank == 1 && sizes->count == 2 && filter->shape.rank == 4) {
        in = image_shape(&st->win, dz->shape.dims[0], tensor_index(sizes, 0), tensor_index(sizes, 1),
                         filter->shape.dims[2]);
        if (in.dims[st->win.h] < 0 || in.dims[st->win.w] < 0) err = error_invalid("input_sizes must not be negative");
    } else {
        err = read_sizes(k, 0, "input_sizes", &in);
    }
    if (!err && st->depthwise) err = check_depthwise(k, &in, &filter->shape);
    if (!err && !st->depthwise) err = check_depth(k, &in, &filter->shape);
    if (!err) err = conv_shape(st, &in, &filter->shape, &s);
    if (!err) err = check_backprop(k, &s, &dz->shape);
    if (err) return err;
    Tensor *dx = kernel_output(k, 0, &in);
    if (!dx) return NULL;
    return convolve(k, CONV2D_BACK_INPUT, &s, (Tensor *[]){dx, k->in[1], k->in[2]});
}

static Error *back_filter_run(KernelContext *k) {
    const ConvState *st = k->state;
    Conv2dShape s;
    Shape filter = SHAPE_SCALAR;
    Error *err = read_sizes(k, 1, "filter_sizes", &filter);
    if (!err && st->depthwise) err = check_depthwise(k, &k->in[0]->shape, &filter);
    if (!err && !st->depthwise) err = check_depth(k, &k->in[0]->shape, &filter);
    if (!err) err = conv_shape(st, &k->in[0]->shape, &filter, &s);
    if (!err) err = check_backprop(k, &s, &k->in[2]->shape);
    if (err) return err;
    Tensor *dw = kernel_output(k, 0, &filter);
    if (!dw) return NULL;
    return convolve(k, CONV2D_BACK_FILTER, &s, (Tensor *[]){k->in[0], dw, k->in[2]});
}

/* ---- Conv ---- */

static Error *general_init(const Node *node, void *state) {
    ConvState *st = state;
    Window *w = &st->win;
    int64_t groups = 1;
    Error *err = node_attr_int(node, "groups", &groups);
    if (!err && groups != 1) err = error_unimplemented("Grouped/Depthwise Convolutions are not supported yet.");
    if (!err) err = node_attr_int(node, "batch_dims", &st->batch_dims);
    if (!err && (st->batch_dims < 0 || st->batch_dims > SHAPE_MAX_RANK)) err = error_invalid("batch_dims = %lld is out of range", (long long)st->batch_dims);
    Str strides = STR("");
    int stride_count = !err && node_attr(node, "strides", &strides) ? attr_list_ints(strides, NULL, 0) : 0;
    if (!err && stride_count != 4 && stride_count != 5) err = error_invalid("Sliding window strides field must specify 4 dimensions");
    if (!err) err = window_init(w, node);
    if (err) return err;
    if (w->strides[0] != 1 || w->strides[w->c] != 1)
        return error_invalid("Current implementation does not support strides in the batch and depth dimensions.");
    if (w->dilations[0] != 1 || w->dilations[w->c] != 1)
        return error_invalid("Current implementation does not support dilation rates in the batch and depth dimensions.");
    if (w->channels_first && w->rank == 4)
        return error_unimplemented("The Conv2D op currently only supports the NHWC tensor format on the CPU. The op was given the format: NCHW");
    if (w->channels_first) return error_unimplemented("CPU implementation of Conv3D currently only supports the NHWC tensor format.");
    for (int d = w->rank == 5 ? w->d : w->h; d <= w->w; d++) {
        if (w->strides[d] < 1) return error_invalid("Spatial strides should be larger than 0.");
        if (w->dilations[d] < 1) return error_invalid("Dilated rates should be larger than 0.");
    }
    st->cache = conv2d_cache_new();
    return NULL;
}

static Error *check_general(const ConvState *st, const Shape *in, const Shape *filter) {
    const Window *w = &st->win;
    int64_t spatial = in->rank - 1 - st->batch_dims;
    if (spatial != 2 && spatial != 3)
        return error_invalid("The input must have 2 or 3 spatial dimensions but got %lld", (long long)spatial);
    if (shape_count(filter) == 0) return error_invalid("filter must not have zero elements (i.e. all dimensions must be non-zero)");
    if (filter->rank != 4 && filter->rank != 5) return error_invalid("The filter must be rank 4 or 5 but got %d", filter->rank);
    if (w->rank != spatial + 2) return error_invalid("Sliding window strides field must specify %lld dimensions", (long long)spatial + 2);
    if (filter->rank != w->rank) return error_invalid("The filter must be rank %d but got %d", w->rank, filter->rank);
    int64_t depth = in->dims[w->channels_first ? st->batch_dims : in->rank - 1], filter_depth = filter->dims[filter->rank - 2];
    if (depth == filter_depth) return NULL;
    return error_invalid("Input depth must be equal to filter depth: %lld vs %lld", (long long)depth, (long long)filter_depth);
}

/* The same elements with `count` dimensions in front as one, or the other way round, with those of `like`. */
static Tensor *reshape_front(Tensor *t, int64_t count, const Shape *like) {
    Shape s = {.rank = (int)(like ? t->shape.rank - 1 + count : t->shape.rank + 1 - count)};
    if (!like) s.dims[0] = 1;
    for (int64_t d = 0; d < count; d++) {
        if (like)
            s.dims[d] = like->dims[d];
        else
            s.dims[0] *= t->shape.dims[d];
    }
    int to = like ? (int)count : 1, from = like ? 1 : (int)count;
    for (; to < s.rank; to++, from++) s.dims[to] = t->shape.dims[from];
    return tensor_alias(t, t->dtype, &s);
}

static Error *general_run(KernelContext *k) {
    const ConvState *st = k->state;
    Tensor *in = k->in[0];
    Error *err = check_general(st, &in->shape, &k->in[1]->shape);
    if (err) return err;
    if (st->batch_dims != 1) k->in[0] = reshape_front(in, st->batch_dims, NULL);
    err = st->win.rank == 5 ? conv3d_forward(k, st->cache) : conv2d_run(k);
    if (st->batch_dims == 1) return err;
    tensor_unref(k->in[0]);
    k->in[0] = in;
    if (!err && k->out[0]) kernel_set_output(k, 0, reshape_front(k->out[0], st->batch_dims, &in->shape));
    return err;
}

#define TYPES(run) [DT_FLOAT] = run, [DT_HALF] = run, [DT_BFLOAT16] = run, [DT_DOUBLE] = run, [DT_INT32] = run
#define STATE(extra) .state_size = sizeof(ConvState), .init = conv_init, .clear = conv_clear, .flags = KERNEL_EXPENSIVE | (extra)

const KernelDef conv_cpu[] = {
    {"Conv2D", .by_type = {TYPES(conv2d_run)}, STATE(KERNEL_TAIL)},
    {"Conv2DBackpropInput", .by_type = {TYPES(back_input_run)}, STATE(0)},
    {"Conv2DBackpropFilter", .by_type = {TYPES(back_filter_run)}, STATE(0)},
    {"DepthwiseConv2dNative", .by_type = {TYPES(conv2d_run)}, STATE(KERNEL_TAIL)},
    {"DepthwiseConv2dNativeBackpropInput", .by_type = {TYPES(back_input_run)}, STATE(0)},
    {"DepthwiseConv2dNativeBackpropFilter", .by_type = {TYPES(back_filter_run)}, STATE(0)},
    {"Conv", .by_type = {TYPES(general_run)}, .state_size = sizeof(ConvState), .init = general_init, .clear = conv_clear, .flags = KERNEL_EXPENSIVE},
    {0},
};
