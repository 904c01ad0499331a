/* function.c: functions read from FunctionDefLibrary, and their bodies instantiated.

   FunctionDefLibrary: function=1 gradient=2 (GradientDef: function_name=1 gradient_func=2).
   FunctionDef: signature=1 (OpDef) node_def=3 ret=4 (map) attr=5 (map) control_ret=6 (map). Inside a body an input is "arg",
   "node:output_name:position" or "^node". */
#include "graph/function.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/graph_def.h"
#include "proto/wire.h"

struct FunctionLibrary {
    Arena *arena;
    StrMap by_name;
    StrMap gradients; /* by function name: the name of its gradient, a string of the arena */
    Function **functions;
    int count;
    size_t capacity;
};

FunctionLibrary *function_library_new(void) {
    FunctionLibrary *lib = xcalloc(1, sizeof *lib);
    lib->arena = arena_new();
    return lib;
}

void function_library_free(FunctionLibrary *lib) {
    if (!lib) return;
    strmap_clear(&lib->by_name);
    strmap_clear(&lib->gradients);
    free(lib->functions);
    arena_free(lib->arena);
    free(lib);
}

const Function *function_find(const FunctionLibrary *lib, Str name) {
    return strmap_get(&lib->by_name, name);
}

const Function *function_at(const FunctionLibrary *lib, int i) {
    return lib->functions[i];
}

int function_count(const FunctionLibrary *lib) {
    return lib->count;
}

/* ---- Signatures ---- */

static bool read_arg(Str bytes, ArgInfo *arg) {
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) arg->name = r.bytes;
        if (r.field == 3 && r.type == WIRE_VARINT && r.number < DT_COUNT && dtype_is_valid((int)r.number)) arg->type = (DataType)r.number;
        if (r.field == 4 && r.type == WIRE_BYTES) arg->type_attr = r.bytes;
        if (r.field == 5 && r.type == WIRE_BYTES) arg->number_attr = r.bytes;
        if (r.field == 6 && r.type == WIRE_BYTES) arg->type_list_attr = r.bytes;
        if (r.field == 16 && r.type == WIRE_VARINT) arg->is_ref = r.number != 0;
    }
    return !r.failed;
}

static bool read_attr_def(Str bytes, AttrInfo *attr) {
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) attr->name = r.bytes;
        if (r.field == 2 && r.type == WIRE_BYTES) attr->type = r.bytes;
        if (r.field == 3 && r.type == WIRE_BYTES) attr->default_value = r.bytes;
    }
    return !r.failed;
}

static bool read_signature(Arena *arena, Str op_def, OpInfo *info) {
    int counts[5] = {0};
    *info = (OpInfo){0}; /* of several signatures the last one counts */
    WireReader r = wire_reader(op_def);
    while (wire_next(&r))
        if (r.field < 5) counts[r.field]++;
    info->inputs = arena_calloc(arena, (size_t)counts[2], sizeof *info->inputs);
    info->outputs = arena_calloc(arena, (size_t)counts[3], sizeof *info->outputs);
    info->attrs = arena_calloc(arena, (size_t)counts[4], sizeof *info->attrs);
    r = wire_reader(op_def);
    bool ok = true;
    while (ok && wire_next(&r)) {
        if (r.field == 17 && r.type == WIRE_VARINT && r.number) info->flags |= OP_STATEFUL;
        if (r.type != WIRE_BYTES) continue;
        if (r.field == 1) info->name = r.bytes;
        if (r.field == 2) ok = read_arg(r.bytes, &info->inputs[info->input_count++]);
        if (r.field == 3) ok = read_arg(r.bytes, &info->outputs[info->output_count++]);
        if (r.field == 4) ok = read_attr_def(r.bytes, &info->attrs[info->attr_count++]);
    }
    return ok && !r.failed;
}

static Error *add_function(FunctionLibrary *lib, Str def) {
    Function *f = arena_calloc(lib->arena, 1, sizeof *f);
    f->def = arena_str(lib->arena, def);
    f->info = arena_calloc(lib->arena, 1, sizeof *f->info);
    WireReader r = wire_reader(f->def);
    bool ok = true;
    while (ok && wire_next(&r))
        if (r.field == 1 && r.type == WIRE_BYTES) ok = read_signature(lib->arena, r.bytes, f->info);
    if (!ok || r.failed || !f->info->name.len) return error_invalid("Malformed FunctionDef '%.*s'", STR_ARG(f->info->name));
    f->name = f->info->name;
    if (op_find(f->name)) return error_invalid("Cannot add function '%.*s' because an op with the same name already exists.", STR_ARG(f->name));
    const Function *old = function_find(lib, f->name);
    if (old && str_eq(old->def, f->def)) return NULL;
    if (old) {
        /* Maps have no order on the wire, so two equal functions may differ in bytes: the sizes then still agree. */
        if (old->def.len == f->def.len) return NULL;
        return error_invalid("Cannot add function '%.*s' because a different function with the same name already exists.", STR_ARG(f->name));
    }
    strmap_put(&lib->by_name, f->name, f);
    lib->functions = vec_reserve(lib->functions, &lib->capacity, (size_t)lib->count + 1, sizeof *lib->functions);
    lib->functions[lib->count++] = f;
    return NULL;
}

Str function_gradient(const FunctionLibrary *lib, Str name) {
    const char *found = strmap_get(&lib->gradients, name);
    return found ? str_of(found) : STR("");
}

Error *function_set_gradient(FunctionLibrary *lib, Str name, Str gradient) {
    Str known = function_gradient(lib, name);
    if (known.len && !str_eq(known, gradient))
        return error_invalid("Cannot assign gradient function '%.*s' to '%.*s' because it already has gradient function '%.*s'", STR_ARG(gradient), STR_ARG(name), STR_ARG(known));
    if (!known.len && gradient.len) strmap_put(&lib->gradients, arena_str(lib->arena, name), (void *)arena_str(lib->arena, gradient).ptr);
    return NULL;
}

static Error *add_gradient(FunctionLibrary *lib, Str def) {
    Str name = STR(""), gradient = STR("");
    WireReader r = wire_reader(def);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) name = r.bytes;
        if (r.field == 2 && r.type == WIRE_BYTES) gradient = r.bytes;
    }
    return r.failed ? error_invalid("Malformed GradientDef of '%.*s'", STR_ARG(name)) : function_set_gradient(lib, name, gradient);
}

Str function_callee(const FunctionLibrary *lib, const Node *n) {
    Str value, function;
    if (node_is(n, "PartitionedCall") || node_is(n, "StatefulPartitionedCall")) return node_attr(n, "f", &value) && attr_func(value, &function) ? func_name(function) : STR("");
    return lib && function_find(lib, n->op) ? n->op : STR("");
}

Error *function_library_add(FunctionLibrary *lib, Str library) {
    Error *err = NULL;
    WireReader r = wire_reader(library);
    while (!err && wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) err = add_function(lib, r.bytes);
        if (r.field == 2 && r.type == WIRE_BYTES) err = add_gradient(lib, r.bytes);
    }
    if (!err && r.failed) err = error_invalid("Malformed FunctionDefLibrary");
    return err;
}

void function_library_encode(const FunctionLibrary *lib, StrBuf *out) {
    for (int i = 0; i < lib->count; i++) wire_put_bytes(out, 1, lib->functions[i]->def);
    size_t at = 0;
    Str name;
    void *gradient;
    StrBuf def = {0};
    while (strmap_next(&lib->gradients, &at, &name, &gradient)) {
        def.len = 0;
        wire_put_bytes(&def, 1, name);
        wire_put_bytes(&def, 2, str_of(gradient));
        wire_put_bytes(out, 2, strbuf_str(&def));
    }
    strbuf_clear(&def);
}

Str function_reference(Arena *arena, const Node *call) {
    StrBuf list = {0}, entry = {0};
    wire_put_bytes(&list, 1, call->op);
    for (int i = 0; i < call->attr_count; i++) {
        entry.len = 0;
        wire_put_bytes(&entry, 1, call->attrs[i].name);
        wire_put_bytes(&entry, 2, call->attrs[i].value);
        wire_put_bytes(&list, 2, strbuf_str(&entry));
    }
    Str made = arena_str(arena, strbuf_str(&list));
    strbuf_clear(&entry);
    strbuf_clear(&list);
    return made;
}

/* ---- Bodies ---- */

static Error *add_args(FunctionBody *body, const OpInfo *info, const Attr *attrs, int attr_count) {
    Graph *g = body->graph;
    /* A node of the function's own type, to ask for the types of its arguments. */
    Node self = {.name = info->name, .op = info->name, .info = info, .attrs = (Attr *)attrs, .attr_count = attr_count};
    Error *err = node_resolve(g, &self);
    if (err) return err;
    int total = 0;
    for (int i = 0; i < info->input_count; i++) total++;
    body->args = arena_calloc(g->arena, (size_t)total, sizeof *body->args);
    for (int i = 0; i < info->input_count; i++) {
        const ArgInfo *arg = &info->inputs[i];
        if (arg->number_attr.len || arg->type_list_attr.len)
            return error_unimplemented("Function %.*s has a list argument %.*s", STR_ARG(info->name), STR_ARG(arg->name));
        Node *n;
        err = graph_add_node(g, arg->name, STR("_Arg"), STR(""), &n);
        if (err) return err;
        node_add_attr(g, n, STR("T"), attr_make_type(g->arena, self.input_types[i]));
        node_add_attr(g, n, STR("index"), attr_make_int(g->arena, i));
        err = node_resolve(g, n);
        if (err) return err;
        body->args[body->arg_count++] = n;
    }
    return NULL;
}

/* Placeholders become the values the caller gives. */
static void substitute(Graph *g, Node *n, const Attr *attrs, int attr_count) {
    for (int i = 0; i < n->attr_count; i++) {
        Str wanted;
        if (!attr_placeholder(n->attrs[i].value, &wanted)) continue;
        for (int j = 0; j < attr_count; j++)
            if (str_eq(attrs[j].name, wanted)) n->attrs[i].value = arena_str(g->arena, attrs[j].value);
    }
}

/* "arg", "arg:0" or "node:name:position". */
static Error *find_edge(const Graph *g, Str text, Output *out) {
    Str rest = text;
    Str name = str_next(&rest, ':');
    Node *n = graph_find(g, name);
    if (!n) return error_invalid("Function body: unknown input '%.*s'", STR_ARG(text));
    if (!rest.len) {
        *out = (Output){n, 0};
        return NULL;
    }
    int64_t position = 0;
    bool is_plain = str_to_int64(rest, &position); /* node:1, as in graphs */
    Str arg = is_plain ? STR("") : str_next(&rest, ':');
    if (!is_plain && rest.len && !str_to_int64(rest, &position)) return error_invalid("Function body: malformed input '%.*s'", STR_ARG(text));
    if (position < 0 || position > 1 << 24) return error_invalid("Function body: malformed input '%.*s'", STR_ARG(text));
    *out = (Output){n, (int)position};
    if (is_plain) return NULL;
    return node_output_index(n, arg, (int)position, &out->index);
}

static Error *link_node(Graph *g, Node *n, const NodeDefView *view) {
    int data = 0;
    for (int i = 0; i < view->input_count; i++) data += !(view->inputs[i].len && view->inputs[i].ptr[0] == '^');
    n->inputs = arena_alloc(g->arena, sizeof *n->inputs * (size_t)(data + 1));
    for (int i = 0; i < view->input_count; i++) {
        Str text = view->inputs[i];
        if (text.len && text.ptr[0] == '^') {
            Node *before = graph_find(g, str_slice(text, 1, text.len));
            if (!before) return error_invalid("Function body: unknown control input '%.*s'", STR_ARG(text));
            node_add_control(g, n, before);
            continue;
        }
        Error *err = find_edge(g, text, &n->inputs[n->input_count]);
        if (err) return err;
        n->input_count++;
    }
    return graph_validate_node(n);
}

static Error *add_body_nodes(FunctionBody *body, Str def, const Attr *attrs, int attr_count) {
    Graph *g = body->graph;
    int count = 0;
    WireReader r = wire_reader(def);
    while (wire_next(&r)) count += r.field == 3 && r.type == WIRE_BYTES;
    NodeDefView *views = xcalloc((size_t)count, sizeof *views);
    Error *err = NULL;
    int i = 0, first = g->node_count;
    r = wire_reader(def);
    while (!err && wire_next(&r)) {
        if (r.field != 3 || r.type != WIRE_BYTES) continue;
        Node *n;
        err = node_def_view(g->arena, r.bytes, &views[i]);
        if (!err && str_is(views[i].op, "_Arg")) err = error_invalid("Function body: node '%.*s' is an _Arg", STR_ARG(views[i].name));
        if (!err) err = graph_adopt_node(g, views[i].name, views[i].op, views[i].device, &n);
        if (err) break;
        n->attrs = views[i].attrs;
        n->attr_count = views[i].attr_count;
        substitute(g, n, attrs, attr_count);
        err = node_resolve(g, n);
        i++;
    }
    for (i = 0; !err && i < count; i++) err = link_node(g, g->nodes[first + i], &views[i]);
    free(views);
    return err;
}

/* Entries of a map<string,string> field. */
static bool map_entry(Str bytes, Str *key, Str *value) {
    *key = *value = (Str){"", 0};
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) *key = r.bytes;
        if (r.field == 2 && r.type == WIRE_BYTES) *value = r.bytes;
    }
    return !r.failed;
}

static Error *add_rets(FunctionBody *body, const Function *f) {
    Graph *g = body->graph;
    body->rets = arena_calloc(g->arena, (size_t)f->info->output_count, sizeof *body->rets);
    body->ret_count = f->info->output_count;
    int controls = 0;
    WireReader r = wire_reader(f->def);
    while (wire_next(&r)) controls += r.field == 6;
    body->control_rets = arena_calloc(g->arena, (size_t)controls, sizeof *body->control_rets);
    r = wire_reader(f->def);
    while (wire_next(&r)) {
        if (r.type != WIRE_BYTES || (r.field != 4 && r.field != 6)) continue;
        Str key, value;
        if (!map_entry(r.bytes, &key, &value)) return error_invalid("Malformed FunctionDef");
        if (r.field == 6) {
            Node *n = graph_find(g, value);
            if (!n) return error_invalid("Function body: unknown control output '%.*s'", STR_ARG(value));
            body->control_rets[body->control_ret_count++] = n;
            continue;
        }
        for (int i = 0; i < f->info->output_count; i++) {
            if (!str_eq(f->info->outputs[i].name, key)) continue;
            Error *err = find_edge(g, value, &body->rets[i]);
            if (err) return err;
        }
    }
    for (int i = 0; i < body->ret_count; i++) {
        const Node *n = body->rets[i].node;
        if (!n) return error_invalid("Function body: output %.*s is not set", STR_ARG(f->info->outputs[i].name));
        if (n->info && body->rets[i].index >= n->output_count)
            return error_invalid("Function body: output %.*s is output %d of node '%.*s', which has %d", STR_ARG(f->info->outputs[i].name), body->rets[i].index,
                                 STR_ARG(n->name), n->output_count);
    }
    return NULL;
}

Error *function_instantiate(const FunctionLibrary *lib, const Function *f, const Attr *attrs, int attr_count, FunctionBody **out) {
    FunctionBody *body = xcalloc(1, sizeof *body);
    body->graph = graph_new();
    body->graph->functions = (FunctionLibrary *)lib;
    Error *err = add_args(body, f->info, attrs, attr_count);
    if (!err) err = add_body_nodes(body, f->def, attrs, attr_count);
    if (!err) err = add_rets(body, f);
    if (err) {
        function_body_free(body);
        return error_wrap(err, "function %.*s", STR_ARG(f->name));
    }
    *out = body;
    return NULL;
}

void function_body_free(FunctionBody *body) {
    if (!body) return;
    graph_free(body->graph);
    free(body);
}
