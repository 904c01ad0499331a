/* lower_loop.c: While as a loop of Enter, Merge, Switch, NextIteration and Exit. */
#include "base/memory.h"
#include "placement/lowerer.h"

/* The parts of one loop, by loop variable; a resource does not change and only enters. */
typedef struct LoopParts {
    int count;
    Node **enters, **merges, **switches;
    Output *in_cond, *in_body, *results;
    bool *constant;
    int first; /* a variable that goes round, to hang control edges on; -1 when there is none */
} LoopParts;

static Error *add_enters(Lowerer *l, Node *n, LoopParts *p, Node *enclosing) {
    Str value, parallel = {NULL, 0};
    if (node_attr(n, "parallel_iterations", &value)) parallel = value;
    Node *gate;
    Error *err = lowerer_gate(l, n, &gate);
    for (int i = 0; !err && i < p->count; i++) {
        p->constant[i] = dtype_base(n->input_types[i]) == DT_RESOURCE;
        if (!p->constant[i] && p->first < 0) p->first = i;
        err = lowerer_add(l, lowerer_name(l, n, "enter"), "Enter", n, &p->enters[i]);
        if (err) break;
        node_add_attr(l->g, p->enters[i], STR("T"), attr_make_type(l->g->arena, dtype_base(n->input_types[i])));
        node_add_attr(l->g, p->enters[i], STR("frame_name"), attr_make_string(l->g->arena, n->name));
        node_add_attr(l->g, p->enters[i], STR("is_constant"), attr_make_bool(l->g->arena, p->constant[i]));
        if (parallel.ptr) node_add_attr(l->g, p->enters[i], STR("parallel_iterations"), parallel);
        node_set_inputs(l->g, p->enters[i], &n->inputs[i], 1);
        Node *start = gate ? gate : p->constant[i] ? enclosing : NULL; /* a constant of the loop around this one would start by itself */
        if (start) node_add_control(l->g, p->enters[i], start);
        err = node_resolve(l->g, p->enters[i]);
    }
    return err;
}

static Error *add_loop_merges(Lowerer *l, Node *n, LoopParts *p) {
    for (int i = 0; i < p->count; i++) {
        p->in_cond[i] = (Output){p->enters[i], 0};
        if (p->constant[i]) continue;
        /* Both inputs are the Enter until the NextIteration exists. */
        Error *err = lowerer_add_merge(l, lowerer_name(l, n, "merge"), n, (Output[]){{p->enters[i], 0}, {p->enters[i], 0}}, 2, &p->merges[i]);
        if (err) return err;
        p->in_cond[i] = (Output){p->merges[i], 0};
    }
    return NULL;
}

static Error *add_loop_body(Lowerer *l, Node *n, LoopParts *p, Node *loop_cond, Str function, int depth) {
    Node *pivot = NULL;
    Error *err = NULL;
    for (int i = 0; !err && i < p->count; i++) {
        p->in_body[i] = (Output){p->enters[i], 0};
        if (p->constant[i]) continue;
        err = lowerer_add_switch(l, lowerer_name(l, n, "switch"), n, (Output){p->merges[i], 0}, (Output){loop_cond, 0}, &p->switches[i]);
        if (!err) p->in_body[i] = (Output){p->switches[i], 1};
        if (!err && i == p->first) err = lowerer_add_unary(l, lowerer_name(l, n, "body_pivot"), "Identity", n, p->in_body[i], lowerer_type(p->in_body[i]), &pivot);
    }
    Inlined body = {0};
    if (!err) err = lowerer_inline(l, n, function, lowerer_name(l, n, "body"), p->in_body, p->count, pivot, depth, &body);
    if (!err && body.ret_count != p->count)
        err = error_invalid("The body of {{node %.*s}} returns %d values instead of %d", STR_ARG(n->name), body.ret_count, p->count);
    for (int i = 0; !err && i < p->count; i++) {
        p->results[i] = n->inputs[i];
        if (p->constant[i]) continue;
        Node *next, *exit;
        err = lowerer_add_unary(l, lowerer_name(l, n, "next_iteration"), "NextIteration", n, body.rets[i], lowerer_type((Output){p->merges[i], 0}), &next);
        if (err) break;
        if (body.effects) node_add_control(l->g, next, body.effects);
        p->merges[i]->inputs[1] = (Output){next, 0};
        err = lowerer_add_unary(l, lowerer_name(l, n, "exit"), "Exit", n, (Output){p->switches[i], 0}, lowerer_type((Output){p->merges[i], 0}), &exit);
        if (!err) p->results[i] = (Output){exit, 0};
    }
    return err;
}

Error *lower_while(Lowerer *l, Node *n, Node *enclosing, int depth) {
    Str cond, body, value;
    if (!node_attr(n, "cond", &value) || !attr_func(value, &cond) || !node_attr(n, "body", &value) || !attr_func(value, &body))
        return error_invalid("{{node %.*s}} lacks a condition or a body", STR_ARG(n->name));
    Arena *a = l->g->arena;
    size_t count = (size_t)n->input_count;
    LoopParts p = {.count = n->input_count,
                   .enters = arena_calloc(a, count, sizeof(Node *)),
                   .merges = arena_calloc(a, count, sizeof(Node *)),
                   .switches = arena_calloc(a, count, sizeof(Node *)),
                   .in_cond = arena_calloc(a, count, sizeof(Output)),
                   .in_body = arena_calloc(a, count, sizeof(Output)),
                   .results = arena_calloc(a, count, sizeof(Output)),
                   .constant = arena_calloc(a, count, sizeof(bool)),
                   .first = -1};
    Error *err = add_enters(l, n, &p, enclosing);
    if (!err && p.first < 0) return error_unimplemented("{{node %.*s}} has no loop variable that changes", STR_ARG(n->name));
    if (!err) err = add_loop_merges(l, n, &p);
    Inlined test = {0};
    if (!err) err = lowerer_inline(l, n, cond, lowerer_name(l, n, "cond"), p.in_cond, p.count, p.merges[p.first], depth, &test);
    if (!err && test.ret_count != 1) err = error_invalid("The condition of {{node %.*s}} returns %d values", STR_ARG(n->name), test.ret_count);
    Node *loop_cond = NULL;
    if (!err) err = lowerer_add(l, lowerer_name(l, n, "loop_cond"), "LoopCond", n, &loop_cond);
    if (err) return err;
    node_set_inputs(l->g, loop_cond, test.rets, 1);
    if (test.effects) node_add_control(l->g, loop_cond, test.effects);
    err = node_resolve(l->g, loop_cond);
    if (!err) err = add_loop_body(l, n, &p, loop_cond, body, depth);
    return err ? err : lowerer_become_results(l, n, p.results, p.count, NULL);
}
