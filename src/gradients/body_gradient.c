/* body_gradient.c: a body is differentiated as a graph of its own; nodes are then told apart by whether they were there
 * before. */
#include "gradients/body_gradient.h"

#include <stdlib.h>

#include "base/memory.h"
#include "graph/function_def.h"
#include "gradients/backprop.h"

Error *node_function_body(const FunctionLibrary *lib, Str name_attr_list, FunctionBody **out) {
    const Function *f = lib ? function_find(lib, func_name(name_attr_list)) : NULL;
    if (!f) return error_not_found("Function %.*s is not in the library", STR_ARG(func_name(name_attr_list)));
    int count = func_attrs(name_attr_list, NULL, 0);
    Attr *attrs = xcalloc((size_t)count, sizeof *attrs);
    func_attrs(name_attr_list, attrs, count);
    Error *err = function_instantiate(lib, f, attrs, count, out);
    free(attrs);
    return err;
}

/* ---- Making bodies ---- */

FunctionBody *body_new(FunctionLibrary *lib, int args, int rets, Builder *b) {
    FunctionBody *body = xcalloc(1, sizeof *body);
    body->graph = graph_new();
    body->graph->functions = lib;
    body->args = arena_calloc(body->graph->arena, (size_t)args, sizeof *body->args);
    body->rets = arena_calloc(body->graph->arena, (size_t)rets, sizeof *body->rets);
    *b = (Builder){.g = body->graph, .scope = STR("gradients"), .device = STR("")};
    return body;
}

Output body_add_arg(Builder *b, FunctionBody *body, const char *name, DataType type) {
    Node *n = NULL;
    if (b->error) return NO_OUTPUT;
    b_fail(b, graph_adopt_node(b->g, graph_unique_name(b->g, str_of(name)), STR("_Arg"), STR(""), &n));
    if (b->error) return NO_OUTPUT;
    node_add_attr(b->g, n, STR("T"), attr_make_type(b->g->arena, type));
    node_add_attr(b->g, n, STR("index"), attr_make_int(b->g->arena, body->arg_count));
    b_fail(b, node_resolve(b->g, n));
    body->args[body->arg_count++] = n;
    return (Output){n, 0};
}

void body_add_ret(FunctionBody *body, Output x) {
    if (has(x)) body->rets[body->ret_count++] = x;
}

bool body_is_stateful(const FunctionBody *body) {
    for (int i = 0; i < body->graph->node_count; i++)
        if (node_is_stateful(body->graph->nodes[i]) && !node_is(body->graph->nodes[i], "_Arg")) return true;
    return false;
}

static Str plain_name(Arena *a, FunctionLibrary *lib, Str wish) {
    Str base = arena_str(a, wish), name;
    char *text = (char *)base.ptr;
    for (size_t i = 0; i < base.len; i++) {
        bool plain = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
                     (text[i] >= '0' && text[i] <= '9');
        if (!plain) text[i] = '_';
    }
    name = base;
    for (int i = 1; function_find(lib, name) || op_find(name); i++) name = arena_printf(a, "%.*s_%d", STR_ARG(base), i);
    return name;
}

Str body_finish(Builder *b, FunctionLibrary *lib, FunctionBody *body, Str wish) {
    Str name = {"", 0};
    if (!b->error) {
        Str plain = plain_name(body->graph->arena, lib, wish);
        b_fail(b, function_def_add(lib, body, plain));
        const Function *f = function_find(lib, plain);
        if (f) name = f->name;
    }
    builder_clear(b);
    function_body_free(body);
    return name;
}

/* ---- Both in one graph ---- */

int body_need(BodyGradient *m, Output x) {
    for (int i = 0; i < m->need_count; i++)
        if (same_output(m->needs[i], x)) return i;
    Output *grown = arena_alloc(m->body->graph->arena, sizeof *grown * (size_t)(m->need_count + 1));
    for (int i = 0; i < m->need_count; i++) grown[i] = m->needs[i];
    grown[m->need_count] = x;
    m->needs = grown;
    return m->need_count++;
}

int body_need_arg(const BodyGradient *m, int need) {
    for (int i = 0; i < m->body->arg_count; i++)
        if (m->body->args[i] == m->needs[need].node) return i;
    return -1;
}

static bool is_const(const Node *n) {
    return node_is(n, "Const");
}

static void find_needs(BodyGradient *m) {
    const Graph *g = m->body->graph;
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        for (int j = 0; m->is_backward[i] && j < n->input_count; j++)
            if (!m->is_backward[n->inputs[j].node->id] && !is_const(n->inputs[j].node)) body_need(m, n->inputs[j]);
    }
    for (int i = 0; i < m->body->arg_count; i++) {
        Output parts[] = {m->dxs[i].values, m->dxs[i].indices};
        for (int j = 0; j < 2; j++)
            if (has(parts[j]) && !m->is_backward[parts[j].node->id] && !is_const(parts[j].node)) body_need(m, parts[j]);
    }
}

/* An _Arg for the gradient by result i. */
static void add_dy(Builder *b, BodyGradient *m, int i) {
    FunctionBody unused = {.args = (Node *[]){NULL}};
    m->dys[i] = body_add_arg(b, &unused, "dy", output_dtype(m->body->rets[i])).node;
}

static Error *differentiate(BodyGradient *m, const bool *given, const bool *wanted, const bool *sparse) {
    FunctionBody *body = m->body;
    Builder b = {.g = body->graph, .scope = STR("gradients"), .device = STR("")};
    int before = body->graph->node_count, ny = 0, nx = 0;
    Output *ys = xcalloc((size_t)body->ret_count, sizeof *ys), *dxs = xcalloc((size_t)body->ret_count, sizeof *dxs),
           *xs = xcalloc((size_t)body->arg_count, sizeof *xs);
    Gradient *found = xcalloc((size_t)body->arg_count, sizeof *found);
    IntMap forward_nodes = {0};
    for (int i = 0; i < body->ret_count; i++) {
        if (!given[i]) continue;
        add_dy(&b, m, i);
        ys[ny] = body->rets[i];
        dxs[ny++] = (Output){m->dys[i], 0};
    }
    for (int i = 0; i < body->arg_count; i++)
        if (wanted[i]) xs[nx++] = (Output){body->args[i], 0};
    GradientOptions options = {.dxs = dxs, .prefix = "gradients", .sparse = true};
    Error *err = b.error;
    if (!err && ny) err = backprop_run(body->graph, ys, ny, xs, nx, &options, &forward_nodes, found);
    for (int i = 0, at = 0; !err && i < body->arg_count; i++) {
        if (!wanted[i]) continue;
        m->dxs[i] = found[at++];
        if (has(m->dxs[i].indices) && !(sparse && sparse[i])) m->dxs[i] = (Gradient){.values = gradient_dense(&b, m->dxs[i])};
    }
    if (!err) err = b.error;
    m->is_backward = arena_calloc(body->graph->arena, (size_t)body->graph->node_count, sizeof(bool));
    for (int i = before; i < body->graph->node_count; i++)
        m->is_backward[i] = !intmap_get(&forward_nodes, (uint64_t)i + 1);
    intmap_clear(&forward_nodes);
    builder_clear(&b);
    free(ys);
    free(dxs);
    free(xs);
    free(found);
    return err;
}

Error *body_gradient_new(FunctionLibrary *lib, Str name_attr_list, const bool *wanted, const bool *sparse, int arg_count,
                         const bool *given, int ret_count, BodyGradient **out) {
    BodyGradient *m = xcalloc(1, sizeof *m);
    Error *err = node_function_body(lib, name_attr_list, &m->body);
    if (!err && (m->body->arg_count != arg_count || m->body->ret_count != ret_count))
        err = error_invalid("Function %.*s takes %d values and returns %d instead of %d and %d",
                            STR_ARG(func_name(name_attr_list)), m->body->arg_count, m->body->ret_count, arg_count,
                            ret_count);
    if (!err) {
        Arena *a = m->body->graph->arena;
        m->dys = arena_calloc(a, (size_t)m->body->ret_count, sizeof *m->dys);
        m->dxs = arena_calloc(a, (size_t)m->body->arg_count, sizeof *m->dxs);
        err = error_wrap(differentiate(m, given, wanted, sparse), "function %.*s", STR_ARG(func_name(name_attr_list)));
    }
    if (err) {
        body_gradient_free(m);
        return err;
    }
    find_needs(m);
    *out = m;
    return NULL;
}

void body_gradient_free(BodyGradient *m) {
    if (!m) return;
    function_body_free(m->body);
    free(m);
}

/* ---- Split ---- */

static Node *copy_node(Builder *b, const Node *n) {
    Node *copy = NULL;
    if (b->error) return NULL;
    b_fail(b, graph_add_node(b->g, graph_unique_name(b->g, n->name), n->op, n->device, &copy));
    for (int i = 0; !b->error && i < n->attr_count; i++) node_add_attr(b->g, copy, n->attrs[i].name, n->attrs[i].value);
    if (!b->error) b_fail(b, node_resolve(b->g, copy));
    return copy;
}

/* Where nodes of the body are copied to, and what stands for what is not copied. */
typedef struct Copies {
    const BodyGradient *m;
    Node **nodes;              /* by id */
    const Output *dys, *needs; /* NULL: nothing but copies can be used */
} Copies;

static Output copied_edge(Builder *b, Copies *c, Output x) {
    const BodyGradient *m = c->m;
    for (int i = 0; c->dys && i < m->body->ret_count; i++)
        if (m->dys[i] && m->dys[i] == x.node) return c->dys[i];
    if (!c->nodes[x.node->id] && is_const(x.node)) c->nodes[x.node->id] = copy_node(b, x.node);
    if (c->nodes[x.node->id]) return (Output){c->nodes[x.node->id], x.index};
    for (int i = 0; c->needs && i < m->need_count; i++)
        if (same_output(m->needs[i], x)) return c->needs[i];
    b_fail(b, error_internal("The gradient of a function uses node %.*s, which is not its own", STR_ARG(x.node->name)));
    return NO_OUTPUT;
}

/* Copies the nodes of one kind, and the edges into them. */
static void copy_nodes(Builder *b, Copies *c, bool backward) {
    const Graph *g = c->m->body->graph;
    for (int i = 0; i < g->node_count; i++)
        if (c->m->is_backward[i] == backward && !(backward && node_is(g->nodes[i], "_Arg")))
            c->nodes[i] = copy_node(b, g->nodes[i]);
    for (int i = 0; i < g->node_count && !b->error; i++) {
        const Node *n = g->nodes[i];
        if (c->m->is_backward[i] != backward || !c->nodes[i]) continue;
        Output *inputs = arena_calloc(b->g->arena, (size_t)n->input_count, sizeof *inputs);
        for (int j = 0; j < n->input_count; j++) inputs[j] = copied_edge(b, c, n->inputs[j]);
        node_set_inputs(b->g, c->nodes[i], inputs, n->input_count);
        for (int j = 0; j < n->control_count; j++)
            if (c->nodes[n->controls[j]->id]) node_add_control(b->g, c->nodes[i], c->nodes[n->controls[j]->id]);
    }
}

FunctionBody *body_gradient_forward(const BodyGradient *m, FunctionLibrary *lib, int more_args, int more_rets,
                                    Builder *b, Output *needs) {
    const FunctionBody *from = m->body;
    FunctionBody *body = body_new(lib, from->arg_count + more_args, from->ret_count + more_rets, b);
    Copies c = {m, xcalloc((size_t)from->graph->node_count, sizeof(Node *)), NULL, NULL};
    copy_nodes(b, &c, false);
    body->control_rets = arena_calloc(body->graph->arena, (size_t)from->control_ret_count, sizeof(Node *));
    for (int i = 0; !b->error && i < from->arg_count; i++) body->args[body->arg_count++] = c.nodes[from->args[i]->id];
    for (int i = 0; !b->error && i < from->ret_count; i++) body_add_ret(body, copied_edge(b, &c, from->rets[i]));
    for (int i = 0; !b->error && i < from->control_ret_count; i++)
        body->control_rets[body->control_ret_count++] = c.nodes[from->control_rets[i]->id];
    for (int i = 0; !b->error && i < m->need_count; i++) needs[i] = copied_edge(b, &c, m->needs[i]);
    free(c.nodes);
    return body;
}

void body_gradient_copy(const BodyGradient *m, Builder *b, const Output *dys, const Output *needs, Gradient *dxs) {
    Copies c = {m, xcalloc((size_t)m->body->graph->node_count, sizeof(Node *)), dys, needs};
    copy_nodes(b, &c, true);
    for (int i = 0; i < m->body->arg_count; i++) {
        dxs[i] = (Gradient){0};
        if (has(m->dxs[i].values) && !b->error) dxs[i].values = copied_edge(b, &c, m->dxs[i].values);
        if (has(m->dxs[i].indices) && !b->error) dxs[i].indices = copied_edge(b, &c, m->dxs[i].indices);
    }
    free(c.nodes);
}
