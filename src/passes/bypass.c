/* bypass.c: consumers of an Identity take its input.

   An Identity that waits for something, changes the device or reads a reference does more than pass a value on, and stays. */
#include "passes/pass_internal.h"

static bool is_identity(const Node *n) {
    static const char *const ops[] = {"Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (node_is(n, ops[i])) return true;
    return false;
}

static bool passes_values_on(const Node *n) {
    if (n->control_count || n->input_count != n->output_count || n->input_count == 0 || !is_identity(n)) return false;
    for (int i = 0; i < n->input_count; i++) {
        Output in = n->inputs[i];
        if (in.node->placed != n->placed || dtype_is_ref(in.node->output_types[in.index])) return false;
    }
    return true;
}

Error *pass_bypass(PassContext *c) {
    Graph *g = c->graph;
    Rewire r;
    rewire_init(&r, g);
    for (int i = 0; i < g->node_count; i++) {
        Node *n = g->nodes[i];
        if (!passes_values_on(n)) continue;
        for (int j = 0; j < n->output_count; j++) rewire_output(&r, g, n, j, n->inputs[j]);
        /* Who waits for the Identity alone may wait for its input, unless that may come out dead from a node that ran. */
        Node *src = n->inputs[0].node;
        if (n->input_count == 1 && !c->runtime->may_skip_outputs(src)) rewire_control(&r, n, src);
    }
    c->changed = rewire_apply(&r, g);
    rewire_clear(&r);
    return NULL;
}
