/* str_test.c: strings with a length, growing strings, arenas. */
#include "base/str.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/base64.h"
#include "unit_test.h"

static void comparing_and_cutting(void **state) {
    (void)state;
    Str none = {0};
    assert_true(str_eq(none, STR("")));
    assert_true(str_starts(none, none) && str_ends(none, none) && str_starts(STR("x"), none));
    assert_true(str_starts(STR("abc"), STR("ab")) && !str_starts(STR("a"), STR("ab")));
    assert_true(str_ends(STR("abc"), STR("bc")) && !str_ends(STR("c"), STR("bc")));
    assert_true(str_compare(STR("a"), STR("b")) < 0 && str_compare(STR("b"), STR("a")) > 0);
    assert_true(str_compare(STR("a"), STR("ab")) < 0 && str_compare(STR("a"), STR("a")) == 0 && str_compare(none, none) == 0);
    assert_true(str_compare(STR("\xff"), STR("a")) > 0);
    assert_int_equal(str_find(STR("a:b"), ':'), 1);
    assert_int_equal(str_find(none, ':'), -1);
    expect_str(str_slice(STR("hello"), 1, 3), "el");
    expect_str(str_slice(STR("hello"), 3, 99), "lo");
    expect_str(str_slice(STR("hello"), 9, 99), "");
    expect_str(str_trim(STR(" \t a b\n")), "a b");
    expect_str(str_trim(STR("  ")), "");
}

static void taking_parts_off_the_front(void **state) {
    (void)state;
    Str rest = STR("a,,b");
    expect_str(str_next(&rest, ','), "a");
    expect_str(str_next(&rest, ','), "");
    expect_str(str_next(&rest, ','), "b");
    expect_str(str_next(&rest, ','), "");
    assert_int_equal(rest.len, 0);
}

static void whole_numbers_only(void **state) {
    (void)state;
    int64_t v = 0;
    assert_true(str_to_int64(STR("-12"), &v) && v == -12);
    assert_true(str_to_int64(STR("9223372036854775807"), &v) && v == INT64_MAX);
    assert_true(str_to_int64(STR("-9223372036854775808"), &v) && v == INT64_MIN);
    const char *const bad[] = {"", "-", "1x", " 1", "1 ", "9223372036854775808", "-9223372036854775809", "0x10", "1.0", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(str_to_int64(str_of(bad[i]), &v));
}

static void hashes_differ(void **state) {
    (void)state;
    char text[40];
    uint64_t seen[1000];
    for (int i = 0; i < 1000; i++) {
        int n = snprintf(text, sizeof text, "layer_%d/weights", i);
        seen[i] = str_hash((Str){text, (size_t)n});
        for (int j = 0; j < i; j++) assert_true(seen[i] != seen[j]);
    }
    assert_true(str_hash(STR("")) == str_hash((Str){0}));
}

static void a_buffer_grows(void **state) {
    (void)state;
    StrBuf b = {0};
    for (int i = 0; i < 1000; i++) strbuf_addf(&b, "%d,", i);
    assert_int_equal(b.len, 10 * 2 + 90 * 3 + 900 * 4);
    strbuf_addc(&b, 0);
    strbuf_add(&b, STR("end"));
    assert_string_equal(b.ptr + b.len - 3, "end");
    strbuf_clear(&b);
    expect_str(strbuf_str(&b), "");
    char *text = strbuf_detach(&b);
    assert_string_equal(text, "");
    free(text);
}

static void an_arena_holds_until_it_is_freed(void **state) {
    (void)state;
    Arena *a = arena_new();
    char *pieces[200];
    for (int i = 0; i < 200; i++) {
        size_t size = (size_t)(i * i);
        pieces[i] = arena_alloc(a, size);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], i, size);
    }
    for (int i = 1; i < 200; i++) assert_int_equal((unsigned char)pieces[i][i * i - 1], i);
    char *big = arena_calloc(a, 3, 1 << 20);
    for (int i = 0; i < 3 << 20; i++) assert_int_equal(big[i], 0);
    Str copy = arena_str(a, STR("ab"));
    assert_int_equal(copy.ptr[2], 0);
    expect_str(arena_printf(a, "%d-%s", 4, "x"), "4-x");
    StrBuf long_text = {0};
    for (int i = 0; i < 5000; i++) strbuf_addc(&long_text, 'y');
    assert_int_equal(arena_printf(a, "%s", long_text.ptr).len, 5000);
    strbuf_clear(&long_text);
    assert_non_null(arena_calloc(a, 0, 8));
    assert_true(arena_size(a) > 3 << 20);
    arena_free(a);
}

static void base64_is_coded_with_and_without_padding(void **state) {
    (void)state;
    const char *rows[][2] = {{"", ""},           {"f", "Zg"}, {"fo", "Zm8"}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"},
                             {"\xff\xfe", "//4"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = base64_encode(str_of(rows[i][0]));
        assert_string_equal(text, rows[i][1]);
        free(text);
        StrBuf out = {0};
        assert_true(base64_decode(str_of(rows[i][1]), &out));
        assert_true(str_is(strbuf_str(&out), rows[i][0]));
        strbuf_clear(&out);
    }
    StrBuf out = {0};
    assert_true(base64_decode(STR("Zg=="), &out));
    assert_true(str_is(strbuf_str(&out), "f"));
    assert_false(base64_decode(STR("Z"), &out));
    assert_false(base64_decode(STR("Zm9*"), &out));
    strbuf_clear(&out);
}

static void characters_are_coded_as_utf8(void **state) {
    (void)state;
    static const struct {
        uint32_t character;
        const char *text;
    } rows[] = {{'a', "a"}, {0x7f, "\x7f"}, {0xe9, "\xc3\xa9"}, {0x20ac, "\xe2\x82\xac"}, {0x1f600, "\xf0\x9f\x98\x80"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        StrBuf b = {0};
        strbuf_add_utf8(&b, rows[i].character);
        assert_string_equal(b.ptr, rows[i].text);
        assert_int_equal(str_utf8_length(strbuf_str(&b), 0), b.len);
        if (b.len > 1) assert_int_equal(str_utf8_length((Str){b.ptr, b.len - 1}, 0), 0);
        strbuf_clear(&b);
    }
    assert_int_equal(str_utf8_length(STR("\xed\xa0\x80"), 0), 0); /* half of a pair */
    assert_int_equal(str_utf8_length(STR("\xc0\x80"), 0), 0);     /* longer than needed */
    assert_int_equal(str_utf8_length(STR("\xff"), 0), 0);
}

static void a_buffer_may_begin_in_an_array(void **state) {
    (void)state;
    char room[8];
    StrBuf b = strbuf_in(room, sizeof room);
    strbuf_add(&b, STR("seven.."));
    assert_ptr_equal(b.ptr, room);
    strbuf_addf(&b, "%d", 8);
    assert_ptr_not_equal(b.ptr, room);
    assert_string_equal(b.ptr, "seven..8");
    strbuf_clear(&b);
    b = strbuf_in(room, sizeof room);
    strbuf_addc(&b, 'x');
    char *text = strbuf_detach(&b);
    assert_ptr_not_equal(text, room);
    assert_string_equal(text, "x");
    free(text);
    strbuf_clear(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_is_coded_with_and_without_padding),
        cmocka_unit_test(characters_are_coded_as_utf8),
        cmocka_unit_test(comparing_and_cutting), cmocka_unit_test(taking_parts_off_the_front), cmocka_unit_test(whole_numbers_only),
        cmocka_unit_test(hashes_differ), cmocka_unit_test(a_buffer_grows), cmocka_unit_test(a_buffer_may_begin_in_an_array), cmocka_unit_test(an_arena_holds_until_it_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
