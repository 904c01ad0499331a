/* graph_internal.h: TF_Graph and TF_Operation, which wrap the runtime's Graph and Node. */
#pragma once
#include <pthread.h>

#include "base/error.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "shapes/shape_inference.h"
#include "tensorflow/c/c_api.h"

/* An input that an output feeds. */
typedef struct Consumer {
    int output;
    TF_Input input;
} Consumer;

/* One for each node, at an address that stays. */
struct TF_Operation {
    Node *node;
    TF_Graph *graph;
    const char *name, *type, *device; /* 0-terminated */
    Consumer *consumers;
    int consumer_count;
    size_t consumer_capacity;
    TF_Operation **control_outputs;
    int control_output_count;
    size_t control_output_capacity;
};

/* The graph a while loop is made in, and its variables' first values. */
typedef struct LoopInputs {
    TF_Graph *graph;
    TF_Output *inputs;
} LoopInputs;

struct TF_Graph {
    pthread_mutex_t mutex; /* guards all below, and all operations */
    Graph *graph;
    FunctionLibrary *functions;
    ShapeInfo *shapes;
    TF_Operation **ops; /* by node id */
    int op_count;
    size_t op_capacity;
    TF_Session **sessions; /* that run it */
    int session_count;
    size_t session_capacity;
    Node **grown; /* that got more inputs and outputs by TF_AddGradients, in that order; a node may come again */
    int grown_count;
    size_t grown_capacity;
    LoopInputs *loop; /* of the condition of a loop that is being made, else NULL */
    bool is_deleted; /* by its user; sessions still hold it */
};

/* The registries are filled before anything else of the library runs. */
void capi_init(void);

/* Wraps the nodes that were added to g->graph since the last call. */
void graph_wrap_nodes_locked(TF_Graph *g);
/* The same after a change that may have given new inputs to old nodes. */
void graph_rewire_locked(TF_Graph *g);
/* Drops the nodes from `count` on, which nothing outside of them uses: what a failed change left behind. */
void graph_drop_nodes_locked(TF_Graph *g, int count);
TF_Operation *graph_operation(const TF_Graph *g, const Node *n);
/* Edges to nodes that are wrapped already. */
void graph_append_input_locked(TF_Graph *g, Node *n, Output from);
Error *graph_update_edge_locked(TF_Graph *g, TF_Output new_src, TF_Input dst) MUST_CHECK;
void graph_add_control_locked(TF_Graph *g, TF_Operation *op, TF_Operation *before);
/* `what` was done to an operation; sessions that have it already do not see that: they are told. */
void graph_note_mutation_locked(TF_Graph *g, const TF_Operation *op, const char *what);

/* An Output of this graph, checked. */
Error *capi_output(const TF_Graph *g, TF_Output o, Output *out) MUST_CHECK;
static inline TF_Output capi_output_of(const TF_Graph *g, Output o) {
    return o.node ? (TF_Output){graph_operation(g, o.node), o.index} : (TF_Output){NULL, -1};
}

/* How much of a graph somebody has. */
typedef struct GraphSent {
    int nodes, functions, grown; /* counts of graph->nodes, of functions, of grown */
} GraphSent;
GraphSent graph_extent_locked(const TF_Graph *g); /* all of it */

/* A GraphDef of what is missing at `sent`: nodes that it has and that grew since, marked as such; new nodes; all functions. */
void graph_encode_locked(const TF_Graph *g, GraphSent sent, StrBuf *out);
