/* order.c: nodes in an order in which values come before their use. */
#include <stdlib.h>

#include "base/memory.h"
#include "graph/frames.h"
#include "passes/pass_internal.h"

int *graph_fanout(const Graph *g) {
    int *fanout = xcalloc((size_t)g->node_count, sizeof *fanout);
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        for (int j = 0; j < n->input_count; j++) fanout[n->inputs[j].node->id]++;
        for (int j = 0; j < n->control_count; j++) fanout[n->controls[j]->id]++;
    }
    return fanout;
}

int *graph_levels(const Graph *g, Node *const *order) {
    int *levels = xcalloc((size_t)g->node_count, sizeof *levels);
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = order[i];
        int *level = &levels[n->id];
        for (int j = 0; j < n->input_count; j++)
            if (levels[n->inputs[j].node->id] >= *level) *level = levels[n->inputs[j].node->id] + 1;
        for (int j = 0; j < n->control_count; j++)
            if (levels[n->controls[j]->id] >= *level) *level = levels[n->controls[j]->id] + 1;
    }
    return levels;
}

static Node *source(const Node *n, int edge) {
    return edge < n->input_count ? n->inputs[edge].node : n->controls[edge - n->input_count];
}

/* A walk back from one node: edges[id] is 1 + the edge to look at next; 0: not seen, ENDED: in the order. False when an edge
   leads to a node whose own edges are still being followed. */
enum { ENDED = -1 };

typedef struct Walk {
    const bool *turns; /* by node id: NextIteration */
    int *edges;
    Node **stack, **order;
    int count;
} Walk;

static bool visit(Walk *w, Node *start) {
    int depth = 0;
    w->stack[depth++] = start;
    w->edges[start->id] = 1;
    while (depth) {
        Node *top = w->stack[depth - 1];
        int edge = w->edges[top->id] - 1;
        if (edge == top->input_count + top->control_count) {
            w->order[w->count++] = top;
            w->edges[top->id] = ENDED;
            depth--;
            continue;
        }
        w->edges[top->id]++;
        Node *src = source(top, edge);
        if (w->turns[src->id] || w->edges[src->id] == ENDED) continue;
        if (w->edges[src->id]) return false;
        w->edges[src->id] = 1;
        w->stack[depth++] = src;
    }
    return true;
}

Node **graph_order(const Graph *g) {
    size_t n = (size_t)g->node_count;
    bool *turns = xcalloc(n, sizeof *turns), ok = true;
    for (int i = 0; i < g->node_count; i++) turns[i] = node_is_next_iteration(g->nodes[i]);
    Walk w = {.turns = turns, .edges = xcalloc(n, sizeof *w.edges), .stack = xcalloc(n, sizeof *w.stack), .order = xcalloc(n, sizeof *w.order)};
    for (int i = 0; ok && i < g->node_count; i++)
        if (!w.edges[i]) ok = visit(&w, g->nodes[i]);
    free(w.stack);
    free(w.edges);
    free(turns);
    if (ok) return w.order;
    free(w.order);
    return NULL;
}
