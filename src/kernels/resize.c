/* resize.c: interpolation by taps: the pixels and weights of each place are worked out once for each side. */
#include "kernels/resize.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { CUBIC_STEPS = 1024 }; /* weights are taken at this many places between two pixels */

float resize_scale(int64_t in, int64_t out, bool align_corners) {
    return align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

static int64_t bound(int64_t v, int64_t size) {
    return v < 0 ? 0 : v >= size ? size - 1 : v;
}

void resize_nearest_taps(ResizeTap *taps, int64_t in, int64_t out, ResizeMap map) {
    const float scale = resize_scale(in, out, map.align_corners);
    for (int64_t i = 0; i < out; i++) {
        float place = ((float)i + (map.half_pixel ? 0.5f : 0.0f)) * scale;
        taps[i] = (ResizeTap){{bound((int64_t)(map.align_corners ? roundf(place) : floorf(place)), in)}, {1}};
    }
}

static float place_of(int64_t i, float scale, bool half_pixel) {
    return half_pixel ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
}

void resize_bilinear_taps(ResizeTap *taps, int64_t in, int64_t out, ResizeMap map) {
    const float scale = resize_scale(in, out, map.align_corners);
    for (int64_t i = 0; i < out; i++) {
        float place = place_of(i, scale, map.half_pixel), low = floorf(place), part = place - low;
        taps[i] = (ResizeTap){{bound((int64_t)low, in), bound((int64_t)ceilf(place), in)}, {1 - part, part}};
    }
}

/* Weights of the pixels next to a place (near) and one further (far), at distances x and x + 1. */
static float cubic_near(float x, float a) {
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}
static float cubic_far(float x, float a) {
    x += 1;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/* With half_pixel pixels outside of the image do not count, else the border pixel stands for them. */
void resize_bicubic_taps(ResizeTap *taps, int64_t in, int64_t out, ResizeMap map) {
    const float scale = resize_scale(in, out, map.align_corners), a = map.half_pixel ? -0.5f : -0.75f;
    for (int64_t i = 0; i < out; i++) {
        float place = place_of(i, scale, map.half_pixel), low = floorf(place), sum = 0;
        float x = (float)lrintf((place - low) * CUBIC_STEPS) / CUBIC_STEPS;
        float weight[4] = {cubic_far(x, a), cubic_near(x, a), cubic_near(1 - x, a), cubic_far(1 - x, a)};
        for (int t = 0; t < 4; t++) {
            int64_t at = (int64_t)low - 1 + t;
            taps[i].at[t] = bound(at, in);
            taps[i].weight[t] = map.half_pixel && taps[i].at[t] != at ? 0 : weight[t];
            sum += taps[i].weight[t];
        }
        if (!map.half_pixel || fabsf(sum) < 1000 * FLT_MIN) continue;
        for (int t = 0; t < 4; t++) taps[i].weight[t] /= sum;
    }
}

/* ---- Forward ---- */

void resize_copy(const ResizeShape *s, ResizeTaps taps, size_t size, int64_t begin, int64_t end, void *to,
                 const void *from) {
    const size_t pixel = size * (size_t)s->channels;
    char *z = (char *)to + (size_t)(begin * s->out_w) * pixel;
    for (int64_t row = begin; row < end; row++) {
        int64_t first = (row / s->out_h * s->in_h + taps.y[row % s->out_h].at[0]) * s->in_w;
        for (int64_t x = 0; x < s->out_w; x++, z += pixel) {
            memcpy(z, (const char *)from + (size_t)(first + taps.x[x].at[0]) * pixel, pixel);
        }
    }
}

typedef float Quad __attribute__((vector_size(16), aligned(4), may_alias));

/* A line of the image, interpolated along. Pixels of three colours are taken as four numbers; the last one, behind which nothing may lie, is not. */
static void stretch_line(const ResizeShape *s, const ResizeTap *x, const float *line, float *z) {
    const int64_t channels = s->channels;
    int64_t i = 0;
    for (; channels == 3 && i < s->out_w && x[i].at[1] < s->in_w - 1; i++, z += 3) {
        const Quad left = *(const Quad *)(line + x[i].at[0] * 3), right = *(const Quad *)(line + x[i].at[1] * 3);
        *(Quad *)z = left + (right - left) * x[i].weight[1];
    }
    for (; i < s->out_w; i++, z += channels) {
        const float *left = line + x[i].at[0] * channels, *right = line + x[i].at[1] * channels;
        for (int64_t c = 0; c < channels; c++) z[c] = left[c] + (right[c] - left[c]) * x[i].weight[1];
    }
}

/* First along, into two lines that the next row may need once more, then down. */
void resize_bilinear(const ResizeShape *s, ResizeTaps taps, int64_t begin, int64_t end, float *to, const float *from) {
    const int64_t width = s->out_w * s->channels;
    float *lines = xmalloc((size_t)(2 * width + 4) * sizeof *lines), *top = lines, *bottom = lines + width + 1; /* a number more: pixels are written as four */
    int64_t top_of = -1, bottom_of = -1;                                                                     /* the lines of all images they were made from */
    for (int64_t row = begin; row < end; row++) {
        const ResizeTap *y = &taps.y[row % s->out_h];
        const int64_t upper = row / s->out_h * s->in_h + y->at[0], lower = row / s->out_h * s->in_h + y->at[1];
        float *z = to + row * width;
        const float down = y->weight[1];
        if (upper == bottom_of) {
            float *other = top;
            top = bottom, bottom = other;
            bottom_of = top_of, top_of = upper;
        }
        if (upper != top_of) stretch_line(s, taps.x, from + upper * s->in_w * s->channels, top);
        if (lower != bottom_of) stretch_line(s, taps.x, from + lower * s->in_w * s->channels, bottom);
        top_of = upper, bottom_of = lower;
        for (int64_t i = 0; i < width; i++) z[i] = top[i] + (bottom[i] - top[i]) * down;
    }
    free(lines);
}

/* First down, which makes one line of the image, then along it. */
void resize_bicubic(const ResizeShape *s, ResizeTaps taps, int64_t begin, int64_t end, float *to, const float *from) {
    const int64_t width = s->in_w * s->channels;
    float *z = to + begin * s->out_w * s->channels, *line = xmalloc((size_t)width * sizeof *line);
    for (int64_t row = begin; row < end; row++) {
        const ResizeTap *y = &taps.y[row % s->out_h];
        const float *image = from + row / s->out_h * s->in_h * width;
        const float *lines[4];
        for (int t = 0; t < 4; t++) lines[t] = image + y->at[t] * width;
        for (int64_t i = 0; i < width; i++)
            line[i] = lines[0][i] * y->weight[0] + lines[1][i] * y->weight[1] + lines[2][i] * y->weight[2] + lines[3][i] * y->weight[3];
        for (int64_t i = 0; i < s->out_w; i++, z += s->channels) {
            const ResizeTap *x = &taps.x[i];
            const float *at[4];
            for (int t = 0; t < 4; t++) at[t] = line + x->at[t] * s->channels;
            for (int64_t c = 0; c < s->channels; c++)
                z[c] = at[0][c] * x->weight[0] + at[1][c] * x->weight[1] + at[2][c] * x->weight[2] + at[3][c] * x->weight[3];
        }
    }
    free(line);
}

/* How much of pixel i lies in [from, to), an interval of length `scale`. */
static float overlap(int64_t i, float from, float to, float scale) {
    float p = (float)i;
    if (p < from) return p + 1 > to ? scale : p + 1 - from;
    return p + 1 > to ? to - p : 1;
}

/* The pixels that places of a side cover: those of place i begin at first[i]. */
typedef struct AreaTaps {
    int64_t *first, *at;
    float *share;
} AreaTaps;

static AreaTaps area_taps(int64_t in, int64_t out, float scale) {
    AreaTaps t = {.first = xmalloc((size_t)(out + 1) * sizeof *t.first)};
    int64_t count = 0;
    for (int round = 0; round < 2; round++) { /* counts, then writes */
        count = 0;
        for (int64_t i = 0; i < out; i++) {
            const float from = (float)i * scale, to = (float)(i + 1) * scale;
            t.first[i] = count;
            for (int64_t p = (int64_t)floorf(from); p < (int64_t)ceilf(to); p++, count++) {
                if (round == 0) continue;
                t.at[count] = bound(p, in);
                t.share[count] = overlap(p, from, to, scale);
            }
        }
        if (round > 0) break;
        t.at = xmalloc((size_t)(count + 1) * sizeof *t.at);
        t.share = xmalloc((size_t)(count + 1) * sizeof *t.share);
    }
    t.first[out] = count;
    return t;
}

static void area_taps_clear(AreaTaps *t) {
    free(t->first);
    free(t->at);
    free(t->share);
}

/* One pixel: the sum over lines [y0, y1) and columns [x0, x1) of the taps. */
static inline __attribute__((always_inline)) void area_pixel(const float *image, int64_t line, int64_t channels, const AreaTaps *ys, int64_t y0, int64_t y1,
                                                             const AreaTaps *xs, int64_t x0, int64_t x1, float norm, float *z) {
    for (int64_t c = 0; c < channels; c++) z[c] = 0;
    for (int64_t y = y0; y < y1; y++) {
        for (int64_t x = x0; x < x1; x++) {
            const float share = ys->share[y] * xs->share[x];
            const float *pixel = image + ys->at[y] * line + xs->at[x] * channels;
            for (int64_t c = 0; c < channels; c++) z[c] += pixel[c] * share;
        }
    }
    for (int64_t c = 0; c < channels; c++) z[c] *= norm;
}

void resize_area(const ResizeShape *s, bool align_corners, int64_t begin, int64_t end, float *to, const float *from) {
    const float scale_y = resize_scale(s->in_h, s->out_h, align_corners);
    const float scale_x = resize_scale(s->in_w, s->out_w, align_corners), norm = 1 / (scale_y * scale_x);
    const int64_t line = s->in_w * s->channels;
    AreaTaps ys = area_taps(s->in_h, s->out_h, scale_y), xs = area_taps(s->in_w, s->out_w, scale_x);
    float *z = to + begin * s->out_w * s->channels;
    for (int64_t row = begin; row < end; row++) {
        const float *image = from + row / s->out_h * s->in_h * line;
        const int64_t y0 = ys.first[row % s->out_h], y1 = ys.first[row % s->out_h + 1];
        for (int64_t i = 0; i < s->out_w; i++, z += s->channels) {
            if (s->channels == 3) { /* as three sums that stay in registers */
                float rgb[3];
                area_pixel(image, line, 3, &ys, y0, y1, &xs, xs.first[i], xs.first[i + 1], norm, rgb);
                memcpy(z, rgb, sizeof rgb);
            } else {
                area_pixel(image, line, s->channels, &ys, y0, y1, &xs, xs.first[i], xs.first[i + 1], norm, z);
            }
        }
    }
    area_taps_clear(&ys);
    area_taps_clear(&xs);
}

/* ---- Gradients ---- */

#define S float
#define NAME(f) f##_f32
#include "kernels/resize_grad.inc"
#undef S
#undef NAME
#define S double
#define NAME(f) f##_f64
#include "kernels/resize_grad.inc"
