/* worker_session.c: graphs registered here, and where the peers of the session are. */
#include "cluster/worker_session.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "cluster/collective_link.h"
#include "cluster/debug.h"
#include "collective/session.h"

typedef struct Registered {
    char *handle;
    Executable *executable;
} Registered;

struct WorkerSession {
    RefCount refs;
    char *handle, *master_task;
    int64_t master_incarnation;
    char *task_name;
    SessionState *state;
    ClusterSpec cluster;
    Peers *peers;
    GroupTable *groups;
    CollectiveSession *collectives;
    pthread_mutex_t mutex; /* guards all below */
    char *leader; /* NULL: not set. Never changes once set */
    StrMap graphs;
    int64_t next_graph;
};

WorkerSession *worker_session_new(const WorkerSessionOptions *o) {
    WorkerSession *s = xcalloc(1, sizeof *s);
    refcount_init(&s->refs);
    pthread_mutex_init(&s->mutex, NULL);
    s->handle = str_dup(o->handle);
    s->master_task = str_dup(o->master_task);
    s->master_incarnation = o->master_incarnation;
    s->peers = o->peers;
    for (int i = 0; o->cluster && i < o->cluster->count; i++)
        error_free(cluster_spec_add(&s->cluster, str_of(o->cluster->tasks[i].job), o->cluster->tasks[i].index, str_of(o->cluster->tasks[i].address)));
    s->state = session_state_new(o->devices, o->task_name, o->isolate);
    s->task_name = str_dup(o->task_name);
    s->groups = o->groups;
    CollectiveLink link = collective_link(s);
    s->collectives = collective_session_new(&link);
    session_set_collectives(s->state, s->collectives);
    return s;
}

WorkerSession *worker_session_ref(WorkerSession *s) {
    if (s) refcount_inc(&s->refs);
    return s;
}

void worker_session_unref(WorkerSession *s) {
    if (!s || !refcount_dec(&s->refs)) return;
    size_t at = 0;
    void *value;
    while (strmap_next(&s->graphs, &at, NULL, &value)) {
        Registered *r = value;
        executable_unref(r->executable);
        free(r->handle);
        free(r);
    }
    strmap_clear(&s->graphs);
    session_set_collectives(s->state, NULL);
    session_state_unref(s->state);
    collective_session_free(s->collectives);
    cluster_spec_clear(&s->cluster);
    pthread_mutex_destroy(&s->mutex);
    free(s->handle);
    free(s->task_name);
    free(s->leader);
    free(s->master_task);
    free(s);
}

void worker_session_close(WorkerSession *s) {
    session_state_close(s->state);
    group_table_session_closed(s->groups, s);
}

Str worker_session_handle(const WorkerSession *s) {
    return str_of(s->handle);
}

bool worker_session_is_leaked_by(const WorkerSession *s, Str master_task, int64_t new_incarnation) {
    return master_task.len && str_is(master_task, s->master_task) && s->master_incarnation != new_incarnation;
}

const DeviceSet *worker_session_devices(const WorkerSession *s) {
    return session_devices(s->state);
}

SessionState *worker_session_state(WorkerSession *s) {
    return s->state;
}

Error *worker_session_channel(WorkerSession *s, Str task_name, Channel **out) {
    const ClusterTask *task = cluster_spec_find_name(&s->cluster, task_name);
    if (!task) return error_not_found("Task %.*s is not in the cluster of session %s", STR_ARG(task_name), s->handle);
    *out = peers_channel(s->peers, str_of(task->address));
    return NULL;
}

void worker_session_set_leader(WorkerSession *s, Str task_name) {
    pthread_mutex_lock(&s->mutex);
    if (task_name.len && !s->leader) s->leader = str_dup(task_name);
    pthread_mutex_unlock(&s->mutex);
}

Str worker_session_leader(WorkerSession *s) {
    pthread_mutex_lock(&s->mutex);
    const char *leader = s->leader;
    pthread_mutex_unlock(&s->mutex);
    if (leader) return str_of(leader);
    const ClusterTask *task = cluster_spec_find(&s->cluster, STR("chief"), 0);
    if (!task) task = cluster_spec_find(&s->cluster, STR("worker"), 0);
    return str_of(task ? task->name : s->task_name);
}

Error *worker_session_leader_channel(WorkerSession *s, Channel **out) {
    Str leader = worker_session_leader(s);
    *out = NULL;
    return str_is(leader, s->task_name) ? NULL : error_wrap(worker_session_channel(s, leader, out), "The leader of the collectives");
}

GroupTable *worker_session_groups(const WorkerSession *s) {
    return s->groups;
}

Error *worker_session_register(WorkerSession *s, Str graph_def, const PassOptions *passes, const Pb__DebugOptions *debug, char **graph_handle) {
    Registered *r = xcalloc(1, sizeof *r);
    Error *err = debug ? debug_executable(graph_def, debug, session_devices(s->state), s->state, &r->executable)
                       : executable_new(graph_def, passes, session_devices(s->state), s->state, &r->executable);
    if (err) {
        free(r);
        return err;
    }
    pthread_mutex_lock(&s->mutex);
    r->handle = xasprintf("%016llx", (unsigned long long)s->next_graph++);
    strmap_put(&s->graphs, str_of(r->handle), r);
    *graph_handle = xstrdup(r->handle);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

Error *worker_session_deregister(WorkerSession *s, Str graph_handle) {
    pthread_mutex_lock(&s->mutex);
    Registered *r = strmap_remove(&s->graphs, graph_handle);
    pthread_mutex_unlock(&s->mutex);
    if (!r) return error_new(CODE_ABORTED, "Graph handle is not found: %.*s", STR_ARG(graph_handle));
    executable_unref(r->executable);
    free(r->handle);
    free(r);
    return NULL;
}

Executable *worker_session_graph(WorkerSession *s, Str graph_handle) {
    pthread_mutex_lock(&s->mutex);
    Registered *r = strmap_get(&s->graphs, graph_handle);
    Executable *e = r ? executable_ref(r->executable) : NULL;
    pthread_mutex_unlock(&s->mutex);
    return e;
}

int worker_session_graph_count(WorkerSession *s) {
    pthread_mutex_lock(&s->mutex);
    int n = (int)s->graphs.count;
    pthread_mutex_unlock(&s->mutex);
    return n;
}
