/* share.c: equal nodes are computed once.

   Equal are pure nodes with the same op, device, attributes, inputs and controls. They are met in order, so that inputs have been made equal before. */
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "passes/pass_internal.h"

enum { MAX_VALUE = 64 << 10 }; /* attributes (constants) above this are not compared */

/* Says where the node came from or went to, not what it computes. */
static bool is_ignored(Str attr) {
    return str_is(attr, "_class") || str_is(attr, "_output_shapes");
}

static uint64_t mix(uint64_t h, uint64_t v) {
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

/* Attributes and controls have no order; 0: not to be compared. */
static uint64_t hash_of(const Node *n) {
    uint64_t h = mix(str_hash(n->op), (uint64_t)n->placed), attrs = 0, controls = 0;
    for (int i = 0; i < n->attr_count; i++) {
        if (is_ignored(n->attrs[i].name)) continue;
        if (n->attrs[i].value.len > MAX_VALUE) return 0;
        attrs += mix(str_hash(n->attrs[i].name), str_hash(n->attrs[i].value));
    }
    for (int i = 0; i < n->control_count; i++) controls += mix(1, (uint64_t)n->controls[i]->id);
    h = mix(mix(h, attrs), controls);
    for (int i = 0; i < n->input_count; i++) h = mix(mix(h, (uint64_t)n->inputs[i].node->id), (uint64_t)n->inputs[i].index);
    return h | 1;
}

static bool attrs_within(const Node *a, const Node *b) {
    for (int i = 0; i < a->attr_count; i++) {
        if (is_ignored(a->attrs[i].name)) continue;
        bool found = false;
        for (int j = 0; !found && j < b->attr_count; j++)
            found = str_eq(a->attrs[i].name, b->attrs[j].name) && str_eq(a->attrs[i].value, b->attrs[j].value);
        if (!found) return false;
    }
    return true;
}

static bool controls_within(const Node *a, const Node *b) {
    for (int i = 0; i < a->control_count; i++) {
        bool found = false;
        for (int j = 0; !found && j < b->control_count; j++) found = a->controls[i] == b->controls[j];
        if (!found) return false;
    }
    return true;
}

static bool is_equal(const Node *a, const Node *b) {
    if (!str_eq(a->op, b->op) || a->placed != b->placed || a->input_count != b->input_count || a->output_count != b->output_count) return false;
    for (int i = 0; i < a->input_count; i++)
        if (a->inputs[i].node != b->inputs[i].node || a->inputs[i].index != b->inputs[i].index) return false;
    return attrs_within(a, b) && attrs_within(b, a) && controls_within(a, b) && controls_within(b, a);
}

Error *pass_share(PassContext *c) {
    Graph *g = c->graph;
    Node **order = graph_order(g);
    if (!order) return NULL;
    IntMap first = {0}; /* by hash; of nodes that differ under one hash only the first is found */
    Rewire r;
    rewire_init(&r, g);
    for (int i = 0; i < g->node_count; i++) {
        Node *n = order[i];
        c->changed |= rewire_node(&r, n);
        if (!node_is_pure(n) && !node_is_constant(n)) continue;
        uint64_t hash = n->control_count < 64 ? hash_of(n) : 0;
        if (!hash) continue;
        Node *same = intmap_get(&first, hash);
        if (!same) {
            intmap_put(&first, hash, n);
        } else if (!pass_is_root(c, n) && is_equal(n, same)) {
            for (int j = 0; j < n->output_count; j++) rewire_output(&r, g, n, j, (Output){same, j});
            rewire_control(&r, n, same);
        }
    }
    c->changed |= rewire_apply(&r, g); /* edges back round loops */
    rewire_clear(&r);
    intmap_clear(&first);
    free(order);
    return NULL;
}
