/* tensor_proto_test.c: TensorProto of every dtype both ways, values that repeat, and bytes nobody should send. */
#include "tensor/tensor_proto.h"

#include <stdlib.h>

#include "base/memory.h"
#include "proto/wire.h"
#include "unit_test.h"

/* Decodes from a copy of exactly that size, so that reading past it is noticed. */
static Error *decode(Str bytes, Tensor **out) {
    char *copy = xmalloc(bytes.len ? bytes.len : 1);
    if (bytes.len) memcpy(copy, bytes.ptr, bytes.len);
    Error *err = tensor_proto_decode((Str){copy, bytes.len}, out);
    free(copy);
    return err;
}

static void other_bytes_than_0_and_1_are_true(void **state) {
    (void)state;
    Tensor *t = NULL;
    expect_ok(decode(STR("\x08\x0a\x12\x04\x12\x02\x08\x03\x22\x03\x00\xff\x02"), &t));
    assert_int_equal(t->dtype, DT_BOOL);
    assert_memory_equal(t->data, "\x00\x01\x01", 3);
    tensor_unref(t);
}

static void every_plain_dtype_survives(void **state) {
    (void)state;
    const Shape shapes[] = {SHAPE_SCALAR, shape_vector(5), shape_matrix(2, 3), shape_matrix(0, 4)};
    for (int t = 1; t < DT_COUNT; t++) {
        if (!dtype_is_plain((DataType)t)) continue;
        for (int i = 0; i < 4; i++) {
            Tensor *a = NULL, *b = NULL;
            StrBuf bytes = {0};
            expect_ok(tensor_new((DataType)t, &shapes[i], &a));
            for (size_t j = 0; j < tensor_bytes(a); j++) tensor_u8(a)[j] = t == DT_BOOL ? j % 2 : (uint8_t)(j * 37 + 1);
            tensor_proto_encode(a, &bytes);
            expect_ok(decode(strbuf_str(&bytes), &b));
            assert_int_equal(b->dtype, t);
            assert_true(shape_eq(&b->shape, &a->shape));
            assert_memory_equal(b->data, a->data, tensor_bytes(a));
            tensor_unref(a);
            tensor_unref(b);
            strbuf_clear(&bytes);
        }
    }
}

static void strings_and_handles_survive(void **state) {
    (void)state;
    Shape shape = shape_vector(3);
    Tensor *a = NULL, *b = NULL;
    StrBuf bytes = {0};
    expect_ok(tensor_new(DT_STRING, &shape, &a));
    tstring_set(&tensor_str(a)[0], STR("one"));
    tstring_set(&tensor_str(a)[2], (Str){"\0\xff", 2});
    tensor_proto_encode(a, &bytes);
    expect_ok(decode(strbuf_str(&bytes), &b));
    for (int i = 0; i < 3; i++) assert_true(str_eq(tstring_str(&tensor_str(a)[i]), tstring_str(&tensor_str(b)[i])));
    tensor_unref(a);
    tensor_unref(b);
    bytes.len = 0;
    expect_ok(tensor_new(DT_RESOURCE, &SHAPE_SCALAR, &a));
    ResourceHandle *h = tensor_handles(a)[0] = resource_handle_new(STR("/job:ps/device:CPU:0"), STR("ps"), STR("v"), STR("Var"));
    h->hash_code = 99;
    h->dtype = DT_FLOAT;
    h->shape = shape_matrix(-1, 2);
    tensor_proto_encode(a, &bytes);
    expect_ok(decode(strbuf_str(&bytes), &b));
    const ResourceHandle *g = tensor_handles(b)[0];
    assert_string_equal(g->device, h->device);
    assert_string_equal(g->container, "ps");
    assert_string_equal(g->name, "v");
    assert_string_equal(g->type_name, "Var");
    assert_true(g->hash_code == 99 && g->dtype == DT_FLOAT && g->shape.rank == 2 && g->shape.dims[0] == -1);
    tensor_unref(a);
    tensor_unref(b);
    bytes.len = 0;
    expect_ok(tensor_new(DT_VARIANT, &shape, &a));
    tensor_proto_encode(a, &bytes);
    expect_ok(decode(strbuf_str(&bytes), &b));
    assert_null(tensor_variants(b)[1].type);
    tensor_unref(a);
    tensor_unref(b);
    strbuf_clear(&bytes);
}

/* A TensorProto of a vector: dtype, shape [n], then fields as given. */
static void start_proto(StrBuf *b, DataType t, int64_t n) {
    Shape shape = shape_vector(n);
    StrBuf s = {0};
    b->len = 0;
    wire_put_uint(b, 1, (uint64_t)t);
    shape_encode(&shape, &s);
    wire_put_bytes(b, 2, strbuf_str(&s));
    strbuf_clear(&s);
}

static void the_last_value_repeats_and_none_is_zero(void **state) {
    (void)state;
    StrBuf b = {0}, packed = {0};
    Tensor *t = NULL;
    start_proto(&b, DT_FLOAT, 4);
    expect_ok(decode(strbuf_str(&b), &t));
    for (int i = 0; i < 4; i++) assert_true(tensor_f32(t)[i] == 0);
    tensor_unref(t);
    wire_put_float(&b, 5, 1);
    wire_put_float(&b, 5, 2);
    expect_ok(decode(strbuf_str(&b), &t));
    const float expected[] = {1, 2, 2, 2};
    assert_memory_equal(tensor_f32(t), expected, sizeof expected);
    tensor_unref(t);
    start_proto(&b, DT_INT64, 3); /* packed, negative */
    wire_put_varint(&packed, (uint64_t)-5);
    wire_put_varint(&packed, 7);
    wire_put_bytes(&b, 10, strbuf_str(&packed));
    expect_ok(decode(strbuf_str(&b), &t));
    assert_true(tensor_i64(t)[0] == -5 && tensor_i64(t)[1] == 7 && tensor_i64(t)[2] == 7);
    tensor_unref(t);
    start_proto(&b, DT_STRING, 3);
    wire_put_bytes(&b, 8, STR("x"));
    expect_ok(decode(strbuf_str(&b), &t));
    expect_str(tstring_str(&tensor_str(t)[2]), "x");
    tensor_unref(t);
    start_proto(&b, DT_COMPLEX64, 2);
    wire_put_float(&b, 9, 1);
    wire_put_float(&b, 9, 2);
    expect_ok(decode(strbuf_str(&b), &t));
    assert_true(tensor_f32(t)[2] == 1 && tensor_f32(t)[3] == 2);
    tensor_unref(t);
    start_proto(&b, DT_HALF, 2);
    wire_put_uint(&b, 13, 0x3c00);
    expect_ok(decode(strbuf_str(&b), &t));
    assert_int_equal(((uint16_t *)t->data)[1], 0x3c00);
    tensor_unref(t);
    start_proto(&b, DT_BOOL, 2);
    wire_put_uint(&b, 11, 300);
    expect_ok(decode(strbuf_str(&b), &t));
    assert_int_equal(tensor_u8(t)[1], 1);
    tensor_unref(t);
    start_proto(&b, DT_INT8, 1); /* more values than elements */
    for (int i = 0; i < 5; i++) wire_put_uint(&b, 7, (uint64_t)i);
    expect_ok(decode(strbuf_str(&b), &t));
    assert_int_equal(tensor_u8(t)[0], 0);
    tensor_unref(t);
    strbuf_clear(&b);
    strbuf_clear(&packed);
}

static void lengths_that_do_not_fit_are_errors(void **state) {
    (void)state;
    StrBuf b = {0};
    Tensor *t = NULL;
    start_proto(&b, DT_FLOAT, 2);
    wire_put_bytes(&b, 4, STR("1234567"));
    expect_error(decode(strbuf_str(&b), &t), CODE_INVALID_ARGUMENT, "7 bytes of content for 2 elements of float");
    start_proto(&b, DT_STRING, 2);
    wire_put_bytes(&b, 4, STR("\x01"));
    expect_error(decode(strbuf_str(&b), &t), CODE_INVALID_ARGUMENT, "cut off");
    start_proto(&b, DT_STRING, 2);
    wire_put_bytes(&b, 4, STR("\x01\x05" "abc"));
    expect_error(decode(strbuf_str(&b), &t), CODE_INVALID_ARGUMENT, "element 1 is cut off");
    start_proto(&b, DT_STRING, 1);
    wire_put_bytes(&b, 4, STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
    expect_error(decode(strbuf_str(&b), &t), CODE_INVALID_ARGUMENT, "cut off");
    start_proto(&b, DT_FLOAT, 2);
    wire_put_bytes(&b, 5, STR("12345"));
    expect_error(decode(strbuf_str(&b), &t), CODE_INVALID_ARGUMENT, "malformed values");
    start_proto(&b, DT_RESOURCE, 1);
    wire_put_bytes(&b, 14, STR("\x0a\x44"));
    expect_error(decode(strbuf_str(&b), &t), CODE_INVALID_ARGUMENT, "Malformed ResourceHandleProto");
    start_proto(&b, DT_VARIANT, 1);
    wire_put_bytes(&b, 15, STR("\x0a\x02no"));
    expect_error(decode(strbuf_str(&b), &t), CODE_UNIMPLEMENTED, "Variant of type no");
    expect_error(decode(STR(""), &t), CODE_INVALID_ARGUMENT, "no valid dtype");
    expect_error(decode(STR("\x08\x65"), &t), CODE_INVALID_ARGUMENT, "no valid dtype");
    expect_error(decode(STR("\x08\x01\x12\x02\x18\x01"), &t), CODE_INVALID_ARGUMENT, "unknown rank");
    expect_error(decode(STR("\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), &t), CODE_INVALID_ARGUMENT, NULL);
    strbuf_clear(&b);
}

static void a_few_bytes_never_ask_for_terabytes(void **state) {
    (void)state;
    StrBuf b = {0};
    Tensor *t = NULL;
    for (int type = 1; type < DT_COUNT; type++) {
        start_proto(&b, (DataType)type, (int64_t)1 << 44);
        expect_error(decode(strbuf_str(&b), &t), CODE_RESOURCE_EXHAUSTED, "OOM");
        start_proto(&b, (DataType)type, INT64_MAX);
        expect_error(decode(strbuf_str(&b), &t), CODE_RESOURCE_EXHAUSTED, "OOM");
    }
    strbuf_clear(&b);
}

static void variants_nested_without_end_are_refused(void **state) {
    (void)state;
    StrBuf inner = {0}, variant = {0};
    for (int i = 0; i < 2000; i++) {
        variant.len = 0;
        if (i) wire_put_bytes(&variant, 3, strbuf_str(&inner));
        start_proto(&inner, DT_VARIANT, 1);
        wire_put_bytes(&inner, 15, strbuf_str(&variant));
    }
    Tensor *t = NULL;
    expect_error(decode(strbuf_str(&inner), &t), CODE_INVALID_ARGUMENT, "nested");
    strbuf_clear(&inner);
    strbuf_clear(&variant);
}

/* Every prefix of good bytes, and good bytes with one changed: an error or a tensor, never a crash. */
static void damaged_bytes_never_crash(void **state) {
    (void)state;
    const DataType types[] = {DT_FLOAT, DT_STRING, DT_RESOURCE, DT_VARIANT, DT_COMPLEX128, DT_INT4};
    for (int i = 0; i < 6; i++) {
        for (int typed = 0; typed < 2; typed++) {
            Shape shape = shape_vector(3);
            Tensor *t = NULL;
            StrBuf b = {0};
            expect_ok(tensor_new(types[i], &shape, &t));
            if (types[i] == DT_STRING) tstring_set(&tensor_str(t)[1], STR("some text"));
            if (types[i] == DT_RESOURCE) tensor_handles(t)[0] = resource_handle_new(STR("d"), STR("c"), STR("n"), STR("t"));
            if (dtype_is_plain(types[i])) memset(t->data, 1, tensor_bytes(t));
            tensor_proto_encode(t, &b);
            if (typed) {
                start_proto(&b, types[i], 3);
                for (uint32_t field = 5; field < 19; field++) wire_put_bytes(&b, field, STR("\x0a\x01\x61\x12\x00\x1a\x00"));
            }
            tensor_unref(t);
            unsigned seed = 3;
            for (size_t cut = 0; cut < b.len + 3000; cut++) {
                StrBuf bad = {0};
                strbuf_add(&bad, cut < b.len ? str_slice(strbuf_str(&b), 0, cut) : strbuf_str(&b));
                for (int change = 0; cut >= b.len && change < 2; change++) {
                    seed = seed * 1103515245u + 12345u;
                    bad.ptr[(seed >> 8) % bad.len] = (char)(seed >> 20 & 1 ? seed >> 24 : 0x80 | seed >> 24);
                }
                Tensor *out = NULL;
                Error *err = decode(strbuf_str(&bad), &out);
                if (!err && out->count > 0 && dtype_is_plain(out->dtype)) assert_true(tensor_u8(out)[0] < 256);
                error_free(err);
                tensor_unref(out);
                strbuf_clear(&bad);
            }
            strbuf_clear(&b);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plain_dtype_survives),
        cmocka_unit_test(other_bytes_than_0_and_1_are_true), cmocka_unit_test(strings_and_handles_survive),
        cmocka_unit_test(the_last_value_repeats_and_none_is_zero), cmocka_unit_test(lengths_that_do_not_fit_are_errors),
        cmocka_unit_test(a_few_bytes_never_ask_for_terabytes), cmocka_unit_test(variants_nested_without_end_are_refused),
        cmocka_unit_test(damaged_bytes_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
