/* lower_branches.c: If and Case as Switch and Merge: one branch of several. */
#include "base/memory.h"
#include "placement/lowerer.h"

/* pivots[i] lives only when branch i is taken; inputs[i] are its arguments. */
static Error *join_branches(Lowerer *l, Node *n, const Str *functions, Node **pivots, Output **inputs, int branches, int input_count, int depth) {
    Inlined *bodies = arena_calloc(l->g->arena, (size_t)branches, sizeof *bodies);
    Output *ends = arena_calloc(l->g->arena, (size_t)branches, sizeof *ends);
    Error *err = NULL;
    for (int i = 0; !err && i < branches; i++) {
        Str prefix = lowerer_name(l, n, branches == 2 ? (i ? "then" : "else") : "branch");
        err = lowerer_inline(l, n, functions[i], prefix, inputs[i], input_count, pivots[i], depth, &bodies[i]);
        Node *end;
        if (!err) err = lowerer_add_unary(l, lowerer_name(l, n, "branch_end"), "Identity", n, (Output){pivots[i], 0}, lowerer_type((Output){pivots[i], 0}), &end);
        if (!err && bodies[i].effects) node_add_control(l->g, end, bodies[i].effects);
        if (!err) ends[i] = (Output){end, 0};
        if (!err && bodies[i].ret_count != n->output_count)
            err = error_invalid("Branch %d of {{node %.*s}} returns %d values instead of %d", i, STR_ARG(n->name), bodies[i].ret_count, n->output_count);
    }
    Node *executed = NULL;
    if (!err) err = lowerer_add_merge(l, lowerer_name(l, n, "branch_executed"), n, ends, branches, &executed);
    Output *results = arena_calloc(l->g->arena, (size_t)n->output_count, sizeof *results);
    for (int i = 0; !err && i < n->output_count; i++) {
        Output *choices = arena_calloc(l->g->arena, (size_t)branches, sizeof *choices);
        for (int j = 0; j < branches; j++) choices[j] = bodies[j].rets[i];
        Node *merge;
        err = lowerer_add_merge(l, lowerer_name(l, n, "merge"), n, choices, branches, &merge);
        if (!err) results[i] = (Output){merge, 0};
    }
    return err ? err : lowerer_become_results(l, n, results, n->output_count, executed);
}

/* Identity of the n's selector, so that control inputs of the node hold back the branches. */
static Error *gated_selector(Lowerer *l, Node *n, Output *out) {
    *out = n->inputs[0];
    if (!n->control_count) return NULL;
    Node *gate, *identity;
    Error *err = lowerer_gate(l, n, &gate);
    if (!err) err = lowerer_add_unary(l, lowerer_name(l, n, "selector"), "Identity", n, n->inputs[0], lowerer_type(n->inputs[0]), &identity);
    if (err) return err;
    node_add_control(l->g, identity, gate);
    *out = (Output){identity, 0};
    return NULL;
}

Error *lower_if(Lowerer *l, Node *n, int depth) {
    Str functions[2], value;
    if (!node_attr(n, "else_branch", &value) || !attr_func(value, &functions[0]) || !node_attr(n, "then_branch", &value) || !attr_func(value, &functions[1]))
        return error_invalid("{{node %.*s}} lacks a branch", STR_ARG(n->name));
    Output pred;
    Node *switch_pred = NULL, *pivots[2];
    Error *err = gated_selector(l, n, &pred);
    if (!err) err = lowerer_add_switch(l, lowerer_name(l, n, "switch_pred"), n, pred, pred, &switch_pred);
    for (int i = 0; !err && i < 2; i++)
        err = lowerer_add_unary(l, lowerer_name(l, n, i ? "pivot_t" : "pivot_f"), "Identity", n, (Output){switch_pred, i}, DT_BOOL, &pivots[i]);
    int count = n->input_count - 1;
    Output *inputs[2] = {arena_calloc(l->g->arena, (size_t)count, sizeof(Output)), arena_calloc(l->g->arena, (size_t)count, sizeof(Output))};
    for (int i = 0; !err && i < count; i++) {
        Node *s;
        err = lowerer_add_switch(l, lowerer_name(l, n, "switch"), n, n->inputs[i + 1], pred, &s);
        if (err) break;
        inputs[0][i] = (Output){s, 0};
        inputs[1][i] = (Output){s, 1};
    }
    return err ? err : join_branches(l, n, functions, pivots, inputs, 2, count, depth);
}

static Error *add_switch_n(Lowerer *l, Str name, const Node *like, Output data, Output index, int branches, Node **out) {
    Error *err = lowerer_add(l, name, "_SwitchN", like, out);
    if (err) return err;
    node_add_attr(l->g, *out, STR("T"), attr_make_type(l->g->arena, lowerer_type(data)));
    node_add_attr(l->g, *out, STR("num_outs"), attr_make_int(l->g->arena, branches));
    node_set_inputs(l->g, *out, (Output[]){data, index}, 2);
    return node_resolve(l->g, *out);
}

Error *lower_case(Lowerer *l, Node *n, int depth) {
    Str value;
    int branches = node_attr(n, "branches", &value) ? attr_list_funcs(value, NULL, 0) : 0;
    if (branches < 1) return error_invalid("{{node %.*s}} has no branches", STR_ARG(n->name));
    Arena *a = l->g->arena;
    Str *functions = arena_calloc(a, (size_t)branches, sizeof *functions);
    attr_list_funcs(value, functions, branches);
    int count = n->input_count - 1;
    Output index;
    Node *switch_index = NULL;
    Node **pivots = arena_calloc(a, (size_t)branches, sizeof *pivots);
    Output **inputs = arena_calloc(a, (size_t)branches, sizeof *inputs);
    Error *err = gated_selector(l, n, &index);
    if (!err) err = add_switch_n(l, lowerer_name(l, n, "switch_index"), n, index, index, branches, &switch_index);
    for (int i = 0; !err && i < branches; i++) {
        inputs[i] = arena_calloc(a, (size_t)count, sizeof(Output));
        err = lowerer_add_unary(l, lowerer_name(l, n, "pivot"), "Identity", n, (Output){switch_index, i}, DT_INT32, &pivots[i]);
    }
    for (int i = 0; !err && i < count; i++) {
        Node *s;
        err = add_switch_n(l, lowerer_name(l, n, "switch"), n, n->inputs[i + 1], index, branches, &s);
        for (int j = 0; !err && j < branches; j++) inputs[j][i] = (Output){s, j};
    }
    return err ? err : join_branches(l, n, functions, pivots, inputs, branches, count, depth);
}
