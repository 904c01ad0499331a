/* master_session_internal.h: the struct behind MasterSession, for the files that make it up. */
#pragma once
#include <pthread.h>

#include "base/hashmap.h"
#include "base/refcount.h"
#include "cluster/client_graph.h"
#include "cluster/master.h"
#include "cluster/master_session.h"
#include "cluster/session_tasks.h"
#include "graph/function.h"
#include "graph/graph.h"

typedef struct StepRun StepRun;

typedef struct PartialRun {
    char *handle;
    ClientGraph *graph;
    StepRun *step;
    bool *fed, *fetched; /* by feed and fetch of the graph */
    bool running;
} PartialRun;

typedef struct Callable {
    Arena *arena;
    RunSignature signature;
    bool trace, partition_graphs;
    int64_t timeout_ms;
} Callable;

struct MasterSession {
    RefCount refs;
    Master *master;
    char *handle;
    SessionTasks tasks;
    bool soft_placement, bfloat16_edges;

    pthread_mutex_t build_mutex; /* guards the graphs: one is extended or compiled at a time */
    Graph *source;               /* as the client sent it */
    Graph *placed;               /* lowered and placed */
    FunctionLibrary *functions;
    int64_t version;
    StrMap fixed; /* stateful nodes: name -> 1 + device */

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t idle;   /* no step is under way */
    StrMap client_graphs;
    StepRun *steps; /* under way */
    bool closed;
    StrMap partial_runs;
    IntMap callables; /* handle + 1 */
    int64_t next_partial, next_callable;
};

Error *session_client_graph(MasterSession *s, const RunSignature *signature, ClientGraph **out) MUST_CHECK; /* a reference */
/* Marks a step as under way; Cancelled or Aborted when the session is closed. */
Error *session_add_step(MasterSession *s, StepRun *step) MUST_CHECK;
void session_remove_step(MasterSession *s, StepRun *step);
void session_cancel_steps(MasterSession *s); /* and waits until none is left */
void partial_run_free(MasterSession *s, PartialRun *p);
