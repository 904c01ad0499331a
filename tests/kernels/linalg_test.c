/* linalg_test.c: factors of matrices smaller and larger than a block multiply to what they were made of, with any number of threads. */
#include "kernels/linalg.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "kernels/cpu.h"
#include "unit_test.h"

/* Sides around the width of a block and of a strip, and one of many blocks. */
static const int64_t sides[] = {0, 1, 2, 3, 5, 31, 32, 33, 47, 64, 65, 97, 130, 200};
enum { SIDES = sizeof sides / sizeof *sides };

/* What a matrix is like. */
typedef enum Kind { RANDOM, RANK_TWO, REPEATED, TINY, HUGE, GRADED, ZERO, KINDS } Kind;

static double number(void) {
    return (double)(rand() % 20001 - 10000) / 10000;
}

#define T double
#define NAME(f) f##_f64
#define CONJ(x) (x)
#define ABS(x) fabs(x)
#define ANY number()
#include "linalg_test.inc"
#undef T
#undef NAME
#undef CONJ
#undef ABS
#undef ANY
#define T Complex
#define NAME(f) f##_c128
#define CONJ(x) conj(x)
#define ABS(x) cabs(x)
#define ANY __builtin_complex(number(), number())
#include "linalg_test.inc"

/* The large ones at the highest level alone. */
static void with_and_without_threads(void (*check)(int count, ThreadPool *pool)) {
    ThreadPool *pool = threadpool_new("test", 3);
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        check(level == CPU_AVX512 ? SIDES : SIDES - 3, level % 2 ? NULL : pool);
    }
    cpu_limit(CPU_AVX512);
    threadpool_free(pool);
}

static void factors_of_qr_are_a_unitary_and_a_triangle(void **state) {
    (void)state;
    with_and_without_threads(check_qr_f64);
    with_and_without_threads(check_qr_c128);
}

static void eigenvectors_are_unitary_and_make_a_diagonal(void **state) {
    (void)state;
    with_and_without_threads(check_eigen_f64);
    with_and_without_threads(check_eigen_c128);
}

static void singular_vectors_are_unitary_and_values_descend(void **state) {
    (void)state;
    with_and_without_threads(check_svd_f64);
    with_and_without_threads(check_svd_c128);
}

static void solutions_solve(void **state) {
    (void)state;
    with_and_without_threads(check_solve_f64);
    with_and_without_threads(check_solve_c128);
}

/* q t q^H, and eigenvectors times their values: what they were made of. */
static void check_schur_of(int64_t n, bool real, Kind kind, ThreadPool *pool) {
    Complex *a = matrix_c128(n, n, kind), *t = matrix_c128(n, n, ZERO), *q = matrix_c128(n, n, ZERO), *v = matrix_c128(n, n, ZERO), *only = xcalloc((size_t)(2 * n) + 1, sizeof *a), *values = only + n;
    for (int64_t i = 0; i < n * n && real; i++) a[i] = creal(a[i]);
    memcpy(t, a, (size_t)(n * n) * sizeof *a);
    assert_true(schur(t, n, q, pool));
    double size = size_c128(a, n * n);
    assert_true(skew_c128(q, n, n) <= 1e-14 * (double)(n + 1));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) assert_true(t[i * n + j] == 0);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            v[i * n + j] = 0; /* a q - q t */
            for (int64_t k = 0; k < n; k++) v[i * n + j] += a[i * n + k] * q[k * n + j] - q[i * n + k] * t[k * n + j];
        }
    }
    assert_true(size_c128(v, n * n) <= 1e-14 * (double)(n + 1) * size);
    memcpy(t, a, (size_t)(n * n) * sizeof *a);
    assert_true(eigen(t, n, only, NULL, pool));
    memcpy(t, a, (size_t)(n * n) * sizeof *a);
    assert_true(eigen(t, n, values, v, pool));
    assert_memory_equal(values, only, (size_t)n * sizeof *values);
    for (int64_t k = 0; k < n; k++) {
        double length = 0;
        for (int64_t i = 0; i < n; i++) {
            Complex rest = -values[k] * v[i * n + k];
            for (int64_t j = 0; j < n; j++) rest += a[i * n + j] * v[j * n + k];
            length += pow(cabs(v[i * n + k]), 2);
            assert_true(cabs(rest) <= 1e-13 * (double)(n + 1) * size);
        }
        assert_true(fabs(length - 1) < 1e-13);
    }
    free(a);
    free(t);
    free(q);
    free(v);
    free(only);
}

static void check_schur(int count, ThreadPool *pool) {
    for (int i = 0; i < count; i++)
        for (int kind = 0; kind < (sides[i] < 70 ? KINDS : 1); kind++) {
            check_schur_of(sides[i], false, (Kind)kind, pool);
            check_schur_of(sides[i], true, (Kind)kind, pool);
        }
}

static void schur_factors_and_eigenvectors_make_the_matrix(void **state) {
    (void)state;
    with_and_without_threads(check_schur);
}

static void square_roots_and_logarithms_go_back(void **state) {
    (void)state;
    for (int i = 1; i < SIDES - 3; i++) {
        int64_t n = sides[i];
        Complex *a = matrix_c128(n, n, RANDOM), *root = matrix_c128(n, n, ZERO), *log = matrix_c128(n, n, ZERO);
        for (int64_t j = 0; j < n; j++) a[j * n + j] += 2 * (double)n;
        memcpy(root, a, (size_t)(n * n) * sizeof *a);
        assert_true(matrix_sqrt(root, n));
        assert_true(residual_c128(a, root, n, NULL, root, false, n, n, n) <= 1e-13 * (double)(n * n));
        assert_true(matrix_log(root, n) && matrix_log(memcpy(log, a, (size_t)(n * n) * sizeof *a), n));
        for (int64_t j = 0; j < n * n; j++) assert_true(cabs(log[j] - 2 * root[j]) <= 1e-12 * (double)n);
        free(a);
        free(root);
        free(log);
    }
}

/* A row of zeros, and one that is twice another. */
static void matrices_without_an_inverse_have_a_pivot_of_zero(void **state) {
    (void)state;
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (int i = 2; i < SIDES - 3; i++) {
            int64_t n = sides[i], pivots[200];
            double *a = matrix_f64(n, n, RANDOM);
            for (int64_t j = 0; j < n; j++) a[n + j] = 0;
            assert_int_equal(lu_f64(a, n, pivots, NULL), 0);
            for (int64_t r = 0; r < n; r++)
                for (int64_t j = 0; j < n; j++) a[r * n + j] = (double)(r + 1) * (double)(j % 2 + 1);
            assert_int_equal(lu_f64(a, n, pivots, NULL), 0);
            free(a);
        }
    }
    cpu_limit(CPU_AVX512);
}

/* What is no number is a pivot where it is the first, and nowhere else. */
static void pivots_are_the_first_of_the_largest(void **state) {
    (void)state;
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (int64_t n = 1; n < 40; n++) {
            int64_t pivots[40];
            double *a = matrix_f64(n, n, RANDOM), sum = 0;
            for (int64_t i = 0; i < n; i++) a[i * n] = i == n / 2 || i == n - 1 ? -3 : 1;
            lu_f64(a, n, pivots, NULL);
            assert_int_equal(pivots[0], n / 2);
            for (int64_t i = 0; i < n; i++) sum += (double)pivots[i];
            assert_true(sum == (double)(n * (n - 1) / 2));
            for (int64_t i = 0; i < n; i++) a[i * n] = i == 0 ? (double)NAN : 1;
            lu_f64(a, n, pivots, NULL);
            assert_int_equal(pivots[0], 0);
            for (int64_t i = 0; i < n; i++) a[i * n] = i == n / 2 ? (double)NAN : i == n - 1 ? 2 : 1;
            lu_f64(a, n, pivots, NULL);
            assert_int_equal(pivots[0], n < 3 ? 0 : n - 1);
            free(a);
        }
    }
    cpu_limit(CPU_AVX512);
}

static void check_float_triangles(int count, ThreadPool *pool) {
    for (int i = 0; i < count * 4; i++) {
        int64_t n = sides[i / 4], cols = sides[(i / 4 * 3 + 1) % count];
        bool lower = i & 1, adjoint = i & 2;
        double *a = matrix_f64(n, n, RANDOM), *x = matrix_f64(n, cols, RANDOM);
        float *short_a = xcalloc((size_t)(n * n) + 1, sizeof *short_a), *short_x = xcalloc((size_t)(n * cols) + 1, sizeof *short_x);
        for (int64_t j = 0; j < n * n; j++) a[j] = short_a[j] = (float)(j % (n + 1) == 0 ? 3 : a[j] / (double)n);
        for (int64_t j = 0; j < n * cols; j++) x[j] = short_x[j] = (float)x[j];
        triangular_solve_f64(a, n, lower, adjoint, x, cols, pool);
        triangular_solve_f32(short_a, n, lower, adjoint, short_x, cols, pool);
        for (int64_t j = 0; j < n * cols; j++) assert_true(fabs((double)short_x[j] - x[j]) <= 1e-6);
        free(a);
        free(x);
        free(short_a);
        free(short_x);
    }
}

static void triangles_of_floats_are_solved_like_those_of_doubles(void **state) {
    (void)state;
    with_and_without_threads(check_float_triangles);
}

static void what_is_not_finite_has_no_eigenvalues(void **state) {
    (void)state;
    double a[4] = {1, 0, (double)NAN, 1}, b[4] = {(double)INFINITY, 0, 1, 1}, values[2], v[4];
    assert_false(self_adjoint_eigen_f64(a, 2, DBL_EPSILON, values, v, NULL));
    assert_false(self_adjoint_eigen_f64(b, 2, DBL_EPSILON, values, v, NULL));
    Complex c[4] = {1, (double)INFINITY, 0, 1}, d[4] = {1, 1, (double)NAN * I, 1}, found[2], vectors[4];
    assert_false(eigen(c, 2, found, vectors, NULL));
    assert_false(eigen(d, 2, found, vectors, NULL));
}

/* The bits are the same. */
static void threads_change_nothing(void **state) {
    (void)state;
    enum { N = 150 };
    ThreadPool *pool = threadpool_new("test", 3);
    double *a = matrix_f64(N, N, RANDOM), *b = xmalloc(N * N * sizeof *b), *u[2], *v[2], values[2][N];
    for (int i = 0; i < 2; i++) {
        u[i] = xmalloc(N * N * sizeof *a);
        v[i] = xmalloc(N * N * sizeof *a);
        memcpy(b, a, N * N * sizeof *a);
        svd_f64(b, N, N, DBL_EPSILON, values[i], u[i], N, v[i], i ? pool : NULL);
    }
    assert_memory_equal(u[0], u[1], N * N * sizeof *a);
    assert_memory_equal(v[0], v[1], N * N * sizeof *a);
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    for (int i = 0; i < 2; i++) {
        memcpy(b, a, N * N * sizeof *a);
        assert_true(self_adjoint_eigen_f64(b, N, DBL_EPSILON, values[i], v[i], i ? pool : NULL));
        qr_f64(memcpy(b, a, N * N * sizeof *a), N, N, u[i], N, i ? pool : NULL);
    }
    assert_memory_equal(u[0], u[1], N * N * sizeof *a);
    assert_memory_equal(v[0], v[1], N * N * sizeof *a);
    for (int i = 0; i < 2; i++) {
        free(u[i]);
        free(v[i]);
    }
    free(a);
    free(b);
    threadpool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_of_qr_are_a_unitary_and_a_triangle),
        cmocka_unit_test(eigenvectors_are_unitary_and_make_a_diagonal),
        cmocka_unit_test(singular_vectors_are_unitary_and_values_descend),
        cmocka_unit_test(solutions_solve),
        cmocka_unit_test(schur_factors_and_eigenvectors_make_the_matrix),
        cmocka_unit_test(square_roots_and_logarithms_go_back),
        cmocka_unit_test(matrices_without_an_inverse_have_a_pivot_of_zero),
        cmocka_unit_test(pivots_are_the_first_of_the_largest),
        cmocka_unit_test(triangles_of_floats_are_solved_like_those_of_doubles),
        cmocka_unit_test(what_is_not_finite_has_no_eigenvalues),
        cmocka_unit_test(threads_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
