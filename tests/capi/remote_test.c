/* remote_test.c: servers, and sessions at them. CAPI_TARGET names a master elsewhere; without it the program is its own server. */
#include <pthread.h>
#include <unistd.h>

#include "session_steps.h"

typedef struct Master {
    TF_Server *server; /* NULL: somebody else's, or stopped */
    char target[256];
} Master;

/* ServerDef: cluster=1 {job=1 {name=1 tasks=2 {key=1 value=2}}} job_name=2 task_index=3 protocol=5: one task at localhost:0. */
static TF_Server *new_server(TF_Status *s) {
    static const char def[] =
        "\x0a\x1a\x0a\x18\x0a\x05local\x12\x0f\x08\x00\x12\x0blocalhost:0"
        "\x12\x05local\x18\x00\x2a\x04grpc";
    return TF_NewServer(def, sizeof def - 1, s);
}

static Master *the_master;

static int open_master(void **state) {
    (void)state;
    static Master m;
    const char *given = getenv("CAPI_TARGET");
    TF_Status *s = TF_NewStatus();
    if (given) {
        snprintf(m.target, sizeof m.target, "%s", given);
    } else {
        m.server = new_server(s);
        if (TF_GetCode(s) == TF_OK) TF_ServerStart(m.server, s);
        if (TF_GetCode(s) != TF_OK) {
            print_message("no server: %s\n", TF_Message(s));
            TF_DeleteStatus(s);
            return -1;
        }
        snprintf(m.target, sizeof m.target, "%s", TF_ServerTarget(m.server));
    }
    TF_DeleteStatus(s);
    the_master = &m;
    return 0;
}

static void *join(void *arg) {
    TF_Status *s = TF_NewStatus();
    TF_ServerJoin(arg, s);
    TF_DeleteStatus(s);
    return NULL;
}

/* TensorFlow's server cannot be stopped: it goes with the process. */
static int close_master(void **state) {
    (void)state;
    if (!the_master->server) return 0;
    TF_Status *s = TF_NewStatus();
    pthread_t thread;
    pthread_create(&thread, NULL, join, the_master->server);
    TF_ServerStop(the_master->server, s);
    bool stopped = TF_GetCode(s) == TF_OK;
    TF_DeleteStatus(s);
    if (stopped) {
        pthread_join(thread, NULL);
        s = TF_NewStatus();
        TF_ServerStop(the_master->server, s); /* twice is fine */
        int again = TF_GetCode(s);
        TF_ServerStart(the_master->server, s); /* but not back */
        int restarted = TF_GetCode(s);
        TF_DeleteStatus(s);
        if (again != TF_OK || restarted != TF_FAILED_PRECONDITION) return -1;
        TF_DeleteServer(the_master->server);
        the_master->server = NULL;
    } else {
        pthread_detach(thread);
    }
    return 0;
}

static void a_session_runs_and_grows(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *feed = placeholder(g, "feed", TF_INT32, s);
    TF_Operation *two = constant(g, "two", int32_tensor(2), s);
    TF_Operation *sum = add_n(g, "add", (TF_Output[]){out(feed), out(two)}, 2, s);
    TF_Session *session = new_session(g, the_master->target, s);
    assert_int_equal(run_int32(session, out(feed), int32_tensor(3), out(sum), s), 5);
    TF_Operation *neg = unary(g, "Neg", "neg", out(sum), s);
    assert_int_equal(run_int32(session, out(feed), int32_tensor(7), out(neg), s), -9);
    TF_Tensor *t = run_one(session, out(feed), NULL, out(sum), s); /* nothing fed */
    expect_code(s, TF_INVALID_ARGUMENT, "feed");
    assert_null(t);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void large_tensors_and_strings(void **state) {
    (void)state;
    enum { N = 1 << 18 };
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *feed = placeholder(g, "feed", TF_FLOAT, s), *text = placeholder(g, "text", TF_STRING, s);
    TF_Operation *neg = unary(g, "Neg", "neg", out(feed), s), *same = unary(g, "Identity", "same", out(text), s);
    TF_Session *session = new_session(g, the_master->target, s);
    int64_t n = N;
    TF_Tensor *big = TF_AllocateTensor(TF_FLOAT, &n, 1, N * sizeof(float));
    for (int i = 0; i < N; i++) ((float *)TF_TensorData(big))[i] = (float)i;
    TF_Output feeds[] = {out(feed), out(text)}, fetches[] = {out(neg), out(same), out(neg)};
    TF_Tensor *values[] = {big, string_tensor("over the wire")}, *results[3];
    TF_SessionRun(session, NULL, feeds, values, 2, fetches, results, 3, NULL, 0, NULL, s);
    expect_ok(s);
    for (int i = 0; i < N; i += 1000) assert_true(((float *)TF_TensorData(results[0]))[i] == -(float)i);
    assert_memory_equal(TF_StringGetDataPointer(TF_TensorData(results[1])), "over the wire", 13);
    assert_true(((float *)TF_TensorData(results[2]))[9] == -9); /* the same fetch twice */
    for (int i = 0; i < 3; i++) TF_DeleteTensor(results[i]);
    TF_DeleteTensor(values[0]);
    TF_DeleteTensor(values[1]);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_step_in_parts(void **state) {
    (void)state;
    expect_a_step_in_parts(the_master->target);
}

static void the_masters_devices_are_listed(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    constant(g, "c", int32_tensor(1), s);
    TF_Session *session = new_session(g, the_master->target, s);
    TF_DeviceList *list = TF_SessionListDevices(session, s);
    expect_ok(s);
    int cpus = 0;
    for (int i = 0; i < TF_DeviceListCount(list); i++) cpus += strstr(TF_DeviceListName(list, i, s), "/device:CPU:0") != NULL;
    assert_true(cpus >= 1);
    TF_DeleteDeviceList(list);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void variables_outlive_sessions_until_a_reset(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_OperationDescription *d = TF_NewOperation(g, "VarHandleOp", "shared_by_sessions");
    TF_SetAttrType(d, "dtype", TF_INT32);
    TF_SetAttrShape(d, "shape", NULL, 0);
    TF_SetAttrString(d, "shared_name", "shared_by_sessions", 18);
    TF_Operation *v = TF_FinishOperation(d, s);
    expect_ok(s);
    const TF_Operation *assign = binary(g, "AssignVariableOp", "assign", out(v), out(constant(g, "seven", int32_tensor(7), s)), s);
    d = TF_NewOperation(g, "ReadVariableOp", "read");
    TF_AddInput(d, out(v));
    TF_SetAttrType(d, "dtype", TF_INT32);
    TF_Operation *read = TF_FinishOperation(d, s);
    expect_ok(s);
    TF_Session *session = new_session(g, the_master->target, s);
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &assign, 1, NULL, s);
    expect_ok(s);
    end_session(session, s);
    session = new_session(g, the_master->target, s);
    assert_int_equal(run_int32(session, out(read), NULL, out(read), s), 7);
    TF_SessionOptions *o = TF_NewSessionOptions();
    TF_SetTarget(o, the_master->target);
    TF_Reset(o, NULL, 0, s);
    expect_ok(s);
    TF_Tensor *t = run_one(session, out(read), NULL, out(read), s); /* the session is gone */
    expect_code(s, TF_ABORTED, NULL);
    assert_null(t);
    TF_DeleteSession(session, s);
    session = new_session(g, the_master->target, s);
    t = run_one(session, out(read), NULL, out(read), s);
    assert_true(TF_GetCode(s) != TF_OK);
    assert_null(t);
    end_session(session, s);
    TF_DeleteSessionOptions(o);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

typedef struct Runner {
    TF_Session *session;
    TF_Output feed, fetch;
    int first, failures;
} Runner;

static void *run_many(void *arg) {
    Runner *r = arg;
    TF_Status *s = TF_NewStatus();
    for (int i = 0; i < 30; i++) {
        TF_Tensor *t = run_one(r->session, r->feed, int32_tensor(r->first + i), r->fetch, s);
        r->failures += TF_GetCode(s) != TF_OK || *(int32_t *)TF_TensorData(t) != -(r->first + i);
        TF_DeleteTensor(t);
    }
    TF_DeleteStatus(s);
    return NULL;
}

static void many_threads_share_a_session(void **state) {
    (void)state;
    enum { THREADS = 6 };
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *feed = placeholder(g, "feed", TF_INT32, s), *neg = unary(g, "Neg", "neg", out(feed), s);
    TF_Session *session = new_session(g, the_master->target, s);
    pthread_t threads[THREADS];
    Runner runners[THREADS];
    for (int i = 0; i < THREADS; i++) {
        runners[i] = (Runner){session, out(feed), out(neg), 100 * i, 0};
        pthread_create(&threads[i], NULL, run_many, &runners[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(runners[i].failures, 0);
    }
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_step_in_time(void **state) {
    (void)state;
    expect_a_waiting_step_to_end(the_master->target);
}

static void servers_that_cannot_be(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    assert_null(TF_NewServer("\x0f", 1, s));
    expect_code(s, TF_INVALID_ARGUMENT, "ServerDef");
    static const char unknown_protocol[] = "\x0a\x1a\x0a\x18\x0a\x05local\x12\x0f\x08\x00\x12\x0blocalhost:0\x12\x05local\x18\x00\x2a\x04smtp";
    assert_null(TF_NewServer(unknown_protocol, sizeof unknown_protocol - 1, s));
    expect_code(s, TF_NOT_FOUND, NULL);
    TF_DeleteStatus(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_runs_and_grows),
        cmocka_unit_test(large_tensors_and_strings),
        cmocka_unit_test(a_step_in_parts),
        cmocka_unit_test(the_masters_devices_are_listed),
        cmocka_unit_test(variables_outlive_sessions_until_a_reset),
        cmocka_unit_test(many_threads_share_a_session),
        cmocka_unit_test(a_step_in_time),
        cmocka_unit_test(servers_that_cannot_be),
    };
    int failed = cmocka_run_group_tests(tests, open_master, close_master);
    if (!the_master || !the_master->server) return failed;
    fflush(NULL);
    _exit(failed); /* a server of TensorFlow that still runs would hold up the end of the process */
}
