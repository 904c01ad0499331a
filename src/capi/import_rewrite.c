/* import_rewrite.c: a GraphDef as it will be called in the graph: names prefixed or made unique, inputs mapped, devices and control edges added. */
#include <stdlib.h>

#include "base/memory.h"
#include "capi/import_internal.h"
#include "proto/wire.h"

/* ---- Reading ---- */

static void read_versions(Import *im, Str versions) {
    WireReader r = wire_reader(versions);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_VARINT) im->producer = (int)r.number;
        if (r.field == 2 && r.type == WIRE_VARINT) im->min_consumer = (int)r.number;
    }
}

static bool is_skipped(const Import *im, Str name) {
    for (int i = 0; im->options->skip_mapped && i < im->options->mapping_count; i++)
        if (im->options->mappings[i].index == 0 && str_is(name, im->options->mappings[i].name)) return true;
    return false;
}

static Error *read_nodes(Import *im, Str graph_def) {
    int count = 0;
    WireReader r = wire_reader(graph_def);
    while (wire_next(&r)) {
        count += r.field == 1 && r.type == WIRE_BYTES;
        if (r.field == 2 && r.type == WIRE_BYTES) im->library = r.bytes;
        if (r.field == 4 && r.type == WIRE_BYTES) read_versions(im, r.bytes);
    }
    if (r.failed) return error_invalid("Invalid GraphDef");
    im->nodes = arena_calloc(im->arena, (size_t)count, sizeof *im->nodes);
    r = wire_reader(graph_def);
    while (wire_next(&r)) {
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        Error *err = node_def_view(im->arena, r.bytes, &im->nodes[im->node_count]);
        if (err) return err;
        if (!is_skipped(im, im->nodes[im->node_count].name)) im->node_count++;
    }
    return NULL;
}

/* ---- Names ---- */

/* Does a node of the graph start with it? */
static Node *node_under(const Graph *g, Str prefix) {
    for (int i = 0; i < g->node_count; i++)
        if (str_starts(g->nodes[i]->name, prefix)) return g->nodes[i];
    return NULL;
}

static bool prefix_taken(const Graph *g, Str prefix) {
    char *scope = xasprintf("%.*s/", STR_ARG(prefix));
    bool taken = graph_find(g, prefix) || node_under(g, str_of(scope));
    free(scope);
    return taken;
}

static Error *choose_prefix(Import *im) {
    const Graph *g = im->graph->graph;
    Str prefix = str_of(im->options->prefix);
    im->prefix = STR("");
    if (str_ends(prefix, STR("/"))) prefix.len--;
    if (!prefix.len) return NULL;
    Str chosen = prefix;
    if (im->options->uniquify_prefix) {
        for (int i = 1; prefix_taken(g, chosen); i++) chosen = arena_printf(im->arena, "%.*s_%d", STR_ARG(prefix), i);
    } else {
        char *scope = xasprintf("%.*s/", STR_ARG(prefix));
        const Node *taken = im->options->uniquify_names ? NULL : node_under(g, str_of(scope));
        free(scope);
        if (taken)
            return error_invalid("Import node name prefix conflicts with names of nodes already in the Graph, such as '%.*s'", STR_ARG(taken->name));
    }
    im->prefix = arena_printf(im->arena, "%.*s/", STR_ARG(chosen));
    return NULL;
}

static bool name_taken(const Import *im, const StrMap *chosen, Str name) {
    return graph_find(im->graph->graph, name) || strmap_get(chosen, name);
}

static Error *choose_names(Import *im) {
    StrMap chosen = {0};
    Error *err = NULL;
    for (int i = 0; !err && i < im->node_count; i++) {
        Str given = im->nodes[i].name;
        Str *name = arena_alloc(im->arena, sizeof *name);
        *name = arena_printf(im->arena, "%.*s%.*s", STR_ARG(im->prefix), STR_ARG(given));
        Str base = *name;
        if (strmap_get(&im->names, given)) {
            err = error_invalid("Node '%.*s' is not unique", STR_ARG(given));
        } else if (im->options->uniquify_names && !im->options->uniquify_prefix) {
            for (int n = 1; name_taken(im, &chosen, *name); n++) *name = arena_printf(im->arena, "%.*s_%d", STR_ARG(base), n);
        } else if (graph_find(im->graph->graph, *name)) {
            err = error_invalid("Node name '%.*s' already exists in the Graph", STR_ARG(*name));
        }
        if (err) break;
        strmap_put(&chosen, *name, name);
        strmap_put(&im->names, given, name);
    }
    strmap_clear(&chosen);
    return err;
}

Error *import_read(Import *im, Str graph_def) {
    im->arena = arena_new();
    im->mapping_used = arena_calloc(im->arena, (size_t)im->options->mapping_count, sizeof *im->mapping_used);
    Error *err = read_nodes(im, graph_def);
    if (!err) err = choose_prefix(im);
    if (!err) err = choose_names(im);
    return err;
}

void import_clear(Import *im) {
    strmap_clear(&im->names);
    if (im->arena) arena_free(im->arena);
}

/* ---- Inputs ---- */

const InputMapping *import_mapping(const Import *im, Str name, int index) {
    for (int i = 0; i < im->options->mapping_count; i++) {
        const InputMapping *m = &im->options->mappings[i];
        if (m->index != index || !str_is(name, m->name)) continue;
        im->mapping_used[i] = true;
        return m;
    }
    return NULL;
}

/* "node", "node:1" or "^node" as a name and an index. */
static bool split_input(Str text, Str *name, int *index) {
    *index = 0;
    *name = text;
    if (text.len && text.ptr[0] == '^') {
        *name = str_slice(text, 1, text.len);
        *index = CONTROL_INDEX;
        return true;
    }
    ptrdiff_t colon = str_find(text, ':');
    int64_t number = 0;
    if (colon < 0) return true;
    *name = str_slice(text, 0, (size_t)colon);
    if (!str_to_int64(str_slice(text, (size_t)colon + 1, text.len), &number) || number < 0 || number > 1 << 24) return false;
    *index = (int)number;
    return true;
}

static void put_input(StrBuf *out, Str name, int index) {
    StrBuf text = {0};
    if (index == CONTROL_INDEX) strbuf_addc(&text, '^');
    strbuf_add(&text, name);
    if (index > 0) strbuf_addf(&text, ":%d", index);
    wire_put_bytes(out, 3, strbuf_str(&text));
    strbuf_clear(&text);
}

static Error *rewrite_input(const Import *im, const NodeDefView *n, Str text, StrBuf *out, bool *has_imported) {
    Str name;
    int index;
    if (!split_input(text, &name, &index)) return error_invalid("Node '%.*s': Malformed input '%.*s'", STR_ARG(n->name), STR_ARG(text));
    const InputMapping *m = import_mapping(im, name, index);
    if (m) {
        put_input(out, str_of(m->to.oper->name), index == CONTROL_INDEX ? CONTROL_INDEX : m->to.index);
        return NULL;
    }
    const Str *renamed = strmap_get(&im->names, name);
    if (!renamed) return error_invalid("Node '%.*s': Unknown input node '%.*s'", STR_ARG(n->name), STR_ARG(text));
    put_input(out, *renamed, index);
    *has_imported = true;
    return NULL;
}

/* ---- Attributes ---- */

/* "loc:@node" follows the node to its new name. */
static Str rewrite_location(const Import *im, Str location) {
    Str start = STR("loc:@");
    if (!str_starts(location, start)) return location;
    const Str *renamed = strmap_get(&im->names, str_slice(location, start.len, location.len));
    return renamed ? arena_printf(im->arena, "loc:@%.*s", STR_ARG(*renamed)) : location;
}

static Str rewrite_class(const Import *im, Str value) {
    int count = attr_list_strings(value, NULL, 0);
    if (count < 0) return value;
    Str *items = arena_calloc(im->arena, (size_t)count, sizeof *items);
    attr_list_strings(value, items, count);
    StrBuf list = {0}, made = {0};
    for (int i = 0; i < count; i++) wire_put_bytes(&list, 2, rewrite_location(im, items[i]));
    wire_put_bytes(&made, 1, strbuf_str(&list));
    Str kept = arena_str(im->arena, strbuf_str(&made));
    strbuf_clear(&list);
    strbuf_clear(&made);
    return kept;
}

static void put_attr(const Import *im, const Attr *attr, StrBuf *out) {
    StrBuf entry = {0};
    wire_put_bytes(&entry, 1, attr->name);
    wire_put_bytes(&entry, 2, str_is(attr->name, "_class") ? rewrite_class(im, attr->value) : attr->value);
    wire_put_bytes(out, 5, strbuf_str(&entry));
    strbuf_clear(&entry);
}

/* ---- Nodes: NodeDef name=1 op=2 input=3 device=4 attr=5 ---- */

static Error *rewrite_node(const Import *im, const NodeDefView *n, StrBuf *out) {
    const Str *name = strmap_get(&im->names, n->name);
    bool has_imported = false;
    Error *err = NULL;
    wire_put_bytes(out, 1, *name);
    wire_put_bytes(out, 2, n->op);
    for (int i = 0; !err && i < n->input_count; i++) err = rewrite_input(im, n, n->inputs[i], out, &has_imported);
    if (!has_imported)
        for (int i = 0; i < im->options->control_count; i++) put_input(out, str_of(im->options->controls[i]->name), CONTROL_INDEX);
    Str device = n->device.len ? n->device : str_of(im->options->default_device);
    if (device.len) wire_put_bytes(out, 4, device);
    for (int i = 0; i < n->attr_count; i++) put_attr(im, &n->attrs[i], out);
    return err;
}

Error *import_rewrite(Import *im, StrBuf *out) {
    StrBuf node = {0};
    Error *err = NULL;
    for (int i = 0; !err && i < im->node_count; i++) {
        node.len = 0;
        err = rewrite_node(im, &im->nodes[i], &node);
        wire_put_bytes(out, 1, strbuf_str(&node));
    }
    if (im->library.len) wire_put_bytes(out, 2, im->library);
    strbuf_clear(&node);
    return err;
}
