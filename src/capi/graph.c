/* graph.c: TF_Graph: nodes wrapped as operations, looked up and written out. */
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "capi/graph_internal.h"
#include "capi/op_list_internal.h"
#include "capi/session_internal.h"
#include "capi/status_internal.h"
#include "graph/graph_def.h"
#include "ops/op_list.h"
#include "proto/wire.h"

enum { GRAPH_VERSION = 2474 }; /* of GraphDefs that TensorFlow 2.21 makes */

const char *TF_Version(void) {
    return "2.21.0";
}

void capi_init(void) {
    ops_register_all();
}

TF_Graph *TF_NewGraph(void) {
    capi_init();
    TF_Graph *g = xcalloc(1, sizeof *g);
    pthread_mutex_init(&g->mutex, NULL);
    g->functions = function_library_new();
    g->graph = graph_new();
    g->graph->functions = g->functions;
    g->graph->producer = GRAPH_VERSION;
    g->shapes = shape_info_new(g->graph);
    return g;
}

static void operation_free(TF_Operation *op) {
    free(op->consumers);
    free(op->control_outputs);
    free(op);
}

static void graph_destroy(TF_Graph *g) {
    for (int i = 0; i < g->op_count; i++) operation_free(g->ops[i]);
    free(g->ops);
    free(g->sessions);
    free(g->grown);
    if (g->loop) free(g->loop->inputs);
    free(g->loop);
    shape_info_free(g->shapes);
    graph_free(g->graph);
    function_library_free(g->functions);
    pthread_mutex_destroy(&g->mutex);
    free(g);
}

void TF_DeleteGraph(TF_Graph *g) {
    if (!g) return;
    pthread_mutex_lock(&g->mutex);
    g->is_deleted = true;
    bool is_last = g->session_count == 0;
    pthread_mutex_unlock(&g->mutex);
    if (is_last) graph_destroy(g);
}

void graph_add_session_locked(TF_Graph *g, TF_Session *s) {
    g->sessions = vec_reserve(g->sessions, &g->session_capacity, (size_t)g->session_count + 1, sizeof *g->sessions);
    g->sessions[g->session_count++] = s;
}

void graph_remove_session(TF_Graph *g, TF_Session *s) {
    pthread_mutex_lock(&g->mutex);
    for (int i = 0; i < g->session_count; i++) {
        if (g->sessions[i] != s) continue;
        g->sessions[i] = g->sessions[--g->session_count];
        break;
    }
    bool is_last = g->is_deleted && g->session_count == 0;
    pthread_mutex_unlock(&g->mutex);
    if (is_last) graph_destroy(g);
}

void graph_note_mutation_locked(TF_Graph *g, const TF_Operation *op, const char *what) {
    for (int i = 0; i < g->session_count; i++)
        if (op->node->id < session_sent_nodes(g->sessions[i]))
            log_warn("Operation '%s' was changed by %s after it was run by a session. This mutation will have no effect: either don't modify "
                     "nodes after running them or create a new session.", op->name, what);
}

/* ---- Nodes and operations ---- */

TF_Operation *graph_operation(const TF_Graph *g, const Node *n) {
    return n ? g->ops[n->id] : NULL;
}

static void add_consumer(TF_Operation *from, int output, TF_Input input) {
    from->consumers = vec_reserve(from->consumers, &from->consumer_capacity, (size_t)from->consumer_count + 1, sizeof *from->consumers);
    from->consumers[from->consumer_count++] = (Consumer){output, input};
}

static void add_control_output(TF_Operation *from, TF_Operation *to) {
    from->control_outputs = vec_reserve(from->control_outputs, &from->control_output_capacity, (size_t)from->control_output_count + 1, sizeof *from->control_outputs);
    from->control_outputs[from->control_output_count++] = to;
}

static void link_nodes(TF_Graph *g, int first) {
    for (int i = first; i < g->op_count; i++) {
        const Node *n = g->ops[i]->node;
        for (int j = 0; j < n->input_count; j++) add_consumer(graph_operation(g, n->inputs[j].node), n->inputs[j].index, (TF_Input){g->ops[i], j});
        for (int j = 0; j < n->control_count; j++) add_control_output(graph_operation(g, n->controls[j]), g->ops[i]);
    }
}

static void wrap_nodes(TF_Graph *g) {
    Graph *graph = g->graph;
    g->ops = vec_reserve(g->ops, &g->op_capacity, (size_t)graph->node_count, sizeof *g->ops);
    for (; g->op_count < graph->node_count; g->op_count++) {
        TF_Operation *op = xcalloc(1, sizeof *op);
        op->node = graph->nodes[g->op_count];
        op->graph = g;
        op->name = arena_str(graph->arena, op->node->name).ptr;
        op->type = arena_str(graph->arena, op->node->op).ptr;
        op->device = arena_str(graph->arena, op->node->device).ptr;
        g->ops[g->op_count] = op;
    }
}

void graph_wrap_nodes_locked(TF_Graph *g) {
    int first = g->op_count;
    wrap_nodes(g);
    link_nodes(g, first);
}

void graph_rewire_locked(TF_Graph *g) {
    wrap_nodes(g);
    for (int i = 0; i < g->op_count; i++) {
        TF_Operation *op = g->ops[i];
        op->consumer_count = op->control_output_count = 0;
        if (!str_is(op->node->op, op->type)) op->type = arena_str(g->graph->arena, op->node->op).ptr; /* a function's call became a PartitionedCall */
    }
    link_nodes(g, 0);
}

void graph_drop_nodes_locked(TF_Graph *g, int count) {
    for (int i = 0; i < count && i < g->op_count; i++) {
        TF_Operation *op = g->ops[i];
        int kept = 0;
        for (int j = 0; j < op->consumer_count; j++)
            if (op->consumers[j].input.oper->node->id < count) op->consumers[kept++] = op->consumers[j];
        op->consumer_count = kept;
        kept = 0;
        for (int j = 0; j < op->control_output_count; j++)
            if (op->control_outputs[j]->node->id < count) op->control_outputs[kept++] = op->control_outputs[j];
        op->control_output_count = kept;
    }
    while (g->op_count > count) operation_free(g->ops[--g->op_count]);
    shapes_forget(g->shapes, count);
    graph_truncate(g->graph, count);
}

void graph_append_input_locked(TF_Graph *g, Node *n, Output from) {
    node_add_input(g->graph, n, from);
    add_consumer(graph_operation(g, from.node), from.index, (TF_Input){graph_operation(g, n), n->input_count - 1});
}

void graph_add_control_locked(TF_Graph *g, TF_Operation *op, TF_Operation *before) {
    int had = op->node->control_count;
    node_add_control(g->graph, op->node, before->node);
    if (op->node->control_count > had) add_control_output(before, op);
}

Error *capi_output(const TF_Graph *g, TF_Output o, Output *out) {
    if (!o.oper) return error_invalid("An output without an operation");
    if (o.oper->graph != g) return error_invalid("Operation '%s' is not in this graph", o.oper->name);
    const Node *n = o.oper->node;
    if (o.index < 0 || (n->info && o.index >= n->output_count))
        return error_new(CODE_OUT_OF_RANGE, "Node '%s' (type: '%s', num of outputs: %d) does not have output %d", o.oper->name, o.oper->type, n->output_count, o.index);
    *out = (Output){o.oper->node, o.index};
    return NULL;
}

/* ---- Changing edges ---- */

static void remove_consumer(TF_Operation *from, TF_Input input) {
    for (int i = 0; i < from->consumer_count; i++) {
        if (from->consumers[i].input.oper != input.oper || from->consumers[i].input.index != input.index) continue;
        from->consumers[i] = from->consumers[--from->consumer_count];
        return;
    }
}

Error *graph_update_edge_locked(TF_Graph *g, TF_Output new_src, TF_Input dst) {
    Output from;
    Error *err = capi_output(g, new_src, &from);
    if (err) return err;
    Node *n = dst.oper->node;
    if (dst.index < 0 || dst.index >= n->input_count)
        return error_new(CODE_OUT_OF_RANGE, "Node '%s' (type: '%s', num of inputs: %d) does not have input %d", dst.oper->name, dst.oper->type, n->input_count, dst.index);
    Output old = n->inputs[dst.index];
    n->inputs[dst.index] = from;
    err = graph_validate_node(n);
    if (err) {
        n->inputs[dst.index] = old;
        return err;
    }
    remove_consumer(graph_operation(g, old.node), dst);
    add_consumer(new_src.oper, new_src.index, dst);
    graph_note_mutation_locked(g, dst.oper, "updating input tensor");
    return NULL;
}

void TF_UpdateEdge(TF_Graph *g, TF_Output new_src, TF_Input dst, TF_Status *status) {
    pthread_mutex_lock(&g->mutex);
    status_take(status, graph_update_edge_locked(g, new_src, dst));
    pthread_mutex_unlock(&g->mutex);
}

void TF_AddOperationControlInput(TF_Graph *g, TF_Operation *op, TF_Operation *input) {
    pthread_mutex_lock(&g->mutex);
    graph_add_control_locked(g, op, input);
    graph_note_mutation_locked(g, op, "adding control input");
    pthread_mutex_unlock(&g->mutex);
}

void TF_RemoveAllControlInputs(TF_Graph *g, TF_Operation *op) {
    pthread_mutex_lock(&g->mutex);
    for (int i = 0; i < op->node->control_count; i++) {
        TF_Operation *before = graph_operation(g, op->node->controls[i]);
        int kept = 0;
        for (int j = 0; j < before->control_output_count; j++)
            if (before->control_outputs[j] != op) before->control_outputs[kept++] = before->control_outputs[j];
        before->control_output_count = kept;
    }
    op->node->control_count = 0;
    graph_note_mutation_locked(g, op, "removing control inputs");
    pthread_mutex_unlock(&g->mutex);
}

void TF_SetRequestedDevice(TF_Graph *g, TF_Operation *op, const char *device) {
    pthread_mutex_lock(&g->mutex);
    op->node->device = arena_str(g->graph->arena, str_of(device));
    op->device = op->node->device.ptr;
    graph_note_mutation_locked(g, op, "setting device");
    pthread_mutex_unlock(&g->mutex);
}

static Error *while_input_locked(TF_Graph *g, TF_Output new_src, TF_Operation *dst) {
    Output from;
    Error *err = capi_output(g, new_src, &from);
    if (!err && !node_is(dst->node, "While") && !node_is(dst->node, "StatelessWhile"))
        err = error_invalid("TF_AddWhileInputHack is for While operations; '%s' is a %s", dst->name, dst->type);
    if (err) return err;
    graph_append_input_locked(g, dst->node, from);
    graph_note_mutation_locked(g, dst, "adding input tensor");
    return NULL;
}

void TF_AddWhileInputHack(TF_Graph *g, TF_Output new_src, TF_Operation *dst, TF_Status *status) {
    pthread_mutex_lock(&g->mutex);
    status_take(status, while_input_locked(g, new_src, dst));
    pthread_mutex_unlock(&g->mutex);
}

/* ---- Looking up, writing out ---- */

TF_Operation *TF_GraphOperationByName(TF_Graph *g, const char *oper_name) {
    pthread_mutex_lock(&g->mutex);
    TF_Operation *op = graph_operation(g, graph_find(g->graph, str_of(oper_name)));
    pthread_mutex_unlock(&g->mutex);
    return op;
}

TF_Operation *TF_GraphNextOperation(TF_Graph *g, size_t *pos) {
    pthread_mutex_lock(&g->mutex);
    TF_Operation *op = *pos < (size_t)g->op_count ? g->ops[(*pos)++] : NULL;
    pthread_mutex_unlock(&g->mutex);
    return op;
}

static void encode_versions(const Graph *g, StrBuf *out) {
    wire_put_uint(out, 1, (uint64_t)g->producer);
    if (g->min_consumer) wire_put_uint(out, 2, (uint64_t)g->min_consumer);
}

GraphSent graph_extent_locked(const TF_Graph *g) {
    return (GraphSent){g->graph->node_count, function_count(g->functions), g->grown_count};
}

/* Once each, as they are now; new ones come with the others. */
static void encode_grown(const TF_Graph *g, GraphSent sent, StrBuf *out) {
    StrBuf part = {0};
    for (int i = sent.grown; i < g->grown_count; i++) {
        const Node *n = g->grown[i];
        bool again = n->id >= sent.nodes;
        for (int j = i + 1; j < g->grown_count && !again; j++) again = g->grown[j] == n;
        if (again) continue;
        part.len = 0;
        node_export(n, &(GraphExport){.is_grown = true}, &part);
        wire_put_bytes(out, 1, strbuf_str(&part));
    }
    strbuf_clear(&part);
}

void graph_encode_locked(const TF_Graph *g, GraphSent sent, StrBuf *out) {
    StrBuf part = {0};
    encode_grown(g, sent, out);
    for (int i = sent.nodes; i < g->graph->node_count; i++) {
        part.len = 0;
        node_export(g->graph->nodes[i], &(GraphExport){0}, &part);
        wire_put_bytes(out, 1, strbuf_str(&part));
    }
    part.len = 0;
    function_library_encode(g->functions, &part);
    if (part.len) wire_put_bytes(out, 2, strbuf_str(&part));
    part.len = 0;
    encode_versions(g->graph, &part);
    wire_put_bytes(out, 4, strbuf_str(&part));
    strbuf_clear(&part);
}

void TF_GraphToGraphDef(TF_Graph *g, TF_Buffer *output_graph_def, TF_Status *status) {
    StrBuf bytes = {0};
    pthread_mutex_lock(&g->mutex);
    graph_encode_locked(g, (GraphSent){0}, &bytes);
    pthread_mutex_unlock(&g->mutex);
    status_take(status, buffer_fill(output_graph_def, &bytes));
}

void TF_GraphVersions(TF_Graph *g, TF_Buffer *output_version_def, TF_Status *status) {
    StrBuf bytes = {0};
    pthread_mutex_lock(&g->mutex);
    encode_versions(g->graph, &bytes);
    pthread_mutex_unlock(&g->mutex);
    status_take(status, buffer_fill(output_version_def, &bytes));
}

void TF_GraphGetOpDef(TF_Graph *g, const char *op_name, TF_Buffer *output_op_def, TF_Status *status) {
    Str name = str_of(op_name);
    StrBuf bytes = {0};
    pthread_mutex_lock(&g->mutex);
    const OpInfo *op = op_find(name);
    const Function *f = op ? NULL : function_find(g->functions, name);
    if (op) op_def_encode(op, &bytes);
    if (f) op_def_encode(f->info, &bytes);
    pthread_mutex_unlock(&g->mutex);
    if (op || f)
        status_take(status, buffer_fill(output_op_def, &bytes));
    else
        status_take(status, error_not_found("Op type not registered '%s'. The most similar op of Rill is '%.*s'", op_name, STR_ARG(op_nearest(name))));
}

void TF_OperationToNodeDef(TF_Operation *op, TF_Buffer *output_node_def, TF_Status *status) {
    StrBuf bytes = {0};
    pthread_mutex_lock(&op->graph->mutex);
    node_export(op->node, &(GraphExport){0}, &bytes);
    pthread_mutex_unlock(&op->graph->mutex);
    status_take(status, buffer_fill(output_node_def, &bytes));
}
