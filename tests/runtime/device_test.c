/* device_test.c: a second kind of device: it is asked what it runs, its partitions are its own, values reach it by copies. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/thread.h"
#include "direct_run.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "placement/placer.h"
#include "runtime/executable.h"
#include "runtime/step_context.h"

/* ---- "SIM": memory of its own, which only its own nodes may see ---- */

static _Atomic int copies_in, copies_out, programs, sim_runs;
static const DeviceKind sim_kind;

static bool is_sim_memory(const Tensor *t) {
    return t->buffer->owner == &sim_kind;
}

static bool sim_can_run(const Node *n) {
    return node_is(n, "TestSimDouble");
}

static Error *sim_allocate(Device *d, DataType dtype, const Shape *shape, Tensor **out) {
    (void)d;
    Error *err = tensor_new(dtype, shape, out);
    if (err) return err;
    (*out)->buffer->owner = (void *)&sim_kind;
    return NULL;
}

static Error *sim_copy_in(Device *d, Tensor *host, Tensor **out) {
    assert_false(is_sim_memory(host));
    atomic_fetch_add(&copies_in, 1);
    Error *err = sim_allocate(d, host->dtype, &host->shape, out);
    if (!err && host->count) memcpy((*out)->data, host->data, (size_t)host->count * dtype_size(host->dtype));
    return err;
}

static Error *sim_copy_out(Device *d, Tensor *own, Tensor **out) {
    (void)d;
    assert_true(is_sim_memory(own));
    atomic_fetch_add(&copies_out, 1);
    return tensor_copy(own, out);
}

static Error *sim_compile(Graph *take, const DeviceSet *devices, SessionState *session, DeviceProgram **out) {
    atomic_fetch_add(&programs, 1);
    return cpu_device_kind.compile(take, devices, session, out);
}

static void sim_run(const DeviceProgram *p, StepContext *context, const StepIo *io, StepDone *done, void *arg) {
    atomic_fetch_add(&sim_runs, 1);
    cpu_device_kind.run(p, context, io, done, arg);
}

static const Graph *sim_graph(const DeviceProgram *p) {
    return cpu_device_kind.graph(p);
}

static void sim_free(DeviceProgram *p) {
    atomic_fetch_sub(&programs, 1);
    cpu_device_kind.free(p);
}

static const DeviceKind sim_kind = {
    .type = "SIM", .priority = 90, .can_run = sim_can_run, .allocate = sim_allocate, .copy_in = sim_copy_in, .copy_out = sim_copy_out,
    .compile = sim_compile, .run = sim_run, .graph = sim_graph, .free = sim_free,
};

/* ---- Ops of this test ---- */

static int32_t kept;

static Error *run_sim_double(KernelContext *k) {
    if (k->device->kind != &sim_kind || !is_sim_memory(k->in[0])) return error_internal("TestSimDouble sees host memory");
    Tensor *t = kernel_output(k, 0, &k->in[0]->shape);
    if (t) tensor_i32(t)[0] = 2 * tensor_i32(k->in[0])[0];
    return NULL;
}

static Error *run_keep(KernelContext *k) {
    if (is_sim_memory(k->in[0])) return error_internal("TestKeep sees the memory of a device");
    kept = tensor_i32(k->in[0])[0];
    return NULL;
}

static Error *run_fail(KernelContext *k) {
    (void)k;
    return error_invalid("the device fails");
}

static const OpDef test_ops[] = {
    {"TestSimDouble", "x: int32 -> y: int32", "", 0},
    {"TestKeep", "x: int32 ->", "", OP_STATEFUL},
    {"TestFails", "x: int32 -> y: int32", "", OP_STATEFUL},
    {0},
};
static const KernelDef test_kernels[] = {{"TestSimDouble", .run = run_sim_double}, {"TestKeep", .run = run_keep}, {"TestFails", .run = run_fail}, {0}};

static int register_ops(void **state) {
    (void)state;
    const OpDef *ops[] = {test_ops};
    const KernelDef *kernels[] = {test_kernels};
    ops_register_all();
    op_registry_init(ops, 1);
    kernel_registry_init(kernels, 1);
    return 0;
}

/* ---- A task with a CPU and a SIM ---- */

static const char cpu_name[] = "/job:worker/replica:0/task:0/device:CPU:0", sim_name[] = "/job:worker/replica:0/task:0/device:SIM:0";

typedef struct Task {
    Device *both[2];
    DeviceSet devices;
    SessionState *session;
    ThreadPool *pool;
} Task;

static void task_open(Task *t) {
    t->both[0] = cpu_device_new(STR("/job:worker/replica:0/task:0"), 0, STR("worker"));
    t->both[1] = cpu_device_new(STR("/job:worker/replica:0/task:0"), 1, STR("worker"));
    t->both[1]->kind = &sim_kind;
    free(t->both[1]->name);
    t->both[1]->name = xstrdup(sim_name);
    t->devices = (DeviceSet){t->both, 2};
    t->session = session_state_new(&t->devices, STR(""), false);
    t->pool = threadpool_new("compute", 2);
    kept = -1;
    copies_in = copies_out = sim_runs = 0;
}

static void task_close(Task *t) {
    threadpool_free(t->pool);
    session_state_close(t->session);
    session_state_unref(t->session);
    device_free(t->both[0]);
    device_free(t->both[1]);
    assert_int_equal(programs, 0);
}

typedef struct Ended {
    Latch done;
    Error *err;
} Ended;

static void ended(void *arg, Error *err) {
    Ended *e = arg;
    e->err = err;
    latch_done(&e->done);
}

static Error *run_once(Task *t, Executable *e, int64_t step_id) {
    Rendezvous *r = rendezvous_new(step_id, NULL, NULL);
    Cancel cancel;
    cancel_init(&cancel);
    Ended end = {0};
    latch_init(&end.done, 1);
    executable_run(e, &(RunOptions){.step_id = step_id, .rendezvous = r, .cancel = &cancel, .pool = t->pool}, ended, &end);
    latch_wait(&end.done);
    latch_clear(&end.done);
    cancel_clear(&cancel);
    rendezvous_unref(r);
    return end.err;
}

static Executable *compile(Task *t, GraphBuilder *b) {
    Executable *e = NULL;
    expect_ok(executable_new(gb_graph(b), &(PassOptions){.disabled = PASS_ALL}, &t->devices, t->session, &e));
    gb_clear(b);
    return e;
}

static void values_cross_between_kinds_by_copies(void **state) {
    (void)state;
    Task t;
    task_open(&t);
    GraphBuilder b = {.device = cpu_name};
    gb_i32(&b, "x", 5);
    b.device = sim_name;
    gb_node(&b, "twice", "TestSimDouble", "x");
    b.device = cpu_name;
    gb_op(&b, "host", "Neg", "twice", DT_INT32);
    b.device = sim_name;
    gb_node(&b, "four_times", "TestSimDouble", "host");
    b.device = cpu_name;
    gb_node(&b, "keep", "TestKeep", "four_times");
    Executable *e = compile(&t, &b);
    assert_int_equal(programs, 1);
    for (int64_t step = 1; step <= 3; step++) {
        kept = -1;
        expect_ok(run_once(&t, e, step));
        assert_int_equal(kept, -20);
    }
    assert_int_equal(sim_runs, 3);
    assert_int_equal(copies_in, 6);
    assert_int_equal(copies_out, 6);
    StrBuf def = {0};
    executable_graph_def(e, &def);
    Graph *whole = graph_new();
    expect_ok(graph_import(whole, strbuf_str(&def)));
    assert_int_equal(whole->node_count, executable_node_count(e));
    expect_str(graph_find(whole, STR("twice"))->device, sim_name);
    expect_str(graph_find(whole, STR("host"))->device, cpu_name);
    graph_free(whole);
    strbuf_clear(&def);
    executable_unref(e);
    task_close(&t);
}

static void a_graph_of_one_kind_is_not_cut(void **state) {
    (void)state;
    Task t;
    task_open(&t);
    GraphBuilder b = {.device = cpu_name};
    gb_i32(&b, "x", 5);
    gb_op(&b, "neg", "Neg", "x", DT_INT32);
    gb_node(&b, "keep", "TestKeep", "neg");
    Executable *e = compile(&t, &b);
    assert_int_equal(programs, 0);
    assert_int_equal(executable_node_count(e), 3);
    expect_ok(run_once(&t, e, 1));
    assert_int_equal(kept, -5);
    executable_unref(e);
    task_close(&t);
}

static void a_part_that_fails_ends_the_one_that_waits_for_it(void **state) {
    (void)state;
    Task t;
    task_open(&t);
    GraphBuilder b = {.device = cpu_name};
    gb_i32(&b, "x", 5);
    b.device = sim_name;
    gb_node(&b, "fails", "TestFails", "x");
    b.device = cpu_name;
    gb_node(&b, "keep", "TestKeep", "fails");
    Executable *e = compile(&t, &b);
    expect_error(run_once(&t, e, 1), CODE_INVALID_ARGUMENT, "the device fails");
    assert_int_equal(kept, -1);
    executable_unref(e);
    task_close(&t);
}

static void a_loop_spans_both_kinds(void **state) {
    (void)state;
    Task t;
    task_open(&t);
    GraphBuilder b = {.device = cpu_name};
    gb_i32(&b, "limit", 40);
    gb_count_loop(&b, "loop", "limit", 4, NULL);
    b.device = sim_name;
    gb_node(&b, "inside", "TestSimDouble", "loop/body");
    b.device = cpu_name;
    gb_node(&b, "keep", "TestKeep", "inside");
    Executable *e = compile(&t, &b);
    expect_ok(run_once(&t, e, 1));
    assert_int_equal(copies_out, 40);
    assert_in_range(copies_in, 40, 81); /* the values, and the condition of the loop */
    executable_unref(e);
    task_close(&t);
}

/* ---- Placing ---- */

static int place_one(const char *op, const char *device, bool soft) {
    PlacerDevice devices[] = {{.name = str_of(cpu_name), .is_local = true, .priority = cpu_device_kind.priority, .can_run = cpu_device_kind.can_run},
                              {.name = str_of(sim_name), .is_local = true, .priority = sim_kind.priority, .can_run = sim_kind.can_run}};
    for (int i = 0; i < 2; i++) expect_ok(device_name_parse(devices[i].name, &devices[i].parsed));
    GraphBuilder b = {0};
    gb_i32(&b, "x", 5);
    b.device = device;
    if (str_is(str_of(op), "TestSimDouble"))
        gb_node(&b, "n", op, "x");
    else
        gb_op(&b, "n", op, "x", DT_INT32);
    Graph *g = graph_new();
    expect_ok(graph_import(g, gb_graph(&b)));
    expect_ok(graph_place(g, &(PlacerOptions){.devices = devices, .device_count = 2, .soft = soft}));
    int placed = graph_find(g, STR("n"))->placed;
    graph_free(g);
    gb_clear(&b);
    return placed;
}

static void placement_asks_the_devices(void **state) {
    (void)state;
    assert_int_equal(place_one("TestSimDouble", NULL, false), 1); /* both can, SIM comes first */
    assert_int_equal(place_one("TestSimDouble", "/device:CPU:0", false), 0);
    assert_int_equal(place_one("Neg", NULL, false), 0); /* only the CPU can */
    assert_int_equal(place_one("Neg", "/device:SIM:0", true), 0);
    assert_int_equal(place_one("Neg", "/device:SIM:0", false), 1); /* told so: compiling it will say what is missing */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_cross_between_kinds_by_copies),
        cmocka_unit_test(a_graph_of_one_kind_is_not_cut),
        cmocka_unit_test(a_part_that_fails_ends_the_one_that_waits_for_it),
        cmocka_unit_test(a_loop_spans_both_kinds),
        cmocka_unit_test(placement_asks_the_devices),
    };
    return cmocka_run_group_tests(tests, register_ops, NULL);
}
