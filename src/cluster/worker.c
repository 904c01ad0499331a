/* worker.c: sessions of a worker and the little it does besides running graphs. */
#include "cluster/worker.h"

#include <stdlib.h>

#include "base/hashmap.h"
#include "base/log.h"
#include "base/memory.h"
#include "cluster/remote_rendezvous.h"
#include "cluster/worker_internal.h"

Worker *worker_new(const WorkerOptions *o) {
    Worker *w = xcalloc(1, sizeof *w);
    pthread_mutex_init(&w->mutex, NULL);
    w->cluster = o->cluster;
    w->task_name = str_dup(o->task_name);
    w->devices = o->devices;
    w->peers = o->peers;
    w->compute = o->compute;
    w->blocking = o->blocking;
    w->sequences = step_sequences_new();
    w->groups = group_table_new();
    w->steps = step_table_new(&remote_way, w);
    w->run_ids = request_ids_new(100000);
    w->recv_ids = request_ids_new(100000);
    return w;
}

static WorkerSession *take_session(Worker *w, const Str *handle) {
    size_t at = 0;
    void *value = NULL;
    pthread_mutex_lock(&w->mutex);
    if (handle)
        value = strmap_remove(&w->sessions, *handle);
    else if (strmap_next(&w->sessions, &at, NULL, &value))
        strmap_remove(&w->sessions, worker_session_handle(value));
    pthread_mutex_unlock(&w->mutex);
    return value;
}

/* Runs that are still under way end with the reason, before their queues close under them; takes reason. */
static void delete_session(Worker *w, WorkerSession *s, Error *reason) {
    if (s) worker_cancel_runs(w, s, reason);
    error_free(reason);
    if (!s) return;
    worker_drop_partial_runs(w, s, 0);
    step_table_cleanup_session(w->steps, s);
    worker_session_close(s);
    worker_session_unref(s);
}

void worker_stop(Worker *w) {
    for (WorkerSession *s; (s = take_session(w, NULL));) delete_session(w, s, error_new(CODE_UNAVAILABLE, "Task %s is ending", w->task_name));
    /* Resources may have threads of their own, which must end while there are pools to run them. */
    for (int i = 0; i < w->devices->count; i++) resource_clear_all(w->devices->devices[i]->resources);
}

void worker_free(Worker *w) {
    if (!w) return;
    worker_stop(w);
    step_table_free(w->steps);
    step_sequences_free(w->sequences);
    group_table_free(w->groups);
    request_ids_free(w->run_ids);
    request_ids_free(w->recv_ids);
    strmap_clear(&w->sessions);
    pthread_mutex_destroy(&w->mutex);
    free(w->task_name);
    free(w);
}

/* Sessions of a master that has since restarted have no owner any more. */
static void delete_leaked(Worker *w, Str master_task, int64_t incarnation) {
    for (;;) {
        WorkerSession *leaked = NULL;
        size_t at = 0;
        void *value;
        pthread_mutex_lock(&w->mutex);
        while (!leaked && strmap_next(&w->sessions, &at, NULL, &value))
            if (worker_session_is_leaked_by(value, master_task, incarnation)) leaked = value;
        if (leaked) strmap_remove(&w->sessions, worker_session_handle(leaked));
        pthread_mutex_unlock(&w->mutex);
        if (!leaked) return;
        log_info("session %.*s of %.*s is dropped: its master has restarted", STR_ARG(worker_session_handle(leaked)), STR_ARG(master_task));
        delete_session(w, leaked, error_new(CODE_ABORTED, "The master of the session has restarted"));
    }
}

Error *worker_create_session(Worker *w, const CreateWorkerSession *request) {
    if (!request->handle.len) return error_invalid("session_handle must be set");
    delete_leaked(w, request->master_task, request->master_incarnation);
    WorkerSession *s = worker_session_new(&(WorkerSessionOptions){
        .handle = request->handle,
        .master_task = request->master_task,
        .master_incarnation = request->master_incarnation,
        .isolate = request->isolate,
        .devices = w->devices,
        .task_name = request->task_name.len ? request->task_name : str_of(w->task_name),
        .cluster = request->cluster ? request->cluster : w->cluster,
        .peers = w->peers,
        .groups = w->groups,
    });
    pthread_mutex_lock(&w->mutex);
    bool known = strmap_get(&w->sessions, request->handle) != NULL;
    if (!known) strmap_put(&w->sessions, worker_session_handle(s), s);
    pthread_mutex_unlock(&w->mutex);
    if (!known) return NULL;
    worker_session_unref(s);
    return error_new(CODE_ALREADY_EXISTS, "Session %.*s exists already", STR_ARG(request->handle));
}

void worker_delete_session(Worker *w, Str handle) {
    delete_session(w, take_session(w, &handle), error_new(CODE_ABORTED, "Session %.*s was closed", STR_ARG(handle)));
}

Error *worker_find_session(Worker *w, Str handle, WorkerSession **out) {
    pthread_mutex_lock(&w->mutex);
    *out = worker_session_ref(strmap_get(&w->sessions, handle));
    pthread_mutex_unlock(&w->mutex);
    if (*out) return NULL;
    return error_new(CODE_ABORTED, "Session handle is not found: %.*s. Possibly this worker (\"%s\") just restarted.", STR_ARG(handle), w->task_name);
}

void worker_cleanup_graph(Worker *w, int64_t step_id) {
    worker_drop_partial_runs(w, NULL, step_id);
    step_table_cleanup(w->steps, step_id);
}

void worker_cleanup_all(Worker *w, const Str *containers, int count) {
    for (int i = 0; i < w->devices->count; i++) {
        ResourceManager *m = w->devices->devices[i]->resources;
        if (count == 0) resource_clear_container(m, STR(""));
        for (int j = 0; j < count; j++)
            if (containers[j].len) resource_clear_container(m, containers[j]); /* none has an empty name */
    }
}

bool worker_fresh_run_id(Worker *w, int64_t id) {
    return request_ids_add(w->run_ids, id);
}

bool worker_fresh_recv_id(Worker *w, int64_t id) {
    return request_ids_add(w->recv_ids, id);
}

Str worker_task_name(const Worker *w) {
    return str_of(w->task_name);
}

StepSequences *worker_step_sequences(const Worker *w) {
    return w->sequences;
}

GroupTable *worker_groups(const Worker *w) {
    return w->groups;
}

const DeviceSet *worker_devices(const Worker *w) {
    return w->devices;
}

ThreadPool *worker_compute(const Worker *w) {
    return w->compute;
}

WorkerStats worker_stats(Worker *w) {
    WorkerStats stats = {.steps = step_table_count(w->steps), .runs = atomic_load(&w->runs)};
    size_t at = 0;
    void *value;
    pthread_mutex_lock(&w->mutex);
    stats.sessions = (int64_t)w->sessions.count;
    while (strmap_next(&w->sessions, &at, NULL, &value)) stats.graphs += worker_session_graph_count(value);
    pthread_mutex_unlock(&w->mutex);
    for (int i = 0; i < w->devices->count; i++) stats.resources += resource_count(w->devices->devices[i]->resources);
    return stats;
}
