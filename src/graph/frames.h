/* frames.h: which loop each node of a graph runs in. */
#pragma once
#include "base/error.h"
#include "graph/graph.h"

/* A static loop: all Enter nodes with one frame_name in one parent. frames[0] is the root, outside of all loops. */
typedef struct Frame {
    Str name;
    int parent; /* -1 for the root */
    int parallel_iterations;
    Node *loop_cond; /* NULL when the graph holds none */
    int enter_count;
} Frame;

typedef struct FrameMap {
    Frame *frames;
    int frame_count;
    int *node_frame;  /* by node id: where the node runs. An Enter runs in the parent, an Exit in the loop */
    int *enter_frame; /* by node id: the frame an Enter leads to, -1 for other nodes */
} FrameMap;

bool node_is_enter(const Node *n);
bool node_is_exit(const Node *n);
bool node_is_next_iteration(const Node *n);

/* InvalidArgument when a node has inputs from different frames or leaves a loop it is not in. */
Error *frame_map_build(const Graph *g, FrameMap *out) MUST_CHECK;
void frame_map_clear(FrameMap *m);
int frame_of_output(const FrameMap *m, const Node *n); /* the frame its outputs belong to */
