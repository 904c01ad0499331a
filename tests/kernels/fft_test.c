/* fft_test.c: Fourier transforms beside the sums that define them, with every instruction set. */
#include "kernels/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/cpu.h"
#include "unit_test.h"

typedef double _Complex Complex;

enum { MOST = 1100 };

static Complex number(int64_t i) {
    return __builtin_complex(sin(1.3 * (double)i + 0.2), cos(2.7 * (double)(i * i % 1000)));
}

/* Element k of the transform of n numbers. */
static Complex sum_of(int64_t n, int64_t k, bool inverse) {
    Complex sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double angle = 2 * 3.14159265358979323846 * (double)(i * k % n) / (double)n;
        sum += number(i) * __builtin_complex(cos(angle), inverse ? sin(angle) : -sin(angle));
    }
    return sum;
}

static void check_length(int64_t n, bool inverse) {
    Complex first[MOST], data[MOST];
    FftPlan *plan = fft_plan_new(n);
    assert_non_null(plan);
    assert_int_equal(fft_plan_length(plan), n);
    Complex *scratch = xmalloc((size_t)fft_plan_scratch(plan) * sizeof *scratch);
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (int64_t i = 0; i < n; i++) data[i] = number(i);
        fft_run(plan, inverse, data, scratch);
        if (level == 0) memcpy(first, data, (size_t)n * sizeof *first);
        assert_memory_equal(data, first, (size_t)n * sizeof *first);
    }
    cpu_limit(CPU_AVX512);
    for (int64_t k = 0; k < n; k += n < 100 ? 1 : 7)
        assert_true(cabs(first[k] - sum_of(n, k, inverse)) < 1e-10 * (double)n);
    free(scratch);
    fft_plan_free(plan);
}

/* All small lengths; powers, lengths of many factors, primes with a pass of their own (47) and by way of a longer
 * transform (53, 997). */
static void transforms_are_the_sums_that_define_them(void **state) {
    (void)state;
    static const int64_t longer[] = {81, 94, 97, 106, 120, 125, 128, 210, 256, 343, 512, 720, 997, 1000, 1024, 1081};
    for (int inverse = 0; inverse < 2; inverse++) {
        for (int64_t n = 1; n <= 64; n++) check_length(n, inverse);
        for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) check_length(longer[i], inverse);
    }
}

/* Reals by half a transform, beside the whole one; and back. */
static void check_reals(int64_t n) {
    Complex whole[MOST], data[MOST];
    FftPlan *plan = fft_plan_new(n), *real = fft_plan_real_new(n);
    assert_true(plan && real && fft_plan_length(real) == n);
    Complex *scratch = xmalloc((size_t)(fft_plan_scratch(plan) + fft_plan_scratch(real)) * sizeof *scratch);
    for (int64_t i = 0; i < n; i++) {
        whole[i] = creal(number(i));
        ((double *)data)[i] = creal(number(i));
    }
    fft_run(plan, false, whole, scratch);
    fft_run_real(real, data, scratch);
    for (int64_t k = 0; k <= n / 2; k++) assert_true(cabs(whole[k] - data[k]) < 1e-12 * (double)n);
    data[0] += __builtin_complex(0.0, 3.0); /* counts for nothing */
    data[n / 2] += __builtin_complex(0.0, 5.0);
    fft_run_real_inverse(real, data, scratch);
    for (int64_t i = 0; i < n; i++) assert_true(fabs(((double *)data)[i] / (double)n - creal(number(i))) < 1e-12);
    free(scratch);
    fft_plan_free(plan);
    fft_plan_free(real);
}

static void reals_take_half_a_transform(void **state) {
    (void)state;
    static const int64_t longer[] = {94, 106, 128, 210, 400, 512, 720, 1000, 1024, 1082};
    for (int64_t n = 2; n <= 64; n += 2) check_reals(n);
    for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) check_reals(longer[i]);
}

/* Lane l holds transform l, of numbers from 100 * l on: the same as one by one, in doubles and in floats, at every
 * level. */
static void check_lanes(int64_t n, bool real, bool inverse) {
    FftPlan *plan = real ? fft_plan_real_new(n) : fft_plan_new(n);
    const int64_t given = !real     ? n
                          : inverse ? n / 2 + 1
                                    : n / 2,
                  taken = !real     ? n
                          : inverse ? n / 2
                                    : n / 2 + 1,
                  places = 2 * FFT_LANES * (n + 1);
    Complex *want = xmalloc((size_t)(FFT_LANES * (n + 1)) * sizeof *want),
            *scratch = xmalloc((size_t)fft_plan_scratch(plan) * sizeof *scratch);
    double *wide = xmalloc((size_t)(places + fft_lanes_scratch(plan)) * sizeof *wide),
           *first = xmalloc((size_t)places * sizeof *first);
    float *narrow = xmalloc((size_t)(places + fft_lanes_scratch(plan)) * sizeof *narrow);
    for (int64_t l = 0; l < FFT_LANES; l++) {
        Complex *line = want + l * (n + 1);
        for (int64_t k = 0; k < given; k++) line[k] = number(k + 100 * l);
        if (!real)
            fft_run(plan, inverse, line, scratch);
        else if (inverse)
            fft_run_real_inverse(plan, line, scratch);
        else
            fft_run_real(plan, line, scratch);
    }
    const int64_t re = !real && inverse ? FFT_LANES : 0, im = FFT_LANES - re;
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (int64_t k = 0; k < given; k++) {
            for (int64_t l = 0; l < FFT_LANES; l++) {
                narrow[2 * k * FFT_LANES + re + l] =
                    (float)(wide[2 * k * FFT_LANES + re + l] = creal(number(k + 100 * l)));
                narrow[2 * k * FFT_LANES + im + l] =
                    (float)(wide[2 * k * FFT_LANES + im + l] = cimag(number(k + 100 * l)));
            }
        }
        if (real) {
            fft_lanes_real_f64(plan, inverse, wide, wide + places);
            fft_lanes_real_f32(plan, inverse, narrow, narrow + places);
        } else {
            fft_lanes_f64(plan, wide, wide + places);
            fft_lanes_f32(plan, narrow, narrow + places);
        }
        if (level == 0) memcpy(first, wide, (size_t)(2 * FFT_LANES * taken) * sizeof *first);
        assert_memory_equal(wide, first, (size_t)(2 * FFT_LANES * taken) * sizeof *first);
        for (int64_t k = 0; k < taken; k++) {
            for (int64_t l = 0; l < FFT_LANES; l++) {
                const Complex a = __builtin_complex(wide[2 * k * FFT_LANES + re + l], wide[2 * k * FFT_LANES + im + l]);
                const Complex b = __builtin_complex((double)narrow[2 * k * FFT_LANES + re + l],
                                                    (double)narrow[2 * k * FFT_LANES + im + l]);
                assert_true(cabs(a - want[l * (n + 1) + k]) < 1e-12 * (double)n);
                assert_true(cabs(b - want[l * (n + 1) + k]) < 2e-6 * (double)n + 1e-5);
            }
        }
    }
    cpu_limit(CPU_AVX512);
    fft_plan_free(plan);
    free(want);
    free(scratch);
    free(wide);
    free(first);
    free(narrow);
}

static void transforms_side_by_side_are_those_one_by_one(void **state) {
    (void)state;
    static const int64_t longer[] = {81, 94, 106, 125, 128, 210, 512, 720, 1000, 1024};
    for (int inverse = 0; inverse < 2; inverse++) {
        for (int64_t n = 1; n <= 60; n++) check_lanes(n, false, inverse);
        for (int64_t n = 2; n <= 60; n += 2) check_lanes(n, true, inverse);
        for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
            check_lanes(longer[i], false, inverse);
            if (longer[i] % 2 == 0) check_lanes(longer[i], true, inverse);
        }
    }
}

/* Each line in its lane, real and imaginary parts in their rows; and back, where nothing else is written. */
static void lines_come_side_by_side_and_go_back(void **state) {
    (void)state;
    enum { LINE = 40, GAP = 3, SIZE = FFT_LANES * (LINE + GAP) };
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (int64_t count = 0; count <= LINE; count++) {
            float from[2 * SIZE], lanes[2 * FFT_LANES * LINE], back[2 * SIZE];
            int64_t starts[FFT_LANES];
            for (int i = 0; i < 2 * SIZE; i++) from[i] = (float)i;
            for (int l = 0; l < FFT_LANES; l++) starts[l] = 2 * (FFT_LANES - 1 - l) * (LINE + GAP) + l % 3;
            for (int exchanged = 0; exchanged < 2; exchanged++) {
                fft_lanes_take_f32(from, starts, count, exchanged, lanes);
                for (int64_t k = 0; k < count; k++)
                    for (int l = 0; l < FFT_LANES; l++)
                        for (int part = 0; part < 2; part++) assert_true(lanes[(2 * k + (part ^ exchanged)) * FFT_LANES + l] == from[starts[l] + 2 * k + part]);
                for (int i = 0; i < 2 * SIZE; i++) back[i] = -1;
                fft_lanes_give_f32(lanes, count, exchanged, back, starts);
                int64_t written = 0;
                for (int i = 0; i < 2 * SIZE; i++) written += back[i] != -1;
                assert_int_equal(written, 2 * FFT_LANES * count);
                for (int l = 0; l < FFT_LANES; l++)
                    for (int64_t f = 0; f < 2 * count; f++) assert_true(back[starts[l] + f] == from[starts[l] + f]);
            }
        }
    }
    cpu_limit(CPU_AVX512);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(transforms_are_the_sums_that_define_them),
                                       cmocka_unit_test(reals_take_half_a_transform),
                                       cmocka_unit_test(transforms_side_by_side_are_those_one_by_one),
                                       cmocka_unit_test(lines_come_side_by_side_and_go_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
