/* lower.h: functional control flow made into Switch, Merge and loops, and function calls replaced by their bodies. */
#pragma once
#include "base/error.h"
#include "graph/graph.h"
#include "placement/placer.h"

/* A new graph; names and attributes may point into `g` and its function library, which must outlive it. If, Case and While are lowered where the
 * client asked for it (_lower_using_switch_merge); calls always, down to a depth at which recursion is left to run time. The node keeps its name, so that it can be fetched. */
Error *graph_lower(const Graph *g, Graph **out) MUST_CHECK;
/* The same for a cluster of these devices: a RemoteCall whose target is known before the run becomes nodes of that device. `calls_only` leaves If, Case and While as they are. */
Error *graph_lower_for(const Graph *g, const PlacerDevice *devices, int device_count, bool calls_only, Graph **out) MUST_CHECK;
/* The same for a body that is to be differentiated, `nesting` gradients deep: everything is lowered, whatever the client asked for. */
Error *graph_lower_all(const Graph *g, int nesting, Graph **out) MUST_CHECK;
