/* batch_norm.h: normalisation of channels over all pixels of a batch. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* x is outer x channels x inner (inner = 1: channels last). All members are the caller's. */
typedef struct BatchNorm {
    int64_t outer, channels, inner;
    float epsilon;
    const void *x, *dy;
    void *y; /* the result: y, or dx in a gradient */
    const float *scale, *offset;
    float *mean, *variance;   /* of each channel; variance divided by the number of pixels */
    float *sum_dy, *sum_dy_x; /* of a gradient: sums of dy and of dy * (x - mean) */
    bool training;            /* of a gradient: mean and variance depend on x */
} BatchNorm;

/* Each is a RangeFn over channels [begin, end); arg is a BatchNorm. */
#define BATCH_NORM_FUNCTIONS(T)                                      \
    void batch_moments_##T(void *arg, int64_t begin, int64_t end);   \
    void batch_normalize_##T(void *arg, int64_t begin, int64_t end); \
    void batch_norm_sums_##T(void *arg, int64_t begin, int64_t end); \
    void batch_norm_grad_##T(void *arg, int64_t begin, int64_t end);
BATCH_NORM_FUNCTIONS(f16)
BATCH_NORM_FUNCTIONS(bf16)
BATCH_NORM_FUNCTIONS(f32)
