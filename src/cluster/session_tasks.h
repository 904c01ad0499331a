/* session_tasks.h: SessionTasks, the tasks and devices that one session uses. */
#pragma once
#include "base/error.h"
#include "cluster/master.h"
#include "cluster/spec.h"
#include "cluster/worker_client.h"
#include "graph/prune.h"
#include "placement/partition.h"
#include "placement/placer.h"
#include "proto/config.pb-c.h"

typedef struct SessionTasks {
    WorkerClient *tasks; /* [0] is the master's own */
    int task_count;
    Pb__DeviceAttributes **devices; /* with names as the session knows them */
    PlacerDevice *placer;
    PartitionDevice *partition;
    int device_count;
    ClientDevice client;
    int edge_count; /* edges cut between tasks so far; guarded by the session's build_mutex */
} SessionTasks;

/* Waits until every task that the filters let through has told its devices, then opens the session at each. */
Error *session_tasks_open(SessionTasks *t, const MasterOptions *o, Str handle, const Pb__ConfigProto *config, Str target) MUST_CHECK;
void session_tasks_close(SessionTasks *t, Str handle, Cancel *stop); /* DeleteWorkerSession everywhere; waits for it unless `stop` is set */
void session_tasks_clear(SessionTasks *t);

/* Does a task pass the filters? No filters let everything pass. */
Error *task_passes_filters(Str task_name, char **filters, size_t count, bool *passes) MUST_CHECK;
