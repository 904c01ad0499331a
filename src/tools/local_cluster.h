/* local_cluster.h: LocalCluster, the addresses of a cluster on this machine, and what its tasks are told of it. */
#pragma once
#include <stdint.h>

#include "base/error.h"

typedef struct LocalTask {
    const char *job;
    int index;
    int port;
} LocalTask;

typedef struct LocalCluster {
    LocalTask *tasks; /* chief, workers, ps, evaluators: in this order */
    int count;
    char *json; /* {"worker": ["127.0.0.1:2222", ...], ...} */
} LocalCluster;

typedef struct LocalJobs {
    int chiefs, workers, ps, evaluators;
} LocalJobs;

/* Finds a free port for each task. */
Error *local_cluster_init(LocalCluster *c, const LocalJobs *jobs) MUST_CHECK;
void local_cluster_clear(LocalCluster *c);

/* The command, rill serve ..., that runs a task; malloced strings, NULL after the last. */
char **local_cluster_serve(const LocalCluster *c, const LocalTask *t, int64_t threads);
/* TF_CONFIG of a task, malloced; NULL: of a client, which is no task. */
char *local_cluster_tf_config(const LocalCluster *c, const LocalTask *t);
/* "127.0.0.1:1,127.0.0.1:2" of a job, malloced; "" when it has no tasks. */
char *local_cluster_hosts(const LocalCluster *c, const char *job);
/* A word of a command with {job}, {task}, {target}, {cluster}, {ps_hosts}, {worker_hosts} and {chief_hosts} filled in; malloced. */
char *local_cluster_fill(const LocalCluster *c, const LocalTask *t, const char *word);
