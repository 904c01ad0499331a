/* call.c: gradients of calls, If and Case.

   The functions are replaced by ones that also return the values their gradients need; each gradient is a function of
   these and of the gradients by the results. Of several branches, each returns dummies in place of what the others
   keep. */
#include <stdlib.h>

#include "base/memory.h"
#include "graph/function.h"
#include "gradients/backprop.h"
#include "gradients/body_gradient.h"

typedef struct Call {
    Rule *r;
    Node *node;
    FunctionLibrary *lib;
    int first; /* input that is the first argument: 1 behind a selector */
    int branch_count;
    Str *functions; /* NameAttrLists */
    BodyGradient **branches;
    int arg_count, ret_count;
    bool *given, *wanted; /* by result, by argument */
    DataType *types;      /* by argument: of its gradient; DT_INVALID when no branch has one */
    bool *sparse;         /* by argument: its gradient is rows, in every branch that has one */
    DataType *index_types; /* of these */
    int *kept; /* by need of all branches in turn: the output of the node that is its value, or -1 - argument */
    int need_count;
} Call;

static bool is_branching(const Node *n) {
    return node_is(n, "If") || node_is(n, "StatelessIf") || node_is(n, "Case") || node_is(n, "StatelessCase");
}

static bool is_case(const Node *n) {
    return node_is(n, "Case") || node_is(n, "StatelessCase");
}

static Error *func_attr(const Node *n, const char *name, Str *out) {
    Str value;
    return node_attr(n, name, &value) && attr_func(value, out)
               ? NULL
               : error_invalid("Node %.*s names no function %s", STR_ARG(n->name), name);
}

static Error *read_functions(Call *c, Arena *a) {
    const Node *n = c->node;
    Str value;
    c->branch_count = is_case(n)        ? (node_attr(n, "branches", &value) ? attr_list_funcs(value, NULL, 0) : 0)
                      : is_branching(n) ? 2
                                        : 1;
    if (c->branch_count < 1) return error_invalid("Node %.*s has no branches", STR_ARG(n->name));
    c->functions = arena_calloc(a, (size_t)c->branch_count, sizeof *c->functions);
    c->branches = arena_calloc(a, (size_t)c->branch_count, sizeof(BodyGradient *));
    if (is_case(n)) {
        attr_list_funcs(value, c->functions, c->branch_count);
        return NULL;
    }
    if (is_branching(n)) {
        Error *err = func_attr(n, "then_branch", &c->functions[0]);
        return err ? err : func_attr(n, "else_branch", &c->functions[1]);
    }
    if (node_is(n, "PartitionedCall") || node_is(n, "StatefulPartitionedCall"))
        return func_attr(n, "f", &c->functions[0]);
    c->functions[0] = function_reference(a, n);
    return NULL;
}

static Error *differentiate_branches(Call *c) {
    Error *err = NULL;
    for (int i = 0; !err && i < c->branch_count; i++) {
        body_gradient_free(c->branches[i]);
        c->branches[i] = NULL;
        err = body_gradient_new(c->lib, c->functions[i], c->wanted, c->sparse, c->arg_count, c->given, c->ret_count, &c->branches[i]);
    }
    return err;
}

/* Whether some branch has rows for an argument and another one a dense gradient. */
static bool is_mixed(const Call *c, int arg) {
    bool rows = false, dense = false;
    for (int i = 0; i < c->branch_count; i++) {
        Gradient dx = c->branches[i]->dxs[arg];
        rows |= has(dx.indices);
        dense |= has(dx.values) && !has(dx.indices);
    }
    return rows && dense;
}

static void note_types(Call *c, int arg) {
    c->sparse[arg] = false;
    for (int i = 0; i < c->branch_count; i++) {
        Gradient dx = c->branches[i]->dxs[arg];
        if (has(dx.values)) c->types[arg] = output_dtype(dx.values);
        if (!has(dx.indices)) continue;
        DataType type = output_dtype(dx.indices);
        c->index_types[arg] = c->sparse[arg] && c->index_types[arg] != type ? DT_INT64 : type;
        c->sparse[arg] = true;
    }
}

static Error *differentiate(Call *c) {
    bool mixed = false;
    for (int i = 0; i < c->arg_count; i++) c->sparse[i] = true;
    Error *err = differentiate_branches(c);
    for (int i = 0; !err && i < c->arg_count; i++) {
        c->sparse[i] = !is_mixed(c, i);
        mixed |= !c->sparse[i];
    }
    if (!err && mixed) err = differentiate_branches(c);
    for (int i = 0; !err && i < c->arg_count; i++) note_types(c, i);
    for (int i = 0; !err && i < c->branch_count; i++) c->need_count += c->branches[i]->need_count;
    return err;
}

/* ---- The functions again, with more results ---- */

static Output dummy(Builder *b, DataType type) {
    b_with_type(b, "dtype", type);
    b_with(b, "shape", attr_make_shape(b->g->arena, &(PartialShape){.rank = -1}));
    return b_op0(b, "FakeParam");
}

static Str new_forward(Builder *outer, Call *c, int branch, int more) {
    Builder b;
    Output *needs = xcalloc((size_t)c->branches[branch]->need_count, sizeof *needs);
    FunctionBody *body = body_gradient_forward(c->branches[branch], c->lib, 0, more, &b, needs);
    for (int i = 0; i < c->branch_count; i++)
        for (int j = 0; j < c->branches[i]->need_count; j++) {
            if (body_need_arg(c->branches[i], j) >= 0) continue;
            body_add_ret(body, i == branch ? needs[j] : dummy(&b, output_dtype(c->branches[i]->needs[j])));
        }
    free(needs);
    Str wish = arena_printf(outer->g->arena, "%.*s_forward", STR_ARG(func_name(c->functions[branch])));
    Str name = body_finish(&b, c->lib, body, wish);
    b_fail(outer, b.error);
    return name;
}

void node_extend_shapes(Graph *g, Node *n, int count) {
    Str value;
    int have = node_attr(n, "output_shapes", &value) ? attr_list_shapes(value, NULL, 0) : 0;
    if (have <= 0) return;
    PartialShape *shapes = xcalloc((size_t)(have + count), sizeof *shapes);
    attr_list_shapes(value, shapes, have);
    for (int i = have; i < have + count; i++) shapes[i].rank = -1;
    node_add_attr(g, n, STR("output_shapes"), attr_make_shapes(g->arena, shapes, have + count));
    free(shapes);
}

static void become_call(Graph *g, Node *n, const Function *f) {
    n->op = f && f->info->flags & OP_STATEFUL ? STR("StatefulPartitionedCall") : STR("PartitionedCall");
    n->attrs = NULL;
    n->attr_count = 0;
    node_add_attr(g, n, STR("Tin"), attr_make_types(g->arena, n->input_types, n->input_count));
}

static void rewrite(Builder *b, Call *c) {
    Node *n = c->node;
    Graph *g = b->g;
    int old = n->output_count, at = 0, more = 0;
    c->kept = arena_calloc(g->arena, (size_t)c->need_count, sizeof *c->kept);
    for (int i = 0; i < c->branch_count; i++)
        for (int j = 0; j < c->branches[i]->need_count; j++) {
            int arg = body_need_arg(c->branches[i], j);
            c->kept[at++] = arg >= 0 ? -1 - arg : old + more++;
        }
    if (!more) return;
    DataType *types = xcalloc((size_t)(old + more), sizeof *types);
    Str *names = xcalloc((size_t)c->branch_count, sizeof *names);
    for (int i = 0; i < old; i++) types[i] = dtype_base(n->output_types[i]);
    at = old;
    for (int i = 0; i < c->branch_count; i++)
        for (int j = 0; j < c->branches[i]->need_count; j++)
            if (body_need_arg(c->branches[i], j) < 0) types[at++] = output_dtype(c->branches[i]->needs[j]);
    for (int i = 0; i < c->branch_count && !b->error; i++) names[i] = new_forward(b, c, i, more);
    if (!b->error) {
        if (!is_branching(n) && !node_is(n, "PartitionedCall") && !node_is(n, "StatefulPartitionedCall"))
            become_call(g, n, function_find(c->lib, names[0]));
        if (is_case(n)) {
            node_add_attr(g, n, STR("branches"), attr_make_funcs(g->arena, names, c->branch_count));
        } else if (is_branching(n)) {
            node_add_attr(g, n, STR("then_branch"), attr_make_func(g->arena, names[0]));
            node_add_attr(g, n, STR("else_branch"), attr_make_func(g->arena, names[1]));
        } else {
            node_add_attr(g, n, STR("f"), attr_make_func(g->arena, names[0]));
        }
        node_add_attr(g, n, STR("Tout"), attr_make_types(g->arena, types, old + more));
        node_extend_shapes(g, n, more);
        b_fail(b, node_resolve(g, n));
    }
    free(types);
    free(names);
}

/* ---- The gradient ---- */

/* Zeros like an argument, in a branch that does not lead to it. */
static Output zeros_like_arg(Builder *b, Output arg, DataType type) {
    return output_dtype(arg) == DT_VARIANT ? b_zeros_like(b, arg) : b_fill(b, b_shape(b, arg), b_scalar(b, type, 0));
}

static bool needs_zeros(const Call *c, int arg) {
    for (int i = 0; i < c->branch_count; i++)
        if (c->types[arg] != DT_INVALID && !has(c->branches[i]->dxs[arg].values)) return true;
    return false;
}

static void add_result(Builder *b, const Call *c, FunctionBody *body, int arg, Gradient dx, Output like) {
    if (!c->sparse[arg]) {
        body_add_ret(body, has(dx.values) ? dx.values : zeros_like_arg(b, like, c->types[arg]));
        return;
    }
    if (!has(dx.values)) dx = gradient_no_rows(b, b_shape(b, like), c->types[arg], c->index_types[arg]);
    body_add_ret(body, dx.values);
    body_add_ret(body, b_cast(b, dx.indices, c->index_types[arg]));
}

/* Arguments: the gradients that are given, all needs of all branches, the arguments that zeros are made like. Results:
 * the gradients by arguments, where they are rows followed by which rows. */
static Str new_backward(Builder *outer, Call *c, int branch, bool *stateful) {
    Builder b;
    Arena *a = outer->g->arena;
    FunctionBody *body = body_new(c->lib, c->ret_count + c->need_count + c->arg_count, 2 * c->arg_count, &b);
    const BodyGradient *m = c->branches[branch];
    Output *dys = arena_calloc(a, (size_t)m->body->ret_count, sizeof *dys);
    Gradient *dxs = arena_calloc(a, (size_t)c->arg_count, sizeof *dxs);
    Output *own = arena_calloc(a, (size_t)m->need_count, sizeof *own),
           *like = arena_calloc(a, (size_t)c->arg_count, sizeof *like);
    for (int i = 0; i < c->ret_count; i++)
        if (c->given[i]) dys[i] = body_add_arg(&b, body, "dy", output_dtype(m->body->rets[i]));
    for (int i = 0; i < c->branch_count; i++)
        for (int j = 0; j < c->branches[i]->need_count; j++) {
            Output arg = body_add_arg(&b, body, "value", output_dtype(c->branches[i]->needs[j]));
            if (i == branch) own[j] = arg;
        }
    for (int i = 0; i < c->arg_count; i++)
        if (needs_zeros(c, i)) like[i] = body_add_arg(&b, body, "like", output_dtype((Output){m->body->args[i], 0}));
    body_gradient_copy(m, &b, dys, own, dxs);
    for (int i = 0; i < c->arg_count; i++)
        if (c->types[i] != DT_INVALID) add_result(&b, c, body, i, dxs[i], like[i]);
    *stateful |= body_is_stateful(body);
    Str name =
        body_finish(&b, c->lib, body, arena_printf(a, "%.*s_backward", STR_ARG(func_name(c->functions[branch]))));
    b_fail(outer, b.error);
    return name;
}

static Output *gather_inputs(Builder *b, Call *c, int *count) {
    Output *inputs =
        arena_calloc(b->g->arena, (size_t)(1 + c->ret_count + c->need_count + c->arg_count), sizeof *inputs);
    int at = 0;
    if (c->first) inputs[at++] = rule_in(c->r, 0);
    for (int i = 0; i < c->ret_count; i++)
        if (c->given[i]) inputs[at++] = rule_dy(c->r, i);
    for (int i = 0; i < c->need_count; i++)
        inputs[at++] =
            c->kept[i] < 0 ? rule_in(c->r, c->first - 1 - c->kept[i]) : rule_value(c->r, (Output){c->node, c->kept[i]});
    for (int i = 0; i < c->arg_count; i++)
        if (needs_zeros(c, i)) inputs[at++] = rule_in(c->r, c->first + i);
    *count = at;
    return inputs;
}

static void add_backward(Builder *b, Call *c) {
    Str *names = arena_calloc(b->g->arena, (size_t)c->branch_count, sizeof *names), lower;
    bool stateful = false;
    DataType *types = arena_calloc(b->g->arena, 2 * (size_t)c->arg_count, sizeof *types);
    int type_count = 0, input_count;
    for (int i = 0; i < c->branch_count && !b->error; i++) names[i] = new_backward(b, c, i, &stateful);
    for (int i = 0; i < c->arg_count; i++) {
        if (c->types[i] != DT_INVALID) types[type_count++] = c->types[i];
        if (c->sparse[i]) types[type_count++] = c->index_types[i];
    }
    Output *inputs = gather_inputs(b, c, &input_count);
    if (b->error) return;
    const char *op = stateful ? "StatefulPartitionedCall" : "PartitionedCall";
    if (is_case(c->node)) {
        op = stateful ? "Case" : "StatelessCase";
        b_with(b, "branches", attr_make_funcs(b->g->arena, names, c->branch_count));
    } else if (is_branching(c->node)) {
        op = stateful ? "If" : "StatelessIf";
        b_with(b, "then_branch", attr_make_func(b->g->arena, names[0]));
        b_with(b, "else_branch", attr_make_func(b->g->arena, names[1]));
    } else {
        b_with(b, "f", attr_make_func(b->g->arena, names[0]));
    }
    b_with(b, "Tout", attr_make_types(b->g->arena, types, type_count));
    if (node_attr(c->node, "_lower_using_switch_merge", &lower)) b_with(b, "_lower_using_switch_merge", lower);
    Node *n = b_node(b, op, inputs, input_count);
    for (int i = 0, at = 0; i < c->arg_count; i++) {
        if (c->types[i] == DT_INVALID) continue;
        Output values = output_of(n, at++);
        if (c->sparse[i])
            rule_set_sparse(c->r, c->first + i, values, output_of(n, at++), rule_in_shape(c->r, c->first + i));
        else
            rule_set(c->r, c->first + i, values);
    }
}

/* ---- Functions with gradients of their own ---- */

/* A call of it: with the arguments, and the gradients by all results. */
static void call_gradient(Builder *b, Call *c, Str gradient) {
    Arena *a = b->g->arena;
    int attr_count = func_attrs(c->functions[0], NULL, 0), count = c->arg_count + c->ret_count;
    Attr *attrs = arena_calloc(a, (size_t)attr_count, sizeof *attrs);
    Output *inputs = arena_calloc(a, (size_t)count, sizeof *inputs);
    for (int i = 0; i < c->arg_count; i++) inputs[i] = rule_in(c->r, i);
    for (int i = 0; i < c->ret_count; i++)
        inputs[c->arg_count + i] = c->given[i] ? rule_dy(c->r, i) : b_zeros_like(b, rule_out(c->r, i));
    const Function *f = function_find(c->lib, gradient);
    if (!f) b_fail(b, error_not_found("Gradient function %.*s is not in the library", STR_ARG(gradient)));
    func_attrs(c->functions[0], attrs, attr_count);
    for (int i = 0; f && i < attr_count; i++)
        if (op_attr(f->info, attrs[i].name)) b_with(b, arena_str(a, attrs[i].name).ptr, attrs[i].value);
    Node *n = b_node(b, arena_str(a, gradient).ptr, inputs, count);
    if (n && n->output_count != c->arg_count)
        b_fail(b, error_invalid("Gradient function %.*s returns %d values for %d arguments", STR_ARG(gradient),
                                n->output_count, c->arg_count));
    for (int i = 0; !b->error && i < c->arg_count; i++)
        if (c->wanted[i]) rule_set(c->r, i, output_of(n, i));
}

static void call_grad(Builder *b, Rule *r) {
    Arena *a = b->g->arena;
    Call c = {.r = r, .node = (Node *)rule_node(r), .lib = b->g->functions};
    c.first = is_branching(c.node);
    c.arg_count = c.node->input_count - c.first;
    c.ret_count = c.node->output_count;
    c.given = arena_calloc(a, (size_t)c.ret_count, sizeof *c.given);
    c.wanted = arena_calloc(a, (size_t)c.arg_count, sizeof *c.wanted);
    c.types = arena_calloc(a, (size_t)c.arg_count, sizeof *c.types);
    c.sparse = arena_calloc(a, (size_t)c.arg_count, sizeof *c.sparse);
    c.index_types = arena_calloc(a, (size_t)c.arg_count, sizeof *c.index_types);
    bool any = false;
    for (int i = 0; i < c.ret_count; i++) c.given[i] = rule_has_dy(r, i);
    for (int i = 0; i < c.arg_count; i++) c.wanted[i] = rule_wants(r, c.first + i);
    Error *err = read_functions(&c, a);
    Str own = err || c.first ? STR("") : function_gradient(c.lib, func_name(c.functions[0]));
    if (own.len) {
        call_gradient(b, &c, own);
        return;
    }
    if (!err) err = differentiate(&c);
    b_fail(b, err);
    for (int i = 0; i < c.arg_count; i++) any |= c.types[i] != DT_INVALID;
    if (!b->error && any) rewrite(b, &c);
    if (!b->error && any) add_backward(b, &c);
    for (int i = 0; i < c.branch_count && c.branches; i++) body_gradient_free(c.branches[i]);
}

const GradientDef call_gradients[] = {
    {"Case", call_grad},
    {"If", call_grad},
    {"PartitionedCall", call_grad},
    {"StatefulPartitionedCall", call_grad},
    {"StatelessCase", call_grad},
    {"StatelessIf", call_grad},
    {0},
};
