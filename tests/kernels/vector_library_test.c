/* vector_library_test.c: functions of arrays by the C library's vectors against its functions of one number, with each instruction set. */
#include "vector_check.h"

#include "kernels/cpu.h"

static const double UNITS = 4.5; /* 4, and what rounding the reference adds */

typedef struct Row {
    const char *name;
    VectorFn *floats; /* NULL: kernels/vector_math.h has it */
    DoubleVectorFn *doubles;
    double (*want)(double);
} Row;

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static const Row ROWS[] = {
    {"expm1", vector_expm1, vector_expm1_f64, expm1}, {"log1p", vector_log1p, vector_log1p_f64, log1p},
    {"tan", vector_tan, vector_tan_f64, tan},         {"asin", vector_asin, vector_asin_f64, asin},
    {"acos", vector_acos, vector_acos_f64, acos},     {"atan", vector_atan, vector_atan_f64, atan},
    {"sinh", vector_sinh, vector_sinh_f64, sinh},     {"cosh", vector_cosh, vector_cosh_f64, cosh},
    {"asinh", vector_asinh, vector_asinh_f64, asinh}, {"acosh", vector_acosh, vector_acosh_f64, acosh},
    {"atanh", vector_atanh, vector_atanh_f64, atanh}, {"erfc", vector_erfc, vector_erfc_f64, erfc},
    {"exp", NULL, vector_exp_f64, exp},               {"log", NULL, vector_log_f64, log},
    {"sin", NULL, vector_sin_f64, sin},               {"cos", NULL, vector_cos_f64, cos},
    {"tanh", NULL, vector_tanh_f64, tanh},            {"erf", NULL, vector_erf_f64, erf},
    {"sigmoid", NULL, vector_sigmoid_f64, sigmoid},
};

static void test_functions_of_one_number(void **state) {
    (void)state;
    for (CpuLevel level = CPU_PLAIN; level <= CPU_AVX512; level++) {
        if (cpu_limit(level) != level) continue;
        for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
            if (ROWS[i].floats) vector_check(ROWS[i].name, ROWS[i].floats, ROWS[i].want, UNITS);
            vector_check_f64(ROWS[i].name, ROWS[i].doubles, ROWS[i].want, UNITS);
        }
    }
    cpu_limit(CPU_AVX512);
}

static void test_atan2(void **state) {
    (void)state;
    const double parts[] = {0.0, -0.0, 1, -1, 3.5, -1e-3, 1e30, INFINITY, -INFINITY, NAN};
    enum { N = sizeof parts / sizeof *parts };
    for (CpuLevel level = CPU_PLAIN; level <= CPU_AVX512; level++) {
        if (cpu_limit(level) != level) continue;
        double x[N * N], y[N * N], z[N * N];
        float xf[N * N], yf[N * N], zf[N * N];
        for (int i = 0; i < N * N; i++) {
            xf[i] = (float)(x[i] = parts[i / N]);
            yf[i] = (float)(y[i] = parts[i % N]);
        }
        vector_atan2_f64(z, x, y, N * N);
        vector_atan2(zf, xf, yf, N * N);
        for (int i = 0; i < N * N; i++) {
            const double want = atan2(x[i], y[i]);
            if (isnan(want) ? !isnan(z[i]) : fabs(z[i] - want) > 1e-15 * fabs(want) || !signbit(z[i]) != !signbit(want)) {
                fail_msg("atan2(%g, %g) = %g, want %g", x[i], y[i], z[i], want);
            }
            if (isnan(want) ? !isnan(zf[i]) : fabs((double)zf[i] - want) > 4e-7 * fabs(want) || !signbit(zf[i]) != !signbit(want)) {
                fail_msg("atan2f(%g, %g) = %g, want %g", x[i], y[i], (double)zf[i], want);
            }
        }
    }
    cpu_limit(CPU_AVX512);
}

/* A number's result must not depend on where it stands. */
static void test_ends_are_as_middles(void **state) {
    (void)state;
    float x[37], all[37], one;
    for (int i = 0; i < 37; i++) x[i] = 0.05f * (float)i - 0.9f;
    for (int n = 1; n <= 37; n++) {
        vector_log1p(all, x, n);
        for (int i = 0; i < n; i++) {
            vector_log1p(&one, &x[i], 1);
            assert_memory_equal(&one, &all[i], sizeof one);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions_of_one_number), cmocka_unit_test(test_atan2),
                                       cmocka_unit_test(test_ends_are_as_middles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
