/* master_session.c: the life of a session: opened, extended, run, closed. */
#include "cluster/master_session.h"

#include <stdlib.h>

#include "base/block_cache.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cluster/codec.h"
#include "cluster/debug.h"
#include "cluster/master_session_internal.h"
#include "cluster/pass_config.h"
#include "cluster/random_id.h"
#include "cluster/step_run.h"
#include "graph/graph_def.h"
#include "placement/lower.h"

MasterSession *master_session_ref(MasterSession *s) {
    if (s) refcount_inc(&s->refs);
    return s;
}

void master_session_unref(MasterSession *s) {
    if (!s || !refcount_dec(&s->refs)) return;
    size_t at = 0;
    void *value;
    while (strmap_next(&s->client_graphs, &at, NULL, &value)) client_graph_unref(value);
    for (at = 0; intmap_next(&s->callables, &at, NULL, &value);) callable_free(value);
    strmap_clear(&s->client_graphs);
    strmap_clear(&s->partial_runs);
    intmap_clear(&s->callables);
    strmap_clear(&s->fixed);
    session_tasks_clear(&s->tasks);
    graph_free(s->placed);
    graph_free(s->source);
    if (s->graph_options) pb__graph_options__free_unpacked(s->graph_options, NULL);
    strmap_clear(&s->watched_signatures);
    function_library_free(s->functions);
    pthread_mutex_destroy(&s->build_mutex);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->idle);
    free(s->handle);
    free(s->group_leader);
    free(s);
}

Str master_session_handle(const MasterSession *s) {
    return str_of(s->handle);
}

int master_session_device_count(const MasterSession *s) {
    return s->tasks.device_count;
}

const Pb__DeviceAttributes *master_session_device(const MasterSession *s, int i) {
    return s->tasks.devices[i];
}

/* ---- Graphs ---- */

static Error *lower_and_place(MasterSession *s, Graph **out) {
    Graph *lowered = NULL;
    Error *err = graph_lower_for(s->source, s->tasks.placer, s->tasks.device_count, s->keeps_control_flow, &lowered);
    PlacerOptions options = {.devices = s->tasks.placer, .device_count = s->tasks.device_count, .soft = s->soft_placement, .fixed = &s->fixed};
    if (!err) err = graph_place(lowered, &options);
    if (err)
        graph_free(lowered);
    else
        *out = lowered;
    return err;
}

/* With build_mutex held: adds a GraphDef; on error the session is as before. */
static Error *add_graph_locked(MasterSession *s, Str graph_def) {
    GraphUndo undo = graph_undo_begin(s->source);
    Graph *placed = NULL;
    Error *err = graph_extend(s->source, graph_def, &undo);
    if (!err && undo.node_count && undo.producer && s->source->producer != undo.producer)
        err = error_invalid("Can't extend a graph at producer version %d with one at producer version %d", undo.producer, s->source->producer);
    if (!err) err = lower_and_place(s, &placed);
    if (err) graph_undo(&undo, s->source);
    graph_undo_clear(&undo);
    if (err) return err;
    graph_free(s->placed);
    s->placed = placed;
    for (int i = 0; i < placed->node_count; i++) {
        Node *n = placed->nodes[i];
        if (!node_is_stateful(n)) continue;
        Node *known = graph_find(s->source, n->name); /* its name lives as long as the session */
        if (known) strmap_put(&s->fixed, known->name, (void *)(intptr_t)(n->placed + 1));
    }
    return NULL;
}

static Pb__GraphOptions *copy_graph_options(const Pb__GraphOptions *from) {
    size_t size = pb__graph_options__get_packed_size(from);
    uint8_t *bytes = xmalloc(size ? size : 1);
    pb__graph_options__pack(from, bytes);
    Pb__GraphOptions *copy = pb__graph_options__unpack(NULL, size, bytes);
    free(bytes);
    return copy;
}

Error *master_session_open(Master *m, Str handle, Str graph_def, const Pb__ConfigProto *config, Str target, MasterSession **out) {
    /* What it says of threads is not looked at: every session runs on the threads of its task, however many steps wait. */
    MasterSession *s = xcalloc(1, sizeof *s);
    refcount_init(&s->refs);
    pthread_mutex_init(&s->build_mutex, NULL);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->idle, NULL);
    s->master = m;
    s->handle = str_dup(handle);
    s->soft_placement = config && config->allow_soft_placement;
    s->group_leader = xstrdup(config && config->experimental ? config->experimental->collective_group_leader : "");
    s->keeps_control_flow = config && config->experimental && strcmp(config->experimental->executor_type, "SINGLE_THREADED_EXECUTOR") == 0;
    s->bfloat16_edges = config && config->graph_options && config->graph_options->enable_bfloat16_sendrecv;
    s->passes = pass_options_read(config ? config->graph_options : NULL);
    if (config && config->graph_options) s->graph_options = copy_graph_options(config->graph_options);
    s->functions = function_library_new();
    s->source = graph_new();
    s->source->functions = s->functions;
    Error *err = session_tasks_open(&s->tasks, master_options(m), handle, config, target);
    if (!err) {
        worker_session_set_leader(s->tasks.tasks[0].session, str_of(s->group_leader));
        pthread_mutex_lock(&s->build_mutex);
        err = add_graph_locked(s, graph_def);
        pthread_mutex_unlock(&s->build_mutex);
    }
    if (err) {
        session_tasks_close(&s->tasks, handle, master_options(m)->stop);
        master_session_unref(s);
        return err;
    }
    *out = s;
    return NULL;
}

Error *master_session_extend(MasterSession *s, Str graph_def, int64_t version, int64_t *new_version) {
    pthread_mutex_lock(&s->build_mutex);
    Error *err = NULL;
    if (version != s->version)
        err = error_new(CODE_ABORTED, "Current version is %lld but caller expected %lld.", (long long)s->version, (long long)version);
    if (!err) err = add_graph_locked(s, graph_def);
    if (!err) *new_version = ++s->version;
    pthread_mutex_unlock(&s->build_mutex);
    return err;
}

static ClientGraph *find_client_graph(MasterSession *s, Str key) {
    pthread_mutex_lock(&s->mutex);
    ClientGraph *g = strmap_get(&s->client_graphs, key);
    if (g) refcount_inc(&g->refs);
    pthread_mutex_unlock(&s->mutex);
    return g;
}

static ClientGraphOptions graph_options(MasterSession *s, bool partial, Pb__DebugOptions *debug) {
    return (ClientGraphOptions){.tasks = &s->tasks, .session_handle = str_of(s->handle), .stop = master_options(s->master)->stop, .bfloat16_edges = s->bfloat16_edges,
                                .partial = partial, .passes = &s->passes, .graph_options = s->graph_options, .group_leader = s->group_leader, .debug = debug};
}

static Error *build_client_graph(MasterSession *s, const RunSignature *signature, Str key, bool partial, ClientGraph **out) {
    ClientGraphOptions options = graph_options(s, partial, NULL);
    pthread_mutex_lock(&s->build_mutex);
    *out = find_client_graph(s, key); /* another thread may have been faster */
    Error *err = NULL;
    if (!*out) err = client_graph_build(s->placed, signature, key, &options, out);
    if (!err) {
        pthread_mutex_lock(&s->mutex);
        if (!strmap_get(&s->client_graphs, key)) {
            refcount_inc(&(*out)->refs);
            strmap_put(&s->client_graphs, (*out)->key, *out);
        }
        pthread_mutex_unlock(&s->mutex);
    }
    pthread_mutex_unlock(&s->build_mutex);
    return err;
}

Error *session_graph_for(MasterSession *s, const RunSignature *signature, bool partial, ClientGraph **out) {
    char room[SIGNATURE_KEY_ROOM];
    StrBuf key = strbuf_in(room, sizeof room);
    if (partial) strbuf_addc(&key, '~');
    signature_key(signature, &key);
    *out = find_client_graph(s, strbuf_str(&key));
    Error *err = *out ? NULL : build_client_graph(s, signature, strbuf_str(&key), partial, out);
    strbuf_clear(&key);
    return err;
}

/* ---- Steps under way ---- */

Error *session_add_step_locked(MasterSession *s, StepRun *step) {
    if (s->closed) return error_new(CODE_FAILED_PRECONDITION, "Session is closed.");
    *step_run_next(step) = s->steps;
    s->steps = step;
    return NULL;
}

Error *session_add_step(MasterSession *s, StepRun *step) {
    pthread_mutex_lock(&s->mutex);
    Error *err = session_add_step_locked(s, step);
    pthread_mutex_unlock(&s->mutex);
    return err;
}

void session_remove_step(MasterSession *s, StepRun *step) {
    pthread_mutex_lock(&s->mutex);
    StepRun **link = &s->steps;
    while (*link && *link != step) link = step_run_next(*link);
    if (*link) *link = *step_run_next(step);
    if (!s->steps) pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->mutex);
}

void session_cancel_steps(MasterSession *s) {
    pthread_mutex_lock(&s->mutex);
    s->closed = true;
    for (StepRun *step = s->steps; step; step = *step_run_next(step))
        step_run_cancel(step, error_new(CODE_CANCELLED, "Step was cancelled by an explicit call to `Session::Close()`."));
    while (s->steps) pthread_cond_wait(&s->idle, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

void master_session_close(MasterSession *s) {
    session_drop_partial_runs(s);
    session_cancel_steps(s);
    session_tasks_close(&s->tasks, str_of(s->handle), master_options(s->master)->stop);
}

/* ---- Run ---- */

void run_reply_init(RunReply *reply, int fetch_count) {
    *reply = (RunReply){.fetch_count = fetch_count};
    if (fetch_count) reply->fetches = block_zeroed(sizeof *reply->fetches * (size_t)fetch_count);
}

void run_reply_clear(RunReply *reply) {
    for (int i = 0; i < reply->fetch_count; i++) tensor_unref(reply->fetches[i]);
    block_free(reply->fetches, sizeof *reply->fetches * (size_t)reply->fetch_count);
    strbuf_clear(&reply->step_stats);
    strbuf_clear(&reply->cost_graph);
    strbuf_clear(&reply->partition_graphs);
    *reply = (RunReply){0};
}

/* Asks the leader for the id of the next step of a graph key. */
static Error *fetch_step_id(MasterSession *s, StepSequences *sequences, int64_t graph_key) {
    WorkerSession *own = s->tasks.tasks[0].session;
    Channel *leader = NULL;
    Error *err = worker_session_leader_channel(own, &leader);
    if (err) {
        error_free(err);
        return error_invalid("collective_group_leader %.*s is not a task of the cluster", STR_ARG(worker_session_leader(own)));
    }
    if (!leader) {
        step_sequence_lead(sequences, graph_key);
        return NULL;
    }
    Pb__GetStepSequenceRequest request = PB__GET_STEP_SEQUENCE_REQUEST__INIT;
    request.graph_key = &graph_key;
    request.n_graph_key = 1;
    Message packed = {0}, reply = {0};
    codec_pack(&request.base, &packed);
    err = channel_call_wait(leader, "/tensorflow.WorkerService/GetStepSequence", &packed, (CallOptions){.timeout_ms = master_options(s->master)->session_timeout_ms}, &reply);
    ProtobufCMessage *m = NULL;
    if (!err) err = codec_unpack(&pb__get_step_sequence_response__descriptor, &reply, &m);
    message_clear(&reply);
    if (err) return err;
    const Pb__GetStepSequenceResponse *got = (Pb__GetStepSequenceResponse *)m;
    for (size_t i = 0; i < got->n_step_sequence; i++) step_sequence_set(sequences, got->step_sequence[i]->graph_key, got->step_sequence[i]->next_step_id);
    protobuf_c_message_free_unpacked(m, NULL);
    return step_sequence_next(sequences, graph_key) ? NULL : error_internal("%.*s gave no step id for graph key %lld", STR_ARG(worker_session_leader(own)), (long long)graph_key);
}

static Error *next_step_id(MasterSession *s, int64_t graph_key, int64_t *id) {
    if (!graph_key) {
        *id = random_step_id();
        return NULL;
    }
    StepSequences *sequences = worker_step_sequences(master_options(s->master)->worker);
    Error *err = step_sequence_next(sequences, graph_key) ? NULL : fetch_step_id(s, sequences, graph_key);
    *id = step_sequence_next(sequences, graph_key);
    return err;
}

static void retire_step_id(MasterSession *s, int64_t graph_key, int64_t id, const Error *outcome) {
    StepSequences *sequences = worker_step_sequences(master_options(s->master)->worker);
    if (graph_key && outcome)
        step_sequence_forget(sequences, graph_key);
    else if (graph_key)
        step_sequence_retire(sequences, graph_key, id);
}

static bool wants_costs(const MasterSession *s) {
    return s->graph_options && s->graph_options->build_cost_model > 0;
}

/* Every build_cost_model-th step of a signature, counted after the first ones. */
static bool is_costed(const MasterSession *s, ClientGraph *g) {
    if (!wants_costs(s)) return false;
    int64_t runs = atomic_fetch_add(&g->runs, 1) + 1, every = s->graph_options->build_cost_model;
    return (runs % every - s->graph_options->build_cost_model_after % every) % every == 0;
}

static StepRound round_of(const MasterSession *s, ClientGraph *g, const RunRequest *request, ServerCall *call, RunReply *reply) {
    run_reply_init(reply, request->signature.fetch_count);
    bool costs = is_costed(s, g);
    return (StepRound){
        .send_keys = g->feed_keys,
        .send_values = request->feeds,
        .send_count = request->signature.feed_count,
        .recv_keys = g->fetch_keys,
        .recv_values = reply->fetches,
        .recv_count = reply->fetch_count,
        .trace = request->trace,
        .costs = costs,
        .partition_graphs = request->partition_graphs,
        .timeout_ms = request->timeout_ms,
        .call = call,
        .step_stats = request->trace ? &reply->step_stats : NULL,
        .cost_graph = costs ? &reply->cost_graph : NULL,
        .partition_graph_fields = request->partition_graphs ? &reply->partition_graphs : NULL,
    };
}

/* The session may close, and its master go, as soon as the step is removed. */
static void end_step(MasterSession *s, StepRun *step) {
    master_count_step(s->master);
    step_run_cleanup(step);
    session_remove_step(s, step);
    step_run_free(step);
}

static Error *run_graph(MasterSession *s, ClientGraph *g, const RunRequest *request, ServerCall *call, RunReply *reply) {
    int64_t id = 0;
    int64_t graph_key = request->collective_graph_key ? request->collective_graph_key : g->collective_graph_key;
    Error *err = next_step_id(s, graph_key, &id);
    if (err) return err;
    StepRun *step = step_run_new(s, g, id);
    StepRound round = round_of(s, g, request, call, reply);
    err = session_add_step(s, step);
    if (err) {
        step_run_free(step);
    } else {
        err = step_run_round(step, &round);
        retire_step_id(s, graph_key, id, err);
        end_step(s, step);
    }
    return err;
}

/* A graph for this run alone: a debugger wants to see something else of every run. */
static Error *run_watched(MasterSession *s, const RunRequest *request, Pb__DebugOptions *debug, ServerCall *call, RunReply *reply) {
    ClientGraph *g = NULL;
    ClientGraphOptions options = graph_options(s, false, debug);
    StrBuf key = {0};
    signature_key(&request->signature, &key);
    pthread_mutex_lock(&s->build_mutex);
    int64_t run = s->watched_runs++;
    int64_t *same = strmap_get(&s->watched_signatures, strbuf_str(&key));
    if (!same) {
        same = arena_calloc(s->source->arena, 1, sizeof *same);
        strmap_put(&s->watched_signatures, arena_str(s->source->arena, strbuf_str(&key)), same);
    }
    Error *err = debug_publish_run(debug, &request->signature, run, (*same)++);
    if (!err) err = client_graph_build(s->placed, &request->signature, strbuf_str(&key), &options, &g);
    pthread_mutex_unlock(&s->build_mutex);
    strbuf_clear(&key);
    if (err) return err;
    err = run_graph(s, g, request, call, reply);
    client_graph_deregister(g, &options);
    client_graph_unref(g);
    return err;
}

Error *master_session_run(MasterSession *s, const RunRequest *request, ServerCall *call, RunReply *reply) {
    if (request->debug_options.len) {
        Pb__DebugOptions *debug = pb__debug_options__unpack(NULL, request->debug_options.len, (const uint8_t *)request->debug_options.ptr);
        if (!debug) return error_invalid("Malformed DebugOptions");
        bool is_watched = debug->n_debug_tensor_watch_opts > 0;
        Error *err = is_watched ? run_watched(s, request, debug, call, reply) : NULL;
        pb__debug_options__free_unpacked(debug, NULL);
        if (is_watched) return err;
    }
    ClientGraph *g;
    Error *err = session_graph_for(s, &request->signature, false, &g);
    if (err) return err;
    err = run_graph(s, g, request, call, reply);
    client_graph_unref(g);
    return err;
}

/* A step that nobody waits for. */
typedef struct StartedStep {
    MasterSession *session;
    StepRun *step;
    RunDone *done;
    void *arg;
} StartedStep;

static void started_step_ended(void *arg, Error *err) {
    StartedStep started = *(StartedStep *)arg;
    block_free(arg, sizeof started);
    end_step(started.session, started.step);
    started.done(started.arg, err);
    master_session_unref(started.session);
}

bool master_session_start(MasterSession *s, const RunRequest *request, bool only_elsewhere, ServerCall *call, RunReply *reply, RunDone *done, void *arg) {
    if (request->trace || request->debug_options.len || wants_costs(s) || request->partition_graphs || request->timeout_ms > 0 || request->collective_graph_key) return false;
    char room[SIGNATURE_KEY_ROOM];
    StrBuf key = strbuf_in(room, sizeof room);
    signature_key(&request->signature, &key);
    ClientGraph *g = find_client_graph(s, strbuf_str(&key));
    strbuf_clear(&key);
    if (!g) return false;
    if (g->collective_graph_key /* its id may have to be fetched */ || (only_elsewhere && g->handles[0].ptr)) {
        client_graph_unref(g);
        return false;
    }
    StepRun *step = step_run_new(s, g, random_step_id());
    Error *err = session_add_step(s, step);
    if (err) {
        step_run_free(step);
        done(arg, err);
    } else {
        StepRound round = round_of(s, g, request, call, reply);
        StartedStep *started = block_zeroed(sizeof *started);
        *started = (StartedStep){master_session_ref(s), step, done, arg};
        step_run_start(step, &round, started_step_ended, started);
    }
    client_graph_unref(g);
    return true;
}
