/* tensor_test.c: statuses, buffers, strings and tensors of the C API. */
#include <errno.h>

#include "capi_test.h"

static void a_status_keeps_code_and_text(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    assert_int_equal(TF_GetCode(s), TF_OK);
    assert_string_equal(TF_Message(s), "");
    TF_SetStatus(s, TF_CANCELLED, "cancel");
    expect_code(s, TF_CANCELLED, "cancel");
    TF_SetStatus(s, TF_OK, "ignored");
    assert_int_equal(TF_GetCode(s), TF_OK);
    assert_string_equal(TF_Message(s), "");
    TF_SetStatusFromIOError(s, ENOENT, "the file");
    expect_code(s, TF_NOT_FOUND, "the file");
    TF_SetStatusFromIOError(s, EACCES, "x");
    expect_code(s, TF_PERMISSION_DENIED, NULL);
    TF_DeleteStatus(s);
}

static void collect(const char *key, const char *value, void *capture) {
    char *text = capture;
    sprintf(text + strlen(text), "%s=%s;", key, value);
}

static void an_error_carries_payloads(void **state) {
    (void)state;
    char text[256] = "";
    TF_Status *s = TF_NewStatus();
    TF_SetPayload(s, "none", "of it"); /* TF_OK has none */
    TF_ForEachPayload(s, collect, text);
    assert_string_equal(text, "");
    TF_SetStatus(s, TF_INTERNAL, "x");
    TF_SetPayload(s, "a", "1");
    TF_SetPayload(s, "a", "2");
    TF_ForEachPayload(s, collect, text);
    assert_string_equal(text, "a=2;");
    TF_SetStatus(s, TF_INTERNAL, "y");
    text[0] = 0;
    TF_ForEachPayload(s, collect, text);
    assert_string_equal(text, "");
    TF_DeleteStatus(s);
}

static void a_buffer_copies_and_releases(void **state) {
    (void)state;
    char bytes[] = "abc";
    TF_Buffer *b = TF_NewBufferFromString(bytes, 3);
    bytes[0] = 'x';
    TF_Buffer view = TF_GetBuffer(b);
    assert_int_equal(view.length, 3);
    assert_memory_equal(view.data, "abc", 3);
    TF_DeleteBuffer(b);
    b = TF_NewBuffer();
    assert_null(b->data);
    assert_int_equal(b->length, 0);
    assert_null(b->data_deallocator);
    TF_DeleteBuffer(b);
}

static void sizes_of_types(void **state) {
    (void)state;
    assert_int_equal(TF_DataTypeSize(TF_FLOAT), 4);
    assert_int_equal(TF_DataTypeSize(TF_DOUBLE), 8);
    assert_int_equal(TF_DataTypeSize(TF_BOOL), 1);
    assert_int_equal(TF_DataTypeSize(TF_HALF), 2);
    assert_int_equal(TF_DataTypeSize(TF_BFLOAT16), 2);
    assert_int_equal(TF_DataTypeSize(TF_COMPLEX64), 8);
    assert_int_equal(TF_DataTypeSize(TF_COMPLEX128), 16);
    assert_int_equal(TF_DataTypeSize(TF_UINT64), 8);
    assert_int_equal(TF_DataTypeSize(TF_STRING), 0);
    assert_int_equal(TF_DataTypeSize(TF_VARIANT), 0);
    assert_true(strncmp(TF_Version(), "2.", 2) == 0);
}

static void note_release(void *data, size_t len, void *arg) {
    (void)data;
    *(size_t *)arg += len;
}

static void memory_of_the_caller_is_given_back(void **state) {
    (void)state;
    size_t released = 0;
    float *values = aligned_alloc(64, 64);
    values[5] = 7;
    int64_t dims[] = {2, 3};
    TF_Tensor *t = TF_NewTensor(TF_FLOAT, dims, 2, values, 6 * sizeof(float), note_release, &released);
    assert_non_null(t);
    assert_int_equal(TF_TensorType(t), TF_FLOAT);
    assert_int_equal(TF_NumDims(t), 2);
    assert_int_equal(TF_Dim(t, 0), 2);
    assert_int_equal(TF_Dim(t, 1), 3);
    assert_int_equal(TF_TensorByteSize(t), 24);
    assert_int_equal(TF_TensorElementCount(t), 6);
    assert_true(TF_TensorIsAligned(t));
    assert_ptr_equal(TF_TensorData(t), values); /* aligned: not copied */
    assert_null(TF_TensorMaybeMove(t));         /* not the library's own memory */
    assert_int_equal(released, 0);
    TF_DeleteTensor(t);
    assert_int_equal(released, 24);
    free(values);
}

static void memory_that_is_not_aligned_is_copied(void **state) {
    (void)state;
    size_t released = 0;
    char *memory = aligned_alloc(64, 128);
    float *values = (float *)(memory + 4);
    values[0] = 3.5f;
    int64_t dims[] = {2};
    values[1] = 4.5f;
    TF_Tensor *t = TF_NewTensor(TF_FLOAT, dims, 1, values, 8, note_release, &released);
    assert_int_equal(released, 8);
    assert_ptr_not_equal(TF_TensorData(t), values);
    assert_true(((float *)TF_TensorData(t))[1] == 4.5f);
    TF_DeleteTensor(t);
    assert_int_equal(released, 8);
    free(memory);
}

static void memory_too_small_for_the_shape_makes_no_tensor(void **state) {
    (void)state;
    size_t released = 0;
    int64_t dims[] = {4};
    float *values = aligned_alloc(64, 64);
    assert_null(TF_NewTensor(TF_FLOAT, dims, 1, values, 12, note_release, &released));
    assert_int_equal(released, 12);
    free(values);
}

static void allocated_tensors_are_aligned_and_move(void **state) {
    (void)state;
    int64_t dims[] = {3};
    TF_Tensor *t = TF_AllocateTensor(TF_INT32, dims, 1, 12);
    assert_true(TF_TensorIsAligned(t));
    assert_true(TF_TensorDefaultAlignment() >= 16);
    assert_int_equal((uintptr_t)TF_TensorData(t) % TF_TensorDefaultAlignment(), 0);
    memcpy(TF_TensorData(t), (int32_t[]){1, 2, 3}, 12);
    TF_Tensor *moved = TF_TensorMaybeMove(t);
    assert_non_null(moved);
    assert_int_equal(((int32_t *)TF_TensorData(moved))[2], 3);
    TF_DeleteTensor(moved);
    TF_DeleteTensor(NULL);
}

static void a_tensor_without_elements(void **state) {
    (void)state;
    int64_t dims[] = {0, 5};
    TF_Tensor *t = TF_AllocateTensor(TF_DOUBLE, dims, 2, 0);
    assert_non_null(t);
    assert_int_equal(TF_TensorElementCount(t), 0);
    assert_int_equal(TF_TensorByteSize(t), 0);
    TF_DeleteTensor(t);
}

static void a_shape_can_be_replaced(void **state) {
    (void)state;
    TF_Tensor *t = float_matrix((float[]){1, 2, 3, 4, 5, 6}, 2, 3);
    TF_SetShape(t, (int64_t[]){6}, 1);
    assert_int_equal(TF_NumDims(t), 1);
    assert_int_equal(TF_Dim(t, 0), 6);
    TF_DeleteTensor(t);
}

static void bitcast_shares_the_memory(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Tensor *a = int32_vector((int32_t[]){1, 2, 3, 4}, 4);
    TF_Tensor *b = float_tensor(0);
    TF_TensorBitcastFrom(a, TF_UINT8, b, (int64_t[]){4, 4}, 2, s);
    expect_ok(s);
    assert_int_equal(TF_TensorType(b), TF_UINT8);
    assert_ptr_equal(TF_TensorData(a), TF_TensorData(b));
    assert_int_equal(((uint8_t *)TF_TensorData(b))[4], 2);
    TF_TensorBitcastFrom(a, TF_UINT8, b, (int64_t[]){4, 3}, 2, s);
    expect_code(s, TF_INVALID_ARGUMENT, NULL);
    TF_DeleteTensor(a);
    assert_int_equal(((uint8_t *)TF_TensorData(b))[8], 3); /* the memory lives on */
    TF_DeleteTensor(b);
    TF_DeleteStatus(s);
}

static void a_tensor_from_a_message(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    /* dtype: DT_INT32, shape [2], int_val: 5 and 6 */
    static const unsigned char proto[] = {0x08, 3, 0x12, 4, 0x12, 2, 0x08, 2, 0x3a, 2, 5, 6};
    TF_Buffer *b = TF_NewBufferFromString(proto, sizeof proto);
    TF_Tensor *t = float_tensor(0);
    TF_TensorFromProto(b, t, s);
    expect_ok(s);
    assert_int_equal(TF_TensorType(t), TF_INT32);
    assert_int_equal(TF_TensorElementCount(t), 2);
    assert_int_equal(((int32_t *)TF_TensorData(t))[1], 6);
    TF_DeleteBuffer(b);
    TF_DeleteTensor(t);
    TF_DeleteStatus(s);
}

static void check_string(const TF_TString *s, const char *text, TF_TString_Type type) {
    assert_int_equal(TF_StringGetSize(s), strlen(text));
    assert_memory_equal(TF_StringGetDataPointer(s), text, strlen(text));
    assert_int_equal(TF_StringGetType(s), type);
}

static void strings_have_four_forms(void **state) {
    (void)state;
    const char *longer = "a string that does not fit into twenty-two bytes";
    TF_TString s;
    assert_int_equal(sizeof s, 24);
    TF_StringInit(&s);
    check_string(&s, "", TF_TSTR_SMALL);
    TF_StringCopy(&s, "a", 1);
    check_string(&s, "a", TF_TSTR_SMALL);
    TF_StringCopy(&s, "exactly twenty-two lng", 22);
    check_string(&s, "exactly twenty-two lng", TF_TSTR_SMALL);
    assert_int_equal(TF_StringGetCapacity(&s), 22);
    TF_StringCopy(&s, longer, strlen(longer));
    check_string(&s, longer, TF_TSTR_LARGE);
    assert_true(TF_StringGetCapacity(&s) >= strlen(longer));
    TF_StringAssignView(&s, longer, 8);
    check_string(&s, "a string", TF_TSTR_VIEW);
    assert_ptr_equal(TF_StringGetDataPointer(&s), longer);
    TF_StringDealloc(&s);
}

static void inline_strings_agree_with_the_library(void **state) {
    (void)state;
    const char *longer = "0123456789012345678901234567890123456789";
    TF_TString a, b;
    TF_TString_Init(&a);
    TF_TString_Init(&b);
    TF_TString_Copy(&a, longer, 40);
    check_string(&a, longer, TF_TSTR_LARGE);
    TF_TString_Assign(&b, &a);
    TF_TString_Append(&b, &a);
    assert_int_equal(TF_StringGetSize(&b), 80);
    assert_memory_equal(TF_StringGetDataPointer(&b) + 40, longer, 40);
    TF_TString_Resize(&b, 3, 'x');
    check_string(&b, "012", TF_TSTR_SMALL);
    TF_TString_Resize(&b, 5, 'x');
    check_string(&b, "012xx", TF_TSTR_SMALL);
    TF_TString_Move(&b, &a);
    check_string(&b, longer, TF_TSTR_LARGE);
    check_string(&a, "", TF_TSTR_SMALL);
    TF_TString_AssignView(&a, longer, 30);
    TF_TString_GetMutableDataPointer(&a)[0] = 'y';
    assert_int_equal(longer[0], '0');
    assert_int_equal(TF_TString_GetDataPointer(&a)[0], 'y');
    TF_TString_Dealloc(&a);
    TF_TString_Dealloc(&b);
}

static void a_tensor_of_strings(void **state) {
    (void)state;
    int64_t dims[] = {2};
    TF_Tensor *t = TF_AllocateTensor(TF_STRING, dims, 1, 2 * sizeof(TF_TString));
    TF_TString *items = TF_TensorData(t);
    TF_StringInit(&items[0]);
    TF_StringInit(&items[1]);
    TF_StringCopy(&items[1], "second", 6);
    assert_int_equal(TF_TensorByteSize(t), 48);
    check_string(&items[1], "second", TF_TSTR_SMALL);
    TF_StringDealloc(&items[0]);
    TF_StringDealloc(&items[1]);
    TF_DeleteTensor(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_keeps_code_and_text),
        cmocka_unit_test(an_error_carries_payloads),
        cmocka_unit_test(a_buffer_copies_and_releases),
        cmocka_unit_test(sizes_of_types),
        cmocka_unit_test(memory_of_the_caller_is_given_back),
        cmocka_unit_test(memory_that_is_not_aligned_is_copied),
        cmocka_unit_test(memory_too_small_for_the_shape_makes_no_tensor),
        cmocka_unit_test(allocated_tensors_are_aligned_and_move),
        cmocka_unit_test(a_tensor_without_elements),
        cmocka_unit_test(a_shape_can_be_replaced),
        cmocka_unit_test(bitcast_shares_the_memory),
        cmocka_unit_test(a_tensor_from_a_message),
        cmocka_unit_test(strings_have_four_forms),
        cmocka_unit_test(inline_strings_agree_with_the_library),
        cmocka_unit_test(a_tensor_of_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
