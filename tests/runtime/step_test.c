/* step_test.c: plans and steps: order, dead branches, loops, errors, waiting kernels, many steps at once. */
#include "direct_run.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "runtime/cancel.h"
#include "runtime/step_context.h"

/* ---- Ops of this test ---- */

static _Atomic int waiting, cancelled_waits, runs;

typedef struct Wait {
    KernelContext *k;
    CancelWatch watch;
    Cancel *cancel;
} Wait;

static void wait_cancelled(void *arg) {
    Wait *w = arg;
    atomic_fetch_add(&cancelled_waits, 1);
    atomic_fetch_sub(&waiting, 1);
    KernelContext *k = w->k;
    free(w);
    kernel_done(k, error_new(CODE_CANCELLED, "the wait was cancelled"));
}

/* Waits until the step is cancelled. */
static Error *run_wait(KernelContext *k) {
    Wait *w = xcalloc(1, sizeof *w);
    w->k = kernel_defer(k);
    w->cancel = kernel_cancel(w->k);
    atomic_fetch_add(&waiting, 1);
    if (!cancel_watch(w->cancel, &w->watch, wait_cancelled, w)) wait_cancelled(w);
    return NULL;
}

static void *pass_later(void *arg) {
    KernelContext *k = arg;
    kernel_set_output(k, 0, tensor_ref(k->in[0]));
    kernel_done(k, NULL);
    return NULL;
}

/* Hands its input on from another thread. */
static Error *run_later(KernelContext *k) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, pass_later, kernel_defer(k)) != 0) return error_internal("no thread");
    pthread_detach(thread);
    return NULL;
}

/* Defers and is done before it returns. */
static Error *run_at_once(KernelContext *k) {
    pass_later(kernel_defer(k));
    return NULL;
}

static Error *run_fail(KernelContext *k) {
    (void)k;
    return error_invalid("this op always fails");
}

static Error *run_counted(KernelContext *k) {
    atomic_fetch_add(&runs, 1);
    kernel_set_output(k, 0, tensor_ref(k->in[0]));
    return NULL;
}

static Error *run_nothing(KernelContext *k) {
    (void)k;
    return NULL;
}

/* TestHold waits until a TestRelease runs, in whatever step; TestWhere tells the thread it runs in. */
static KernelContext *_Atomic held;
static _Atomic pthread_t where;

static Error *run_hold(KernelContext *k) {
    atomic_store(&held, kernel_defer(k));
    return NULL;
}

static Error *run_release(KernelContext *k) {
    (void)k;
    kernel_done(atomic_exchange(&held, NULL), NULL);
    return NULL;
}

static Error *run_where(KernelContext *k) {
    (void)k;
    atomic_store(&where, pthread_self());
    return NULL;
}

static const OpDef test_ops[] = {
    {"TestWait", "->", "", OP_STATEFUL},
    {"TestLater", "x: T -> y: T", "T: type", 0},
    {"TestAtOnce", "x: T -> y: T", "T: type", 0},
    {"TestFail", "->", "", OP_STATEFUL},
    {"TestCounted", "x: T -> y: T", "T: type", 0},
    {"TestNoOutput", "-> y: float", "", 0},
    {"TestHold", "->", "", OP_STATEFUL},
    {"TestRelease", "->", "", OP_STATEFUL},
    {"TestWhere", "->", "", OP_STATEFUL},
    {"TestWhereLong", "->", "", OP_STATEFUL},
    {0},
};

static const KernelDef test_kernels[] = {
    {"TestWait", .run = run_wait, .flags = KERNEL_DEFERS},
    {"TestLater", .run = run_later, .flags = KERNEL_DEFERS},
    {"TestAtOnce", .run = run_at_once, .flags = KERNEL_DEFERS},
    {"TestFail", .run = run_fail},
    {"TestCounted", .run = run_counted, .flags = KERNEL_EXPENSIVE},
    {"TestNoOutput", .run = run_nothing},
    {"TestHold", .run = run_hold, .flags = KERNEL_DEFERS},
    {"TestRelease", .run = run_release},
    {"TestWhere", .run = run_where},
    {"TestWhereLong", .run = run_where, .flags = KERNEL_EXPENSIVE},
    {0},
};

static int register_ops(void **state) {
    (void)state;
    const OpDef *ops[] = {test_ops};
    const KernelDef *kernels[] = {test_kernels};
    ops_register_all();
    op_registry_init(ops, 1);
    kernel_registry_init(kernels, 1);
    return 0;
}

/* ---- Plain graphs ---- */

static void a_diamond_adds_up(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_f32(&b, "x", 3);
    gb_op(&b, "left", "Neg", "x", DT_FLOAT);
    gb_op(&b, "right", "Square", "x", DT_FLOAT);
    gb_op(&b, "sum", "AddV2", "left,right", DT_FLOAT);
    DirectSession *s = open_session(&b, 2);
    assert_float_equal(run_f32(s, "sum:0"), 6, 0);
    direct_session_free(s);
}

static void the_same_input_twice_is_two_edges(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_f32(&b, "x", 3);
    gb_op(&b, "n", "Neg", "x", DT_FLOAT);
    gb_op(&b, "y", "Mul", "n,n", DT_FLOAT);
    DirectSession *s = open_session(&b, 2);
    assert_float_equal(run_f32(s, "y"), 9, 0);
    assert_float_equal(run_f32(s, "x:0"), 3, 0);
    direct_session_free(s);
}

static void a_control_edge_orders_a_read_after_an_assignment(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_variable(&b, "v", 1);
    gb_f32(&b, "five", 5);
    gb_op(&b, "set", "Assign", "v,five", DT_FLOAT);
    gb_op(&b, "after", "Identity", "v,^set", DT_FLOAT);
    DirectSession *s = open_session(&b, 2);
    run_target(s, "v/init");
    for (int i = 0; i < 20; i++) {
        run_target(s, "v/init");
        assert_float_equal(run_f32(s, "after"), 5, 0);
    }
    direct_session_free(s);
}

static void an_uninitialised_variable_is_an_error_wherever_it_stands(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_variable(&b, "v", 1);
    gb_f32(&b, "x", 1);
    gb_op(&b, "first", "AddV2", "v,x", DT_FLOAT);
    gb_op(&b, "second", "AddV2", "x,v", DT_FLOAT);
    DirectSession *s = open_session(&b, 1);
    Tensor *t = NULL;
    for (int i = 0; i < 10; i++) {
        expect_error(run_error(s, "first", NULL, NULL, NULL, 0, &t), CODE_FAILED_PRECONDITION, "Attempting to use uninitialized value v");
        expect_error(run_error(s, "second", NULL, NULL, NULL, 0, &t), CODE_FAILED_PRECONDITION, "Attempting to use uninitialized value v");
    }
    direct_session_free(s);
}

static void a_chain_of_10000_nodes_runs(void **state) {
    (void)state;
    GraphBuilder b = {0};
    char name[32], input[32] = "x";
    gb_f32(&b, "x", 1);
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        gb_op(&b, name, "Neg", input, DT_FLOAT);
        memcpy(input, name, sizeof name);
    }
    DirectSession *s = open_session(&b, 2);
    assert_float_equal(run_f32(s, "n9999"), 1, 0);
    assert_float_equal(run_f32(s, "n9998"), -1, 0);
    direct_session_free(s);
}

static void a_node_with_many_inputs_and_many_consumers(void **state) {
    (void)state;
    GraphBuilder b = {0};
    enum { WIDTH = 500 };
    StrBuf inputs = {0};
    char name[32];
    gb_f32(&b, "x", 2);
    for (int i = 0; i < WIDTH; i++) {
        snprintf(name, sizeof name, "n%d", i);
        gb_op(&b, name, "TestCounted", "x", DT_FLOAT);
        strbuf_addf(&inputs, "%s%s", i ? "," : "", name);
    }
    gb_op(&b, "sum", "AddN", inputs.ptr, DT_FLOAT);
    gb_int(&b, "N", WIDTH);
    strbuf_clear(&inputs);
    DirectSession *s = open_session(&b, 4);
    atomic_store(&runs, 0);
    assert_float_equal(run_f32(s, "sum"), 2 * WIDTH, 0);
    assert_int_equal(atomic_load(&runs), WIDTH);
    direct_session_free(s);
}

/* ---- Dead branches ---- */

/* pred ? -x : x * x, with a count of what ran. */
static void build_branch(GraphBuilder *b) {
    gb_placeholder(b, "pred", DT_BOOL);
    gb_f32(b, "x", 3);
    gb_op(b, "switch", "Switch", "x,pred", DT_FLOAT);
    gb_op(b, "no", "Square", "switch", DT_FLOAT);
    gb_op(b, "yes", "Neg", "switch:1", DT_FLOAT);
    gb_op(b, "counted", "TestCounted", "yes", DT_FLOAT);
    gb_op(b, "merge", "Merge", "no,counted", DT_FLOAT);
    gb_int(b, "N", 2);
}

static float run_with(DirectSession *s, const char *fetch, const char *feed, Tensor *take) {
    Tensor *t = NULL;
    expect_ok(run_error(s, fetch, NULL, feed, take, 60000, &t));
    tensor_unref(take);
    float v = t->dtype == DT_INT32 ? (float)tensor_i32(t)[0] : tensor_f32(t)[0];
    tensor_unref(t);
    return v;
}

static void merge_takes_the_branch_that_is_alive(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_branch(&b);
    DirectSession *s = open_session(&b, 2);
    atomic_store(&runs, 0);
    assert_float_equal(run_with(s, "merge", "pred", tensor_scalar_bool(true)), -3, 0);
    assert_int_equal(atomic_load(&runs), 1);
    assert_float_equal(run_with(s, "merge", "pred", tensor_scalar_bool(false)), 9, 0);
    assert_int_equal(atomic_load(&runs), 1);
    assert_float_equal(run_with(s, "merge:1", "pred", tensor_scalar_bool(true)), 1, 0);
    assert_float_equal(run_with(s, "merge:1", "pred", tensor_scalar_bool(false)), 0, 0);
    direct_session_free(s);
}

static void fetching_a_dead_tensor_is_an_error(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_branch(&b);
    DirectSession *s = open_session(&b, 2);
    Tensor *t = NULL, *no = tensor_scalar_bool(false);
    expect_error(run_error(s, "yes", NULL, "pred", no, 0, &t), CODE_INVALID_ARGUMENT, "does not have value");
    tensor_unref(no);
    direct_session_free(s);
}

static void a_control_trigger_runs_after_a_dead_node(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_branch(&b);
    gb_node(&b, "trigger", "ControlTrigger", "^counted");
    gb_f32(&b, "seven", 7);
    gb_op(&b, "alive", "Identity", "seven,^trigger", DT_FLOAT);
    gb_op(&b, "dead", "Identity", "seven,^counted", DT_FLOAT);
    DirectSession *s = open_session(&b, 2);
    Tensor *t = NULL, *no = tensor_scalar_bool(false);
    assert_float_equal(run_with(s, "alive", "pred", tensor_scalar_bool(false)), 7, 0);
    expect_error(run_error(s, "dead", NULL, "pred", no, 0, &t), CODE_INVALID_ARGUMENT, "does not have value");
    tensor_unref(no);
    direct_session_free(s);
}

/* ---- Loops ---- */

static void loops_count_with_1_and_10_iterations_at_a_time(void **state) {
    (void)state;
    const int parallel[] = {1, 2, 10, 32};
    for (int i = 0; i < 4; i++) {
        GraphBuilder b = {0};
        gb_placeholder(&b, "limit", DT_INT32);
        gb_count_loop(&b, "loop", "limit", parallel[i], NULL);
        DirectSession *s = open_session(&b, 2);
        const int limits[] = {0, 1, 2, 100, 1000};
        for (int j = 0; j < 5; j++) assert_int_equal((int)run_with(s, "loop/exit", "limit", tensor_scalar_i32(limits[j])), limits[j]);
        direct_session_free(s);
    }
}

/* sum = 0; for i in [0, n): for j in [0, m): sum += i. The inner loop's frame is opened once for each outer iteration. */
static void build_nested(GraphBuilder *b, int parallel) {
    gb_placeholder(b, "n", DT_INT32);
    gb_i32(b, "zero", 0);
    gb_i32(b, "m", 5);
    const char *enters[][2] = {{"i/enter", "zero"}, {"sum/enter", "zero"}, {"n/enter", "n"}, {"m/enter", "m"}};
    for (int i = 0; i < 4; i++) {
        gb_op(b, enters[i][0], "Enter", enters[i][1], DT_INT32);
        gb_string(b, "frame_name", "outer");
        gb_bool(b, "is_constant", i >= 2);
        gb_int(b, "parallel_iterations", parallel);
    }
    gb_op(b, "i/merge", "Merge", "i/enter,i/next", DT_INT32);
    gb_int(b, "N", 2);
    gb_op(b, "sum/merge", "Merge", "sum/enter,sum/next", DT_INT32);
    gb_int(b, "N", 2);
    gb_op(b, "less", "Less", "i/merge,n/enter", DT_INT32);
    gb_node(b, "cond", "LoopCond", "less");
    gb_op(b, "i/switch", "Switch", "i/merge,cond", DT_INT32);
    gb_op(b, "sum/switch", "Switch", "sum/merge,cond", DT_INT32);
    gb_op(b, "i/body", "Identity", "i/switch:1", DT_INT32);
    gb_const(b, "one", tensor_scalar_i32(1), "^i/body");
    gb_op(b, "i/add", "AddV2", "i/body,one", DT_INT32);
    gb_op(b, "i/next", "NextIteration", "i/add", DT_INT32);
    gb_op(b, "i/exit", "Exit", "i/switch", DT_INT32);
    gb_op(b, "sum/exit", "Exit", "sum/switch", DT_INT32);
    /* The inner loop: j and the sum so far; i and m come in as constants. */
    gb_const(b, "j/zero", tensor_scalar_i32(0), "^i/body");
    const char *inner[][2] = {{"j/enter", "j/zero"}, {"part/enter", "sum/switch:1"}, {"i/inner", "i/body"}, {"m/inner", "m/enter"}};
    for (int i = 0; i < 4; i++) {
        gb_op(b, inner[i][0], "Enter", inner[i][1], DT_INT32);
        gb_string(b, "frame_name", "inner");
        gb_bool(b, "is_constant", i >= 2);
        gb_int(b, "parallel_iterations", parallel);
    }
    gb_op(b, "j/merge", "Merge", "j/enter,j/next", DT_INT32);
    gb_int(b, "N", 2);
    gb_op(b, "part/merge", "Merge", "part/enter,part/next", DT_INT32);
    gb_int(b, "N", 2);
    gb_op(b, "j/less", "Less", "j/merge,m/inner", DT_INT32);
    gb_node(b, "j/cond", "LoopCond", "j/less");
    gb_op(b, "j/switch", "Switch", "j/merge,j/cond", DT_INT32);
    gb_op(b, "part/switch", "Switch", "part/merge,j/cond", DT_INT32);
    gb_op(b, "j/body", "Identity", "j/switch:1", DT_INT32);
    gb_const(b, "j/one", tensor_scalar_i32(1), "^j/body");
    gb_op(b, "j/add", "AddV2", "j/body,j/one", DT_INT32);
    gb_op(b, "part/add", "AddV2", "part/switch:1,i/inner", DT_INT32);
    gb_op(b, "j/next", "NextIteration", "j/add", DT_INT32);
    gb_op(b, "part/next", "NextIteration", "part/add", DT_INT32);
    gb_op(b, "part/exit", "Exit", "part/switch", DT_INT32);
    gb_op(b, "sum/next", "NextIteration", "part/exit", DT_INT32);
}

static void loops_in_loops_add_up(void **state) {
    (void)state;
    for (int parallel = 1; parallel <= 10; parallel += 3) {
        GraphBuilder b = {0};
        build_nested(&b, parallel);
        DirectSession *s = open_session(&b, 2);
        for (int n = 0; n < 12; n += 3) assert_int_equal((int)run_with(s, "sum/exit", "n", tensor_scalar_i32(n)), 5 * n * (n - 1) / 2);
        direct_session_free(s);
    }
}

static void a_loop_in_a_dead_branch_ends_dead(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "pred", DT_BOOL);
    gb_i32(&b, "four", 4);
    gb_op(&b, "switch", "Switch", "four,pred", DT_INT32);
    gb_op(&b, "limit", "Identity", "switch:1", DT_INT32);
    gb_count_loop(&b, "loop", "limit", 10, NULL);
    gb_op(&b, "no", "Neg", "switch", DT_INT32);
    gb_op(&b, "merge", "Merge", "no,loop/exit", DT_INT32);
    gb_int(&b, "N", 2);
    DirectSession *s = open_session(&b, 2);
    assert_int_equal((int)run_with(s, "merge", "pred", tensor_scalar_bool(true)), 4);
    assert_int_equal((int)run_with(s, "merge", "pred", tensor_scalar_bool(false)), -4);
    direct_session_free(s);
}

static void build_endless(GraphBuilder *b) {
    gb_i32(b, "limit", 2147483647);
    gb_count_loop(b, "loop", "limit", 10, NULL);
    gb_op(b, "never", "Mul", "loop/exit,loop/exit", DT_INT32);
}

static void a_loop_that_never_waits_ends_at_its_deadline(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_endless(&b);
    DirectSession *s = open_session(&b, 2);
    Tensor *t = NULL;
    expect_error(run_error(s, "never", NULL, NULL, NULL, 50, &t), CODE_DEADLINE_EXCEEDED, "did not end within 50 ms");
    direct_session_free(s);
}

static void an_error_in_a_loop_ends_the_step(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_endless(&b);
    gb_node(&b, "fail", "TestFail", "");
    gb_op(&b, "both", "Identity", "never,^fail", DT_INT32);
    DirectSession *s = open_session(&b, 2);
    Tensor *t = NULL;
    for (int i = 0; i < 20; i++) expect_error(run_error(s, "both", NULL, NULL, NULL, 60000, &t), CODE_INVALID_ARGUMENT, "{{node fail}}");
    direct_session_free(s);
}

/* ---- Errors and waiting ---- */

static void an_error_names_its_node_and_cancels_what_waits(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_node(&b, "w1", "TestWait", "");
    gb_node(&b, "w2", "TestWait", "");
    gb_f32(&b, "x", 1);
    gb_op(&b, "later", "TestLater", "x", DT_FLOAT);
    gb_node(&b, "fail", "TestFail", "^later");
    gb_node(&b, "all", "NoOp", "^w1,^w2,^fail");
    DirectSession *s = open_session(&b, 2);
    atomic_store(&cancelled_waits, 0);
    for (int i = 1; i <= 20; i++) {
        expect_error(run_error(s, NULL, "all", NULL, NULL, 60000, NULL), CODE_INVALID_ARGUMENT, "this op always fails\n\t [[{{node fail}}]]");
        assert_int_equal(atomic_load(&cancelled_waits), 2 * i);
        assert_int_equal(atomic_load(&waiting), 0);
    }
    direct_session_free(s);
}

static void a_deadline_cancels_what_waits(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_node(&b, "w", "TestWait", "");
    DirectSession *s = open_session(&b, 2);
    expect_error(run_error(s, NULL, "w", NULL, NULL, 30, NULL), CODE_DEADLINE_EXCEEDED, NULL);
    assert_int_equal(atomic_load(&waiting), 0);
    direct_session_free(s);
}

static void kernels_may_finish_later_or_at_once(void **state) {
    (void)state;
    GraphBuilder b = {0};
    char name[32], input[32] = "x";
    gb_f32(&b, "x", 2);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "n%d", i);
        gb_op(&b, name, i % 3 == 0 ? "TestLater" : i % 3 == 1 ? "TestAtOnce" : "Neg", input, DT_FLOAT);
        memcpy(input, name, sizeof name);
    }
    DirectSession *s = open_session(&b, 2);
    for (int i = 0; i < 10; i++) assert_float_equal(run_f32(s, "n99"), -2, 0);
    direct_session_free(s);
}

static void a_kernel_that_sets_no_output_is_an_error(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_node(&b, "n", "TestNoOutput", "");
    DirectSession *s = open_session(&b, 2);
    Tensor *t = NULL;
    expect_error(run_error(s, "n", NULL, NULL, NULL, 0, &t), CODE_INTERNAL, "Missing 0-th output from {{node n}}");
    direct_session_free(s);
}

static void feeds_fetches_and_their_errors(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "p", DT_FLOAT);
    gb_op(&b, "n", "Neg", "p", DT_FLOAT);
    DirectSession *s = open_session(&b, 2);
    Tensor *t = NULL, *wrong = tensor_scalar_i32(1);
    assert_float_equal(run_with(s, "n", "p:0", tensor_scalar_f32(4)), -4, 0);
    expect_error(run_error(s, "n", NULL, NULL, NULL, 0, &t), CODE_INVALID_ARGUMENT, "You must feed a value for placeholder tensor 'p'");
    expect_error(run_error(s, "n", NULL, "p", wrong, 0, &t), CODE_INVALID_ARGUMENT, "Received a tensor of type int32");
    expect_error(run_error(s, "nobody", NULL, NULL, NULL, 0, &t), CODE_NOT_FOUND, "nobody");
    expect_error(run_error(s, "n", "nobody", NULL, NULL, 0, &t), CODE_NOT_FOUND, "nobody");
    tensor_unref(wrong);
    direct_session_free(s);
}

/* ---- Steps that wait for another ---- */

typedef struct Waiting {
    DirectSession *session;
    const char *target;
    Error *err;
} Waiting;

static void *run_waiting(void *arg) {
    Waiting *w = arg;
    w->err = run_error(w->session, NULL, w->target, NULL, NULL, 60000, NULL);
    return NULL;
}

/* Whether the step of `target`, which waits for a TestRelease, went on in the thread that ran it. */
static bool goes_on_here(DirectSession *s, const char *target) {
    Waiting w = {.session = s, .target = target};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_waiting, &w), 0);
    while (!atomic_load(&held)) sched_yield();
    assert_null(run_error(s, NULL, "release", NULL, NULL, 60000, NULL));
    pthread_join(thread, NULL);
    assert_null(w.err);
    return pthread_equal(atomic_load(&where), pthread_self());
}

static void what_another_step_lets_go_on_is_done_by_its_thread_unless_it_takes_long(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_node(&b, "hold", "TestHold", "");
    gb_node(&b, "short", "TestWhere", "^hold");
    gb_node(&b, "long", "TestWhereLong", "^hold");
    gb_node(&b, "release", "TestRelease", "");
    DirectSession *s = open_session(&b, 3);
    assert_true(goes_on_here(s, "short"));
    assert_false(goes_on_here(s, "long"));
    direct_session_free(s);
}

/* ---- Many steps at once ---- */

static void note_wrong(_Atomic int *wrong, const Error *err) {
    if (atomic_fetch_add(wrong, 1) == 0) print_message("%s\n", err ? err->message : "a wrong result");
}

typedef struct Client {
    DirectSession *session;
    int number;
    pthread_t thread;
    _Atomic int *wrong;
} Client;

static void *client_main(void *arg) {
    Client *c = arg;
    for (int i = 0; i < 3; i++) {
        int n = c->number % 7 + 1;
        Tensor *limit = tensor_scalar_i32(n), *t = NULL;
        Error *err = run_error(c->session, "result", NULL, "n", limit, 60000, &t);
        if (err || tensor_i32(t)[0] != 5 * n * (n - 1) / 2 + 3) note_wrong(c->wrong, err);
        error_free(err);
        tensor_unref(t);
        tensor_unref(limit);
        if (c->number % 5 == 0) { /* some of the steps fail */
            err = run_error(c->session, NULL, "bad", NULL, NULL, 60000, NULL);
            if (!err || err->code != CODE_INVALID_ARGUMENT) note_wrong(c->wrong, err);
            error_free(err);
        }
        if (c->number % 5 == 1) { /* and some run out of time */
            err = run_error(c->session, NULL, "w", NULL, NULL, 5, NULL);
            if (!err || err->code != CODE_DEADLINE_EXCEEDED) note_wrong(c->wrong, err);
            error_free(err);
        }
    }
    return NULL;
}

static void fifty_steps_at_once(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_nested(&b, 4);
    StrBuf inputs = {0};
    gb_i32(&b, "base", 0);
    char name[32];
    strbuf_add(&inputs, STR("sum/exit"));
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "c%d", i);
        gb_op(&b, name, i % 2 ? "TestCounted" : "TestLater", "base", DT_INT32);
        strbuf_addf(&inputs, ",%s", name);
    }
    gb_op(&b, "sum", "AddN", inputs.ptr, DT_INT32);
    gb_int(&b, "N", 9);
    strbuf_clear(&inputs);
    gb_i32(&b, "three", 3);
    gb_op(&b, "result", "AddV2", "sum,three", DT_INT32);
    gb_node(&b, "w", "TestWait", "");
    gb_node(&b, "fail", "TestFail", "^c0");
    gb_node(&b, "bad", "NoOp", "^w,^fail,^c1,^c2");
    DirectSession *s = open_session(&b, 8);
    enum { CLIENTS = 50 };
    Client clients[CLIENTS];
    _Atomic int wrong = 0;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (Client){.session = s, .number = i, .wrong = &wrong};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) pthread_join(clients[i].thread, NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(atomic_load(&waiting), 0);
    direct_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_diamond_adds_up),
        cmocka_unit_test(the_same_input_twice_is_two_edges),
        cmocka_unit_test(a_control_edge_orders_a_read_after_an_assignment),
        cmocka_unit_test(an_uninitialised_variable_is_an_error_wherever_it_stands),
        cmocka_unit_test(a_chain_of_10000_nodes_runs),
        cmocka_unit_test(a_node_with_many_inputs_and_many_consumers),
        cmocka_unit_test(merge_takes_the_branch_that_is_alive),
        cmocka_unit_test(fetching_a_dead_tensor_is_an_error),
        cmocka_unit_test(a_control_trigger_runs_after_a_dead_node),
        cmocka_unit_test(loops_count_with_1_and_10_iterations_at_a_time),
        cmocka_unit_test(loops_in_loops_add_up),
        cmocka_unit_test(a_loop_in_a_dead_branch_ends_dead),
        cmocka_unit_test(a_loop_that_never_waits_ends_at_its_deadline),
        cmocka_unit_test(an_error_in_a_loop_ends_the_step),
        cmocka_unit_test(an_error_names_its_node_and_cancels_what_waits),
        cmocka_unit_test(a_deadline_cancels_what_waits),
        cmocka_unit_test(kernels_may_finish_later_or_at_once),
        cmocka_unit_test(a_kernel_that_sets_no_output_is_an_error),
        cmocka_unit_test(feeds_fetches_and_their_errors),
        cmocka_unit_test(what_another_step_lets_go_on_is_done_by_its_thread_unless_it_takes_long),
        cmocka_unit_test(fifty_steps_at_once),
    };
    return cmocka_run_group_tests(tests, register_ops, NULL);
}
