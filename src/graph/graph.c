/* graph.c: building graphs, and what nodes say of themselves. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/function.h"

Graph *graph_new(void) {
    Graph *g = xcalloc(1, sizeof *g);
    g->arena = arena_new();
    return g;
}

void graph_free(Graph *g) {
    if (!g) return;
    strmap_clear(&g->by_name);
    free(g->nodes);
    arena_free(g->arena);
    free(g);
}

Node *graph_find(const Graph *g, Str name) {
    return strmap_get(&g->by_name, name);
}

Error *graph_adopt_node(Graph *g, Str name, Str op, Str device, Node **out) {
    if (name.len == 0) return error_invalid("Node with op '%.*s' has no name", STR_ARG(op));
    if (graph_find(g, name)) return error_invalid("Node '%.*s' is not unique", STR_ARG(name));
    Node *n = arena_calloc(g->arena, 1, sizeof *n);
    n->name = name;
    n->op = op;
    n->device = device;
    n->placed = -1;
    n->id = g->node_count;
    g->nodes = vec_reserve(g->nodes, &g->node_capacity, (size_t)g->node_count + 1, sizeof *g->nodes);
    g->nodes[g->node_count++] = n;
    strmap_put(&g->by_name, n->name, n);
    *out = n;
    return NULL;
}

Error *graph_add_node(Graph *g, Str name, Str op, Str device, Node **out) {
    return graph_adopt_node(g, arena_str(g->arena, name), arena_str(g->arena, op), arena_str(g->arena, device), out);
}

Error *graph_copy_node(Graph *g, const Node *n, Node **out) {
    Node *copy = NULL;
    Error *err = graph_adopt_node(g, n->name, n->op, n->device, &copy);
    if (err) return err;
    int id = copy->id;
    *copy = *n;
    copy->id = id;
    copy->inputs = NULL;
    copy->controls = NULL;
    copy->input_count = copy->control_count = 0;
    *out = copy;
    return NULL;
}

void graph_truncate(Graph *g, int count) {
    for (int i = count; i < g->node_count; i++) strmap_remove(&g->by_name, g->nodes[i]->name);
    g->node_count = count;
}

Str graph_unique_name(Graph *g, Str prefix) {
    Str name = arena_str(g->arena, prefix);
    for (int i = 1; graph_find(g, name); i++) name = arena_printf(g->arena, "%.*s_%d", STR_ARG(prefix), i);
    return name;
}

void node_add_attr(Graph *g, Node *n, Str name, Str value) {
    for (int i = 0; i < n->attr_count; i++) {
        if (!str_eq(n->attrs[i].name, name)) continue;
        n->attrs[i].value = arena_str(g->arena, value);
        return;
    }
    Attr *grown = arena_alloc(g->arena, sizeof *grown * (size_t)(n->attr_count + 1));
    if (n->attr_count) memcpy(grown, n->attrs, sizeof *grown * (size_t)n->attr_count);
    grown[n->attr_count++] = (Attr){arena_str(g->arena, name), arena_str(g->arena, value)};
    n->attrs = grown;
}

void node_add_defaults(Graph *g, Node *n) {
    for (int i = 0; n->info && i < n->info->attr_count; i++) {
        const AttrInfo *declared = &n->info->attrs[i];
        if (!declared->default_value.ptr) continue;
        bool is_given = false;
        for (int j = 0; j < n->attr_count && !is_given; j++) is_given = str_eq(n->attrs[j].name, declared->name);
        if (!is_given) node_add_attr(g, n, declared->name, declared->default_value);
    }
}

void node_set_inputs(Graph *g, Node *n, const Output *inputs, int count) {
    n->inputs = arena_alloc(g->arena, sizeof *inputs * (size_t)(count ? count : 1));
    if (count) memcpy(n->inputs, inputs, sizeof *inputs * (size_t)count);
    n->input_count = count;
}

void node_add_input(Graph *g, Node *n, Output input) {
    Output *grown = arena_alloc(g->arena, sizeof *grown * (size_t)(n->input_count + 1));
    if (n->input_count) memcpy(grown, n->inputs, sizeof *grown * (size_t)n->input_count);
    grown[n->input_count++] = input;
    n->inputs = grown;
}

void node_add_control(Graph *g, Node *n, Node *before) {
    /* A second edge does no harm; looking for it in a long list would. */
    for (int i = 0; i < n->control_count && i < 64; i++)
        if (n->controls[i] == before) return;
    /* Room grows by powers of two, so that a node with many controls stays linear. */
    int have = n->control_count;
    if ((have & (have - 1)) == 0) {
        Node **grown = arena_alloc(g->arena, sizeof *grown * (size_t)(have ? have * 2 : 1));
        if (have) memcpy(grown, n->controls, sizeof *grown * (size_t)have);
        n->controls = grown;
    }
    n->controls[n->control_count++] = before;
}

bool node_attr(const Node *n, const char *name, Str *value) {
    Str key = str_of(name);
    for (int i = 0; i < n->attr_count; i++) {
        if (!str_eq(n->attrs[i].name, key)) continue;
        *value = n->attrs[i].value;
        return true;
    }
    const AttrInfo *attr = n->info ? op_attr(n->info, key) : NULL;
    if (!attr || !attr->default_value.ptr) return false;
    *value = attr->default_value;
    return true;
}

static Error *missing(const Node *n, const char *name, const char *kind) {
    Str value;
    if (!node_attr(n, name, &value))
        return error_not_found("No attr named '%s' in NodeDef '%.*s' (op %.*s)", name, STR_ARG(n->name), STR_ARG(n->op));
    return error_invalid("AttrValue of '%s' in NodeDef '%.*s' (op %.*s) is not a %s", name, STR_ARG(n->name), STR_ARG(n->op), kind);
}

Error *node_attr_string(const Node *n, const char *name, Str *out) {
    Str value;
    return node_attr(n, name, &value) && attr_string(value, out) ? NULL : missing(n, name, "string");
}

Error *node_attr_int(const Node *n, const char *name, int64_t *out) {
    Str value;
    return node_attr(n, name, &value) && attr_int(value, out) ? NULL : missing(n, name, "int");
}

Error *node_attr_float(const Node *n, const char *name, float *out) {
    Str value;
    return node_attr(n, name, &value) && attr_float(value, out) ? NULL : missing(n, name, "float");
}

Error *node_attr_bool(const Node *n, const char *name, bool *out) {
    Str value;
    return node_attr(n, name, &value) && attr_bool(value, out) ? NULL : missing(n, name, "bool");
}

Error *node_attr_type(const Node *n, const char *name, DataType *out) {
    Str value;
    return node_attr(n, name, &value) && attr_type(value, out) ? NULL : missing(n, name, "type");
}

Error *node_attr_shape(const Node *n, const char *name, PartialShape *out) {
    Str value;
    return node_attr(n, name, &value) && attr_shape(value, out) ? NULL : missing(n, name, "shape");
}

Error *node_attr_ints(const Node *n, const char *name, int64_t **items, int *count) {
    Str value;
    int found = node_attr(n, name, &value) ? attr_list_ints(value, NULL, 0) : -1;
    if (found < 0) return missing(n, name, "list(int)");
    *items = xcalloc((size_t)found, sizeof **items);
    *count = attr_list_ints(value, *items, found);
    return NULL;
}

Error *node_attr_floats(const Node *n, const char *name, float **items, int *count) {
    Str value;
    int found = node_attr(n, name, &value) ? attr_list_floats(value, NULL, 0) : -1;
    if (found < 0) return missing(n, name, "list(float)");
    *items = xcalloc((size_t)found, sizeof **items);
    *count = attr_list_floats(value, *items, found);
    return NULL;
}

Error *node_attr_strings(const Node *n, const char *name, Str **items, int *count) {
    Str value;
    int found = node_attr(n, name, &value) ? attr_list_strings(value, NULL, 0) : -1;
    if (found < 0) return missing(n, name, "list(string)");
    *items = xcalloc((size_t)found, sizeof **items);
    *count = attr_list_strings(value, *items, found);
    return NULL;
}

Error *node_attr_types(const Node *n, const char *name, DataType **items, int *count) {
    Str value;
    int found = node_attr(n, name, &value) ? attr_list_types(value, NULL, 0) : -1;
    if (found < 0) return missing(n, name, "list(type)");
    DataType *read = xcalloc((size_t)found, sizeof *read);
    if (attr_list_types(value, read, found) < 0) {
        free(read);
        return missing(n, name, "list of known types");
    }
    *items = read;
    *count = found;
    return NULL;
}

Error *node_attr_shapes(const Node *n, const char *name, PartialShape **items, int *count) {
    Str value;
    int found = node_attr(n, name, &value) ? attr_list_shapes(value, NULL, 0) : -1;
    if (found < 0) return missing(n, name, "list(shape)");
    PartialShape *read = xcalloc((size_t)found, sizeof *read);
    if (attr_list_shapes(value, read, found) < 0) {
        free(read);
        return missing(n, name, "list of valid shapes");
    }
    *items = read;
    *count = found;
    return NULL;
}

Error *node_unknown_op(const Node *n) {
    /* Functions of the client's own process, by py_func and from_generator. */
    if (node_is(n, "PyFunc") || node_is(n, "PyFuncStateless") || node_is(n, "EagerPyFunc"))
        return error_not_found("Op type not registered '%.*s' ({{node %.*s}}): it calls Python in the process that built the graph, which a Rill task is not. Use TensorFlow ops in its "
                               "place, feed its values, or place it on a TensorFlow task that runs in that process.",
                               STR_ARG(n->op), STR_ARG(n->name));
    return error_not_found("Op type not registered '%.*s' ({{node %.*s}}). The most similar op of Rill is '%.*s'; docs/compatibility.md lists all.", STR_ARG(n->op),
                           STR_ARG(n->name), STR_ARG(op_nearest(n->op)));
}

bool node_is_stateful(const Node *n) {
    return n->info && n->info->flags & OP_STATEFUL;
}

/* ---- Types ---- */

enum { MAX_REPEAT = 1 << 20 }; /* arguments of one op; more is a mistake or an attack */

/* How many tensors an argument stands for, and their types when out is given. */
static Error *arg_types(const Node *n, const ArgInfo *arg, DataType *out, int *count) {
    int repeat = 1;
    Str value;
    if (arg->type_list_attr.len) {
        char *name = str_dup(arg->type_list_attr);
        bool found = node_attr(n, name, &value);
        *count = found ? attr_list_types(value, out, out ? MAX_REPEAT : 0) : -1;
        Error *err = *count < 0 || *count > MAX_REPEAT ? missing(n, name, "list(type)") : NULL;
        free(name);
        return err;
    }
    if (arg->number_attr.len) {
        int64_t number;
        char *name = str_dup(arg->number_attr);
        Error *err = node_attr_int(n, name, &number);
        if (!err && (number < 0 || number > MAX_REPEAT))
            err = error_invalid("Attr %s of node '%.*s' is %lld", name, STR_ARG(n->name), (long long)number);
        free(name);
        if (err) return err;
        repeat = (int)number;
    }
    DataType type = arg->type;
    if (type == DT_INVALID) {
        char *name = str_dup(arg->type_attr);
        Error *err = node_attr_type(n, name, &type);
        free(name);
        if (err) return err;
    }
    *count = repeat;
    for (int i = 0; out && i < repeat; i++) out[i] = type;
    return NULL;
}

static Error *args_types(Graph *g, const Node *n, const ArgInfo *args, int arg_count, DataType **types, int *type_count) {
    int total = 0;
    for (int i = 0; i < arg_count; i++) {
        int count;
        Error *err = arg_types(n, &args[i], NULL, &count);
        if (err) return err;
        total += count;
        if (total > MAX_REPEAT) return error_invalid("Node '%.*s' has more than %d arguments", STR_ARG(n->name), MAX_REPEAT);
    }
    *types = arena_calloc(g->arena, (size_t)total, sizeof **types);
    *type_count = total;
    for (int i = 0, at = 0; i < arg_count; i++) {
        int count;
        Error *err = arg_types(n, &args[i], *types + at, &count);
        if (err) return err;
        for (int j = at; args[i].is_ref && j < at + count; j++) (*types)[j] = (DataType)(dtype_base((*types)[j]) + DT_REF);
        at += count;
    }
    return NULL;
}

/* A type, or one of a list: no reference, and one the op allows. */
static Error *check_type(const Node *n, const AttrInfo *attr, DataType type) {
    if (dtype_is_ref(type))
        return error_invalid("AttrValue must not have reference type value of %s for attr '%.*s'; NodeDef: {{node %.*s}}; Op<name=%.*s>", dtype_name(type),
                             STR_ARG(attr->name), STR_ARG(n->name), STR_ARG(n->op));
    if (attr->allowed_types && !(attr->allowed_types >> type & 1))
        return error_invalid("Value for attr '%.*s' of %s is not in the list of allowed values; NodeDef: {{node %.*s}}; Op<name=%.*s>", STR_ARG(attr->name),
                             dtype_name(type), STR_ARG(n->name), STR_ARG(n->op));
    return NULL;
}

static Error *check_types(const Node *n, const AttrInfo *attr, Str value) {
    int count = attr_list_types(value, NULL, 0);
    if (count < 0 || count > MAX_REPEAT) return NULL; /* who reads it says so */
    DataType *types = xcalloc((size_t)count, sizeof *types);
    Error *err = NULL;
    if (attr_list_types(value, types, count) == count)
        for (int i = 0; !err && i < count; i++) err = check_type(n, attr, types[i]);
    free(types);
    return err;
}

/* How many items a list has, of whatever kind; -1 when it is none. */
static int list_length(const AttrInfo *attr, Str value) {
    static const struct {
        const char *type;
        int kind;
    } kinds[] = {{"list(string)", 0}, {"list(int)", 1}, {"list(float)", 2}, {"list(bool)", 3}, {"list(type)", 4}, {"list(shape)", 5}, {"list(func)", 6}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!str_is(attr->type, kinds[i].type)) continue;
        switch (kinds[i].kind) {
        case 0: return attr_list_strings(value, NULL, 0);
        case 1: return attr_list_ints(value, NULL, 0);
        case 2: return attr_list_floats(value, NULL, 0);
        case 3: return attr_list_bools(value, NULL, 0);
        case 4: return attr_list_types(value, NULL, 0);
        case 5: return attr_list_shapes(value, NULL, 0);
        default: return attr_list_funcs(value, NULL, 0);
        }
    }
    return -1;
}

static Error *check_minimum(const Node *n, const AttrInfo *attr, Str value) {
    int64_t number;
    bool is_list = str_starts(attr->type, STR("list("));
    if (is_list)
        number = list_length(attr, value);
    else if (!str_is(attr->type, "int") || !attr_int(value, &number))
        return NULL;
    if ((is_list && number < 0) || number >= attr->minimum) return NULL;
    return error_invalid("%s for attr '%.*s' of %lld must be at least minimum %lld; NodeDef: {{node %.*s}}; Op<name=%.*s>", is_list ? "Length" : "Value",
                         STR_ARG(attr->name), (long long)number, (long long)attr->minimum, STR_ARG(n->name), STR_ARG(n->op));
}

static Error *check_string(const Node *n, const AttrInfo *attr, Str value) {
    Str text, rest = attr->allowed_strings;
    if (!str_is(attr->type, "string") || !attr_string(value, &text)) return NULL;
    while (rest.len) {
        Str item = str_trim(str_next(&rest, ','));
        if (item.len >= 2 && str_eq(str_slice(item, 1, item.len - 1), text)) return NULL;
    }
    return error_invalid("Value for attr '%.*s' of \"%.*s\" is not in the list of allowed values: %.*s; NodeDef: {{node %.*s}}", STR_ARG(attr->name),
                         STR_ARG(text), STR_ARG(attr->allowed_strings), STR_ARG(n->name));
}

static Error *check_attr(const Node *n, const AttrInfo *attr) {
    Str value;
    DataType type;
    char *name = str_dup(attr->name);
    bool found = node_attr(n, name, &value);
    free(name);
    if (!found) {
        if (str_is(attr->type, "func") || str_is(attr->type, "tensor") || str_is(attr->type, "list(func)")) return NULL;
        return error_invalid("NodeDef missing attr '%.*s' from Op<name=%.*s>; NodeDef: {{node %.*s}}", STR_ARG(attr->name), STR_ARG(n->op), STR_ARG(n->name));
    }
    if (attr->has_minimum) {
        Error *err = check_minimum(n, attr, value);
        if (err) return err;
    }
    if (str_is(attr->type, "type")) return attr_type(value, &type) ? check_type(n, attr, type) : NULL;
    if (str_is(attr->type, "list(type)")) return check_types(n, attr, value);
    return attr->allowed_strings.len ? check_string(n, attr, value) : NULL;
}

Error *node_resolve(Graph *g, Node *n) {
    n->info = op_find(n->op);
    if (!n->info && g->functions) {
        const Function *f = function_find(g->functions, n->op);
        if (f) n->info = f->info;
    }
    if (!n->info) return NULL;
    for (int i = 0; i < n->info->attr_count; i++) {
        Error *err = check_attr(n, &n->info->attrs[i]);
        if (err) return err;
    }
    Error *err = args_types(g, n, n->info->inputs, n->info->input_count, &n->input_types, &n->expected_inputs);
    if (!err) err = args_types(g, n, n->info->outputs, n->info->output_count, &n->output_types, &n->output_count);
    return err;
}

Error *node_arg_range(const Node *n, bool is_input, Str arg_name, int *from, int *count) {
    if (!n->info)
        return node_unknown_op(n);
    const ArgInfo *args = is_input ? n->info->inputs : n->info->outputs;
    int arg_count = is_input ? n->info->input_count : n->info->output_count;
    for (int i = 0, at = 0; i < arg_count; i++) {
        int here;
        Error *err = arg_types(n, &args[i], NULL, &here);
        if (err) return err;
        if (str_eq(args[i].name, arg_name)) {
            *from = at;
            *count = here;
            return NULL;
        }
        at += here;
    }
    return error_invalid("Node '%.*s' (op %.*s) has no %s named '%.*s'", STR_ARG(n->name), STR_ARG(n->op), is_input ? "input" : "output", STR_ARG(arg_name));
}

Error *node_output_index(const Node *n, Str arg_name, int position, int *out) {
    int from = 0, count = 0;
    Error *err = node_arg_range(n, false, arg_name, &from, &count);
    if (err) return err;
    if (position < 0 || position >= count)
        return error_invalid("Output %.*s:%d of node '%.*s' does not exist", STR_ARG(arg_name), position, STR_ARG(n->name));
    *out = from + position;
    return NULL;
}
