/* implementation_test.c: which of several functions with the same purpose is chosen for a device. */
#include "base/memory.h"
#include "graph/function.h"
#include "proto/wire.h"
#include "unit_test.h"

static void put_string_attr(StrBuf *def, const char *name, const char *text) {
    StrBuf entry = {0}, value = {0};
    wire_put_bytes(&value, 2, str_of(text)); /* AttrValue.s */
    wire_put_bytes(&entry, 1, str_of(name));
    wire_put_bytes(&entry, 2, strbuf_str(&value));
    wire_put_bytes(def, 5, strbuf_str(&entry));
    strbuf_clear(&entry);
    strbuf_clear(&value);
}

static void put_arg(StrBuf *signature, uint32_t field, const char *name, DataType type) {
    StrBuf arg = {0};
    wire_put_bytes(&arg, 1, str_of(name));
    wire_put_uint(&arg, 3, type);
    wire_put_bytes(signature, field, strbuf_str(&arg));
    strbuf_clear(&arg);
}

/* A function of one argument and one result; texts that are NULL are left out. */
static void add(FunctionLibrary *lib, const char *name, DataType result, const char *implements, const char *device, const char *backward) {
    StrBuf library = {0}, def = {0}, signature = {0};
    wire_put_bytes(&signature, 1, str_of(name));
    put_arg(&signature, 2, "x", DT_FLOAT);
    put_arg(&signature, 3, "y", result);
    wire_put_bytes(&def, 1, strbuf_str(&signature));
    if (implements) put_string_attr(&def, "api_implements", implements);
    if (device) put_string_attr(&def, "api_preferred_device", device);
    if (backward) put_string_attr(&def, "backward_function_name", backward);
    wire_put_bytes(&library, 1, strbuf_str(&def));
    assert_null(function_library_add(lib, strbuf_str(&library)));
    strbuf_clear(&library);
    strbuf_clear(&def);
    strbuf_clear(&signature);
}

static void expect_choice(const FunctionLibrary *lib, const char *called, const char *device, const char *chosen) {
    const Function *f = function_implementation(lib, function_find(lib, str_of(called)), str_of(device));
    assert_true(str_is(f->name, chosen));
}

static void the_one_for_the_device_is_chosen(void **state) {
    (void)state;
    FunctionLibrary *lib = function_library_new();
    add(lib, "plain", DT_FLOAT, NULL, NULL, NULL);
    add(lib, "general", DT_FLOAT, "sum", NULL, NULL);
    add(lib, "other_result", DT_INT32, "sum", "CPU", NULL);
    add(lib, "forward", DT_FLOAT, "sum", "CPU", "backward");
    add(lib, "other_purpose", DT_FLOAT, "product", "CPU", NULL);
    add(lib, "for_cpu", DT_FLOAT, "sum", "CPU", NULL);
    add(lib, "for_gpu", DT_FLOAT, "sum", "GPU", NULL);
    expect_choice(lib, "general", "CPU", "for_cpu");
    expect_choice(lib, "general", "cpu", "for_cpu");
    expect_choice(lib, "general", "GPU", "for_gpu");
    expect_choice(lib, "for_gpu", "CPU", "for_cpu");
    expect_choice(lib, "general", "TPU", "general");
    expect_choice(lib, "forward", "GPU", "forward");
    expect_choice(lib, "plain", "CPU", "plain");
    expect_choice(lib, "other_purpose", "GPU", "other_purpose");
    function_library_free(lib);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_one_for_the_device_is_chosen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
