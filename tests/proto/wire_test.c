/* wire_test.c: protobuf fields both ways, and bytes that are none. */
#include "proto/wire.h"

#include <stdlib.h>

#include "base/memory.h"
#include "unit_test.h"

static void fields_come_back_as_written(void **state) {
    (void)state;
    StrBuf b = {0};
    wire_put_uint(&b, 1, 0);
    wire_put_uint(&b, 2, UINT64_MAX);
    wire_put_fixed32(&b, 3, 0xdeadbeef);
    wire_put_fixed64(&b, 4, 0x0123456789abcdef);
    wire_put_bytes(&b, 5, STR("text"));
    wire_put_bytes(&b, (1u << 29) - 1, STR(""));
    wire_put_float(&b, 6, 1.5f);
    wire_put_double(&b, 7, -2.5);
    WireReader r = wire_reader(strbuf_str(&b));
    assert_true(wire_next(&r) && r.field == 1 && r.type == WIRE_VARINT && r.number == 0);
    assert_true(wire_next(&r) && r.field == 2 && r.number == UINT64_MAX);
    assert_true(wire_next(&r) && r.field == 3 && r.type == WIRE_FIXED32 && r.number == 0xdeadbeef);
    assert_true(wire_next(&r) && r.field == 4 && r.type == WIRE_FIXED64 && r.number == 0x0123456789abcdef);
    assert_true(wire_next(&r) && r.field == 5 && r.type == WIRE_BYTES && str_is(r.bytes, "text"));
    assert_true(wire_next(&r) && r.field == (1u << 29) - 1 && r.bytes.len == 0);
    assert_true(wire_next(&r) && r.number == 0x3fc00000);
    assert_true(wire_next(&r) && r.number == 0xc004000000000000);
    assert_false(wire_next(&r));
    assert_false(r.failed);
    strbuf_clear(&b);
}

static void varints_of_every_length(void **state) {
    (void)state;
    for (int bits = 0; bits < 64; bits++) {
        uint64_t value = (uint64_t)1 << bits, read = 0;
        StrBuf b = {0};
        wire_put_varint(&b, value);
        assert_int_equal(b.len, bits / 7 + 1);
        WireReader r = wire_reader(strbuf_str(&b));
        assert_true(wire_varint(&r, &read) && read == value && r.at == r.end);
        strbuf_clear(&b);
    }
}

static void malformed_bytes_stop_the_reader(void **state) {
    (void)state;
    const Str cases[] = {
        STR("\x08"), STR("\x08\x80"), STR("\x0a\x05" "abc"), STR("\x0d\x01\x02"), STR("\x09\x01\x02\x03"), STR("\x0b"), STR("\x0c"), STR("\x0e\x01"),
        STR("\x0f\x01"), STR("\x00\x01"), STR("\x80"), STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        STR("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), STR("\x80\x80\x80\x80\x80\x80\x01\x00"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        /* A copy of exactly that size, so that reading past it is noticed. */
        char *copy = xmalloc(cases[i].len);
        memcpy(copy, cases[i].ptr, cases[i].len);
        WireReader r = wire_reader((Str){copy, cases[i].len});
        while (wire_next(&r)) continue;
        assert_true(r.failed);
        assert_false(wire_next(&r));
        free(copy);
    }
    WireReader empty = wire_reader((Str){0});
    assert_false(wire_next(&empty));
    assert_false(empty.failed);
}

static void any_bytes_end(void **state) {
    (void)state;
    unsigned seed = 7;
    for (int round = 0; round < 20000; round++) {
        size_t len = round % 40;
        char *bytes = xmalloc(len + 1);
        for (size_t i = 0; i < len; i++) {
            seed = seed * 1103515245u + 12345u;
            bytes[i] = (char)(seed >> 16);
        }
        WireReader r = wire_reader((Str){bytes, len});
        size_t fields = 0;
        while (wire_next(&r)) assert_true(++fields <= len);
        free(bytes);
    }
}

static void a_message_of_no_bytes_may_be_nowhere(void **state) {
    (void)state;
    WireReader r = wire_reader((Str){NULL, 0});
    assert_false(wire_next(&r));
    assert_false(r.failed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_come_back_as_written), cmocka_unit_test(varints_of_every_length), cmocka_unit_test(malformed_bytes_stop_the_reader),
        cmocka_unit_test(any_bytes_end), cmocka_unit_test(a_message_of_no_bytes_may_be_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
