/* local_servers.h: LocalServers, a cluster whose tasks are all rill serve processes of this machine, for the time of a command. */
#pragma once
#include "tools/local_cluster.h"
#include "tools/task_process.h"

typedef struct LocalServers {
    LocalCluster cluster;
    TaskProcess *processes; /* as cluster.tasks */
    int count;
} LocalServers;

/* Starts all and waits until they accept calls. On error, which has the last line of the task that failed, nothing is left. */
Error *local_servers_start(LocalServers *s, const LocalJobs *jobs, int64_t threads) MUST_CHECK;
/* Tells all to end, waits, kills those that do not; frees. */
void local_servers_end(LocalServers *s);
