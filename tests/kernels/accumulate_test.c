/* accumulate_test.c: rows that lie one behind the other are added as they would be one after the other, to the bit. */
#include "kernels/accumulate.h"

#include <string.h>

#include "unit_test.h"

enum { ROWS = 9, MOST_WIDTH = 150 };

static const struct {
    const char *name;
    const RowMath *math;
    size_t size;
    bool is_half; /* small exponents only: no NaNs */
} types[] = {
    {"float", &row_math_float, 4, false}, {"double", &row_math_double, 8, false}, {"half", &row_math_half, 2, true}, {"bfloat16", &row_math_bfloat16, 2, true},
    {"int8", &row_math_int8, 1, false},   {"int32", &row_math_int32, 4, false},   {"uint64", &row_math_uint64, 8, false},
};

static void fill(char *bytes, size_t type, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const int v = (int)(i * 7919 % 1999);
        if (types[type].math == &row_math_float) ((float *)bytes)[i] = (float)v / 7;
        else if (types[type].math == &row_math_double) ((double *)bytes)[i] = (double)v / 7;
        else if (types[type].is_half) ((uint16_t *)bytes)[i] = (uint16_t)(0x3000 + v);
        else memset(bytes + (size_t)i * types[type].size, v % 256, types[type].size);
    }
}

static void rows_are_added_in_their_order(void **state) {
    (void)state;
    static const int64_t widths[] = {1, 3, 8, 16, 17, 64, 129, MOST_WIDTH};
    static _Alignas(16) char from[ROWS * MOST_WIDTH * 8], got[MOST_WIDTH * 8], want[MOST_WIDTH * 8];
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
            const size_t row = (size_t)widths[w] * types[t].size;
            fill(from, t, ROWS * widths[w]);
            memcpy(got, from, row);
            memcpy(want, from, row);
            types[t].math->add_rows(got, from + row, ROWS - 1, widths[w]);
            for (int r = 1; r < ROWS; r++) types[t].math->add(want, from + (size_t)r * row, widths[w]);
            if (memcmp(got, want, row) != 0) fail_msg("%s, rows of %d", types[t].name, (int)widths[w]);
            types[t].math->add_rows(got, from, 0, widths[w]);
            assert_memory_equal(got, want, row);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_added_in_their_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
