/* evaluate.h: what the passes over graphs need of the runtime: kernels run outside of a step. */
#pragma once
#include "base/error.h"
#include "graph/graph.h"
#include "passes/pass.h"
#include "runtime/device.h"
#include "runtime/session_state.h"

/* Rewrites a placed graph as options say (passes/pass.h); kernels run in the calling thread. */
Error *graph_optimize_for(Graph *g, const PassOptions *options, const DeviceSet *devices, SessionState *session) MUST_CHECK;
