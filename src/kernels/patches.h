/* patches.h: the pixels under each place of a sliding window as rows of a matrix, and back. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Images are batch x d x h x w x channels; flat ones have d = 1. Row number ((b * out_d + z) * out_h + y) * out_w + x
 * holds k_d x k_h x k_w x channels elements. */
typedef struct PatchShape {
    int64_t batch, channels;
    int64_t in[3], out[3], k[3], stride[3], dilation[3], pad[3]; /* of d, h, w; padding before */
} PatchShape;

static inline int64_t patch_rows(const PatchShape *s) {
    return s->batch * s->out[0] * s->out[1] * s->out[2];
}
static inline int64_t patch_length(const PatchShape *s) {
    return s->k[0] * s->k[1] * s->k[2] * s->channels;
}

/* Rows [begin, end) of the matrix, the first at `rows`; elements of `size` bytes, zero outside of the image. */
void patches_copy(const PatchShape *s, size_t size, const void *image, int64_t begin, int64_t end, void *rows);
/* Adds rows [begin, end) to the pixels they came from. */
void patches_add_f32(const PatchShape *s, float *image, int64_t begin, int64_t end, const float *rows);
void patches_add_f64(const PatchShape *s, double *image, int64_t begin, int64_t end, const double *rows);
