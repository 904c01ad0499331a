/* conv2d.h: convolution of images, by oneDNN of volumes too, and its gradients. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/threadpool.h"

/* Filters are k_h x k_w x (in_c / groups) x out_c. Images are batch x h x w x c, or batch x c x h x w. Volumes, which only conv2d_onednn takes, have d before h, and no groups. */
typedef struct Conv2dShape {
    int64_t batch, in_h, in_w, in_c, out_h, out_w, out_c, k_h, k_w, groups;
    int64_t stride_h, stride_w, dilation_h, dilation_w; /* a dilation of 1 is none */
    int64_t pad_top, pad_left;
    int64_t in_d, out_d, k_d, stride_d, dilation_d, pad_front; /* 0 where there are images */
    int64_t channels_first;                                    /* bool; all members of one size, so that shapes compare as bytes */
} Conv2dShape;

typedef enum Conv2dKind { CONV2D_FORWARD, CONV2D_BACK_INPUT, CONV2D_BACK_FILTER } Conv2dKind;

/* Prepared oneDNN primitives, found again by shape. Thread-safe. */
typedef struct Conv2dCache Conv2dCache;
Conv2dCache *conv2d_cache_new(void);
void conv2d_cache_free(Conv2dCache *cache);

typedef enum Conv2dType { CONV2D_F32, CONV2D_BF16 } Conv2dType; /* of elements; bfloat16 is summed in float */

/* Computes one of `in`, `filter` and `out` (which one says kind) from the others. No size is 0. False when oneDNN
 * or the processor cannot. done (optional) gets every element of the result of CONV2D_FORWARD when it is final, from any thread; when the
 * answer is false, it may have got some. */
bool conv2d_onednn(Conv2dCache *cache, Conv2dKind kind, Conv2dType type, const Conv2dShape *s, void *in, void *filter, void *out,
                   ThreadPool *pool, RangeCall done);

/* The same for doubles, by products of matrices; false where groups or the order of channels do not allow it, or memory is out. */
bool conv2d_patches_f64(Conv2dKind kind, const Conv2dShape *s, double *in, double *filter, double *out, ThreadPool *pool);

/* Plain C: the reference, and the way for types oneDNN lacks. */
typedef void Conv2dFn(Conv2dKind kind, const Conv2dShape *s, void *in, void *filter, void *out);
Conv2dFn conv2d_plain_f32, conv2d_plain_f64, conv2d_plain_i32;
