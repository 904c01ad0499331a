/* half_rows_test.c: every half made a float and back, and floats between them, are those of base/float16.h, with each instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/float16.h"
#include "kernels/cpu.h"
#include "kernels/half_rows.h"

enum { ALL = 1 << 16 };

static void test_halves(void **state) {
    (void)state;
    uint16_t *halves = malloc(ALL * sizeof *halves), *back = malloc(ALL * sizeof *back);
    float *wide = malloc(ALL * sizeof *wide);
    for (int i = 0; i < ALL; i++) halves[i] = (uint16_t)i;
    for (CpuLevel level = CPU_PLAIN; level <= CPU_AVX512; level++) {
        if (cpu_limit(level) != level) continue;
        half_widen(wide, halves, ALL - 3); /* not a multiple of a vector's length */
        half_narrow(back, wide, ALL - 3);
        for (int i = 0; i < ALL - 3; i++) {
            const float want = half_to_float(halves[i]);
            if (isnan(want)) {
                if (!isnan(wide[i]) || !isnan(half_to_float(back[i]))) fail_msg("half %04x is %g and %04x", i, (double)wide[i], back[i]);
            } else if (float_bits(wide[i]) != float_bits(want) || back[i] != halves[i]) {
                fail_msg("half %04x is %a, want %a, and back %04x", i, (double)wide[i], (double)want, back[i]);
            }
        }
        uint32_t bits = 99;
        for (int i = 0; i < ALL; i++) {
            bits = bits * 1664525u + 1013904223u;
            wide[i] = i % 2 ? float_from_bits(bits) : (float)(int32_t)bits * 0x1p-28f;
        }
        half_narrow(back, wide, ALL);
        for (int i = 0; i < ALL; i++) {
            const uint16_t want = float_to_half(wide[i]);
            if (isnan(wide[i]) ? !isnan(half_to_float(back[i])) : back[i] != want) fail_msg("%a as half is %04x, want %04x", (double)wide[i], back[i], want);
        }
    }
    cpu_limit(CPU_AVX512);
    free(halves);
    free(back);
    free(wide);
}

static void negate(float *z, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) z[i] = -x[i];
}

static void test_a_function_of_floats_over_halves(void **state) {
    (void)state;
    enum { N = 1500 };
    uint16_t x[N], z[N];
    for (int i = 0; i < N; i++) x[i] = (uint16_t)(i + 1000);
    half_map(negate, z, x, N);
    for (int i = 0; i < N; i++) assert_int_equal(z[i], x[i] | 0x8000);
    bfloat16_map(negate, x, x, N);
    for (int i = 0; i < N; i++) assert_int_equal(x[i], (i + 1000) | 0x8000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_halves), cmocka_unit_test(test_a_function_of_floats_over_halves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
