/* symbolic_gradient.c: a function is made into a plain graph, without calls, and that is differentiated: no new
 * functions are needed. */
#include "placement/symbolic_gradient.h"

#include <stdlib.h>

#include "base/memory.h"
#include "gradients/gradients.h"
#include "placement/lower.h"

enum { MAX_NESTING = 16 };

static Error *add_typed(Graph *g, const char *name, const char *op, DataType type, const Output *input, Node **out) {
    Error *err = graph_add_node(g, graph_unique_name(g, str_of(name)), str_of(op), STR(""), out);
    if (err) return err;
    node_add_attr(g, *out, STR("T"), attr_make_type(g->arena, type));
    if (input) node_set_inputs(g, *out, input, 1);
    return NULL;
}

static Error *add_argument(Graph *g, FunctionBody *body, DataType type) {
    Node *n = NULL;
    Error *err = add_typed(g, "dy", "_Arg", type, NULL, &n);
    if (err) return err;
    node_add_attr(g, n, STR("index"), attr_make_int(g->arena, body->arg_count));
    body->args[body->arg_count++] = n;
    return node_resolve(g, n);
}

/* A graph of its own: what is lowered points into the graph it was made from. */
static Error *clone(const Graph *from, Graph *to) {
    for (int i = 0; i < from->node_count; i++) {
        const Node *n = from->nodes[i];
        Node *copy = NULL;
        Error *err = graph_add_node(to, n->name, n->op, n->device, &copy);
        for (int j = 0; !err && j < n->attr_count; j++) node_add_attr(to, copy, n->attrs[j].name, n->attrs[j].value);
        if (!err) err = node_resolve(to, copy);
        if (err) return err;
    }
    for (int i = 0; i < from->node_count; i++) {
        const Node *n = from->nodes[i];
        Output *inputs = arena_calloc(to->arena, (size_t)n->input_count, sizeof *inputs);
        for (int j = 0; j < n->input_count; j++)
            inputs[j] = (Output){to->nodes[n->inputs[j].node->id], n->inputs[j].index};
        node_set_inputs(to, to->nodes[i], inputs, n->input_count);
        for (int j = 0; j < n->control_count; j++) node_add_control(to, to->nodes[i], to->nodes[n->controls[j]->id]);
    }
    return NULL;
}

/* Functional nodes that are left would need new functions: recursion without end, or conditions that are not bool. */
static Error *check_plain(const FunctionLibrary *lib, const Graph *g) {
    static const char *const ops[] = {
        "PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient", "If", "StatelessIf", "Case", "StatelessCase",
        "While",           "StatelessWhile"};
    for (int i = 0; i < g->node_count; i++) {
        if (function_gradient(lib, function_callee(lib, g->nodes[i])).len) continue; /* which is called: nothing is derived */
        bool functional = function_find(lib, g->nodes[i]->op) != NULL;
        for (size_t j = 0; !functional && j < sizeof ops / sizeof *ops; j++) functional = node_is(g->nodes[i], ops[j]);
        if (functional)
            return error_unimplemented("SymbolicGradient through node %.*s (op %.*s)", STR_ARG(g->nodes[i]->name),
                                       STR_ARG(g->nodes[i]->op));
    }
    return NULL;
}

static bool is_smooth(DataType t) {
    return t == DT_FLOAT || t == DT_DOUBLE || t == DT_HALF || t == DT_BFLOAT16 || t == DT_COMPLEX64 ||
           t == DT_COMPLEX128 || t == DT_VARIANT;
}

/* The gradient by an argument that no result depends on. As in TensorFlow a resource is taken for a variable of floats. */
static Error *add_zeros(Graph *g, Output x, Output *out) {
    DataType type = dtype_base(x.node->output_types[x.index]);
    Node *value = NULL, *zeros = NULL;
    Error *err = NULL;
    if (type == DT_RESOURCE) {
        type = DT_FLOAT;
        err = graph_add_node(g, graph_unique_name(g, STR("value")), STR("ReadVariableOp"), STR(""), &value);
        if (err) return err;
        node_add_attr(g, value, STR("dtype"), attr_make_type(g->arena, type));
        node_set_inputs(g, value, &x, 1);
        err = node_resolve(g, value);
        x = (Output){value, 0};
    }
    if (!err) err = add_typed(g, "zeros", "ZerosLike", type, &x, &zeros);
    if (!err) err = node_resolve(g, zeros);
    *out = (Output){zeros, 0};
    return err;
}

/* Gradients of the body's results by its arguments become its results. */
static Error *differentiate(FunctionBody *body, const Output *results, int result_count, int arg_count) {
    Graph *g = body->graph;
    Output *ys = xcalloc((size_t)result_count, sizeof *ys), *given = xcalloc((size_t)result_count, sizeof *given);
    Output *xs = xcalloc((size_t)arg_count, sizeof *xs), *found = xcalloc((size_t)arg_count, sizeof *found);
    int ny = 0;
    for (int i = 0; i < result_count; i++) {
        if (!is_smooth(dtype_base(results[i].node->output_types[results[i].index]))) continue;
        ys[ny] = results[i];
        given[ny++] = (Output){body->args[arg_count + i], 0};
    }
    for (int i = 0; i < arg_count; i++) xs[i] = (Output){body->args[i], 0};
    Error *err = ny ? gradients_add(g, ys, ny, xs, arg_count, given, "gradients", found) : NULL;
    for (int i = 0; !err && i < arg_count; i++) {
        if (!found[i].node) err = add_zeros(g, xs[i], &found[i]);
        body->rets[body->ret_count++] = found[i];
    }
    free(ys);
    free(given);
    free(xs);
    free(found);
    return err;
}

/* The body of function `name` with the attributes of the reference. */
static Error *instantiate(const FunctionLibrary *lib, Str name, Str name_attr_list, FunctionBody **out) {
    const Function *f = function_find(lib, name);
    if (!f) return error_not_found("Function %.*s of a SymbolicGradient is not in the library", STR_ARG(name));
    int count = func_attrs(name_attr_list, NULL, 0);
    Attr *attrs = xcalloc((size_t)count, sizeof *attrs);
    func_attrs(name_attr_list, attrs, count);
    Error *err = function_instantiate(lib, f, attrs, count, out);
    free(attrs);
    return err;
}

Error *symbolic_gradient_body(const FunctionLibrary *lib, Str name_attr_list, int nesting, FunctionBody **out) {
    if (nesting > MAX_NESTING)
        return error_invalid("The gradient of function %.*s needs gradients of gradients, more than %d deep",
                             STR_ARG(func_name(name_attr_list)), MAX_NESTING);
    if (!function_find(lib, func_name(name_attr_list))) return error_not_found("No gradient defined for op: %.*s", STR_ARG(func_name(name_attr_list)));
    Str own = function_gradient(lib, func_name(name_attr_list));
    if (own.len) return instantiate(lib, own, name_attr_list, out);
    FunctionBody *function = NULL, *body = xcalloc(1, sizeof *body);
    Graph *lowered = NULL;
    Output *results = NULL;
    body->graph = graph_new();
    body->graph->functions = (FunctionLibrary *)lib;
    Error *err = instantiate(lib, func_name(name_attr_list), name_attr_list, &function);
    if (!err) err = graph_lower_all(function->graph, nesting, &lowered);
    if (!err) err = check_plain(lib, lowered);
    if (!err) err = clone(lowered, body->graph);
    if (err) goto out;
    Arena *a = body->graph->arena;
    int arg_count = function->arg_count, ret_count = function->ret_count;
    body->args = arena_calloc(a, (size_t)(arg_count + ret_count), sizeof *body->args);
    body->rets = arena_calloc(a, (size_t)arg_count, sizeof *body->rets);
    results = xcalloc((size_t)ret_count, sizeof *results);
    /* Nodes that are lowered keep their places. */
    for (int i = 0; i < arg_count; i++) body->args[body->arg_count++] = body->graph->nodes[function->args[i]->id];
    for (int i = 0; i < ret_count; i++)
        results[i] = (Output){body->graph->nodes[function->rets[i].node->id], function->rets[i].index};
    for (int i = 0; !err && i < ret_count; i++) {
        const Node *n = results[i].node;
        if (!n->info)
            err = node_unknown_op(n);
        if (!err) err = add_argument(body->graph, body, dtype_base(n->output_types[results[i].index]));
    }
    if (!err) err = differentiate(body, results, ret_count, arg_count);
out:
    free(results);
    graph_free(lowered);
    function_body_free(function);
    if (err) {
        function_body_free(body);
        return error_wrap(err, "SymbolicGradient of function %.*s", STR_ARG(func_name(name_attr_list)));
    }
    *out = body;
    return NULL;
}
