/* pass.h: rewrites of a graph before it is compiled: what a client can switch, and what passes ask of the runtime. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

/* One bit for each pass. */
enum {
    PASS_BYPASS = 1,    /* values are taken from where they are made, not from an Identity of it */
    PASS_FOLD = 2,      /* what only depends on constants is computed now */
    PASS_SIMPLIFY = 4,  /* arithmetic that changes no bit */
    PASS_SHARE = 8,     /* equal nodes are computed once */
    PASS_CONTROLS = 16, /* control edges that say nothing new are dropped */
    PASS_FUSE = 32,     /* element-wise nodes, and the product before them, become one pass over memory; only where a plan is made */
    PASS_IDLE = 64,     /* what nobody takes the values of is not computed */
    PASS_ALL = 127,
};

/* Zero-initialised: everything on. */
typedef struct PassOptions {
    unsigned disabled;         /* bits of the passes that are off */
    size_t max_constant_bytes; /* of one folded constant; 0: 10 MiB */
} PassOptions;

/* What a node can be in a fused one. */
typedef enum FusionRole {
    FUSION_NONE,
    FUSION_ELEMENTWISE, /* computes each element of its output from those at the same place of its inputs */
    FUSION_HEAD,        /* a product or convolution: its output can be worked on as it comes */
} FusionRole;

/* What passes ask of the runtime, which stands above them. */
typedef struct PassRuntime {
    /* Runs the kernel of a stateless node; out gets a reference for each output. It fails also for kernels that need a step, and
     * when an output would take more than limit_bytes: the node then stays as it is. */
    Error *(*evaluate)(const void *arg, const Node *n, Tensor **in, size_t limit_bytes, Tensor **out) MUST_CHECK;
    /* Whether a node that runs may leave outputs without a value (Switch, _Recv): a control edge from it then says less than
     * one from a consumer of that output. */
    bool (*may_skip_outputs)(const Node *n);
    FusionRole (*fusion_role)(const void *arg, const Node *n); /* of a node whose inputs and only output are plain values */
    const void *arg; /* of both */
} PassRuntime;

/* Rewrites the graph in place. Its nodes are placed (Node.placed); a node without consumers is one the graph is run for. Nodes
 * that stay keep their names; values, errors and effects of a step stay the same, to the bit (but which NaN comes of two). */
Error *graph_optimize(Graph *g, const PassOptions *options, const PassRuntime *runtime) MUST_CHECK;
