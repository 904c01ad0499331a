/* graph_show.c: rill graph show: what a model offers and what it holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "io/saved_model.h"
#include "ops/op_list.h"
#include "tools/command.h"
#include "tools/report.h"

static const char usage[] =
    "graph show MODEL [--nodes] [--json]\n\n"
    "MODEL is the folder of a SavedModel, a .meta file, or a GraphDef. Shows for each graph in it: tags, signatures,\n"
    "placeholders, outputs (of a graph without signatures: what nothing uses), variables, collections, assets, init "
    "op.\n";

typedef struct Options {
    bool nodes, as_json, help;
} Options;

/* The graph of one MetaGraph, imported. */
typedef struct Opened {
    Graph *graph;
    FunctionLibrary *functions;
    bool *used; /* by node id: something reads it */
} Opened;

static Error *open_graph(Str graph_def, Opened *o) {
    o->functions = function_library_new();
    o->graph = graph_new();
    o->graph->functions = o->functions;
    Error *err = graph_import(o->graph, graph_def);
    o->used = xcalloc((size_t)o->graph->node_count + 1, sizeof *o->used);
    for (int i = 0; !err && i < o->graph->node_count; i++) {
        const Node *n = o->graph->nodes[i];
        for (int k = 0; k < n->input_count; k++) o->used[n->inputs[k].node->id] = true;
        for (int k = 0; k < n->control_count; k++) o->used[n->controls[k]->id] = true;
    }
    return err;
}

static void close_graph(Opened *o) {
    graph_free(o->graph);
    function_library_free(o->functions);
    free(o->used);
}

static bool is_variable(const Node *n) {
    return node_is(n, "VariableV2") || node_is(n, "Variable") || node_is(n, "VarHandleOp");
}

static bool is_input(const Node *n) {
    return str_starts(n->op, STR("Placeholder"));
}

/* What a graph without signatures computes in the end: values nobody uses; not the saver's and not assignments of
 * variables. */
static bool is_output(const Opened *o, const Node *n) {
    return !o->used[n->id] && n->output_count && !is_variable(n) && !is_input(n) && !node_is(n, "Const") &&
           !str_starts(n->name, STR("save/")) && !str_starts(n->op, STR("Assign"));
}

static void declared(const Node *n, DataType *dtype, PartialShape *shape) {
    *shape = (PartialShape){.rank = -1};
    *dtype = n->output_count ? dtype_base(n->output_types[0]) : DT_INVALID;
    if (is_variable(n)) error_free(node_attr_type(n, "dtype", dtype));
    if (is_variable(n) || is_input(n)) error_free(node_attr_shape(n, "shape", shape));
}

/* ---- As text ---- */

static void print_tensors(const char *title, const TensorInfo *items, int count, int indent) {
    for (int i = 0; i < count; i++) {
        const TensorInfo *t = &items[i];
        char *type = report_type(t->dtype, &t->shape);
        printf("%*s%s %-20.*s %-22s %.*s%s\n", indent, "", title, STR_ARG(t->key), type, STR_ARG(t->name),
               t->default_value.ptr ? " (has a default)" : "");
        if (t->part_count) print_tensors("  part", t->parts, t->part_count, indent + 2);
        free(type);
    }
}

static void print_nodes(const Opened *o, const char *title, bool (*wanted)(const Opened *o, const Node *n)) {
    bool first = true;
    for (int i = 0; i < o->graph->node_count; i++) {
        const Node *n = o->graph->nodes[i];
        if (!wanted(o, n)) continue;
        if (first) printf("  %s\n", title);
        first = false;
        DataType dtype;
        PartialShape shape;
        declared(n, &dtype, &shape);
        char *type = report_type(dtype, &shape);
        printf("    %-40.*s %-24s %.*s\n", STR_ARG(n->name), type, STR_ARG(n->op));
        free(type);
    }
}

static bool want_variable(const Opened *o, const Node *n) {
    (void)o;
    return is_variable(n);
}

static bool want_input(const Opened *o, const Node *n) {
    (void)o;
    return is_input(n);
}

static bool want_any(const Opened *o, const Node *n) {
    (void)o;
    (void)n;
    return true;
}

static void print_signatures(const MetaGraph *m) {
    for (int i = 0; i < m->signature_count; i++) {
        const Signature *s = &m->signatures[i];
        printf("  signature %.*s%s%.*s\n", STR_ARG(s->key), s->method_name.len ? "  " : "", STR_ARG(s->method_name));
        print_tensors("in ", s->inputs, s->input_count, 4);
        print_tensors("out", s->outputs, s->output_count, 4);
    }
}

static void print_extras(const MetaGraph *m) {
    for (int i = 0; i < m->collection_count; i++)
        printf("%s %.*s (%d)", i ? "," : "  collections:", STR_ARG(m->collections[i].key), m->collections[i].count);
    if (m->collection_count) putchar('\n');
    for (int i = 0; i < m->asset_count; i++)
        printf("  asset %.*s for %.*s\n", STR_ARG(m->assets[i].filename), STR_ARG(m->assets[i].tensor));
    if (m->init_op.len) printf("  init op: %.*s\n", STR_ARG(m->init_op));
    if (m->saver.present)
        printf("  saver: %.*s, file name in %.*s\n", STR_ARG(m->saver.restore_op), STR_ARG(m->saver.filename_tensor));
}

static void print_meta_graph(const MetaGraph *m, const Opened *g, const Options *o) {
    char *tags = meta_graph_tags_text(m), *size = report_size(m->graph_def.len);
    printf("graph%s%s: %d nodes, %d functions, %s", *tags ? " " : "", tags, g->graph->node_count,
           function_count(g->functions), size);
    if (m->producer.len) printf(", by TensorFlow %.*s", STR_ARG(m->producer));
    putchar('\n');
    print_signatures(m);
    print_nodes(g, "placeholders", want_input);
    if (!m->signature_count) print_nodes(g, "outputs", is_output);
    print_nodes(g, "variables", want_variable);
    print_extras(m);
    if (o->nodes) print_nodes(g, "nodes", want_any);
    free(tags);
    free(size);
}

/* ---- As JSON ---- */

static void report_tensors(cJSON *to, const char *name, const TensorInfo *items, int count) {
    cJSON *all = report_object(to, name);
    for (int i = 0; i < count; i++) {
        const TensorInfo *t = &items[i];
        char *key = str_dup(t->key);
        cJSON *item = report_object(all, key);
        free(key);
        if (t->kind == TENSOR_DENSE) report_str(item, "tensor", t->name);
        if (t->dtype) report_str(item, "dtype", str_of(dtype_name(t->dtype)));
        report_shape(item, "shape", &t->shape);
        if (t->part_count) report_tensors(item, "parts", t->parts, t->part_count);
    }
}

static void report_nodes(cJSON *to, const char *name, const Opened *g, bool (*wanted)(const Opened *o, const Node *n)) {
    cJSON *all = report_array(to, name);
    for (int i = 0; i < g->graph->node_count; i++) {
        const Node *n = g->graph->nodes[i];
        if (!wanted(g, n)) continue;
        cJSON *item = report_object(all, NULL);
        DataType dtype;
        PartialShape shape;
        declared(n, &dtype, &shape);
        report_str(item, "name", n->name);
        report_str(item, "op", n->op);
        if (dtype) report_str(item, "dtype", str_of(dtype_name(dtype)));
        if (is_variable(n) || is_input(n)) report_shape(item, "shape", &shape);
        if (n->device.len) report_str(item, "device", n->device);
    }
}

static void report_meta_graph(cJSON *to, const MetaGraph *m, const Opened *g, const Options *o) {
    cJSON *item = report_object(to, NULL), *tags = report_array(item, "tags");
    for (int i = 0; i < m->tag_count; i++) report_str(tags, NULL, m->tags[i]);
    report_int(item, "node_count", g->graph->node_count);
    report_int(item, "function_count", function_count(g->functions));
    report_int(item, "graph_bytes", (int64_t)m->graph_def.len);
    report_str(item, "tensorflow_version", m->producer);
    cJSON *signatures = report_object(item, "signatures");
    for (int i = 0; i < m->signature_count; i++) {
        char *key = str_dup(m->signatures[i].key);
        cJSON *s = report_object(signatures, key);
        free(key);
        report_str(s, "method_name", m->signatures[i].method_name);
        report_tensors(s, "inputs", m->signatures[i].inputs, m->signatures[i].input_count);
        report_tensors(s, "outputs", m->signatures[i].outputs, m->signatures[i].output_count);
    }
    report_nodes(item, "placeholders", g, want_input);
    report_nodes(item, "outputs", g, is_output);
    report_nodes(item, "variables", g, want_variable);
    cJSON *collections = report_object(item, "collections");
    for (int i = 0; i < m->collection_count; i++) {
        char *key = str_dup(m->collections[i].key);
        report_int(collections, key, m->collections[i].count);
        free(key);
    }
    cJSON *assets = report_array(item, "assets");
    for (int i = 0; i < m->asset_count; i++) {
        cJSON *a = report_object(assets, NULL);
        report_str(a, "file", m->assets[i].filename);
        report_str(a, "tensor", m->assets[i].tensor);
    }
    report_str(item, "init_op", m->init_op);
    if (m->saver.present) report_str(item, "restore_op", m->saver.restore_op);
    if (o->nodes) report_nodes(item, "nodes", g, want_any);
}

static Error *show(const char *path, const Options *o) {
    static const char *const formats[] = {"SavedModel", "MetaGraph", "GraphDef"};
    SavedModel *file = NULL;
    Error *err = saved_model_open(&file_system_local, path, &file);
    if (err) return err;
    cJSON *json = cJSON_CreateObject(), *graphs = report_array(json, "graphs");
    report_str(json, "format", str_of(formats[file->format]));
    report_int(json, "file_bytes", (int64_t)file->file_bytes);
    if (file->variables) report_str(json, "variables", str_of(file->variables));
    char *size = report_size(file->file_bytes);
    if (!o->as_json)
        printf("%s %s, %s%s%s\n", formats[file->format], path, size, file->variables ? ", variables in " : "",
               file->variables ? file->variables : "");
    free(size);
    for (int i = 0; !err && i < file->count; i++) {
        Opened g = {0};
        err = error_wrap(open_graph(file->meta_graphs[i]->graph_def, &g), "%s", path);
        if (!err && o->as_json) report_meta_graph(graphs, file->meta_graphs[i], &g, o);
        if (!err && !o->as_json) print_meta_graph(file->meta_graphs[i], &g, o);
        close_graph(&g);
    }
    if (!err && o->as_json)
        report_print(json);
    else
        cJSON_Delete(json);
    saved_model_close(file);
    return err;
}

int graph_show(int argc, char **argv) {
    Options o = {0};
    const Flag flags[] = {
        {"nodes", FLAG_BOOL, &o.nodes, NULL, "list every node"},
        {"json", FLAG_BOOL, &o.as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &o.help, NULL, "print this"},
        {0},
    };
    const char *path[1];
    int count, code;
    if (!command_parse(flags, usage, argc, argv, path, 1, 1, &count, &code)) return code;
    ops_register_all();
    Error *err = show(path[0], &o);
    return err ? command_failed(argv[0], err) : 0;
}
