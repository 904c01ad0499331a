/* grpc_frame_test.c: framing, timeouts and status, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "net/grpc_frame.h"
#include "net/grpc_status.h"

static void timeouts_are_read(void **state) {
    (void)state;
    struct {
        const char *text;
        int64_t ns;
    } rows[] = {{"1n", 1},
                {"5u", 5000},
                {"3010m", 3010000000},
                {"20S", 20000000000},
                {"2M", 120000000000},
                {"1H", 3600000000000},
                {"0S", 0},
                {"99999999H", INT64_MAX / 4}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ns = -1;
        assert_true(grpc_timeout_parse(str_of(rows[i].text), &ns));
        assert_int_equal(ns, rows[i].ns);
    }
    const char *bad[] = {"", "S", "1", "1x", "-1S", "1.5S", "123456789S", " 1S"};
    int64_t ns = -1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(grpc_timeout_parse(str_of(bad[i]), &ns));
}

static void timeouts_are_written_and_come_back_not_shorter(void **state) {
    (void)state;
    const int64_t rows[] = {1,        999,       1000000,         3010000000,      20000000000,
                            99999999, 100000000, 99999999000 - 1, 123456789012345, INT64_MAX / 8};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[GRPC_TIMEOUT_SIZE];
        int64_t ns = 0;
        Str s = grpc_timeout_format(rows[i], text);
        assert_true(s.len <= 9);
        assert_true(grpc_timeout_parse(s, &ns));
        assert_true(ns >= rows[i]);
        assert_true(ns / 1.01 <= rows[i] + 1);
    }
    char text[GRPC_TIMEOUT_SIZE];
    assert_true(str_is(grpc_timeout_format(-5, text), "1n"));
}

static void messages_are_percent_coded(void **state) {
    (void)state;
    char *text = grpc_message_encode(STR("a b%\n\xc3\xa4~\x7f"));
    assert_string_equal(text, "a b%25%0A%C3%A4~%7F");
    char *back = grpc_message_decode(str_of(text));
    assert_string_equal(back, "a b%\n\xc3\xa4~\x7f");
    free(text);
    free(back);
    back = grpc_message_decode(STR("100% %4 %zz %41%"));
    assert_string_equal(back, "100% %4 %zz A%");
    free(back);
}

static void long_messages_are_cut_between_characters(void **state) {
    (void)state;
    char *text = xmalloc(5001);
    for (int i = 0; i < 5000; i += 2) {
        text[i] = '\xc3';
        text[i + 1] = '\xa4';
    }
    text[5000] = 0;
    text[0] = 'x'; /* byte 3072 is now in the middle of a character */
    memmove(text + 1, text + 2, 4999);
    char *coded = grpc_message_encode((Str){text, 4999});
    char *back = grpc_message_decode(str_of(coded));
    assert_int_equal(strlen(back), 3071 + strlen(" ... [truncated]"));
    assert_true(str_ends(str_of(back), STR("\xc3\xa4 ... [truncated]")));
    free(text);
    free(coded);
    free(back);
}

static void flags_travel_in_the_payload_container(void **state) {
    (void)state;
    Error *err = error_new(CODE_ABORTED, "x");
    err->derived = true;
    StrBuf bytes = {0};
    grpc_details_encode(err, &bytes);
    assert_int_equal(bytes.len, 2 + 2 + 44 + 2);
    assert_memory_equal(bytes.ptr, "\x0a\x30\x0a\x2ctype.googleapis.com/tensorflow.DerivedStatus\x12\x00", bytes.len);
    strbuf_clear(&bytes);
    err->restarted = true;
    grpc_details_encode(err, &bytes);
    Error *back = error_new(CODE_ABORTED, "x");
    assert_true(grpc_details_decode(strbuf_str(&bytes), back));
    assert_true(back->derived && back->restarted);
    for (size_t cut = 1; cut < bytes.len; cut++)
        if (cut != 50) assert_false(grpc_details_decode(str_slice(strbuf_str(&bytes), 0, cut), back));
    back->derived = back->restarted = false;
    /* unknown keys, fields and wire types are skipped */
    assert_true(grpc_details_decode((Str){"\x0a\x07\x0a\x03"
                                          "abc"
                                          "\x12\x00"
                                          "\x10\x96\x01"
                                          "\x1d"
                                          "1234",
                                          17},
                                    back));
    assert_false(back->derived || back->restarted);
    assert_false(grpc_details_decode((Str){"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, back));
    strbuf_clear(&bytes);
    error_free(err);
    error_free(back);
}

static void errors_come_back_from_trailers(void **state) {
    (void)state;
    Error *err = error_new(CODE_NOT_FOUND, "no \"%s\": 100%%\n", "thing");
    err->restarted = true;
    GrpcTrailers trailers;
    grpc_trailers_init(&trailers, err);
    GrpcStatus status = {0};
    grpc_status_add(&status, STR(":status"), STR("200"));
    for (size_t i = 0; i < trailers.count; i++)
        grpc_status_add(&status, trailers.headers[i].name, trailers.headers[i].value);
    Error *back = grpc_status_error(&status);
    assert_int_equal(back->code, CODE_NOT_FOUND);
    assert_string_equal(back->message, err->message);
    assert_true(back->restarted && !back->derived);
    error_free(back);
    error_free(err);
    grpc_trailers_clear(&trailers);
    grpc_status_clear(&status);

    grpc_status_add(&status, STR(":status"), STR("503"));
    err = grpc_status_error(&status);
    assert_int_equal(err->code, CODE_UNAVAILABLE);
    error_free(err);
    grpc_status_add(&status, STR("grpc-status"), STR("77"));
    err = grpc_status_error(&status);
    assert_int_equal(err->code, CODE_UNKNOWN);
    error_free(err);
    grpc_status_clear(&status);
}

static void a_message_is_put_together_from_any_pieces(void **state) {
    (void)state;
    Message m = {0};
    message_add_copy(&m, STR("hello "));
    message_add_copy(&m, STR("world"));
    Message framed = grpc_frame_message(&m);
    Str bytes = message_flatten(&framed);
    assert_int_equal(bytes.len, 16);
    assert_memory_equal(bytes.ptr, "\0\0\0\0\x0bhello world", 16);
    for (size_t step = 1; step <= bytes.len; step++) {
        GrpcReader r = {0};
        for (size_t at = 0; at < bytes.len; at += step) {
            assert_false(grpc_reader_is_complete(&r));
            assert_null(grpc_reader_feed(&r, str_slice(bytes, at, at + step)));
        }
        assert_true(grpc_reader_is_complete(&r));
        Message back = {0};
        assert_null(grpc_reader_take(&r, NULL, &back));
        assert_true(str_is(message_flatten(&back), "hello world"));
        message_clear(&back);
        grpc_reader_clear(&r);
    }
    message_clear(&framed);
}

static void expect_feed_error(Str bytes, size_t limit, ErrorCode code, const char *text) {
    GrpcReader r = {.limit = limit};
    Error *err = grpc_reader_feed(&r, bytes);
    assert_non_null(err);
    assert_int_equal(err->code, code);
    assert_non_null(strstr(err->message, text));
    error_free(err);
    grpc_reader_clear(&r);
}

static void bad_messages_are_refused_early(void **state) {
    (void)state;
    expect_feed_error((Str){"\1\0\0\0\0", 5}, 0, CODE_UNIMPLEMENTED, "compressed");
    expect_feed_error((Str){"\0\0\0\0\0\0", 6}, 0, CODE_UNIMPLEMENTED, "more than one message");
    expect_feed_error((Str){"\0\0\0\x01\x01", 5}, 256, CODE_RESOURCE_EXHAUSTED,
                      "257 bytes is larger than the limit of 256");
    expect_feed_error((Str){"\0\x80\0\0\0", 5}, 0, CODE_RESOURCE_EXHAUSTED, "2147483648");
    GrpcReader r = {0};
    assert_null(grpc_reader_feed(&r, (Str){"\0\x7f\xff\xff\xff"
                                           "abc",
                                           8}));
    assert_true(r.capacity <= 1 << 20); /* the announced 2 GiB are not reserved */
    grpc_reader_clear(&r);
}

static void slices_are_released_once(void **state) {
    (void)state;
    Message m = {0};
    message_add_slice(&m, (Slice){"abc", 3, NULL, NULL});
    message_add_take(&m, xstrdup("defg"), 4);
    char out[5] = "....";
    message_copy_out(&m, out, 2, 3);
    assert_string_equal(out, "cde.");
    Message moved = message_move(&m);
    assert_int_equal(m.count, 0);
    assert_true(str_is(message_flatten(&moved), "abcdefg"));
    assert_int_equal(moved.count, 1);
    message_clear(&moved);
    message_clear(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeouts_are_read),
        cmocka_unit_test(timeouts_are_written_and_come_back_not_shorter),
        cmocka_unit_test(messages_are_percent_coded),
        cmocka_unit_test(long_messages_are_cut_between_characters),
        cmocka_unit_test(flags_travel_in_the_payload_container),
        cmocka_unit_test(errors_come_back_from_trailers),
        cmocka_unit_test(a_message_is_put_together_from_any_pieces),
        cmocka_unit_test(bad_messages_are_refused_early),
        cmocka_unit_test(slices_are_released_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
