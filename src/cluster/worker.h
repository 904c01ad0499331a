/* worker.h: Worker, one task as its masters and peers see it; the methods of WorkerService without their wire form. */
#pragma once
#include "base/error.h"
#include "base/threadpool.h"
#include "cluster/peers.h"
#include "cluster/spec.h"
#include "cluster/step_sequence.h"
#include "cluster/step_table.h"
#include "cluster/worker_session.h"
#include "collective/group_table.h"
#include "runtime/device.h"

typedef struct Worker Worker;

typedef struct WorkerOptions {
    const ClusterSpec *cluster; /* of the server; outlives the worker */
    Str task_name;
    DeviceSet *devices;
    Peers *peers;
    ThreadPool *compute, *blocking;
} WorkerOptions;

Worker *worker_new(const WorkerOptions *options);
void worker_stop(Worker *w); /* deletes every session and step; steps under way end */
void worker_free(Worker *w);

typedef struct CreateWorkerSession {
    Str handle, master_task;
    int64_t master_incarnation;
    bool isolate;
    Str task_name; /* "" the worker's own */
    const ClusterSpec *cluster; /* (optional) the client's own */
} CreateWorkerSession;

Error *worker_create_session(Worker *w, const CreateWorkerSession *request) MUST_CHECK;
void worker_delete_session(Worker *w, Str handle);
/* A reference; Aborted when unknown, as a master expects of a worker that restarted. */
Error *worker_find_session(Worker *w, Str handle, WorkerSession **out) MUST_CHECK;
void worker_cleanup_graph(Worker *w, int64_t step_id);
void worker_cleanup_all(Worker *w, const Str *containers, int count); /* none: the default container */

/* ---- Running ---- */

typedef struct RunGraphRequest {
    Str graph_handle;
    int64_t step_id, request_id;
    const Str *send_names; /* keys; the values are kept */
    Tensor *const *send_values;
    int send_count;
    const Str *recv_keys; /* copied */
    int recv_count;
    bool record_timeline, record_costs, record_partition_graphs;
    bool is_partial, is_last_partial;
} RunGraphRequest;

typedef struct RunGraphResult {
    Tensor **values; /* by recv_keys; NULL elements are dead */
    int count;
    StrBuf step_stats;      /* serialised StepStats, when recorded */
    StrBuf cost_graph;      /* serialised CostGraphDef, when recorded */
    StrBuf partition_graph; /* serialised GraphDef, when recorded */
} RunGraphResult;
void run_graph_result_clear(RunGraphResult *r);

/* Owns err; borrows result, may take values out of it. */
typedef void RunGraphDone(void *arg, Error *err, RunGraphResult *result);

/* A run under way, to be cancelled; unref when no longer needed. */
typedef struct GraphRun GraphRun;

/* Starts in the calling thread; done runs exactly once, perhaps before this returns. */
GraphRun *worker_run_graph(Worker *w, WorkerSession *s, const RunGraphRequest *request, RunGraphDone *done, void *arg);
void graph_run_cancel(GraphRun *run, Error *reason); /* takes reason */
void graph_run_unref(GraphRun *run);

/* A peer asks for a tensor. done runs exactly once unless worker_recv_cancel returns true. */
void worker_recv_tensor(Worker *w, int64_t step_id, Str key, RecvDone *done, void *arg);
/* The same for a piece of a collective, which `device` of this task offers. */
void worker_recv_buf(Worker *w, int64_t step_id, Str key, Str device, uint64_t incarnation, RecvDone *done, void *arg);
bool worker_recv_cancel(Worker *w, int64_t step_id, Str key, void *arg); /* true: done will not be called */

/* Refuses an id seen before. */
bool worker_fresh_run_id(Worker *w, int64_t id);
bool worker_fresh_recv_id(Worker *w, int64_t id);

Str worker_task_name(const Worker *w);
const DeviceSet *worker_devices(const Worker *w);
ThreadPool *worker_compute(const Worker *w); /* the pool of its kernels */
StepSequences *worker_step_sequences(const Worker *w);
GroupTable *worker_groups(const Worker *w); /* of collectives that this task leads */

typedef struct WorkerStats {
    int64_t sessions, graphs, steps, runs, resources;
} WorkerStats;
WorkerStats worker_stats(Worker *w);
