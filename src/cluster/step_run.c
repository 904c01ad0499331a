/* step_run.c: RunGraph at every task, one wait for all, one error out of many.

   The thread that runs the step does everything that may take time: it waits on a condition, and when something failed or was cancelled it
   cancels what is still under way and goes on waiting until all have answered. The first error that is not a mere consequence of another wins. */
#include "cluster/step_run.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cluster/codec.h"
#include "cluster/master_session_internal.h"
#include "cluster/random_id.h"
#include "cluster/rpc_logging.h"
#include "proto/wire.h"

typedef struct TaskRun {
    StepRun *step;
    int task;
    Call *call;
    Error *err;
    Message reply;
    RunGraphResult result; /* of the local worker, moved out of its callback */
} TaskRun;

struct StepRun {
    MasterSession *session;
    ClientGraph *graph;
    int64_t id;
    StepRun *next;
    TaskRun *tasks; /* by task; used where the graph has a part */
    GraphRun *local;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    int pending;
    bool failed;
    Error *cancel_reason;
};

StepRun *step_run_new(MasterSession *s, ClientGraph *g, int64_t step_id) {
    StepRun *run = xcalloc(1, sizeof *run);
    pthread_mutex_init(&run->mutex, NULL);
    cond_init(&run->changed);
    run->session = master_session_ref(s);
    refcount_inc(&g->refs);
    run->graph = g;
    run->id = step_id;
    run->tasks = xcalloc((size_t)g->task_count, sizeof *run->tasks);
    for (int i = 0; i < g->task_count; i++) run->tasks[i] = (TaskRun){.step = run, .task = i};
    return run;
}

StepRun **step_run_next(StepRun *run) {
    return &run->next;
}

void step_run_cancel(StepRun *run, Error *reason) {
    pthread_mutex_lock(&run->mutex);
    if (!run->cancel_reason) {
        run->cancel_reason = reason;
        reason = NULL;
    }
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
    error_free(reason);
}

static void client_gone(void *arg) {
    step_run_cancel(arg, error_new(CODE_CANCELLED, "The client cancelled the step or went away"));
}

/* ---- Tasks ---- */

static void task_ended(TaskRun *t) {
    StepRun *run = t->step;
    pthread_mutex_lock(&run->mutex);
    run->pending--;
    run->failed |= t->err != NULL;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
}

static void remote_ended(void *arg, Error *err, Message *reply) {
    TaskRun *t = arg;
    t->err = err;
    if (reply) t->reply = message_move(reply);
    /* An error may be in the body. */
    uint64_t code = 0;
    Str text = {"", 0};
    if (!err) {
        WireReader r = wire_reader(message_flatten(&t->reply));
        while (wire_next(&r)) {
            if (r.field == 5 && r.type == WIRE_VARINT) code = r.number;
            if (r.field == 6 && r.type == WIRE_BYTES) text = r.bytes;
        }
        if (code) t->err = error_new((ErrorCode)code, "%.*s", STR_ARG(text));
    }
    task_ended(t);
}

static void local_ended(void *arg, Error *err, RunGraphResult *result) {
    TaskRun *t = arg;
    t->err = err;
    t->result = *result;
    *result = (RunGraphResult){0};
    task_ended(t);
}

static void start_remote(StepRun *run, TaskRun *t, const StepRound *round) {
    Pb__RunGraphRequest request = PB__RUN_GRAPH_REQUEST__INIT;
    Pb__ExecutorOpts options = PB__EXECUTOR_OPTS__INIT;
    request.session_handle = (char *)master_session_handle(run->session).ptr;
    request.graph_handle = (char *)run->graph->handles[t->task].ptr;
    request.create_worker_session_called = true;
    request.step_id = run->id;
    request.store_errors_in_response_body = true;
    request.request_id = random_id();
    request.is_partial = round->is_partial;
    request.is_last_partial_run = round->is_last;
    options.record_timeline = round->trace;
    options.record_partition_graphs = round->partition_graphs;
    request.exec_opts = &options;
    Message m = {0};
    codec_pack(&request.base, &m);
    t->call = channel_call(run->session->tasks.tasks[t->task].channel, "/tensorflow.WorkerService/RunGraph", &m, (CallOptions){0}, remote_ended, t);
}

static void start_local(StepRun *run, TaskRun *t, const StepRound *round) {
    WorkerClient *c = &run->session->tasks.tasks[0];
    RunGraphRequest request = {
        .graph_handle = run->graph->handles[0],
        .step_id = run->id,
        .send_names = round->send_keys,
        .send_values = round->send_values,
        .send_count = round->send_count,
        .recv_keys = round->recv_keys,
        .recv_count = round->recv_count,
        .record_timeline = round->trace,
        .record_partition_graphs = round->partition_graphs,
        .is_partial = round->is_partial,
        .is_last_partial = round->is_last,
    };
    graph_run_unref(run->local);
    run->local = worker_run_graph(c->local, c->session, &request, local_ended, t);
}

static void cancel_tasks(StepRun *run) {
    for (int i = 1; i < run->graph->task_count; i++)
        if (run->tasks[i].call) call_cancel(run->tasks[i].call);
    if (run->local) graph_run_cancel(run->local, error_derived(error_new(CODE_CANCELLED, "Step was cancelled")));
}

/* ---- Waiting ---- */

static void wait_for_tasks(StepRun *run, int64_t timeout_ms) {
    int64_t deadline = timeout_ms > 0 ? clock_mono_ns() + timeout_ms * 1000000 : 0;
    bool cancelled = false;
    pthread_mutex_lock(&run->mutex);
    while (run->pending > 0) {
        if (!cancelled && (run->failed || run->cancel_reason)) {
            cancelled = true;
            pthread_mutex_unlock(&run->mutex);
            cancel_tasks(run);
            pthread_mutex_lock(&run->mutex);
        } else if (!deadline || cancelled) {
            pthread_cond_wait(&run->changed, &run->mutex);
        } else if (!cond_wait_until(&run->changed, &run->mutex, deadline) && !run->cancel_reason) {
            run->cancel_reason = error_new(CODE_DEADLINE_EXCEEDED, "Timed out waiting for the step: %lld ms have passed", (long long)timeout_ms);
        }
    }
    pthread_mutex_unlock(&run->mutex);
}

/* The error to report, taken out of the tasks. */
static Error *root_error(StepRun *run) {
    TaskRun *root = NULL;
    for (int i = 0; i < run->graph->task_count; i++) {
        TaskRun *t = &run->tasks[i];
        if (!t->err) continue;
        bool consequence = t->err->derived || t->err->code == CODE_CANCELLED;
        bool root_is_consequence = root && (root->err->derived || root->err->code == CODE_CANCELLED);
        if (!root || (root_is_consequence && !consequence)) root = t;
    }
    bool only_consequences = root && (root->err->derived || root->err->code == CODE_CANCELLED);
    pthread_mutex_lock(&run->mutex); /* a session that closes may cancel even now */
    Error *reason = !root || only_consequences ? error_copy(run->cancel_reason) : NULL;
    pthread_mutex_unlock(&run->mutex);
    if (reason || !root) return reason;
    Error *err = root->err;
    root->err = NULL;
    char *text = xasprintf("From %s:\n%s", run->session->tasks.tasks[root->task].task_name, err->message);
    Error *wrapped = error_new(err->code, "%s", text);
    wrapped->derived = err->derived;
    wrapped->restarted = err->restarted;
    free(text);
    error_free(err);
    return wrapped;
}

/* Statistics of remote tasks, copied as they are: repeated fields merge by concatenation. */
static void collect_metadata(TaskRun *t, const StepRound *round) {
    if (t->task == 0) {
        if (round->step_stats) strbuf_add(round->step_stats, strbuf_str(&t->result.step_stats));
        if (round->partition_graph_fields && t->result.partition_graph.len) wire_put_bytes(round->partition_graph_fields, 3, strbuf_str(&t->result.partition_graph));
        return;
    }
    WireReader r = wire_reader(message_flatten(&t->reply));
    while (wire_next(&r)) {
        if (r.field == 2 && r.type == WIRE_BYTES && round->step_stats) strbuf_add(round->step_stats, r.bytes);
        if (r.field == 4 && r.type == WIRE_BYTES && round->partition_graph_fields) wire_put_bytes(round->partition_graph_fields, 3, r.bytes);
    }
}

static void clear_round(StepRun *run) {
    for (int i = 0; i < run->graph->task_count; i++) {
        TaskRun *t = &run->tasks[i];
        if (t->call) call_unref(t->call);
        t->call = NULL;
        error_free(t->err);
        t->err = NULL;
        message_clear(&t->reply);
        for (int j = 0; j < t->result.count; j++) tensor_unref(t->result.values[j]);
        free(t->result.values);
        strbuf_clear(&t->result.step_stats);
        strbuf_clear(&t->result.partition_graph);
        t->result = (RunGraphResult){0};
    }
}

Error *step_run_round(StepRun *run, const StepRound *round) {
    pthread_mutex_lock(&run->mutex);
    run->pending = run->graph->part_count;
    run->failed = false;
    pthread_mutex_unlock(&run->mutex);
    if (round->step_stats) rpc_logging_start(&run->session->tasks, run->graph);
    if (round->call) server_call_watch(round->call, client_gone, run);
    for (int i = 1; i < run->graph->task_count; i++)
        if (run->graph->handles[i].ptr) start_remote(run, &run->tasks[i], round);
    if (run->graph->handles[0].ptr) start_local(run, &run->tasks[0], round);
    wait_for_tasks(run, round->timeout_ms);
    if (round->call) server_call_unwatch(round->call);
    Error *err = root_error(run);
    for (int i = 0; !err && i < run->graph->task_count; i++)
        if (run->graph->handles[i].ptr) collect_metadata(&run->tasks[i], round);
    if (!err && round->step_stats) rpc_logging_fetch(&run->session->tasks, run->graph, run->id, round->step_stats);
    for (int i = 0; !err && i < round->recv_count; i++) {
        round->recv_values[i] = run->tasks[0].result.values[i];
        run->tasks[0].result.values[i] = NULL;
    }
    clear_round(run);
    return err;
}

void step_run_free(StepRun *run) {
    if (!run) return;
    Pb__CleanupGraphRequest request = PB__CLEANUP_GRAPH_REQUEST__INIT;
    request.step_id = run->id;
    for (int i = 0; i < run->graph->task_count; i++) {
        WorkerClient *c = &run->session->tasks.tasks[i];
        if (!run->graph->handles[i].ptr) continue;
        if (c->local)
            worker_cleanup_graph(c->local, run->id);
        else
            worker_client_post(c, "CleanupGraph", &request.base, 60000);
    }
    clear_round(run);
    graph_run_unref(run->local);
    error_free(run->cancel_reason);
    pthread_mutex_destroy(&run->mutex);
    pthread_cond_destroy(&run->changed);
    client_graph_unref(run->graph);
    master_session_unref(run->session);
    free(run->tasks);
    free(run);
}
