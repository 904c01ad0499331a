/* bridge.c: gradients of rows, and sessions over any transport. */
#include "capi/bridge.h"

#include <stdlib.h>

#include "base/memory.h"
#include "capi/client_internal.h"
#include "capi/graph_internal.h"
#include "gradients/gradients.h"

static Error *to_outputs(const TF_Graph *graph, const TF_Output *from, int count, Output *to) {
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++) err = capi_output(graph, from[i], &to[i]);
    return err;
}

Error *bridge_gradients(TF_Graph *graph, const TF_Output *ys, int y_count, const TF_Output *xs, int x_count, TF_Output *values, TF_Output *indices) {
    Output *from = xcalloc((size_t)y_count + 1, sizeof *from), *by = xcalloc((size_t)x_count + 1, sizeof *by);
    Gradient *found = xcalloc((size_t)x_count + 1, sizeof *found);
    pthread_mutex_lock(&graph->mutex);
    int before = graph->graph->node_count;
    Error *err = to_outputs(graph, ys, y_count, from);
    if (!err) err = to_outputs(graph, xs, x_count, by);
    if (!err) err = gradients_add_with(graph->graph, from, y_count, by, x_count, &(GradientOptions){.prefix = "gradients", .colocate = true, .sparse = indices != NULL}, found);
    if (err)
        graph_drop_nodes_locked(graph, before);
    else
        graph_wrap_nodes_locked(graph);
    for (int i = 0; i < x_count; i++) {
        values[i] = err || !found[i].values.node ? (TF_Output){0} : capi_output_of(graph, found[i].values);
        if (indices) indices[i] = err || !found[i].indices.node ? (TF_Output){0} : capi_output_of(graph, found[i].indices);
    }
    pthread_mutex_unlock(&graph->mutex);
    free(found);
    free(by);
    free(from);
    return err;
}

Error *bridge_session(TF_Graph *graph, Str target, Str config, Transport *transport, TF_Session **out) {
    StrBuf graph_def = {0};
    pthread_mutex_lock(&graph->mutex);
    graph_encode_locked(graph, 0, &graph_def);
    int nodes = graph->graph->node_count, functions = function_count(graph->functions);
    pthread_mutex_unlock(&graph->mutex);
    ClientSession *client = NULL;
    Error *err = client_session_open(&(ClientSessionOptions){.target = target, .config = config, .transport = transport}, strbuf_str(&graph_def), &client);
    strbuf_clear(&graph_def);
    if (!err) *out = session_over(graph, client, nodes, functions);
    return err;
}
