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
INLINE double larger(double a, double b) {
    return a > b || b != b ? a : b;
}
INLINE double smaller(double a, double b) {
    return a < b || b != b ? a : b;
}
INLINE double largest(Pixel p) {
    return larger(larger(p.v[0], p.v[1]), p.v[2]);
}
INLINE double least(Pixel p) {
    return smaller(smaller(p.v[0], p.v[1]), p.v[2]);
}

/* All without jumps, so that loops over pixels become vectors. */
INLINE Pixel hsv_of(Pixel p) {
    const double r = p.v[0], g = p.v[1], b = p.v[2], value = largest(p), range = value - least(p);
    const double ahead = r == value ? g - b : g == value ? b - r : r - g, start = r == value ? 0 : g == value ? 2.0 / 6 : 4.0 / 6;
    const double hue = ahead / (6 * range) + start, turned = hue < 0 ? hue + 1 : hue, share = range / value;
    return (Pixel){{range > 0 ? turned : 0, value > 0 ? share : 0, value}};
}

INLINE double unit(double v) {
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

INLINE Pixel rgb_of(Pixel p) {
    const double hue = p.v[0] * 6, s = p.v[1], value = p.v[2];
    return (Pixel){{((1 - s) + s * unit(fabs(hue - 3) - 1)) * value, ((1 - s) + s * unit(2 - fabs(hue - 2))) * value,
                    ((1 - s) + s * unit(2 - fabs(hue - 4))) * value}};
}

/* Turned around the colour circle by delta; black, white and grey stay. */
INLINE Pixel turn_hue(Pixel p, double delta) {
    const double low = least(p), range = largest(p) - low, place = hsv_of(p).v[0] + delta, rest = place - trunc(place), hue = rest < 0 ? rest + 1 : rest;
    const Pixel pure = rgb_of((Pixel){{hue, 1, 1}});
    for (int i = 0; i < 3; i++) p.v[i] = range > 0 ? low + pure.v[i] * range : p.v[i];
    return p;
}

INLINE Pixel scale_saturation(Pixel p, double scale) {
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

enum { PIECE = 256 }; /* pixels that are changed together, each colour in a row of its own */
typedef double Planes[3][PIECE];

/* One loop for each change. */
INLINE void change_planes(Planes v, Change change, double amount) {
    for (int i = 0; i < PIECE; i++) {
        Pixel p = {{v[0][i], v[1][i], v[2][i]}};
        p = change == TO_HSV ? hsv_of(p) : change == TO_RGB ? rgb_of(p) : change == TURN_HUE ? turn_hue(p, amount) : scale_saturation(p, amount);
        for (int c = 0; c < 3; c++) v[c][i] = p.v[c];
    }
}
CPU_LOOP(to_hsv, (Planes v), (v), change_planes(v, TO_HSV, 0))
CPU_LOOP(to_rgb, (Planes v), (v), change_planes(v, TO_RGB, 0))
CPU_LOOP(turn_hues, (Planes v, double delta), (v, delta), change_planes(v, TURN_HUE, delta))
CPU_LOOP(scale_saturations, (Planes v, double scale), (v, scale), change_planes(v, SCALE_SATURATION, scale))

static void change_piece(const ColorJob *job, Planes v) {
    switch (job->change) {
        case TO_HSV:
            to_hsv(v);
            break;
        case TO_RGB:
            to_rgb(v);
            break;
        case TURN_HUE:
            turn_hues(v, job->amount);
            break;
        case SCALE_SATURATION:
            scale_saturations(v, job->amount);
            break;
    }
}

static void color_range(void *arg, int64_t begin, int64_t end) {
    const ColorJob *job = arg;
    const bool is_double = job->x->dtype == DT_DOUBLE;
    float floats[3 * PIECE];
    Planes v = {{0}};
    for (int64_t i = begin; i < end; i += PIECE) {
        const int64_t n = end - i < PIECE ? end - i : PIECE;
        const double *x = is_double ? tensor_f64(job->x) + 3 * i : NULL;
        double *z = is_double ? tensor_f64(job->z) + 3 * i : NULL;
        if (!is_double) floats_load(job->x, 3 * i, 3 * n, floats);
        for (int64_t p = 0; p < n; p++)
            for (int c = 0; c < 3; c++) v[c][p] = is_double ? x[3 * p + c] : (double)floats[3 * p + c];
        change_piece(job, v);
        for (int64_t p = 0; p < n; p++) {
            for (int c = 0; c < 3; c++) {
                if (is_double)
                    z[3 * p + c] = v[c][p];
                else
                    floats[3 * p + c] = (float)v[c][p];
            }
        }
        if (!is_double) floats_store(floats, job->z, 3 * i, 3 * n);
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

/* Several pixels are one line of CONTRAST_LANES numbers at most, whose sums go side by side; channels beyond that many are taken one after the other. */
enum { CONTRAST_LANES = 48 };

INLINE void contrast_image(const ContrastJob *job, const float *x, float *z, int64_t first, int64_t channels, int64_t pixels) {
    double sums[CONTRAST_LANES] = {0};
    float means[CONTRAST_LANES];
    const int64_t lanes = channels * pixels, whole = job->area / pixels * pixels;
    for (int64_t p = 0; p < whole; p += pixels)
        for (int64_t i = 0; i < lanes; i++) sums[i] += (double)x[p * job->channels + first + i];
    for (int64_t i = channels; i < lanes; i++) sums[i % channels] += sums[i];
    for (int64_t p = whole; p < job->area; p++)
        for (int64_t c = 0; c < channels; c++) sums[c] += (double)x[p * job->channels + first + c];
    for (int64_t i = 0; i < lanes; i++) means[i] = (float)(sums[i % channels] / (double)job->area);
    for (int64_t p = 0; p < job->area; p += pixels) {
        const int64_t count = p < whole ? lanes : (job->area - p) * channels, at = p * job->channels + first;
        for (int64_t i = 0; i < count; i++) {
            const float v = (x[at + i] - means[i]) * job->factor + means[i];
            z[at + i] = v < job->low ? job->low : v > job->high ? job->high : v;
        }
    }
}

INLINE void contrast_images(const ContrastJob *job, int64_t begin, int64_t end) {
    const int64_t channels = job->channels;
    for (int64_t image = begin; image < end; image++) {
        const float *x = job->x + image * job->area * channels;
        float *z = job->z + image * job->area * channels;
        if (channels == 3)
            contrast_image(job, x, z, 0, 3, CONTRAST_LANES / 3);
        else if (channels == 1)
            contrast_image(job, x, z, 0, 1, CONTRAST_LANES);
        else
            for (int64_t first = 0; first < channels; first += CONTRAST_LANES) {
                const int64_t count = channels - first < CONTRAST_LANES ? channels - first : CONTRAST_LANES;
                contrast_image(job, x, z, first, count, count == channels ? CONTRAST_LANES / count : 1);
            }
    }
}
CPU_LOOP(contrast_range, (void *arg, int64_t begin, int64_t end), (arg, begin, end), contrast_images(arg, begin, end))

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
        threadpool_parallel_for(k->pool, z->count / (job.area * job.channels), 16384 / (job.area * job.channels) + 1, contrast_range, &job);
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
