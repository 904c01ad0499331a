/* run_message_test.c: RunStep requests are read as they are meant, and malformed ones refused. */
#include "cluster/run_message.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proto/wire.h"
#include "unit_test.h"

static Message message_of(StrBuf *b) {
    Message m = {0};
    size_t len = b->len;
    message_add_take(&m, strbuf_detach(b), len);
    return m;
}

static void add_feed(StrBuf *b, const char *name, const char *tensor) {
    StrBuf feed = {0};
    wire_put_bytes(&feed, 1, str_of(name));
    wire_put_bytes(&feed, 2, str_of(tensor));
    wire_put_bytes(b, 2, strbuf_str(&feed));
    strbuf_clear(&feed);
}

static void all_fields_are_read(void **state) {
    (void)state;
    StrBuf b = {0};
    wire_put_bytes(&b, 3, STR("y:0"));
    add_feed(&b, "a:0", "one");
    wire_put_bytes(&b, 1, STR("session"));
    wire_put_bytes(&b, 4, STR("train"));
    add_feed(&b, "b:0", "");
    wire_put_bytes(&b, 3, STR("z:0"));
    wire_put_bytes(&b, 5, STR("\x10\x05"));
    wire_put_bytes(&b, 6, STR("part"));
    wire_put_uint(&b, 7, 1);
    wire_put_uint(&b, 8, 77);
    wire_put_uint(&b, 100, 5); /* of a later version */
    Message bytes = message_of(&b);
    RunMessage m;
    expect_ok(run_message_read(&bytes, &m));
    assert_true(str_is(m.session_handle, "session") && str_is(m.partial_run_handle, "part"));
    assert_int_equal(m.feed_count, 2);
    assert_true(str_is(m.feeds[0], "a:0") && str_is(m.feed_protos[0], "one"));
    assert_true(str_is(m.feeds[1], "b:0") && m.feed_protos[1].len == 0);
    assert_int_equal(m.fetch_count, 2);
    assert_true(str_is(m.fetches[0], "y:0") && str_is(m.fetches[1], "z:0"));
    assert_int_equal(m.target_count, 1);
    assert_true(str_is(m.targets[0], "train"));
    assert_int_equal(m.options.len, 2);
    assert_true(m.store_errors_in_response_body);
    assert_int_equal(m.request_id, 77);
    run_message_clear(&m);
    message_clear(&bytes);
}

static void an_empty_message_asks_for_nothing(void **state) {
    (void)state;
    Message bytes = {0};
    RunMessage m;
    expect_ok(run_message_read(&bytes, &m));
    assert_int_equal(m.feed_count + m.fetch_count + m.target_count, 0);
    run_message_clear(&m);
}

static void refused(const void *data, size_t len) {
    Message bytes = {0};
    char *copy = xmalloc(len);
    memcpy(copy, data, len);
    message_add_take(&bytes, copy, len);
    RunMessage m;
    expect_error(run_message_read(&bytes, &m), CODE_INVALID_ARGUMENT, "Malformed RunStepRequest");
    run_message_clear(&m);
    message_clear(&bytes);
}

static void malformed_messages_are_refused(void **state) {
    (void)state;
    refused("\x0a\x05" "abc", 5);     /* a handle that ends early */
    refused("\x08\x01", 2);           /* a handle that is a number */
    refused("\x3a\x01x", 3);          /* a flag that is text */
    refused("\x12\x03\x0a\x07y", 5);  /* a feed whose name ends early */
    refused("\x12\x02\x08\x01", 4);   /* a feed whose name is a number */
    refused("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\x7fx", 11);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fields_are_read),
        cmocka_unit_test(an_empty_message_asks_for_nothing),
        cmocka_unit_test(malformed_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
