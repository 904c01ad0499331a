/* sparse_order_test.c: rows of indices in order, few and many, of few and of many bits, by all columns and by some. */
#include <stdlib.h>

#include "base/rng.h"
#include "ops/sparse_tensor.h"
#include "unit_test.h"

enum { RANK = 3, MOST = 5000 };

static int compare_columns(const int64_t *a, const int64_t *b, const int *columns, int count) {
    for (int c = 0; c < count; c++) {
        int d = columns ? columns[c] : c;
        if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
    }
    return 0;
}

/* Indices below these limits, some of them the same, less `below`. */
static void fill(int64_t *indices, int64_t n, const uint64_t *limits, int64_t below) {
    PhiloxStream s = philox_stream((Philox){0});
    for (int64_t i = 0; i < n * RANK; i++) {
        uint64_t x = philox_stream_next(&s) | (uint64_t)philox_stream_next(&s) << 32;
        indices[i] = (int64_t)(x % limits[i % RANK]) - below;
    }
}

static void check(int64_t n, const uint64_t *limits, int64_t below, const int *columns, int count) {
    static int64_t indices[MOST * RANK];
    fill(indices, n, limits, below);
    int64_t *order = sparse_order(indices, n, RANK, columns, count);
    bool *seen = calloc((size_t)n + 1, sizeof *seen);
    for (int64_t i = 0; i < n; i++) {
        assert_in_range(order[i], 0, n - 1);
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
        if (i == 0) continue;
        int way = compare_columns(indices + order[i - 1] * RANK, indices + order[i] * RANK, columns, columns ? count : RANK);
        assert_true(way < 0 || (way == 0 && order[i - 1] < order[i]));
    }
    free(seen);
    free(order);
}

static void rows_come_in_order_and_equal_ones_as_they_stood(void **state) {
    (void)state;
    static const uint64_t limits[][RANK] = {{5, 7, 3}, {1000, 1, 3000}, {1ull << 40, 9, 2000}, {1ull << 40, 1ull << 40, 4}, {INT64_MAX, 3, 3}};
    static const int columns[] = {2, 0};
    static const int64_t counts[] = {0, 1, 2, 100, 129, MOST};
    for (size_t l = 0; l < sizeof limits / sizeof limits[0]; l++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            check(counts[c], limits[l], 0, NULL, 0);
            check(counts[c], limits[l], 0, columns, 2);
            check(counts[c], limits[l], 1000, columns, 1);
        }
    }
}

static void the_widest_range_is_not_lost(void **state) {
    (void)state;
    enum { N = 300 };
    static int64_t indices[N];
    for (int i = 0; i < N; i++) indices[i] = i % 3 == 0 ? INT64_MIN : i % 3 == 1 ? INT64_MAX : 0;
    int64_t *order = sparse_order(indices, N, 1, NULL, 0);
    for (int i = 0; i < N; i++) assert_int_equal(indices[order[i]], i < N / 3 ? INT64_MIN : i < 2 * N / 3 ? 0 : INT64_MAX);
    free(order);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_in_order_and_equal_ones_as_they_stood),
        cmocka_unit_test(the_widest_range_is_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
