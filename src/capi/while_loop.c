/* while_loop.c: TF_NewWhile and TF_FinishWhile: two small graphs, condition and body, made into a loop.

   For each variable: Enter -> Merge -> Switch -> (false) Exit, (true) Identity -> body -> NextIteration -> back to Merge. The condition reads the Merges. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capi/graph_internal.h"
#include "capi/import_internal.h"
#include "capi/status_internal.h"

/* ---- The two graphs ---- */

static Error *add_input(TF_Graph *parent, TF_Output input, TF_Graph *g, const char *name, TF_Output *out) {
    Output o;
    PartialShape shape = {.rank = -1};
    pthread_mutex_lock(&parent->mutex);
    Error *err = capi_output(parent, input, &o);
    if (!err) shapes_of(parent->shapes, o, &shape);
    pthread_mutex_unlock(&parent->mutex);
    if (err) return err;
    TF_Status *status = TF_NewStatus();
    TF_OperationDescription *d = TF_NewOperation(g, "Placeholder", name);
    TF_SetAttrType(d, "dtype", (TF_DataType)dtype_base((DataType)TF_OperationOutputType(input)));
    TF_SetAttrShape(d, "shape", shape.dims, shape.rank);
    *out = (TF_Output){TF_FinishOperation(d, status), 0};
    err = status_error(status);
    TF_DeleteStatus(status);
    return err;
}

static void free_params(const TF_WhileParams *p) {
    TF_DeleteGraph(p->cond_graph);
    TF_DeleteGraph(p->body_graph);
    free((TF_Output *)p->cond_inputs);
    free((TF_Output *)p->body_inputs);
    free(p->body_outputs);
}

TF_WhileParams TF_NewWhile(TF_Graph *g, TF_Output *inputs, int ninputs, TF_Status *status) {
    const TF_WhileParams none = {0, NULL, NULL, {NULL, -1}, NULL, NULL, NULL, NULL};
    if (ninputs < 1) {
        status_take(status, error_invalid("TF_NewWhile() must be passed at least one input"));
        return none;
    }
    TF_Graph *cond = TF_NewGraph(), *body = TF_NewGraph();
    size_t size = sizeof(TF_Output);
    TF_Output *cond_inputs = xcalloc((size_t)ninputs, size), *body_inputs = xcalloc((size_t)ninputs, size), *body_outputs = xcalloc((size_t)ninputs, size);
    Error *err = NULL;
    for (int i = 0; !err && i < ninputs; i++) {
        char *name = xasprintf("cond_input%d", i);
        err = add_input(g, inputs[i], cond, name, &cond_inputs[i]);
        memcpy(name, "body", 4);
        if (!err) err = add_input(g, inputs[i], body, name, &body_inputs[i]);
        free(name);
        body_outputs[i] = (TF_Output){NULL, -1};
    }
    /* The values before the first round are kept with the condition's graph, which lives as long as the parameters. */
    cond->loop = xcalloc(1, sizeof *cond->loop);
    *cond->loop = (LoopInputs){g, xcalloc((size_t)ninputs, size)};
    memcpy(cond->loop->inputs, inputs, size * (size_t)ninputs);
    TF_WhileParams params = {ninputs, cond, cond_inputs, {NULL, -1}, body, body_inputs, body_outputs, NULL};
    if (status_take(status, err)) return params;
    free_params(&params);
    return none;
}

void TF_AbortWhile(const TF_WhileParams *params) {
    free_params(params);
}

/* ---- The loop ---- */

typedef struct Loop {
    const TF_WhileParams *params;
    TF_Graph *g;
    const char *name;
    TF_Output *merges, *switches, *identities, *nexts, *exits, cond;
    TF_Status *status;
} Loop;

static bool failed(const Loop *l) {
    return TF_GetCode(l->status) != TF_OK;
}

static TF_OperationDescription *describe(const Loop *l, const char *op, int i) {
    char *name = i ? xasprintf("%s/%s_%d", l->name, op, i) : xasprintf("%s/%s", l->name, op);
    TF_OperationDescription *d = TF_NewOperationLocked(l->g, op, name);
    free(name);
    return d;
}

static TF_Output finish(const Loop *l, TF_OperationDescription *d) {
    return (TF_Output){TF_FinishOperationLocked(d, l->status), 0};
}

static TF_Output add_unary(const Loop *l, const char *op, int i, TF_Output input) {
    TF_OperationDescription *d = describe(l, op, i);
    TF_AddInput(d, input);
    return finish(l, d);
}

static TF_Output add_enter(const Loop *l, int i) {
    TF_OperationDescription *d = describe(l, "Enter", i);
    TF_AddInput(d, l->params->cond_graph->loop->inputs[i]);
    TF_SetAttrString(d, "frame_name", l->name, strlen(l->name));
    return finish(l, d);
}

/* Both inputs are the Enter until the NextIteration is there. */
static TF_Output add_merge(const Loop *l, int i, TF_Output enter) {
    TF_OperationDescription *d = describe(l, "Merge", i);
    TF_AddInputList(d, (TF_Output[]){enter, enter}, 2);
    return finish(l, d);
}

static TF_Output add_switch(const Loop *l, int i) {
    TF_OperationDescription *d = describe(l, "Switch", i);
    TF_AddInput(d, l->merges[i]);
    TF_AddInput(d, l->cond);
    return finish(l, d);
}

/* A graph into the loop: its inputs are there already, and what has none runs with the first of them. */
static Error *copy_graph(const Loop *l, TF_Graph *from, const char *part, const TF_Output *inputs, const TF_Output *mapped, const TF_Output *outputs, TF_Output *out, int count) {
    TF_ImportGraphDefOptions *o = TF_NewImportGraphDefOptions();
    char *prefix = xasprintf("%s/%s", l->name, part);
    StrBuf def = {0};
    TF_ImportGraphDefOptionsSetPrefix(o, prefix);
    o->skip_mapped = true;
    for (int i = 0; i < l->params->ninputs; i++) {
        TF_ImportGraphDefOptionsAddInputMapping(o, inputs[i].oper->name, inputs[i].index, mapped[i]);
        TF_ImportGraphDefOptionsRemapControlDependency(o, inputs[i].oper->name, mapped[i].oper);
    }
    TF_ImportGraphDefOptionsAddControlDependency(o, mapped[0].oper);
    for (int i = 0; i < count; i++) TF_ImportGraphDefOptionsAddReturnOutput(o, outputs[i].oper->name, outputs[i].index);
    pthread_mutex_lock(&from->mutex);
    graph_encode_locked(from, (GraphSent){0}, &def);
    pthread_mutex_unlock(&from->mutex);
    Error *err = graph_import_locked(l->g, strbuf_str(&def), o, out);
    strbuf_clear(&def);
    free(prefix);
    TF_DeleteImportGraphDefOptions(o);
    return err;
}

static bool frame_exists(const Graph *g, const char *name) {
    Str frame;
    for (int i = 0; i < g->node_count; i++) {
        Str value;
        if ((node_is(g->nodes[i], "Enter") || node_is(g->nodes[i], "RefEnter")) && node_attr(g->nodes[i], "frame_name", &value) && attr_string(value, &frame) && str_is(frame, name))
            return true;
    }
    return false;
}

static Error *check_params(const TF_WhileParams *p) {
    if (!p->cond_graph || !p->body_graph || !p->cond_graph->loop) return error_invalid("TF_WhileParams `cond_graph` or `body_graph` field is null");
    if (!p->name) return error_invalid("TF_WhileParams `name` field is null");
    if (!p->cond_output.oper) return error_invalid("TF_WhileParams `cond_output` field isn't set");
    if (p->cond_output.oper->graph != p->cond_graph) return error_invalid("TF_WhileParams `cond_output` is not in `cond_graph`");
    if (TF_OperationOutputType(p->cond_output) != TF_BOOL) return error_invalid("BuildWhileLoop: 'cond' must return a bool, not %s", dtype_name((DataType)TF_OperationOutputType(p->cond_output)));
    for (int i = 0; i < p->ninputs; i++) {
        TF_Output o = p->body_outputs[i];
        if (!o.oper) return error_invalid("TF_WhileParams `body_outputs[%d]` field isn't set", i);
        if (o.oper->graph != p->body_graph) return error_invalid("TF_WhileParams `body_outputs[%d]` is not in `body_graph`", i);
        DataType have = (DataType)TF_OperationOutputType(o), want = (DataType)TF_OperationOutputType(p->body_inputs[i]);
        if (have != want) return error_invalid("Loop variable %d is a %s, but the body makes a %s of it ('%s:%d')", i, dtype_name(want), dtype_name(have), o.oper->name, o.index);
    }
    return NULL;
}

static Error *build_locked(Loop *l) {
    const TF_WhileParams *p = l->params;
    if (frame_exists(l->g->graph, l->name)) return error_invalid("A while loop with the name '%s' already exists", l->name);
    for (int i = 0; i < p->ninputs && !failed(l); i++) {
        TF_Output enter = add_enter(l, i);
        if (!failed(l)) l->merges[i] = add_merge(l, i, enter);
    }
    Error *err = status_error(l->status);
    TF_Output cond = {NULL, -1};
    if (!err) err = copy_graph(l, p->cond_graph, "cond", p->cond_inputs, l->merges, &p->cond_output, &cond, 1);
    if (err) return err;
    l->cond = add_unary(l, "LoopCond", 0, cond);
    for (int i = 0; i < p->ninputs && !failed(l); i++) {
        l->switches[i] = add_switch(l, i);
        if (!failed(l)) l->identities[i] = add_unary(l, "Identity", i, (TF_Output){l->switches[i].oper, 1});
    }
    err = status_error(l->status);
    TF_Output *results = l->nexts; /* first the body's, then what they lead to */
    if (!err) err = copy_graph(l, p->body_graph, "body", p->body_inputs, l->identities, p->body_outputs, results, p->ninputs);
    if (err) return err;
    for (int i = 0; i < p->ninputs && !failed(l); i++) {
        l->nexts[i] = add_unary(l, "NextIteration", i, results[i]);
        if (!failed(l)) l->exits[i] = add_unary(l, "Exit", i, (TF_Output){l->switches[i].oper, 0});
    }
    err = status_error(l->status);
    for (int i = 0; !err && i < p->ninputs; i++) err = graph_update_edge_locked(l->g, l->nexts[i], (TF_Input){l->merges[i].oper, 1});
    return err;
}

static Error *finish_while(const TF_WhileParams *params, TF_Output *outputs) {
    Error *err = check_params(params);
    if (err) return err;
    TF_Graph *g = params->cond_graph->loop->graph;
    size_t n = (size_t)params->ninputs;
    TF_Output *memory = xcalloc(5 * n, sizeof *memory);
    Loop l = {params, g, params->name, memory, memory + n, memory + 2 * n, memory + 3 * n, memory + 4 * n, {NULL, -1}, TF_NewStatus()};
    pthread_mutex_lock(&g->mutex);
    int before = g->graph->node_count;
    err = build_locked(&l);
    if (err) graph_drop_nodes_locked(g, before);
    pthread_mutex_unlock(&g->mutex);
    for (size_t i = 0; !err && i < n; i++) outputs[i] = l.exits[i];
    TF_DeleteStatus(l.status);
    free(memory);
    return err;
}

void TF_FinishWhile(const TF_WhileParams *params, TF_Status *status, TF_Output *outputs) {
    status_take(status, finish_while(params, outputs));
    free_params(params);
}
