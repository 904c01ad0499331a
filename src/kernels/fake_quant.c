/* fake_quant.c: rounding to a quantised range and its gradient, for each level of processor. */
#include "kernels/fake_quant.h"

#include <math.h>

#include "kernels/cpu.h"

enum { LANES = 16 }; /* sums kept apart when one range is for all, so that they are the same on every processor */

static inline __attribute__((always_inline)) float rounded(float x, float low, float high, float inverse, float zero, float scale) {
    float v = x > high ? high : x;
    v = v < low ? low : v; /* in this order: a range may be upside down */
    return floorf((v - low) * inverse - zero + 0.5f) * scale;
}

#define CPU_BODY "kernels/fake_quant.inc"
#include "kernels/each_cpu.inc"

void fake_quant_round(const FakeQuantColumns *c, const float *x, float *z, int64_t n) {
    CPU_PICK(round_rows)(c, x, z, n);
}

void fake_quant_backward(const FakeQuantColumns *c, const float *dz, const float *x, float *dx, int64_t n, double *below, double *above) {
    CPU_PICK(backward_rows)(c, dz, x, dx, n, below, above);
}
