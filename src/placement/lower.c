/* lower.c: If, Case, While and calls as graphs without functions.

   Every lowered node stays in the graph under its name, turned into an IdentityN of its results (or a NoOp), so that it can be fetched and waited
   for; its consumers take the results themselves, so that a step needs only what it uses. New nodes are named NAME/...; bodies may hold further functional nodes, which are lowered in turn. */
#include "placement/lower.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/function.h"
#include "placement/device_name.h"
#include "placement/symbolic_gradient.h"

enum { MAX_DEPTH = 48, MAX_NODES = 1000000, MAX_BODIES = 100000 };

typedef struct Pending {
    Node *node;
    int depth;
    Node *gate; /* runs in the branch or iteration the node is in; NULL outside of those of functional nodes */
} Pending;

typedef struct Lowerer {
    Graph *g;
    const FunctionLibrary *lib;
    Pending *queue;
    size_t count, capacity;
    struct Replaced {
        Node *node;
        const Output *results;
    } *replaced; /* lowered nodes */
    size_t replaced_count, replaced_capacity;
    int body_count;    /* inlined so far */
    bool all;          /* If, Case and While are lowered even when the client did not ask for it */
    int nesting;       /* how many gradients this graph is inside of */
    bool has_switches; /* the client's own Switch or Enter nodes: a call may be in a branch without a gate to tell */
} Lowerer;

static Str sub_name(Lowerer *l, const Node *n, const char *part) {
    return graph_unique_name(l->g, arena_printf(l->g->arena, "%.*s/%s", STR_ARG(n->name), part));
}

static bool wants_lowering(const Node *n) {
    Str value;
    bool yes = false;
    return node_attr(n, "_lower_using_switch_merge", &value) && attr_bool(value, &yes) && yes;
}

typedef enum Functional { NOT_FUNCTIONAL, CALL, IF, CASE, WHILE } Functional;

/* A call that is to be differentiated stays one when its function has a gradient of its own. */
static bool keeps_gradient(const Lowerer *l, const Node *n) {
    return l->all && l->lib && function_gradient(l->lib, function_callee(l->lib, n)).len;
}

static Functional functional_kind(const Lowerer *l, const Node *n) {
    if (keeps_gradient(l, n)) return NOT_FUNCTIONAL;
    if (node_is(n, "PartitionedCall") || node_is(n, "StatefulPartitionedCall") || node_is(n, "SymbolicGradient")) return CALL;
    bool lower = l->all || wants_lowering(n);
    if (node_is(n, "If") || node_is(n, "StatelessIf")) return lower && n->input_types[0] == DT_BOOL ? IF : NOT_FUNCTIONAL;
    if (node_is(n, "Case") || node_is(n, "StatelessCase")) return lower ? CASE : NOT_FUNCTIONAL;
    if (node_is(n, "While") || node_is(n, "StatelessWhile")) return lower ? WHILE : NOT_FUNCTIONAL;
    return l->lib && function_find(l->lib, n->op) ? CALL : NOT_FUNCTIONAL;
}

/* ---- Adding nodes ---- */

static Error *add(Lowerer *l, Str name, const char *op, const Node *like, Node **out) {
    return graph_add_node(l->g, name, str_of(op), like->device, out);
}

static Error *add_unary(Lowerer *l, Str name, const char *op, const Node *like, Output input, DataType type, Node **out) {
    Error *err = add(l, name, op, like, out);
    if (err) return err;
    node_add_attr(l->g, *out, STR("T"), attr_make_type(l->g->arena, type));
    node_set_inputs(l->g, *out, &input, 1);
    return node_resolve(l->g, *out);
}

static DataType type_of(Output o) {
    return o.node->info && o.index < o.node->output_count ? dtype_base(o.node->output_types[o.index]) : DT_FLOAT;
}

static Error *add_switch(Lowerer *l, Str name, const Node *like, Output data, Output pred, Node **out) {
    Error *err = add(l, name, "Switch", like, out);
    if (err) return err;
    node_add_attr(l->g, *out, STR("T"), attr_make_type(l->g->arena, type_of(data)));
    node_set_inputs(l->g, *out, (Output[]){data, pred}, 2);
    return node_resolve(l->g, *out);
}

static Error *add_merge(Lowerer *l, Str name, const Node *like, const Output *inputs, int count, Node **out) {
    Error *err = add(l, name, "Merge", like, out);
    if (err) return err;
    node_add_attr(l->g, *out, STR("T"), attr_make_type(l->g->arena, type_of(inputs[0])));
    node_add_attr(l->g, *out, STR("N"), attr_make_int(l->g->arena, count));
    node_set_inputs(l->g, *out, inputs, count);
    return node_resolve(l->g, *out);
}

/* Turns the functional node itself into an IdentityN of its results that waits for `before`. */
static Error *become_results(Lowerer *l, Node *n, const Output *results, int count, Node *before) {
    DataType *types = arena_calloc(l->g->arena, (size_t)count, sizeof *types);
    for (int i = 0; i < count; i++) types[i] = type_of(results[i]);
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

/* Lets the consumers of lowered nodes take the results directly. */
static void bypass_replaced(Lowerer *l) {
    const Output **results = xcalloc((size_t)l->g->node_count, sizeof *results); /* by node id */
    for (size_t i = 0; i < l->replaced_count; i++) results[l->replaced[i].node->id] = l->replaced[i].results;
    for (int i = 0; l->replaced_count && i < l->g->node_count; i++) {
        Node *n = l->g->nodes[i];
        for (int j = 0; j < n->input_count; j++)
            while (results[n->inputs[j].node->id]) n->inputs[j] = results[n->inputs[j].node->id][n->inputs[j].index];
    }
    free(results);
}

/* ---- Bodies ---- */

typedef struct Inlined {
    Output *rets;
    int ret_count;
    Node *effects; /* a NoOp after everything that must run; NULL when nothing must */
} Inlined;

static Str merged_device(Lowerer *l, Str own, Str callers) {
    DeviceName a, b;
    if (!own.len) return callers;
    Error *err = device_name_parse(own, &a);
    if (!err) err = device_name_parse(callers, &b);
    bool ok = !err;
    error_free(err);
    if (!ok) return own;
    device_name_fill(&a, &b);
    return device_name_text(l->g->arena, &a);
}

static Node *copy_of(Node **copies, const Node *n) {
    return copies[n->id];
}

static void queue_node(Lowerer *l, Pending p) {
    l->queue = vec_reserve(l->queue, &l->capacity, l->count + 1, sizeof *l->queue);
    l->queue[l->count++] = p;
}

static bool is_switch(const Node *n) {
    return node_is(n, "Switch") || node_is(n, "RefSwitch") || node_is(n, "Enter") || node_is(n, "RefEnter");
}

static Error *copy_body_node(Lowerer *l, const Node *n, const Node *caller, Str prefix, Node *gate, int depth, Node **out) {
    Graph *g = l->g;
    Node *copy;
    Str name = graph_unique_name(g, arena_printf(g->arena, "%.*s/%.*s", STR_ARG(prefix), STR_ARG(n->name)));
    Error *err = graph_add_node(g, name, n->op, merged_device(l, n->device, caller->device), &copy);
    if (err) return err;
    for (int i = 0; i < n->attr_count; i++) {
        if (str_is(n->attrs[i].name, "_class")) continue; /* groups name nodes of the body; renaming them is not worth it */
        node_add_attr(g, copy, n->attrs[i].name, n->attrs[i].value);
    }
    /* Loops of the body need frames of their own. */
    if (node_is(copy, "Enter") || node_is(copy, "RefEnter")) {
        Str value, frame;
        if (node_attr(n, "frame_name", &value) && attr_string(value, &frame))
            node_add_attr(g, copy, STR("frame_name"), attr_make_string(g->arena, arena_printf(g->arena, "%.*s/%.*s", STR_ARG(prefix), STR_ARG(frame))));
    }
    err = node_resolve(g, copy);
    if (err) return err;
    l->has_switches |= is_switch(copy);
    if (copy->info && functional_kind(l, copy) != NOT_FUNCTIONAL) queue_node(l, (Pending){copy, depth + 1, gate});
    *out = copy;
    return NULL;
}

/* Joins the copied nodes. A node that would start by itself waits for `gate`, so that it runs only in its branch or iteration. */
static void link_body(Lowerer *l, const FunctionBody *body, Node **copies, const Output *args, Node *gate) {
    for (int i = 0; i < body->graph->node_count; i++) {
        const Node *n = body->graph->nodes[i];
        Node *copy = copies[i];
        if (!copy) continue;
        Output *inputs = arena_alloc(l->g->arena, sizeof *inputs * (size_t)(n->input_count + 1));
        for (int j = 0; j < n->input_count; j++) {
            Node *src = n->inputs[j].node;
            int64_t index = 0;
            bool is_arg = node_is(src, "_Arg");
            if (is_arg) error_free(node_attr_int(src, "index", &index));
            inputs[j] = is_arg ? args[index] : (Output){copy_of(copies, src), n->inputs[j].index};
        }
        copy->inputs = inputs;
        copy->input_count = n->input_count;
        for (int j = 0; j < n->control_count; j++)
            if (copy_of(copies, n->controls[j])) node_add_control(l->g, copy, copy_of(copies, n->controls[j]));
        if (gate && copy->input_count == 0 && copy->control_count == 0) node_add_control(l->g, copy, gate);
    }
}

/* What the caller's wish for a device says; every task has a CPU. */
static Str device_type_of(const Node *caller) {
    DeviceName name;
    Error *err = device_name_parse(caller->device, &name);
    bool known = !err && name.type.len;
    error_free(err);
    return known ? name.type : STR("CPU");
}

static Error *inline_body(Lowerer *l, Node *caller, Str function, Str prefix, const Output *args, int arg_count, Node *gate, int depth, Inlined *out) {
    const Function *f = function_find(l->lib, func_name(function));
    if (!f) return error_not_found("Function %.*s called by {{node %.*s}} is not in the library", STR_ARG(func_name(function)), STR_ARG(caller->name));
    if (++l->body_count > MAX_BODIES)
        return error_new(CODE_RESOURCE_EXHAUSTED, "The graph has more than %d function calls when functions are expanded, the last of %.*s by {{node %.*s}}",
                         MAX_BODIES, STR_ARG(f->name), STR_ARG(caller->name));
    f = function_implementation(l->lib, f, device_type_of(caller));
    int attr_count = func_attrs(function, NULL, 0);
    Attr *attrs = xcalloc((size_t)attr_count, sizeof *attrs);
    func_attrs(function, attrs, attr_count);
    FunctionBody *body = NULL;
    Node **copies = NULL;
    Error *err = node_is(caller, "SymbolicGradient") ? symbolic_gradient_body(l->lib, function, l->nesting + 1, &body)
                                                     : function_instantiate(l->lib, f, attrs, attr_count, &body);
    if (!err && body->arg_count != arg_count)
        err = error_invalid("Function %.*s takes %d arguments, {{node %.*s}} gives %d", STR_ARG(f->name), body->arg_count, STR_ARG(caller->name), arg_count);
    if (!err && l->g->node_count + body->graph->node_count > MAX_NODES)
        err = error_new(CODE_RESOURCE_EXHAUSTED, "Inlining %.*s would make more than %d nodes", STR_ARG(f->name), MAX_NODES);
    if (err) goto out;
    copies = xcalloc((size_t)body->graph->node_count, sizeof(Node *));
    for (int i = 0; !err && i < body->graph->node_count; i++)
        if (!node_is(body->graph->nodes[i], "_Arg")) err = copy_body_node(l, body->graph->nodes[i], caller, prefix, gate, depth, &copies[i]);
    if (err) goto out;
    link_body(l, body, copies, args, gate);
    out->ret_count = body->ret_count;
    out->rets = arena_calloc(l->g->arena, (size_t)body->ret_count, sizeof *out->rets);
    for (int i = 0; i < body->ret_count; i++) {
        Output ret = body->rets[i];
        int64_t index = 0;
        bool is_arg = node_is(ret.node, "_Arg");
        if (is_arg) error_free(node_attr_int(ret.node, "index", &index));
        out->rets[i] = is_arg ? args[index] : (Output){copy_of(copies, ret.node), ret.index};
    }
    for (int i = 0; i < body->graph->node_count; i++) {
        const Node *n = body->graph->nodes[i];
        bool must = node_is_stateful(n) && copies[i];
        for (int j = 0; !must && j < body->control_ret_count; j++) must = body->control_rets[j] == n;
        if (!must || !copies[i]) continue;
        if (!out->effects) {
            Str name = graph_unique_name(l->g, arena_printf(l->g->arena, "%.*s/effects", STR_ARG(prefix)));
            err = add(l, name, "NoOp", caller, &out->effects);
            if (!err) err = node_resolve(l->g, out->effects);
            if (err) goto out;
            if (gate) node_add_control(l->g, out->effects, gate);
        }
        node_add_control(l->g, out->effects, copies[i]);
    }
out:
    free(copies);
    function_body_free(body);
    free(attrs);
    return err;
}

/* A NoOp that waits for what the node waits for; NULL when it waits for nothing. */
static Error *gate_of(Lowerer *l, Node *n, Node **gate) {
    *gate = NULL;
    if (!n->control_count) return NULL;
    Error *err = add(l, sub_name(l, n, "input_control"), "NoOp", n, gate);
    if (err) return err;
    for (int i = 0; i < n->control_count; i++) node_add_control(l->g, *gate, n->controls[i]);
    return node_resolve(l->g, *gate);
}

/* ---- Calls ---- */

/* What lives when the call's arguments do. A call in a dead branch has dead arguments, and its body must be as dead; in a loop it runs once in
   every iteration. NULL when the call has no argument to tell by. */
static Error *gate_of_arguments(Lowerer *l, Node *n, Node **gate) {
    int by = 0;
    while (by < n->input_count && dtype_is_ref(n->input_types[by])) by++;
    if (by == n->input_count) return NULL;
    return add_unary(l, sub_name(l, n, "called"), "Identity", n, n->inputs[by], n->input_types[by], gate);
}

static Error *lower_call(Lowerer *l, Node *n, Node *enclosing, int depth) {
    Str value, function;
    if (node_is(n, "PartitionedCall") || node_is(n, "StatefulPartitionedCall") || node_is(n, "SymbolicGradient")) {
        if (!node_attr(n, "f", &value) || !attr_func(value, &function)) return error_invalid("Call {{node %.*s}} names no function", STR_ARG(n->name));
    } else {
        function = function_reference(l->g->arena, n);
    }
    Node *gate;
    Error *err = gate_of(l, n, &gate);
    Output *args = arena_calloc(l->g->arena, (size_t)n->input_count, sizeof *args);
    for (int i = 0; !err && i < n->input_count; i++) {
        args[i] = n->inputs[i];
        if (!gate) continue;
        Node *identity;
        err = add_unary(l, sub_name(l, n, "input"), "Identity", n, n->inputs[i], dtype_base(n->input_types[i]), &identity);
        if (err) return err;
        node_add_control(l->g, identity, gate);
        args[i] = (Output){identity, 0};
    }
    Inlined body = {0};
    Node *start = gate ? gate : enclosing;
    if (!err && !start && l->has_switches) err = gate_of_arguments(l, n, &start);
    if (!err) err = inline_body(l, n, function, n->name, args, n->input_count, start, depth, &body);
    return err ? err : become_results(l, n, body.rets, body.ret_count, body.effects ? body.effects : gate);
}

/* ---- If and Case: one branch of several ---- */

/* pivots[i] lives only when branch i is taken; inputs[i] are its arguments. */
static Error *join_branches(Lowerer *l, Node *n, const Str *functions, Node **pivots, Output **inputs, int branches, int input_count, int depth) {
    Inlined *bodies = arena_calloc(l->g->arena, (size_t)branches, sizeof *bodies);
    Output *ends = arena_calloc(l->g->arena, (size_t)branches, sizeof *ends);
    Error *err = NULL;
    for (int i = 0; !err && i < branches; i++) {
        Str prefix = sub_name(l, n, branches == 2 ? (i ? "then" : "else") : "branch");
        err = inline_body(l, n, functions[i], prefix, inputs[i], input_count, pivots[i], depth, &bodies[i]);
        Node *end;
        if (!err) err = add_unary(l, sub_name(l, n, "branch_end"), "Identity", n, (Output){pivots[i], 0}, type_of((Output){pivots[i], 0}), &end);
        if (!err && bodies[i].effects) node_add_control(l->g, end, bodies[i].effects);
        if (!err) ends[i] = (Output){end, 0};
        if (!err && bodies[i].ret_count != n->output_count)
            err = error_invalid("Branch %d of {{node %.*s}} returns %d values instead of %d", i, STR_ARG(n->name), bodies[i].ret_count, n->output_count);
    }
    Node *executed = NULL;
    if (!err) err = add_merge(l, sub_name(l, n, "branch_executed"), n, ends, branches, &executed);
    Output *results = arena_calloc(l->g->arena, (size_t)n->output_count, sizeof *results);
    for (int i = 0; !err && i < n->output_count; i++) {
        Output *choices = arena_calloc(l->g->arena, (size_t)branches, sizeof *choices);
        for (int j = 0; j < branches; j++) choices[j] = bodies[j].rets[i];
        Node *merge;
        err = add_merge(l, sub_name(l, n, "merge"), n, choices, branches, &merge);
        if (!err) results[i] = (Output){merge, 0};
    }
    return err ? err : become_results(l, n, results, n->output_count, executed);
}

/* Identity of the n's selector, so that control inputs of the node hold back the branches. */
static Error *gated_selector(Lowerer *l, Node *n, Output *out) {
    *out = n->inputs[0];
    if (!n->control_count) return NULL;
    Node *gate, *identity;
    Error *err = gate_of(l, n, &gate);
    if (!err) err = add_unary(l, sub_name(l, n, "selector"), "Identity", n, n->inputs[0], type_of(n->inputs[0]), &identity);
    if (err) return err;
    node_add_control(l->g, identity, gate);
    *out = (Output){identity, 0};
    return NULL;
}

static Error *lower_if(Lowerer *l, Node *n, int depth) {
    Str functions[2], value;
    if (!node_attr(n, "else_branch", &value) || !attr_func(value, &functions[0]) || !node_attr(n, "then_branch", &value) || !attr_func(value, &functions[1]))
        return error_invalid("{{node %.*s}} lacks a branch", STR_ARG(n->name));
    Output pred;
    Node *switch_pred = NULL, *pivots[2];
    Error *err = gated_selector(l, n, &pred);
    if (!err) err = add_switch(l, sub_name(l, n, "switch_pred"), n, pred, pred, &switch_pred);
    for (int i = 0; !err && i < 2; i++)
        err = add_unary(l, sub_name(l, n, i ? "pivot_t" : "pivot_f"), "Identity", n, (Output){switch_pred, i}, DT_BOOL, &pivots[i]);
    int count = n->input_count - 1;
    Output *inputs[2] = {arena_calloc(l->g->arena, (size_t)count, sizeof(Output)), arena_calloc(l->g->arena, (size_t)count, sizeof(Output))};
    for (int i = 0; !err && i < count; i++) {
        Node *s;
        err = add_switch(l, sub_name(l, n, "switch"), n, n->inputs[i + 1], pred, &s);
        if (err) break;
        inputs[0][i] = (Output){s, 0};
        inputs[1][i] = (Output){s, 1};
    }
    return err ? err : join_branches(l, n, functions, pivots, inputs, 2, count, depth);
}

static Error *add_switch_n(Lowerer *l, Str name, const Node *like, Output data, Output index, int branches, Node **out) {
    Error *err = add(l, name, "_SwitchN", like, out);
    if (err) return err;
    node_add_attr(l->g, *out, STR("T"), attr_make_type(l->g->arena, type_of(data)));
    node_add_attr(l->g, *out, STR("num_outs"), attr_make_int(l->g->arena, branches));
    node_set_inputs(l->g, *out, (Output[]){data, index}, 2);
    return node_resolve(l->g, *out);
}

static Error *lower_case(Lowerer *l, Node *n, int depth) {
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
    if (!err) err = add_switch_n(l, sub_name(l, n, "switch_index"), n, index, index, branches, &switch_index);
    for (int i = 0; !err && i < branches; i++) {
        inputs[i] = arena_calloc(a, (size_t)count, sizeof(Output));
        err = add_unary(l, sub_name(l, n, "pivot"), "Identity", n, (Output){switch_index, i}, DT_INT32, &pivots[i]);
    }
    for (int i = 0; !err && i < count; i++) {
        Node *s;
        err = add_switch_n(l, sub_name(l, n, "switch"), n, n->inputs[i + 1], index, branches, &s);
        for (int j = 0; !err && j < branches; j++) inputs[j][i] = (Output){s, j};
    }
    return err ? err : join_branches(l, n, functions, pivots, inputs, branches, count, depth);
}

/* ---- While ---- */

/* The parts of one loop, by loop variable; a resource does not change and only enters. */
typedef struct LoopParts {
    int count;
    Node **enters, **merges, **switches;
    Output *in_cond, *in_body, *results;
    bool *constant;
    int first; /* a variable that goes round, to hang control edges on; -1 when there is none */
} LoopParts;

static Error *add_enters(Lowerer *l, Node *n, LoopParts *p) {
    Str value, parallel = {NULL, 0};
    if (node_attr(n, "parallel_iterations", &value)) parallel = value;
    Node *gate;
    Error *err = gate_of(l, n, &gate);
    for (int i = 0; !err && i < p->count; i++) {
        p->constant[i] = dtype_base(n->input_types[i]) == DT_RESOURCE;
        if (!p->constant[i] && p->first < 0) p->first = i;
        err = add(l, sub_name(l, n, "enter"), "Enter", n, &p->enters[i]);
        if (err) break;
        node_add_attr(l->g, p->enters[i], STR("T"), attr_make_type(l->g->arena, dtype_base(n->input_types[i])));
        node_add_attr(l->g, p->enters[i], STR("frame_name"), attr_make_string(l->g->arena, n->name));
        node_add_attr(l->g, p->enters[i], STR("is_constant"), attr_make_bool(l->g->arena, p->constant[i]));
        if (parallel.ptr) node_add_attr(l->g, p->enters[i], STR("parallel_iterations"), parallel);
        node_set_inputs(l->g, p->enters[i], &n->inputs[i], 1);
        if (gate) node_add_control(l->g, p->enters[i], gate);
        err = node_resolve(l->g, p->enters[i]);
    }
    return err;
}

static Error *add_loop_merges(Lowerer *l, Node *n, LoopParts *p) {
    for (int i = 0; i < p->count; i++) {
        p->in_cond[i] = (Output){p->enters[i], 0};
        if (p->constant[i]) continue;
        /* Both inputs are the Enter until the NextIteration exists. */
        Error *err = add_merge(l, sub_name(l, n, "merge"), n, (Output[]){{p->enters[i], 0}, {p->enters[i], 0}}, 2, &p->merges[i]);
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
        err = add_switch(l, sub_name(l, n, "switch"), n, (Output){p->merges[i], 0}, (Output){loop_cond, 0}, &p->switches[i]);
        if (!err) p->in_body[i] = (Output){p->switches[i], 1};
        if (!err && i == p->first) err = add_unary(l, sub_name(l, n, "body_pivot"), "Identity", n, p->in_body[i], type_of(p->in_body[i]), &pivot);
    }
    Inlined body = {0};
    if (!err) err = inline_body(l, n, function, sub_name(l, n, "body"), p->in_body, p->count, pivot, depth, &body);
    if (!err && body.ret_count != p->count)
        err = error_invalid("The body of {{node %.*s}} returns %d values instead of %d", STR_ARG(n->name), body.ret_count, p->count);
    for (int i = 0; !err && i < p->count; i++) {
        p->results[i] = n->inputs[i];
        if (p->constant[i]) continue;
        Node *next, *exit;
        err = add_unary(l, sub_name(l, n, "next_iteration"), "NextIteration", n, body.rets[i], type_of((Output){p->merges[i], 0}), &next);
        if (err) break;
        if (body.effects) node_add_control(l->g, next, body.effects);
        p->merges[i]->inputs[1] = (Output){next, 0};
        err = add_unary(l, sub_name(l, n, "exit"), "Exit", n, (Output){p->switches[i], 0}, type_of((Output){p->merges[i], 0}), &exit);
        if (!err) p->results[i] = (Output){exit, 0};
    }
    return err;
}

static Error *lower_while(Lowerer *l, Node *n, int depth) {
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
    Error *err = add_enters(l, n, &p);
    if (!err && p.first < 0) return error_unimplemented("{{node %.*s}} has no loop variable that changes", STR_ARG(n->name));
    if (!err) err = add_loop_merges(l, n, &p);
    Inlined test = {0};
    if (!err) err = inline_body(l, n, cond, sub_name(l, n, "cond"), p.in_cond, p.count, p.merges[p.first], depth, &test);
    if (!err && test.ret_count != 1) err = error_invalid("The condition of {{node %.*s}} returns %d values", STR_ARG(n->name), test.ret_count);
    Node *loop_cond = NULL;
    if (!err) err = add(l, sub_name(l, n, "loop_cond"), "LoopCond", n, &loop_cond);
    if (err) return err;
    node_set_inputs(l->g, loop_cond, test.rets, 1);
    if (test.effects) node_add_control(l->g, loop_cond, test.effects);
    err = node_resolve(l->g, loop_cond);
    if (!err) err = add_loop_body(l, n, &p, loop_cond, body, depth);
    return err ? err : become_results(l, n, p.results, p.count, NULL);
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
    switch (functional_kind(l, p.node)) {
        case CALL: return lower_call(l, p.node, p.gate, p.depth);
        case IF: return lower_if(l, p.node, p.depth);
        case CASE: return lower_case(l, p.node, p.depth);
        case WHILE: return lower_while(l, p.node, p.depth);
        case NOT_FUNCTIONAL: break;
    }
    return NULL;
}

static Error *lower(const Graph *g, bool all, int nesting, Graph **out) {
    Lowerer l = {.g = graph_new(), .lib = g->functions, .all = all, .nesting = nesting};
    l.g->functions = g->functions;
    l.g->producer = g->producer;
    l.g->min_consumer = g->min_consumer;
    Error *err = copy_graph(g, l.g);
    for (int i = 0; !err && l.lib && i < g->node_count; i++) {
        Node *n = l.g->nodes[i];
        l.has_switches |= is_switch(n);
        if (n->info && functional_kind(&l, n) != NOT_FUNCTIONAL) queue_node(&l, (Pending){n, 0, NULL});
    }
    for (size_t i = 0; !err && i < l.count; i++) err = lower_one(&l, l.queue[i]);
    if (!err) bypass_replaced(&l);
    free(l.queue);
    free(l.replaced);
    if (err)
        graph_free(l.g);
    else
        *out = l.g;
    return err;
}

Error *graph_lower(const Graph *g, Graph **out) {
    return lower(g, false, 0, out);
}

Error *graph_lower_all(const Graph *g, int nesting, Graph **out) {
    return lower(g, true, nesting, out);
}
