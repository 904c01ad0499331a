/* uniform_conv.c: UniformQuantizedConvolution and UniformQuantizedConvolutionHybrid, convolutions of bytes in any number of dimensions; the hybrid one makes bytes of
   its floats first, image by image. */
#include "graph/uniform_window.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/uniform_scale.h"

#define RANGE(what) what "_quantization_axis: int = -1; " what "_quantization_min_val: int; " what "_quantization_max_val: int"
#define WINDOW \
    "window_strides: list(int) = []; padding: string; explicit_padding: list(int) = []; lhs_dilation: list(int) = []; rhs_dilation: list(int) = []; " \
    "batch_group_count: int = 1; feature_group_count: int = 1; dimension_numbers: string = ''; "

const OpDef uniform_conv_ops[] = {
    {"UniformQuantizedConvolution",
     "lhs: Tin, rhs: Tin, lhs_scales: float, lhs_zero_points: int32, rhs_scales: float, rhs_zero_points: int32, output_scales: float, output_zero_points: int32 -> output: Tout",
     "Tin: {qint8}; Tout: {qint32}; " WINDOW RANGE("lhs") "; " RANGE("rhs") "; " RANGE("output"), 0},
    {"UniformQuantizedConvolutionHybrid", "lhs: Tlhs, rhs: Trhs, rhs_scales: float, rhs_zero_points: int32 -> output: Tout",
     "Tlhs: {float}; Trhs: {qint8}; Tout: {float}; " WINDOW RANGE("rhs"), 0},
    {0},
};

typedef struct UniformConv {
    UniformWindow window;
    int32_t rhs_axis, axis;
    UniformRange range;
} UniformConv;

static Error *hybrid_init(const Node *node, void *state) {
    UniformConv *st = state;
    Error *err = uniform_attr(node, "rhs_quantization_axis", &st->rhs_axis);
    return err ? err : uniform_window_init(&st->window, node);
}

static Error *conv_init(const Node *node, void *state) {
    UniformConv *st = state;
    int32_t lhs = 0;
    Error *err = uniform_window_init(&st->window, node);
    if (!err) err = uniform_range(node, "output_quantization_min_val", "output_quantization_max_val", &st->range);
    if (!err) err = uniform_attr(node, "lhs_quantization_axis", &lhs);
    if (!err && lhs != -1) err = error_invalid("lhs_quantization_axis Attr must be -1 (per-tensor).");
    if (!err) err = uniform_attr(node, "rhs_quantization_axis", &st->rhs_axis);
    if (!err) err = uniform_attr(node, "output_quantization_axis", &st->axis);
    return err;
}

static Error *check_rhs(const UniformConv *st, const WindowPlan *p, const Tensor *rhs, const Tensor *scales, const Tensor *zero_points) {
    if (st->rhs_axis != -1 && st->rhs_axis != p->rhs[0])
        return error_invalid("rhs_quantization_axis Attr must be -1 (per-tensor) or dimension_numbers.kernel_output_feature_dimension (per-channel).");
    return uniform_check(&rhs->shape, scales, zero_points, st->rhs_axis);
}

/* What is multiplied: bytes of lhs in the order of its tensor, and rhs. */
typedef struct ConvJob {
    const UniformWindow *window;
    const WindowPlan *plan;
    const Shape *lhs_shape, *rhs_shape;
    const int8_t *lhs, *rhs;
    const int32_t *lhs_zeros, *rhs_zeros; /* of each image, of each output feature; the steps are 0 when one is for all */
    int lhs_step, rhs_step;
    int64_t lhs_at[SHAPE_MAX_RANK], rhs_at[SHAPE_MAX_RANK]; /* strides, in elements, batch and features first */
} ConvJob;

static void lay_out(ConvJob *job) {
    int64_t lhs[SHAPE_MAX_RANK], rhs[SHAPE_MAX_RANK];
    strides_of(job->lhs_shape, lhs);
    strides_of(job->rhs_shape, rhs);
    for (int d = 0; d < job->plan->rank; d++) {
        job->lhs_at[d] = lhs[job->plan->lhs[d]];
        job->rhs_at[d] = rhs[job->plan->rhs[d]];
    }
}

/* Which image the feature `made` of result number `batch` is made of. */
static int64_t image_of(const ConvJob *job, int64_t batch, int64_t made) {
    const WindowPlan *p = job->plan;
    return made / (p->shape.dims[p->out[1]] / job->window->batch_groups) * p->shape.dims[p->out[0]] + batch;
}

/* The element of lhs under place `at` of the filter for the result at `out`; -1 when there is padding. Both in the order of the plan. */
static int64_t pixel_under(const ConvJob *job, const int64_t *out, const int64_t *at) {
    const WindowPlan *p = job->plan;
    int64_t found = 0;
    for (int d = 2; d < p->rank; d++) {
        int64_t x = out[d] * p->stride[d] + at[d] * p->rhs_dilation[d] - p->before[d];
        if (x < 0 || x % p->lhs_dilation[d] != 0 || x / p->lhs_dilation[d] >= job->lhs_shape->dims[p->lhs[d]]) return -1;
        found += x / p->lhs_dilation[d] * job->lhs_at[d];
    }
    return found;
}

static int32_t sum_at(const ConvJob *job, const int64_t *out, int64_t image) {
    const WindowPlan *p = job->plan;
    const int64_t features = job->rhs_shape->dims[p->rhs[1]], first = out[1] / (p->shape.dims[p->out[1]] / job->window->feature_groups) * features;
    const int32_t zero = job->lhs_zeros[image * job->lhs_step], rhs_zero = job->rhs_zeros[out[1] * job->rhs_step];
    const int8_t *rhs = job->rhs + out[1] * job->rhs_at[0], *lhs = job->lhs + image * job->lhs_at[0] + first * job->lhs_at[1];
    int64_t at[SHAPE_MAX_RANK] = {0};
    int32_t sum = 0;
    for (;;) {
        const int64_t pixel = pixel_under(job, out, at);
        int64_t weight = 0;
        for (int d = 2; d < p->rank; d++) weight += at[d] * job->rhs_at[d];
        for (int64_t f = 0; f < features; f++) {
            int8_t a = pixel < 0 ? (int8_t)zero : lhs[pixel + f * job->lhs_at[1]];
            sum = wrap_add(sum, wrap_mul(wrap_sub(a, zero), wrap_sub(rhs[weight + f * job->rhs_at[1]], rhs_zero)));
        }
        int d = p->rank - 1;
        while (d >= 2 && ++at[d] == job->rhs_shape->dims[p->rhs[d]]) at[d--] = 0;
        if (d < 2) return sum;
    }
}

/* The next element of the result in the order of its tensor; `out` is in that of the plan. */
static void advance(const WindowPlan *p, int64_t *out) {
    for (int axis = p->rank - 1; axis >= 0; axis--) {
        int d = 0;
        while (p->out[d] != axis) d++;
        if (++out[d] < p->shape.dims[axis]) return;
        out[d] = 0;
    }
}

/* rhs may have a zero in its space: then all sums are zero. */
static int32_t sum_or_zero(const ConvJob *job, const int64_t *out, int64_t image) {
    return shape_prod(job->rhs_shape, 0, job->rhs_shape->rank) == 0 ? 0 : sum_at(job, out, image);
}

static Error *conv_run(KernelContext *k) {
    const UniformConv *st = k->state;
    static const char *const sides[] = {"lhs", "rhs", "output"};
    WindowPlan p;
    for (int i = 0; i < 3; i++)
        if (!uniform_all_positive(k->in[2 + 2 * i])) return error_invalid("%s scales elements must be all positive.", sides[i]);
    Error *err = uniform_window_plan(&st->window, &k->in[0]->shape, &k->in[1]->shape, &p);
    if (!err && (k->in[2]->shape.rank != 0 || k->in[3]->shape.rank != 0))
        err = error_invalid("lhs scales/zero_points must be all scalar tensors. Given: %s%s", shape_text(&k->in[2]->shape).text, shape_text(&k->in[3]->shape).text);
    if (!err) err = check_rhs(st, &p, k->in[1], k->in[4], k->in[5]);
    if (!err && st->axis != -1 && st->axis != p.out[1])
        err = error_invalid("output_quantization_axis Attr must be -1 (per-tensor) or dimension_numbers.output_feature_dimension (per-channel).");
    if (!err) err = uniform_check(&p.shape, k->in[6], k->in[7], st->axis);
    if (!err && k->in[4]->shape.rank == 0 && k->in[6]->shape.rank != 0)
        err = error_invalid("If rhs is per-tensor quantized, output must be also per-tensor quantized. Given output scales/zero_points of rank %d", k->in[6]->shape.rank);
    Tensor *y = err ? NULL : kernel_output(k, 0, &p.shape);
    if (!y || y->count == 0) return err;
    ConvJob job = {.window = &st->window, .plan = &p, .lhs_shape = &k->in[0]->shape, .rhs_shape = &k->in[1]->shape, .lhs = k->in[0]->data, .rhs = k->in[1]->data,
                   .lhs_zeros = k->in[3]->data, .rhs_zeros = k->in[5]->data, .rhs_step = k->in[4]->shape.rank};
    lay_out(&job);
    const int out_step = k->in[6]->shape.rank;
    int64_t out[SHAPE_MAX_RANK] = {0};
    for (int64_t i = 0; i < y->count && !err; i++, advance(&p, out)) {
        const int64_t c = out[1];
        UniformFactor factor = {0};
        err = uniform_factor((double)tensor_f32(k->in[2])[0] * (double)tensor_f32(k->in[4])[c * job.rhs_step] / (double)tensor_f32(k->in[6])[c * out_step], &factor);
        const int32_t zero = ((const int32_t *)k->in[7]->data)[c * out_step];
        if (!err) ((int32_t *)y->data)[i] = uniform_scaled(sum_or_zero(&job, out, image_of(&job, out[0], c)), factor, zero, st->range);
    }
    return err;
}

/* Each image of the floats as bytes with a scale of its own. */
static void quantize_images(const Tensor *x, const WindowPlan *p, int8_t *bytes, float *scales, int32_t *zeros) {
    const int64_t images = x->shape.dims[p->lhs[0]];
    const int64_t inner = shape_prod(&x->shape, p->lhs[0] + 1, p->rank), outer = shape_prod(&x->shape, 0, p->lhs[0]);
    const UniformRange range = {-128, 127};
    for (int64_t b = 0; b < images; b++) {
        float ends[2] = {0, 0};
        int8_t unused[2];
        for (int64_t o = 0; o < outer; o++) {
            for (int64_t i = 0; i < inner; i++) {
                float v = tensor_f32(x)[(o * images + b) * inner + i];
                ends[0] = v < ends[0] ? v : ends[0];
                ends[1] = v > ends[1] ? v : ends[1];
            }
        }
        uniform_asymmetric(ends, 2, unused, &scales[b], &zeros[b]);
        const double width = (double)ends[1] - (double)ends[0];
        const float inverse = width != 0 ? (float)(255 / width) : 0;
        for (int64_t o = 0; o < outer; o++) {
            for (int64_t i = 0; i < inner; i++) {
                int64_t at = (o * images + b) * inner + i;
                bytes[at] = (int8_t)uniform_quantized(tensor_f32(x)[at], inverse, zeros[b], range);
            }
        }
    }
}

static Error *hybrid_run(KernelContext *k) {
    const UniformConv *st = k->state;
    const Tensor *x = k->in[0];
    WindowPlan p;
    if (!uniform_all_positive(k->in[2])) return error_invalid("rhs scales elements must be all positive.");
    Error *err = uniform_window_plan(&st->window, &x->shape, &k->in[1]->shape, &p);
    if (!err) err = check_rhs(st, &p, k->in[1], k->in[2], k->in[3]);
    Tensor *y = err ? NULL : kernel_output(k, 0, &p.shape);
    if (!y || y->count == 0) return err;
    Shape images = shape_vector(x->shape.dims[p.lhs[0]]);
    Tensor *bytes = kernel_scratch(k, DT_QINT8, &x->shape), *scales = bytes ? kernel_scratch(k, DT_FLOAT, &images) : NULL, *zeros = scales ? kernel_scratch(k, DT_INT32, &images) : NULL;
    if (zeros) {
        if (x->count) quantize_images(x, &p, bytes->data, tensor_f32(scales), zeros->data);
        ConvJob job = {.window = &st->window, .plan = &p, .lhs_shape = &x->shape, .rhs_shape = &k->in[1]->shape, .lhs = bytes->data, .rhs = k->in[1]->data,
                       .lhs_zeros = zeros->data, .lhs_step = 1, .rhs_zeros = k->in[3]->data, .rhs_step = k->in[2]->shape.rank};
        lay_out(&job);
        int64_t out[SHAPE_MAX_RANK] = {0};
        for (int64_t i = 0; i < y->count; i++, advance(&p, out)) {
            int64_t image = image_of(&job, out[0], out[1]);
            int32_t sum = x->count ? sum_or_zero(&job, out, image) : 0;
            tensor_f32(y)[i] = x->count ? (float)sum * tensor_f32(scales)[image] * tensor_f32(k->in[2])[out[1] * job.rhs_step] : 0;
        }
    }
    tensor_unref(bytes);
    tensor_unref(scales);
    tensor_unref(zeros);
    return NULL;
}

const KernelDef uniform_conv_cpu[] = {
    {"UniformQuantizedConvolution", .by_type = {[DT_QINT8] = conv_run}, .type_attr = "Tin", .state_size = sizeof(UniformConv), .init = conv_init, .flags = KERNEL_EXPENSIVE},
    {"UniformQuantizedConvolutionHybrid", .by_type = {[DT_QINT8] = hybrid_run}, .type_attr = "Trhs", .state_size = sizeof(UniformConv), .init = hybrid_init, .flags = KERNEL_EXPENSIVE},
    {0},
};
