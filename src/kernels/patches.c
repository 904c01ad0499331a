/* patches.c: walks the places of a sliding window. */
#include "kernels/patches.h"

#include <stdbool.h>
#include <string.h>

/* One element of the window at one place: where its pixel is in the image, -1 when outside. */
typedef struct PatchWalk {
    const PatchShape *s;
    int64_t first, origin[3]; /* pixel number of the image's first pixel; of the window's first pixel in it */
} PatchWalk;

static PatchWalk walk_row(const PatchShape *s, int64_t row) {
    PatchWalk w = {.s = s};
    for (int i = 2; i >= 0; i--) {
        w.origin[i] = row % s->out[i] * s->stride[i] - s->pad[i];
        row /= s->out[i];
    }
    w.first = row * s->in[0] * s->in[1] * s->in[2];
    return w;
}

static int64_t walk_pixel(const PatchWalk *w, int64_t kd, int64_t kh, int64_t kw) {
    const PatchShape *s = w->s;
    int64_t d = w->origin[0] + kd * s->dilation[0], y = w->origin[1] + kh * s->dilation[1],
            x = w->origin[2] + kw * s->dilation[2];
    bool inside = d >= 0 && d < s->in[0] && y >= 0 && y < s->in[1] && x >= 0 && x < s->in[2];
    return inside ? w->first + (d * s->in[1] + y) * s->in[2] + x : -1;
}

/* Whether a row of the window is one piece of the image; *at is its first pixel. */
static bool walk_whole(const PatchWalk *w, int64_t kd, int64_t kh, int64_t *at) {
    *at = walk_pixel(w, kd, kh, 0);
    return w->s->dilation[2] == 1 && *at >= 0 && w->origin[2] + w->s->k[2] <= w->s->in[2];
}

void patches_copy(const PatchShape *s, size_t size, const void *image, int64_t begin, int64_t end, void *rows) {
    const size_t pixel = size * (size_t)s->channels;
    char *to = rows;
    for (int64_t row = begin; row < end; row++) {
        PatchWalk w = walk_row(s, row);
        for (int64_t kd = 0; kd < s->k[0]; kd++) {
            for (int64_t kh = 0; kh < s->k[1]; kh++) {
                int64_t at;
                if (walk_whole(&w, kd, kh, &at)) {
                    memcpy(to, (const char *)image + (size_t)at * pixel, pixel * (size_t)s->k[2]);
                    to += pixel * (size_t)s->k[2];
                    continue;
                }
                for (int64_t kw = 0; kw < s->k[2]; kw++, to += pixel) {
                    at = walk_pixel(&w, kd, kh, kw);
                    if (at < 0) {
                        memset(to, 0, pixel);
                    } else {
                        memcpy(to, (const char *)image + (size_t)at * pixel, pixel);
                    }
                }
            }
        }
    }
}

#define S float
#define NAME(f) f##_f32
#include "kernels/patches_add.inc"
#undef S
#undef NAME
#define S double
#define NAME(f) f##_f64
#include "kernels/patches_add.inc"
