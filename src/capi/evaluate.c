/* evaluate.c: TF_TryEvaluateConstant: outputs that depend on constants alone, computed now. */
#include <stdlib.h>

#include "base/memory.h"
#include "capi/client_internal.h"
#include "capi/graph_internal.h"
#include "capi/status_internal.h"
#include "capi/tensor_internal.h"
#include "graph/frames.h"
#include "graph/graph_def.h"
#include "proto/wire.h"
#include "runtime/kernel.h"

enum { MAX_NODES = 10000 };

/* May it be computed now, if its inputs may? */
static bool is_pure(const Node *n) {
    if (!n->info || node_is_stateful(n) || !kernel_exists(n->op)) return false;
    if (n->input_count == 0) return node_is(n, "Const");
    return !node_is_enter(n) && !node_is_exit(n) && !node_is_next_iteration(n) && !node_is(n, "Merge") && !node_is(n, "Switch") && !node_is(n, "_Recv");
}

/* Collects what a node needs into a GraphDef; false when part of it is not constant. */
static bool collect(const Graph *g, const Node *root, StrBuf *out) {
    bool *seen = xcalloc((size_t)g->node_count, sizeof *seen);
    const Node **stack = xcalloc(MAX_NODES, sizeof *stack);
    StrBuf def = {0};
    int depth = 0, count = 0;
    bool ok = true;
    stack[depth++] = root;
    seen[root->id] = true;
    while (ok && depth) {
        const Node *n = stack[--depth];
        ok = is_pure(n) && ++count <= MAX_NODES && !n->control_count;
        for (int i = 0; ok && i < n->input_count; i++) {
            const Node *from = n->inputs[i].node;
            if (seen[from->id]) continue;
            seen[from->id] = true;
            ok = depth < MAX_NODES;
            if (ok) stack[depth++] = from;
        }
        def.len = 0;
        if (ok) node_export(n, &(GraphExport){0}, &def);
        if (ok) wire_put_bytes(out, 1, strbuf_str(&def));
    }
    strbuf_clear(&def);
    free(stack);
    free(seen);
    return ok;
}

static Error *compute(Str graph_def, Str fetch, Tensor **out) {
    ClientSession *session = NULL;
    Error *err = client_session_open(&(ClientSessionOptions){.target = STR(""), .config = STR("")}, graph_def, &session);
    ClientStep step = {.signature = {.fetches = &fetch, .fetch_count = 1}, .options = STR(""), .partial_handle = STR("")};
    if (!err) err = client_session_run(session, &step, out, NULL);
    client_session_free(session);
    return err;
}

unsigned char TF_TryEvaluateConstant(TF_Graph *g, TF_Output output, TF_Tensor **result, TF_Status *status) {
    *result = NULL;
    Output o;
    StrBuf def = {0};
    char *fetch = NULL;
    Tensor *value = NULL;
    bool is_constant = false;
    pthread_mutex_lock(&g->mutex);
    Error *err = capi_output(g, output, &o);
    const Tensor *known = err ? NULL : shapes_constant(g->shapes, o);
    if (known) value = tensor_ref((Tensor *)known);
    if (!err && !known) is_constant = collect(g->graph, o.node, &def);
    if (is_constant) fetch = xasprintf("%s:%d", output.oper->name, output.index);
    pthread_mutex_unlock(&g->mutex);
    if (is_constant) err = compute(strbuf_str(&def), str_of(fetch), &value);
    if (!err && value) err = capi_tensor_new(value, result);
    tensor_unref(value);
    free(fetch);
    strbuf_clear(&def);
    status_take(status, err);
    return *result != NULL;
}
