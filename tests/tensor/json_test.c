/* json_test.c: values as JSON and back, numbers of every dtype. */
#include "tensor/json.h"

#include <stdlib.h>

#include "tensor/number.h"
#include "unit_test.h"

static Tensor *parsed(const char *text, DataType dtype) {
    Tensor *t = NULL;
    expect_ok(json_parse_tensor(str_of(text), dtype, &t));
    return t;
}

/* What is printed of a text of that dtype. */
static void expect_json(const char *text, DataType dtype, const char *want) {
    Tensor *t = parsed(text, dtype);
    StrBuf out = {0};
    json_print_tensor(&out, t);
    expect_str(strbuf_str(&out), want);
    strbuf_clear(&out);
    tensor_unref(t);
}

static void numbers_are_exact(void **state) {
    (void)state;
    expect_json("[9223372036854775807, -9223372036854775808]", DT_INT64, "[9223372036854775807, -9223372036854775808]");
    expect_json("18446744073709551615", DT_UINT64, "18446744073709551615");
    expect_json("[0.1, 16777217, 1e-45, -0]", DT_FLOAT, "[0.1, 16777216, 1.4013e-45, -0]");
    expect_json("[0.1, 0.30000000000000004]", DT_DOUBLE, "[0.1, 0.30000000000000004]");
    expect_json("[\"NaN\", inf, -Infinity]", DT_DOUBLE, "[\"NaN\", \"Infinity\", \"-Infinity\"]");
    expect_json("[0.1, 65504]", DT_HALF, "[0.0999755859, 65504]");
    expect_json("[0.1]", DT_BFLOAT16, "[0.100097656]");
    expect_json("[1-2j, 3, -4j, \"0.1+0.1j\"]", DT_COMPLEX64, "[\"1-2j\", \"3+0j\", \"0-4j\", \"0.1+0.1j\"]");
    expect_json("[true, false, 1]", DT_BOOL, "[true, false, true]");
    expect_json("[-8, 7]", DT_INT4, "[-8, 7]");
    expect_json("0xff", DT_UINT8, "255");
    expect_json("1e3", DT_INT32, "1000");
}

static void shapes_are_nested_lists(void **state) {
    (void)state;
    expect_json("[[[1], [2]], [[3], [4]]]", DT_INT32, "[[[1], [2]], [[3], [4]]]");
    expect_json("[]", DT_FLOAT, "[]");
    expect_json("[[], []]", DT_FLOAT, "[[], []]");
    Tensor *t = parsed("[[], []]", DT_FLOAT);
    assert_true(t->shape.rank == 2 && t->shape.dims[0] == 2 && t->shape.dims[1] == 0);
    tensor_unref(t);
}

static void strings_keep_their_bytes(void **state) {
    (void)state;
    expect_json("plain, with a comma", DT_STRING, "\"plain, with a comma\"");
    expect_json("[a, \"b\\n\\u00e9\\ud83d\\ude00\", {\"b64\": \"/wA=\"}]", DT_STRING,
                "[\"a\", \"b\\n\xc3\xa9\xf0\x9f\x98\x80\", {\"b64\": \"/wA=\"}]");
    expect_json("\"\\\"\\\\\\u0001\"", DT_STRING, "\"\\\"\\\\\\u0001\"");
    expect_json("", DT_STRING, "\"\"");
    expect_json("{\"b64\": \"//8\"}", DT_STRING, "{\"b64\": \"//8=\"}");
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        DataType dtype;
    } rows[] = {
        {"256", DT_UINT8},      {"-1", DT_UINT32},   {"128", DT_INT8},  {"9223372036854775808", DT_INT64},
        {"1.5", DT_INT32},      {"2", DT_BOOL},      {"8", DT_INT4},    {"1j", DT_FLOAT},
        {"18446744073709551616", DT_UINT64},         {"x", DT_FLOAT},   {"", DT_INT32},
        {"[1", DT_INT32},       {"[1, [2]]", DT_INT32}, {"[[1], [2, 3]]", DT_INT32}, {"[[1], 2]", DT_INT32},
        {"1 2", DT_INT32},      {"\"a", DT_STRING},  {"{\"b64\": 1}", DT_STRING}, {"1", DT_RESOURCE}, {"1", DT_FLOAT8_E5M2},
        {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", DT_INT32}, {"\"\\u12\"", DT_STRING}, {"[,]", DT_INT32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Tensor *t = NULL;
        Error *err = json_parse_tensor(str_of(rows[i].text), rows[i].dtype, &t);
        if (!err) print_message("accepted: %s\n", rows[i].text);
        expect_error(err, CODE_INVALID_ARGUMENT, NULL);
    }
}

static void expect_float8(DataType dtype, uint8_t bits, const char *want) {
    Tensor t = {.dtype = dtype, .count = 1, .data = &bits};
    StrBuf out = {0};
    json_print_tensor(&out, &t);
    expect_str(strbuf_str(&out), want);
    strbuf_clear(&out);
}

/* Values from ml_dtypes 0.5. */
static void small_floats_have_their_values(void **state) {
    (void)state;
    expect_float8(DT_FLOAT8_E5M2, 0x3c, "1");
    expect_float8(DT_FLOAT8_E5M2, 0x7b, "57344");
    expect_float8(DT_FLOAT8_E5M2, 0xfc, "\"-Infinity\"");
    expect_float8(DT_FLOAT8_E5M2, 0x01, "1.52587891e-05");
    expect_float8(DT_FLOAT8_E4M3FN, 0x38, "1");
    expect_float8(DT_FLOAT8_E4M3FN, 0x7e, "448");
    expect_float8(DT_FLOAT8_E4M3FN, 0x7f, "\"NaN\"");
    expect_float8(DT_FLOAT8_E4M3FNUZ, 0x40, "1");
    expect_float8(DT_FLOAT8_E4M3FNUZ, 0x80, "\"NaN\"");
    expect_float8(DT_FLOAT8_E4M3B11FNUZ, 0x7f, "30");
    expect_float8(DT_FLOAT8_E5M2FNUZ, 0x7f, "57344");
    expect_float8(DT_FLOAT4_E2M1FN, 0x07, "6");
    expect_float8(DT_FLOAT4_E2M1FN, 0x09, "-0.5");
}

static void numbers_are_converted_or_refused(void **state) {
    (void)state;
    Tensor *t = parsed("[1, 2.5]", DT_DOUBLE), *out = NULL;
    expect_ok(number_convert(t, DT_HALF, &out));
    assert_true(number_real(out, 1) == 2.5);
    tensor_unref(out);
    expect_error(number_convert(t, DT_INT32, &out), CODE_INVALID_ARGUMENT, "element 1, 2.5");
    expect_error(number_convert(t, DT_STRING, &out), CODE_INVALID_ARGUMENT, "string");
    tensor_unref(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(shapes_are_nested_lists),
        cmocka_unit_test(strings_keep_their_bytes),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(small_floats_have_their_values),
        cmocka_unit_test(numbers_are_converted_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
