/* fake_quant_test.c: fake quantisation of rows, one range or one for each column: every level of processor has the bits of the plain formula. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/fake_quant.h"

enum { COLUMNS = 37, ROWS = 11, N = ROWS * COLUMNS };

static void fill(float *x, float *dz) {
    uint32_t bits = 99;
    for (int i = 0; i < N; i++) {
        bits = bits * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)bits * 0x1p-28f; /* within 8 of 0 */
        dz[i] = (float)(int32_t)(bits * 7) * 0x1p-31f;
    }
    x[5] = NAN;
    x[6] = INFINITY;
    x[7] = -INFINITY;
}

static float formula(float x, float low, float high, float scale) {
    const float inverse = 1 / scale, zero = floorf(-low * inverse + 0.5f);
    return isnan(x) ? x : floorf((fmaxf(fminf(x, high), low) - low) * inverse - zero + 0.5f) * scale;
}

/* Ranges of -4 .. 4 in 255 steps, a little wider from column to column. */
static void check(int64_t columns) {
    float low[COLUMNS], high[COLUMNS], inverse[COLUMNS], zero[COLUMNS], scale[COLUMNS], x[N], dz[N], z[N], dx[N];
    for (int c = 0; c < COLUMNS; c++) {
        scale[c] = (8 + 0.01f * (float)c) / 255;
        low[c] = -128 * scale[c];
        high[c] = 127 * scale[c];
        inverse[c] = 1 / scale[c];
        zero[c] = floorf(-low[c] * inverse[c] + 0.5f);
    }
    const FakeQuantColumns ranges = {columns, low, high, inverse, zero, scale};
    fill(x, dz);
    for (int level = CPU_PLAIN; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        double below[COLUMNS] = {0}, above[COLUMNS] = {0}, want_below[COLUMNS] = {0}, want_above[COLUMNS] = {0};
        fake_quant_round(&ranges, x, z, N);
        fake_quant_backward(&ranges, dz, x, dx, N, below, above);
        for (int i = 0; i < N; i++) {
            const int64_t c = i % columns;
            const float want = formula(x[i], low[c], high[c], scale[c]);
            if (memcmp(&z[i], &want, sizeof want) && !(isnan(want) && isnan(z[i]))) fail_msg("level %d, %g: %a instead of %a", level, (double)x[i], (double)z[i], (double)want);
            assert_true(dx[i] == (x[i] >= low[c] && x[i] <= high[c] ? dz[i] : 0));
            if (x[i] < low[c]) want_below[c] += (double)dz[i];
            if (x[i] > high[c]) want_above[c] += (double)dz[i];
        }
        for (int64_t c = 0; c < columns; c++) {
            assert_true(fabs(below[c] - want_below[c]) < 1e-12);
            assert_true(fabs(above[c] - want_above[c]) < 1e-12);
        }
    }
    cpu_limit(CPU_AVX512);
}

static void one_range_rounds_all(void **state) {
    (void)state;
    check(1);
}

static void columns_have_their_own_ranges(void **state) {
    (void)state;
    check(COLUMNS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_range_rounds_all),
        cmocka_unit_test(columns_have_their_own_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
