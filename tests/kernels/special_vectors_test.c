/* special_vectors_test.c: inverse error, Bessel and gamma functions of arrays undo the C library's functions, or equal
 * their integrals, with each instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "kernels/cpu.h"
#include "kernels/special.h"
#include "kernels/special_vectors.h"

enum { N = 1003 };

static void check(const char *name, double x, double got, double want, double slack) {
    if (!(fabs(got - want) <= slack * fabs(want))) fail_msg("%s(%.17g) = %.17g, want %.17g", name, x, got, want);
}

/* e^-x I_n(x) = 1/pi * integral over [0, pi] of e^(x (cos t - 1)) cos(n t); the trapezoid rule converges faster than
 * any power. */
static double bessel(double x, int n) {
    enum { POINTS = 4000 };
    double sum = 0.5 * (1 + exp(-2 * x) * (n ? -1 : 1));
    for (int i = 1; i < POINTS; i++) sum += exp(x * (cos(M_PI * i / POINTS) - 1)) * (n ? cos(M_PI * i / POINTS) : 1);
    return sum / POINTS;
}

static void inverses_undo(void **state) {
    (void)state;
    double x[N], z[N];
    for (CpuLevel level = CPU_PLAIN; level <= CPU_AVX512; level++) {
        if (cpu_limit(level) != level) continue;
        for (int i = 0; i < N; i++) x[i] = (i + 0.5) / N;
        special_ndtri(z, x, N);
        for (int i = 0; i < N; i++) check("cdf of ndtri", x[i], 0.5 * erfc(-z[i] * M_SQRT1_2), x[i], 4e-15);
        for (int i = 0; i < N; i++) x[i] = ldexp(1 + i % 7 / 8.0, -1 - i); /* far into the tail */
        special_ndtri(z, x, N);
        for (int i = 0; i < N; i++) check("cdf of ndtri", x[i], 0.5 * erfc(-z[i] * M_SQRT1_2), x[i], 2e-12);
        for (int i = 0; i < N; i++) x[i] = (i - N / 2) / (N / 2 + 1.0);
        special_erfinv(z, x, N);
        for (int i = 0; i < N; i++) check("erf of erfinv", x[i], erf(z[i]), x[i], 4e-15);
        const double edges[] = {0, 1, -1, 1.5, NAN, INFINITY};
        special_ndtri(z, edges, 6);
        assert_true(z[0] == -INFINITY && z[1] == INFINITY && isnan(z[2]) && isnan(z[3]) && isnan(z[4]) && isnan(z[5]));
        special_erfinv(z, edges, 6);
        assert_true(z[0] == 0 && z[1] == INFINITY && z[2] == -INFINITY && isnan(z[3]) && isnan(z[4]) && isnan(z[5]));
    }
    cpu_limit(CPU_AVX512);
}

static void bessel_functions_equal_their_integrals(void **state) {
    (void)state;
    double x[N], z[4][N];
    for (CpuLevel level = CPU_PLAIN; level <= CPU_AVX512; level++) {
        if (cpu_limit(level) != level) continue;
        for (int i = 0; i < N; i++) x[i] = i < 20 ? ldexp(1, -i) : (i - 20) * 0.07;
        special_i0e(z[0], x, N);
        special_i1e(z[1], x, N);
        special_i0(z[2], x, N);
        special_i1(z[3], x, N);
        for (int i = 0; i < N; i += 3) {
            check("i0e", x[i], z[0][i], bessel(x[i], 0), 2e-14);
            if (x[i] > 0.3) check("i1e", x[i], z[1][i], bessel(x[i], 1), 2e-14);
            check("i0", x[i], z[2][i], z[0][i] * exp(x[i]), 1e-14);
            check("i1", x[i], z[3][i], z[1][i] * exp(x[i]), 1e-14);
        }
        const double small[] = {1e-8, -1e-8, -3, NAN, INFINITY, 0};
        special_i1e(z[0], small, 6);
        check("i1e", 1e-8, z[0][0], 5e-9 * (1 - 1e-8), 1e-15);
        assert_true(z[0][1] < 0 && z[0][2] < 0 && isnan(z[0][3]) && z[0][4] == 0 && z[0][5] == 0);
    }
    cpu_limit(CPU_AVX512);
}

static void gamma_functions_equal_those_of_one_number(void **state) {
    (void)state;
    double x[N], z[3][N];
    for (CpuLevel level = CPU_PLAIN; level <= CPU_AVX512; level++) {
        if (cpu_limit(level) != level) continue;
        for (int i = 0; i < N; i++)
            x[i] = i < 100 ? ldexp(1, -i) : i < 900 ? (i - 400) * 0.0371 : ldexp(1 + i % 5 / 5.0, i - 890);
        special_digammas(z[0], x, N);
        special_lgammas(z[1], x, N);
        special_lgammas_of_floats(z[2], x, N);
        for (int i = 0; i < N; i++) {
            double want = special_digamma(x[i]);
            if (!(fabs(z[0][i] - want) <= 1e-14 * fmax(1, fabs(want))) && !(isnan(want) && isnan(z[0][i])))
                fail_msg("digamma(%.17g) = %.17g, want %.17g", x[i], z[0][i], want);
            want = special_lgamma(x[i]);
            assert_true(z[1][i] == want);
            if (!(fabs(z[2][i] - want) <= 1e-14 + 4e-15 * fabs(want)) && want != z[2][i])
                fail_msg("lgamma(%.17g) = %.17g, want %.17g", x[i], z[2][i], want);
        }
        double edges[] = {0, -1, 1, 2, INFINITY, NAN};
        special_lgammas_of_floats(edges, edges, 6);
        assert_true(edges[0] == INFINITY && edges[1] == INFINITY && edges[2] == 0 && edges[3] == 0 &&
                    edges[4] == INFINITY && isnan(edges[5]));
        double more[] = {0, -1, INFINITY, NAN};
        special_digammas(more, more, 4);
        assert_true(isnan(more[0]) && isnan(more[1]) && more[2] == INFINITY && isnan(more[3]));
    }
    cpu_limit(CPU_AVX512);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(inverses_undo),
                                       cmocka_unit_test(bessel_functions_equal_their_integrals),
                                       cmocka_unit_test(gamma_functions_equal_those_of_one_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
