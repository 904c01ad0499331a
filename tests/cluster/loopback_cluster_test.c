/* loopback_cluster_test.c: whole clusters in one process, without sockets and with them, driven as a client drives them: steps over tasks, cancellation,
   failures, and that nothing is left. */
#include "cluster/loopback_cluster.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PS0, PS1, WORKER0, WORKER1 };
#define ON_PS0 "/job:ps/task:0"
#define ON_PS1 "/job:ps/task:1"
#define ON_WORKER0 "/job:worker/task:0"
#define ON_WORKER1 "/job:worker/task:1"

static Cluster *cluster;

static int start_cluster(void **state) {
    (void)state;
    cluster = cluster_new(2, 2, 10000);
    for (int i = 0; i < 4; i++) cluster_start_task(cluster, i);
    return 0;
}

static int stop_cluster(void **state) {
    (void)state;
    cluster_free(cluster);
    return 0;
}

/* After every test: nothing may be left; variables go. */
static int expect_quiet(void **state) {
    (void)state;
    await_quiet(cluster);
    StrBuf request = {0};
    Message reply = {0};
    expect_ok(call_master(cluster, WORKER0, "Reset", &request, &reply));
    message_clear(&reply);
    await_quiet(cluster);
    return 0;
}

/* ---- Steps ---- */

/* A variable on each ps, a model on worker 0, an update on the ps. */
static void build_training(GraphBuilder *b) {
    b->device = ON_PS0;
    gb_variable(b, "v", 1);
    b->device = ON_PS1;
    gb_variable(b, "w", 2);
    b->device = ON_WORKER0;
    gb_op(b, "sum", "AddV2", "v/read,w/read", DT_FLOAT);
    b->device = ON_WORKER1;
    gb_op(b, "square", "Square", "sum", DT_FLOAT);
    b->device = ON_PS0;
    gb_op(b, "update_v", "AssignAdd", "v,square", DT_FLOAT);
    b->device = ON_PS1;
    gb_op(b, "update_w", "AssignAdd", "w,square", DT_FLOAT);
    b->device = NULL;
    gb_node(b, "init", "NoOp", "^v/init,^w/init");
    gb_node(b, "train", "NoOp", "^update_v,^update_w");
}

static void variables_live_on_ps_and_workers_compute(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_training(&b);
    char *s = create_session(cluster, WORKER0, &b);
    step_target(cluster, WORKER0, s, "init");
    assert_float_equal(step_f32(cluster, WORKER0, s, "square"), 9, 0);
    step_target(cluster, WORKER0, s, "train");
    assert_float_equal(step_f32(cluster, WORKER0, s, "v/read"), 10, 0);
    assert_float_equal(step_f32(cluster, WORKER0, s, "w/read"), 11, 0);
    assert_int_equal(status_number(cluster, PS0, "resources"), 1);
    assert_int_equal(status_number(cluster, PS1, "resources"), 1);
    assert_int_equal(status_number(cluster, WORKER0, "resources"), 0);
    expect_ok(close_session(cluster, WORKER0, s));
}

static void another_session_at_another_master_sees_the_variables(void **state) {
    (void)state;
    GraphBuilder b = {0}, again = {0};
    build_training(&b);
    build_training(&again);
    char *s = create_session(cluster, WORKER0, &b), *other = create_session(cluster, WORKER1, &again);
    step_target(cluster, WORKER0, s, "init");
    step_target(cluster, WORKER1, other, "train");
    assert_float_equal(step_f32(cluster, WORKER0, s, "v/read"), 10, 0);
    expect_ok(close_session(cluster, WORKER0, s));
    assert_float_equal(step_f32(cluster, WORKER1, other, "w/read"), 11, 0);
    expect_ok(close_session(cluster, WORKER1, other));
}

static void an_isolated_session_has_variables_of_its_own(void **state) {
    (void)state;
    GraphBuilder b = {0}, again = {0};
    build_training(&b);
    build_training(&again);
    char *s = create_session(cluster, WORKER0, &b), *own = NULL;
    expect_ok(create_session_with(cluster, WORKER0, &again, (Str){"\x78\x01", 2}, &own));
    step_target(cluster, WORKER0, s, "init");
    expect_error(run_step(cluster, WORKER0, own, &(Run){.fetches = "square"}, NULL), CODE_FAILED_PRECONDITION, "uninitialized value");
    expect_ok(close_session(cluster, WORKER0, s));
    expect_ok(close_session(cluster, WORKER0, own));
}

static void values_are_fed_and_strings_and_large_tensors_travel(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "p", DT_FLOAT);
    b.device = ON_WORKER1;
    gb_op(&b, "neg", "Neg", "p", DT_FLOAT);
    gb_const(&b, "text", tensor_scalar_str(STR("over the wire")), "");
    gb_op(&b, "text_there", "Identity", "text", DT_STRING);
    b.device = ON_PS0;
    gb_op(&b, "back", "Neg", "neg", DT_FLOAT);
    gb_op(&b, "text_here", "Identity", "text_there", DT_STRING);
    char *s = create_session(cluster, WORKER0, &b);
    Shape shape = shape_matrix(1000, 700);
    Tensor *big = NULL, *t = NULL;
    expect_ok(tensor_new(DT_FLOAT, &shape, &big));
    for (int64_t i = 0; i < big->count; i++) tensor_f32(big)[i] = (float)i;
    expect_ok(run_step(cluster, WORKER0, s, &(Run){.fetches = "back:0", .feed = "p:0", .value = big}, &t));
    assert_true(shape_eq(&t->shape, &shape));
    assert_memory_equal(t->data, big->data, tensor_bytes(big));
    tensor_unref(t);
    tensor_unref(big);
    expect_ok(run_step(cluster, WORKER0, s, &(Run){.fetches = "text_here:0"}, &t));
    expect_str(tstring_str(tensor_str(t)), "over the wire");
    tensor_unref(t);
    expect_ok(close_session(cluster, WORKER0, s));
}

static void a_loop_over_two_tasks_counts(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "limit", DT_INT32);
    b.device = ON_WORKER0;
    gb_count_loop(&b, "loop", "limit", 10, ON_PS1);
    b.device = ON_WORKER1;
    gb_count_loop(&b, "other", "loop/exit", 1, ON_PS0);
    char *s = create_session(cluster, WORKER0, &b);
    const int limits[] = {0, 1, 7, 40};
    for (int i = 0; i < 4; i++) {
        Tensor *limit = tensor_scalar_i32(limits[i]), *t = NULL;
        expect_ok(run_step(cluster, WORKER0, s, &(Run){.fetches = "other/exit", .feed = "limit", .value = limit}, &t));
        assert_int_equal(tensor_i32(t)[0], limits[i]);
        tensor_unref(t);
        tensor_unref(limit);
    }
    expect_ok(close_session(cluster, WORKER0, s));
}

static void a_dead_branch_over_two_tasks(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "pred", DT_BOOL);
    gb_f32(&b, "x", 3);
    b.device = ON_PS0;
    gb_op(&b, "switch", "Switch", "x,pred", DT_FLOAT);
    b.device = ON_PS1;
    gb_op(&b, "yes", "Neg", "switch:1", DT_FLOAT);
    b.device = ON_WORKER1;
    gb_op(&b, "no", "Square", "switch", DT_FLOAT);
    b.device = ON_WORKER0;
    gb_op(&b, "merge", "Merge", "no,yes", DT_FLOAT);
    gb_int(&b, "N", 2);
    char *s = create_session(cluster, WORKER0, &b);
    for (int i = 0; i < 2; i++) {
        Tensor *pred = tensor_scalar_bool(i == 1), *t = NULL;
        expect_ok(run_step(cluster, WORKER0, s, &(Run){.fetches = "merge", .feed = "pred", .value = pred}, &t));
        assert_float_equal(tensor_f32(t)[0], i == 1 ? -3 : 9, 0);
        tensor_unref(t);
        expect_error(run_step(cluster, WORKER0, s, &(Run){.fetches = i == 1 ? "no" : "yes", .feed = "pred", .value = pred}, NULL), CODE_INTERNAL,
                     "was not valid");
        tensor_unref(pred);
    }
    expect_ok(close_session(cluster, WORKER0, s));
}

/* ---- Queues: steps that wait ---- */

static void build_queue(GraphBuilder *b) {
    const DataType types[] = {DT_FLOAT};
    b->device = ON_PS0;
    gb_node(b, "queue", "FIFOQueueV2", "");
    gb_types(b, "component_types", types, 1);
    gb_string(b, "shared_name", "the_queue");
    gb_node(b, "dequeue", "QueueDequeueV2", "queue");
    gb_types(b, "component_types", types, 1);
    gb_f32(b, "five", 5);
    gb_node(b, "enqueue", "QueueEnqueueV2", "queue,five");
    gb_types(b, "Tcomponents", types, 1);
    b->device = ON_WORKER1;
    gb_op(b, "result", "Neg", "dequeue", DT_FLOAT);
    b->device = NULL;
}

static void one_session_feeds_the_queue_another_waits_on(void **state) {
    (void)state;
    GraphBuilder b = {0}, again = {0};
    build_queue(&b);
    build_queue(&again);
    char *s = create_session(cluster, WORKER0, &b), *other = create_session(cluster, WORKER1, &again);
    Background run;
    background_run(&run, cluster, WORKER0, s, &(Run){.fetches = "result"}, 0);
    await_number(cluster, PS0, "runs", 1);
    step_target(cluster, WORKER1, other, "enqueue");
    expect_ok(background_wait(&run));
    expect_ok(close_session(cluster, WORKER0, s));
    expect_ok(close_session(cluster, WORKER1, other));
}

static void a_client_that_cancels_ends_the_step_everywhere(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_queue(&b);
    char *s = create_session(cluster, WORKER0, &b);
    Background run;
    background_run(&run, cluster, WORKER0, s, &(Run){.fetches = "result"}, 0);
    await_number(cluster, PS0, "runs", 1);
    await_number(cluster, WORKER1, "runs", 1);
    call_cancel(run.call);
    expect_error(background_wait(&run), CODE_CANCELLED, NULL);
    for (int i = 0; i < 4; i++) await_number(cluster, i, "runs", 0);
    for (int i = 0; i < 4; i++) await_number(cluster, i, "steps_held", 0);
    step_target(cluster, WORKER0, s, "enqueue");
    assert_float_equal(step_f32(cluster, WORKER0, s, "result"), -5, 0);
    for (int i = 0; i < 4; i++) await_number(cluster, i, "steps_held", 0); /* of the step that ended well, too, while its session lives */
    expect_ok(close_session(cluster, WORKER0, s));
}

static void a_step_ends_at_its_deadline(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_queue(&b);
    char *s = create_session(cluster, WORKER0, &b);
    expect_error(run_step(cluster, WORKER0, s, &(Run){.fetches = "result", .timeout_ms = 50}, NULL), CODE_DEADLINE_EXCEEDED, "Timed out");
    expect_error(run_step(cluster, WORKER0, s, &(Run){.fetches = "result", .timeout_ms = 50, .error_in_body = true}, NULL), CODE_DEADLINE_EXCEEDED, "Timed out");
    Background run;
    background_run(&run, cluster, WORKER0, s, &(Run){.fetches = "result"}, 50);
    expect_error(background_wait(&run), CODE_DEADLINE_EXCEEDED, NULL);
    for (int i = 0; i < 4; i++) await_number(cluster, i, "runs", 0);
    expect_ok(close_session(cluster, WORKER0, s));
}

static void an_endless_loop_at_the_master_ends_at_its_deadline(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = ON_WORKER0;
    gb_i32(&b, "limit", 2147483647);
    gb_count_loop(&b, "loop", "limit", 10, NULL);
    char *s = create_session(cluster, WORKER0, &b);
    expect_error(run_step(cluster, WORKER0, s, &(Run){.fetches = "loop/exit", .timeout_ms = 50}, NULL), CODE_DEADLINE_EXCEEDED, "Timed out");
    expect_ok(close_session(cluster, WORKER0, s));
}

static void closing_a_session_ends_a_dequeue_that_waits(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_queue(&b);
    char *s = create_session(cluster, WORKER0, &b), *handle = xstrdup(s);
    Background run;
    background_run(&run, cluster, WORKER0, s, &(Run){.fetches = "result"}, 0);
    await_number(cluster, PS0, "runs", 1);
    expect_ok(close_session(cluster, WORKER0, s));
    expect_error(background_wait(&run), CODE_CANCELLED, "Session::Close()");
    expect_error(run_step(cluster, WORKER0, handle, &(Run){.fetches = "result"}, NULL), CODE_ABORTED, "is not found");
    free(handle);
}

/* ---- Errors ---- */

static void an_error_at_a_ps_ends_the_step_and_names_the_node(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = ON_PS0;
    gb_placeholder(&b, "unfed", DT_FLOAT);
    gb_op(&b, "bad", "Neg", "unfed", DT_FLOAT);
    b.device = ON_WORKER1;
    gb_op(&b, "waits", "Neg", "bad", DT_FLOAT);
    char *s = create_session(cluster, WORKER0, &b);
    for (int i = 0; i < 5; i++)
        expect_error(run_step(cluster, WORKER0, s, &(Run){.fetches = "waits"}, NULL), CODE_INVALID_ARGUMENT, "[[{{node unfed}}]]");
    expect_ok(close_session(cluster, WORKER0, s));
}

static void requests_that_make_no_sense_are_refused(void **state) {
    (void)state;
    GraphBuilder b = {0}, none = {0}, bad = {0};
    gb_f32(&b, "x", 1);
    char *s = create_session(cluster, WORKER0, &b), *no = NULL;
    expect_error(run_step(cluster, WORKER0, "nobody", &(Run){.fetches = "x"}, NULL), CODE_ABORTED, "Session nobody is not found");
    expect_error(close_session(cluster, WORKER0, xstrdup("nobody")), CODE_ABORTED, "Session nobody is not found");
    expect_error(run_step(cluster, WORKER0, s, &(Run){.fetches = "y"}, NULL), CODE_NOT_FOUND, "y");
    expect_error(run_step(cluster, WORKER0, s, &(Run){.fetches = ""}, NULL), CODE_INVALID_ARGUMENT, "Must specify at least one target");
    gb_op(&bad, "n", "Neg", "missing", DT_FLOAT);
    expect_error(create_session_with(cluster, WORKER0, &bad, STR(""), &no), CODE_INVALID_ARGUMENT, "Unknown input node 'missing'");
    bad.device = "/job:ps/task:9";
    gb_f32(&bad, "far", 1);
    expect_error(create_session_with(cluster, WORKER0, &bad, STR(""), &no), CODE_INVALID_ARGUMENT, "Cannot assign a device for operation far");
    StrBuf garbage = {0};
    Message reply = {0};
    strbuf_add(&garbage, STR("\xff\xff\xff"));
    expect_error(call_master(cluster, WORKER0, "CreateSession", &garbage, &reply), CODE_INVALID_ARGUMENT, "Malformed");
    gb_clear(&none);
    expect_ok(close_session(cluster, WORKER0, s));
}

static void the_same_request_id_twice_is_refused(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_f32(&b, "x", 1);
    char *s = create_session(cluster, WORKER0, &b);
    expect_ok(run_step(cluster, WORKER0, s, &(Run){.fetches = "x", .request_id = 77}, NULL));
    expect_error(run_step(cluster, WORKER0, s, &(Run){.fetches = "x", .request_id = 77}, NULL), CODE_ABORTED, "received twice");
    expect_ok(run_step(cluster, WORKER0, s, &(Run){.fetches = "x", .request_id = 78}, NULL));
    expect_ok(close_session(cluster, WORKER0, s));
}

static Error *extend(const char *s, GraphBuilder *b, int64_t version) {
    StrBuf request = {0};
    Message reply = {0};
    wire_put_bytes(&request, 1, str_of(s));
    wire_put_bytes(&request, 2, gb_graph(b));
    wire_put_uint(&request, 3, (uint64_t)version);
    gb_clear(b);
    Error *err = call_master(cluster, WORKER0, "ExtendSession", &request, &reply);
    message_clear(&reply);
    return err;
}

static void a_session_grows_and_a_bad_extension_changes_nothing(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = ON_PS0;
    gb_variable(&b, "v", 4);
    char *s = create_session(cluster, WORKER0, &b);
    step_target(cluster, WORKER0, s, "v/init");
    gb_op(&b, "neg", "Neg", "v/read", DT_FLOAT);
    expect_ok(extend(s, &b, 0));
    assert_float_equal(step_f32(cluster, WORKER0, s, "neg"), -4, 0);
    gb_op(&b, "more", "Neg", "neg", DT_FLOAT);
    expect_error(extend(s, &b, 0), CODE_ABORTED, "Current version is 1 but caller expected 0");
    gb_op(&b, "more", "Neg", "neg", DT_FLOAT);
    gb_op(&b, "worse", "Neg", "nothing", DT_FLOAT);
    expect_error(extend(s, &b, 1), CODE_INVALID_ARGUMENT, "Unknown input node 'nothing'");
    gb_op(&b, "more", "Neg", "neg", DT_FLOAT);
    expect_ok(extend(s, &b, 1));
    assert_float_equal(step_f32(cluster, WORKER0, s, "more"), 4, 0);
    expect_ok(close_session(cluster, WORKER0, s));
}

/* ---- Partial runs and callables ---- */

static char *partial_setup(const char *s, const char *feeds, const char *fetches) {
    StrBuf request = {0};
    Message reply = {0};
    wire_put_bytes(&request, 1, str_of(s));
    put_list(&request, 2, feeds);
    put_list(&request, 3, fetches);
    expect_ok(call_master(cluster, WORKER0, "PartialRunSetup", &request, &reply));
    char *handle = str_dup(reply_field(&reply, 1, NULL));
    message_clear(&reply);
    return handle;
}

static void build_partial(GraphBuilder *b) {
    gb_placeholder(b, "a", DT_FLOAT);
    gb_placeholder(b, "b", DT_FLOAT);
    b->device = ON_PS0;
    gb_op(b, "r1", "Neg", "a", DT_FLOAT);
    b->device = ON_PS1;
    gb_op(b, "r2", "Mul", "r1,b", DT_FLOAT);
    b->device = NULL;
}

static void a_step_is_run_in_parts(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_partial(&b);
    char *s = create_session(cluster, WORKER0, &b);
    Tensor *three = tensor_scalar_f32(3), *five = tensor_scalar_f32(5), *t = NULL;
    for (int i = 0; i < 3; i++) {
        char *h = partial_setup(s, "a,b", "r1,r2");
        expect_error(run_step(cluster, WORKER0, s, &(Run){.fetches = "r1", .partial_handle = h}, NULL), CODE_INVALID_ARGUMENT, "can't be computed");
        expect_ok(run_step(cluster, WORKER0, s, &(Run){.fetches = "r1", .feed = "a", .value = three, .partial_handle = h}, &t));
        assert_float_equal(tensor_f32(t)[0], -3, 0);
        tensor_unref(t);
        expect_error(run_step(cluster, WORKER0, s, &(Run){.fetches = "r1", .partial_handle = h}, NULL), CODE_INVALID_ARGUMENT, "already been fetched");
        expect_ok(run_step(cluster, WORKER0, s, &(Run){.fetches = "r2", .feed = "b", .value = five, .partial_handle = h}, &t));
        assert_float_equal(tensor_f32(t)[0], -15, 0);
        tensor_unref(t);
        expect_error(run_step(cluster, WORKER0, s, &(Run){.fetches = "r2", .partial_handle = h}, NULL), CODE_INVALID_ARGUMENT, "Must run PartialRunSetup");
        free(h);
    }
    tensor_unref(three);
    tensor_unref(five);
    expect_ok(close_session(cluster, WORKER0, s));
}

static void closing_a_session_ends_its_partial_runs(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_partial(&b);
    char *s = create_session(cluster, WORKER0, &b);
    Tensor *three = tensor_scalar_f32(3), *t = NULL;
    char *untouched = partial_setup(s, "a,b", "r1,r2"), *begun = partial_setup(s, "a,b", "r1,r2");
    expect_ok(run_step(cluster, WORKER0, s, &(Run){.fetches = "r1", .feed = "a", .value = three, .partial_handle = begun}, &t));
    tensor_unref(t);
    tensor_unref(three);
    free(untouched);
    free(begun);
    expect_ok(close_session(cluster, WORKER0, s));
    await_quiet(cluster);
}

static void a_callable_runs_until_it_is_released(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_partial(&b);
    char *s = create_session(cluster, WORKER0, &b);
    StrBuf request = {0}, options = {0};
    Message reply = {0};
    put_list(&options, 1, "a,b");
    put_list(&options, 2, "r1,r2");
    wire_put_bytes(&request, 1, str_of(s));
    wire_put_bytes(&request, 2, strbuf_str(&options));
    strbuf_clear(&options);
    expect_ok(call_master(cluster, WORKER0, "MakeCallable", &request, &reply));
    uint64_t handle = 0;
    reply_field(&reply, 1, &handle);
    message_clear(&reply);
    for (int i = 0; i < 3; i++) {
        wire_put_bytes(&request, 1, str_of(s));
        wire_put_uint(&request, 2, handle);
        for (int j = 0; j < 2; j++) {
            Tensor *t = tensor_scalar_f32((float)(i + j));
            StrBuf bytes = {0};
            tensor_proto_encode(t, &bytes);
            wire_put_bytes(&request, 3, strbuf_str(&bytes));
            strbuf_clear(&bytes);
            tensor_unref(t);
        }
        expect_ok(call_master(cluster, WORKER0, "RunCallable", &request, &reply));
        Tensor *out[2];
        assert_int_equal(reply_tensors(&reply, true, out, 2), 2);
        assert_float_equal(tensor_f32(out[0])[0], -i, 0);
        assert_float_equal(tensor_f32(out[1])[0], -i * (i + 1), 0);
        tensor_unref(out[0]);
        tensor_unref(out[1]);
        message_clear(&reply);
    }
    for (int i = 0; i < 2; i++) {
        wire_put_bytes(&request, 1, str_of(s));
        wire_put_uint(&request, 2, handle);
        Error *err = call_master(cluster, WORKER0, i ? "RunCallable" : "ReleaseCallable", &request, &reply);
        message_clear(&reply);
        if (i)
            expect_error(err, CODE_INVALID_ARGUMENT, "No such callable handle");
        else
            expect_ok(err);
    }
    expect_ok(close_session(cluster, WORKER0, s));
}

/* ---- A worker, asked directly ---- */

static Error *call_worker(int task, const char *method, StrBuf *request) {
    char path[100];
    Message m = {0}, reply = {0};
    snprintf(path, sizeof path, "/%s.WorkerService/%s", strcmp(method, "PushTensor") == 0 ? "rill" : "tensorflow", method);
    message_add_copy(&m, strbuf_str(request));
    strbuf_clear(request);
    Error *err = channel_call_wait(cluster->channels[task], path, &m, (CallOptions){.timeout_ms = 100}, &reply);
    message_clear(&reply);
    return err;
}

/* A tensor of 3 bytes that comes unasked, for a step of a session. */
static Error *push(int task, int64_t step_id, const char *session) {
    StrBuf b = {0}, tensor = {0};
    Shape shape = shape_vector(3);
    Tensor *t = NULL;
    expect_ok(tensor_new(DT_UINT8, &shape, &t));
    memset(t->data, 7, 3);
    tensor_proto_encode(t, &tensor);
    tensor_unref(t);
    wire_put_uint(&b, 1001, (uint64_t)step_id);
    wire_put_bytes(&b, 1002, STR("/job:worker/replica:0/task:0/device:CPU:0;0000000000000001;/job:ps/replica:0/task:0/device:CPU:0;edge;0:0"));
    wire_put_bytes(&b, 1003, str_of(session));
    wire_put_bytes(&b, 1, strbuf_str(&tensor));
    strbuf_clear(&tensor);
    return call_worker(task, "PushTensor", &b);
}

static void a_tensor_that_comes_too_late_is_dropped(void **state) {
    (void)state;
    GraphBuilder g = {0};
    build_training(&g);
    char *s = create_session(cluster, WORKER0, &g);
    step_target(cluster, WORKER0, s, "v/init"); /* opens the session at the tasks */
    expect_ok(push(PS0, 4711, "nobody"));
    await_number(cluster, PS0, "steps_held", 0);
    StrBuf b = {0};
    wire_put_uint(&b, 1, 4712);
    expect_ok(call_worker(PS0, "CleanupGraph", &b));
    expect_ok(push(PS0, 4712, s));
    await_number(cluster, PS0, "steps_held", 0);
    expect_ok(push(PS0, 4713, s)); /* perhaps its RunGraph is on the way */
    await_number(cluster, PS0, "steps_held", 1);
    expect_ok(close_session(cluster, WORKER0, s)); /* it goes with the session */
}

static void a_pushed_tensor_without_sense_is_refused(void **state) {
    (void)state;
    StrBuf b = {0};
    wire_put_uint(&b, 1001, 5);
    expect_error(call_worker(PS0, "PushTensor", &b), CODE_INVALID_ARGUMENT, "Malformed PushTensor");
    strbuf_add(&b, STR("\xff\xff"));
    expect_error(call_worker(PS0, "PushTensor", &b), CODE_INVALID_ARGUMENT, "Malformed PushTensor");
}

static void a_worker_refuses_what_it_does_not_know(void **state) {
    (void)state;
    StrBuf b = {0};
    wire_put_bytes(&b, 1, STR("nobody"));
    expect_error(call_worker(PS0, "RegisterGraph", &b), CODE_ABORTED, "Session handle is not found: nobody");
    wire_put_bytes(&b, 8, STR("nobody"));
    wire_put_bytes(&b, 1, STR("graph"));
    expect_error(call_worker(PS0, "RunGraph", &b), CODE_ABORTED, "Session handle is not found");
    wire_put_uint(&b, 1, 5);
    wire_put_bytes(&b, 2, STR("not a key"));
    expect_error(call_worker(PS0, "RecvTensor", &b), CODE_INVALID_ARGUMENT, "Invalid rendezvous key: not a key");
    wire_put_uint(&b, 1, 5);
    wire_put_bytes(&b, 2, STR("/job:ps/replica:0/task:0/device:CPU:0;0000000000000001;/job:w/device:CPU:0;edge;0:0"));
    expect_error(call_worker(PS0, "RecvTensor", &b), CODE_ABORTED, "different device incarnation");
    wire_put_uint(&b, 1, 5);
    expect_ok(call_worker(PS0, "CleanupGraph", &b));
    wire_put_bytes(&b, 1, STR("nobody"));
    expect_ok(call_worker(PS0, "DeleteWorkerSession", &b));
    expect_error(call_worker(PS0, "NoSuchMethod", &b), CODE_UNIMPLEMENTED, NULL);
    strbuf_add(&b, STR("\xff\xff"));
    expect_error(call_worker(PS0, "RunGraph", &b), CODE_INVALID_ARGUMENT, "Malformed");
}

static uint64_t incarnation_of(int task) {
    Message request = {0}, reply = {0};
    uint64_t found = 0;
    expect_ok(channel_call_wait(cluster->channels[task], "/tensorflow.WorkerService/GetStatus", &request, (CallOptions){.timeout_ms = PATIENCE_MS}, &reply));
    WireReader device = wire_reader(reply_field(&reply, 1, NULL));
    while (wire_next(&device))
        if (device.field == 6) found = device.number;
    message_clear(&reply);
    return found;
}

static void a_receive_that_is_given_up_leaves_nothing(void **state) {
    (void)state;
    StrBuf b = {0}, key = {0};
    strbuf_addf(&key, "%s/device:CPU:0;%016llx;/job:w/device:CPU:0;edge;0:0", cluster->spec.tasks[PS0].name, (unsigned long long)incarnation_of(PS0));
    wire_put_uint(&b, 1, 77);
    wire_put_bytes(&b, 2, strbuf_str(&key));
    expect_error(call_worker(PS0, "RecvTensor", &b), CODE_DEADLINE_EXCEEDED, NULL); /* of a step nobody runs */
    await_number(cluster, PS0, "steps_held", 0);
    strbuf_clear(&key);
}

/* ---- Many at once ---- */

typedef struct Client {
    pthread_t thread;
    int number;
    char *session;
    _Atomic int *wrong;
} Client;

static void *client_main(void *arg) {
    Client *c = arg;
    int master = c->number % 2 ? WORKER0 : WORKER1;
    for (int i = 0; i < 5; i++) {
        Tensor *value = tensor_scalar_i32(c->number % 4 + i), *t = NULL;
        Error *err = run_step(cluster, master, c->session, &(Run){.fetches = "loop/exit", .feed = "limit", .value = value}, &t);
        if (err || tensor_i32(t)[0] != c->number % 4 + i) {
            if (atomic_fetch_add(c->wrong, 1) == 0) print_message("%s\n", err ? err->message : "a wrong result");
        }
        error_free(err);
        tensor_unref(t);
        tensor_unref(value);
        err = run_step(cluster, master, c->session, &(Run){.targets = "train"}, NULL);
        if (err && atomic_fetch_add(c->wrong, 1) == 0) print_message("%s\n", err->message);
        error_free(err);
        if (c->number % 3) continue;
        err = run_step(cluster, master, c->session, &(Run){.fetches = "result", .timeout_ms = 3}, NULL);
        if (!err || err->code != CODE_DEADLINE_EXCEEDED) {
            if (atomic_fetch_add(c->wrong, 1) == 0) print_message("%s\n", err ? err->message : "no error");
        }
        error_free(err);
    }
    return NULL;
}

/* With resource variables: of reference variables, readers may see a value that is being written, as in TensorFlow. */
static void build_shared_training(GraphBuilder *b) {
    b->device = ON_PS0;
    gb_resource_variable(b, "v", 1);
    b->device = ON_WORKER1;
    gb_op(b, "square", "Square", "v/read", DT_FLOAT);
    b->device = ON_PS0;
    gb_node(b, "update", "AssignAddVariableOp", "v,square");
    gb_type(b, "dtype", DT_FLOAT);
    b->device = NULL;
    gb_node(b, "init", "NoOp", "^v/init");
    gb_node(b, "train", "NoOp", "^update");
}

static void many_clients_at_two_masters(void **state) {
    (void)state;
    enum { CLIENTS = 16 };
    Client clients[CLIENTS];
    char *sessions[2];
    _Atomic int wrong = 0;
    for (int i = 0; i < 2; i++) {
        GraphBuilder b = {0};
        build_shared_training(&b);
        build_queue(&b);
        gb_placeholder(&b, "limit", DT_INT32);
        b.device = ON_WORKER0;
        gb_count_loop(&b, "loop", "limit", 10, ON_PS1);
        sessions[i] = create_session(cluster, i ? WORKER0 : WORKER1, &b);
    }
    step_target(cluster, WORKER0, sessions[1], "init");
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (Client){.number = i, .session = sessions[i % 2], .wrong = &wrong};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) pthread_join(clients[i].thread, NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    expect_ok(close_session(cluster, WORKER1, sessions[0]));
    expect_ok(close_session(cluster, WORKER0, sessions[1]));
}

/* ---- Tasks that are not there; each of these has its own cluster ---- */

static void a_missing_task_is_named(void **state) {
    (void)state;
    Cluster *c = cluster_new(1, 2, 200);
    cluster_start_task(c, 0);
    cluster_start_task(c, 1);
    GraphBuilder b = {0};
    char *s = NULL;
    gb_f32(&b, "x", 1);
    expect_error(create_session_with(c, 1, &b, STR(""), &s), CODE_ABORTED, "/job:worker/replica:0/task:1 at 127.0.0.1:2003");
    StrBuf config = {0};
    gb_f32(&b, "x", 1);
    wire_put_bytes(&config, 4, STR("/job:ps"));
    expect_ok(create_session_with(c, 1, &b, strbuf_str(&config), &s));
    strbuf_clear(&config);
    expect_ok(close_session(c, 1, s));
    await_quiet(c);
    cluster_free(c);
}

static void a_late_task_is_waited_for(void **state) {
    (void)state;
    Cluster *c = cluster_new(1, 1, 60000);
    cluster_start_task(c, 1);
    GraphBuilder b = {0};
    gb_f32(&b, "x", 1);
    StrBuf request = {0};
    Message m = {0};
    wire_put_bytes(&request, 1, gb_graph(&b));
    gb_clear(&b);
    message_add_copy(&m, strbuf_str(&request));
    strbuf_clear(&request);
    Background create = {0};
    latch_init(&create.done, 1);
    create.call = channel_call(c->channels[1], "/tensorflow.MasterService/CreateSession", &m, (CallOptions){0}, background_ended, &create);
    await_number(c, 1, "calls_out", 1);
    cluster_start_task(c, 0);
    expect_ok(background_wait(&create));
    cluster_free(c);
}

static void a_server_that_waits_for_a_missing_task_can_be_stopped(void **state) {
    (void)state;
    Cluster *c = cluster_new(1, 1, 30000);
    cluster_start_task(c, 1);
    Message m = {0};
    Background create = {0};
    latch_init(&create.done, 1);
    create.call = channel_call(c->channels[1], "/tensorflow.MasterService/CreateSession", &m, (CallOptions){0}, background_ended, &create);
    await_number(c, 1, "calls_out", 1);
    int64_t start = clock_mono_ms();
    cluster_stop_task(c, 1);
    assert_true(clock_mono_ms() - start < 10000);
    Error *err = background_wait(&create);
    assert_non_null(err);
    error_free(err);
    cluster_free(c);
}

static void a_ps_that_restarted_is_aborted_a_lost_one_unavailable(void **state) {
    (void)state;
    Cluster *c = cluster_new(1, 1, 2000);
    cluster_start_task(c, 0);
    cluster_start_task(c, 1);
    GraphBuilder b = {0};
    b.device = "/job:ps/task:0";
    gb_variable(&b, "v", 1);
    const DataType types[] = {DT_FLOAT};
    gb_node(&b, "queue", "FIFOQueueV2", "");
    gb_types(&b, "component_types", types, 1);
    gb_node(&b, "dequeue", "QueueDequeueV2", "queue");
    gb_types(&b, "component_types", types, 1);
    b.device = "/job:worker/task:0";
    gb_op(&b, "neg", "Neg", "v/read", DT_FLOAT);
    gb_op(&b, "waits", "Neg", "dequeue", DT_FLOAT);
    char *s = create_session(c, 1, &b);
    step_target(c, 1, s, "v/init");
    assert_float_equal(step_f32(c, 1, s, "neg"), -1, 0);

    Background run;
    background_run(&run, c, 1, s, &(Run){.fetches = "waits"}, 0);
    await_number(c, 0, "runs", 1);
    cluster_stop_task(c, 0);
    Error *err = background_wait(&run);
    assert_non_null(err);
    if (err->code != CODE_UNAVAILABLE && err->code != CODE_ABORTED && err->code != CODE_CANCELLED) print_message("%d: %s\n", (int)err->code, err->message);
    assert_true(err->code == CODE_UNAVAILABLE || err->code == CODE_ABORTED);
    error_free(err);
    expect_error(run_step(c, 1, s, &(Run){.fetches = "neg"}, NULL), CODE_UNAVAILABLE, "/job:ps/replica:0/task:0");

    cluster_start_task(c, 0);
    expect_error(run_step(c, 1, s, &(Run){.fetches = "neg"}, NULL), CODE_ABORTED, "restarted");
    expect_ok(close_session(c, 1, s));
    await_quiet(c);
    cluster_free(c);
}

static void a_master_that_goes_takes_its_steps_with_it(void **state) {
    (void)state;
    Cluster *c = cluster_new(1, 2, 2000);
    for (int i = 0; i < 3; i++) cluster_start_task(c, i);
    GraphBuilder b = {0};
    build_queue(&b);
    char *s = create_session(c, 1, &b);
    Background run;
    background_run(&run, c, 1, s, &(Run){.fetches = "result"}, 0);
    await_number(c, 0, "runs", 1);
    cluster_stop_task(c, 1);
    Error *err = background_wait(&run);
    assert_non_null(err);
    error_free(err);
    free(s);
    await_number(c, 0, "runs", 0);
    await_number(c, 2, "runs", 0);
    await_quiet(c);
    cluster_free(c);
}

#define SHARED(test) cmocka_unit_test_setup_teardown(test, NULL, expect_quiet)

int main(void) {
    const struct CMUnitTest shared[] = {
        SHARED(variables_live_on_ps_and_workers_compute),
        SHARED(another_session_at_another_master_sees_the_variables),
        SHARED(an_isolated_session_has_variables_of_its_own),
        SHARED(values_are_fed_and_strings_and_large_tensors_travel),
        SHARED(a_loop_over_two_tasks_counts),
        SHARED(a_dead_branch_over_two_tasks),
        SHARED(one_session_feeds_the_queue_another_waits_on),
        SHARED(a_client_that_cancels_ends_the_step_everywhere),
        SHARED(a_step_ends_at_its_deadline),
        SHARED(an_endless_loop_at_the_master_ends_at_its_deadline),
        SHARED(closing_a_session_ends_a_dequeue_that_waits),
        SHARED(an_error_at_a_ps_ends_the_step_and_names_the_node),
        SHARED(requests_that_make_no_sense_are_refused),
        SHARED(the_same_request_id_twice_is_refused),
        SHARED(a_session_grows_and_a_bad_extension_changes_nothing),
        SHARED(a_step_is_run_in_parts),
        SHARED(closing_a_session_ends_its_partial_runs),
        SHARED(a_callable_runs_until_it_is_released),
        SHARED(a_worker_refuses_what_it_does_not_know),
        SHARED(a_tensor_that_comes_too_late_is_dropped),
        SHARED(a_pushed_tensor_without_sense_is_refused),
        SHARED(a_receive_that_is_given_up_leaves_nothing),
        SHARED(many_clients_at_two_masters),
    };
    const struct CMUnitTest own[] = {
        cmocka_unit_test(a_missing_task_is_named),
        cmocka_unit_test(a_late_task_is_waited_for),
        cmocka_unit_test(a_server_that_waits_for_a_missing_task_can_be_stopped),
        cmocka_unit_test(a_ps_that_restarted_is_aborted_a_lost_one_unavailable),
        cmocka_unit_test(a_master_that_goes_takes_its_steps_with_it),
    };
    const struct CMUnitTest also_with_sockets[] = {
        cmocka_unit_test(a_late_task_is_waited_for),
        cmocka_unit_test(a_server_that_waits_for_a_missing_task_can_be_stopped),
        cmocka_unit_test(a_master_that_goes_takes_its_steps_with_it),
    };
    int failed = cmocka_run_group_tests_name("in the process", shared, start_cluster, stop_cluster);
    failed += cmocka_run_group_tests_name("in the process, own clusters", own, NULL, NULL);
    cluster_has_sockets = true;
    failed += cmocka_run_group_tests_name("over sockets", shared, start_cluster, stop_cluster);
    return failed + cmocka_run_group_tests_name("over sockets, own clusters", also_with_sockets, NULL, NULL);
}
