/* graph_run.c: RunGraph and RecvTensor at a worker.

   A run starts the executable of a registered graph on the step's rendezvous. Values from the master go in first; what the master wants back is
   taken out when the step has ended. In a partial run the executable is started by the first call and goes on while later calls bring values and
   take results; the last call waits for its end. */
#include <stdlib.h>
#include <string.h>

#include "base/block_cache.h"
#include "base/memory.h"
#include "base/refcount.h"
#include "cluster/worker_internal.h"
#include "runtime/step_stats.h"

struct GraphRun {
    RefCount refs;
    Worker *worker;
    WorkerSession *session;
    StepEntry *entry;
    Executable *executable;
    Cancel cancel;
    StepStats *stats;
    bool record_timeline, record_costs, record_partition_graphs, is_partial;
    int64_t step_id;
    GraphRun *active_next, *active_prev; /* in the worker's list of runs under way */
    /* A whole run: what to report. */
    Str *recv_keys; /* one block with their text */
    size_t recv_keys_size;
    int recv_count;
    RunGraphDone *done;
    void *arg;
    /* A partial run. */
    pthread_mutex_t mutex; /* guards all below */
    bool ended;
    Error *end_error;
    struct PartialCall *last_call; /* waits for the end */
    GraphRun *next;                /* in the worker's list */
};

static void run_free(GraphRun *run) {
    block_free(run->recv_keys, run->recv_keys_size);
    step_stats_free(run->stats);
    executable_unref(run->executable);
    step_entry_unref(run->entry);
    worker_session_unref(run->session);
    cancel_clear(&run->cancel);
    error_free(run->end_error);
    pthread_mutex_destroy(&run->mutex);
    block_free(run, sizeof *run);
}

void graph_run_unref(GraphRun *run) {
    if (run && refcount_dec(&run->refs)) run_free(run);
}

void graph_run_cancel(GraphRun *run, Error *reason) {
    rendezvous_abort(step_entry_rendezvous(run->entry), reason);
    cancel_now(&run->cancel, reason);
}

/* ---- Runs under way ---- */

static void enter_active(GraphRun *run) {
    Worker *w = run->worker;
    pthread_mutex_lock(&w->mutex);
    run->active_next = w->active_runs;
    if (w->active_runs) w->active_runs->active_prev = run;
    w->active_runs = run;
    atomic_fetch_add(&w->runs, 1);
    pthread_mutex_unlock(&w->mutex);
}

static void leave_active(GraphRun *run) {
    Worker *w = run->worker;
    pthread_mutex_lock(&w->mutex);
    if (run->active_prev)
        run->active_prev->active_next = run->active_next;
    else
        w->active_runs = run->active_next;
    if (run->active_next) run->active_next->active_prev = run->active_prev;
    atomic_fetch_sub(&w->runs, 1);
    pthread_mutex_unlock(&w->mutex);
}

/* A run of the session that has not been told to end; a reference. */
static GraphRun *next_uncancelled(Worker *w, const WorkerSession *s) {
    pthread_mutex_lock(&w->mutex);
    GraphRun *run = w->active_runs;
    while (run && (run->session != s || cancel_is_set(&run->cancel))) run = run->active_next;
    if (run) refcount_inc(&run->refs);
    pthread_mutex_unlock(&w->mutex);
    return run;
}

void worker_cancel_runs(Worker *w, const WorkerSession *s, const Error *reason) {
    for (GraphRun *run; (run = next_uncancelled(w, s));) {
        graph_run_cancel(run, error_copy(reason));
        graph_run_unref(run);
    }
}

/* ---- Results ---- */

static void result_init(RunGraphResult *r, int count) {
    *r = (RunGraphResult){.count = count};
    if (count) r->values = block_zeroed(sizeof *r->values * (size_t)count);
}

void run_graph_result_clear(RunGraphResult *r) {
    for (int i = 0; i < r->count; i++) tensor_unref(r->values[i]);
    block_free(r->values, sizeof *r->values * (size_t)r->count);
    strbuf_clear(&r->step_stats);
    strbuf_clear(&r->cost_graph);
    strbuf_clear(&r->partition_graph);
    *r = (RunGraphResult){0};
}

typedef struct Taken {
    Error *err;
    Tensor *value;
    bool is_dead, came;
} Taken;

static void taken(void *arg, Error *err, Tensor *value, bool is_dead) {
    *(Taken *)arg = (Taken){err, value, is_dead, true};
}

/* In the words of both of TensorFlow's sessions: that over a cluster names the key, that in one process the position. */
static Error *not_valid(Str key, int position) {
    RendezvousKey parts = {0};
    rendezvous_key_parse(key, &parts);
    return error_internal("The tensor returned for %.*s was not valid. Retval[%d] does not have value", STR_ARG(parts.edge), position);
}

static Error *take_values(GraphRun *run, RunGraphResult *result) {
    Rendezvous *r = step_entry_rendezvous(run->entry);
    Error *err = NULL;
    result_init(result, run->recv_count);
    for (int i = 0; !err && i < run->recv_count; i++) {
        Taken t = {0};
        rendezvous_recv(r, run->recv_keys[i], taken, &t); /* the step is over: there now or never */
        if (!t.came) rendezvous_withdraw(r, run->recv_keys[i], &t);
        result->values[i] = t.value;
        if (t.err)
            err = t.err;
        else if (!t.came || t.is_dead)
            err = not_valid(run->recv_keys[i], i);
    }
    return err;
}

static void collect(GraphRun *run, RunGraphResult *result) {
    if (run->record_timeline) step_stats_encode(run->stats, &result->step_stats);
    if (run->record_costs) executable_cost_graph(run->executable, run->stats, &result->cost_graph);
    if (run->record_partition_graphs) executable_graph_def(run->executable, &result->partition_graph);
}

static void whole_run_ended(void *arg, Error *err) {
    GraphRun *run = arg;
    RunGraphResult result = {0};
    if (!err) err = take_values(run, &result);
    if (!err) collect(run, &result);
    if (err)
        step_table_note_failure(run->worker->steps, run->step_id, err);
    else
        step_table_end(run->worker->steps, run->entry);
    leave_active(run);
    run->done(run->arg, err, &result);
    run_graph_result_clear(&result);
    graph_run_unref(run);
}

/* ---- Starting ---- */

static Error *make_run(Worker *w, WorkerSession *s, const RunGraphRequest *request, GraphRun **out) {
    Executable *e = worker_session_graph(s, request->graph_handle);
    if (!e) return error_new(CODE_ABORTED, "Graph handle is not found: %.*s", STR_ARG(request->graph_handle));
    GraphRun *run = block_zeroed(sizeof *run);
    refcount_init(&run->refs);
    pthread_mutex_init(&run->mutex, NULL);
    cancel_init(&run->cancel);
    run->worker = w;
    run->session = worker_session_ref(s);
    run->executable = e;
    run->step_id = request->step_id;
    run->is_partial = request->is_partial;
    step_table_forget_failure(w->steps, request->step_id);
    run->entry = step_table_get(w->steps, request->step_id);
    step_entry_set_session(run->entry, s);
    run->record_partition_graphs = request->record_partition_graphs;
    run->record_timeline = request->record_timeline;
    run->record_costs = request->record_costs;
    if (request->record_timeline || request->record_costs) run->stats = step_stats_new();
    *out = run;
    return NULL;
}

static void copy_recv_keys(GraphRun *run, const RunGraphRequest *request) {
    size_t size = 0;
    for (int i = 0; i < request->recv_count; i++) size += sizeof(Str) + request->recv_keys[i].len;
    if (!size) return;
    run->recv_keys_size = size;
    run->recv_count = request->recv_count;
    run->recv_keys = block_zeroed(size);
    char *text = (char *)(run->recv_keys + run->recv_count);
    for (int i = 0; i < run->recv_count; i++) {
        Str key = request->recv_keys[i];
        if (key.len) memcpy(text, key.ptr, key.len);
        run->recv_keys[i] = (Str){text, key.len};
        text += key.len;
    }
}

static Error *send_values(GraphRun *run, const RunGraphRequest *request) {
    Error *err = NULL;
    for (int i = 0; !err && i < request->send_count; i++)
        err = rendezvous_send(step_entry_rendezvous(run->entry), request->send_names[i], request->send_values[i], false);
    return err;
}

static void start(GraphRun *run, StepDone *ended) {
    refcount_inc(&run->refs); /* for the end */
    enter_active(run);
    executable_run(run->executable,
                   &(RunOptions){.step_id = run->step_id,
                                 .rendezvous = step_entry_rendezvous(run->entry),
                                 .cancel = &run->cancel,
                                 .pool = run->worker->compute,
                                 .blocking = run->worker->blocking,
                                 .stats = run->stats},
                   ended, run);
}

static GraphRun *run_partial(Worker *w, WorkerSession *s, const RunGraphRequest *request, RunGraphDone *done, void *arg);

static void fail_early(Error *err, RunGraphDone *done, void *arg) {
    RunGraphResult none = {0};
    done(arg, err, &none);
}

GraphRun *worker_run_graph(Worker *w, WorkerSession *s, const RunGraphRequest *request, RunGraphDone *done, void *arg) {
    if (request->is_partial) return run_partial(w, s, request, done, arg);
    GraphRun *run = NULL;
    Error *err = make_run(w, s, request, &run);
    if (!err) {
        copy_recv_keys(run, request);
        run->done = done;
        run->arg = arg;
        err = send_values(run, request);
    }
    if (err)
        fail_early(err, done, arg);
    else
        start(run, whole_run_ended);
    return run;
}

/* ---- Partial runs ---- */

/* One RunGraph call of a partial run: done when every key has come, and the last one also when the step has ended. */
typedef struct PartialCall {
    GraphRun *run; /* a reference */
    RunGraphDone *done;
    void *arg;
    pthread_mutex_t mutex; /* guards all below */
    int waiting;
    Error *err;
    RunGraphResult result;
    struct PartialKey {
        struct PartialCall *call;
        char *key;
        int index;
    } *keys;
    int key_count;
} PartialCall;

static void partial_advance(PartialCall *c, Error *err) {
    pthread_mutex_lock(&c->mutex);
    if (err && (!c->err || c->err->derived)) {
        error_free(c->err);
        c->err = err;
        err = NULL;
    }
    bool last = --c->waiting == 0;
    pthread_mutex_unlock(&c->mutex);
    error_free(err);
    if (!last) return;
    c->done(c->arg, c->err, &c->result);
    run_graph_result_clear(&c->result);
    for (int i = 0; i < c->key_count; i++) free(c->keys[i].key);
    free(c->keys);
    graph_run_unref(c->run);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

static void partial_value(void *arg, Error *err, Tensor *value, bool is_dead) {
    struct PartialKey *k = arg;
    if (!err && is_dead) err = not_valid(str_of(k->key), 0);
    k->call->result.values[k->index] = value;
    partial_advance(k->call, err);
}

static void unlist(GraphRun *run) {
    pthread_mutex_lock(&run->worker->mutex);
    GraphRun **link = &run->worker->partial_runs;
    while (*link && *link != run) link = &(*link)->next;
    bool listed = *link == run;
    if (listed) *link = run->next;
    pthread_mutex_unlock(&run->worker->mutex);
    if (listed) graph_run_unref(run);
}

static void partial_run_ended(void *arg, Error *err) {
    GraphRun *run = arg;
    leave_active(run);
    if (err) step_table_note_failure(run->worker->steps, run->step_id, err);
    pthread_mutex_lock(&run->mutex);
    run->ended = true;
    run->end_error = error_copy(err);
    PartialCall *last = run->last_call;
    run->last_call = NULL;
    pthread_mutex_unlock(&run->mutex);
    if (last) {
        partial_advance(last, err);
        unlist(run);
    } else {
        error_free(err);
    }
    graph_run_unref(run);
}

/* The run of this step, started by an earlier call; a reference. */
static GraphRun *find_partial(Worker *w, WorkerSession *s, int64_t step_id) {
    pthread_mutex_lock(&w->mutex);
    GraphRun *run = w->partial_runs;
    while (run && !(run->session == s && run->step_id == step_id)) run = run->next;
    if (run) refcount_inc(&run->refs);
    pthread_mutex_unlock(&w->mutex);
    return run;
}

static void await_end(GraphRun *run, PartialCall *c) {
    pthread_mutex_lock(&run->mutex);
    bool ended = run->ended;
    Error *err = ended ? error_copy(run->end_error) : NULL;
    if (!ended) run->last_call = c;
    pthread_mutex_unlock(&run->mutex);
    if (!ended) return;
    partial_advance(c, err);
    unlist(run);
}

static GraphRun *run_partial(Worker *w, WorkerSession *s, const RunGraphRequest *request, RunGraphDone *done, void *arg) {
    GraphRun *run = find_partial(w, s, request->step_id);
    bool is_new = !run;
    Error *err = is_new ? make_run(w, s, request, &run) : NULL;
    if (err) {
        fail_early(err, done, arg);
        return NULL;
    }
    if (is_new) {
        refcount_inc(&run->refs); /* for the list */
        pthread_mutex_lock(&w->mutex);
        run->next = w->partial_runs;
        w->partial_runs = run;
        pthread_mutex_unlock(&w->mutex);
        start(run, partial_run_ended);
    }
    err = send_values(run, request);
    PartialCall *c = xcalloc(1, sizeof *c);
    pthread_mutex_init(&c->mutex, NULL);
    refcount_inc(&run->refs);
    c->run = run;
    c->done = done;
    c->arg = arg;
    c->waiting = 1 + request->recv_count + (request->is_last_partial ? 1 : 0);
    result_init(&c->result, request->recv_count);
    c->keys = xcalloc((size_t)request->recv_count, sizeof *c->keys);
    c->key_count = request->recv_count;
    for (int i = 0; i < request->recv_count; i++) c->keys[i] = (struct PartialKey){c, str_dup(request->recv_keys[i]), i};
    for (int i = 0; i < request->recv_count; i++) rendezvous_recv(step_entry_rendezvous(run->entry), str_of(c->keys[i].key), partial_value, &c->keys[i]);
    if (request->is_last_partial) await_end(run, c);
    partial_advance(c, err);
    return run;
}

void worker_drop_partial_runs(Worker *w, const WorkerSession *s, int64_t step_id) {
    for (;;) {
        pthread_mutex_lock(&w->mutex);
        GraphRun **link = &w->partial_runs;
        while (*link && !(s ? (*link)->session == s : (*link)->step_id == step_id)) link = &(*link)->next;
        GraphRun *run = *link;
        if (run) *link = run->next;
        pthread_mutex_unlock(&w->mutex);
        if (!run) return;
        graph_run_cancel(run, error_derived(error_new(CODE_ABORTED, "Cleanup %lld", (long long)run->step_id)));
        graph_run_unref(run);
    }
}

/* ---- RecvTensor and RecvBuf ---- */

static Error *check_incarnation(Worker *w, const char *method, ErrorCode code, Str device, uint64_t incarnation) {
    uint64_t nearest = 0;
    for (int i = 0; i < w->devices->count; i++) {
        const Device *d = w->devices->devices[i];
        if (d->incarnation == incarnation) return NULL;
        if (i == 0 || str_is(device, d->name)) nearest = d->incarnation;
    }
    Error *err = error_new(code,
                           "%s expects a different device incarnation: %llu vs. %llu. Your worker job (\"%s\") was probably restarted. Check your "
                           "worker job for the reason why it was restarted.",
                           method, (unsigned long long)incarnation, (unsigned long long)nearest, w->task_name);
    err->restarted = true;
    return err;
}

/* Takes err. */
static void recv_checked(Worker *w, int64_t step_id, Str key, Error *err, RecvDone *done, void *arg) {
    if (err) {
        done(arg, err, NULL, false);
        return;
    }
    StepEntry *e = step_table_get(w->steps, step_id);
    rendezvous_recv(step_entry_rendezvous(e), key, done, arg);
    if (step_entry_is_ended(e)) step_table_drop_if_idle(w->steps, e);
    step_entry_unref(e);
}

void worker_recv_tensor(Worker *w, int64_t step_id, Str key, RecvDone *done, void *arg) {
    RendezvousKey parts;
    bool is_valid = rendezvous_key_parse(key, &parts);
    Error *err = is_valid ? check_incarnation(w, "RecvTensor", CODE_ABORTED, parts.src_device, parts.src_incarnation)
                          : error_invalid("Invalid rendezvous key: %.*s", STR_ARG(key));
    recv_checked(w, step_id, key, err, done, arg);
}

void worker_recv_buf(Worker *w, int64_t step_id, Str key, Str device, uint64_t incarnation, RecvDone *done, void *arg) {
    Error *err = check_incarnation(w, "RecvBuf", CODE_FAILED_PRECONDITION, device, incarnation);
    if (!err) err = step_table_failure(w->steps, step_id);
    recv_checked(w, step_id, key, err, done, arg);
}

bool worker_recv_cancel(Worker *w, int64_t step_id, Str key, void *arg) {
    StepEntry *e = step_table_get(w->steps, step_id);
    bool withdrawn = rendezvous_withdraw(step_entry_rendezvous(e), key, arg);
    step_table_drop_if_idle(w->steps, e);
    step_entry_unref(e);
    return withdrawn;
}
