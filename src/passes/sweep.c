/* sweep.c: removes what nothing needs any more. */
#include <stdlib.h>

#include "base/memory.h"
#include "passes/pass_internal.h"

static void mark(Node *n, bool *keep, Node **stack, int *depth) {
    if (keep[n->id]) return;
    keep[n->id] = true;
    stack[(*depth)++] = n;
}

void pass_sweep(PassContext *c) {
    Graph *g = c->graph;
    bool *keep = xcalloc((size_t)g->node_count, sizeof *keep);
    Node **stack = xcalloc((size_t)g->node_count, sizeof *stack);
    int depth = 0;
    for (int i = 0; i < g->node_count; i++)
        if (pass_is_root(c, g->nodes[i]) || node_is_stateful(g->nodes[i])) mark(g->nodes[i], keep, stack, &depth);
    while (depth) {
        Node *n = stack[--depth];
        for (int i = 0; i < n->input_count; i++) mark(n->inputs[i].node, keep, stack, &depth);
        for (int i = 0; i < n->control_count; i++) mark(n->controls[i], keep, stack, &depth);
    }
    bool *is_root = xcalloc((size_t)g->node_count, sizeof *is_root);
    int count = 0;
    for (int i = 0; i < g->node_count; i++) {
        Node *n = g->nodes[i];
        if (!keep[i]) {
            strmap_remove(&g->by_name, n->name);
            continue;
        }
        is_root[count] = pass_is_root(c, n);
        n->id = count;
        g->nodes[count++] = n;
    }
    g->node_count = c->root_count = count;
    free(c->is_root);
    c->is_root = is_root;
    free(stack);
    free(keep);
}
