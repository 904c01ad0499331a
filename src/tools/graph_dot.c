/* graph_dot.c: rill graph dot: a graph in the language of Graphviz. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "io/saved_model.h"
#include "ops/op_list.h"
#include "tools/command.h"

static const char usage[] =
    "graph dot MODEL [--prefix NAME] [--tags TAG,...]\n\n"
    "Prints the graph for Graphviz: rill graph dot model.pb | dot -Tsvg > graph.svg. Nodes are grouped by the task or "
    "device\n"
    "they ask for; dashed edges are control edges.\n";

static void print_quoted(Str s) {
    putchar('"');
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '"' || s.ptr[i] == '\\') putchar('\\');
        putchar(s.ptr[i] == '\n' ? ' ' : s.ptr[i]);
    }
    putchar('"');
}

/* What stands out: state, inputs, constants. */
static const char *style_of(const Node *n) {
    if (node_is(n, "Const")) return ", shape=note, color=gray50";
    if (str_starts(n->op, STR("Placeholder"))) return ", shape=invhouse, style=filled, fillcolor=lightblue";
    if (node_is(n, "VariableV2") || node_is(n, "VarHandleOp")) return ", shape=cylinder, style=filled, fillcolor=khaki";
    return "";
}

static void print_node(const Node *n) {
    StrBuf label = {0};
    strbuf_addf(&label, "%.*s (%.*s)", STR_ARG(n->name), STR_ARG(n->op));
    printf("    ");
    print_quoted(n->name);
    printf(" [label=");
    print_quoted(strbuf_str(&label));
    printf("%s];\n", style_of(n));
    strbuf_clear(&label);
}

static void print_edge(const Node *from, const Node *to, const char *attributes) {
    printf("  ");
    print_quoted(from->name);
    printf(" -> ");
    print_quoted(to->name);
    printf("%s;\n", attributes);
}

static void print_edges(const Graph *g, const bool *shown) {
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        if (!shown[i]) continue;
        for (int k = 0; k < n->input_count; k++) {
            char attributes[48] = "";
            if (n->inputs[k].index) snprintf(attributes, sizeof attributes, " [taillabel=\"%d\"]", n->inputs[k].index);
            if (shown[n->inputs[k].node->id]) print_edge(n->inputs[k].node, n, attributes);
        }
        for (int k = 0; k < n->control_count; k++)
            if (shown[n->controls[k]->id]) print_edge(n->controls[k], n, " [style=dashed, color=gray50]");
    }
}

static void print_graph(const Graph *g, Str prefix) {
    bool *shown = xcalloc((size_t)g->node_count + 1, sizeof *shown),
         *done = xcalloc((size_t)g->node_count + 1, sizeof *done);
    int clusters = 0;
    printf("digraph rill {\n  rankdir=TB;\n  node [shape=box, fontsize=10];\n");
    for (int i = 0; i < g->node_count; i++) shown[i] = str_starts(g->nodes[i]->name, prefix);
    for (int i = 0; i < g->node_count; i++) {
        if (!shown[i] || done[i]) continue;
        Str device = g->nodes[i]->device;
        if (device.len) {
            printf("  subgraph cluster_%d {\n    label=", clusters++);
            print_quoted(device);
            printf(";\n");
        }
        for (int k = i; k < g->node_count; k++) {
            if (!shown[k] || done[k] || !str_eq(g->nodes[k]->device, device)) continue;
            done[k] = true;
            print_node(g->nodes[k]);
        }
        if (device.len) printf("  }\n");
    }
    print_edges(g, shown);
    printf("}\n");
    free(shown);
    free(done);
}

static Error *dot(const char *path, const char *prefix, const char *tag_list) {
    SavedModel *file = NULL;
    const MetaGraph *m = NULL;
    Str tags[64], rest = str_of(tag_list);
    int tag_count = 0;
    while (rest.len && tag_count < 64) tags[tag_count++] = str_trim(str_next(&rest, ','));
    Error *err = saved_model_open(&file_system_local, path, &file);
    if (err) return err;
    if (tag_count)
        err = saved_model_find(file, tags, tag_count, &m);
    else
        m = file->meta_graphs[0];
    FunctionLibrary *functions = function_library_new();
    Graph *g = graph_new();
    g->functions = functions;
    if (!err) err = error_wrap(graph_import(g, m->graph_def), "%s", path);
    if (!err) print_graph(g, str_of(prefix));
    graph_free(g);
    function_library_free(functions);
    saved_model_close(file);
    return err;
}

int graph_dot(int argc, char **argv) {
    const char *prefix = "", *tags = NULL;
    bool help = false;
    const Flag flags[] = {
        {"prefix", FLAG_STRING, &prefix, "NAME", "only nodes whose names begin so"},
        {"tags", FLAG_STRING, &tags, "TAG,...", "which graph of a SavedModel (the first)"},
        {"help", FLAG_BOOL, &help, NULL, "print this"},
        {0},
    };
    const char *path[1];
    int count, code;
    if (!command_parse(flags, usage, argc, argv, path, 1, 1, &count, &code)) return code;
    ops_register_all();
    Error *err = dot(path[0], prefix, tags);
    return err ? command_failed(argv[0], err) : 0;
}
