/* derive.c: derivatives added to a graph. */
#include "capi/bridge.h"
#include "train/graph_internal.h"

void graph_gradients(RillGraph *g, const RillTensor *ys, int y_count, const RillTensor *xs, int x_count, RillTensor *values, RillTensor *indices) {
    for (int i = 0; i < x_count; i++) {
        values[i] = NO_TENSOR;
        if (indices) indices[i] = NO_TENSOR;
    }
    if (rill_graph_failed(g)) return;
    Error *err = bridge_gradients(g->tf, ys, y_count, xs, x_count, values, indices);
    if (err) rill_graph_fail(g, (TF_Code)err->code, "%s", err->message);
    error_free(err);
}

void rill_gradients(RillGraph *g, const RillTensor *ys, int y_count, const RillTensor *xs, int x_count, RillTensor *out) {
    graph_gradients(g, ys, y_count, xs, x_count, out, NULL);
}
