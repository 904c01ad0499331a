/* executable.h: Executable, a graph ready to run in this process: its plan, its functions. */
#pragma once
#include "base/error.h"
#include "base/threadpool.h"
#include "passes/pass.h"
#include "placement/debug_nodes.h"
#include "runtime/plan.h"
#include "runtime/rendezvous.h"
#include "runtime/step.h"

typedef struct Executable Executable;

/* The graph is optimized as `passes` say (borrowed for the call), so are the functions it calls later.
 * From a GraphDef whose nodes name full devices of `devices` (an empty name: the first one). Shared by reference: steps hold one. */
/* watches (optional): outputs that a debugger looks at; the graph then stays as it is but for the nodes that look. */
Error *executable_new_watched(Str graph_def, const DebugWatch *watches, int watch_count, const PassOptions *passes, const DeviceSet *devices, SessionState *session, Executable **out) MUST_CHECK;
Error *executable_new(Str graph_def, const PassOptions *passes, const DeviceSet *devices, SessionState *session, Executable **out) MUST_CHECK;
/* From a placed graph, taken over also on error; its function library stays the caller's and must live on. */
Error *executable_from_graph(Graph *take, const PassOptions *passes, const DeviceSet *devices, SessionState *session, Executable **out) MUST_CHECK;
Executable *executable_ref(Executable *e);
void executable_unref(Executable *e);
int executable_node_count(const Executable *e);
/* The graph as it is run, serialised, with full device names. */
void executable_graph_def(const Executable *e, StrBuf *out);
/* Its graphs with what their nodes cost in a step that is over: a serialised CostGraphDef. */
void executable_cost_graph(const Executable *e, const StepStats *stats, StrBuf *out);

typedef struct RunOptions {
    int64_t step_id;
    Rendezvous *rendezvous;
    Cancel *cancel;
    ThreadPool *pool;
    ThreadPool *blocking;
    StepStats *stats; /* (optional) */
} RunOptions;

/* The context of a step that runs functions of this graph on its own, outside of any RunGraph; for closures. */
StepContext executable_context(Executable *e);

/* Does the thread that starts a run of it soon have time for something else? As far as earlier runs tell. */
bool executable_starts_soon(const Executable *e);
/* Runs one step; everything in options must live until done. */
void executable_run(Executable *e, const RunOptions *options, StepDone *done, void *arg);
