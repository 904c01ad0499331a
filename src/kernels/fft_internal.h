/* fft_internal.h: the plan of a transform, as fft.c makes it and fft_lanes.c follows it too. */
#pragma once
#include "kernels/fft.h"

enum { FFT_MAX_FACTORS = 64, FFT_LARGEST_FACTOR = 50 };

/* Joins `radix` transforms of length `done` into one, `done` columns each, over and over. */
typedef struct FftPass {
    int radix;
    int64_t done, stride;           /* from one input of a column to the next */
    const double _Complex *roots;   /* by input but the first, by column; NULL: all are 1 */
    const double _Complex *corners; /* exp(-2 pi i k / radix) */
} FftPass;

struct FftPlan {
    int64_t n;
    FftPass passes[FFT_MAX_FACTORS];
    int pass_count;
    double _Complex *roots; /* of the passes, and their corners */
    /* Bluestein: the transform as a convolution of length inner->n. */
    FftPlan *inner;
    double _Complex *chirp;    /* exp(-pi i k^2 / n) */
    double _Complex *spectrum; /* of the conjugate chirp, divided by inner->n */
    /* Real numbers: the transform of pairs. */
    FftPlan *half;
    double _Complex *turns; /* exp(-2 pi i k / n), k <= n / 4 */
};
