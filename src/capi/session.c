/* session.c: TF_Session: a graph that is run here or at a master; each run first sends what was added to the graph. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capi/client_internal.h"
#include "capi/graph_internal.h"
#include "capi/session_internal.h"
#include "capi/status_internal.h"

struct TF_Session {
    TF_Graph *graph;
    ClientSession *client;
    pthread_mutex_t extend_mutex; /* guards the order of extends; taken before the graph's */
    GraphSent sent;               /* of the graph; guarded by the graph's mutex */
    bool extends_by_itself; /* before each run; TF_ExtendSession ends that */
};

int session_sent_nodes(const TF_Session *s) {
    return s->sent.nodes;
}

TF_Session *session_over(TF_Graph *graph, ClientSession *client, GraphSent sent) {
    TF_Session *s = xcalloc(1, sizeof *s);
    *s = (TF_Session){.graph = graph, .client = client, .sent = sent, .extends_by_itself = true};
    pthread_mutex_init(&s->extend_mutex, NULL);
    pthread_mutex_lock(&graph->mutex);
    graph_add_session_locked(graph, s);
    pthread_mutex_unlock(&graph->mutex);
    return s;
}

TF_Session *TF_NewSession(TF_Graph *graph, const TF_SessionOptions *opts, TF_Status *status) {
    capi_init();
    ClientSession *client = NULL;
    StrBuf graph_def = {0};
    pthread_mutex_lock(&graph->mutex);
    graph_encode_locked(graph, (GraphSent){0}, &graph_def);
    GraphSent sent = graph_extent_locked(graph);
    pthread_mutex_unlock(&graph->mutex);
    Error *err = client_open(opts, strbuf_str(&graph_def), &client);
    strbuf_clear(&graph_def);
    return status_take(status, err) ? session_over(graph, client, sent) : NULL;
}

/* Sends the nodes and functions that the session does not have yet, and again those that TF_AddGradients gave more outputs. */
static Error *extend(TF_Session *s) {
    TF_Graph *g = s->graph;
    StrBuf more = {0};
    pthread_mutex_lock(&s->extend_mutex);
    pthread_mutex_lock(&g->mutex);
    GraphSent all = graph_extent_locked(g);
    bool is_behind = all.nodes > s->sent.nodes || all.functions > s->sent.functions, has_grown = false;
    for (int i = s->sent.grown; i < all.grown; i++) has_grown |= g->grown[i]->id < s->sent.nodes;
    if (is_behind) graph_encode_locked(g, s->sent, &more);
    pthread_mutex_unlock(&g->mutex);
    Error *err = is_behind ? client_session_extend(s->client, strbuf_str(&more)) : NULL;
    if (has_grown) err = error_wrap(err, "Operations changed by TF_AddGradients after they were run by this session (only masters of Rill take that; else create a new session)");
    if (!err && is_behind) {
        pthread_mutex_lock(&g->mutex);
        s->sent = all;
        pthread_mutex_unlock(&g->mutex);
    }
    pthread_mutex_unlock(&s->extend_mutex);
    strbuf_clear(&more);
    return err;
}

void TF_ExtendSession(TF_Session *s, TF_Status *status) {
    s->extends_by_itself = false;
    status_take(status, extend(s));
}

void TF_CloseSession(TF_Session *s, TF_Status *status) {
    status_take(status, client_session_close(s->client));
}

void TF_DeleteSession(TF_Session *s, TF_Status *status) {
    if (!s) {
        status_take(status, NULL);
        return;
    }
    graph_remove_session(s->graph, s);
    client_session_free(s->client);
    pthread_mutex_destroy(&s->extend_mutex);
    free(s);
    status_take(status, NULL);
}

/* ---- Runs ---- */

typedef struct Names {
    Str *feeds, *fetches, *targets;
    StrBuf text;
} Names;

static void put_output(StrBuf *b, TF_Output o) {
    strbuf_addf(b, "%s:%d", o.oper->name, o.index);
}

/* The names are written one after the other, then cut: the text moves while it grows. */
static RunSignature names_of(Names *n, const TF_Output *inputs, int ninputs, const TF_Output *outputs, int noutputs, const TF_Operation *const *targets, int ntargets) {
    int total = ninputs + noutputs + ntargets;
    size_t *ends = xcalloc((size_t)total, sizeof *ends);
    n->feeds = xcalloc((size_t)total, sizeof *n->feeds);
    n->fetches = n->feeds + ninputs;
    n->targets = n->fetches + noutputs;
    for (int i = 0; i < total; i++) {
        if (i < ninputs)
            put_output(&n->text, inputs[i]);
        else if (i < ninputs + noutputs)
            put_output(&n->text, outputs[i - ninputs]);
        else
            strbuf_add(&n->text, str_of(targets[i - ninputs - noutputs]->name));
        ends[i] = n->text.len;
    }
    for (int i = 0; i < total; i++) {
        size_t from = i ? ends[i - 1] : 0;
        n->feeds[i] = (Str){n->text.ptr + from, ends[i] - from};
    }
    free(ends);
    return (RunSignature){.feeds = n->feeds, .fetches = n->fetches, .targets = n->targets, .feed_count = ninputs, .fetch_count = noutputs, .target_count = ntargets};
}

static void names_clear(Names *n) {
    free(n->feeds);
    strbuf_clear(&n->text);
}

static void run(TF_Session *s, const TF_Buffer *run_options, const char *handle, const TF_Output *inputs, TF_Tensor *const *input_values, int ninputs,
                const TF_Output *outputs, TF_Tensor **output_values, int noutputs, const TF_Operation *const *targets, int ntargets, TF_Buffer *run_metadata,
                TF_Status *status) {
    Names names = {0};
    ClientStep step = {.options = buffer_str(run_options), .partial_handle = str_of(handle)};
    step.signature = names_of(&names, inputs, ninputs, outputs, noutputs, targets, ntargets);
    for (int i = 0; i < noutputs; i++) output_values[i] = NULL;
    Error *err = s->extends_by_itself && !handle ? extend(s) : NULL;
    if (!err) err = client_run(s->client, &step, input_values, output_values, run_metadata);
    names_clear(&names);
    status_take(status, err);
}

void TF_SessionRun(TF_Session *s, const TF_Buffer *run_options, const TF_Output *inputs, TF_Tensor *const *input_values, int ninputs, const TF_Output *outputs,
                   TF_Tensor **output_values, int noutputs, const TF_Operation *const *target_opers, int ntargets, TF_Buffer *run_metadata, TF_Status *status) {
    run(s, run_options, NULL, inputs, input_values, ninputs, outputs, output_values, noutputs, target_opers, ntargets, run_metadata, status);
}

void TF_SessionPRunSetup(TF_Session *s, const TF_Output *inputs, int ninputs, const TF_Output *outputs, int noutputs, const TF_Operation *const *target_opers, int ntargets,
                         const char **handle, TF_Status *status) {
    Names names = {0};
    RunSignature signature = names_of(&names, inputs, ninputs, outputs, noutputs, target_opers, ntargets);
    char *made = NULL;
    Error *err = s->extends_by_itself ? extend(s) : NULL;
    if (!err) err = client_session_partial_setup(s->client, &signature, &made);
    *handle = made;
    names_clear(&names);
    status_take(status, err);
}

void TF_SessionPRun(TF_Session *s, const char *handle, const TF_Output *inputs, TF_Tensor *const *input_values, int ninputs, const TF_Output *outputs,
                    TF_Tensor **output_values, int noutputs, const TF_Operation *const *target_opers, int ntargets, TF_Status *status) {
    run(s, NULL, handle ? handle : "", inputs, input_values, ninputs, outputs, output_values, noutputs, target_opers, ntargets, NULL, status);
}

void TF_DeletePRunHandle(const char *handle) {
    free((char *)handle);
}

TF_DeviceList *TF_SessionListDevices(TF_Session *s, TF_Status *status) {
    return client_device_list(s->client, status);
}
