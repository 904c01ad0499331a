/* allocations_test.c: how many blocks of memory a step takes from the system once all is warm: bounds that may only go down.

   Counted over many steps and divided, so that what grows now and then (a table, a queue) counts as little as it costs. Every way into the allocator is counted:
   under a sanitizer by its hooks, else because the program's own malloc comes first. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cluster/client_session.h"
#include "cluster/loopback_cluster.h"
#include "rill/layers.h"
#include "rill/optimizer.h"
#include "unit_test.h"

/* ---- Counting ---- */

static atomic_llong blocks;

#ifdef __SANITIZE_ADDRESS__
/* Of libasan; Debian's gcc has no header for it. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t), void (*on_free)(const volatile void *));

static void on_malloc(const volatile void *ptr, size_t size) {
    (void)ptr, (void)size;
    atomic_fetch_add(&blocks, 1);
}

static void on_free(const volatile void *ptr) {
    (void)ptr;
}

static void count_from_now(void) {
    __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}
#elif !defined(__SANITIZE_THREAD__) /* whose own malloc must stay */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

#pragma GCC visibility push(default) /* the libraries call these too */
void *malloc(size_t size) {
    atomic_fetch_add(&blocks, 1);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    atomic_fetch_add(&blocks, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *ptr, size_t size) {
    atomic_fetch_add(&blocks, 1);
    return __libc_realloc(ptr, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    atomic_fetch_add(&blocks, 1);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    atomic_fetch_add(&blocks, 1);
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}
#pragma GCC visibility pop

#endif
#ifndef __SANITIZE_ADDRESS__
static void count_from_now(void) {}
#endif

/* ---- Graphs ---- */

static const char *name_of(TF_Operation *op) {
    return op ? TF_OperationName(op) : NULL;
}

static TF_Operation *no_op(RillGraph *g) {
    return rill_operation(g, "NoOp", "nothing", NULL, 0, NULL, 0);
}

/* A product of 50 matrices, one node after the other. */
static TF_Operation *matrices(RillGraph *g) {
    RillVariable *v = rill_variable(g, "v", (int64_t[]){4, 4}, 2, &(RillVariableOptions){.init = {.kind = RILL_INIT_ZEROS}});
    RillTensor value = rill_variable_value(v), x = value;
    for (int i = 0; i < 50; i++) x = rill_matmul(g, x, value, false, false);
    return x.oper;
}

/* A training step of a linear classifier. */
static TF_Operation *training(RillGraph *g) {
    static const float pixels[4 * 8] = {1, 2, 3};
    static const int32_t classes[4] = {0, 1, 2, 3};
    RillTensor x = rill_const(g, "x", TF_FLOAT, (int64_t[]){4, 8}, 2, pixels), labels = rill_const_i32s(g, classes, 4);
    RillTensor logits = rill_dense(g, "out", x, &(RillDense){.units = 10});
    return rill_minimize(g, &(RillOptimizer){.method = RILL_SGD, .learning_rate = 0.01}, rill_loss_sparse_softmax(g, logits, labels));
}

/* The worker makes a number, the ps adds it to a variable. */
static TF_Operation *push(RillGraph *g) {
    rill_device_push(g, "/job:ps/task:0");
    RillVariable *v = rill_variable(g, "v", NULL, 0, &(RillVariableOptions){.init = {.kind = RILL_INIT_ZEROS}});
    rill_device_push(g, "/job:worker/task:0");
    RillTensor number = rill_identity(g, rill_const_f32(g, 1), "number");
    rill_device_pop(g);
    TF_Operation *add = rill_assign_add(g, v, number);
    rill_device_pop(g);
    return add;
}

/* ---- Steps ---- */

enum { WARM_STEPS = 300, STEPS = 500 };

static void run(ClientSession *s, const char *target) {
    Str name = str_of(target);
    ClientStep step = {.signature = {.targets = &name, .target_count = 1}};
    expect_ok(client_session_run(s, &step, NULL, NULL));
}

/* Blocks a step of the graph takes. */
static double blocks_of(TF_Operation *(*build)(RillGraph *g), const ClientSessionOptions *options) {
    RillGraph *g = rill_graph_new();
    const char *step = name_of(build(g)), *init = name_of(rill_init_op(g));
    TF_Buffer *def = TF_NewBuffer();
    TF_Status *status = TF_NewStatus();
    TF_GraphToGraphDef(rill_graph_tf(g), def, status);
    assert_string_equal(rill_graph_message(g), "");
    assert_int_equal(TF_GetCode(status), TF_OK);
    ClientSession *s = NULL;
    expect_ok(client_session_open(options, (Str){def->data, def->length}, &s));
    if (init) run(s, init);
    for (int i = 0; i < WARM_STEPS; i++) run(s, step);
    long long before = atomic_load(&blocks);
    for (int i = 0; i < STEPS; i++) run(s, step);
    double each = (double)(atomic_load(&blocks) - before) / STEPS;
    client_session_free(s);
    TF_DeleteStatus(status);
    TF_DeleteBuffer(def);
    rill_graph_free(g);
    return each;
}

#ifdef __SANITIZE_ADDRESS__
static const bool is_sanitized = true; /* memory of tensors is not kept for the next ones then */
#else
static const bool is_sanitized = false;
#endif

static void expect_at_most(const char *what, double each, double most_plain, double most_sanitized) {
    double most = is_sanitized ? most_sanitized : most_plain;
    print_message("%s: %.2f blocks a step, at most %g\n", what, each, most);
    assert_true(each <= most);
}

static void the_count_counts(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    long long before = atomic_load(&blocks);
    void *volatile a = malloc(10);
    void *volatile b = realloc(a, 10000);
    void *volatile c = aligned_alloc(64, 64);
    free(b);
    free(c);
    assert_true(atomic_load(&blocks) - before >= 3);
}

static void steps_in_this_process(void **state) {
    (void)state;
    const ClientSessionOptions here = {0};
    expect_at_most("an empty step", blocks_of(no_op, &here), 0.5, 11);
    expect_at_most("50 matrices", blocks_of(matrices, &here), 52, 120);
    expect_at_most("training of a linear classifier", blocks_of(training, &here), 3, 40);
}

/* Client, master, worker and ps are counted together; only sockets are left out. */
static void steps_of_a_ps_and_a_worker(void **state) {
    (void)state;
    Cluster *c = cluster_new(1, 1, 0);
    cluster_start_task(c, 0);
    cluster_start_task(c, 1);
    const ClientSessionOptions worker = {.target = STR("grpc://127.0.0.1:2002"), .transport = c->client};
    expect_at_most("an empty step, called", blocks_of(no_op, &worker), 13, 30);
    expect_at_most("a push to the ps", blocks_of(push, &worker), 45, 84);
    cluster_free(c);
}

/* Both ends of the connection are counted. */
static void steps_over_a_socket(void **state) {
    (void)state;
    ClusterSpec cluster = {0};
    Transport *transport = NULL;
    Server *server = NULL;
    expect_ok(cluster_spec_add(&cluster, STR("worker"), 0, STR("127.0.0.1:0")));
    expect_ok(transport_grpc_new(NULL, &transport));
    expect_ok(server_start(&(ServerConfig){.cluster = &cluster, .job = STR("worker"), .threads = 2}, transport, &server));
    expect_at_most("an empty step over a socket", blocks_of(no_op, &(ClientSessionOptions){.target = server_target(server)}), 44, 62);
    server_stop(server, 0);
    cluster_spec_clear(&cluster);
}

int main(void) {
    ops_register_all();
    count_from_now();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_count_counts),
        cmocka_unit_test(steps_in_this_process),
        cmocka_unit_test(steps_of_a_ps_and_a_worker),
        cmocka_unit_test(steps_over_a_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
