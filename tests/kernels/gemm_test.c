/* gemm_test.c: products of floats, doubles, complex numbers, integers and bfloat16 against plain C, thin and wide, at every level of processors and for any number of threads. */
#include "kernels/gemm.h"

#include <math.h>
#include <stdlib.h>

#include "base/float16.h"
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
                                   {33, 11, 257}, {200, 13, 90}, {128, 300, 70}, {5, 600, 40},  {300, 4, 1},   {2, 7, 100},  {96, 8, 96}, {8, 8, 8},      {1, 40, 50},
                                   {16, 16, 16}, {9, 4, 3}};

/* One of the four ways to store the two matrices. */
static Gemm product(const int64_t *size, int way, const float *a, const float *b, float *c) {
    return (Gemm){.m = size[0], .n = size[1], .k = size[2], .a_transposed = way & 1, .b_transposed = way & 2, .a = a, .b = b, .c = c};
}

/* Adds one to each element as it comes. */
static void add_one(void *arg, int64_t begin, int64_t end) {
    float *c = arg;
    for (int64_t i = begin; i < end; i++) c[i] += 1;
}

static _Atomic int64_t seen;
static void count_elements(void *arg, int64_t begin, int64_t end) {
    (void)arg;
    seen += end - begin;
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
    gemm_tiles_f32(&g, pool);
    for (int64_t i = 0; i < size[0] * size[1]; i++) assert_true(fabs((double)alone[i] - (double)want[i]) <= slack);
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

/* What gemm_f32_adds promises: the bits of a product made first; also where rows of b have a gap. */
static void adding_gives_the_bits_of_a_product_made_first(void **state) {
    (void)state;
    enum { GAP = 5 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int way = 0; way < 4; way++) {
            const int64_t *size = sizes[i], m = size[0], n = size[1], depth = size[2], rows = way & 2 ? n : depth, width = way & 2 ? depth : n;
            float *a = numbers(m * depth), *b = numbers(rows * width), *gapped = numbers(rows * (width + GAP));
            float *first = numbers(m * n), *sum = numbers(m * n);
            for (int64_t r = 0; r < rows; r++) memcpy(gapped + r * (width + GAP), b + r * width, (size_t)width * sizeof *b);
            Gemm g = product(size, way, a, b, first);
            gemm_f32(&g, NULL);
            for (int64_t e = 0; e < m * n; e++) first[e] += sum[e];
            g.b = gapped;
            g.b_stride = width + GAP;
            g.c = sum;
            g.adds = true;
            if (gemm_f32_adds(&g)) {
                gemm_f32(&g, NULL);
                assert_memory_equal(sum, first, (size_t)(m * n) * sizeof *sum);
            }
            free(a);
            free(b);
            free(gapped);
            free(first);
            free(sum);
        }
    }
}

/* bfloat16, by the processor's own products or in float: rounded once, at the end. */
static void check_bfloat16(const int64_t *size, int way, ThreadPool *pool) {
    const int64_t counts[] = {size[0] * size[2], size[1] * size[2], size[0] * size[1]};
    float *wide[3] = {numbers(counts[0]), numbers(counts[1]), numbers(counts[2])};
    uint16_t *half[3];
    for (int i = 0; i < 3; i++) {
        half[i] = xcalloc((size_t)counts[i] + 1, sizeof **half);
        for (int64_t j = 0; j < counts[i]; j++) wide[i][j] = bfloat16_to_float(half[i][j] = float_to_bfloat16(wide[i][j]));
    }
    Gemm g = product(size, way, wide[0], wide[1], wide[2]);
    gemm_plain_f32(&g, NULL);
    g.a = half[0];
    g.b = half[1];
    g.c = half[2];
    g.done = (RangeCall){count_elements, NULL};
    seen = 0;
    gemm_bf16(&g, pool);
    assert_int_equal(seen, counts[2]);
    for (int64_t i = 0; i < counts[2]; i++) {
        double want = (double)wide[2][i], slack = 4e-7 * (double)(size[2] + 2) + fabs(want) / 250;
        assert_true(fabs((double)bfloat16_to_float(half[2][i]) - want) <= slack);
    }
    for (int i = 0; i < 3; i++) {
        free(wide[i]);
        free(half[i]);
    }
}

static void products_of_bfloat16_are_rounded_once(void **state) {
    (void)state;
    static const int64_t large[][3] = {{200, 150, 100}, {96, 700, 131}, {1000, 33, 65}, {64, 64, 1025}};
    ThreadPool *pool = threadpool_new("test", 3);
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (int way = 0; way < 4; way++) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) check_bfloat16(sizes[i], way, pool);
            for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) check_bfloat16(large[i], way, i % 2 ? pool : NULL);
        }
    }
    cpu_limit(CPU_AVX512);
    threadpool_free(pool);
}

/* Products are added to sums without rounding where the processor can; parts of complex numbers are summed one after the other. */
static void check_wide(const int64_t *size, int way, ThreadPool *pool) {
    int64_t m = size[0], n = size[1], k = size[2], count = m * n;
    double *a = xcalloc((size_t)(2 * m * k) + 2, sizeof *a), *b = xcalloc((size_t)(2 * n * k) + 2, sizeof *b);
    double *want = xcalloc((size_t)(2 * count) + 2, sizeof *want), *got = xcalloc((size_t)(2 * count) + 2, sizeof *got);
    for (int64_t i = 0; i < 2 * m * k; i++) a[i] = (double)(rand() % 2001 - 1000) / 1000;
    for (int64_t i = 0; i < 2 * n * k; i++) b[i] = (double)(rand() % 2001 - 1000) / 1000;
    Gemm g = {.m = m, .n = n, .k = k, .a_transposed = way & 1, .b_transposed = way & 2, .a = a, .b = b, .c = want};
    gemm_plain_f64(&g, NULL);
    g.c = got;
    gemm_f64(&g, pool);
    for (int64_t i = 0; i < count; i++) assert_true(fabs(got[i] - want[i]) <= 2e-16 * (double)(k + 2));
    g.a_conjugated = way & 1;
    g.b_conjugated = way & 2;
    gemm_c128(&g, pool);
    g.c = want;
    gemm_plain_c128(&g, NULL);
    for (int64_t i = 0; i < 2 * count; i++) assert_true(fabs(got[i] - want[i]) <= 4e-16 * (double)(2 * k + 2));
    free(a);
    free(b);
    free(want);
    free(got);
}

/* Modulo 2^32 and 2^64, so every order gives the same bits. */
static void check_integers(const int64_t *size, int way, ThreadPool *pool) {
    int64_t m = size[0], n = size[1], k = size[2];
    uint64_t *a = xcalloc((size_t)(m * k) + 1, sizeof *a), *b = xcalloc((size_t)(n * k) + 1, sizeof *b);
    uint64_t *want = xcalloc((size_t)(m * n) + 1, sizeof *want), *got = xcalloc((size_t)(m * n) + 1, sizeof *got);
    for (int64_t i = 0; i < m * k; i++) a[i] = (uint64_t)rand() * 0x9e3779b97f4a7c15u;
    for (int64_t i = 0; i < n * k; i++) b[i] = (uint64_t)rand() * 0xd1342543de82ef95u;
    Gemm g = {.m = m, .n = n, .k = k, .a_transposed = way & 1, .b_transposed = way & 2, .a = a, .b = b, .done = {count_elements, NULL}};
    static GemmFn *const fns[][2] = {{gemm_u64, gemm_plain_u64}, {gemm_u64, gemm_plain_i64}, {gemm_u32, gemm_plain_u32}, {gemm_u32, gemm_plain_i32}};
    for (int i = 0; i < 4; i++) {
        seen = 0;
        g.c = got;
        fns[i][0](&g, pool);
        assert_int_equal(seen, m * n);
        g.c = want;
        fns[i][1](&g, NULL);
        assert_memory_equal(got, want, (size_t)(m * n) * (i < 2 ? sizeof(uint64_t) : sizeof(uint32_t)));
    }
    free(a);
    free(b);
    free(want);
    free(got);
}

/* Matrices that are parts of larger ones, and what is subtracted from c. */
static void check_strides(const int64_t *size, int way, ThreadPool *pool) {
    enum { GAP = 3 };
    int64_t m = size[0], n = size[1], k = size[2], a_rows = way & 1 ? k : m, a_cols = way & 1 ? m : k, b_rows = way & 2 ? n : k, b_cols = way & 2 ? k : n;
    double *a = xcalloc((size_t)(m * k) + 1, sizeof *a), *b = xcalloc((size_t)(n * k) + 1, sizeof *b), *product = xcalloc((size_t)(m * n) + 1, sizeof *a);
    double *wide_a = xcalloc((size_t)(a_rows * (a_cols + GAP)), sizeof *a), *wide_b = xcalloc((size_t)(b_rows * (b_cols + GAP)), sizeof *b);
    double *c = xcalloc((size_t)(m * (n + GAP)), sizeof *c);
    for (int64_t i = 0; i < m * k; i++) a[i] = wide_a[i / a_cols * (a_cols + GAP) + i % a_cols] = rand() % 7 - 3;
    for (int64_t i = 0; i < n * k; i++) b[i] = wide_b[i / b_cols * (b_cols + GAP) + i % b_cols] = rand() % 7 - 3;
    for (int64_t i = 0; i < m * (n + GAP); i++) c[i] = (double)i;
    Gemm g = {.m = m, .n = n, .k = k, .a_transposed = way & 1, .b_transposed = way & 2, .a = a, .b = b, .c = product};
    gemm_plain_f64(&g, NULL);
    g.a = wide_a;
    g.b = wide_b;
    g.c = c;
    g.a_stride = a_cols + GAP;
    g.b_stride = b_cols + GAP;
    g.c_stride = n + GAP;
    g.subtracts = true;
    gemm_f64(&g, pool);
    for (int64_t i = 0; i < m * (n + GAP); i++) {
        int64_t row = i / (n + GAP), column = i % (n + GAP);
        assert_true(c[i] == (double)i - (column < n ? product[row * n + column] : 0));
    }
    free(a);
    free(b);
    free(product);
    free(wide_a);
    free(wide_b);
    free(c);
}

static void products_in_tiles_agree_with_plain_c(void **state) {
    (void)state;
    static const int64_t large[][3] = {{200, 150, 100}, {65, 70, 131}, {130, 33, 257}, {7, 530, 129}};
    ThreadPool *pool = threadpool_new("test", 3);
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (int way = 0; way < 4; way++) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                check_wide(sizes[i], way, pool);
                check_integers(sizes[i], way, pool);
                check_strides(sizes[i], way, pool);
            }
            for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
                check_wide(large[i], way, i % 2 ? pool : NULL);
                check_integers(large[i], way, i % 2 ? pool : NULL);
                check_strides(large[i], way, i % 2 ? pool : NULL);
            }
        }
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
        cmocka_unit_test(adding_gives_the_bits_of_a_product_made_first),
        cmocka_unit_test(products_of_bfloat16_are_rounded_once),
        cmocka_unit_test(products_in_tiles_agree_with_plain_c),
        cmocka_unit_test(thin_products_are_refused_where_they_do_not_pay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
