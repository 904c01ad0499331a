/* gemm_test.c: products of floats against plain C, thin and wide, at every level of processors and for any number of threads. */
#include "kernels/gemm.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "kernels/cpu.h"
#include "kernels/gemm_thin.h"
#include "unit_test.h"

static float *numbers(int64_t n) {
    float *x = xcalloc((size_t)n + 1, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(rand() % 2001 - 1000) / 1000;
    return x;
}

static const int64_t sizes[][3] = {{1, 1, 1},     {3, 5, 7},    {100, 10, 784}, {784, 10, 100}, {67, 12, 130}, {131, 1, 65}, {64, 3, 64},
                                   {33, 11, 257}, {200, 13, 90}, {128, 300, 70}, {5, 600, 40},  {300, 4, 1},   {2, 7, 100},  {96, 8, 96}};

/* One of the four ways to store the two matrices. */
static Gemm product(const int64_t *size, int way, const float *a, const float *b, float *c) {
    return (Gemm){.m = size[0], .n = size[1], .k = size[2], .a_transposed = way & 1, .b_transposed = way & 2, .a = a, .b = b, .c = c};
}

/* Adds one to each element as it comes. */
static void add_one(void *arg, int64_t begin, int64_t end) {
    float *c = arg;
    for (int64_t i = begin; i < end; i++) c[i] += 1;
}

static void check(const int64_t *size, int way, ThreadPool *pool) {
    float *a = numbers(size[0] * size[2]), *b = numbers(size[1] * size[2]);
    float *want = numbers(size[0] * size[1]), *got = numbers(size[0] * size[1]), *alone = numbers(size[0] * size[1]);
    Gemm g = product(size, way, a, b, want);
    gemm_plain_f32(&g, NULL);
    g.c = got;
    g.done = (RangeCall){add_one, got};
    gemm_f32(&g, pool);
    for (int64_t i = 0; i < size[0] * size[1]; i++) want[i] += 1;
    double slack = 4e-7 * (double)(size[2] + 2);
    for (int64_t i = 0; i < size[0] * size[1]; i++) assert_true(fabs((double)got[i] - (double)want[i]) <= slack);
    g.c = alone;
    g.done.arg = alone;
    if (gemm_thin_f32(&g, NULL)) assert_memory_equal(alone, got, (size_t)(size[0] * size[1]) * sizeof(float));
    free(a);
    free(b);
    free(want);
    free(got);
    free(alone);
}

static void every_level_agrees_with_plain_c(void **state) {
    (void)state;
    ThreadPool *pool = threadpool_new("test", 3);
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int way = 0; way < 4; way++) check(sizes[i], way, pool);
    }
    cpu_limit(CPU_AVX512);
    threadpool_free(pool);
}

static void thin_products_are_refused_where_they_do_not_pay(void **state) {
    (void)state;
    float a[4] = {1, 2, 3, 4}, c[4] = {9, 9, 9, 9};
    Gemm g = {.m = 2, .n = 2, .k = 2, .a = a, .b = a, .c = c};
    assert_false(gemm_thin_f32(&g, NULL));
    assert_true(c[0] == 9);
    gemm_f32(&g, NULL);
    assert_true(c[0] == 7 && c[1] == 10 && c[2] == 15 && c[3] == 22);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_agrees_with_plain_c),
        cmocka_unit_test(thin_products_are_refused_where_they_do_not_pay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
