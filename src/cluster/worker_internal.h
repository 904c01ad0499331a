/* worker_internal.h: the struct behind Worker, for the files that make it up. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "base/hashmap.h"
#include "cluster/request_ids.h"
#include "cluster/worker.h"

struct Worker {
    const ClusterSpec *cluster;
    char *task_name;
    DeviceSet *devices;
    Peers *peers;
    ThreadPool *compute, *blocking;
    StepTable *steps;
    StepSequences *sequences;
    GroupTable *groups;
    RequestIds *run_ids, *recv_ids;
    _Atomic int64_t runs;  /* graph runs under way */
    pthread_mutex_t mutex; /* guards all below */
    StrMap sessions;
    GraphRun *active_runs;  /* list of all runs under way */
    GraphRun *partial_runs; /* list of partial runs that are not finished */
};

/* Tells every run of a session to end, for that reason. */
void worker_cancel_runs(Worker *w, const WorkerSession *s, const Error *reason);
/* Ends the partial runs of a session (NULL: of a step) that no last call has ended. */
void worker_drop_partial_runs(Worker *w, const WorkerSession *s, int64_t step_id);
