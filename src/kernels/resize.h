/* resize.h: images of another size: nearest, bilinear and bicubic interpolation, means of areas, and gradients. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Images are batch x h x w x channels. Work is shared by rows: [begin, end) of batch * out_h. */
typedef struct ResizeShape {
    int64_t batch, in_h, in_w, out_h, out_w, channels;
} ResizeShape;

/* How places of the result map to places of the image. */
typedef struct ResizeMap {
    bool align_corners; /* first and last pixels fall on each other */
    bool half_pixel;    /* pixels are areas, with their centres at one half */
} ResizeMap;

/* For each place along one side: up to four pixels and their weights. */
typedef struct ResizeTap {
    int64_t at[4];
    float weight[4];
} ResizeTap;

float resize_scale(int64_t in, int64_t out, bool align_corners);
void resize_nearest_taps(ResizeTap *taps, int64_t in, int64_t out, ResizeMap map);
void resize_bilinear_taps(ResizeTap *taps, int64_t in, int64_t out, ResizeMap map); /* 2 pixels */
void resize_bicubic_taps(ResizeTap *taps, int64_t in, int64_t out, ResizeMap map);  /* 4 pixels */

/* y and x: taps of the two sides. */
typedef struct ResizeTaps {
    const ResizeTap *y, *x;
} ResizeTaps;

void resize_copy(const ResizeShape *s, ResizeTaps taps, size_t size, int64_t begin, int64_t end, void *to,
                 const void *from); /* the first pixel of each tap, of elements of `size` bytes */
void resize_bilinear(const ResizeShape *s, ResizeTaps taps, int64_t begin, int64_t end, float *to, const float *from);
void resize_bicubic(const ResizeShape *s, ResizeTaps taps, int64_t begin, int64_t end, float *to, const float *from);
void resize_area(const ResizeShape *s, bool align_corners, int64_t begin, int64_t end, float *to, const float *from);

/* Gradients, of images [begin, end): dz has the size of the result. The first `count` pixels of each tap get their
 * share. dx is cleared first. */
void resize_grad_f32(const ResizeShape *s, ResizeTaps taps, int count, int64_t begin, int64_t end, float *dx,
                     const float *dz);
void resize_grad_f64(const ResizeShape *s, ResizeTaps taps, int count, int64_t begin, int64_t end, double *dx,
                     const float *dz);
