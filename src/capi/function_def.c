/* function_def.c: operations of a graph as the body of a FunctionDef.

   FunctionDef: signature=1 node_def=3 ret=4 control_ret=6. Names of arguments and results are made of letters that a signature may hold; nodes whose names those took
   get a number. Inside, an edge is "arg" or "node:output:position". */
#include <ctype.h>
#include <stdlib.h>

#include "base/fingerprint.h"
#include "base/memory.h"
#include "capi/function_internal.h"
#include "proto/wire.h"

typedef struct Builder {
    const FunctionSpec *spec;
    Arena *arena;
    StrMap used;       /* names that are taken */
    Str *arg_names;    /* by input */
    Str *result_names; /* by output */
    Str *node_names;   /* by node id; ptr NULL: not in the body */
    StrMap signature_attrs; /* names of placeholders: const AttrInfo * */
    bool is_stateful;
} Builder;

/* ---- Names ---- */

/* Small letters, digits and underscores, a letter first. */
static Str normalize(Arena *a, Str name) {
    StrBuf b = {0};
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (isalnum(c))
            strbuf_addc(&b, (char)tolower(c));
        else if (b.len)
            strbuf_addc(&b, '_');
    }
    Str text = strbuf_str(&b);
    while (text.len && !isalpha((unsigned char)text.ptr[0])) text = str_slice(text, 1, text.len);
    Str made = arena_str(a, text.len ? text : STR("unknown"));
    strbuf_clear(&b);
    return made;
}

static Str unique(Builder *b, Str name) {
    Str chosen = name;
    for (int i = 0; strmap_get(&b->used, chosen); i++) chosen = arena_printf(b->arena, "%.*s_%d", STR_ARG(name), i);
    strmap_put(&b->used, chosen, b);
    return chosen;
}

static int find_input(const Builder *b, const Node *n, int index) {
    for (int i = 0; i < b->spec->input_count; i++)
        if (b->spec->inputs[i].oper->node == n && b->spec->inputs[i].index == index) return i;
    return -1;
}

static bool makes_input(const Builder *b, const Node *n) {
    for (int i = 0; i < b->spec->input_count; i++)
        if (b->spec->inputs[i].oper->node == n) return true;
    return false;
}

static Error *check_output(const Builder *b, TF_Output o, const char *what, int i) {
    if (!o.oper || o.oper->graph != b->spec->graph) return error_invalid("%s %d of function '%.*s' is not in the graph", what, i, STR_ARG(b->spec->name));
    const Node *n = o.oper->node;
    if (!n->info) return error_invalid("%s %d of function '%.*s' is of the op '%s', which nobody registered", what, i, STR_ARG(b->spec->name), o.oper->type);
    if (o.index < 0 || o.index >= n->output_count)
        return error_invalid("Node '%s' (type: '%s', num of outputs: %d) does not have output %d", o.oper->name, o.oper->type, n->output_count, o.index);
    if (dtype_is_ref(n->output_types[o.index]))
        return error_invalid("%s %d of node '%s' is a reference: functions have none", what, o.index, o.oper->name);
    return NULL;
}

static Error *name_arguments(Builder *b) {
    const FunctionSpec *spec = b->spec;
    b->arg_names = arena_calloc(b->arena, (size_t)spec->input_count, sizeof *b->arg_names);
    for (int i = 0; i < spec->input_count; i++) {
        Error *err = check_output(b, spec->inputs[i], "Input", i);
        if (!err && find_input(b, spec->inputs[i].oper->node, spec->inputs[i].index) < i)
            err = error_invalid("TF_Output %s:%d appears more than once in the input list", spec->inputs[i].oper->name, spec->inputs[i].index);
        if (err) return err;
        b->arg_names[i] = unique(b, normalize(b->arena, str_of(spec->inputs[i].oper->name)));
    }
    return NULL;
}

static Error *name_results(Builder *b) {
    const FunctionSpec *spec = b->spec;
    StrMap results = {0};
    Error *err = NULL;
    b->result_names = arena_calloc(b->arena, (size_t)spec->output_count, sizeof *b->result_names);
    for (int i = 0; !err && i < spec->output_count; i++) {
        err = check_output(b, spec->outputs[i], "Output", i);
        if (err) break;
        if (!spec->output_names) {
            b->result_names[i] = unique(b, normalize(b->arena, str_of(spec->outputs[i].oper->name)));
            continue;
        }
        Str given = str_of(spec->output_names[i]);
        if (!str_eq(given, normalize(b->arena, given)))
            err = error_invalid("Invalid output name '%s' of function '%.*s': it may hold small letters, digits and underscores", spec->output_names[i], STR_ARG(spec->name));
        else if (strmap_put(&results, given, b))
            err = error_invalid("Cannot have duplicate output names. Name '%s' appears more than once in 'output_names' array.", spec->output_names[i]);
        strmap_put(&b->used, given, b);
        b->result_names[i] = given;
    }
    strmap_clear(&results);
    return err;
}

static Error *name_nodes(Builder *b) {
    const FunctionSpec *spec = b->spec;
    const Graph *g = spec->graph->graph;
    b->node_names = arena_calloc(b->arena, (size_t)g->node_count, sizeof *b->node_names);
    for (int i = 0; i < (spec->opers ? spec->oper_count : g->node_count); i++) {
        const Node *n = spec->opers ? spec->opers[i]->node : g->nodes[i];
        if (spec->opers && spec->opers[i]->graph != spec->graph) return error_invalid("Operation '%s' of function '%.*s' is not in the graph", spec->opers[i]->name, STR_ARG(spec->name));
        if (!spec->opers && makes_input(b, n)) continue;
        if (b->node_names[n->id].ptr) return error_invalid("Operation '%.*s' appears more than once in the body of function '%.*s'", STR_ARG(n->name), STR_ARG(spec->name));
        b->node_names[n->id] = unique(b, n->name);
        b->is_stateful |= node_is_stateful(n);
    }
    return NULL;
}

/* ---- Edges ---- */

/* Which named output of the op an output is, and its position there. */
static Error *output_name(const Node *n, int index, Str *name, int *position) {
    for (int i = 0; n->info && i < n->info->output_count; i++) {
        int from = 0, count = 0;
        Error *err = node_arg_range(n, false, n->info->outputs[i].name, &from, &count);
        if (err) return err;
        if (index < from || index >= from + count) continue;
        *name = n->info->outputs[i].name;
        *position = index - from;
        return NULL;
    }
    return error_invalid("Node '%.*s' has no output %d that a function could name", STR_ARG(n->name), index);
}

static Error *edge_text(const Builder *b, Output o, StrBuf *out) {
    int input = find_input(b, o.node, o.index);
    if (input >= 0) {
        strbuf_add(out, b->arg_names[input]);
        return NULL;
    }
    Str name = STR("");
    int position = 0;
    Error *err = output_name(o.node, o.index, &name, &position);
    if (!err) strbuf_addf(out, "%.*s:%.*s:%d", STR_ARG(b->node_names[o.node->id]), STR_ARG(name), position);
    return err;
}

static Error *put_inputs(const Builder *b, const Node *n, StrBuf *out) {
    StrBuf text = {0};
    Error *err = NULL;
    for (int i = 0; !err && i < n->input_count; i++) {
        Output from = n->inputs[i];
        text.len = 0;
        if (!b->node_names[from.node->id].ptr && find_input(b, from.node, from.index) < 0)
            err = error_invalid("Input %d, '%.*s:%d', of node '%.*s' in function '%.*s' is not available. You might need to include it in inputs or include its source node in the body", i,
                                STR_ARG(from.node->name), from.index, STR_ARG(n->name), STR_ARG(b->spec->name));
        if (!err) err = edge_text(b, from, &text);
        if (!err) wire_put_bytes(out, 3, strbuf_str(&text));
    }
    for (int i = 0; !err && i < n->control_count; i++) {
        Str before = b->node_names[n->controls[i]->id];
        text.len = 0;
        if (!before.ptr)
            err = error_invalid("The source of the control edge from '%.*s' to '%.*s' is not in the body. Encountered while creating function '%.*s'", STR_ARG(n->controls[i]->name),
                                STR_ARG(n->name), STR_ARG(b->spec->name));
        if (err) break;
        strbuf_addf(&text, "^%.*s", STR_ARG(before));
        wire_put_bytes(out, 3, strbuf_str(&text));
    }
    strbuf_clear(&text);
    return err;
}

/* Placeholders are attributes of the function, of the type that the op says. */
static void note_placeholder(Builder *b, const Node *n, const Attr *attr) {
    Str name;
    const AttrInfo *declared = n->info ? op_attr(n->info, attr->name) : NULL;
    if (declared && attr_placeholder(attr->value, &name) && !strmap_get(&b->signature_attrs, name)) strmap_put(&b->signature_attrs, name, (void *)declared);
}

static Error *put_node(Builder *b, const Node *n, StrBuf *out) {
    wire_put_bytes(out, 1, b->node_names[n->id]);
    wire_put_bytes(out, 2, n->op);
    Error *err = put_inputs(b, n, out);
    if (n->device.len) wire_put_bytes(out, 4, n->device);
    StrBuf entry = {0};
    for (int i = 0; i < n->attr_count; i++) {
        note_placeholder(b, n, &n->attrs[i]);
        entry.len = 0;
        wire_put_bytes(&entry, 1, n->attrs[i].name);
        wire_put_bytes(&entry, 2, n->attrs[i].value);
        wire_put_bytes(out, 5, strbuf_str(&entry));
    }
    strbuf_clear(&entry);
    return err;
}

/* ---- The parts ---- */

static void put_argument(StrBuf *out, uint32_t field, Str name, DataType type) {
    StrBuf arg = {0};
    wire_put_bytes(&arg, 1, name);
    wire_put_uint(&arg, 3, (uint64_t)type);
    wire_put_bytes(out, field, strbuf_str(&arg));
    strbuf_clear(&arg);
}

static Str control_name(const FunctionSpec *spec, int i) {
    return str_of(spec->control_output_names ? spec->control_output_names[i] : spec->control_outputs[i]->name);
}

/* OpDef: name=1 input_arg=2 output_arg=3 attr=4 description=6 is_stateful=17 control_output=20. */
static void put_signature(const Builder *b, Str name, StrBuf *out) {
    const FunctionSpec *spec = b->spec;
    StrBuf op = {0}, attr = {0};
    wire_put_bytes(&op, 1, name);
    for (int i = 0; i < spec->input_count; i++) put_argument(&op, 2, b->arg_names[i], (DataType)TF_OperationOutputType(spec->inputs[i]));
    for (int i = 0; i < spec->output_count; i++) put_argument(&op, 3, b->result_names[i], (DataType)TF_OperationOutputType(spec->outputs[i]));
    size_t at = 0;
    Str key;
    void *declared;
    while (strmap_next(&b->signature_attrs, &at, &key, &declared)) {
        attr.len = 0;
        wire_put_bytes(&attr, 1, key);
        wire_put_bytes(&attr, 2, ((const AttrInfo *)declared)->type);
        wire_put_bytes(&op, 4, strbuf_str(&attr));
    }
    if (spec->description.len) wire_put_bytes(&op, 6, spec->description);
    if (b->is_stateful) wire_put_uint(&op, 17, 1);
    for (int i = 0; i < spec->control_output_count; i++) wire_put_bytes(&op, 20, control_name(spec, i));
    wire_put_bytes(out, 1, strbuf_str(&op));
    strbuf_clear(&attr);
    strbuf_clear(&op);
}

static void put_entry(StrBuf *out, uint32_t field, Str key, Str value) {
    StrBuf entry = {0};
    wire_put_bytes(&entry, 1, key);
    wire_put_bytes(&entry, 2, value);
    wire_put_bytes(out, field, strbuf_str(&entry));
    strbuf_clear(&entry);
}

static Error *put_results(const Builder *b, StrBuf *out) {
    const FunctionSpec *spec = b->spec;
    StrBuf text = {0};
    Error *err = NULL;
    for (int i = 0; !err && i < spec->output_count; i++) {
        Output from = {spec->outputs[i].oper->node, spec->outputs[i].index};
        text.len = 0;
        if (!b->node_names[from.node->id].ptr && find_input(b, from.node, from.index) < 0)
            err = error_invalid("TF_Output %s:%d is neither in the function body nor among function inputs. Encountered while creating function '%.*s'", spec->outputs[i].oper->name, from.index,
                                STR_ARG(spec->name));
        if (!err) err = edge_text(b, from, &text);
        if (!err) put_entry(out, 4, b->result_names[i], strbuf_str(&text));
    }
    for (int i = 0; !err && i < spec->control_output_count; i++) {
        Str node = b->node_names[spec->control_outputs[i]->node->id];
        if (!node.ptr)
            err = error_invalid("Control output '%s' is not in the body of function '%.*s'", spec->control_outputs[i]->name, STR_ARG(spec->name));
        else
            put_entry(out, 6, control_name(spec, i), node);
    }
    strbuf_clear(&text);
    return err;
}

static Error *put_nodes(Builder *b, StrBuf *out) {
    const Graph *g = b->spec->graph->graph;
    StrBuf node = {0};
    Error *err = NULL;
    for (int i = 0; !err && i < g->node_count; i++) {
        if (!b->node_names[i].ptr) continue;
        node.len = 0;
        err = put_node(b, g->nodes[i], &node);
        wire_put_bytes(out, 3, strbuf_str(&node));
    }
    strbuf_clear(&node);
    return err;
}

Error *function_def_of_graph(const FunctionSpec *spec, StrBuf *out, char **name) {
    Builder b = {.spec = spec, .arena = arena_new()};
    StrBuf body = {0};
    Error *err = name_arguments(&b);
    if (!err) err = name_results(&b);
    if (!err) err = name_nodes(&b);
    if (!err) err = put_nodes(&b, &body);
    if (!err) err = put_results(&b, &body);
    if (!err) {
        *name = spec->append_hash ? xasprintf("%.*s_%016llx", STR_ARG(spec->name), (unsigned long long)fingerprint64(strbuf_str(&body))) : str_dup(spec->name);
        put_signature(&b, str_of(*name), out);
        strbuf_add(out, strbuf_str(&body));
    }
    strbuf_clear(&body);
    strmap_clear(&b.used);
    strmap_clear(&b.signature_attrs);
    arena_free(b.arena);
    return err;
}
