/* vector_math_test.c: exp, log, tanh, sigmoid, sin, cos and erf of floats against the C library, over all magnitudes and at the edges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/float16.h"
#include "kernels/vector_math.h"

enum { BLOCK = 1003 }; /* not a multiple of any vector's length */

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static void check(const char *name, double (*want_of)(double), float x, float got) {
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
    if (fabs((double)got - want) > 2.5 * unit) fail_msg("%s(%a) = %a, want %a", name, (double)x, (double)got, want);
}

static void check_function(const char *name, VectorFn *fn, double (*want)(double)) {
    float x[BLOCK], z[BLOCK];
    uint32_t bits = 12345;
    for (int round = 0; round < 2000; round++) {
        for (int i = 0; i < BLOCK; i++) {
            bits = bits * 1664525u + 1013904223u;
            x[i] = round % 2 ? float_from_bits(bits) : (float)(int32_t)bits * 0x1p-25f; /* any float; within 64 of 0 */
        }
        fn(z, x, BLOCK);
        for (int i = 0; i < BLOCK; i++) check(name, want, x[i], z[i]);
    }
    const float edges[] = {0.0f,         -0.0f,   1,        -1,       INFINITY, -INFINITY, NAN,     FLT_MIN,
                           FLT_TRUE_MIN, FLT_MAX, -FLT_MAX, 88.7228f, 88.7229f, -87.34f,   -103.9f, -104.1f,
                           0.625f,       -0.625f, 1e-20f,   -1e-20f,  89.5f,    -90};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        fn(z, &edges[i], 1);
        check(name, want, edges[i], z[0]);
    }
    memcpy(z, x, sizeof z);
    fn(z, z, BLOCK); /* in place */
    for (int i = 0; i < BLOCK; i++) check(name, want, x[i], z[i]);
    fn(z, z, 0);
}

static void test_best(void **state) {
    (void)state;
    check_function("exp", vector_exp, exp);
    check_function("log", vector_log, log);
    check_function("tanh", vector_tanh, tanh);
    check_function("sigmoid", vector_sigmoid, sigmoid);
    check_function("sin", vector_sin, sin);
    check_function("cos", vector_cos, cos);
    check_function("erf", vector_erf, erf);
}

static void test_plain(void **state) {
    (void)state;
    check_function("exp", vector_exp_plain, exp);
    check_function("log", vector_log_plain, log);
    check_function("tanh", vector_tanh_plain, tanh);
    check_function("sigmoid", vector_sigmoid_plain, sigmoid);
    check_function("erf", vector_erf_plain, erf);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_best), cmocka_unit_test(test_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
