/* client_session_test.c: sessions of a program: in this process, at a master, and at one that is not there. */
#include <stdlib.h>

#include "cluster/client_session.h"
#include "cluster/server.h"
#include "graph/graph_def.h"
#include "ops/op_list.h"
#include "unit_test.h"

/* y = -x */
static char *negation(size_t *len) {
    Graph *g = graph_new();
    Node *x, *y;
    expect_ok(graph_add_node(g, STR("x"), STR("Placeholder"), STR(""), &x));
    node_add_attr(g, x, STR("dtype"), attr_make_type(g->arena, DT_FLOAT));
    expect_ok(node_resolve(g, x));
    expect_ok(graph_add_node(g, STR("y"), STR("Neg"), STR(""), &y));
    node_add_attr(g, y, STR("T"), attr_make_type(g->arena, DT_FLOAT));
    node_add_input(g, y, (Output){x, 0});
    StrBuf def = {0};
    graph_export(g, &(GraphExport){0}, &def);
    graph_free(g);
    *len = def.len;
    return strbuf_detach(&def);
}

static float run_on(ClientSession *s, const char *fetch, float value) {
    Str feed = STR("x:0"), name = str_of(fetch);
    Tensor *in = tensor_scalar_f32(value), *result = NULL;
    ClientStep step = {.signature = {.feeds = &feed, .feed_count = 1, .fetches = &name, .fetch_count = 1}, .feeds = &in, .options = STR(""), .partial_handle = STR("")};
    expect_ok(client_session_run(s, &step, &result, NULL));
    float got = tensor_f32(result)[0];
    tensor_unref(in);
    tensor_unref(result);
    return got;
}

static Error *run_target(ClientSession *s, const char *target) {
    Str name = str_of(target);
    ClientStep step = {.signature = {.targets = &name, .target_count = 1}, .options = STR(""), .partial_handle = STR("")};
    return client_session_run(s, &step, NULL, NULL);
}

/* The same whatever the target is. */
static void use_session(Str target) {
    size_t len;
    char *def = negation(&len);
    ClientSession *s = NULL;
    expect_ok(client_session_open(&(ClientSessionOptions){.target = target, .config = STR("")}, (Str){def, len}, &s));
    free(def);
    assert_true(run_on(s, "y:0", 3) == -3);
    /* Only what is new: a node z whose input the session has. NodeDef {name: "z" op: "Neg" input: "y" attr {T: float}} */
    static const char node[] = "\x0a\x14" "\x0a\x01z" "\x12\x03Neg" "\x1a\x01y" "\x2a\x07" "\x0a\x01T" "\x12\x02\x30\x01";
    expect_ok(client_session_extend(s, (Str){node, sizeof node - 1}));
    assert_true(run_on(s, "z:0", 3) == 3);
    expect_error(client_session_extend(s, (Str){node, sizeof node - 1}), CODE_INVALID_ARGUMENT, "z"); /* it has that */
    assert_true(run_on(s, "z:0", 4) == 4);
    expect_error(run_target(s, "none"), CODE_NOT_FOUND, "none");
    ClientDeviceInfo *devices = NULL;
    int count = 0;
    expect_ok(client_session_devices(s, &devices, &count));
    assert_int_equal(count, 1);
    assert_string_equal(devices[0].type, "CPU");
    client_devices_free(devices, count);
    expect_ok(client_session_close(s));
    expect_ok(client_session_close(s));
    expect_error(run_target(s, "y"), CODE_CANCELLED, "closed");
    client_session_free(s);
}

static void a_session_in_this_process(void **state) {
    (void)state;
    use_session(STR(""));
    use_session(STR("local"));
}

static void a_session_at_a_master(void **state) {
    (void)state;
    ClusterSpec cluster = {0};
    Transport *transport = NULL;
    Server *server = NULL;
    expect_ok(cluster_spec_add(&cluster, STR("worker"), 0, STR("127.0.0.1:0")));
    expect_ok(transport_grpc_new(NULL, &transport));
    expect_ok(server_start(&(ServerConfig){.cluster = &cluster, .job = STR("worker")}, transport, &server));
    use_session(server_target(server));
    Str containers[] = {STR("c")};
    expect_ok(client_reset(&(ClientSessionOptions){.target = server_target(server), .config = STR("")}, containers, 1));
    server_stop(server, 0);
    cluster_spec_clear(&cluster);
}

static void a_master_that_is_not_there_is_named(void **state) {
    (void)state;
    ClientSession *s = NULL;
    ClientSessionOptions options = {.target = STR("grpc://127.0.0.1:1"), .config = STR(""), .connect_timeout_ms = 300};
    expect_error(client_session_open(&options, STR(""), &s), CODE_UNAVAILABLE, "grpc://127.0.0.1:1");
    expect_error(client_reset(&options, NULL, 0), CODE_UNAVAILABLE, "grpc://127.0.0.1:1");
}

static void other_targets_are_refused(void **state) {
    (void)state;
    ClientSession *s = NULL;
    expect_error(client_session_open(&(ClientSessionOptions){.target = STR("http://x"), .config = STR("")}, STR(""), &s), CODE_NOT_FOUND, "http://x");
    expect_error(client_session_open(&(ClientSessionOptions){.target = STR(""), .config = STR("\x0f")}, STR(""), &s), CODE_INVALID_ARGUMENT, "ConfigProto");
    expect_error(client_session_open(&(ClientSessionOptions){.target = STR(""), .config = STR("")}, STR("\x0f"), &s), CODE_INVALID_ARGUMENT, "GraphDef");
}

static int setup(void **state) {
    (void)state;
    ops_register_all();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_in_this_process),
        cmocka_unit_test(a_session_at_a_master),
        cmocka_unit_test(a_master_that_is_not_there_is_named),
        cmocka_unit_test(other_targets_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
