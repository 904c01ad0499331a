/* lowerer.c: which nodes are to be lowered, and the nodes that take their place. */
#include "placement/lowerer.h"

#include <stdlib.h>

#include "base/memory.h"

static bool wants_lowering(const Node *n) {
    Str value;
    bool yes = false;
    return node_attr(n, "_lower_using_switch_merge", &value) && attr_bool(value, &yes) && yes;
}

/* A call that is to be differentiated stays one when its function has a gradient of its own. */
static bool keeps_gradient(const Lowerer *l, const Node *n) {
    return l->all && l->lib && function_gradient(l->lib, function_callee(l->lib, n)).len;
}

/* A gradient of the client's own that returns more or less than it should is left to its kernel, which says so when it is run. */
static bool is_whole_gradient(const Lowerer *l, const Node *n) {
    Str value, function;
    if (!l->lib || !node_attr(n, "f", &value) || !attr_func(value, &function)) return true;
    Str own = function_gradient(l->lib, func_name(function));
    const Function *gradient = own.len ? function_find(l->lib, own) : NULL;
    return !gradient || gradient->info->output_count == n->output_count;
}

Functional lowerer_kind(const Lowerer *l, const Node *n) {
    if (keeps_gradient(l, n)) return NOT_FUNCTIONAL;
    if (node_is(n, "SymbolicGradient")) return is_whole_gradient(l, n) ? CALL : NOT_FUNCTIONAL;
    if (node_is(n, "PartitionedCall") || node_is(n, "StatefulPartitionedCall")) return CALL;
    if (node_is(n, "RemoteCall")) return l->device_count ? REMOTE_CALL : NOT_FUNCTIONAL;
    bool lower = l->all || (!l->calls_only && wants_lowering(n));
    if (node_is(n, "If") || node_is(n, "StatelessIf")) return lower && n->input_types[0] == DT_BOOL ? IF : NOT_FUNCTIONAL;
    if (node_is(n, "Case") || node_is(n, "StatelessCase")) return lower ? CASE : NOT_FUNCTIONAL;
    if (node_is(n, "While") || node_is(n, "StatelessWhile")) return lower ? WHILE : NOT_FUNCTIONAL;
    return l->lib && function_find(l->lib, n->op) ? CALL : NOT_FUNCTIONAL;
}

bool lowerer_runs_whole(const Node *n) {
    return !wants_lowering(n) && !node_is(n, "PartitionedCall") && !node_is(n, "StatefulPartitionedCall");
}

static bool is_switch(const Node *n) {
    return node_is(n, "Switch") || node_is(n, "RefSwitch") || node_is(n, "Enter") || node_is(n, "RefEnter");
}

void lowerer_note(Lowerer *l, Node *n, int depth, Node *gate) {
    l->has_switches |= is_switch(n);
    if (!n->info || lowerer_kind(l, n) == NOT_FUNCTIONAL) return;
    l->queue = vec_reserve(l->queue, &l->capacity, l->count + 1, sizeof *l->queue);
    l->queue[l->count++] = (Pending){n, depth, gate};
}

Str lowerer_name(Lowerer *l, const Node *n, const char *part) {
    return graph_unique_name(l->g, arena_printf(l->g->arena, "%.*s/%s", STR_ARG(n->name), part));
}

Error *lowerer_add(Lowerer *l, Str name, const char *op, const Node *like, Node **out) {
    return graph_add_node(l->g, name, str_of(op), like->device, out);
}

Error *lowerer_add_unary(Lowerer *l, Str name, const char *op, const Node *like, Output input, DataType type, Node **out) {
    Error *err = lowerer_add(l, name, op, like, out);
    if (err) return err;
    node_add_attr(l->g, *out, STR("T"), attr_make_type(l->g->arena, type));
    node_set_inputs(l->g, *out, &input, 1);
    return node_resolve(l->g, *out);
}

DataType lowerer_type(Output o) {
    return o.node->info && o.index < o.node->output_count ? dtype_base(o.node->output_types[o.index]) : DT_FLOAT;
}

Error *lowerer_add_switch(Lowerer *l, Str name, const Node *like, Output data, Output pred, Node **out) {
    Error *err = lowerer_add(l, name, "Switch", like, out);
    if (err) return err;
    node_add_attr(l->g, *out, STR("T"), attr_make_type(l->g->arena, lowerer_type(data)));
    node_set_inputs(l->g, *out, (Output[]){data, pred}, 2);
    return node_resolve(l->g, *out);
}

Error *lowerer_add_merge(Lowerer *l, Str name, const Node *like, const Output *inputs, int count, Node **out) {
    Error *err = lowerer_add(l, name, "Merge", like, out);
    if (err) return err;
    node_add_attr(l->g, *out, STR("T"), attr_make_type(l->g->arena, lowerer_type(inputs[0])));
    node_add_attr(l->g, *out, STR("N"), attr_make_int(l->g->arena, count));
    node_set_inputs(l->g, *out, inputs, count);
    return node_resolve(l->g, *out);
}

Error *lowerer_become_results(Lowerer *l, Node *n, const Output *results, int count, Node *before) {
    DataType *types = arena_calloc(l->g->arena, (size_t)count, sizeof *types);
    for (int i = 0; i < count; i++) types[i] = lowerer_type(results[i]);
    n->op = count ? STR("IdentityN") : STR("NoOp");
    n->attrs = NULL;
    n->attr_count = n->control_count = 0;
    n->controls = NULL;
    if (count) node_add_attr(l->g, n, STR("T"), attr_make_types(l->g->arena, types, count));
    node_set_inputs(l->g, n, results, count);
    if (before) node_add_control(l->g, n, before);
    l->replaced = vec_reserve(l->replaced, &l->replaced_capacity, l->replaced_count + 1, sizeof *l->replaced);
    l->replaced[l->replaced_count++] = (struct Replaced){n, n->inputs};
    return node_resolve(l->g, n);
}

void lowerer_bypass_replaced(Lowerer *l) {
    const Output **results = xcalloc((size_t)l->g->node_count, sizeof *results); /* by node id */
    for (size_t i = 0; i < l->replaced_count; i++) results[l->replaced[i].node->id] = l->replaced[i].results;
    for (int i = 0; l->replaced_count && i < l->g->node_count; i++) {
        Node *n = l->g->nodes[i];
        for (int j = 0; j < n->input_count; j++)
            while (results[n->inputs[j].node->id]) n->inputs[j] = results[n->inputs[j].node->id][n->inputs[j].index];
    }
    free(results);
}

Error *lowerer_gate(Lowerer *l, Node *n, Node **gate) {
    *gate = NULL;
    if (!n->control_count) return NULL;
    Error *err = lowerer_add(l, lowerer_name(l, n, "input_control"), "NoOp", n, gate);
    if (err) return err;
    for (int i = 0; i < n->control_count; i++) node_add_control(l->g, *gate, n->controls[i]);
    return node_resolve(l->g, *gate);
}
