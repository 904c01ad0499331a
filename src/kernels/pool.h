/* pool.h: maxima and means of windows over images of up to three dimensions, and their gradients. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Images are batch x d x h x w x c, or batch x c x d x h x w. Flat images have d = 1. */
typedef struct PoolShape {
    int64_t batch, channels;
    int64_t in[3], out[3], k[3], stride[3], pad[3]; /* of d, h, w; padding before */
    bool channels_first;
    bool finite; /* maxima start at the lowest finite number, so that a NaN or -inf is none; where channels are last */
} PoolShape;

/* Where pixels are and how far apart their channels lie. */
typedef struct PoolPixels {
    int64_t image, pixel, channel; /* strides */
} PoolPixels;
static inline PoolPixels pool_pixels(const PoolShape *s, const int64_t *dims) {
    int64_t area = dims[0] * dims[1] * dims[2];
    return (PoolPixels){area * s->channels, s->channels_first ? 1 : s->channels, s->channels_first ? area : 1};
}

/* The part of a window that lies in the image. */
typedef struct PoolBox {
    int64_t from[3], to[3];
    int64_t count;
} PoolBox;
/* Of output pixel `at` of an image, [0, out_d * out_h * out_w). */
PoolBox pool_box(const PoolShape *s, int64_t at);

/* Each works on images [begin, end) of the batch and is named after its type: pool_max_f32, ... z is cleared first.
 * max_at: the position, in the image's elements, of the first maximum of each window is put into `at` when not NULL. */
#define POOL_FUNCTIONS(T, S)                                                                                \
    void pool_max_##T(const PoolShape *s, int64_t begin, int64_t end, S *z, const S *x, int64_t *at);       \
    void pool_max_grad_##T(const PoolShape *s, int64_t begin, int64_t end, S *dx, const S *x, const S *dz); \
    void pool_max_grad_all_##T(const PoolShape *s, int64_t begin, int64_t end, S *dx, const S *x, const S *z, const S *dz); \
    void pool_avg_##T(const PoolShape *s, int64_t begin, int64_t end, S *z, const S *x);                    \
    void pool_avg_grad_##T(const PoolShape *s, int64_t begin, int64_t end, S *dx, const S *dz);
POOL_FUNCTIONS(f16, uint16_t)
POOL_FUNCTIONS(bf16, uint16_t)
POOL_FUNCTIONS(f32, float)
POOL_FUNCTIONS(f64, double)
POOL_FUNCTIONS(i8, int8_t)
POOL_FUNCTIONS(i16, int16_t)
POOL_FUNCTIONS(i32, int32_t)
POOL_FUNCTIONS(i64, int64_t)
POOL_FUNCTIONS(u8, uint8_t)
POOL_FUNCTIONS(u16, uint16_t)
POOL_FUNCTIONS(u32, uint32_t)
POOL_FUNCTIONS(u64, uint64_t)
