/* worker_session.h: WorkerSession, what a worker keeps for one session of a master: graphs, state, addresses of peers. */
#pragma once
#include "base/error.h"
#include "cluster/peers.h"
#include "cluster/spec.h"
#include "collective/group_table.h"
#include "proto/config.pb-c.h"
#include "runtime/executable.h"

typedef struct WorkerSession WorkerSession;

typedef struct WorkerSessionOptions {
    Str handle, master_task;
    int64_t master_incarnation;
    bool isolate;
    const DeviceSet *devices; /* of the process */
    Str task_name;            /* "/job:ps/replica:0/task:0": differs from the devices' own when the client brought a cluster */
    const ClusterSpec *cluster; /* (optional) the client's own; NULL: the server's */
    Peers *peers;             /* of the server; outlives the session */
    GroupTable *groups;       /* of collectives that this task leads; outlives the session */
} WorkerSessionOptions;

WorkerSession *worker_session_new(const WorkerSessionOptions *options);
WorkerSession *worker_session_ref(WorkerSession *s);
void worker_session_unref(WorkerSession *s);
void worker_session_close(WorkerSession *s); /* its private resources go, waiters are told */

Str worker_session_handle(const WorkerSession *s);
bool worker_session_is_leaked_by(const WorkerSession *s, Str master_task, int64_t new_incarnation);
const DeviceSet *worker_session_devices(const WorkerSession *s);
SessionState *worker_session_state(WorkerSession *s);
/* The channel to a task by name; NotFound when it is not in the session's cluster. Borrowed. */
Error *worker_session_channel(WorkerSession *s, Str task_name, Channel **out) MUST_CHECK;

/* The task that leads the collectives of the session: the one that is set, else the chief, else worker 0, else this task. */
void worker_session_set_leader(WorkerSession *s, Str task_name); /* "" changes nothing; the first one stays */
Str worker_session_leader(WorkerSession *s);
Error *worker_session_leader_channel(WorkerSession *s, Channel **out) MUST_CHECK; /* borrowed; NULL: this task is the leader */
GroupTable *worker_session_groups(const WorkerSession *s);

/* debug (optional): what a debugger wants to see of it. */
Error *worker_session_register(WorkerSession *s, Str graph_def, const PassOptions *passes, const Pb__DebugOptions *debug, char **graph_handle) MUST_CHECK; /* malloced */
Error *worker_session_deregister(WorkerSession *s, Str graph_handle) MUST_CHECK;
Executable *worker_session_graph(WorkerSession *s, Str graph_handle); /* a reference; NULL when unknown */
int worker_session_graph_count(WorkerSession *s);
