/* vector_roots_test.c: 1 / sqrt(x) of arrays is to the bit that of numbers one by one, at every level of processors. */
#include "kernels/vector_roots.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/float16.h"
#include "kernels/cpu.h"
#include "unit_test.h"

enum { N = 4096 };

static void check(const float *x, int64_t n) {
    float want[N], got[N + 1];
    for (int64_t i = 0; i < n; i++) want[i] = 1 / sqrtf(x[i]);
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        got[n] = 7;
        vector_rsqrt(got, x, n);
        for (int64_t i = 0; i < n; i++)
            if (memcmp(&got[i], &want[i], sizeof *got) != 0) fail_msg("of %a at level %d: %a, want %a", (double)x[i], level, (double)got[i], (double)want[i]);
        assert_true(got[n] == 7);
    }
    cpu_limit(CPU_AVX512);
}

/* Of numbers from 1 to 4 each fraction of a root occurs, all ones among them; the exponent changes no fraction but of subnormal numbers. */
static void all_fractions(void **state) {
    (void)state;
    float x[N];
    for (uint32_t first = float_bits(1); first < float_bits(4); first += N) {
        for (uint32_t i = 0; i < N; i++) x[i] = float_from_bits(first + i);
        check(x, N);
    }
}

static void all_exponents_and_what_is_no_number(void **state) {
    (void)state;
    float x[N];
    for (uint32_t step = 0; step < 3; step++) {
        for (uint32_t i = 0; i < N; i++) x[i] = float_from_bits((i << 20) + step - 1); /* both signs, infinities and NaN, the last before an exponent and the first of it */
        check(x, N);
    }
    for (uint32_t i = 0; i < N; i++) x[i] = float_from_bits(i * 2047); /* subnormal */
    check(x, N);
}

static void all_lengths(void **state) {
    (void)state;
    float x[N];
    for (int i = 0; i < 70; i++) x[i] = i % 5 == 4 ? -0.0f : (float)i * 0.37f;
    for (int64_t n = 0; n < 70; n++) check(x, n);
}

static void in_place_and_of_doubles(void **state) {
    (void)state;
    float x[37], z[37];
    double wide[37], of_wide[37];
    for (int i = 0; i < 37; i++) wide[i] = (double)(x[i] = (float)i / 3);
    vector_rsqrt(z, x, 37);
    vector_rsqrt(x, x, 37);
    assert_memory_equal(x, z, sizeof x);
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        vector_rsqrt_f64(of_wide, wide, 37);
        for (int i = 0; i < 37; i++) assert_true(of_wide[i] == 1 / sqrt(wide[i]));
    }
    cpu_limit(CPU_AVX512);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_fractions), cmocka_unit_test(all_exponents_and_what_is_no_number), cmocka_unit_test(all_lengths),
                                       cmocka_unit_test(in_place_and_of_doubles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
