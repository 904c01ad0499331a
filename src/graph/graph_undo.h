/* graph_undo.h: GraphUndo, what a graph was before a change that may fail. */
#pragma once
#include "graph/graph.h"

typedef struct GraphUndo {
    int node_count, producer, min_consumer;
    struct SavedNode {
        Node *node;
        Node was;
    } *saved;
    int saved_count;
    size_t saved_capacity;
} GraphUndo;

GraphUndo graph_undo_begin(const Graph *g);
/* Called before a node is given other inputs, attributes or another op. Once for each node. */
void graph_undo_save(GraphUndo *u, Graph *g, Node *n);
/* Takes back all that changed since, but for functions and memory; what was added must be used by nobody else. */
void graph_undo(GraphUndo *u, Graph *g);
void graph_undo_clear(GraphUndo *u);
