/* text_test.c: text format made into wire format; tests/tools has models that TensorFlow wrote as text. */
#include "proto/text.h"

#include <stdlib.h>

#include "base/memory.h"
#include "proto/model.pb-c.h"
#include "proto/wire.h"
#include "unit_test.h"

static const ProtobufCMessageDescriptor *const any_types[] = {&text__asset_file_def__descriptor, NULL};

static StrBuf converted(const ProtobufCMessageDescriptor *type, const char *text) {
    StrBuf out = {0};
    expect_ok(text_to_wire(type, any_types, str_of(text), &out));
    return out;
}

static void expect_wire(const ProtobufCMessageDescriptor *type, const char *text, Str want) {
    StrBuf got = converted(type, text);
    if (!str_eq(strbuf_str(&got), want)) print_message("of: %s\n", text);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.ptr ? got.ptr : "", want.ptr, want.len);
    strbuf_clear(&got);
}

static void fields_of_every_kind(void **state) {
    (void)state;
    const ProtobufCMessageDescriptor *attr = &text__attr_value__descriptor, *saver = &text__saver_def__descriptor;
    expect_wire(attr, "i: -1", STR("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
    expect_wire(attr, "i: 0x10 # hexadecimal\n", STR("\x18\x10"));
    expect_wire(attr, "f: 1.5", STR("\x25\x00\x00\xc0\x3f"));
    expect_wire(attr, "f: -inf", STR("\x25\x00\x00\x80\xff"));
    expect_wire(attr, "b: true", STR("\x28\x01"));
    expect_wire(attr, "type: DT_HALF", STR("\x30\x13"));
    expect_wire(attr, "type: 19", STR("\x30\x13"));
    expect_wire(attr, "s: \"a\\n\\001\\xff\\\"\" 'b'", STR("\x12\x06"
                                                       "a\n\x01\xff\"b"));
    expect_wire(attr, "shape { dim { size: 2 } dim: < size: -1 > }", STR("\x3a\x11\x12\x02\x08\x02\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
    expect_wire(saver, "max_to_keep: 5; sharded: false, version: V2", STR("\x20\x05\x28\x00\x38\x02"));
    expect_wire(attr, "list { i: [1, 2] i: 3 }", STR("\x0a\x06\x18\x01\x18\x02\x18\x03"));
    expect_wire(attr, "list { i: [] }", STR("\x0a\x00"));
}

static void what_is_unknown_is_read_over(void **state) {
    (void)state;
    expect_wire(&text__saver_def__descriptor, "new_field: 3 other { a: [1, 'x'] b < c: d > } sharded: true", STR("\x28\x01"));
}

static void an_any_is_made_from_its_type(void **state) {
    (void)state;
    const ProtobufCMessageDescriptor *list = &text__collection_def_any_list__descriptor;
    StrBuf want = {0}, any = {0};
    wire_put_bytes(&any, 1, STR("type.googleapis.com/tensorflow.AssetFileDef"));
    wire_put_bytes(&any, 2, STR("\x12\x05words"));
    wire_put_bytes(&want, 1, strbuf_str(&any));
    expect_wire(list, "value { [type.googleapis.com/tensorflow.AssetFileDef] { filename: \"words\" } }", strbuf_str(&want));
    expect_wire(list, "value { [type.googleapis.com/tensorflow.Unknown] { filename: \"words\" } }", STR("\x0a\x00"));
    strbuf_clear(&want);
    strbuf_clear(&any);
}

static void mistakes_name_their_line(void **state) {
    (void)state;
    static const char *const texts[] = {"i: x",         "i: 1.5",      "i: 9223372036854775808", "\nb: maybe", "type: DT_NOTHING",
                                        "s: \"a",       "s: \"\\q\"",  "s: \"a\nb\"",            "shape {",    "shape 3",
                                        "i 3",          "}",           "i: [1",                  "i:",         "[abc",
                                        "list { i: 1 >", "shape { dim", "i: --1",                "f: 1.2.3",   ":"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        StrBuf out = {0};
        Error *err = text_to_wire(&text__attr_value__descriptor, NULL, str_of(texts[i]), &out);
        if (!err) print_message("accepted: %s\n", texts[i]);
        expect_error(err, CODE_INVALID_ARGUMENT, *texts[i] == '\n' ? "line 2" : "line ");
        strbuf_clear(&out);
    }
    StrBuf deep = {0}, out = {0};
    for (int i = 0; i < 200; i++) strbuf_add(&deep, STR("a{"));
    expect_error(text_to_wire(&text__attr_value__descriptor, NULL, strbuf_str(&deep), &out), CODE_INVALID_ARGUMENT, "deep");
    strbuf_clear(&deep);
}

static void cut_and_damaged_text_never_crashes(void **state) {
    (void)state;
    static const char text[] = "node { name: \"a\" op: 'Const' attr { key: \"value\" value { tensor { dtype: DT_FLOAT float_val: [1, -2.5e3]"
                               " tensor_shape < dim { size: 2 } > } } } } versions { producer: 21 } # end\n[x.y] { z: 1 }";
    for (size_t len = 0; len < sizeof text; len++) {
        char *copy = xmalloc(len + 1);
        memcpy(copy, text, len);
        StrBuf out = {0};
        error_free(text_to_wire(&text__graph_def__descriptor, any_types, (Str){copy, len}, &out));
        strbuf_clear(&out);
        for (int c = 0; len && c < 256; c++) {
            copy[len - 1] = (char)c;
            error_free(text_to_wire(&text__graph_def__descriptor, any_types, (Str){copy, len}, &out));
            strbuf_clear(&out);
        }
        free(copy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_every_kind),
        cmocka_unit_test(what_is_unknown_is_read_over),
        cmocka_unit_test(an_any_is_made_from_its_type),
        cmocka_unit_test(mistakes_name_their_line),
        cmocka_unit_test(cut_and_damaged_text_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
