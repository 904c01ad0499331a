/* warp.c: ImageProjectiveTransform, ExtractGlimpse: images seen from elsewhere. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "ops/as_float.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef warp_ops[] = {
    {"ImageProjectiveTransformV2", "images: dtype, transforms: float, output_shape: int32 -> transformed_images: dtype",
     "dtype: {uint8, int32, int64, half, bfloat16, float, double}; interpolation: string; fill_mode: string = "
     "'CONSTANT'",
     0},
    {"ImageProjectiveTransformV3",
     "images: dtype, transforms: float, output_shape: int32, fill_value: float -> transformed_images: dtype",
     "dtype: {uint8, int32, int64, half, bfloat16, float, double}; interpolation: string; fill_mode: string = "
     "'CONSTANT'",
     0},
    {"ExtractGlimpse", "input: float, size: int32, offsets: float -> glimpse: float",
     "centered: bool = true; normalized: bool = true; uniform_noise: bool = true; noise: string = 'uniform'", 0},
    {"ExtractGlimpseV2", "input: float, size: int32, offsets: float -> glimpse: float",
     "centered: bool = true; normalized: bool = true; uniform_noise: bool = true; noise: string = 'uniform'", 0},
    {0},
};

/* ---- Projective transforms ---- */

typedef enum FillMode { FILL_CONSTANT, FILL_REFLECT, FILL_WRAP, FILL_NEAREST } FillMode;

typedef struct WarpState {
    bool bilinear;
    FillMode fill;
} WarpState;

static Error *warp_init(const Node *node, void *state) {
    WarpState *st = state;
    Str interpolation, fill;
    Error *err = node_attr_string(node, "interpolation", &interpolation);
    if (!err) err = node_attr_string(node, "fill_mode", &fill);
    if (err) return err;
    if (!str_is(interpolation, "NEAREST") && !str_is(interpolation, "BILINEAR")) {
        return error_invalid("Invalid interpolation %.*s. Supported types: NEAREST, BILINEAR", STR_ARG(interpolation));
    }
    static const char *const fills[] = {"CONSTANT", "REFLECT", "WRAP", "NEAREST"};
    int found = 0;
    while (found < 4 && !str_is(fill, fills[found])) found++;
    if (found == 4) {
        return error_invalid("Invalid mode %.*s. Supported types: REFLECT, WRAP, CONSTANT, NEAREST", STR_ARG(fill));
    }
    st->bilinear = str_is(interpolation, "BILINEAR");
    st->fill = (FillMode)found;
    return NULL;
}

static float clamp(float v, float high) {
    return v < 0 ? 0 : v > high ? high : v;
}

/* Where a place outside of [0, n) is taken from. */
static float fill_place(float v, int64_t n, FillMode mode) {
    const float last = (float)(n - 1);
    if (mode == FILL_CONSTANT || !isfinite(v)) return v;
    if (mode == FILL_NEAREST || (v >= 0 && v <= last) || n <= 1) return clamp(v, last);
    if (mode == FILL_REFLECT) { /* d c b a | a b c d | d c b a */
        const float period = 2 * (float)n;
        v -= period * floorf(v / period);
        return clamp(v >= (float)n ? period - v - 1 : v, last);
    }
    /* a b c d | a b c d: whole turns are counted in steps of n - 1 */
    v = v < 0 ? v + (float)n * (truncf(-v / last) + 1) : v - (float)n * truncf(v / last);
    return clamp(v, last);
}

typedef struct WarpJob {
    const WarpState *state;
    const Tensor *x;
    Tensor *z;
    const float *transforms;
    int64_t transform_count;
    double fill;
} WarpJob;

static double read_real(const Tensor *t, int64_t at) {
    float v;
    switch ((int)t->dtype) {
        case DT_DOUBLE:
            return tensor_f64(t)[at];
        case DT_INT32:
            return (double)tensor_i32(t)[at];
        case DT_INT64:
            return (double)tensor_i64(t)[at];
        default:
            floats_load(t, at, 1, &v);
            return (double)v;
    }
}
static void write_real(Tensor *t, int64_t at, double v) {
    float narrow = (float)v;
    bool fits = v > -2e9 && v < 2e9; /* NaN does not */
    switch ((int)t->dtype) {
        case DT_DOUBLE:
            tensor_f64(t)[at] = v;
            break;
        case DT_UINT8:
            tensor_u8(t)[at] = (uint8_t)(fits ? (int64_t)v : 0);
            break;
        case DT_INT32:
            tensor_i32(t)[at] = fits ? (int32_t)v : INT32_MIN;
            break;
        case DT_INT64:
            tensor_i64(t)[at] = v > -9e18 && v < 9e18 ? (int64_t)v : INT64_MIN;
            break;
        default:
            floats_store(&narrow, t, at, 1);
    }
}

/* Pixel (y, x) of an image, channel c; the fill value outside, of the images' type. */
static double warp_read(const WarpJob *job, int64_t image, float y, float x, int64_t c) {
    const int64_t *d = job->x->shape.dims;
    if (!(y >= 0 && y < (float)d[1] && x >= 0 && x < (float)d[2])) return job->fill;
    return read_real(job->x, ((image * d[1] + (int64_t)y) * d[2] + (int64_t)x) * d[3] + c);
}

static double warp_pixel(const WarpJob *job, int64_t image, float y, float x, int64_t c) {
    if (!job->state->bilinear) return warp_read(job, image, roundf(y), roundf(x), c);
    /* In float for all types: what a truncation to integers makes of it depends on the last bit. */
    const float top = floorf(y), left = floorf(x), bottom = top + 1, right = left + 1;
    float upper = (right - x) * (float)warp_read(job, image, top, left, c) + (x - left) * (float)warp_read(job, image, top, right, c);
    float lower = (right - x) * (float)warp_read(job, image, bottom, left, c) + (x - left) * (float)warp_read(job, image, bottom, right, c);
    return (double)((bottom - y) * upper + (y - top) * lower);
}

static void warp_range(void *arg, int64_t begin, int64_t end) {
    const WarpJob *job = arg;
    const int64_t *in = job->x->shape.dims, *out = job->z->shape.dims;
    for (int64_t row = begin; row < end; row++) {
        const int64_t image = row / out[1], y = row % out[1];
        const float *t = job->transforms + (job->transform_count == 1 ? 0 : image * 8);
        for (int64_t x = 0; x < out[2]; x++) {
            const float depth = t[6] * (float)x + t[7] * (float)y + 1;
            const float across = (t[0] * (float)x + t[1] * (float)y + t[2]) / depth;
            const float down = (t[3] * (float)x + t[4] * (float)y + t[5]) / depth;
            for (int64_t c = 0; c < out[3]; c++) {
                double v = depth == 0 ? job->fill
                                      : warp_pixel(job, image, fill_place(down, in[1], job->state->fill),
                                                   fill_place(across, in[2], job->state->fill), c);
                write_real(job->z, (row * out[2] + x) * out[3] + c, v);
            }
        }
    }
}

static Error *warp(KernelContext *k) {
    const Tensor *x = k->in[0], *transforms = k->in[1], *size = k->in[2];
    if (x->shape.rank != 4) return error_invalid("Input images must have rank 4");
    if (transforms->shape.rank != 2 || transforms->shape.dims[1] != 8 ||
        (transforms->shape.dims[0] != 1 && transforms->shape.dims[0] != x->shape.dims[0])) {
        return error_invalid("Input transform should be num_images x 8 or 1 x 8");
    }
    if (size->shape.rank != 1)
        return error_invalid("output shape must be 1-dimensional%s", shape_text(&size->shape).text);
    if (size->count != 2) return error_invalid("output shape must have two elements%s", shape_text(&size->shape).text);
    int32_t h = tensor_i32(size)[0], w = tensor_i32(size)[1];
    if (h <= 0 || w <= 0) return error_invalid("output dimensions must be positive");
    WarpJob job = {
        .state = k->state, .x = x, .transforms = tensor_f32(transforms), .transform_count = transforms->shape.dims[0]};
    if (k->input_count == 4) {
        if (k->in[3]->shape.rank != 0) return error_invalid("fill_value must be a scalar%s", shape_text(&k->in[3]->shape).text);
        job.fill = (double)tensor_f32(k->in[3])[0];
        bool whole = x->dtype == DT_UINT8 || x->dtype == DT_INT32 || x->dtype == DT_INT64;
        if (whole) job.fill = trunc(job.fill);
    }
    Shape shape = shape_of(4, (int64_t[]){x->shape.dims[0], h, w, x->shape.dims[3]});
    job.z = kernel_output(k, 0, &shape);
    if (!job.z || job.z->count == 0) return NULL;
    threadpool_parallel_for(k->pool, shape.dims[0] * h, 4096 / (w * shape.dims[3]) + 1, warp_range, &job);
    return NULL;
}

/* ---- Glimpses ---- */

typedef enum Noise { NOISE_UNIFORM, NOISE_GAUSSIAN, NOISE_ZERO } Noise;

typedef struct GlimpseState {
    bool centered, normalized, first_version;
    Noise noise;
} GlimpseState;

static Error *glimpse_init(const Node *node, void *state) {
    GlimpseState *st = state;
    bool uniform = true;
    Str noise;
    Error *err = node_attr_bool(node, "centered", &st->centered);
    if (!err) err = node_attr_bool(node, "normalized", &st->normalized);
    if (!err) err = node_attr_bool(node, "uniform_noise", &uniform);
    if (!err) err = node_attr_string(node, "noise", &noise);
    if (err) return err;
    if (uniform && !str_is(noise, "uniform")) {
        return error_invalid("The uniform_noise and noise should not be specified at the same time");
    }
    if (!str_is(noise, "uniform") && !str_is(noise, "gaussian") && !str_is(noise, "zero")) {
        return error_invalid("The noise should be uniform, gaussian, or zero but got %.*s", STR_ARG(noise));
    }
    st->noise = str_is(noise, "zero") ? NOISE_ZERO : uniform ? NOISE_UNIFORM : NOISE_GAUSSIAN;
    st->first_version = node_is(node, "ExtractGlimpse");
    return NULL;
}

/* Where a window of `size` elements begins on a side of n. */
static float glimpse_begin(const GlimpseState *st, float at, int64_t n, int64_t size) {
    const float side = (float)n, half = (float)size / 2;
    if (st->normalized) at *= side;
    if (st->first_version) return (st->centered ? at / 2 + side / 2 : at) - half;
    if (!st->centered) return at;
    return st->normalized ? at / 2 + side / 2 - half : at + side / 2;
}

/* Noise like the image: between its least and largest values, or with its mean and deviation. */
static void glimpse_noise(const GlimpseState *st, const Tensor *x, Tensor *z) {
    if (st->noise == NOISE_ZERO || x->count == 0) {
        memset(z->data, 0, tensor_bytes(z));
        return;
    }
    const float *in = tensor_f32(x);
    float low = in[0], high = in[0];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < x->count; i++) {
        low = fminf(low, in[i]);
        high = fmaxf(high, in[i]);
        sum += (double)in[i];
        squares += (double)in[i] * (double)in[i];
    }
    const double mean = sum / (double)x->count;
    const float deviation = (float)sqrt(fmax(squares / (double)x->count - mean * mean, 0));
    PhiloxStream random = philox_stream(philox_from_seeds(rng_entropy(), rng_entropy()));
    for (int64_t i = 0; i < z->count; i++) {
        float u = uniform_float(philox_stream_next(&random));
        if (st->noise == NOISE_UNIFORM) {
            tensor_f32(z)[i] = low + u * (high - low);
        } else {
            float angle = 6.2831853f * uniform_float(philox_stream_next(&random));
            tensor_f32(z)[i] = (float)mean + deviation * sqrtf(-2 * logf(1 - u)) * cosf(angle);
        }
    }
}

static Error *glimpse(KernelContext *k) {
    const GlimpseState *st = k->state;
    const Tensor *x = k->in[0], *size = k->in[1], *offsets = k->in[2];
    if (x->shape.rank != 4)
        return error_invalid("input must be 4-dimensional (batch_size, height, width, depth)%s",
                             shape_text(&x->shape).text);
    if (size->shape.rank != 1 || size->count != 2) {
        return error_invalid("input must be a vector of size 2 (height, width)%s",
                             shape_text(&size->shape).text);
    }
    const int64_t *in = x->shape.dims;
    int64_t h = tensor_i32(size)[0], w = tensor_i32(size)[1];
    if (offsets->shape.rank != 2)
        return error_invalid("input must be a matrix%s", shape_text(&offsets->shape).text);
    if (offsets->shape.dims[0] != in[0])
        return error_invalid("first dimension should be batch%s", shape_text(&offsets->shape).text);
    if (offsets->shape.dims[1] != 2)
        return error_invalid("second dimension should be of size 2 (y,x)%s", shape_text(&offsets->shape).text);
    if (h < 0 || w < 0) return error_invalid("Expected a non-negative size, got %lld", (long long)(h < 0 ? h : w));
    Shape shape = shape_of(4, (int64_t[]){in[0], h, w, in[3]});
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || z->count == 0) return NULL;
    glimpse_noise(st, x, z);
    for (int64_t row = 0; row < in[0] * h; row++) {
        const float *at = tensor_f32(offsets) + row / h * 2;
        float top = glimpse_begin(st, at[0], in[1], h), left = glimpse_begin(st, at[1], in[2], w);
        if (!(fabsf(top) < 1e9f && fabsf(left) < 1e9f)) continue;
        int64_t y = (int64_t)top + row % h, x0 = (int64_t)left;
        int64_t from = x0 < 0 ? -x0 : 0, to = in[2] - x0 < w ? in[2] - x0 : w;
        if (y < 0 || y >= in[1] || from >= to) continue;
        memcpy(tensor_f32(z) + (row * w + from) * in[3],
               tensor_f32(x) + ((row / h * in[1] + y) * in[2] + x0 + from) * in[3],
               (size_t)((to - from) * in[3]) * sizeof(float));
    }
    return NULL;
}

#define WARP .state_size = sizeof(WarpState), .init = warp_init, .flags = KERNEL_EXPENSIVE
#define GLIMPSE .state_size = sizeof(GlimpseState), .init = glimpse_init

const KernelDef warp_cpu[] = {
    {"ImageProjectiveTransformV2", .run = warp, WARP},
    {"ImageProjectiveTransformV3", .run = warp, WARP},
    {"ExtractGlimpse", .run = glimpse, GLIMPSE},
    {"ExtractGlimpseV2", .run = glimpse, GLIMPSE},
    {0},
};
