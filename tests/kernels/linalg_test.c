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

static void what_is_not_finite_has_no_eigenvalues(void **state) {
    (void)state;
    double a[4] = {1, 0, (double)NAN, 1}, b[4] = {(double)INFINITY, 0, 1, 1}, values[2], v[4];
    assert_false(self_adjoint_eigen_f64(a, 2, DBL_EPSILON, values, v, NULL));
    assert_false(self_adjoint_eigen_f64(b, 2, DBL_EPSILON, values, v, NULL));
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
        cmocka_unit_test(what_is_not_finite_has_no_eigenvalues),
        cmocka_unit_test(threads_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
