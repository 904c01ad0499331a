/* debug_nodes.c: a Copy of every watched output, and the debug ops that take it.

   The node is called __copy_NODE_SLOT, the ops __dbg_NODE:SLOT_INDEX_OP. Of a reference the consumers keep the reference: they may write to it. */
#include "placement/debug_nodes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/memory.h"

/* The nodes of one output; copy NULL: it is not watched. */
typedef struct Watched {
    Node *copy;
    Node **ops;
    int op_count;
} Watched;

/* "DebugNumericSummary(lower_bound=-1.0; gated_grpc=true)" */
typedef struct OpSpec {
    Str name, attrs;
    bool gated;
} OpSpec;

static Error *failed(const char *format, Str op, Str tensor) {
    return error_new(CODE_FAILED_PRECONDITION, format, STR_ARG(op), STR_ARG(tensor));
}

static bool is_true(Str s) {
    return str_is(s, "1") || (s.len == 4 && strncasecmp(s.ptr, "true", 4) == 0);
}

static Str trimmed(Str s) {
    while (s.len && s.ptr[0] == ' ') s = str_slice(s, 1, s.len);
    while (s.len && s.ptr[s.len - 1] == ' ') s.len--;
    return s;
}

static bool next_attr(Str *rest, Str *key, Str *value) {
    while (rest->len) {
        Str item = trimmed(str_next(rest, ';'));
        if (!item.len) continue;
        *value = item;
        *key = trimmed(str_next(value, '='));
        *value = trimmed(*value);
        return true;
    }
    return false;
}

static Error *parse_op(Str text, OpSpec *out) {
    *out = (OpSpec){0};
    Str rest = text;
    out->name = trimmed(str_next(&rest, '('));
    if (out->name.len == text.len) return NULL;
    rest = trimmed(rest);
    if (!rest.len || rest.ptr[rest.len - 1] != ')') return error_new(CODE_INVALID_ARGUMENT, "Malformed debug op name \"%.*s\"", STR_ARG(text));
    out->attrs = str_slice(rest, 0, rest.len - 1);
    Str attrs = out->attrs, key, value;
    while (next_attr(&attrs, &key, &value))
        if (str_is(key, "gated_grpc")) out->gated = is_true(value);
    return NULL;
}

/* Types of TensorFlow's kernels. */
static bool takes(Str op, DataType t) {
    bool integral = t == DT_INT8 || t == DT_INT16 || t == DT_INT32 || t == DT_INT64 || t == DT_UINT8 || t == DT_UINT16 || t == DT_UINT32 || t == DT_UINT64;
    bool floating = t == DT_FLOAT || t == DT_DOUBLE;
    if (str_is(op, "DebugNanCount")) return integral || floating || t == DT_HALF || t == DT_BFLOAT16;
    if (str_is(op, "DebugNumericSummary")) return integral || floating || t == DT_BOOL;
    return true;
}

/* Attributes that the client gave with the op's name; those that the op does not have are an error. */
static Error *set_attrs(Graph *g, Node *n, Str attrs) {
    StrBuf unknown = {0};
    int unknown_count = 0;
    Str key, value;
    bool is_summary = node_is(n, "DebugNumericSummary");
    while (next_attr(&attrs, &key, &value)) {
        char *number = str_dup(value);
        if (str_is(key, "gated_grpc") || (is_summary && str_is(key, "mute_if_healthy")))
            node_add_attr(g, n, key, attr_make_bool(g->arena, is_true(value)));
        else if (is_summary && (str_is(key, "lower_bound") || str_is(key, "upper_bound")))
            node_add_attr(g, n, key, attr_make_float(g->arena, strtof(number, NULL)));
        else
            strbuf_addf(&unknown, "%s%.*s", unknown_count++ ? ", " : "", STR_ARG(key));
        free(number);
    }
    Error *err = unknown_count ? error_new(CODE_FAILED_PRECONDITION, "%d attribute key(s) were not valid for debug node %.*s: %s", unknown_count, STR_ARG(n->name), unknown.ptr) : NULL;
    strbuf_clear(&unknown);
    return err;
}

static Error *add_op(Graph *g, const OpSpec *spec, int index, const Node *source, int slot, Node *copy, const DebugWatch *w, Str device, Node **out) {
    DataType type = dtype_base(source->output_types[slot]);
    Str tensor = arena_printf(g->arena, "%.*s:%d", STR_ARG(source->name), slot);
    Str name = arena_printf(g->arena, "__dbg_%.*s_%d_%.*s", STR_ARG(tensor), index, STR_ARG(spec->name));
    if (!str_is(spec->name, "DebugIdentity") && !str_is(spec->name, "DebugNanCount") && !str_is(spec->name, "DebugNumericSummary"))
        return failed("Failed to create node definition for debug op %.*s on watched tensor %.*s", spec->name, tensor);
    if (!takes(spec->name, type)) return failed("Failed to find kernel definition for debug op %.*s on watched tensor %.*s", spec->name, tensor);
    Error *err = graph_add_node(g, name, spec->name, STR(""), out);
    if (err) return err;
    Node *n = *out;
    n->placed = source->placed;
    node_add_attr(g, n, STR("T"), attr_make_type(g->arena, type));
    node_add_attr(g, n, STR("device_name"), attr_make_string(g->arena, device));
    node_add_attr(g, n, STR("tensor_name"), attr_make_string(g->arena, tensor));
    node_add_attr(g, n, STR("debug_urls"), attr_make_strings(g->arena, w->urls, w->url_count));
    /* What has no value yet is seen at its source only. */
    Output input = dtype_is_ref(source->output_types[slot]) ? (Output){(Node *)source, slot} : (Output){copy, 0};
    node_set_inputs(g, n, &input, 1);
    err = set_attrs(g, n, spec->attrs);
    return err ? err : node_resolve(g, n);
}

static Error *add_copy(Graph *g, Node *source, int slot, const DebugWatch *w, const OpSpec *specs, Node **out) {
    Str name = arena_printf(g->arena, "__copy_%.*s_%d", STR_ARG(source->name), slot);
    Error *err = graph_add_node(g, name, STR("Copy"), STR(""), out);
    if (err) return err;
    int count = 0;
    Str *texts = arena_calloc(g->arena, (size_t)(w->op_count * w->url_count) + 1, sizeof *texts);
    for (int i = 0; i < w->op_count; i++)
        for (int u = 0; u < w->url_count; u++)
            texts[count++] = arena_printf(g->arena, "%.*s;%.*s;%d", STR_ARG(specs[i].name), STR_ARG(w->urls[u]), specs[i].gated);
    (*out)->placed = source->placed;
    node_add_attr(g, *out, STR("T"), attr_make_type(g->arena, dtype_base(source->output_types[slot])));
    node_add_attr(g, *out, STR("debug_ops_spec"), attr_make_strings(g->arena, texts, count));
    node_set_inputs(g, *out, &(Output){source, slot}, 1);
    return node_resolve(g, *out);
}

static Error *watch_output(Graph *g, Node *source, int slot, const DebugWatch *w, const Str *device_names, Watched *out) {
    OpSpec *specs = arena_calloc(g->arena, (size_t)w->op_count + 1, sizeof *specs);
    Error *err = NULL;
    for (int i = 0; !err && i < w->op_count; i++) err = parse_op(w->ops[i], &specs[i]);
    if (!err) err = add_copy(g, source, slot, w, specs, &out->copy);
    out->ops = arena_calloc(g->arena, (size_t)w->op_count + 1, sizeof *out->ops);
    for (int i = 0; !err && i < w->op_count; i++) {
        Error *cannot = add_op(g, &specs[i], i, source, slot, out->copy, w, device_names[source->placed], &out->ops[out->op_count]);
        if (!cannot) {
            out->op_count++;
        } else if (w->tolerate) {
            log_info("%s", cannot->message);
            error_free(cannot);
        } else {
            err = error_new(CODE_FAILED_PRECONDITION, "Failed to create debug node %.*s for tensor %.*s:%d, due to: %s", STR_ARG(w->ops[i]), STR_ARG(source->name), slot, cannot->message);
            error_free(cannot);
        }
    }
    return err;
}

/* A watch of that very output wins over one of everything. */
static const DebugWatch *find_watch(const DebugWatch *watches, int count, const Node *n, int slot) {
    const DebugWatch *found = NULL;
    for (int i = 0; i < count; i++) {
        const DebugWatch *w = &watches[i];
        bool is_own = str_eq(w->node, n->name) && w->slot == slot;
        if (w->op_count && (is_own || (str_is(w->node, "*") && !found))) found = w;
    }
    return found;
}

/* A consumer that merges what comes from several sides does not wait for each. */
static void take_copies(Graph *g, Node *n, Watched *const *watched) {
    bool waits = !node_is(n, "Merge") && !node_is(n, "RefMerge");
    for (int i = 0; i < n->input_count; i++) {
        const Output from = n->inputs[i];
        const Watched *w = watched[from.node->id] ? &watched[from.node->id][from.index] : NULL;
        if (!w || !w->copy) continue;
        if (!dtype_is_ref(from.node->output_types[from.index])) n->inputs[i] = (Output){w->copy, 0};
        for (int j = 0; waits && j < w->op_count; j++) node_add_control(g, n, w->ops[j]);
    }
}

static Error *check(const DebugWatch *watches, int count) {
    for (int i = 0; i < count; i++)
        if (str_is(watches[i].node, "*") && watches[i].slot != -1)
            return error_new(CODE_INVALID_ARGUMENT, "output_slot is expected to be -1 for wildcard ('*') node name, but got %d", watches[i].slot);
    return NULL;
}

Error *graph_watch(Graph *g, const DebugWatch *watches, int count, const Str *device_names) {
    int node_count = g->node_count;
    Watched **watched = xcalloc((size_t)node_count + 1, sizeof *watched); /* by node, by output */
    Error *err = check(watches, count);
    for (int i = 0; !err && i < node_count; i++) {
        Node *n = g->nodes[i];
        /* Iterations one after another, so that what is seen is in order. */
        if (node_is(n, "Enter") || node_is(n, "RefEnter")) node_add_attr(g, n, STR("parallel_iterations"), attr_make_int(g->arena, 1));
        for (int slot = 0; !err && n->info && slot < n->output_count; slot++) {
            const DebugWatch *w = find_watch(watches, count, n, slot);
            if (!w) continue;
            if (!watched[i]) watched[i] = arena_calloc(g->arena, (size_t)n->output_count, sizeof **watched);
            err = watch_output(g, n, slot, w, device_names, &watched[i][slot]);
        }
    }
    for (int i = 0; !err && i < node_count; i++) take_copies(g, g->nodes[i], watched);
    free(watched);
    return err;
}
