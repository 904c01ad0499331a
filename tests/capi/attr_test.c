/* attr_test.c: attributes of every kind, set and read back. Attributes whose names start with an underscore are of any kind. */
#include "capi_test.h"

typedef struct Fixture {
    TF_Status *s;
    TF_Graph *g;
    TF_OperationDescription *d;
} Fixture;

static Fixture start(void) {
    Fixture f = {TF_NewStatus(), TF_NewGraph(), NULL};
    f.d = TF_NewOperation(f.g, "NoOp", "node");
    return f;
}

static TF_Operation *finish(Fixture *f) {
    TF_Operation *op = TF_FinishOperation(f->d, f->s);
    expect_ok(f->s);
    return op;
}

static void end(Fixture *f) {
    TF_DeleteGraph(f->g);
    TF_DeleteStatus(f->s);
}

static void expect_metadata(TF_Operation *op, const char *name, int is_list, int64_t list_size, TF_AttrType type, int64_t total_size, TF_Status *s) {
    TF_AttrMetadata m = TF_OperationGetAttrMetadata(op, name, s);
    expect_ok(s);
    assert_int_equal(m.is_list, is_list);
    if (is_list) assert_int_equal(m.list_size, list_size);
    assert_int_equal(m.type, type);
    if (total_size != -2) assert_int_equal(m.total_size, total_size);
}

static void strings(void **state) {
    (void)state;
    Fixture f = start();
    const void *items[] = {"bugs", "bunny", ""};
    TF_SetAttrString(f.d, "_s", "bunny", 5);
    TF_SetAttrStringList(f.d, "_l", items, (size_t[]){4, 5, 0}, 3);
    TF_Operation *op = finish(&f);
    expect_metadata(op, "_s", 0, 0, TF_ATTR_STRING, 5, f.s);
    expect_metadata(op, "_l", 1, 3, TF_ATTR_STRING, 9, f.s);
    char text[6] = {0};
    TF_OperationGetAttrString(op, "_s", text, 3, f.s);
    expect_ok(f.s);
    assert_string_equal(text, "bun");
    TF_OperationGetAttrString(op, "_s", text, 5, f.s);
    assert_string_equal(text, "bunny");
    void *values[3];
    size_t lengths[3];
    char storage[9];
    TF_OperationGetAttrStringList(op, "_l", values, lengths, 3, storage, 9, f.s);
    expect_ok(f.s);
    assert_int_equal(lengths[1], 5);
    assert_memory_equal(values[1], "bunny", 5);
    assert_int_equal(lengths[2], 0);
    TF_OperationGetAttrStringList(op, "_l", values, lengths, 3, storage, 8, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, "Not enough storage");
    TF_SetStatus(f.s, TF_OK, "");
    TF_OperationGetAttrStringList(op, "_s", values, lengths, 3, storage, 9, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, "is not a list");
    TF_OperationGetAttrString(op, "none", text, 5, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, "has no attr named 'none'");
    end(&f);
}

static void ints(void **state) {
    (void)state;
    Fixture f = start();
    TF_SetAttrInt(f.d, "_i", -31415);
    TF_SetAttrIntList(f.d, "_l", (int64_t[]){1, -2, INT64_MAX}, 3);
    TF_Operation *op = finish(&f);
    expect_metadata(op, "_i", 0, 0, TF_ATTR_INT, -2, f.s);
    expect_metadata(op, "_l", 1, 3, TF_ATTR_INT, -2, f.s);
    int64_t v = 0, l[3] = {0};
    TF_OperationGetAttrInt(op, "_i", &v, f.s);
    expect_ok(f.s);
    assert_int_equal(v, -31415);
    TF_OperationGetAttrIntList(op, "_l", l, 3, f.s);
    expect_ok(f.s);
    assert_true(l[1] == -2 && l[2] == INT64_MAX);
    l[1] = 7;
    TF_OperationGetAttrIntList(op, "_l", l, 1, f.s);
    assert_int_equal(l[1], 7);
    TF_OperationGetAttrInt(op, "_l", &v, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, NULL);
    end(&f);
}

static void floats(void **state) {
    (void)state;
    Fixture f = start();
    TF_SetAttrFloat(f.d, "_f", 2.718f);
    TF_SetAttrFloatList(f.d, "_l", (float[]){1.5f, -2}, 2);
    TF_Operation *op = finish(&f);
    expect_metadata(op, "_f", 0, 0, TF_ATTR_FLOAT, -2, f.s);
    expect_metadata(op, "_l", 1, 2, TF_ATTR_FLOAT, -2, f.s);
    float v = 0, l[2] = {0};
    TF_OperationGetAttrFloat(op, "_f", &v, f.s);
    expect_ok(f.s);
    assert_true(v == 2.718f);
    TF_OperationGetAttrFloatList(op, "_l", l, 2, f.s);
    expect_ok(f.s);
    assert_true(l[0] == 1.5f && l[1] == -2);
    TF_OperationGetAttrInt(op, "_f", &(int64_t){0}, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, "when 'int' expected");
    end(&f);
}

static void bools(void **state) {
    (void)state;
    Fixture f = start();
    TF_SetAttrBool(f.d, "_b", 1);
    TF_SetAttrBoolList(f.d, "_l", (unsigned char[]){0, 1, 1}, 3);
    TF_Operation *op = finish(&f);
    expect_metadata(op, "_b", 0, 0, TF_ATTR_BOOL, -2, f.s);
    expect_metadata(op, "_l", 1, 3, TF_ATTR_BOOL, -2, f.s);
    unsigned char v = 0, l[3] = {9, 9, 9};
    TF_OperationGetAttrBool(op, "_b", &v, f.s);
    expect_ok(f.s);
    assert_int_equal(v, 1);
    TF_OperationGetAttrBoolList(op, "_l", l, 3, f.s);
    expect_ok(f.s);
    assert_true(l[0] == 0 && l[1] == 1 && l[2] == 1);
    end(&f);
}

static void types(void **state) {
    (void)state;
    Fixture f = start();
    TF_SetAttrType(f.d, "_t", TF_COMPLEX128);
    TF_SetAttrTypeList(f.d, "_l", (TF_DataType[]){TF_FLOAT, TF_STRING}, 2);
    TF_Operation *op = finish(&f);
    expect_metadata(op, "_t", 0, 0, TF_ATTR_TYPE, -2, f.s);
    expect_metadata(op, "_l", 1, 2, TF_ATTR_TYPE, -2, f.s);
    TF_DataType v = 0, l[2] = {0};
    TF_OperationGetAttrType(op, "_t", &v, f.s);
    expect_ok(f.s);
    assert_int_equal(v, TF_COMPLEX128);
    TF_OperationGetAttrTypeList(op, "_l", l, 2, f.s);
    expect_ok(f.s);
    assert_true(l[0] == TF_FLOAT && l[1] == TF_STRING);
    end(&f);
}

static void shapes(void **state) {
    (void)state;
    Fixture f = start();
    TF_SetAttrShape(f.d, "_unknown", NULL, -1);
    TF_SetAttrShape(f.d, "_scalar", NULL, 0);
    TF_SetAttrShape(f.d, "_partial", (int64_t[]){17, -1}, 2);
    const int64_t *dims[] = {(int64_t[]){1, 2, 3}, NULL, (int64_t[]){-1}};
    TF_SetAttrShapeList(f.d, "_l", dims, (int[]){3, -1, 1}, 3);
    TF_Operation *op = finish(&f);
    expect_metadata(op, "_unknown", 0, 0, TF_ATTR_SHAPE, -1, f.s);
    expect_metadata(op, "_scalar", 0, 0, TF_ATTR_SHAPE, 0, f.s);
    expect_metadata(op, "_partial", 0, 0, TF_ATTR_SHAPE, 2, f.s);
    expect_metadata(op, "_l", 1, 3, TF_ATTR_SHAPE, 4, f.s);
    int64_t v[2] = {0}, storage[4], *lists[3];
    int ranks[3];
    TF_OperationGetAttrShape(op, "_partial", v, 2, f.s);
    expect_ok(f.s);
    assert_true(v[0] == 17 && v[1] == -1);
    TF_OperationGetAttrShapeList(op, "_l", lists, ranks, 3, storage, 4, f.s);
    expect_ok(f.s);
    assert_true(ranks[0] == 3 && ranks[1] == -1 && ranks[2] == 1);
    assert_true(lists[0][2] == 3 && lists[2][0] == -1);
    TF_OperationGetAttrShapeList(op, "_l", lists, ranks, 3, storage, 3, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, "Not enough storage");
    end(&f);
}

static void shapes_as_messages(void **state) {
    (void)state;
    Fixture f = start();
    const void *protos[] = {"\x12\x02\x08\x02", "\x18\x01"}; /* [2], unknown rank */
    TF_SetAttrTensorShapeProto(f.d, "_s", protos[0], 4, f.s);
    expect_ok(f.s);
    TF_SetAttrTensorShapeProtoList(f.d, "_l", protos, (size_t[]){4, 2}, 2, f.s);
    expect_ok(f.s);
    TF_SetAttrTensorShapeProto(f.d, "_bad", "\x0f", 1, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, "TensorShapeProto");
    TF_Operation *op = finish(&f);
    TF_Buffer *b = TF_NewBuffer();
    TF_OperationGetAttrTensorShapeProto(op, "_s", b, f.s);
    expect_ok(f.s);
    assert_int_equal(b->length, 4);
    assert_memory_equal(b->data, protos[0], 4);
    TF_DeleteBuffer(b);
    TF_Buffer *list[2];
    TF_OperationGetAttrTensorShapeProtoList(op, "_l", list, 2, f.s);
    expect_ok(f.s);
    assert_memory_equal(list[0]->data, protos[0], 4);
    assert_memory_equal(list[1]->data, protos[1], 2);
    TF_DeleteBuffer(list[0]);
    TF_DeleteBuffer(list[1]);
    end(&f);
}

static void tensors(void **state) {
    (void)state;
    Fixture f = start();
    TF_Tensor *values[] = {int32_vector((int32_t[]){1, 2}, 2), string_tensor("text")};
    TF_SetAttrTensor(f.d, "_t", values[0], f.s);
    expect_ok(f.s);
    TF_SetAttrTensorList(f.d, "_l", values, 2, f.s);
    expect_ok(f.s);
    TF_DeleteTensor(values[0]);
    TF_DeleteTensor(values[1]);
    TF_Operation *op = finish(&f);
    expect_metadata(op, "_t", 0, 0, TF_ATTR_TENSOR, -2, f.s);
    expect_metadata(op, "_l", 1, 2, TF_ATTR_TENSOR, -2, f.s);
    TF_Tensor *t = NULL;
    TF_OperationGetAttrTensor(op, "_t", &t, f.s);
    expect_ok(f.s);
    assert_int_equal(((int32_t *)TF_TensorData(t))[1], 2);
    TF_DeleteTensor(t);
    TF_OperationGetAttrTensorList(op, "_l", values, 2, f.s);
    expect_ok(f.s);
    assert_int_equal(TF_TensorType(values[1]), TF_STRING);
    assert_memory_equal(TF_StringGetDataPointer(TF_TensorData(values[1])), "text", 4);
    TF_DeleteTensor(values[0]);
    TF_DeleteTensor(values[1]);
    end(&f);
}

static void functions_placeholders_and_messages(void **state) {
    (void)state;
    Fixture f = start();
    TF_SetAttrFuncName(f.d, "_f", "MyFunction", 10);
    TF_SetAttrPlaceholder(f.d, "_p", "T");
    TF_SetAttrValueProto(f.d, "_v", "\x18\x05", 2, f.s); /* i: 5 */
    expect_ok(f.s);
    TF_SetAttrValueProto(f.d, "_bad", "\x0f", 1, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, "AttrValue");
    TF_Operation *op = finish(&f);
    expect_metadata(op, "_f", 0, 0, TF_ATTR_FUNC, -2, f.s);
    expect_metadata(op, "_p", 0, 0, TF_ATTR_PLACEHOLDER, -2, f.s);
    int64_t v = 0;
    TF_OperationGetAttrInt(op, "_v", &v, f.s);
    assert_int_equal(v, 5);
    TF_Buffer *b = TF_NewBuffer();
    TF_OperationGetAttrValueProto(op, "_f", b, f.s);
    expect_ok(f.s);
    assert_int_equal(b->length, 14);
    assert_memory_equal((const char *)b->data + 4, "MyFunction", 10);
    TF_DeleteBuffer(b);
    end(&f);
}

static void attributes_can_be_counted_and_named(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "a", TF_FLOAT, s);
    TF_OperationDescription *d = TF_NewOperation(g, "MatMul", "m");
    TF_AddInput(d, out(a));
    TF_AddInput(d, out(a));
    TF_SetAttrBool(d, "transpose_b", 1);
    TF_Operation *op = TF_FinishOperation(d, s);
    expect_ok(s);
    /* Defaults are among them. */
    int n = TF_OperationGetNumAttrs(op), found = 0;
    assert_true(n >= 3);
    for (int i = 0; i < n; i++) {
        char name[64] = {0};
        assert_true(TF_OperationGetAttrNameLength(op, i) < 64);
        TF_OperationGetAttrName(op, i, name, s);
        expect_ok(s);
        found += !strcmp(name, "T") || !strcmp(name, "transpose_a") || !strcmp(name, "transpose_b");
    }
    assert_int_equal(found, 3);
    TF_OperationGetAttrName(op, n, (char[64]){0}, s);
    expect_code(s, TF_OUT_OF_RANGE, NULL);
    unsigned char v = 9;
    TF_OperationGetAttrBool(op, "transpose_a", &v, s);
    expect_ok(s);
    assert_int_equal(v, 0);
    TF_OperationGetAttrBool(op, "transpose_b", &v, s);
    assert_int_equal(v, 1);
    TF_DataType t = 0;
    TF_OperationGetAttrType(op, "T", &t, s); /* from the inputs */
    assert_int_equal(t, TF_FLOAT);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void empty_lists_have_the_kind_the_op_says(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "a", TF_FLOAT, s);
    TF_OperationDescription *d = TF_NewOperation(g, "Squeeze", "squeeze");
    TF_AddInput(d, out(a));
    TF_SetAttrIntList(d, "squeeze_dims", NULL, 0);
    TF_Operation *op = TF_FinishOperation(d, s);
    expect_ok(s);
    expect_metadata(op, "squeeze_dims", 1, 0, TF_ATTR_INT, -2, s);
    TF_OperationGetAttrIntList(op, "squeeze_dims", NULL, 0, s);
    expect_ok(s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void attributes_can_be_changed(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "a", TF_FLOAT, s);
    TF_Buffer *value = TF_NewBufferFromString("\x18\x07", 2); /* i: 7 */
    TF_SetAttr(g, a, "_extra", value, s);
    expect_ok(s);
    int64_t v = 0;
    TF_OperationGetAttrInt(a, "_extra", &v, s);
    expect_ok(s);
    assert_int_equal(v, 7);
    TF_ClearAttr(g, a, "_extra", s);
    expect_ok(s);
    TF_OperationGetAttrInt(a, "_extra", &v, s);
    expect_code(s, TF_NOT_FOUND, "_extra");
    TF_DeleteBuffer(value);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings),
        cmocka_unit_test(ints),
        cmocka_unit_test(floats),
        cmocka_unit_test(bools),
        cmocka_unit_test(types),
        cmocka_unit_test(shapes),
        cmocka_unit_test(shapes_as_messages),
        cmocka_unit_test(tensors),
        cmocka_unit_test(functions_placeholders_and_messages),
        cmocka_unit_test(attributes_can_be_counted_and_named),
        cmocka_unit_test(empty_lists_have_the_kind_the_op_says),
        cmocka_unit_test(attributes_can_be_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
