/* conv_shapes.c: rules of convolutions, pools and patches. */
#include <stdlib.h>

#include "shapes/rule_list.h"
#include "shapes/window_shape.h"

int64_t window_places(ShapeContext *c, int64_t input, const Window *w, Str padding) {
    if (w->stride <= 0) {
        ctx_fail(c, "Stride must be > 0, but got %lld", (long long)w->stride);
        return DIM_UNKNOWN;
    }
    if (w->dilation < 1) {
        ctx_fail(c, "Dilation rate must be >= 1, but got %lld", (long long)w->dilation);
        return DIM_UNKNOWN;
    }
    if (str_is(padding, "SAME")) return ctx_dim_div(c, ctx_dim_add(c, input, w->stride - 1), w->stride, false);
    bool is_explicit = str_is(padding, "EXPLICIT");
    int64_t padded = ctx_dim_add(c, input, is_explicit ? w->pad_before + w->pad_after : 0);
    int64_t span = w->size;
    if (w->dilation > 1) span = ctx_dim_add(c, ctx_dim_mul(c, ctx_dim_sub(c, w->size, 1), w->dilation), 1);
    return ctx_dim_div(c, ctx_dim_add(c, ctx_dim_sub(c, padded, span), w->stride), w->stride, false);
}

ImageLayout image_layout(Str data_format, int rank) {
    bool depth_first = str_is(data_format, "NCHW") || str_is(data_format, "NCDHW") || str_is(data_format, "CHANNELS_FIRST");
    return (ImageLayout){rank, 0, depth_first ? 1 : rank - 1, depth_first ? 2 : 1};
}

/* A list attribute of `rank` numbers; ones when it may be missing. */
static void window_attr(ShapeContext *c, const char *name, int rank, bool optional, int64_t *out) {
    int n = ctx_attr_ints(c, name, out, SHAPE_MAX_RANK);
    if (optional && n == 0) {
        for (int i = 0; i < rank; i++) out[i] = 1;
        return;
    }
    if (n != rank) ctx_fail(c, "%s attribute must contain %d values, but got: %d", name, rank, n);
}

static Str layout_attr(ShapeContext *c) {
    Str value, format = STR("NHWC");
    if (node_attr(c->node, "data_format", &value)) attr_string(value, &format);
    return format;
}

/* The attribute explicit_paddings: a pair for each dimension, only spatial ones may be padded. */
static void read_explicit_pads(ShapeContext *c, ImageLayout at, Str padding, int64_t *pads) {
    int n = ctx_attr_ints(c, "explicit_paddings", pads, 2 * SHAPE_MAX_RANK);
    if (!str_is(padding, "EXPLICIT")) {
        if (n) ctx_fail(c, "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
        return;
    }
    if (n != 2 * at.rank) {
        ctx_fail(c, "explicit_paddings attribute must contain %d values, but got: %d", 2 * at.rank, n);
        return;
    }
    for (int i = 0; i < n; i++)
        if (pads[i] < 0) ctx_fail(c, "All elements of explicit_paddings must be nonnegative");
    if (pads[2 * at.batch] || pads[2 * at.batch + 1] || pads[2 * at.depth] || pads[2 * at.depth + 1])
        ctx_fail(c, "Nonzero explicit padding in the batch or depth dimensions is not supported");
}

/* An image of `rank` dimensions and a filter [spatial..., in depth, out depth] (or [..., depth, multiplier]). */
static void convolution(ShapeContext *c, int rank, bool depthwise) {
    ImageLayout at = image_layout(layout_attr(c), rank);
    Str padding = ctx_attr_str(c, "padding");
    int64_t strides[SHAPE_MAX_RANK], dilations[SHAPE_MAX_RANK], pads[2 * SHAPE_MAX_RANK] = {0};
    PartialShape in = ctx_in_rank(c, 0, rank), filter = ctx_in_rank(c, 1, rank);
    Str filter_format = STR("");
    Str value;
    if (node_attr(c->node, "filter_format", &value)) attr_string(value, &filter_format);
    if (str_is(filter_format, "OHWI")) filter = (PartialShape){4, {filter.dims[1], filter.dims[2], filter.dims[3], filter.dims[0]}};
    if (str_is(filter_format, "OIHW")) filter = (PartialShape){4, {filter.dims[2], filter.dims[3], filter.dims[1], filter.dims[0]}};
    window_attr(c, "strides", rank, false, strides);
    window_attr(c, "dilations", rank, true, dilations);
    read_explicit_pads(c, at, padding, pads);
    if (c->err) return;
    int64_t in_depth = in.dims[at.depth], filter_depth = filter.dims[rank - 2], last = filter.dims[rank - 1], out_depth = last;
    if (depthwise) {
        out_depth = ctx_dim_mul(c, ctx_merge_dim(c, in_depth, filter_depth), last);
    } else if (in_depth >= 0 && filter_depth >= 0) {
        if (filter_depth == 0) ctx_fail(c, "Depth of filter must not be 0");
        else if (in_depth % filter_depth) ctx_fail(c, "Depth of input (%lld) is not a multiple of input depth of filter (%lld)", (long long)in_depth, (long long)filter_depth);
        else if (in_depth / filter_depth > 0 && last >= 0 && last % (in_depth / filter_depth))
            ctx_fail(c, "Depth of output (%lld) is not a multiple of the number of groups (%lld)", (long long)last, (long long)(in_depth / filter_depth));
    }
    PartialShape out = in;
    out.dims[at.depth] = out_depth;
    for (int i = 0; i < rank - 2; i++) {
        int dim = at.spatial + i;
        Window w = {filter.dims[i], strides[dim], dilations[dim], pads[2 * dim], pads[2 * dim + 1]};
        out.dims[dim] = window_places(c, in.dims[dim], &w, padding);
    }
    ctx_out(c, 0, out);
}

void rule_conv2d(ShapeContext *c) {
    convolution(c, 4, false);
}

static void conv3d(ShapeContext *c) {
    convolution(c, 5, false);
}

/* Images or volumes; several dimensions may stand for the batch. */
static void general_conv(ShapeContext *c) {
    PartialShape in = c->in[0];
    int64_t batch = ctx_attr_int(c, "batch_dims");
    int spatial = batch < 0 || batch > in.rank ? 0 : in.rank - 1 - (int)batch;
    if (in.rank < 0 || c->in[1].rank < 0) {
        ctx_out(c, 0, SHAPE_UNKNOWN);
        return;
    }
    if (spatial != 2 && spatial != 3) {
        ctx_fail(c, "The input must have 2 or 3 spatial dimensions but got %d", spatial);
        return;
    }
    if (batch != 1) {
        ctx_in_rank(c, 1, spatial + 2);
        ctx_out(c, 0, shape_unknown_dims(in.rank));
        return;
    }
    convolution(c, spatial + 2, false);
}

void rule_depthwise_conv2d(ShapeContext *c) {
    convolution(c, 4, true);
}

/* The image is resized to what a vector says, when there is one, then padded, then it meets the filter. */
static void padded_conv2d(ShapeContext *c, bool resizes) {
    PartialShape in = ctx_in_rank(c, 0, 4), paddings = ctx_in_rank(c, 1 + resizes, 2), filter = ctx_in_rank(c, 2 + resizes, 4);
    int64_t strides[SHAPE_MAX_RANK];
    if (c->in[0].rank < 0) ctx_fail(c, "Shape must be rank -1 but is rank 4"); /* it asks for as many paddings as the rank of the image says */
    if (resizes) {
        const Tensor *size = ctx_value(c, 1);
        ctx_dim_is(c, ctx_in_rank(c, 1, 1).dims[0], 2);
        for (int i = 0; i < 2; i++) in.dims[1 + i] = size && !c->err ? tensor_index(size, i) : DIM_UNKNOWN;
    }
    ctx_dim_is(c, paddings.dims[1], 2);
    ctx_dim_is(c, paddings.dims[0], 4);
    const Tensor *pads = c->err ? NULL : ctx_value(c, 1 + resizes);
    for (int d = 0; d < 4; d++) in.dims[d] = pads ? ctx_dim_add(c, in.dims[d], tensor_index(pads, 2 * d) + tensor_index(pads, 2 * d + 1)) : DIM_UNKNOWN;
    window_attr(c, "strides", 4, false, strides);
    if (c->err) return;
    ctx_merge_dim(c, in.dims[3], filter.dims[2]);
    PartialShape out = {4, {in.dims[0], 0, 0, filter.dims[3]}};
    for (int d = 1; d < 3; d++) {
        Window w = {filter.dims[d - 1], strides[d], 1, 0, 0};
        out.dims[d] = window_places(c, in.dims[d], &w, ctx_attr_str(c, "padding"));
    }
    ctx_out(c, 0, out);
}
static void pad_conv2d(ShapeContext *c) {
    padded_conv2d(c, false);
}
static void resize_pad_conv2d(ShapeContext *c) {
    padded_conv2d(c, true);
}

/* The gradient has the shape that a vector input says. */
static void shape_input_of_rank(ShapeContext *c, int input, int rank) {
    PartialShape s = ctx_shape_of(c, input);
    ctx_out(c, 0, ctx_rank(c, s, rank));
}

static void conv2d_backprop_input(ShapeContext *c) {
    PartialShape sizes = ctx_shape_of(c, 0), filter = ctx_in_rank(c, 1, 4), grad = ctx_in_rank(c, 2, 4);
    ImageLayout at = image_layout(layout_attr(c), 4);
    ctx_merge_dim(c, grad.dims[at.depth], filter.dims[3]);
    if (sizes.rank >= 0 && sizes.rank != 4 && sizes.rank != 2)
        ctx_fail(c, "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: %d", sizes.rank);
    PartialShape out = sizes.rank == 4 ? sizes : shape_unknown_dims(4);
    ctx_merge_dim(c, out.dims[at.batch], grad.dims[at.batch]);
    out.dims[at.batch] = grad.dims[at.batch];
    for (int i = 0; i < 2 && sizes.rank == 2; i++) out.dims[at.spatial + i] = sizes.dims[i];
    if (sizes.rank == 2) out.dims[at.depth] = filter.dims[2];
    ctx_out(c, 0, out);
}

static void conv_backprop_filter_2d(ShapeContext *c) {
    shape_input_of_rank(c, 1, 4);
}

static void conv3d_backprop_input_v2(ShapeContext *c) {
    shape_input_of_rank(c, 0, 5);
}

static void conv3d_backprop_filter_v2(ShapeContext *c) {
    shape_input_of_rank(c, 1, 5);
}

static void depthwise_backprop_input(ShapeContext *c) {
    shape_input_of_rank(c, 0, 4);
}

static void conv3d_backprop_input(ShapeContext *c) {
    ctx_out(c, 0, ctx_in_rank(c, 0, 5));
}

static void conv3d_backprop_filter(ShapeContext *c) {
    ctx_out(c, 0, ctx_in_rank(c, 1, 5));
}

/* Windows of known size over all dimensions. */
static PartialShape pooled(ShapeContext *c, PartialShape in, int rank, bool over_depth, const int64_t *ksize, const int64_t *strides) {
    ImageLayout at = image_layout(layout_attr(c), rank);
    Str padding = ctx_attr_str(c, "padding");
    int64_t pads[2 * SHAPE_MAX_RANK] = {0};
    read_explicit_pads(c, at, padding, pads);
    PartialShape out = in;
    for (int i = 0; i < rank; i++) {
        if (i == at.batch || (i == at.depth && !over_depth)) continue;
        Window w = {ksize[i], strides[i], 1, pads[2 * i], pads[2 * i + 1]};
        out.dims[i] = window_places(c, in.dims[i], &w, padding);
    }
    return out;
}

static PartialShape pool_of_rank(ShapeContext *c, int rank, bool over_depth) {
    int64_t ksize[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK];
    PartialShape in = ctx_in_rank(c, 0, rank);
    window_attr(c, "strides", rank, false, strides);
    window_attr(c, "ksize", rank, false, ksize);
    return c->err ? SHAPE_UNKNOWN : pooled(c, in, rank, over_depth, ksize, strides);
}

/* The layout of int8 images on GPUs, NCHW_VECT_C, has five dimensions; nothing more is said of it. */
static bool is_vector_layout(ShapeContext *c) {
    if (!str_is(layout_attr(c), "NCHW_VECT_C")) return false;
    int64_t depth = ctx_in_rank(c, 0, 5).dims[4];
    if (depth != 4 && depth != 32) ctx_fail(c, "VECT_C dimension must be 4 or 32, but is %lld", (long long)depth);
    return true;
}

void rule_max_pool(ShapeContext *c) {
    if (is_vector_layout(c)) return;
    ctx_out_all(c, pool_of_rank(c, 4, true));
}

/* Averages are taken within a channel: the depth stays. */
void rule_avg_pool(ShapeContext *c) {
    ctx_out(c, 0, pool_of_rank(c, 4, false));
}

static void pool3d(ShapeContext *c) {
    ctx_out(c, 0, pool_of_rank(c, 5, false));
}

static void max_pool_v2(ShapeContext *c) {
    if (is_vector_layout(c)) return;
    PartialShape in = ctx_in_rank(c, 0, 4);
    int64_t ksize[4], strides[4];
    int at = c->in_count - 2; /* the window comes last, also in the derivatives */
    const Tensor *k = ctx_value(c, at), *s = ctx_value(c, at + 1);
    ctx_dim_is(c, ctx_in_rank(c, at, 1).dims[0], 4);
    ctx_dim_is(c, ctx_in_rank(c, at + 1, 1).dims[0], 4);
    if (!k || !s || c->err) return;
    for (int i = 0; i < 4; i++) {
        ksize[i] = tensor_index(k, i);
        strides[i] = tensor_index(s, i);
    }
    ctx_out(c, 0, pooled(c, in, 4, true, ksize, strides));
}

static void max_pool_grad(ShapeContext *c) {
    ctx_out(c, 0, ctx_in_rank(c, 0, 4));
}

static void max_pool3d_grad(ShapeContext *c) {
    ctx_out(c, 0, ctx_in_rank(c, 0, 5));
}

/* Second derivatives: the gradient is like the input, the result like the pool's. */
static void check_grad_grad(ShapeContext *c) {
    ctx_merge(c, c->in[0], c->in[2]);
    ctx_merge(c, c->in[1], c->out[0]);
}

static void max_pool_grad_grad(ShapeContext *c) {
    rule_max_pool(c);
    check_grad_grad(c);
}

static void max_pool_grad_grad_v2(ShapeContext *c) {
    max_pool_v2(c);
    check_grad_grad(c);
}

static void max_pool3d_grad_grad(ShapeContext *c) {
    pool3d(c);
    check_grad_grad(c);
}

static void avg_pool_grad(ShapeContext *c) {
    shape_input_of_rank(c, 0, 4);
}

static void avg_pool3d_grad(ShapeContext *c) {
    shape_input_of_rank(c, 0, 5);
}

/* The places of a window over a dimension that is known; a window that is too large has none. */
static int64_t known_places(ShapeContext *c, int64_t input, int64_t window, int64_t stride, Str padding) {
    if (stride <= 0) {
        ctx_fail(c, "Stride must be > 0, but got %lld", (long long)stride);
        return DIM_UNKNOWN;
    }
    if (str_is(padding, "SAME")) return ctx_dim_div(c, ctx_dim_add(c, input, stride - 1), stride, false);
    if (window < 0 || stride > INT32_MAX || input > INT64_MAX - stride) {
        ctx_fail(c, "The window is too large");
        return DIM_UNKNOWN;
    }
    int64_t places = (input - window + stride) / stride;
    if (places < 0) ctx_fail(c, "Computed output size would be negative: %lld [input_size: %lld, effective_filter_size: %lld, stride: %lld]", (long long)places,
                             (long long)input, (long long)window, (long long)stride);
    return places;
}

/* How far a window reaches whose elements stand `rate` apart. */
static int64_t dilated(ShapeContext *c, int64_t size, int64_t rate) {
    if (size < 1 || rate < 1) return rate == 1 || size == 0 ? size : DIM_UNKNOWN;
    return ctx_dim_add(c, size, ctx_dim_mul(c, size - 1, rate - 1));
}

/* Patches of `rank - 2` spatial dimensions, each a row of the depth. Where one dimension is unknown all are. */
static void patches(ShapeContext *c, int rank, bool has_rates) {
    int64_t ksize[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK], rates[SHAPE_MAX_RANK];
    PartialShape in = ctx_in_rank(c, 0, rank);
    Str padding = ctx_attr_str(c, "padding");
    window_attr(c, "ksizes", rank, false, ksize);
    window_attr(c, "strides", rank, false, strides);
    window_attr(c, "rates", rank, !has_rates, rates);
    if (c->err) return;
    PartialShape out = in;
    int64_t depth = in.dims[rank - 1];
    bool all_known = true;
    for (int i = 1; i < rank - 1; i++) {
        depth = ctx_dim_mul(c, depth, ksize[i]);
        all_known &= in.dims[i] >= 0;
    }
    if (!all_known) {
        /* Four dimensions, even of volumes: so says TensorFlow. */
        ctx_out(c, 0, (PartialShape){4, {in.dims[0], DIM_UNKNOWN, DIM_UNKNOWN, depth}});
        return;
    }
    for (int i = 1; i < rank - 1; i++)
        out.dims[i] = known_places(c, in.dims[i], dilated(c, ksize[i], rates[i]), strides[i], padding);
    out.dims[rank - 1] = depth;
    ctx_out(c, 0, out);
}

static void extract_image_patches(ShapeContext *c) {
    patches(c, 4, true);
}

static void extract_volume_patches(ShapeContext *c) {
    patches(c, 5, false);
}

static void dilation2d(ShapeContext *c) {
    int64_t strides[SHAPE_MAX_RANK], rates[SHAPE_MAX_RANK];
    PartialShape in = ctx_in_rank(c, 0, 4), filter = ctx_in_rank(c, 1, 3);
    Str padding = ctx_attr_str(c, "padding");
    window_attr(c, "strides", 4, false, strides);
    window_attr(c, "rates", 4, false, rates);
    if (c->err) return;
    PartialShape out = in;
    out.dims[3] = filter.dims[2];
    if (in.dims[1] < 0 || in.dims[2] < 0 || filter.dims[0] < 0 || filter.dims[1] < 0) {
        for (int i = 1; i < 3; i++) out.dims[i] = DIM_UNKNOWN;
        ctx_out(c, 0, out);
        return;
    }
    ctx_merge_dim(c, in.dims[3], filter.dims[2]);
    for (int i = 1; i < 3; i++)
        out.dims[i] = known_places(c, in.dims[i], dilated(c, filter.dims[i - 1], rates[i]), strides[i], padding);
    ctx_out(c, 0, out);
}

static void filter_gradient(ShapeContext *c) {
    ctx_out(c, 0, c->in[1]);
}

/* Each dimension divided by its ratio, rounded down. */
static void fractional_pool(ShapeContext *c) {
    PartialShape in = ctx_in_rank(c, 0, 4), out = shape_unknown_dims(4);
    float *ratio = NULL;
    int count = 0;
    Error *err = node_attr_floats(c->node, "pooling_ratio", &ratio, &count);
    error_free(err);
    if (count != 4) ctx_fail(c, "pooling_ratio field must specify 4 dimensions");
    for (int d = 0; d < 4 && !ctx_failed(c); d++) {
        if (ratio[d] < 1) ctx_fail(c, "pooling_ratio should be larger than 1");
        if (in.dims[d] >= 0) out.dims[d] = (int64_t)((float)in.dims[d] / ratio[d]);
    }
    free(ratio);
    ctx_out(c, 0, out);
    ctx_out(c, 1, shape_vector(out.dims[1])); /* TensorFlow says so; there is one more */
    ctx_out(c, 2, shape_vector(out.dims[2]));
}

static void fractional_max_pool_grad(ShapeContext *c) {
    ctx_out(c, 0, ctx_in_rank(c, 0, 4));
}

static void fractional_avg_pool_grad(ShapeContext *c) {
    ctx_out(c, 0, ctx_value(c, 0) ? ctx_shape_of(c, 0) : shape_unknown_dims(4));
}

const ShapeRow conv_rules[] = {
    {"FractionalAvgPool", fractional_pool, 0},
    {"FractionalAvgPoolGrad", fractional_avg_pool_grad, 0},
    {"FractionalMaxPool", fractional_pool, 0},
    {"FractionalMaxPoolGrad", fractional_max_pool_grad, 0},
    {"AvgPool", rule_avg_pool, 0},
    {"AvgPool3D", pool3d, 0},
    {"AvgPool3DGrad", avg_pool3d_grad, 0},
    {"AvgPoolGrad", avg_pool_grad, 0},
    {"Conv", general_conv, 0},
    {"Conv2D", rule_conv2d, 0},
    {"FusedPadConv2D", pad_conv2d, 0},
    {"FusedResizeAndPadConv2D", resize_pad_conv2d, 0},
    {"Conv2DBackpropFilter", conv_backprop_filter_2d, 0},
    {"Conv2DBackpropInput", conv2d_backprop_input, 0},
    {"Conv3D", conv3d, 0},
    {"Conv3DBackpropFilter", conv3d_backprop_filter, 0},
    {"Conv3DBackpropFilterV2", conv3d_backprop_filter_v2, 0},
    {"Conv3DBackpropInput", conv3d_backprop_input, 0},
    {"Conv3DBackpropInputV2", conv3d_backprop_input_v2, 0},
    {"DepthwiseConv2dNative", rule_depthwise_conv2d, 0},
    {"DepthwiseConv2dNativeBackpropFilter", conv_backprop_filter_2d, 0},
    {"DepthwiseConv2dNativeBackpropInput", depthwise_backprop_input, 0},
    {"Dilation2D", dilation2d, 0},
    {"Dilation2DBackpropFilter", filter_gradient, 0},
    {"Dilation2DBackpropInput", rule_same, 0},
    {"ExtractImagePatches", extract_image_patches, 0},
    {"ExtractVolumePatches", extract_volume_patches, 0},
    {"MaxPool", rule_max_pool, 0},
    {"MaxPool3D", pool3d, 0},
    {"MaxPool3DGrad", max_pool3d_grad, 0},
    {"MaxPool3DGradGrad", max_pool3d_grad_grad, 0},
    {"MaxPoolGrad", max_pool_grad, 0},
    {"MaxPoolGradGrad", max_pool_grad_grad, 0},
    {"MaxPoolGradGradV2", max_pool_grad_grad_v2, 0},
    {"MaxPoolGradV2", max_pool_grad, 0},
    {"MaxPoolGradWithArgmax", max_pool_grad, 0},
    {"MaxPoolV2", max_pool_v2, 0},
    {"MaxPoolWithArgmax", rule_max_pool, 0},
    {"_FusedConv2D", rule_conv2d, 0},
    {"_FusedConv3D", conv3d, 0},
    {"_FusedDepthwiseConv2dNative", rule_depthwise_conv2d, 0},
    {0},
};
