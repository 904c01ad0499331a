/* gradients.c: TF_AddGradients. */
#include "gradients/gradients.h"

#include <stdlib.h>

#include "base/memory.h"
#include "capi/graph_internal.h"
#include "capi/status_internal.h"

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

static Error *add_locked(TF_Graph *g, const char *prefix, const TF_Output *y, int ny, const TF_Output *x, int nx, const TF_Output *dx, TF_Output *dy) {
    const Node *conflict = prefix ? name_conflict(g->graph, str_of(prefix)) : NULL;
    if (conflict) return error_invalid("prefix [%s] conflicts with existing node in the graph named [%.*s]", prefix, STR_ARG(conflict->name));
    Output *ys = xcalloc((size_t)(2 * ny + 2 * nx), sizeof *ys), *dxs = ys + ny, *xs = dxs + ny, *dys = xs + nx;
    int before = g->graph->node_count;
    Error *err = read_outputs(g, y, ny, ys);
    if (!err) err = read_outputs(g, x, nx, xs);
    if (!err && dx) err = read_outputs(g, dx, ny, dxs);
    if (!err) {
        err = gradients_add(g->graph, ys, ny, xs, nx, dx ? dxs : NULL, prefix, dys);
        graph_rewire_locked(g);
        if (!err) err = shapes_infer_graph(g->shapes);
        if (err) graph_drop_nodes_locked(g, before);
    }
    for (int i = 0; !err && i < nx; i++) dy[i] = capi_output_of(g, dys[i]);
    free(ys);
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
