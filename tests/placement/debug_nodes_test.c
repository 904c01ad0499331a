/* debug_nodes_test.c: nodes that look at values are put between what makes a value and what takes it. */
#include "placement/debug_nodes.h"

#include <stdlib.h>

#include "direct_run.h"
#include "graph/function.h"
#include "graph/graph_def.h"

static const Str device = {"/job:a/replica:0/task:0/device:CPU:0", 36};
static const Str url = {"file:///somewhere", 17};

static int set_up(void **state) {
    (void)state;
    ops_register_all();
    return 0;
}

/* x, y = -x, text, and a variable v with its assignment. */
static Graph *graph(void) {
    GraphBuilder b = {0};
    gb_f32(&b, "x", 1);
    gb_op(&b, "y", "Neg", "x", DT_FLOAT);
    gb_const(&b, "text", tensor_scalar_str(STR("a")), "");
    gb_variable(&b, "v", 2);
    Graph *g = graph_new();
    g->functions = function_library_new();
    expect_ok(graph_import(g, gb_graph(&b)));
    gb_clear(&b);
    for (int i = 0; i < g->node_count; i++) g->nodes[i]->placed = 0;
    return g;
}

static void drop(Graph *g) {
    FunctionLibrary *lib = g->functions;
    graph_free(g);
    function_library_free(lib);
}

static Error *watch(Graph *g, const char *node, int slot, const char *op, bool tolerate) {
    Str text = str_of(op);
    return graph_watch(g, &(DebugWatch){.node = str_of(node), .slot = slot, .ops = &text, .op_count = 1, .urls = &url, .url_count = 1, .tolerate = tolerate}, 1, &device);
}

static void consumers_take_the_copy_and_wait_for_who_looks(void **state) {
    (void)state;
    Graph *g = graph();
    expect_ok(watch(g, "x", 0, "DebugIdentity(gated_grpc=true)", false));
    Node *copy = graph_find(g, STR("__copy_x_0")), *look = graph_find(g, STR("__dbg_x:0_0_DebugIdentity")), *y = graph_find(g, STR("y"));
    assert_non_null(copy);
    assert_non_null(look);
    assert_ptr_equal(copy->inputs[0].node, graph_find(g, STR("x")));
    assert_ptr_equal(look->inputs[0].node, copy);
    assert_ptr_equal(y->inputs[0].node, copy);
    assert_int_equal(y->control_count, 1);
    assert_ptr_equal(y->controls[0], look);
    Str *specs = NULL;
    int count = 0;
    bool gated = false;
    expect_ok(node_attr_strings(copy, "debug_ops_spec", &specs, &count));
    assert_int_equal(count, 1);
    assert_true(str_is(specs[0], "DebugIdentity;file:///somewhere;1"));
    free(specs);
    expect_ok(node_attr_bool(look, "gated_grpc", &gated));
    assert_true(gated);
    drop(g);
}

static void who_takes_a_reference_keeps_it(void **state) {
    (void)state;
    Graph *g = graph();
    Node *v = graph_find(g, STR("v"));
    expect_ok(watch(g, "*", -1, "DebugIdentity", false));
    assert_non_null(graph_find(g, STR("__copy_v_0")));
    int takers = 0;
    for (int i = 0; i < g->node_count; i++)
        if (node_is(g->nodes[i], "Assign")) takers += g->nodes[i]->inputs[0].node == v;
    assert_int_equal(takers, 1);
    drop(g);
}

static void what_cannot_be_looked_at_is_said_or_left_out(void **state) {
    (void)state;
    Graph *g = graph();
    expect_error(watch(g, "text", 0, "DebugNumericSummary", false), CODE_FAILED_PRECONDITION, "Failed to create debug node DebugNumericSummary for tensor text:0, due to:");
    drop(g);
    g = graph();
    expect_ok(watch(g, "text", 0, "DebugNumericSummary", true));
    assert_null(graph_find(g, STR("__dbg_text:0_0_DebugNumericSummary")));
    drop(g);
    const struct {
        const char *op, *says;
    } bad[] = {
        {"DebugNumericSummary(foo=1.0; bar=2)", "2 attribute key(s) were not valid for debug node __dbg_x:0_0_DebugNumericSummary: foo, bar"},
        {"NoSuchOp", "Failed to create node definition for debug op NoSuchOp on watched tensor x:0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        g = graph();
        expect_error(watch(g, "x", 0, bad[i].op, false), CODE_FAILED_PRECONDITION, bad[i].says);
        drop(g);
    }
    g = graph();
    expect_error(watch(g, "x", 0, "DebugIdentity(gated_grpc", false), CODE_INVALID_ARGUMENT, "Malformed debug op name");
    expect_error(watch(g, "*", 0, "DebugIdentity", false), CODE_INVALID_ARGUMENT, "output_slot is expected to be -1");
    drop(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consumers_take_the_copy_and_wait_for_who_looks),
        cmocka_unit_test(who_takes_a_reference_keeps_it),
        cmocka_unit_test(what_cannot_be_looked_at_is_said_or_left_out),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
