/* experimental_test.c: what of TensorFlow's experimental C API is there: checkpoints read, configurations made, ops asked. */
#include "tensorflow/c/c_api_experimental.h"

#include "capi_test.h"

static void a_checkpoint_is_read(void **state) {
    (void)state;
    const char *folder = getenv("CAPI_MODELS");
    char prefix[1024];
    snprintf(prefix, sizeof prefix, "%s/v1/variables/variables", folder ? folder : "tests/capi/models");
    TF_Status *s = TF_NewStatus();
    TF_CheckpointReader *r = TF_NewCheckpointReader(prefix, s);
    expect_ok(s);
    assert_int_equal(TF_CheckpointReaderSize(r), 2);
    int found = 0;
    for (int i = 0; i < 2; i++) found += !strcmp(TF_CheckpointReaderGetVariable(r, i), "a") || !strcmp(TF_CheckpointReaderGetVariable(r, i), "b");
    assert_int_equal(found, 2);
    assert_true(TF_CheckpointReaderHasTensor(r, "a"));
    assert_false(TF_CheckpointReaderHasTensor(r, "c"));
    assert_int_equal(TF_CheckpointReaderGetVariableDataType(r, "a"), TF_FLOAT);
    assert_int_equal(TF_CheckpointReaderGetVariableNumDims(r, "a"), 0);
    TF_CheckpointReaderGetVariableShape(r, "a", NULL, 0, s);
    expect_ok(s);
    TF_Tensor *t = TF_CheckpointReaderGetTensor(r, "b", s);
    expect_ok(s);
    assert_true(float_of(t) == 2);
    TF_DeleteTensor(t);
    assert_null(TF_CheckpointReaderGetTensor(r, "c", s));
    expect_code(s, TF_NOT_FOUND, "c");
    TF_DeleteCheckpointReader(r);
    assert_null(TF_NewCheckpointReader("no/such/checkpoint", s));
    assert_true(TF_GetCode(s) != TF_OK);
    TF_DeleteStatus(s);
}

static void configurations_are_made(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *two = constant(g, "two", int32_tensor(2), s);
    TF_SessionOptions *o = TF_NewSessionOptions();
    TF_Buffer *config = TF_CreateConfig(0, 1, 2);
    TF_SetConfig(o, config->data, config->length, s);
    expect_ok(s);
    TF_EnableXLACompilation(o, 0);
    TF_Session *session = TF_NewSession(g, o, s);
    expect_ok(s);
    TF_DeviceList *list = TF_SessionListDevices(session, s);
    assert_int_equal(TF_DeviceListCount(list), 2);
    TF_DeleteDeviceList(list);
    TF_Buffer *options = TF_CreateRunOptions(1), *metadata = TF_NewBuffer();
    TF_Output fetch = out(two);
    TF_Tensor *result = NULL;
    TF_SessionRun(session, options, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, metadata, s);
    expect_ok(s);
    assert_true(metadata->length > 0);
    TF_DeleteTensor(result);
    TF_DeleteBuffer(options);
    TF_DeleteBuffer(metadata);
    TF_DeleteBuffer(config);
    end_session(session, s);
    TF_DeleteSessionOptions(o);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void ops_are_asked(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    assert_int_equal(TF_OpIsStateful("MatMul", s), 0);
    expect_ok(s);
    assert_int_equal(TF_OpIsStateful("VarHandleOp", s), 1);
    expect_ok(s);
    TF_OpIsStateful("NoSuchOp", s);
    expect_code(s, TF_NOT_FOUND, "NoSuchOp");
    TF_MakeInternalErrorStatus(s, "of mine");
    expect_code(s, TF_INTERNAL, "of mine");
    TF_ImportGraphDefOptions *o = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetValidateColocationConstraints(o, 0);
    TF_DeleteImportGraphDefOptions(o);
    TF_DeleteStatus(s);
}

int main(int argc, char **argv) {
    TF_InitMain("experimental_test", &argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_is_read),
        cmocka_unit_test(configurations_are_made),
        cmocka_unit_test(ops_are_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
