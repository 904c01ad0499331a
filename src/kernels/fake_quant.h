/* fake_quant.h: floats rounded as their quantised form would be, row by row, with a range for each column or one for all. */
#pragma once
#include <stdint.h>

/* What rounds a column: numbers are brought into [low, high] and rounded to steps of `scale`. All are finite. */
typedef struct FakeQuantColumns {
    int64_t count; /* 1: one for whole rows of any length */
    const float *low, *high, *inverse, *zero, *scale;
} FakeQuantColumns;

/* z[i] = x[i] rounded; n is a multiple of the number of columns. A NaN stays one. */
void fake_quant_round(const FakeQuantColumns *c, const float *x, float *z, int64_t n);
/* dx[i] is dz[i] where x[i] is inside, else 0; what lies below and above is added to below[column] and above[column]. */
void fake_quant_backward(const FakeQuantColumns *c, const float *dz, const float *x, float *dx, int64_t n, double *below, double *above);
