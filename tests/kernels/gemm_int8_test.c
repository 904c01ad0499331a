/* gemm_int8_test.c: products of bytes of either sign, with offsets, are equal to the reference's to the bit. */
#include "kernels/gemm_int8.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "unit_test.h"

static const int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {65, 33, 257}, {300, 4, 64}, {1, 200, 300}, {40, 40, 3}, {2, 0, 5}, {0, 3, 5}, {4, 3, 0}};

/* Bytes at the ends of their range, where sums of two products need more than 16 bits. */
static uint8_t *bytes(int64_t n) {
    static const uint8_t ends[] = {0, 1, 127, 128, 255, 254};
    uint8_t *x = xmalloc((size_t)n + 1);
    for (int64_t i = 0; i < n; i++) x[i] = rand() % 2 ? ends[rand() % 6] : (uint8_t)rand();
    return x;
}

static void check(const int64_t *size, int way, int32_t a_offset, int32_t b_offset, ThreadPool *pool) {
    uint8_t *a = bytes(size[0] * size[2]), *b = bytes(size[1] * size[2]);
    size_t count = (size_t)(size[0] * size[1]);
    int32_t *want = xcalloc(count + 1, sizeof *want), *got = xcalloc(count + 1, sizeof *got);
    Int8Gemm g = {.m = size[0], .n = size[1], .k = size[2], .a_transposed = way & 1, .b_transposed = way & 2, .a_signed = way & 4,
                  .b_signed = way & 8, .a_offset = a_offset, .b_offset = b_offset, .a = a, .b = b, .c = want};
    gemm_int8_plain(&g);
    g.c = got;
    gemm_int8(&g, pool);
    assert_memory_equal(got, want, count * sizeof *want);
    free(a);
    free(b);
    free(want);
    free(got);
}

static void products_of_bytes_are_exact(void **state) {
    (void)state;
    ThreadPool *pool = threadpool_new("test", 3);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int way = 0; way < 16; way++) {
            check(sizes[i], way, 0, 0, NULL);
            check(sizes[i], way, 17, -300, pool);
            check(sizes[i], way, -5, 0, pool);
            check(sizes[i], way, 0, 128, pool);
        }
    threadpool_free(pool);
}

static void one_product_is_as_computed_by_hand(void **state) {
    (void)state;
    const uint8_t a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 255};
    int32_t c[4];
    gemm_int8(&(Int8Gemm){.m = 2, .n = 2, .k = 2, .b_signed = true, .a_offset = 1, .a = a, .b = b, .c = c}, NULL);
    const int32_t want[] = {7, -1, 2 * 5 + 3 * 7, 2 * 6 - 3};
    assert_memory_equal(c, want, sizeof want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_bytes_are_exact),
        cmocka_unit_test(one_product_is_as_computed_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
