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
    int64_t timeout_ms, collective_graph_key;
} Callable;

struct MasterSession {
    RefCount refs;
    Master *master;
    char *handle;
    SessionTasks tasks;
    bool soft_placement, bfloat16_edges;
    bool keeps_control_flow; /* the client asked for an executor that knows no Switch and Merge */
    char *group_leader; /* task that leads the collectives; "": this one */
    PassOptions passes;
    Pb__GraphOptions *graph_options; /* of the client, for the workers; NULL: none */

    pthread_mutex_t build_mutex; /* guards the graphs: one is extended or compiled at a time; and what a debugger has seen */
    int64_t watched_runs;
    StrMap watched_signatures; /* key -> int64_t, how often */
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

/* The compiled graph of a signature, from the cache or made now; a reference. */
Error *session_graph_for(MasterSession *s, const RunSignature *signature, bool partial, ClientGraph **out) MUST_CHECK;
/* Marks a step as under way; Cancelled or Aborted when the session is closed. */
Error *session_add_step(MasterSession *s, StepRun *step) MUST_CHECK;
Error *session_add_step_locked(MasterSession *s, StepRun *step) MUST_CHECK; /* with s->mutex held */
void session_remove_step(MasterSession *s, StepRun *step);
void session_cancel_steps(MasterSession *s); /* and waits until none is left */
void session_drop_partial_runs(MasterSession *s); /* those that no call is working on */
void callable_free(Callable *c);
