/* batch_norm.h: normalisation of channels over all pixels of a batch. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/threadpool.h"

typedef enum BatchNormType { BATCH_NORM_F32, BATCH_NORM_F16, BATCH_NORM_BF16 } BatchNormType;

/* x is outer x channels x inner (inner = 1: channels last). All members are the caller's. */
typedef struct BatchNorm {
    BatchNormType type; /* of x, dy, y */
    int64_t outer, channels, inner;
    float epsilon;
    const void *x, *dy;
    void *y; /* the result: y, or dx in a gradient; may be x or dy */
    const float *scale, *offset;
    float *mean, *variance;   /* of each channel; variance divided by the number of pixels */
    float *sum_dy, *sum_dy_x; /* of a gradient: sums of dy and of dy * (x - mean) */
    bool training;            /* of a gradient: mean and variance depend on x */
    double *parts;            /* scratch: batch_norm_part_count elements */
} BatchNorm;

/* Of moments and sums, which are computed piece by piece; the pieces depend on the shape alone. */
size_t batch_norm_part_count(const BatchNorm *b);

void batch_norm_moments(BatchNorm *b, ThreadPool *pool);   /* mean and variance */
void batch_norm_normalize(BatchNorm *b, ThreadPool *pool); /* y */
void batch_norm_sums(BatchNorm *b, ThreadPool *pool);      /* sum_dy and sum_dy_x */
void batch_norm_grad(BatchNorm *b, ThreadPool *pool);      /* y from dy and the sums */
