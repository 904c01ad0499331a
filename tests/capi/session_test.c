/* session_test.c: graphs run in this process: feeds, fetches, targets, growing graphs, partial runs, threads, devices. */
#include <pthread.h>

#include "session_steps.h"

static void a_step_feeds_and_fetches(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *feed = placeholder(g, "feed", TF_INT32, s);
    TF_Operation *two = constant(g, "two", int32_tensor(2), s);
    TF_Operation *sum = add_n(g, "add", (TF_Output[]){out(feed), out(two)}, 2, s);
    TF_Session *session = new_session(g, NULL, s);
    assert_int_equal(run_int32(session, out(feed), int32_tensor(3), out(sum), s), 5);
    /* The graph grows after the session was made. */
    TF_Operation *neg = unary(g, "Neg", "neg", out(sum), s);
    assert_int_equal(run_int32(session, out(feed), int32_tensor(7), out(neg), s), -9);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void many_feeds_and_fetches_and_a_target(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "a", TF_FLOAT, s), *b = placeholder(g, "b", TF_FLOAT, s);
    TF_Operation *product = binary(g, "MatMul", "product", out(a), out(b), s);
    TF_Operation *sum = binary(g, "AddV2", "sum", out(a), out(b), s);
    TF_OperationDescription *d = TF_NewOperation(g, "NoOp", "after");
    TF_AddControlInput(d, sum);
    const TF_Operation *target = TF_FinishOperation(d, s);
    expect_ok(s);
    TF_Session *session = new_session(g, NULL, s);
    TF_Output feeds[] = {out(a), out(b)}, fetches[] = {out(product), out(sum)};
    TF_Tensor *values[] = {float_matrix((float[]){1, 2, 3, 4}, 2, 2), float_matrix((float[]){5, 6, 7, 8}, 2, 2)};
    TF_Tensor *results[2];
    TF_SessionRun(session, NULL, feeds, values, 2, fetches, results, 2, &target, 1, NULL, s);
    expect_ok(s);
    assert_memory_equal(TF_TensorData(results[0]), ((float[]){19, 22, 43, 50}), 16);
    assert_memory_equal(TF_TensorData(results[1]), ((float[]){6, 8, 10, 12}), 16);
    assert_int_equal(TF_NumDims(results[0]), 2);
    for (int i = 0; i < 2; i++) TF_DeleteTensor(results[i]);
    TF_SessionRun(session, NULL, feeds, values, 2, feeds, results, 1, NULL, 0, NULL, s);
    expect_code(s, TF_INVALID_ARGUMENT, "both fed and fetched");
    TF_SessionRun(session, NULL, feeds, values, 2, NULL, NULL, 0, &target, 1, NULL, s);
    expect_ok(s);
    TF_DeleteTensor(values[0]);
    TF_DeleteTensor(values[1]);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void strings_go_through_a_step(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *feed = placeholder(g, "feed", TF_STRING, s);
    TF_Operation *suffix = constant(g, "suffix", string_tensor(" and a rather longer part that needs memory"), s);
    TF_OperationDescription *d = TF_NewOperation(g, "StringJoin", "join");
    TF_AddInputList(d, (TF_Output[]){out(feed), out(suffix)}, 2);
    TF_Operation *join = TF_FinishOperation(d, s);
    expect_ok(s);
    TF_Session *session = new_session(g, NULL, s);
    TF_Tensor *t = run_one(session, out(feed), string_tensor("one"), out(join), s);
    expect_ok(s);
    assert_int_equal(TF_TensorType(t), TF_STRING);
    const TF_TString *text = TF_TensorData(t);
    assert_int_equal(TF_StringGetSize(text), 46);
    assert_memory_equal(TF_StringGetDataPointer(text), "one and a rather longer part that needs memory", 46);
    TF_DeleteTensor(t);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void errors_of_steps_have_codes(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *feed = placeholder(g, "feed", TF_FLOAT, s);
    TF_Operation *one = constant(g, "one", float_matrix((float[]){1, 2, 3}, 1, 3), s);
    TF_Operation *product = binary(g, "MatMul", "product", out(feed), out(one), s);
    TF_Session *session = new_session(g, NULL, s);
    TF_Tensor *t = run_one(session, out(feed), NULL, out(product), s); /* nothing fed */
    expect_code(s, TF_INVALID_ARGUMENT, "feed");
    assert_null(t);
    t = run_one(session, out(feed), float_matrix((float[]){1, 2}, 1, 2), out(product), s);
    expect_code(s, TF_INVALID_ARGUMENT, NULL);
    assert_null(t);
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, s);
    expect_code(s, TF_INVALID_ARGUMENT, "at least one target");
    t = run_one(session, out(feed), int32_tensor(1), out(product), s); /* of another type */
    expect_code(s, TF_INVALID_ARGUMENT, NULL);
    assert_null(t);
    TF_CloseSession(session, s);
    expect_ok(s);
    t = run_one(session, out(feed), float_matrix((float[]){1}, 1, 1), out(product), s);
    expect_code(s, TF_CANCELLED, "closed");
    assert_null(t);
    TF_DeleteSession(session, s);
    expect_ok(s);
    TF_SessionOptions *o = TF_NewSessionOptions();
    TF_SetTarget(o, "nowhere://x");
    assert_null(TF_NewSession(g, o, s));
    expect_code(s, TF_NOT_FOUND, "nowhere");
    TF_SetConfig(o, "\x0f", 1, s);
    expect_code(s, TF_INVALID_ARGUMENT, "ConfigProto");
    TF_DeleteSessionOptions(o);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_graph_may_be_deleted_before_its_session(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *two = constant(g, "two", int32_tensor(2), s);
    TF_Session *session = new_session(g, NULL, s);
    TF_DeleteGraph(g);
    assert_int_equal(run_int32(session, out(two), NULL, out(two), s), 2);
    end_session(session, s);
    TF_DeleteStatus(s);
}

/* A variable, its initializer and an addition to it. */
typedef struct Counter {
    TF_Operation *handle, *init, *increment, *read;
} Counter;

static Counter make_counter(TF_Graph *g, TF_Status *s) {
    Counter c;
    TF_OperationDescription *d = TF_NewOperation(g, "VarHandleOp", "counter");
    TF_SetAttrType(d, "dtype", TF_INT32);
    TF_SetAttrShape(d, "shape", NULL, 0);
    c.handle = TF_FinishOperation(d, s);
    expect_ok(s);
    c.init = binary(g, "AssignVariableOp", "init", out(c.handle), out(constant(g, "zero", int32_tensor(0), s)), s);
    c.increment = binary(g, "AssignAddVariableOp", "increment", out(c.handle), out(constant(g, "one", int32_tensor(1), s)), s);
    d = TF_NewOperation(g, "ReadVariableOp", "read");
    TF_AddInput(d, out(c.handle));
    TF_SetAttrType(d, "dtype", TF_INT32);
    c.read = TF_FinishOperation(d, s);
    expect_ok(s);
    return c;
}

static void run_target(TF_Session *session, const TF_Operation *op, TF_Status *s) {
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &op, 1, NULL, s);
    expect_ok(s);
}

typedef struct Incrementer {
    TF_Session *session;
    const TF_Operation *increment;
    int times;
    int failures;
} Incrementer;

static void *increment(void *arg) {
    Incrementer *w = arg;
    TF_Status *s = TF_NewStatus();
    for (int i = 0; i < w->times; i++) {
        TF_SessionRun(w->session, NULL, NULL, NULL, 0, NULL, NULL, 0, &w->increment, 1, NULL, s);
        w->failures += TF_GetCode(s) != TF_OK;
    }
    TF_DeleteStatus(s);
    return NULL;
}

static void many_threads_run_one_session(void **state) {
    (void)state;
    enum { THREADS = 8, TIMES = 50 };
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    Counter c = make_counter(g, s);
    TF_Session *session = new_session(g, NULL, s);
    run_target(session, c.init, s);
    pthread_t threads[THREADS];
    Incrementer workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (Incrementer){session, c.increment, TIMES, 0};
        pthread_create(&threads[i], NULL, increment, &workers[i]);
    }
    /* Meanwhile the graph grows, and what is new is run. */
    for (int i = 0; i < 10; i++) {
        char name[32];
        sprintf(name, "extra_%d", i);
        TF_Operation *extra = constant(g, name, int32_tensor(i), s);
        assert_int_equal(run_int32(session, out(extra), NULL, out(extra), s), i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failures, 0);
    }
    assert_int_equal(run_int32(session, out(c.read), NULL, out(c.read), s), THREADS * TIMES);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void sessions_do_not_share_variables(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    Counter c = make_counter(g, s);
    TF_Session *one = new_session(g, NULL, s), *two = new_session(g, NULL, s);
    run_target(one, c.init, s);
    run_target(one, c.increment, s);
    assert_int_equal(run_int32(one, out(c.read), NULL, out(c.read), s), 1);
    TF_Tensor *t = run_one(two, out(c.read), NULL, out(c.read), s);
    assert_true(TF_GetCode(s) != TF_OK);
    assert_null(t);
    end_session(one, s);
    end_session(two, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_handle_can_be_fetched(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    Counter c = make_counter(g, s);
    TF_Session *session = new_session(g, NULL, s);
    run_target(session, c.init, s);
    TF_Tensor *handle = run_one(session, out(c.handle), NULL, out(c.handle), s);
    expect_ok(s);
    assert_int_equal(TF_TensorType(handle), TF_RESOURCE);
    assert_int_equal(TF_NumDims(handle), 0);
    TF_DeleteTensor(handle);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_step_in_parts(void **state) {
    (void)state;
    expect_a_step_in_parts(NULL);
}

static void devices_are_listed(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Session *session = new_session(g, NULL, s);
    TF_DeviceList *list = TF_SessionListDevices(session, s);
    expect_ok(s);
    assert_true(TF_DeviceListCount(list) >= 1);
    assert_string_equal(TF_DeviceListName(list, 0, s), "/job:localhost/replica:0/task:0/device:CPU:0");
    assert_string_equal(TF_DeviceListType(list, 0, s), "CPU");
    expect_ok(s);
    assert_true(TF_DeviceListMemoryBytes(list, 0, s) > 0);
    expect_ok(s);
    TF_DeviceListIncarnation(list, 0, s);
    expect_ok(s);
    assert_null(TF_DeviceListName(list, 100, s));
    expect_code(s, TF_INVALID_ARGUMENT, "index");
    TF_DeleteDeviceList(list);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_config_asks_for_more_devices(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_SessionOptions *o = TF_NewSessionOptions();
    /* device_count { key: "CPU" value: 3 } */
    TF_SetConfig(o, "\x0a\x07\x0a\x03" "CPU\x10\x03", 9, s);
    expect_ok(s);
    TF_Session *session = TF_NewSession(g, o, s);
    expect_ok(s);
    TF_DeviceList *list = TF_SessionListDevices(session, s);
    expect_ok(s);
    assert_int_equal(TF_DeviceListCount(list), 3);
    TF_DeleteDeviceList(list);
    /* A node on the third one. */
    TF_OperationDescription *d = TF_NewOperation(g, "Const", "there");
    TF_Tensor *t = int32_tensor(9);
    TF_SetAttrTensor(d, "value", t, s);
    TF_DeleteTensor(t);
    TF_SetAttrType(d, "dtype", TF_INT32);
    TF_SetDevice(d, "/device:CPU:2");
    TF_Operation *there = TF_FinishOperation(d, s);
    expect_ok(s);
    assert_string_equal(TF_OperationDevice(there), "/device:CPU:2");
    assert_int_equal(run_int32(session, out(there), NULL, out(there), s), 9);
    end_session(session, s);
    TF_DeleteSessionOptions(o);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_trace_comes_back(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *two = constant(g, "two", int32_tensor(2), s);
    TF_Operation *neg = unary(g, "Neg", "neg_node", out(two), s);
    TF_Session *session = new_session(g, NULL, s);
    TF_Buffer *options = TF_NewBufferFromString("\x08\x03", 2); /* trace_level: FULL_TRACE */
    TF_Buffer *metadata = TF_NewBuffer();
    TF_Output fetch = out(neg);
    TF_Tensor *result = NULL;
    TF_SessionRun(session, options, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, metadata, s);
    expect_ok(s);
    TF_DeleteTensor(result);
    assert_true(metadata->length > 0);
    assert_int_equal(((const unsigned char *)metadata->data)[0], 0x0a); /* step_stats */
    TF_SessionRun(session, options, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, metadata, s);
    expect_code(s, TF_INVALID_ARGUMENT, "non-empty");
    assert_null(result);
    TF_DeleteBuffer(options);
    options = TF_NewBufferFromString("\x0f", 1);
    TF_SessionRun(session, options, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, NULL, s);
    expect_code(s, TF_INVALID_ARGUMENT, "RunOptions");
    TF_DeleteBuffer(options);
    TF_DeleteBuffer(metadata);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_step_that_waits_ends_in_time(void **state) {
    (void)state;
    expect_a_waiting_step_to_end(NULL);
}

static void a_session_of_graph_defs(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *feed = placeholder(g, "feed", TF_INT32, s);
    TF_Operation *two = constant(g, "two", int32_tensor(2), s);
    add_n(g, "add", (TF_Output[]){out(feed), out(two)}, 2, s);
    TF_Buffer *def = TF_NewBuffer();
    TF_GraphToGraphDef(g, def, s);
    expect_ok(s);
    TF_SessionOptions *o = TF_NewSessionOptions();
    TF_DeprecatedSession *session = TF_NewDeprecatedSession(o, s);
    expect_ok(s);
    TF_ExtendGraph(session, def->data, def->length, s);
    expect_ok(s);
    const char *feeds[] = {"feed:0"}, *fetches[] = {"add:0"};
    TF_Tensor *values[] = {int32_tensor(40)}, *results[1];
    TF_Run(session, NULL, feeds, values, 1, fetches, results, 1, NULL, 0, NULL, s);
    expect_ok(s);
    assert_int_equal(int32_of(results[0]), 42);
    TF_DeleteTensor(results[0]);
    const char *handle = NULL;
    TF_PRunSetup(session, feeds, 1, fetches, 1, NULL, 0, &handle, s);
    expect_ok(s);
    values[0] = int32_tensor(1);
    TF_PRun(session, handle, feeds, values, 1, fetches, results, 1, NULL, 0, s);
    expect_ok(s);
    assert_int_equal(int32_of(results[0]), 3);
    TF_DeleteTensor(results[0]);
    TF_DeletePRunHandle(handle);
    TF_DeviceList *list = TF_DeprecatedSessionListDevices(session, s);
    expect_ok(s);
    assert_true(TF_DeviceListCount(list) >= 1);
    TF_DeleteDeviceList(list);
    TF_CloseDeprecatedSession(session, s);
    expect_ok(s);
    TF_DeleteDeprecatedSession(session, s);
    TF_DeleteSessionOptions(o);
    TF_DeleteBuffer(def);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void an_extend_by_hand(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Session *session = new_session(g, NULL, s);
    TF_Operation *two = constant(g, "two", int32_tensor(2), s);
    TF_ExtendSession(session, s);
    expect_ok(s);
    assert_int_equal(run_int32(session, out(two), NULL, out(two), s), 2);
    TF_Operation *three = constant(g, "three", int32_tensor(3), s);
    TF_Tensor *t = run_one(session, out(three), NULL, out(three), s); /* no longer by itself */
    assert_true(TF_GetCode(s) != TF_OK);
    assert_null(t);
    TF_ExtendSession(session, s);
    assert_int_equal(run_int32(session, out(three), NULL, out(three), s), 3);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_feeds_and_fetches),
        cmocka_unit_test(many_feeds_and_fetches_and_a_target),
        cmocka_unit_test(strings_go_through_a_step),
        cmocka_unit_test(errors_of_steps_have_codes),
        cmocka_unit_test(a_graph_may_be_deleted_before_its_session),
        cmocka_unit_test(many_threads_run_one_session),
        cmocka_unit_test(sessions_do_not_share_variables),
        cmocka_unit_test(a_handle_can_be_fetched),
        cmocka_unit_test(a_step_in_parts),
        cmocka_unit_test(devices_are_listed),
        cmocka_unit_test(a_config_asks_for_more_devices),
        cmocka_unit_test(a_trace_comes_back),
        cmocka_unit_test(a_step_that_waits_ends_in_time),
        cmocka_unit_test(a_session_of_graph_defs),
        cmocka_unit_test(an_extend_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
