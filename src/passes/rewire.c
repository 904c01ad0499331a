/* rewire.c: edges led elsewhere, chains of replacements followed to their end. */
#include <stdlib.h>

#include "base/memory.h"
#include "passes/pass_internal.h"

void rewire_init(Rewire *r, const Graph *g) {
    *r = (Rewire){.count = g->node_count};
    r->outputs = xcalloc((size_t)g->node_count, sizeof *r->outputs);
    r->controls = xcalloc((size_t)g->node_count, sizeof *r->controls);
}

void rewire_clear(Rewire *r) {
    free(r->outputs);
    free(r->controls);
    *r = (Rewire){0};
}

void rewire_output(Rewire *r, Graph *g, const Node *n, int index, Output to) {
    if (!r->outputs[n->id]) r->outputs[n->id] = arena_calloc(g->arena, (size_t)n->output_count, sizeof(Output));
    r->outputs[n->id][index] = to;
}

void rewire_control(Rewire *r, const Node *n, Node *to) {
    r->controls[n->id] = to;
}

Output rewire_find(const Rewire *r, Output o) {
    while (o.node->id < r->count && r->outputs[o.node->id] && r->outputs[o.node->id][o.index].node) o = r->outputs[o.node->id][o.index];
    return o;
}

static Node *find_control(const Rewire *r, Node *n) {
    while (n->id < r->count && r->controls[n->id]) n = r->controls[n->id];
    return n;
}

bool rewire_node(const Rewire *r, Node *n) {
    bool changed = false;
    for (int i = 0; i < n->input_count; i++) {
        Output to = rewire_find(r, n->inputs[i]);
        changed |= to.node != n->inputs[i].node || to.index != n->inputs[i].index;
        n->inputs[i] = to;
    }
    for (int i = 0; i < n->control_count; i++) {
        Node *to = find_control(r, n->controls[i]);
        changed |= to != n->controls[i];
        n->controls[i] = to;
    }
    return changed;
}

bool rewire_apply(const Rewire *r, Graph *g) {
    bool changed = false;
    for (int i = 0; i < g->node_count; i++) changed |= rewire_node(r, g->nodes[i]);
    return changed;
}
