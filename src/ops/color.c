/* color.c: RGBToHSV, HSVToRGB, AdjustContrast, AdjustHue, AdjustSaturation. */
#include <math.h>
#include <string.h>

#include "base/float16.h"
#include "ops/as_float.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef color_ops[] = {
    {"RGBToHSV", "images: T -> output: T", "T: {half, bfloat16, float, double} = float", 0},
    {"HSVToRGB", "images: T -> output: T", "T: {half, bfloat16, float, double} = float", 0},
    {"AdjustContrast", "images: T, contrast_factor: float, min_value: float, max_value: float -> output: float",
     "T: {uint8, int8, int16, int32, int64, float, double}", 0},
    {"AdjustContrastv2", "images: T, contrast_factor: float -> output: T", "T: {half, float} = float", 0},
    {"AdjustHue", "images: T, delta: float -> output: T", "T: {half, float} = float", 0},
    {"AdjustSaturation", "images: T, scale: float -> output: T", "T: {half, float} = float", 0},
    {0},
};

/* ---- One pixel, in double for all types ---- */

typedef struct Pixel {
    double v[3]; /* red, green, blue or hue, saturation, value; all from 0 to 1 */
} Pixel;

/* Without calls; a NaN among the parts leaves what compares with the others. */
static inline double larger(double a, double b) {
    return a > b || b != b ? a : b;
}
static inline double smaller(double a, double b) {
    return a < b || b != b ? a : b;
}
static inline double largest(Pixel p) {
    return larger(larger(p.v[0], p.v[1]), p.v[2]);
}
static inline double least(Pixel p) {
    return smaller(smaller(p.v[0], p.v[1]), p.v[2]);
}
/* fmod(v, 1). */
static inline double fraction(double v) {
    return fabs(v) < 0x1p52 ? v - (double)(int64_t)v : fmod(v, 1);
}

static inline Pixel hsv_of(Pixel p) {
    const double r = p.v[0], g = p.v[1], b = p.v[2], value = largest(p), range = value - least(p);
    double hue = 0;
    if (range > 0) {
        hue = r == value   ? (g - b) / (6 * range)
              : g == value ? (b - r) / (6 * range) + 2.0 / 6
                           : (r - g) / (6 * range) + 4.0 / 6;
        if (hue < 0) hue += 1;
    }
    return (Pixel){{hue, value > 0 ? range / value : 0, value}};
}

static inline double unit(double v) {
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

static inline Pixel rgb_of(Pixel p) {
    const double hue = p.v[0] * 6, s = p.v[1], value = p.v[2];
    return (Pixel){{((1 - s) + s * unit(fabs(hue - 3) - 1)) * value, ((1 - s) + s * unit(2 - fabs(hue - 2))) * value,
                    ((1 - s) + s * unit(2 - fabs(hue - 4))) * value}};
}

/* Turned around the colour circle by delta; black, white and grey stay. */
static inline Pixel turn_hue(Pixel p, double delta) {
    const double value = largest(p), low = least(p), range = value - low;
    Pixel hsv = hsv_of(p);
    double hue = fraction(hsv.v[0] + delta);
    if (hue < 0) hue += 1;
    if (!(range > 0)) return p;
    Pixel pure = rgb_of((Pixel){{hue, 1, 1}});
    for (int i = 0; i < 3; i++) pure.v[i] = low + pure.v[i] * range;
    return pure;
}

static inline Pixel scale_saturation(Pixel p, double scale) {
    Pixel hsv = hsv_of(p);
    hsv.v[1] = unit(hsv.v[1] * scale);
    return rgb_of(hsv);
}

/* ---- Images: the last dimension is the colour ---- */

typedef enum Change { TO_HSV, TO_RGB, TURN_HUE, SCALE_SATURATION } Change;

typedef struct ColorJob {
    Change change;
    double amount; /* of the last two */
    const Tensor *x;
    Tensor *z;
} ColorJob;

static inline Pixel changed(Change change, Pixel p, double amount) {
    return change == TO_HSV ? hsv_of(p) : change == TO_RGB ? rgb_of(p) : change == TURN_HUE ? turn_hue(p, amount) : scale_saturation(p, amount);
}

/* One loop for each change. */
INLINE void change_floats(float *v, int64_t pixels, Change change, double amount) {
    for (int64_t i = 0; i < pixels; i++) {
        Pixel p = changed(change, (Pixel){{(double)v[3 * i], (double)v[3 * i + 1], (double)v[3 * i + 2]}}, amount);
        for (int c = 0; c < 3; c++) v[3 * i + c] = (float)p.v[c];
    }
}

static void color_range(void *arg, int64_t begin, int64_t end) {
    enum { PIECE = 256 };
    const ColorJob *job = arg;
    if (job->x->dtype == DT_DOUBLE) {
        for (int64_t i = begin; i < end; i++) {
            Pixel p;
            memcpy(p.v, tensor_f64(job->x) + 3 * i, sizeof p.v);
            p = changed(job->change, p, job->amount);
            memcpy(tensor_f64(job->z) + 3 * i, p.v, sizeof p.v);
        }
        return;
    }
    float v[3 * PIECE];
    for (int64_t i = begin; i < end; i += PIECE) {
        int64_t n = end - i < PIECE ? end - i : PIECE;
        floats_load(job->x, 3 * i, 3 * n, v);
        if (job->change == TO_HSV) change_floats(v, n, TO_HSV, 0);
        if (job->change == TO_RGB) change_floats(v, n, TO_RGB, 0);
        if (job->change == TURN_HUE) change_floats(v, n, TURN_HUE, job->amount);
        if (job->change == SCALE_SATURATION) change_floats(v, n, SCALE_SATURATION, job->amount);
        floats_store(v, job->z, 3 * i, 3 * n);
    }
}

static Error *each_pixel(KernelContext *k, ColorJob *job) {
    const Shape *x = &k->in[0]->shape;
    const bool plain = job->change == TO_HSV || job->change == TO_RGB;
    if (x->rank < 1) return error_invalid("input must be at least 1D%s", shape_text(x).text);
    if (x->dims[x->rank - 1] != 3) {
        return error_new(plain ? CODE_FAILED_PRECONDITION : CODE_INVALID_ARGUMENT,
                         "input must have 3 channels but %s has %lld channels.", plain ? "input only" : "instead",
                         (long long)x->dims[x->rank - 1]);
    }
    job->x = k->in[0];
    job->z = kernel_output_from(k, 0, 0, x);
    if (job->z) threadpool_parallel_for(k->pool, job->x->count / 3, 4096, color_range, job);
    return NULL;
}

static Error *rgb_to_hsv(KernelContext *k) {
    return each_pixel(k, &(ColorJob){.change = TO_HSV});
}
static Error *hsv_to_rgb(KernelContext *k) {
    return each_pixel(k, &(ColorJob){.change = TO_RGB});
}

static Error *read_amount(const KernelContext *k, int input, const char *what, float *out) {
    if (k->in[input]->shape.rank != 0) {
        return error_invalid("%s must be scalar: %s", what, shape_text(&k->in[input]->shape).text);
    }
    *out = tensor_f32(k->in[input])[0];
    return NULL;
}

static Error *adjust(KernelContext *k, const char *what, Change change) {
    float amount = 0;
    if (k->in[0]->shape.rank < 3) {
        return error_invalid("input must be at least 3-D, got shape%s", shape_text(&k->in[0]->shape).text);
    }
    Error *err = read_amount(k, 1, what, &amount);
    if (err) return err;
    return each_pixel(k, &(ColorJob){.change = change, .amount = (double)amount});
}
static Error *adjust_hue(KernelContext *k) {
    return adjust(k, "delta", TURN_HUE);
}
static Error *adjust_saturation(KernelContext *k) {
    return adjust(k, "scale", SCALE_SATURATION);
}

/* ---- Contrast ---- */

typedef struct ContrastJob {
    const float *x;
    float *z;
    int64_t area, channels;
    float factor, low, high;
} ContrastJob;

static void contrast_range(void *arg, int64_t begin, int64_t end) {
    const ContrastJob *job = arg;
    for (int64_t i = begin; i < end; i++) { /* one channel of one image */
        const int64_t first = i / job->channels * job->area * job->channels + i % job->channels;
        double sum = 0;
        for (int64_t p = 0; p < job->area; p++) sum += (double)job->x[first + p * job->channels];
        const float mean = (float)(sum / (double)job->area);
        for (int64_t p = 0; p < job->area; p++) {
            float v = (job->x[first + p * job->channels] - mean) * job->factor + mean;
            job->z[first + p * job->channels] = v < job->low ? job->low : v > job->high ? job->high : v;
        }
    }
}

/* Each channel of each image around its mean. The old form has bounds for the result. */
static Error *adjust_contrast(KernelContext *k) {
    const Shape *x = &k->in[0]->shape;
    ContrastJob job = {.low = -INFINITY, .high = INFINITY};
    if (x->rank < 3) return error_invalid("input must be at least 3-D, got shape%s", shape_text(x).text);
    Error *err = read_amount(k, 1, "contrast_factor", &job.factor);
    if (!err && k->input_count == 4) err = read_amount(k, 2, "min_value", &job.low);
    if (!err && k->input_count == 4) err = read_amount(k, 3, "max_value", &job.high);
    if (err) return err;
    Tensor *z = kernel_output(k, 0, x);
    if (!z || z->count == 0) return NULL;
    Tensor *from = kernel_floats(k, k->in[0]);
    Tensor *to = z->dtype == DT_FLOAT ? tensor_ref(z) : kernel_scratch(k, DT_FLOAT, x);
    if (from && to) {
        job.x = from->data;
        job.z = to->data;
        job.channels = x->dims[x->rank - 1];
        job.area = x->dims[x->rank - 3] * x->dims[x->rank - 2];
        threadpool_parallel_for(k->pool, z->count / job.area, 16384 / job.area + 1, contrast_range, &job);
        if (z->dtype != DT_FLOAT) floats_store(to->data, z, 0, z->count);
    }
    tensor_unref(from);
    tensor_unref(to);
    return NULL;
}

const KernelDef color_cpu[] = {
    {"RGBToHSV", .run = rgb_to_hsv},
    {"HSVToRGB", .run = hsv_to_rgb},
    {"AdjustContrast", .run = adjust_contrast},
    {"AdjustContrastv2", .run = adjust_contrast},
    {"AdjustHue", .run = adjust_hue},
    {"AdjustSaturation", .run = adjust_saturation},
    {0},
};
