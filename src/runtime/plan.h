/* plan.h: Plan, a graph compiled to flat arrays; immutable, shared by its steps. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "graph/graph.h"
#include "runtime/device.h"
#include "runtime/kernel.h"
#include "runtime/session_state.h"

/* How a node takes part in loops and dead branches; everything else is the kernel's. */
typedef enum NodeKind { KIND_PLAIN, KIND_CONST, KIND_MERGE, KIND_ENTER, KIND_EXIT, KIND_NEXT_ITERATION, KIND_CONTROL_TRIGGER } NodeKind;

typedef struct PlanEdge {
    int node;  /* destination */
    int slot;  /* of its input, in its frame's slots; -1: control */
    int count; /* the destination's count_index; -1: it waits for nothing but this edge */
} PlanEdge;

typedef struct PlanNode {
    const Node *node;
    const KernelDef *def;
    KernelFn *run;
    void *state;
    Device *device;
    Tensor *constant; /* KIND_CONST */
    int frame;        /* it runs in */
    int count_index;  /* of its pending count among the nodes of the frame */
    int slot;         /* of its first input among the slots of the frame */
    int input_count, output_count;
    Tensor **constants; /* (optional) by input: a constant that is always there, without an edge; NULL elements come by an edge */
    int pending;      /* edges to wait for before it can run; of a Merge: 1 + 2 * controls */
    int *edge_start;  /* [output_count + 2]: edges of output i are edges[edge_start[i] .. edge_start[i+1]); the last group is control */
    bool expensive;   /* the kernel says so */
    _Atomic int *cost; /* about how many nanoseconds it takes, learnt from the steps; -1: not known */
    NodeKind kind;
    int child_frame;  /* KIND_ENTER: the frame it leads to */
    bool is_constant_enter;
    int parallel_iterations;
} PlanNode;

typedef struct PlanFrame {
    Str name;
    int parent; /* -1 for the root */
    int node_count, slot_count;
    int *pending;    /* of its nodes, by count_index */
    int enter_count; /* Enter nodes that lead to it */
} PlanFrame;

typedef struct Plan {
    Arena *arena;
    SessionState *session;
    Graph *graph;      /* owned: the nodes point into it */
    PlanNode *nodes;
    int node_count;
    PlanEdge *edges;
    PlanFrame *frames; /* [0] is the root */
    int frame_count;
    int *roots; /* nodes that wait for nothing */
    int root_count, constant_count; /* constants that nobody waits for follow the others: they are run only to be timed */
    bool has_control_flow; /* frames or merges: the general propagator */
} Plan;

/* Compiles a graph whose nodes all run on devices of this process (Node.placed indexes devices); takes the graph over,
 * also on error. */
Error *plan_build(Graph *take, const DeviceSet *devices, SessionState *session, Plan **out) MUST_CHECK;
void plan_free(Plan *p);
