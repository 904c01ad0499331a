/* while.c: gradients of While.

   The loop is replaced by one that also counts its iterations and keeps, in lists, the values that its gradient needs.
   The gradient is a second While that runs as often, takes the last element off each list, and undoes one iteration. */
#include <stdlib.h>

#include "base/memory.h"
#include "graph/function.h"
#include "gradients/backprop.h"
#include "gradients/body_gradient.h"

typedef struct WhileLoop {
    Rule *r;
    Node *node;
    FunctionLibrary *lib;
    Str cond, body; /* NameAttrLists */
    int count;      /* variables */
    bool *active;   /* variables that have a gradient and lead to an x */
    bool *handles;  /* variables that are handles of what leads to an x: the same in all iterations */
    bool *constant; /* variables that the body returns as they are */
    bool *wanted;
    BodyGradient *m;
    int *lists; /* by need: position of its list among all lists; -1 for one that is a constant variable */
    int list_count;
} WhileLoop;

/* ---- Which variables take part ---- */

/* Marks the arguments that a result depends on by values that have gradients. */
static void mark_arguments(const FunctionBody *body, Output ret, bool *depends, int *stack, bool *seen) {
    int depth = 0;
    for (int i = 0; i < body->graph->node_count; i++) seen[i] = false;
    if (!dtype_is_trainable(output_dtype(ret))) return;
    seen[ret.node->id] = true;
    stack[depth++] = ret.node->id;
    while (depth) {
        const Node *n = body->graph->nodes[stack[--depth]];
        for (int i = 0; i < n->input_count; i++) {
            const Node *input = n->inputs[i].node;
            if (seen[input->id] || !dtype_is_trainable(output_dtype(n->inputs[i]))) continue;
            seen[input->id] = true;
            stack[depth++] = input->id;
        }
    }
    for (int i = 0; i < body->arg_count; i++) depends[i] = seen[body->args[i]->id];
}

static void find_active(WhileLoop *w, const FunctionBody *body) {
    int count = w->count, *stack = xcalloc((size_t)body->graph->node_count, sizeof *stack);
    bool *depends = xcalloc((size_t)count * (size_t)count, 1), *seen = xcalloc((size_t)body->graph->node_count, 1);
    bool *reached = xcalloc((size_t)count, 1), *leads = xcalloc((size_t)count, 1);
    for (int i = 0; i < count; i++) {
        mark_arguments(body, body->rets[i], depends + i * count, stack, seen);
        w->constant[i] = body->rets[i].node == body->args[i];
        reached[i] = rule_has_dy(w->r, i);
        leads[i] = rule_wants(w->r, i);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < count * count; i++) {
            int ret = i / count, arg = i % count;
            if (!depends[i]) continue;
            changed |= (reached[ret] && !reached[arg]) || (leads[arg] && !leads[ret]);
            reached[arg] |= reached[ret];
            leads[ret] |= leads[arg];
        }
    }
    for (int i = 0; i < count; i++) {
        bool is_handle = dtype_base(w->node->input_types[i]) == DT_RESOURCE;
        w->active[i] = reached[i] && leads[i] && !is_handle;
        w->handles[i] = is_handle && leads[i] && w->constant[i];
        w->wanted[i] = w->active[i] || w->handles[i];
    }
    free(stack);
    free(depends);
    free(seen);
    free(reached);
    free(leads);
}

/* ---- The loop again, with more variables: behind its own a count, then lists ---- */

static void plan_lists(WhileLoop *w, Arena *a) {
    BodyGradient *m = w->m;
    /* Zeros for a variable that nothing flows back to are made like it. */
    for (int i = 0; i < w->count; i++)
        if (w->active[i] && !has(m->dxs[i].values)) body_need(m, (Output){m->body->args[i], 0});
    w->lists = arena_calloc(a, (size_t)m->need_count, sizeof *w->lists);
    for (int i = 0; i < m->need_count; i++) {
        int arg = body_need_arg(m, i);
        w->lists[i] = arg >= 0 && w->constant[arg] ? -1 : w->list_count++;
    }
}

static Str new_body(Builder *outer, WhileLoop *w) {
    Builder b;
    Output *needs = arena_calloc(outer->g->arena, (size_t)w->m->need_count, sizeof *needs);
    FunctionBody *body = body_gradient_forward(w->m, w->lib, 1 + w->list_count, 1 + w->list_count, &b, needs);
    Output done = body_add_arg(&b, body, "iterations", DT_INT32);
    body_add_ret(body, b_add(&b, done, b_i32(&b, 1)));
    for (int i = 0; i < w->m->need_count && !b.error; i++) {
        if (w->lists[i] < 0) continue;
        Output list = body_add_arg(&b, body, "list", DT_VARIANT);
        body_add_ret(body, b_op2(&b, "TensorListPushBack", list, needs[i]));
    }
    Str name =
        body_finish(&b, w->lib, body, arena_printf(outer->g->arena, "%.*s_forward", STR_ARG(func_name(w->body))));
    b_fail(outer, b.error);
    return name;
}

static Str new_cond(Builder *outer, WhileLoop *w) {
    FunctionBody *body = NULL;
    b_fail(outer, node_function_body(w->lib, w->cond, &body));
    if (outer->error) return STR("");
    Builder b = {.g = body->graph, .scope = STR("gradients"), .device = STR("")};
    Node **args = arena_calloc(b.g->arena, (size_t)(body->arg_count + 1 + w->list_count), sizeof *args);
    for (int i = 0; i < body->arg_count; i++) args[i] = body->args[i];
    body->args = args;
    body_add_arg(&b, body, "iterations", DT_INT32);
    for (int i = 0; i < w->list_count; i++) body_add_arg(&b, body, "list", DT_VARIANT);
    Str name =
        body_finish(&b, w->lib, body, arena_printf(outer->g->arena, "%.*s_forward", STR_ARG(func_name(w->cond))));
    b_fail(outer, b.error);
    return name;
}

static Output empty_list(Builder *b, DataType type) {
    Output shape = b_i32(b, -1), limit = b_i32(b, -1);
    b_with_type(b, "element_dtype", type);
    return b_op2(b, "EmptyTensorList", shape, limit);
}

static void rewrite(Builder *b, WhileLoop *w) {
    Node *n = w->node, *pivot = b->pivot;
    Graph *g = b->g;
    Str body = new_body(b, w), cond = new_cond(b, w);
    int more = 1 + w->list_count, at = w->count, before = g->node_count;
    if (b->error) return;
    Output *inputs = arena_calloc(g->arena, (size_t)(w->count + more), sizeof *inputs);
    DataType *types = arena_calloc(g->arena, (size_t)(w->count + more), sizeof *types);
    for (int i = 0; i < w->count; i++) inputs[i] = n->inputs[i];
    /* What enters runs where the While does: in the loop around it, if there is one. */
    b->pivot = w->r->scope->loop ? b_identity(b, n->inputs[0]).node : NULL;
    inputs[at++] = b_i32(b, 0);
    for (int i = 0; i < w->m->need_count; i++)
        if (w->lists[i] >= 0) inputs[at++] = empty_list(b, output_dtype(w->m->needs[i]));
    b->pivot = pivot;
    backprop_mark_forward(w->r->scope->p, before);
    if (b->error) return;
    for (int i = 0; i < w->count + more; i++) types[i] = output_dtype(inputs[i]);
    node_set_inputs(g, n, inputs, w->count + more);
    node_add_attr(g, n, STR("T"), attr_make_types(g->arena, types, w->count + more));
    node_add_attr(g, n, STR("body"), attr_make_func(g->arena, body));
    node_add_attr(g, n, STR("cond"), attr_make_func(g->arena, cond));
    node_extend_shapes(g, n, more);
    b_fail(b, node_resolve(g, n));
}

/* ---- The loop back: a count, gradients, sums for handles, lists, constants ---- */

/* By each variable of it: its type. */
typedef struct BackLoop {
    DataType *types;
    Output *inputs;
    int count;
} BackLoop;

static void add_variable(BackLoop *l, Output start) {
    l->types[l->count] = output_dtype(start);
    l->inputs[l->count++] = start;
}

static BackLoop back_loop(Builder *b, WhileLoop *w) {
    size_t room = (size_t)(1 + 2 * w->count + w->m->need_count);
    BackLoop l = {arena_calloc(b->g->arena, room, sizeof(DataType)), arena_calloc(b->g->arena, room, sizeof(Output)),
                  0};
    add_variable(&l, rule_value(w->r, (Output){w->node, w->count}));
    for (int i = 0; i < w->count; i++)
        if (w->active[i]) add_variable(&l, rule_dy(w->r, i));
    for (int i = 0; i < w->count; i++) {
        if (!w->handles[i] || !has(w->m->dxs[i].values)) continue;
        Output zero = b_scalar(b, output_dtype(w->m->dxs[i].values), 0);
        add_variable(&l, b_fill(b, b_shape(b, rule_in(w->r, i)), zero));
    }
    for (int i = 0; i < w->m->need_count; i++)
        add_variable(&l, w->lists[i] >= 0 ? rule_value(w->r, (Output){w->node, w->count + 1 + w->lists[i]})
                                          : rule_in(w->r, body_need_arg(w->m, i)));
    return l;
}

static Str new_back_cond(Builder *outer, WhileLoop *w, const BackLoop *l) {
    Builder b;
    FunctionBody *body = body_new(w->lib, l->count, 1, &b);
    for (int i = 0; i < l->count; i++) body_add_arg(&b, body, i ? "variable" : "left", l->types[i]);
    body_add_ret(body, b_op2(&b, "Greater", output_of(body->args[0], 0), b_i32(&b, 0)));
    Str name =
        body_finish(&b, w->lib, body, arena_printf(outer->g->arena, "%.*s_backward", STR_ARG(func_name(w->cond))));
    b_fail(outer, b.error);
    return name;
}

/* The value of each need in the iteration being undone; lists[i] is what is left of its list, or the constant itself.
 */
static void take_needs(Builder *b, const WhileLoop *w, const Output *args, Output *needs, Output *left) {
    for (int i = 0; i < w->m->need_count && !b->error; i++) {
        needs[i] = left[i] = args[i];
        if (w->lists[i] < 0) continue;
        Output inputs[] = {args[i], b_i32(b, -1)};
        b_with_type(b, "element_dtype", output_dtype(w->m->needs[i]));
        Node *popped = b_node(b, "TensorListPopBack", inputs, 2);
        left[i] = output_of(popped, 0);
        needs[i] = output_of(popped, 1);
    }
}

static Str new_back_body(Builder *outer, WhileLoop *w, const BackLoop *l, bool *stateful) {
    Builder b;
    Arena *a = outer->g->arena;
    const BodyGradient *m = w->m;
    FunctionBody *body = body_new(w->lib, l->count, l->count, &b);
    Output *args = arena_calloc(a, (size_t)l->count, sizeof *args);
    for (int i = 0; i < l->count; i++) args[i] = body_add_arg(&b, body, i ? "variable" : "left", l->types[i]);
    Output *needs = arena_calloc(a, (size_t)m->need_count, sizeof *needs),
           *left = arena_calloc(a, (size_t)m->need_count, sizeof *left);
    Output *dys = arena_calloc(a, (size_t)w->count, sizeof *dys);
    Gradient *dxs = arena_calloc(a, (size_t)w->count, sizeof *dxs);
    int at = 1;
    for (int i = 0; i < w->count; i++)
        if (w->active[i]) dys[i] = args[at++];
    int sums = at;
    take_needs(&b, w, args + (l->count - m->need_count), needs, left);
    body_gradient_copy(m, &b, dys, needs, dxs);
    body_add_ret(body, b_sub(&b, args[0], b_i32(&b, 1)));
    for (int i = 0; i < w->count && !b.error; i++) {
        if (!w->active[i]) continue;
        for (int j = 0; !has(dxs[i].values) && j < m->need_count; j++)
            if (body_need_arg(m, j) == i) dxs[i].values = b_zeros_like(&b, needs[j]);
        body_add_ret(body, dxs[i].values);
    }
    for (int i = 0; i < w->count && !b.error; i++)
        if (w->handles[i] && has(m->dxs[i].values)) body_add_ret(body, b_add(&b, args[sums++], dxs[i].values));
    for (int i = 0; i < m->need_count; i++) body_add_ret(body, left[i]);
    *stateful = body_is_stateful(body);
    Str name = body_finish(&b, w->lib, body, arena_printf(a, "%.*s_backward", STR_ARG(func_name(w->body))));
    b_fail(outer, b.error);
    return name;
}

static void add_back_loop(Builder *b, WhileLoop *w) {
    BackLoop l = back_loop(b, w);
    bool stateful = false;
    Str value;
    if (b->error) return;
    Str cond = new_back_cond(b, w, &l), body = new_back_body(b, w, &l, &stateful);
    b_with(b, "cond", attr_make_func(b->g->arena, cond));
    b_with(b, "body", attr_make_func(b->g->arena, body));
    if (node_attr(w->node, "_lower_using_switch_merge", &value)) b_with(b, "_lower_using_switch_merge", value);
    if (node_attr(w->node, "parallel_iterations", &value)) b_with(b, "parallel_iterations", value);
    Node *n = b_node(b, stateful ? "While" : "StatelessWhile", l.inputs, l.count);
    int at = 1;
    for (int i = 0; i < w->count; i++)
        if (w->active[i]) rule_set(w->r, i, output_of(n, at++));
    for (int i = 0; i < w->count; i++)
        if (w->handles[i] && has(w->m->dxs[i].values)) rule_set(w->r, i, output_of(n, at++));
}

static void while_grad(Builder *b, Rule *r) {
    Arena *a = b->g->arena;
    WhileLoop w = {.r = r, .node = (Node *)rule_node(r), .lib = b->g->functions};
    size_t count = (size_t)w.node->input_count;
    w.count = w.node->input_count;
    w.active = arena_calloc(a, count, 1);
    w.handles = arena_calloc(a, count, 1);
    w.constant = arena_calloc(a, count, 1);
    w.wanted = arena_calloc(a, count, 1);
    Str value;
    FunctionBody *body = NULL;
    bool ok = node_attr(w.node, "cond", &value) && attr_func(value, &w.cond) && node_attr(w.node, "body", &value) &&
              attr_func(value, &w.body);
    if (!ok) b_fail(b, error_invalid("Node %.*s lacks a condition or a body", STR_ARG(w.node->name)));
    if (!b->error) b_fail(b, node_function_body(w.lib, w.body, &body));
    if (!b->error && (body->arg_count != w.count || body->ret_count != w.count))
        b_fail(b, error_invalid("The body of node %.*s takes %d values and returns %d instead of %d",
                                STR_ARG(w.node->name), body->arg_count, body->ret_count, w.count));
    bool any = false;
    if (!b->error) find_active(&w, body);
    for (int i = 0; i < w.count; i++) any |= w.active[i];
    if (!b->error && any) b_fail(b, body_gradient_new(w.lib, w.body, w.wanted, NULL, w.count, w.active, w.count, &w.m));
    if (!b->error && any) {
        plan_lists(&w, a);
        rewrite(b, &w);
        add_back_loop(b, &w);
    }
    body_gradient_free(w.m);
    function_body_free(body);
}

const GradientDef while_gradients[] = {
    {"StatelessWhile", while_grad},
    {"While", while_grad},
    {0},
};
