/* decimal_test.c: what is read quickly is what strtod and strtof read, to the bit; the rest is left to them. */
#include "base/decimal.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

static bool expect_same(const char *text) {
    double wide = 7, wide_want = strtod(text, NULL);
    float narrow = 7, narrow_want = strtof(text, NULL);
    bool read = decimal_to_double(str_of(text), &wide);
    if (read && memcmp(&wide, &wide_want, sizeof wide) != 0) fail_msg("%s is read as %.17g", text, wide);
    if (decimal_to_float(str_of(text), &narrow) && memcmp(&narrow, &narrow_want, sizeof narrow) != 0) fail_msg("%s is read as %.9g", text, (double)narrow);
    return read;
}

static void plain_numbers_are_rounded_once(void **state) {
    (void)state;
    static const char *const plain[] = {"0", "-0", "+1", "1.", ".5", "-.5", "0.1", "16777217", "16777219.0", "9007199254740992", "90071992547409.5", "0.300000011920929", "1.0000000596046",
                                        "123456789.125", "0000000000000000001"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) assert_true(expect_same(plain[i]));
    char text[64];
    srand(1);
    for (int i = 0; i < 200000; i++) {
        const uint64_t number = ((uint64_t)rand() << 31 | (uint64_t)rand()) >> (rand() % 62);
        const int places = rand() % 20;
        snprintf(text, sizeof text, "%s%llu.%0*d", rand() % 2 ? "-" : "", (unsigned long long)number % 100000000, places % 9 + 1, rand() % 10);
        expect_same(text);
        snprintf(text, sizeof text, "%llu.%llu", (unsigned long long)(number >> 40), (unsigned long long)(number & 0xffffffff));
        expect_same(text);
    }
    /* In the middle between two floats, and beside it. */
    for (int i = 0; i < 20000; i++) {
        const double middle = 1 + (rand() % (1 << 23) + 0.5) * 0x1p-23;
        for (int digits = 7; digits < 16; digits++) {
            snprintf(text, sizeof text, "%.*f", digits, middle);
            expect_same(text);
        }
    }
}

static void others_are_left(void **state) {
    (void)state;
    static const char *const others[] = {"", "-", ".", "1e5", "0x10", "inf", "nan", "1 ", " 1", "1.2.3", "--1", "12345678901234567890", "9007199254740993", "1.00000005960464478", "0.00000000000000000000001"};
    double wide;
    float narrow;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(decimal_to_double(str_of(others[i]), &wide));
        assert_false(decimal_to_float(str_of(others[i]), &narrow));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain_numbers_are_rounded_once), cmocka_unit_test(others_are_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
