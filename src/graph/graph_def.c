/* graph_def.c: GraphDef in and out.

   A GraphDef is read in two passes: nodes first, then edges, since a node may come before its inputs. The bytes are copied into the
   graph's arena once; names and attributes point into that copy. */
#include "graph/graph_def.h"

#include <stdlib.h>

#include "base/memory.h"
#include "graph/function.h"
#include "proto/wire.h"

Error *node_def_view(Arena *arena, Str node_def, NodeDefView *out) {
    *out = (NodeDefView){.name = {"", 0}, .op = {"", 0}, .device = {"", 0}};
    int inputs = 0, attrs = 0;
    WireReader r = wire_reader(node_def);
    while (wire_next(&r)) {
        inputs += r.field == 3 && r.type == WIRE_BYTES;
        attrs += r.field == 5 && r.type == WIRE_BYTES;
    }
    if (r.failed) return error_invalid("Malformed NodeDef");
    out->inputs = arena_alloc(arena, sizeof *out->inputs * (size_t)(inputs + 1));
    out->attrs = arena_alloc(arena, sizeof *out->attrs * (size_t)(attrs + 1));
    r = wire_reader(node_def);
    while (wire_next(&r)) {
        if (r.type != WIRE_BYTES) continue;
        if (r.field == 1) out->name = r.bytes;
        if (r.field == 2) out->op = r.bytes;
        if (r.field == 3) out->inputs[out->input_count++] = r.bytes;
        if (r.field == 4) out->device = r.bytes;
        if (r.field != 5) continue;
        Attr attr = {{"", 0}, {"", 0}};
        WireReader entry = wire_reader(r.bytes);
        while (wire_next(&entry)) {
            if (entry.type != WIRE_BYTES) continue;
            if (entry.field == 1) attr.name = entry.bytes;
            if (entry.field == 2) attr.value = entry.bytes;
        }
        if (entry.failed) return error_invalid("Malformed attributes of node '%.*s'", STR_ARG(out->name));
        out->attrs[out->attr_count++] = attr;
    }
    return NULL;
}

static Error *check_name(Str name) {
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c <= ' ' || c == ':' || c == ';' || c == '^' || c >= 0x7f) return error_invalid("Node name '%.*s' is not valid", STR_ARG(name));
    }
    return NULL;
}

static Error *add_node(Graph *g, const NodeDefView *view, Node **out) {
    Error *err = check_name(view->name);
    if (!err) err = graph_adopt_node(g, view->name, view->op, view->device, out);
    if (err) return err;
    (*out)->attrs = view->attrs;
    (*out)->attr_count = view->attr_count;
    return node_resolve(g, *out);
}

/* Whether a NodeDef is marked as grown; the mark is taken off. */
static bool take_grown(NodeDefView *view) {
    bool is_grown = false;
    for (int i = 0; i < view->attr_count; i++) {
        if (!str_is(view->attrs[i].name, ATTR_GROWN)) continue;
        is_grown = attr_bool(view->attrs[i].value, &is_grown) && is_grown;
        view->attrs[i--] = view->attrs[--view->attr_count];
    }
    return is_grown;
}

/* Those who use the node must find what they found before. */
static Error *check_grown(const Node *now, const Node *was) {
    bool ok = now->info && was->info && now->output_count >= was->output_count && now->expected_inputs >= was->expected_inputs;
    for (int i = 0; ok && i < was->output_count; i++) ok = now->output_types[i] == was->output_types[i];
    return ok ? NULL : error_invalid("Node '%.*s' (op %.*s) does not have the outputs it had before it grew", STR_ARG(now->name), STR_ARG(was->op));
}

static Error *grow_node(Graph *g, const NodeDefView *view, GraphUndo *undo, Node **out) {
    Node *n = graph_find(g, view->name);
    if (!n) return error_invalid("Node '%.*s' cannot grow: it is not in the graph", STR_ARG(view->name));
    graph_undo_save(undo, g, n);
    Node was = *n;
    n->op = view->op;
    n->attrs = view->attrs;
    n->attr_count = view->attr_count;
    n->inputs = NULL;
    n->controls = NULL;
    n->input_count = n->control_count = 0;
    *out = n;
    Error *err = node_resolve(g, n);
    return err ? err : check_grown(n, &was);
}

/* "node", "node:1" or "^node". */
static Error *find_input(const Graph *g, const Node *n, Str text, Node **src, int *index, bool *control) {
    Str name = text;
    int64_t position = 0;
    *control = text.len && text.ptr[0] == '^';
    if (*control) name = str_slice(text, 1, text.len);
    ptrdiff_t colon = *control ? -1 : str_find(text, ':');
    bool ok = true;
    if (colon >= 0) {
        name = str_slice(text, 0, (size_t)colon);
        ok = str_to_int64(str_slice(text, (size_t)colon + 1, text.len), &position) && position >= 0 && position < 1 << 24;
    }
    *src = ok ? graph_find(g, name) : NULL;
    if (!*src) return error_invalid("Node '%.*s': Unknown input node '%.*s'", STR_ARG(n->name), STR_ARG(text));
    *index = (int)position;
    return NULL;
}

static Error *link_inputs(Graph *g, Node *n, const NodeDefView *view) {
    int data = 0;
    for (int i = 0; i < view->input_count; i++) data += !(view->inputs[i].len && view->inputs[i].ptr[0] == '^');
    n->input_count = n->control_count = 0; /* a message may name a node twice as grown */
    n->inputs = arena_alloc(g->arena, sizeof *n->inputs * (size_t)(data + 1));
    n->controls = arena_alloc(g->arena, sizeof *n->controls * (size_t)(view->input_count - data + 1));
    for (int i = 0; i < view->input_count; i++) {
        Node *src = NULL;
        int index = 0;
        bool control = false;
        Error *err = find_input(g, n, view->inputs[i], &src, &index, &control);
        if (err) return err;
        if (control) {
            n->controls[n->control_count++] = src;
        } else {
            if (n->control_count) return error_invalid("Node '%.*s': Control dependencies must come after regular dependencies", STR_ARG(n->name));
            n->inputs[n->input_count++] = (Output){src, index};
        }
    }
    /* Room of a power of two, as node_add_control expects. */
    int have = n->control_count;
    n->control_count = 0;
    Node **controls = n->controls;
    n->controls = NULL;
    for (int i = 0; i < have; i++) node_add_control(g, n, controls[i]);
    return NULL;
}

Error *graph_validate_node(const Node *n) {
    if (n->info && n->input_count != n->expected_inputs)
        return error_invalid("NodeDef expected inputs '%d' do not match %d inputs specified; Op<name=%.*s>; NodeDef: {{node %.*s}}",
                             n->expected_inputs, n->input_count, STR_ARG(n->op), STR_ARG(n->name));
    for (int i = 0; i < n->input_count; i++) {
        const Node *src = n->inputs[i].node;
        if (!src->info) continue;
        int index = n->inputs[i].index;
        if (index >= src->output_count)
            return error_invalid("Node '%.*s': Connecting to invalid output %d of source node %.*s which has %d outputs."
                                 " Try using tf.compat.v1.experimental.output_all_intermediates(True).",
                                 STR_ARG(n->name), index, STR_ARG(src->name), src->output_count);
        if (!n->info) continue;
        DataType have = src->output_types[index], want = n->input_types[i];
        if (have == want || (dtype_base(have) == want && !dtype_is_ref(want))) continue;
        return error_invalid("Input %d of node %.*s was passed %s from %.*s:%d incompatible with expected %s.", i, STR_ARG(n->name),
                             dtype_name(have), STR_ARG(src->name), index, dtype_name(want));
    }
    return NULL;
}

static Error *finish_node(Graph *g, Node *n, const NodeDefView *view) {
    Error *err = link_inputs(g, n, view);
    if (!err) err = graph_validate_node(n);
    return err;
}

/* Edges from NextIteration close loops; every other cycle is a mistake. */
static Error *check_cycles(const Graph *g) {
    int *waiting = xcalloc((size_t)g->node_count, sizeof *waiting);
    int *offsets = xcalloc((size_t)g->node_count + 1, sizeof *offsets);
    int *ready = xcalloc((size_t)g->node_count, sizeof *ready);
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        for (int j = 0; j < n->input_count + n->control_count; j++) {
            const Node *src = j < n->input_count ? n->inputs[j].node : n->controls[j - n->input_count];
            if (node_is(src, "NextIteration") || node_is(src, "RefNextIteration")) continue;
            waiting[i]++;
            offsets[src->id + 1]++;
        }
    }
    for (int i = 0; i < g->node_count; i++) offsets[i + 1] += offsets[i];
    int *targets = xcalloc((size_t)offsets[g->node_count], sizeof *targets);
    int *fill = xcalloc((size_t)g->node_count, sizeof *fill);
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        for (int j = 0; j < n->input_count + n->control_count; j++) {
            const Node *src = j < n->input_count ? n->inputs[j].node : n->controls[j - n->input_count];
            if (node_is(src, "NextIteration") || node_is(src, "RefNextIteration")) continue;
            targets[offsets[src->id] + fill[src->id]++] = i;
        }
    }
    int done = 0, count = 0;
    for (int i = 0; i < g->node_count; i++)
        if (!waiting[i]) ready[count++] = i;
    for (; done < count; done++)
        for (int j = offsets[ready[done]]; j < offsets[ready[done] + 1]; j++)
            if (--waiting[targets[j]] == 0) ready[count++] = targets[j];
    Error *err = NULL;
    for (int i = 0; !err && count < g->node_count && i < g->node_count; i++)
        if (waiting[i])
            err = error_invalid("Graph is invalid, contains a cycle with %d nodes, including: %.*s", g->node_count - count,
                                STR_ARG(g->nodes[i]->name));
    free(waiting);
    free(offsets);
    free(ready);
    free(targets);
    free(fill);
    return err;
}

static void read_versions(Graph *g, Str versions) {
    WireReader r = wire_reader(versions);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_VARINT) g->producer = (int)r.number;
        if (r.field == 2 && r.type == WIRE_VARINT) g->min_consumer = (int)r.number;
    }
}

static Error *read_graph(Graph *g, Str graph_def, GraphUndo *undo) {
    Str bytes = arena_str(g->arena, graph_def);
    Arena *scratch = arena_new();
    int count = 0;
    Error *err = NULL;
    WireReader r = wire_reader(bytes);
    while (!err && wire_next(&r)) {
        count += r.field == 1 && r.type == WIRE_BYTES;
        if (r.field == 2 && r.type == WIRE_BYTES) {
            if (!g->functions) err = error_internal("The graph has no function library");
            if (!err) err = function_library_add(g->functions, r.bytes);
        }
        if (r.field == 4 && r.type == WIRE_BYTES) read_versions(g, r.bytes);
    }
    if (!err && r.failed) err = error_invalid("Malformed GraphDef");
    NodeDefView *views = arena_calloc(scratch, (size_t)count, sizeof *views);
    Node **nodes = arena_calloc(scratch, (size_t)count, sizeof *nodes);
    count = 0;
    r = wire_reader(bytes);
    while (!err && wire_next(&r)) {
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        err = node_def_view(g->arena, r.bytes, &views[count]);
        if (!err) err = undo && take_grown(&views[count]) ? grow_node(g, &views[count], undo, &nodes[count]) : add_node(g, &views[count], &nodes[count]);
        count++;
    }
    for (int i = 0; !err && i < count; i++) err = finish_node(g, nodes[i], &views[i]);
    if (!err) err = check_cycles(g);
    arena_free(scratch);
    return err;
}

Error *graph_import(Graph *g, Str graph_def) {
    return read_graph(g, graph_def, NULL);
}

Error *graph_extend(Graph *g, Str graph_def, GraphUndo *undo) {
    return read_graph(g, graph_def, undo);
}

/* ---- Export ---- */

static bool is_default(const Node *n, const Attr *attr) {
    const AttrInfo *info = n->info ? op_attr(n->info, attr->name) : NULL;
    return info && info->default_value.ptr && str_eq(info->default_value, attr->value);
}

static void put_attr(StrBuf *scratch, Str name, Str value, StrBuf *out) {
    scratch->len = 0;
    wire_put_bytes(scratch, 1, name);
    wire_put_bytes(scratch, 2, value);
    wire_put_bytes(out, 5, strbuf_str(scratch));
}

void node_export(const Node *n, const GraphExport *options, StrBuf *out) {
    wire_put_bytes(out, 1, n->name);
    wire_put_bytes(out, 2, n->op);
    StrBuf text = {0};
    for (int i = 0; i < n->input_count; i++) {
        text.len = 0;
        strbuf_add(&text, n->inputs[i].node->name);
        if (n->inputs[i].index) strbuf_addf(&text, ":%d", n->inputs[i].index);
        wire_put_bytes(out, 3, strbuf_str(&text));
    }
    for (int i = 0; i < n->control_count; i++) {
        text.len = 0;
        strbuf_addc(&text, '^');
        strbuf_add(&text, n->controls[i]->name);
        wire_put_bytes(out, 3, strbuf_str(&text));
    }
    Str device = options->device_names && n->placed >= 0 ? options->device_names[n->placed] : n->device;
    if (device.len) wire_put_bytes(out, 4, device);
    for (int i = 0; i < n->attr_count; i++) {
        if (options->strip_defaults && is_default(n, &n->attrs[i])) continue;
        put_attr(&text, n->attrs[i].name, n->attrs[i].value, out);
    }
    if (options->is_grown) put_attr(&text, STR(ATTR_GROWN), (Str){"\x28\x01", 2}, out); /* an AttrValue: b is true */
    strbuf_clear(&text);
}

void graph_export(const Graph *g, const GraphExport *options, StrBuf *out) {
    StrBuf part = {0};
    for (int i = 0; i < g->node_count; i++) {
        part.len = 0;
        node_export(g->nodes[i], options, &part);
        wire_put_bytes(out, 1, strbuf_str(&part));
    }
    part.len = 0;
    if (g->functions) function_library_encode(g->functions, &part);
    if (part.len) wire_put_bytes(out, 2, strbuf_str(&part));
    part.len = 0;
    wire_put_uint(&part, 1, (uint64_t)g->producer);
    if (g->min_consumer) wire_put_uint(&part, 2, (uint64_t)g->min_consumer);
    wire_put_bytes(out, 4, strbuf_str(&part));
    strbuf_clear(&part);
}
