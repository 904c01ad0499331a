/* optimized_graph.h: a hand-made graph after the passes, for tests that look at its nodes. */
#pragma once
#include "direct_run.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "runtime/device.h"
#include "runtime/evaluate.h"

typedef struct Optimized {
    Graph *graph;
    FunctionLibrary *functions;
    Device *device;
    DeviceSet devices;
    SessionState *session;
} Optimized;

/* Takes the builder's graph and runs the passes that are not disabled. Nodes on "/job:other" are placed on a second device. */
static inline Optimized optimized(GraphBuilder *b, unsigned disabled) {
    ops_register_all();
    Optimized o = {.graph = graph_new(), .functions = function_library_new()};
    o.graph->functions = o.functions;
    o.device = cpu_device_new(STR("/job:localhost/replica:0/task:0"), 0, STR("localhost"));
    o.devices = (DeviceSet){&o.device, 1};
    o.session = session_state_new(&o.devices, STR(""), false);
    expect_ok(graph_import(o.graph, gb_graph(b)));
    gb_clear(b);
    for (int i = 0; i < o.graph->node_count; i++) o.graph->nodes[i]->placed = str_is(o.graph->nodes[i]->device, "/job:other");
    expect_ok(graph_optimize_for(o.graph, &(PassOptions){.disabled = disabled}, &o.devices, o.session));
    return o;
}

static inline void optimized_clear(Optimized *o) {
    graph_free(o->graph);
    function_library_free(o->functions);
    session_state_close(o->session);
    session_state_unref(o->session);
    device_free(o->device);
}

static inline const Node *node_named(const Optimized *o, const char *name) {
    return graph_find(o->graph, str_of(name));
}

static inline void expect_op(const Optimized *o, const char *name, const char *op) {
    const Node *n = node_named(o, name);
    if (!n) print_message("no node %s\n", name);
    assert_non_null(n);
    expect_str(n->op, op);
}

static inline void expect_gone(const Optimized *o, const char *name) {
    if (node_named(o, name)) print_message("node %s is still there\n", name);
    assert_null(node_named(o, name));
}

/* Input i of a node comes from the named one. */
static inline void expect_input(const Optimized *o, const char *name, int i, const char *source) {
    const Node *n = node_named(o, name);
    assert_non_null(n);
    assert_true(i < n->input_count);
    expect_str(n->inputs[i].node->name, source);
}
