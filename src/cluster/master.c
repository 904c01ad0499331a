/* master.c: sessions by handle. */
#include "cluster/master.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/log.h"
#include "base/memory.h"
#include "cluster/random_id.h"
#include "cluster/request_ids.h"
#include "cluster/session_tasks.h"
#include "proto/worker.pb-c.h"

struct Master {
    MasterOptions o;
    char *task_name;
    RequestIds *request_ids;
    Cancel stop; /* ends the waits of sessions that are being opened */
    _Atomic int64_t steps_run;
    pthread_mutex_t mutex; /* guards sessions */
    StrMap sessions;
};

Master *master_new(const MasterOptions *options) {
    Master *m = xcalloc(1, sizeof *m);
    pthread_mutex_init(&m->mutex, NULL);
    m->o = *options;
    m->task_name = str_dup(options->task_name);
    m->o.task_name = str_of(m->task_name);
    m->request_ids = request_ids_new(10000);
    cancel_init(&m->stop);
    m->o.stop = &m->stop;
    return m;
}

static MasterSession *take_session(Master *m, const Str *handle) {
    size_t at = 0;
    void *value = NULL;
    pthread_mutex_lock(&m->mutex);
    if (handle)
        value = strmap_remove(&m->sessions, *handle);
    else if (strmap_next(&m->sessions, &at, NULL, &value))
        strmap_remove(&m->sessions, master_session_handle(value));
    pthread_mutex_unlock(&m->mutex);
    return value;
}

static void close_sessions(Master *m) {
    for (MasterSession *s; (s = take_session(m, NULL));) {
        master_session_close(s);
        master_session_unref(s);
    }
}

void master_stop(Master *m) {
    cancel_now(&m->stop, error_new(CODE_CANCELLED, "The task %s is stopping", m->task_name));
    close_sessions(m);
}

void master_free(Master *m) {
    if (!m) return;
    master_stop(m);
    cancel_clear(&m->stop);
    strmap_clear(&m->sessions);
    request_ids_free(m->request_ids);
    pthread_mutex_destroy(&m->mutex);
    free(m->task_name);
    free(m);
}

const MasterOptions *master_options(const Master *m) {
    return &m->o;
}

bool master_fresh_request_id(Master *m, int64_t id) {
    return request_ids_add(m->request_ids, id);
}

int64_t master_session_count(Master *m) {
    pthread_mutex_lock(&m->mutex);
    int64_t n = (int64_t)m->sessions.count;
    pthread_mutex_unlock(&m->mutex);
    return n;
}

void master_count_step(Master *m) {
    atomic_fetch_add(&m->steps_run, 1);
}

int64_t master_steps_run(Master *m) {
    return atomic_load(&m->steps_run);
}

Error *master_create_session(Master *m, Str graph_def, const Pb__ConfigProto *config, Str target, char **handle) {
    if (m->o.max_sessions && master_session_count(m) >= m->o.max_sessions)
        return error_new(CODE_RESOURCE_EXHAUSTED, "%s has %d sessions, which is its limit (--max-sessions)", m->task_name, m->o.max_sessions);
    char *name = xasprintf("%016llx", (unsigned long long)random_id());
    MasterSession *s;
    Error *err = master_session_open(m, str_of(name), graph_def, config, target, &s);
    if (err) {
        free(name);
        return err;
    }
    pthread_mutex_lock(&m->mutex);
    strmap_put(&m->sessions, master_session_handle(s), s);
    pthread_mutex_unlock(&m->mutex);
    *handle = name;
    return NULL;
}

Error *master_find_session(Master *m, Str handle, MasterSession **out) {
    pthread_mutex_lock(&m->mutex);
    *out = master_session_ref(strmap_get(&m->sessions, handle));
    pthread_mutex_unlock(&m->mutex);
    return *out ? NULL : error_new(CODE_ABORTED, "Session %.*s is not found.", STR_ARG(handle));
}

Error *master_close_session(Master *m, Str handle) {
    MasterSession *s = take_session(m, &handle);
    if (!s) return error_new(CODE_ABORTED, "Session %.*s is not found. Possibly, this master has restarted.", STR_ARG(handle));
    master_session_close(s);
    master_session_unref(s);
    return NULL;
}

static Error *reset_tasks(Master *m, char **containers, size_t container_count, char **filters, size_t filter_count) {
    Pb__CleanupAllRequest request = PB__CLEANUP_ALL_REQUEST__INIT;
    request.container = containers;
    request.n_container = container_count;
    Error *first = NULL;
    for (int i = 0; i < m->o.cluster->count; i++) {
        const ClusterTask *task = &m->o.cluster->tasks[i];
        if (str_is(str_of(task->name), m->task_name)) continue;
        bool passes;
        Error *err = task_passes_filters(str_of(task->name), filters, filter_count, &passes);
        if (!err && passes) {
            WorkerClient c = {.channel = peers_channel(m->o.peers, str_of(task->address))};
            Message reply = {0};
            err = worker_client_call(&c, "CleanupAll", &request.base, (CallOptions){.timeout_ms = 60000}, &reply);
            message_clear(&reply);
            err = error_wrap(err, "CleanupAll at %s (%s)", task->name, task->address);
        }
        if (first)
            error_free(err);
        else
            first = err;
    }
    return first;
}

Error *master_reset(Master *m, char **containers, size_t container_count, char **filters, size_t filter_count) {
    close_sessions(m);
    Str *names = xcalloc(container_count, sizeof *names);
    for (size_t i = 0; i < container_count; i++) names[i] = str_of(containers[i]);
    worker_cleanup_all(m->o.worker, names, (int)container_count);
    free(names);
    return reset_tasks(m, containers, container_count, filters, filter_count);
}
