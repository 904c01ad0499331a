/* lower_fit.c: whether functions take what a node gives them, return what it promises, and can be read at all.

   A node that they do not fit is not lowered: it stays a call, which fails when it is run; other steps of its graph do not. */
#include "placement/lowerer.h"
#include "proto/wire.h"

enum { FUNCTION_NODE = 3, NODE_OP = 2 };

static bool same_types(const DataType *a, const DataType *b, int count) {
    for (int i = 0; i < count; i++)
        if (dtype_base(a[i]) != dtype_base(b[i])) return false;
    return true;
}

/* Whether the outputs of all nodes are known; of an op that there is not, such as one that calls Python, nobody knows them. */
static bool body_known(const FunctionLibrary *lib, Str function_def) {
    WireReader r = wire_reader(function_def);
    while (wire_next(&r)) {
        if (r.field != FUNCTION_NODE || r.type != WIRE_BYTES) continue;
        WireReader node = wire_reader(r.bytes);
        while (wire_next(&node))
            if (node.field == NODE_OP && node.type == WIRE_BYTES && !op_find(node.bytes) && !function_find(lib, node.bytes)) return false;
    }
    return true;
}

static bool fits(Lowerer *l, Str function, const DataType *args, int arg_count, const DataType *rets, int ret_count) {
    const Function *f = function_find(l->lib, func_name(function));
    if (!f) return false;
    int attr_count = func_attrs(function, NULL, 0);
    Attr *attrs = arena_calloc(l->g->arena, (size_t)attr_count + 1, sizeof *attrs);
    func_attrs(function, attrs, attr_count);
    Node self = {.name = f->name, .op = f->name, .attrs = attrs, .attr_count = attr_count}; /* a call, to ask for its types */
    Error *err = node_resolve(l->g, &self);
    bool known = !err && self.info && body_known(l->lib, f->def);
    error_free(err);
    return known && self.expected_inputs == arg_count && self.output_count == ret_count && same_types(self.input_types, args, arg_count) &&
           same_types(self.output_types, rets, ret_count);
}

/* The function that attribute `name` is; empty when it is none. */
static Str function_attr(const Node *n, const char *name) {
    Str value, function;
    return node_attr(n, name, &value) && attr_func(value, &function) ? function : STR("");
}

static bool branches_fit(Lowerer *l, const Node *n) {
    Str value;
    int count = node_attr(n, "branches", &value) ? attr_list_funcs(value, NULL, 0) : 0;
    if (count < 1) return false;
    Str *functions = arena_calloc(l->g->arena, (size_t)count, sizeof *functions);
    attr_list_funcs(value, functions, count);
    for (int i = 0; i < count; i++)
        if (!fits(l, functions[i], n->input_types + 1, n->input_count - 1, n->output_types, n->output_count)) return false;
    return true;
}

static bool call_fits(Lowerer *l, const Node *n) {
    bool by_attr = node_is(n, "PartitionedCall") || node_is(n, "StatefulPartitionedCall");
    if (node_is(n, "SymbolicGradient")) return function_find(l->lib, func_name(function_attr(n, "f"))) != NULL;
    return fits(l, by_attr ? function_attr(n, "f") : function_reference(l->g->arena, n), n->input_types, n->input_count, n->output_types, n->output_count);
}

bool lowerer_fits(Lowerer *l, const Node *n) {
    const DataType truth = DT_BOOL;
    switch (lowerer_kind(l, n)) {
        case CALL: return call_fits(l, n);
        case REMOTE_CALL: return n->input_count > 0 && fits(l, function_attr(n, "f"), n->input_types + 1, n->input_count - 1, n->output_types, n->output_count);
        case IF:
            return fits(l, function_attr(n, "then_branch"), n->input_types + 1, n->input_count - 1, n->output_types, n->output_count) &&
                   fits(l, function_attr(n, "else_branch"), n->input_types + 1, n->input_count - 1, n->output_types, n->output_count);
        case CASE: return branches_fit(l, n);
        case WHILE:
            return fits(l, function_attr(n, "cond"), n->input_types, n->input_count, &truth, 1) &&
                   fits(l, function_attr(n, "body"), n->input_types, n->input_count, n->input_types, n->input_count);
        case NOT_FUNCTIONAL: break;
    }
    return false;
}
