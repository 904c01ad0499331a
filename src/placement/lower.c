/* lower.c: If, Case, While and calls as graphs without functions.

   Every lowered node stays in the graph under its name, turned into an IdentityN of its results (or a NoOp), so that it can be fetched and waited
   for; its consumers take the results themselves, so that a step needs only what it uses, unless all that has an effect must run before. New nodes are named NAME/...; bodies may hold further functional nodes, which are lowered in turn. */
#include "placement/lower.h"

#include <stdlib.h>

#include "base/memory.h"
#include "placement/lowerer.h"

enum { MAX_DEPTH = 48 };

/* ---- Calls ---- */

/* What lives when the call's arguments do. A call in a dead branch has dead arguments, and its body must be as dead; in a loop it runs once in
   every iteration. NULL when the call has no argument to tell by. */
static Error *gate_of_arguments(Lowerer *l, Node *n, Node **gate) {
    int by = 0;
    while (by < n->input_count && dtype_is_ref(n->input_types[by])) by++;
    if (by == n->input_count) return NULL;
    return lowerer_add_unary(l, lowerer_name(l, n, "called"), "Identity", n, n->inputs[by], n->input_types[by], gate);
}

/* Lets everyone who takes a result wait for the effects. Each is held alone: a step makes only those that it uses. */
static Error *hold_results(Lowerer *l, const Node *n, Inlined *body) {
    for (int i = 0; i < body->ret_count; i++) {
        Node *identity;
        Error *err = lowerer_add_unary(l, lowerer_name(l, n, "result"), "Identity", n, body->rets[i], lowerer_type(body->rets[i]), &identity);
        if (err) return err;
        node_add_control(l->g, identity, body->effects);
        body->rets[i] = (Output){identity, 0};
    }
    return NULL;
}

/* The first `skip` inputs are no arguments. */
static Error *lower_call(Lowerer *l, Node *n, int skip, Node *enclosing, int depth) {
    Str value, function;
    if (skip || node_is(n, "PartitionedCall") || node_is(n, "StatefulPartitionedCall") || node_is(n, "SymbolicGradient")) {
        if (!node_attr(n, "f", &value) || !attr_func(value, &function)) return error_invalid("Call {{node %.*s}} names no function", STR_ARG(n->name));
    } else {
        function = function_reference(l->g->arena, n);
    }
    Node *gate;
    Error *err = lowerer_gate(l, n, &gate);
    Output *args = arena_calloc(l->g->arena, (size_t)n->input_count, sizeof *args);
    for (int i = 0; !err && i < n->input_count; i++) {
        args[i] = n->inputs[i];
        if (!gate) continue;
        Node *identity;
        err = lowerer_add_unary(l, lowerer_name(l, n, "input"), "Identity", n, n->inputs[i], dtype_base(n->input_types[i]), &identity);
        if (err) return err;
        node_add_control(l->g, identity, gate);
        args[i] = (Output){identity, 0};
    }
    Inlined body = {0};
    Node *start = gate ? gate : enclosing;
    if (!err && !start && l->has_switches) err = gate_of_arguments(l, n, &start);
    if (!err) err = lowerer_inline(l, n, function, n->name, args + skip, n->input_count - skip, start, depth, &body);
    if (!err && body.effects && lowerer_runs_whole(n)) err = hold_results(l, n, &body);
    return err ? err : lowerer_become_results(l, n, body.rets, body.ret_count, body.effects ? body.effects : gate);
}

static Error *lower_remote_call(Lowerer *l, Node *n, Node *enclosing, int depth) {
    Str own = n->device;
    if (!lowerer_remote_device(l, n, &n->device)) {
        n->device = own;
        return NULL;
    }
    Error *err = lower_call(l, n, 1, enclosing, depth);
    n->device = own;
    return err;
}

/* ---- The whole graph ---- */

static Error *copy_graph(const Graph *g, Graph *out) {
    Node *copy;
    for (int i = 0; i < g->node_count; i++) {
        Error *err = graph_copy_node(out, g->nodes[i], &copy);
        if (err) return err;
    }
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        copy = out->nodes[i];
        copy->inputs = arena_alloc(out->arena, sizeof *copy->inputs * (size_t)(n->input_count + 1));
        copy->input_count = n->input_count;
        for (int j = 0; j < n->input_count; j++) copy->inputs[j] = (Output){out->nodes[n->inputs[j].node->id], n->inputs[j].index};
        for (int j = 0; j < n->control_count; j++) node_add_control(out, copy, out->nodes[n->controls[j]->id]);
    }
    return NULL;
}

static Error *lower_one(Lowerer *l, Pending p) {
    if (p.depth > MAX_DEPTH) return NULL; /* recursion: left to run as a call */
    if (!lowerer_fits(l, p.node)) return NULL;
    switch (lowerer_kind(l, p.node)) {
        case CALL: return lower_call(l, p.node, 0, p.gate, p.depth);
        case REMOTE_CALL: return lower_remote_call(l, p.node, p.gate, p.depth);
        case IF: return lower_if(l, p.node, p.depth);
        case CASE: return lower_case(l, p.node, p.depth);
        case WHILE: return lower_while(l, p.node, p.gate, p.depth);
        case NOT_FUNCTIONAL: break;
    }
    return NULL;
}

static Error *lower(const Graph *g, Lowerer l, Graph **out) {
    l.g = graph_new();
    l.lib = l.g->functions = g->functions;
    l.g->producer = g->producer;
    l.g->min_consumer = g->min_consumer;
    Error *err = copy_graph(g, l.g);
    for (int i = 0; !err && l.lib && i < g->node_count; i++) lowerer_note(&l, l.g->nodes[i], 0, NULL);
    for (size_t i = 0; !err && i < l.count; i++) err = lower_one(&l, l.queue[i]);
    if (!err) lowerer_bypass_replaced(&l);
    free(l.queue);
    free(l.replaced);
    if (err)
        graph_free(l.g);
    else
        *out = l.g;
    return err;
}

Error *graph_lower(const Graph *g, Graph **out) {
    return lower(g, (Lowerer){0}, out);
}

Error *graph_lower_for(const Graph *g, const PlacerDevice *devices, int device_count, bool calls_only, Graph **out) {
    return lower(g, (Lowerer){.devices = devices, .device_count = device_count, .calls_only = calls_only}, out);
}

Error *graph_lower_all(const Graph *g, int nesting, Graph **out) {
    return lower(g, (Lowerer){.all = true, .nesting = nesting}, out);
}
