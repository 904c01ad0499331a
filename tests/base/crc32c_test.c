/* crc32c_test.c: known checksums, both ways to compute them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/crc32c.h"

static void known_values(void **state) {
    (void)state;
    unsigned char bytes[32];
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
    assert_int_equal(crc32c(0, bytes, 32), 0x46dd794e);
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, "", 0), 0);
}

static void pieces_and_tables_agree(void **state) {
    (void)state;
    unsigned char bytes[300];
    for (int i = 0; i < 300; i++) bytes[i] = (unsigned char)(i * 7 + i / 3);
    for (size_t n = 0; n < sizeof bytes; n++) {
        uint32_t whole = crc32c(0, bytes, n);
        assert_int_equal(whole, crc32c_by_table(0, bytes, n));
        assert_int_equal(whole, crc32c(crc32c(0, bytes, n / 3), bytes + n / 3, n - n / 3));
        assert_int_equal(whole, crc32c_unmask(crc32c_mask(whole)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(pieces_and_tables_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
