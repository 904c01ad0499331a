/* strategy.h: the same training function on one worker or on all: scope, run, reduce.

     RillStrategy *s = rill_strategy_ps(g, task, RILL_BETWEEN_GRAPH);
     rill_strategy_enter(s);                                  variables made from here on live on the ps tasks
     RillReplica replicas[...]; int n = rill_strategy_run(s, step, arg, replicas);
     RillTensor loss = rill_strategy_reduce(s, RILL_REDUCE_MEAN, replicas, 0);
     rill_strategy_leave(s); */
#ifndef RILL_STRATEGY_H_
#define RILL_STRATEGY_H_

#include "rill/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum RillReplication {
    RILL_BETWEEN_GRAPH, /* every worker builds its own graph: this one has one replica, on the task's worker */
    RILL_IN_GRAPH,      /* one client builds one graph over all workers: a replica on each */
} RillReplication;
typedef enum RillReduce { RILL_REDUCE_SUM, RILL_REDUCE_MEAN } RillReduce;

enum { RILL_REPLICA_VALUES = 8 };
/* What a replica gives back. */
typedef struct RillReplica {
    RillTensor values[RILL_REPLICA_VALUES];
    int count;
} RillReplica;
typedef void RillReplicaFn(RillGraph *g, int replica, int replicas, void *arg, RillReplica *out);

typedef struct RillStrategy RillStrategy;
RILL_API RillStrategy *rill_strategy_ps(RillGraph *g, const RillTask *task, RillReplication how);
RILL_API void rill_strategy_free(RillStrategy *s);
RILL_API void rill_strategy_enter(RillStrategy *s);
RILL_API void rill_strategy_leave(RillStrategy *s);
RILL_API int rill_strategy_replicas(const RillStrategy *s);
/* Builds the replicas, each on its worker; variables of the same name are shared. Returns how many. */
RILL_API int rill_strategy_run(RillStrategy *s, RillReplicaFn *fn, void *arg, RillReplica *out);
/* Value `index` of all replicas in one. */
RILL_API RillTensor rill_strategy_reduce(RillStrategy *s, RillReduce how, const RillReplica *replicas, int index);

#ifdef __cplusplus
}
#endif
#endif
