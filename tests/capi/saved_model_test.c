/* saved_model_test.c: models that TensorFlow saved, loaded with their variables. CAPI_MODELS names another folder than tests/capi/models. */
#include "capi_test.h"

static void model_path(const char *name, char *path, size_t size) {
    const char *folder = getenv("CAPI_MODELS");
    snprintf(path, size, "%s/%s", folder ? folder : "tests/capi/models", name);
}

/* Runs input -> output on [2, 4]; the first and second results. */
static void run_model(TF_Session *session, TF_Output input, TF_Output output, float *results, TF_Status *s) {
    TF_Tensor *feed = tensor_of(TF_FLOAT, (int64_t[]){2}, 1, (float[]){2, 4}, 8);
    TF_Tensor *t = run_one(session, input, feed, output, s);
    expect_ok(s);
    assert_int_equal(TF_TensorElementCount(t), 2);
    memcpy(results, TF_TensorData(t), 8);
    TF_DeleteTensor(t);
}

static int holds(const TF_Buffer *b, const char *text) {
    return memmem(b->data, b->length, text, strlen(text)) != NULL;
}

static void a_model_with_variables(void **state) {
    (void)state;
    char path[1024];
    float results[2];
    const char *tags[] = {"serve"};
    model_path("v1", path, sizeof path);
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_SessionOptions *o = TF_NewSessionOptions();
    TF_Buffer *meta = TF_NewBuffer();
    TF_Session *session = TF_LoadSessionFromSavedModel(o, NULL, path, tags, 1, g, meta, s);
    expect_ok(s);
    assert_true(holds(meta, "serving_default") && holds(meta, "x:0") && holds(meta, "serve"));
    TF_Operation *x = TF_GraphOperationByName(g, "x"), *y = TF_GraphOperationByName(g, "y");
    assert_non_null(x);
    assert_non_null(y);
    run_model(session, out(x), out(y), results, s);
    assert_true(results[0] == 3 && results[1] == 4); /* 0.5 x + 2 */
    /* The graph is the caller's to extend. */
    TF_Operation *neg = unary(g, "Neg", "neg_of_y", out(y), s);
    run_model(session, out(x), out(neg), results, s);
    assert_true(results[1] == -4);
    end_session(session, s);
    TF_DeleteBuffer(meta);
    TF_DeleteSessionOptions(o);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_model_of_functions(void **state) {
    (void)state;
    char path[1024];
    float results[2];
    const char *tags[] = {"serve"};
    model_path("v2", path, sizeof path);
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_SessionOptions *o = TF_NewSessionOptions();
    TF_Session *session = TF_LoadSessionFromSavedModel(o, NULL, path, tags, 1, g, NULL, s);
    expect_ok(s);
    assert_true(TF_GraphNumFunctions(g) > 0);
    TF_Operation *x = TF_GraphOperationByName(g, "serving_default_x"), *y = TF_GraphOperationByName(g, "StatefulPartitionedCall");
    assert_non_null(x);
    assert_non_null(y);
    run_model(session, out(x), out(y), results, s);
    assert_true(results[0] == 6 && results[1] == 12);
    end_session(session, s);
    TF_DeleteSessionOptions(o);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void models_that_cannot_be_loaded(void **state) {
    (void)state;
    char path[1024];
    const char *tags[] = {"train"};
    model_path("v1", path, sizeof path);
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_SessionOptions *o = TF_NewSessionOptions();
    assert_null(TF_LoadSessionFromSavedModel(o, NULL, path, tags, 1, g, NULL, s));
    expect_code(s, TF_NOT_FOUND, "train");
    model_path("none", path, sizeof path);
    assert_null(TF_LoadSessionFromSavedModel(o, NULL, path, tags, 1, g, NULL, s));
    expect_code(s, TF_NOT_FOUND, "none");
    /* Into a graph that holds something already. */
    placeholder(g, "p", TF_FLOAT, s);
    tags[0] = "serve";
    model_path("v1", path, sizeof path);
    assert_null(TF_LoadSessionFromSavedModel(o, NULL, path, tags, 1, g, NULL, s));
    expect_code(s, TF_INVALID_ARGUMENT, "non-empty");
    TF_DeleteSessionOptions(o);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_with_variables),
        cmocka_unit_test(a_model_of_functions),
        cmocka_unit_test(models_that_cannot_be_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
