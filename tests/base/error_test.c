/* error_test.c: errors are made, wrapped, copied, and always printable. */
#include "base/error.h"
#include "base/str.h"
#include "unit_test.h"

static void an_error_says_code_and_text(void **state) {
    (void)state;
    Error *err = error_new(CODE_NOT_FOUND, "no %s in %d places", "key", 3);
    assert_int_equal(err->code, CODE_NOT_FOUND);
    assert_string_equal(err->message, "no key in 3 places");
    assert_false(err->derived);
    assert_string_equal(error_code_name(err->code), "NOT_FOUND");
    error_free(err);
    error_free(NULL);
}

static void wrapping_adds_before_and_after(void **state) {
    (void)state;
    Error *err = error_append(error_wrap(error_invalid("bad"), "file %s", "a"), " [[%d]]", 7);
    assert_string_equal(err->message, "file a: bad [[7]]");
    assert_int_equal(err->code, CODE_INVALID_ARGUMENT);
    error_free(err);
    assert_null(error_wrap(NULL, "nothing"));
    assert_null(error_append(NULL, "nothing"));
    assert_null(error_copy(NULL));
}

static void a_copy_keeps_everything(void **state) {
    (void)state;
    Error *err = error_derived(error_internal("x"));
    err->restarted = true;
    Error *copy = error_copy(err);
    assert_ptr_not_equal(copy->message, err->message);
    error_free(err);
    assert_true(copy->derived && copy->restarted);
    assert_string_equal(copy->message, "x");
    error_free(copy);
}

static void bytes_that_are_not_utf8_are_replaced(void **state) {
    (void)state;
    const char *const cases[][2] = {
        {"plain", "plain"}, {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"}, {"\xff\xfe", "??"}, {"a\xc3", "a?"}, {"\xe2\x82\xac", "\xe2\x82\xac"},
        {"\xf0\x9f\x98\x80!", "\xf0\x9f\x98\x80!"}, {"\x80z", "?z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Error *err = error_new(CODE_UNKNOWN, "%s", cases[i][0]);
        assert_string_equal(err->message, cases[i][1]);
        error_free(err);
    }
}

static void every_code_has_a_name(void **state) {
    (void)state;
    for (int code = 0; code <= 16; code++) assert_true(strlen(error_code_name((ErrorCode)code)) > 1);
    assert_non_null(error_code_name((ErrorCode)99));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_says_code_and_text), cmocka_unit_test(wrapping_adds_before_and_after), cmocka_unit_test(a_copy_keeps_everything),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced), cmocka_unit_test(every_code_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
