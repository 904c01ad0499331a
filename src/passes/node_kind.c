/* node_kind.c: what a pass may do with a node, and nodes turned into constants. */
#include "base/arena.h"
#include "graph/op_def.h"
#include "passes/pass_internal.h"
#include "tensor/tensor_proto.h"

static bool is_one_of(const Node *n, const char *const *ops) {
    for (; *ops; ops++)
        if (node_is(n, *ops)) return true;
    return false;
}

bool node_is_control_flow(const Node *n) {
    static const char *const ops[] = {"Switch", "RefSwitch", "_SwitchN", "Merge", "RefMerge", "_XlaMerge", "Enter", "RefEnter", "Exit", "RefExit",
                                      "NextIteration", "RefNextIteration", "LoopCond", "ControlTrigger", NULL};
    return is_one_of(n, ops);
}

/* Ops that TensorFlow does not call stateful although they look at the world, or stand for a value that is not there. */
static bool is_special(const Node *n) {
    static const char *const ops[] = {"ReadFile", "MatchingFiles", "Placeholder", "PlaceholderV2", "FakeParam", "ImmutableConst", "PyFuncStateless", NULL};
    return is_one_of(n, ops) || str_starts(n->op, STR("TensorArray")); /* whose handle may be a string */
}

static bool is_value(DataType t) {
    return !dtype_is_ref(t) && (dtype_is_plain(t) || t == DT_STRING);
}

static bool has_function(const Node *n) {
    for (int i = 0; i < n->info->attr_count; i++)
        if (str_is(n->info->attrs[i].type, "func") || str_is(n->info->attrs[i].type, "list(func)")) return true;
    return false;
}

bool node_is_pure(const Node *n) {
    if (!n->info || n->info->flags & OP_STATEFUL || n->output_count == 0 || (n->op.len && n->op.ptr[0] == '_')) return false;
    for (int i = 0; i < n->output_count; i++)
        if (!is_value(n->output_types[i])) return false;
    for (int i = 0; i < n->input_count; i++) {
        Output in = n->inputs[i];
        if (!is_value(n->input_types[i]) || dtype_is_ref(in.node->output_types[in.index])) return false;
    }
    return !node_is_control_flow(n) && !is_special(n) && !has_function(n) && op_find(n->op) == n->info;
}

bool node_is_constant(const Node *n) {
    return node_is(n, "Const") && n->output_count == 1 && is_value(n->output_types[0]);
}

Error *node_constant(const Node *n, Tensor **out) {
    Str value, proto;
    if (!node_attr(n, "value", &value) || !attr_tensor(value, &proto)) return error_invalid("Const {{node %.*s}} has no value", STR_ARG(n->name));
    Tensor *t = NULL;
    Error *err = tensor_proto_decode(proto, &t);
    if (err) return err;
    if (t->dtype != n->output_types[0]) {
        tensor_unref(t);
        return error_invalid("Const {{node %.*s}} is not of its own type", STR_ARG(n->name));
    }
    *out = t;
    return NULL;
}

static Error *set_constant(Graph *g, Node *n, const Tensor *value) {
    n->op = STR("Const");
    n->attrs = NULL;
    n->attr_count = n->input_count = 0;
    Attr *attrs = arena_alloc(g->arena, 2 * sizeof *attrs);
    attrs[0] = (Attr){STR("dtype"), attr_make_type(g->arena, value->dtype)};
    attrs[1] = (Attr){STR("value"), attr_make_tensor(g->arena, value)};
    n->attrs = attrs;
    n->attr_count = 2;
    return node_resolve(g, n);
}

Error *node_become_constant(Graph *g, Node *n, const Tensor *value) {
    return set_constant(g, n, value);
}

Error *node_add_constant(Graph *g, const Node *n, const char *part, const Tensor *value, Node **out) {
    Str name = graph_unique_name(g, arena_printf(g->arena, "%.*s/%s", STR_ARG(n->name), part));
    Node *added = NULL;
    Error *err = graph_adopt_node(g, name, STR("Const"), n->device, &added);
    if (err) return err;
    added->placed = n->placed;
    for (int i = 0; i < n->control_count; i++) node_add_control(g, added, n->controls[i]);
    err = set_constant(g, added, value);
    if (!err) *out = added;
    return err;
}
