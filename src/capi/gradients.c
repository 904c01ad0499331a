/* gradients.c: TF_AddGradients; operations that change by it. */
#include "capi/gradients_internal.h"

#include <stdlib.h>

#include "base/memory.h"
#include "capi/status_internal.h"
#include "graph/graph_undo.h"

/* A name of the graph that is the prefix, or inside of it. */
static const Node *name_conflict(const Graph *g, Str prefix) {
    for (int i = 0; i < g->node_count; i++) {
        Str name = g->nodes[i]->name;
        if (str_starts(name, prefix) && (name.len == prefix.len || name.ptr[prefix.len] == '/')) return g->nodes[i];
    }
    return NULL;
}

static Error *read_outputs(const TF_Graph *g, const TF_Output *from, int count, Output *to) {
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++) err = capi_output(g, from[i], &to[i]);
    return err;
}

/* Calls, If, Case, While: what gradients_add may give more outputs. */
static bool calls_function(const TF_Graph *g, const Node *n) {
    bool does = function_find(g->functions, n->op) != NULL;
    for (int i = 0; i < n->attr_count && !does; i++) {
        Str function;
        does = attr_func(n->attrs[i].value, &function) || attr_list_funcs(n->attrs[i].value, NULL, 0) > 0;
    }
    return does;
}

static GraphUndo prepare_locked(TF_Graph *g) {
    GraphUndo undo = graph_undo_begin(g->graph);
    for (int i = 0; i < g->graph->node_count; i++)
        if (calls_function(g, g->graph->nodes[i])) graph_undo_save(&undo, g->graph, g->graph->nodes[i]);
    return undo;
}

/* Sessions that have them already will be sent them again. */
static void note_grown_locked(TF_Graph *g, const GraphUndo *undo) {
    for (int i = 0; i < undo->saved_count; i++) {
        Node *n = undo->saved[i].node;
        if (n->output_count == undo->saved[i].was.output_count) continue;
        g->grown = vec_reserve(g->grown, &g->grown_capacity, (size_t)g->grown_count + 1, sizeof(Node *));
        g->grown[g->grown_count++] = n;
    }
}

static void take_back_locked(TF_Graph *g, GraphUndo *undo) {
    graph_undo(undo, g->graph);
    graph_drop_nodes_locked(g, undo->node_count);
    graph_rewire_locked(g);
}

Error *graph_gradients_locked(TF_Graph *g, const TF_Output *ys, int ny, const TF_Output *xs, int nx, const GradientOptions *options, Gradient *dys) {
    Output *from = xcalloc((size_t)(ny + nx), sizeof *from), *by = from + ny;
    Error *err = read_outputs(g, ys, ny, from);
    if (!err) err = read_outputs(g, xs, nx, by);
    if (!err) {
        GraphUndo undo = prepare_locked(g);
        err = gradients_add_with(g->graph, from, ny, by, nx, options, dys);
        graph_rewire_locked(g);
        if (!err) err = shapes_infer_graph(g->shapes);
        if (err)
            take_back_locked(g, &undo);
        else
            note_grown_locked(g, &undo);
        graph_undo_clear(&undo);
    }
    free(from);
    return err;
}

static Error *add_locked(TF_Graph *g, const char *prefix, const TF_Output *y, int ny, const TF_Output *x, int nx, const TF_Output *dx, TF_Output *dy) {
    const Node *conflict = prefix ? name_conflict(g->graph, str_of(prefix)) : NULL;
    if (conflict) return error_invalid("prefix [%s] conflicts with existing node in the graph named [%.*s]", prefix, STR_ARG(conflict->name));
    Output *dxs = xcalloc((size_t)ny, sizeof *dxs);
    Gradient *found = xcalloc((size_t)nx, sizeof *found);
    Error *err = dx ? read_outputs(g, dx, ny, dxs) : NULL;
    if (!err) err = graph_gradients_locked(g, y, ny, x, nx, &(GradientOptions){.dxs = dx ? dxs : NULL, .prefix = prefix}, found);
    for (int i = 0; !err && i < nx; i++) dy[i] = capi_output_of(g, found[i].values);
    free(dxs);
    free(found);
    return err;
}

void TF_AddGradientsWithPrefix(TF_Graph *g, const char *prefix, TF_Output *y, int ny, TF_Output *x, int nx, TF_Output *dx, TF_Status *status, TF_Output *dy) {
    pthread_mutex_lock(&g->mutex);
    Error *err = add_locked(g, prefix, y, ny, x, nx, dx, dy);
    pthread_mutex_unlock(&g->mutex);
    status_take(status, err);
}

void TF_AddGradients(TF_Graph *g, TF_Output *y, int ny, TF_Output *x, int nx, TF_Output *dx, TF_Status *status, TF_Output *dy) {
    TF_AddGradientsWithPrefix(g, NULL, y, ny, x, nx, dx, status, dy);
}
