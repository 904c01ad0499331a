/* step_run.c: RunGraph at every task, one end for all, one error out of many.

   A round is counted down: by each task that has answered, by who starts it, and by a cancellation under way. When something failed or was cancelled
   a task of the pool cancels what is still under way, and the round goes on until all have answered. Whoever counts to zero ends the round; so a step
   whose last answer comes from the network is ended and answered by the thread that read it. The first error that is not a mere consequence of another wins. */
#include "cluster/step_run.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/block_cache.h"
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
    GraphRun *local;
    StepRound round; /* under way */
    StepRoundDone *done;
    void *done_arg;
    bool has_ended_well; /* in one round */
    pthread_mutex_t mutex; /* guards all below */
    int pending;
    bool is_started, is_cancelling, failed;
    Error *cancel_reason;
    TaskRun tasks[]; /* by task; used where the graph has a part */
};

static size_t size_for(const ClientGraph *g) {
    return sizeof(StepRun) + sizeof(TaskRun) * (size_t)g->task_count;
}

StepRun *step_run_new(MasterSession *s, ClientGraph *g, int64_t step_id) {
    StepRun *run = block_zeroed(size_for(g));
    pthread_mutex_init(&run->mutex, NULL);
    run->session = master_session_ref(s);
    refcount_inc(&g->refs);
    run->graph = g;
    run->id = step_id;
    for (int i = 0; i < g->task_count; i++) run->tasks[i] = (TaskRun){.step = run, .task = i};
    return run;
}

StepRun **step_run_next(StepRun *run) {
    return &run->next;
}

static void cancel_if_needed(StepRun *run);

void step_run_cancel(StepRun *run, Error *reason) {
    pthread_mutex_lock(&run->mutex);
    if (!run->cancel_reason) {
        run->cancel_reason = reason;
        reason = NULL;
    }
    pthread_mutex_unlock(&run->mutex);
    error_free(reason);
    cancel_if_needed(run);
}

static void client_gone(void *arg) {
    step_run_cancel(arg, error_new(CODE_CANCELLED, "The client cancelled the step or went away"));
}

/* ---- Tasks ---- */

static void end_round(StepRun *run);

static void count_down(StepRun *run) {
    pthread_mutex_lock(&run->mutex);
    bool is_last = --run->pending == 0;
    pthread_mutex_unlock(&run->mutex);
    if (is_last) end_round(run);
}

static void task_ended(TaskRun *t) {
    StepRun *run = t->step;
    if (t->err) {
        pthread_mutex_lock(&run->mutex);
        run->failed = true;
        pthread_mutex_unlock(&run->mutex);
        cancel_if_needed(run);
    }
    count_down(run);
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
    request.is_partial = round->is_partial;
    request.is_last_partial_run = round->is_last;
    options.record_timeline = round->trace;
    options.record_costs = round->costs;
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
        .record_costs = round->costs,
        .record_partition_graphs = round->partition_graphs,
        .is_partial = round->is_partial,
        .is_last_partial = round->is_last,
    };
    graph_run_unref(run->local);
    run->local = worker_run_graph(c->local, c->session, &request, local_ended, t);
}

/* ---- Cancelling ---- */

static void cancel_tasks(void *arg) {
    StepRun *run = arg;
    for (int i = 1; i < run->graph->task_count; i++)
        if (run->tasks[i].call) call_cancel(run->tasks[i].call);
    if (run->local) graph_run_cancel(run->local, error_derived(error_new(CODE_CANCELLED, "Step was cancelled")));
    count_down(run);
}

/* On the pool: who finds out may hold locks or have better to do. Not before all tasks were started. */
static void cancel_if_needed(StepRun *run) {
    pthread_mutex_lock(&run->mutex);
    bool cancel = run->is_started && !run->is_cancelling && run->pending > 0 && (run->failed || run->cancel_reason);
    if (cancel) {
        run->is_cancelling = true;
        run->pending++;
    }
    pthread_mutex_unlock(&run->mutex);
    if (cancel) threadpool_post(worker_compute(master_options(run->session->master)->worker), cancel_tasks, run);
}

/* ---- Ending ---- */

/* Why the step was cancelled; behind it what the op said that this stopped, which is all that a session within the client says. */
static Error *cancelled_error(const Error *reason, const TaskRun *root) {
    if (!reason) return NULL;
    bool is_op = root && root->task == 0 && root->err->code == CODE_CANCELLED && !root->err->derived;
    if (!is_op || reason->code != CODE_CANCELLED) return error_copy(reason);
    return error_new(CODE_CANCELLED, "%s\n%s", reason->message, root->err->message);
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
    Error *reason = !root || only_consequences ? cancelled_error(run->cancel_reason, root) : NULL;
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
        if (round->cost_graph) strbuf_add(round->cost_graph, strbuf_str(&t->result.cost_graph));
        if (round->partition_graph_fields && t->result.partition_graph.len) wire_put_bytes(round->partition_graph_fields, 3, strbuf_str(&t->result.partition_graph));
        return;
    }
    WireReader r = wire_reader(message_flatten(&t->reply));
    while (wire_next(&r)) {
        if (r.field == 2 && r.type == WIRE_BYTES && round->step_stats) strbuf_add(round->step_stats, r.bytes);
        if (r.field == 3 && r.type == WIRE_BYTES && round->cost_graph) strbuf_add(round->cost_graph, r.bytes);
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
        run_graph_result_clear(&t->result);
    }
}

static void end_round(StepRun *run) {
    const StepRound *round = &run->round;
    if (round->call) server_call_unwatch(round->call);
    Error *err = root_error(run);
    for (int i = 0; !err && i < run->graph->task_count; i++)
        if (run->graph->handles[i].ptr) collect_metadata(&run->tasks[i], round);
    for (int i = 0; !err && i < round->recv_count; i++) {
        round->recv_values[i] = run->tasks[0].result.values[i];
        run->tasks[0].result.values[i] = NULL;
    }
    run->has_ended_well = !err && !round->is_partial;
    clear_round(run);
    run->done(run->done_arg, err);
}

void step_run_start(StepRun *run, const StepRound *round, StepRoundDone *done, void *arg) {
    run->round = *round;
    run->done = done;
    run->done_arg = arg;
    pthread_mutex_lock(&run->mutex);
    run->pending = run->graph->part_count + 1; /* ours, until all are started */
    run->failed = run->is_started = run->is_cancelling = false;
    pthread_mutex_unlock(&run->mutex);
    if (round->call) server_call_watch(round->call, client_gone, run);
    for (int i = 1; i < run->graph->task_count; i++)
        if (run->graph->handles[i].ptr) start_remote(run, &run->tasks[i], round);
    if (run->graph->handles[0].ptr) start_local(run, &run->tasks[0], round);
    pthread_mutex_lock(&run->mutex);
    run->is_started = true;
    pthread_mutex_unlock(&run->mutex);
    cancel_if_needed(run);
    count_down(run);
}

typedef struct RoundWaiter {
    Latch latch;
    Error *err;
} RoundWaiter;

static void wake_waiter(void *arg, Error *err) {
    RoundWaiter *w = arg;
    w->err = err;
    latch_done(&w->latch);
}

Error *step_run_round(StepRun *run, const StepRound *round) {
    RoundWaiter w = {.err = NULL};
    int64_t timeout_ms = round->timeout_ms;
    latch_init(&w.latch, 1);
    if (round->step_stats) rpc_logging_start(&run->session->tasks, run->graph);
    step_run_start(run, round, wake_waiter, &w);
    if (timeout_ms > 0 && !latch_wait_for(&w.latch, timeout_ms))
        step_run_cancel(run, error_new(CODE_DEADLINE_EXCEEDED, "Timed out waiting for notification: the step took more than %lld ms", (long long)timeout_ms));
    latch_wait(&w.latch);
    latch_clear(&w.latch);
    if (!w.err && round->step_stats) rpc_logging_fetch(&run->session->tasks, run->graph, run->id, round->step_stats);
    return w.err;
}

void step_run_cleanup(StepRun *run) {
    Pb__CleanupGraphRequest request = PB__CLEANUP_GRAPH_REQUEST__INIT;
    request.step_id = run->id;
    for (int i = 0; i < run->graph->task_count; i++) {
        WorkerClient *c = &run->session->tasks.tasks[i];
        if (!run->graph->handles[i].ptr) continue;
        if (c->local)
            worker_cleanup_graph(c->local, run->id);
        else if (!run->has_ended_well || !c->forgets_ended_steps)
            worker_client_post(c, "CleanupGraph", &request.base, 60000);
    }
}

void step_run_free(StepRun *run) {
    if (!run) return;
    clear_round(run);
    graph_run_unref(run->local);
    error_free(run->cancel_reason);
    pthread_mutex_destroy(&run->mutex);
    size_t size = size_for(run->graph);
    client_graph_unref(run->graph);
    master_session_unref(run->session);
    block_free(run, size);
}
