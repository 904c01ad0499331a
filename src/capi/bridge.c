/* bridge.c: gradients of rows, and sessions over any transport. */
#include "capi/bridge.h"

#include <stdlib.h>

#include "base/memory.h"
#include "capi/client_internal.h"
#include "capi/gradients_internal.h"

Error *bridge_gradients(TF_Graph *graph, const TF_Output *ys, int y_count, const TF_Output *xs, int x_count, TF_Output *values, TF_Output *indices) {
    Gradient *found = xcalloc((size_t)x_count + 1, sizeof *found);
    GradientOptions options = {.prefix = "gradients", .colocate = true, .sparse = indices != NULL};
    pthread_mutex_lock(&graph->mutex);
    Error *err = graph_gradients_locked(graph, ys, y_count, xs, x_count, &options, found);
    for (int i = 0; i < x_count; i++) {
        values[i] = err || !found[i].values.node ? (TF_Output){0} : capi_output_of(graph, found[i].values);
        if (indices) indices[i] = err || !found[i].indices.node ? (TF_Output){0} : capi_output_of(graph, found[i].indices);
    }
    pthread_mutex_unlock(&graph->mutex);
    free(found);
    return err;
}

Error *bridge_session(TF_Graph *graph, Str target, Str config, Transport *transport, TF_Session **out) {
    StrBuf graph_def = {0};
    pthread_mutex_lock(&graph->mutex);
    graph_encode_locked(graph, (GraphSent){0}, &graph_def);
    GraphSent sent = graph_extent_locked(graph);
    pthread_mutex_unlock(&graph->mutex);
    ClientSession *client = NULL;
    Error *err = client_session_open(&(ClientSessionOptions){.target = target, .config = config, .transport = transport}, strbuf_str(&graph_def), &client);
    strbuf_clear(&graph_def);
    if (!err) *out = session_over(graph, client, sent);
    return err;
}
