/* debug_nodes.h: nodes that look at the values of others, for TensorFlow's debugger. */
#pragma once
#include "base/error.h"
#include "graph/graph.h"

/* DebugTensorWatch: which ops look at an output, and where they write what they see. */
typedef struct DebugWatch {
    Str node; /* "*": every node */
    int slot; /* -1 for every output of "*" */
    const Str *ops, *urls;
    int op_count, url_count;
    bool tolerate; /* ops that do not take the output's type are left out */
} DebugWatch;

/* Adds to a placed graph a Copy of every watched output, which its consumers then take, and the ops that look at it, which run before its consumers.
 * device_names by Node.placed. FailedPrecondition where an op cannot be made. */
Error *graph_watch(Graph *g, const DebugWatch *watches, int count, const Str *device_names) MUST_CHECK;
