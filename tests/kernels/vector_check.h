/* vector_check.h: holds a function of arrays of floats or doubles to one of the C library, over all magnitudes and at the edges. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/float16.h"
#include "kernels/vector_library.h"

enum { VECTOR_BLOCK = 1003, VECTOR_ROUNDS = 2000 }; /* a block is not a multiple of any vector's length */

static inline void vector_check_float(const char *name, double (*want_of)(double), double units, float x, float got) {
    const double want = want_of((double)x);
    const float near = (float)want;
    if (isnan(near)) {
        if (!isnan(got)) fail_msg("%s(%g) = %g, want NaN", name, (double)x, (double)got);
        return;
    }
    if (isinf(near) || fabsf(near) < FLT_MIN) { /* results that are subnormal may lose digits */
        if (got == near || fabs((double)got - want) <= 0x1p-148) return;
        fail_msg("%s(%g) = %g, want %g", name, (double)x, (double)got, want);
    }
    const double unit = (double)(nextafterf(fabsf(near), INFINITY) - fabsf(near));
    if (fabs((double)got - want) > units * unit) fail_msg("%s(%a) = %a, want %a", name, (double)x, (double)got, want);
}

static inline void vector_check_double(const char *name, double (*want_of)(double), double units, double x, double got) {
    const double want = want_of(x);
    if (isnan(want) ? isnan(got) : got == want) return;
    const double unit = nextafter(fabs(want), INFINITY) - fabs(want);
    if (!(fabs(got - want) <= units * unit || (fabs(want) < DBL_MIN && fabs(got - want) <= 0x1p-1072))) fail_msg("%s(%a) = %a, want %a", name, x, got, want);
}

static inline void vector_check(const char *name, VectorFn *fn, double (*want)(double), double units) {
    float x[VECTOR_BLOCK], z[VECTOR_BLOCK];
    uint32_t bits = 12345;
    for (int round = 0; round < VECTOR_ROUNDS; round++) {
        for (int i = 0; i < VECTOR_BLOCK; i++) {
            bits = bits * 1664525u + 1013904223u;
            x[i] = round % 2 ? float_from_bits(bits) : (float)(int32_t)bits * 0x1p-25f; /* any float; within 64 of 0 */
        }
        fn(z, x, VECTOR_BLOCK);
        for (int i = 0; i < VECTOR_BLOCK; i++) vector_check_float(name, want, units, x[i], z[i]);
    }
    const float edges[] = {0.0f,         -0.0f,   1,        -1,       INFINITY, -INFINITY, NAN,     FLT_MIN,
                           FLT_TRUE_MIN, FLT_MAX, -FLT_MAX, 88.7228f, 88.7229f, -87.34f,   -103.9f, -104.1f,
                           0.625f,       -0.625f, 1e-20f,   -1e-20f,  89.5f,    -90};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        fn(z, &edges[i], 1);
        vector_check_float(name, want, units, edges[i], z[0]);
    }
    memcpy(z, x, sizeof z);
    fn(z, z, VECTOR_BLOCK); /* in place */
    for (int i = 0; i < VECTOR_BLOCK; i++) vector_check_float(name, want, units, x[i], z[i]);
    fn(z, z, 0);
}

static inline void vector_check_f64(const char *name, DoubleVectorFn *fn, double (*want)(double), double units) {
    double x[VECTOR_BLOCK], z[VECTOR_BLOCK];
    uint64_t bits = 12345;
    for (int round = 0; round < VECTOR_ROUNDS; round++) {
        for (int i = 0; i < VECTOR_BLOCK; i++) {
            bits = bits * 6364136223846793005u + 1442695040888963407u;
            if (round % 2) {
                memcpy(&x[i], &bits, sizeof x[i]);
            } else {
                x[i] = (double)(int64_t)bits * 0x1p-57;
            }
        }
        fn(z, x, VECTOR_BLOCK);
        for (int i = 0; i < VECTOR_BLOCK; i++) vector_check_double(name, want, units, x[i], z[i]);
    }
    const double edges[] = {0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, DBL_MIN, DBL_TRUE_MIN, DBL_MAX, -DBL_MAX, 709.78, 709.79, -745.1, 0.625, -0.625, 1e-200};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        fn(z, &edges[i], 1);
        vector_check_double(name, want, units, edges[i], z[0]);
    }
    memcpy(z, x, sizeof z);
    fn(z, z, VECTOR_BLOCK);
    for (int i = 0; i < VECTOR_BLOCK; i++) vector_check_double(name, want, units, x[i], z[i]);
    fn(z, z, 0);
}
