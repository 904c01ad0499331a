/* schema_test.c: descriptors that are malformed, deep or lead nowhere. */
#include "proto/schema.h"

#include "unit_test.h"

/* A FileDescriptorSet with one file of one message M in package p, which has one field. */
static void build(StrBuf *set, const char *field_name, FieldType type, const char *type_name) {
    StrBuf field = {0}, message = {0}, file = {0};
    wire_put_bytes(&field, 1, str_of(field_name));
    wire_put_uint(&field, 3, 7);
    wire_put_uint(&field, 5, type);
    if (type_name) wire_put_bytes(&field, 6, str_of(type_name));
    wire_put_bytes(&message, 1, STR("M"));
    wire_put_bytes(&message, 2, strbuf_str(&field));
    wire_put_bytes(&file, 2, STR("p"));
    wire_put_bytes(&file, 4, strbuf_str(&message));
    wire_put_bytes(set, 1, strbuf_str(&file));
    strbuf_clear(&field);
    strbuf_clear(&message);
    strbuf_clear(&file);
}

static void a_message_is_found_by_its_full_name(void **state) {
    (void)state;
    StrBuf set = {0};
    build(&set, "x", FIELD_MESSAGE, "M");
    Schema s;
    assert_null(schema_read(strbuf_str(&set), &s));
    assert_null(schema_message(&s, STR("M")));
    const SchemaMessage *m = schema_message(&s, STR("p.M"));
    assert_non_null(m);
    assert_null(schema_field(m, STR("y")));
    const SchemaField *f = schema_field(m, STR("x"));
    assert_non_null(f);
    assert_int_equal(f->number, 7);
    assert_ptr_equal(f->message, m);
    schema_clear(&s);
    strbuf_clear(&set);
}

static void a_name_that_leads_nowhere_is_an_error(void **state) {
    (void)state;
    StrBuf set = {0};
    build(&set, "x", FIELD_ENUM, ".p.E");
    Schema s;
    Error *err = schema_read(strbuf_str(&set), &s);
    assert_non_null(err);
    error_free(err);
    strbuf_clear(&set);
}

static void every_cut_of_a_set_is_read_or_refused(void **state) {
    (void)state;
    StrBuf set = {0};
    build(&set, "x", FIELD_INT32, NULL);
    Str all = strbuf_str(&set);
    for (size_t n = 0; n <= all.len; n++) {
        Schema s;
        Error *err = schema_read((Str){all.ptr, n}, &s);
        if (!err) schema_clear(&s);
        assert_true((err == NULL) == (n == 0 || n == all.len));
        error_free(err);
    }
    strbuf_clear(&set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_found_by_its_full_name),
        cmocka_unit_test(a_name_that_leads_nowhere_is_an_error),
        cmocka_unit_test(every_cut_of_a_set_is_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
