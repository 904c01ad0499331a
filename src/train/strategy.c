/* strategy.c: RillStrategy over ps tasks and workers. */
#include "rill/strategy.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "train/graph_internal.h"
#include "train/task_internal.h"

struct RillStrategy {
    RillGraph *g;
    const RillTask *task;
    RillReplication how;
    int replicas;
};

RillStrategy *rill_strategy_ps(RillGraph *g, const RillTask *task, RillReplication how) {
    RillStrategy *s = xcalloc(1, sizeof *s);
    *s = (RillStrategy){g, task, how, how == RILL_IN_GRAPH && task->cluster ? rill_task_workers(task) : 1};
    return s;
}

void rill_strategy_free(RillStrategy *s) {
    free(s);
}

void rill_strategy_enter(RillStrategy *s) {
    RillDeviceSetter setter = rill_task_device_setter(s->task);
    rill_device_setter_push(s->g, &setter);
}

void rill_strategy_leave(RillStrategy *s) {
    rill_device_pop(s->g);
}

int rill_strategy_replicas(const RillStrategy *s) {
    return s->replicas;
}

/* The n-th task that computes: chiefs first. */
static void worker_device(const RillStrategy *s, int n, char *out, size_t size) {
    static const char *const jobs[] = {"chief", "master", "worker"};
    out[0] = 0;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        int count = rill_task_count(s->task, jobs[i]);
        if (n < count) {
            snprintf(out, size, "/job:%s/task:%d", jobs[i], n);
            return;
        }
        n -= count;
    }
}

int rill_strategy_run(RillStrategy *s, RillReplicaFn *fn, void *arg, RillReplica *out) {
    for (int i = 0; i < s->replicas; i++) {
        char device[128];
        out[i] = (RillReplica){.count = 0};
        if (s->how == RILL_IN_GRAPH && s->task->cluster) { /* variables still follow the setter, computing goes to this worker */
            worker_device(s, i, device, sizeof device);
            RillDeviceSetter setter = {.ps_tasks = rill_task_count(s->task, "ps"), .worker_device = device};
            rill_device_setter_push(s->g, &setter);
        }
        fn(s->g, i, s->replicas, arg, &out[i]);
        if (s->how == RILL_IN_GRAPH && s->task->cluster) rill_device_pop(s->g);
    }
    return s->replicas;
}

RillTensor rill_strategy_reduce(RillStrategy *s, RillReduce how, const RillReplica *replicas, int index) {
    RillTensor *values = xcalloc((size_t)s->replicas, sizeof *values);
    for (int i = 0; i < s->replicas; i++) {
        if (index < 0 || index >= replicas[i].count) rill_graph_fail(s->g, TF_INVALID_ARGUMENT, "Replica %d gave %d values: there is no value %d", i, replicas[i].count, index);
        values[i] = index >= 0 && index < RILL_REPLICA_VALUES ? replicas[i].values[index] : NO_TENSOR;
    }
    RillTensor sum = rill_graph_failed(s->g) ? NO_TENSOR : rill_add_n(s->g, values, s->replicas);
    free(values);
    return how == RILL_REDUCE_MEAN && s->replicas > 1 ? rill_scale(s->g, sum, 1.0 / s->replicas) : sum;
}
