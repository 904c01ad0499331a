/* cost_graph.h: what the nodes of a graph cost in one step. */
#pragma once
#include "graph/graph.h"
#include "runtime/step_stats.h"

/* Fields of a tensorflow.CostGraphDef; `next_id` counts the nodes of several graphs. */
void cost_graph_encode(const Graph *g, const Str *device_names, const NodeTiming *timings, size_t timing_count, int64_t *next_id, StrBuf *out);
