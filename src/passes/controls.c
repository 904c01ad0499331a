/* controls.c: drops control edges that say nothing new, and NoOps that only pass one on. */
#include <stdlib.h>

#include "base/memory.h"
#include "passes/pass_internal.h"

/* Comes at once, always and outside of all loops: nobody needs to wait for it. */
static bool is_immediate(const Node *n) {
    return n->input_count == 0 && n->control_count == 0 && (node_is(n, "Const") || node_is(n, "NoOp"));
}

static bool gives_value(const Node *src, const Node *n) {
    for (int i = 0; i < n->input_count && i < 64; i++) /* a useless edge does no harm; looking for it in a long list would */
        if (n->inputs[i].node == src) return true;
    return false;
}

/* A node that counts or overlooks dead inputs takes each edge for what it is. */
static bool counts_edges(const Node *n) {
    return node_is_control_flow(n);
}

static bool drop_controls(Node *n) {
    int kept = 0;
    for (int i = 0; i < n->control_count; i++) {
        Node *src = n->controls[i];
        bool again = false;
        for (int j = 0; !again && j < kept && j < 64; j++) again = n->controls[j] == src;
        if (again || is_immediate(src) || gives_value(src, n)) continue;
        n->controls[kept++] = src;
    }
    bool changed = kept != n->control_count;
    n->control_count = kept;
    return changed;
}

/* A NoOp that waits for one node of its device: who waits for it waits for that. */
static bool only_passes_on(const PassContext *c, const Node *n) {
    return node_is(n, "NoOp") && n->control_count == 1 && n->controls[0]->placed == n->placed && !pass_is_root(c, n);
}

Error *pass_controls(PassContext *c) {
    Graph *g = c->graph;
    Rewire r;
    rewire_init(&r, g);
    for (int i = 0; i < g->node_count; i++)
        if (only_passes_on(c, g->nodes[i])) rewire_control(&r, g->nodes[i], g->nodes[i]->controls[0]);
    c->changed = rewire_apply(&r, g);
    rewire_clear(&r);
    for (int i = 0; i < g->node_count; i++)
        if (g->nodes[i]->control_count && !counts_edges(g->nodes[i])) c->changed |= drop_controls(g->nodes[i]);
    return NULL;
}
