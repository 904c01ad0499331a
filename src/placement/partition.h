/* partition.h: a placed graph split into one graph per task, joined by _Send and _Recv. */
#pragma once
#include "base/error.h"
#include "graph/graph.h"

typedef struct PartitionDevice {
    Str name; /* full */
    uint64_t incarnation;
    int task; /* index of its task */
} PartitionDevice;

typedef struct PartitionOptions {
    const PartitionDevice *devices; /* by Node.placed */
    int device_count, task_count;
    const bool *pushed_to; /* (optional) by task: what comes from task 0 is sent there unasked */
    bool bfloat16_edges; /* floats travel between tasks as bfloat16 */
    int *edge_count;     /* edges cut so far in the session: a TensorFlow worker keeps the kernels of _Send and _Recv by node name for the whole
                            session, so no name may come twice */
} PartitionOptions;

/* parts[task] is a new graph, NULL for a task without nodes. Adds nodes to `g` (the control loops of loops that span tasks); names and attributes
 * of the parts point into it, so it must outlive them. */
Error *graph_partition(Graph *g, const PartitionOptions *options, Graph **parts) MUST_CHECK;
