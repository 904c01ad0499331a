/* client_graph.h: ClientGraph, one (feeds, fetches, targets): pruned, partitioned, registered at the workers. Immutable. */
#pragma once
#include <stdatomic.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/refcount.h"
#include "cluster/session_tasks.h"
#include "graph/graph.h"
#include "graph/prune.h"
#include "passes/pass.h"

typedef struct ClientGraph {
    RefCount refs;
    Arena *arena;
    Str key;
    RunSignature signature;
    Str *feed_keys, *fetch_keys; /* of the rendezvous */
    Str *handles;                /* by task; ptr NULL: the task has no part in it */
    int task_count;
    int part_count;
    int64_t collective_graph_key; /* other than 0: it has collectives, and masters that run the same ones agree on the ids of its steps */
    _Atomic int64_t runs; /* in sessions that build a cost model; the only field that changes */
    bool *computable; /* partial runs: [fetch * feed_count + feed] fetch needs feed */
} ClientGraph;

typedef struct ClientGraphOptions {
    SessionTasks *tasks;
    Str session_handle;
    Cancel *stop; /* ends the wait for the workers */
    bool bfloat16_edges;
    Pb__DebugOptions *debug; /* (optional) what a debugger wants to see; then nothing is optimized */
    const PassOptions *passes;
    Pb__GraphOptions *graph_options; /* (optional) for the workers */
    const char *group_leader; /* of collectives, for the workers; "": not said */
    bool partial; /* will be run in parts: find out which fetch needs which feed */
} ClientGraphOptions;

Error *client_graph_build(Graph *placed, const RunSignature *signature, Str key, const ClientGraphOptions *o, ClientGraph **out) MUST_CHECK;
/* The tasks forget it: it will not be run again. */
void client_graph_deregister(ClientGraph *g, const ClientGraphOptions *o);
void client_graph_unref(ClientGraph *g);
enum { SIGNATURE_KEY_ROOM = 1024 }; /* enough for most keys */
void signature_key(const RunSignature *s, StrBuf *out);
void signature_copy(Arena *a, const RunSignature *from, RunSignature *to);
