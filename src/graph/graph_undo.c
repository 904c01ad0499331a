/* graph_undo.c: nodes as they were, kept until a change of their graph is sure. */
#include "graph/graph_undo.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

GraphUndo graph_undo_begin(const Graph *g) {
    return (GraphUndo){.node_count = g->node_count, .producer = g->producer, .min_consumer = g->min_consumer};
}

/* Attributes are replaced where they stand, so that they are copied; inputs and controls are replaced whole or added to. */
void graph_undo_save(GraphUndo *u, Graph *g, Node *n) {
    u->saved = vec_reserve(u->saved, &u->saved_capacity, (size_t)u->saved_count + 1, sizeof *u->saved);
    Node was = *n;
    was.attrs = arena_alloc(g->arena, sizeof *was.attrs * (size_t)(n->attr_count + 1));
    if (n->attr_count) memcpy(was.attrs, n->attrs, sizeof *was.attrs * (size_t)n->attr_count);
    u->saved[u->saved_count].node = n;
    u->saved[u->saved_count++].was = was;
}

void graph_undo(GraphUndo *u, Graph *g) {
    for (int i = u->saved_count - 1; i >= 0; i--) *u->saved[i].node = u->saved[i].was;
    graph_truncate(g, u->node_count);
    g->producer = u->producer;
    g->min_consumer = u->min_consumer;
}

void graph_undo_clear(GraphUndo *u) {
    free(u->saved);
    *u = (GraphUndo){0};
}
