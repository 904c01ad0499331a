/* function_def.c: FunctionDef from a graph.

   FunctionDef: signature=1 (OpDef: name=1 input_arg=2 output_arg=3 is_stateful=17 control_output=20; ArgDef: name=1
   type=3), node_def=3, ret=4 (map), control_ret=6 (map). Inside of it an edge is written "arg" or
   "node:output_name:position". */
#include "graph/function_def.h"

#include "graph/graph_def.h"
#include "proto/wire.h"

/* Which output argument an output belongs to: the last one that starts at or before it. */
static Error *edge_text(Output x, StrBuf *text) {
    const Node *n = x.node;
    text->len = 0;
    strbuf_add(text, n->name);
    if (node_is(n, "_Arg")) return NULL;
    int start = -1;
    Str arg = {NULL, 0};
    for (int i = 0; n->info && i < n->info->output_count; i++) {
        int at = 0;
        Error *err = node_output_index(n, n->info->outputs[i].name, 0, &at);
        if (!err && at <= x.index && at >= start) {
            start = at;
            arg = n->info->outputs[i].name;
        }
        error_free(err); /* a list of no outputs */
    }
    if (start < 0)
        return error_invalid("Node '%.*s' (op %.*s) of a function has no output %d", STR_ARG(n->name), STR_ARG(n->op),
                             x.index);
    strbuf_addf(text, ":%.*s:%d", STR_ARG(arg), x.index - start);
    return NULL;
}

static Error *put_node(const Node *n, StrBuf *out) {
    StrBuf def = {0}, text = {0};
    Error *err = NULL;
    wire_put_bytes(&def, 1, n->name);
    wire_put_bytes(&def, 2, n->op);
    for (int i = 0; !err && i < n->input_count; i++) {
        err = edge_text(n->inputs[i], &text);
        wire_put_bytes(&def, 3, strbuf_str(&text));
    }
    for (int i = 0; i < n->control_count; i++) {
        text.len = 0;
        strbuf_addf(&text, "^%.*s", STR_ARG(n->controls[i]->name));
        wire_put_bytes(&def, 3, strbuf_str(&text));
    }
    if (n->device.len) wire_put_bytes(&def, 4, n->device);
    for (int i = 0; i < n->attr_count; i++) {
        text.len = 0;
        wire_put_bytes(&text, 1, n->attrs[i].name);
        wire_put_bytes(&text, 2, n->attrs[i].value);
        wire_put_bytes(&def, 5, strbuf_str(&text));
    }
    wire_put_bytes(out, 3, strbuf_str(&def));
    strbuf_clear(&text);
    strbuf_clear(&def);
    return err;
}

static void put_arg(StrBuf *signature, uint32_t field, Str name, DataType type) {
    StrBuf arg = {0};
    wire_put_bytes(&arg, 1, name);
    wire_put_uint(&arg, 3, (uint64_t)dtype_base(type));
    wire_put_bytes(signature, field, strbuf_str(&arg));
    strbuf_clear(&arg);
}

static void put_pair(StrBuf *out, uint32_t field, Str key, Str value) {
    StrBuf entry = {0};
    wire_put_bytes(&entry, 1, key);
    wire_put_bytes(&entry, 2, value);
    wire_put_bytes(out, field, strbuf_str(&entry));
    strbuf_clear(&entry);
}

static void result_name(StrBuf *text, int i) {
    text->len = 0;
    strbuf_addf(text, "result_%d", i);
}

static void put_signature(const FunctionBody *body, Str name, StrBuf *out) {
    StrBuf signature = {0}, text = {0};
    bool stateful = false;
    wire_put_bytes(&signature, 1, name);
    for (int i = 0; i < body->arg_count; i++)
        put_arg(&signature, 2, body->args[i]->name, body->args[i]->output_types[0]);
    for (int i = 0; i < body->ret_count; i++) {
        result_name(&text, i);
        put_arg(&signature, 3, strbuf_str(&text), body->rets[i].node->output_types[body->rets[i].index]);
    }
    for (int i = 0; i < body->graph->node_count; i++)
        stateful |= node_is_stateful(body->graph->nodes[i]) && !node_is(body->graph->nodes[i], "_Arg");
    if (stateful) wire_put_uint(&signature, 17, 1);
    for (int i = 0; i < body->control_ret_count; i++) wire_put_bytes(&signature, 20, body->control_rets[i]->name);
    wire_put_bytes(out, 1, strbuf_str(&signature));
    strbuf_clear(&text);
    strbuf_clear(&signature);
}

Error *function_def_encode(const FunctionBody *body, Str name, StrBuf *out) {
    StrBuf text = {0}, key = {0};
    Error *err = NULL;
    put_signature(body, name, out);
    for (int i = 0; !err && i < body->graph->node_count; i++)
        if (!node_is(body->graph->nodes[i], "_Arg")) err = put_node(body->graph->nodes[i], out);
    for (int i = 0; !err && i < body->ret_count; i++) {
        result_name(&key, i);
        err = edge_text(body->rets[i], &text);
        put_pair(out, 4, strbuf_str(&key), strbuf_str(&text));
    }
    for (int i = 0; !err && i < body->control_ret_count; i++)
        put_pair(out, 6, body->control_rets[i]->name, body->control_rets[i]->name);
    strbuf_clear(&key);
    strbuf_clear(&text);
    return err;
}

Error *function_def_add(FunctionLibrary *lib, const FunctionBody *body, Str name) {
    StrBuf def = {0}, library = {0};
    Error *err = function_def_encode(body, name, &def);
    wire_put_bytes(&library, 1, strbuf_str(&def));
    if (!err) err = function_library_add(lib, strbuf_str(&library));
    strbuf_clear(&def);
    strbuf_clear(&library);
    return err;
}
