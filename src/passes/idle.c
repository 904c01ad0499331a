/* idle.c: a node whose values nobody takes is not computed; who waits for it waits for what it would have taken. The gradients of a program
 * wait for each other (`tuple`), also for those by inputs that are not trained. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/memory.h"
#include "passes/pass_internal.h"

/* Made to fail when something is wrong: whoever waits for it wants that. */
static bool is_check(const Node *n) {
    static const char *const ops[] = {"CheckNumerics", "CheckNumericsV2", "EnsureShape", NULL};
    for (const char *const *op = ops; *op; op++)
        if (node_is(n, *op)) return true;
    return false;
}

/* A control edge from the node that gives an input says as much as its value: it comes when the value comes, and not otherwise. */
static bool inputs_say_all(const PassContext *c, const Node *n) {
    for (int i = 0; i < n->input_count; i++) {
        const Node *src = n->inputs[i].node;
        if (node_is_control_flow(src) || c->runtime->may_skip_outputs(src)) return false;
    }
    return true;
}

static Error *become_no_op(Graph *g, Node *n) {
    Node **controls = arena_alloc(g->arena, (size_t)(n->input_count + n->control_count + 1) * sizeof *controls);
    int count = 0;
    for (int i = 0; i < n->control_count; i++) controls[count++] = n->controls[i];
    for (int i = 0; i < n->input_count; i++) {
        bool again = false;
        for (int j = 0; j < count && !again; j++) again = controls[j] == n->inputs[i].node;
        if (!again) controls[count++] = n->inputs[i].node;
    }
    n->op = STR("NoOp");
    n->attrs = NULL;
    n->attr_count = n->input_count = 0;
    n->controls = controls;
    n->control_count = count;
    return node_resolve(g, n);
}

Error *pass_idle(PassContext *c) {
    Graph *g = c->graph;
    Node **order = graph_order(g);
    if (!order) return NULL;
    int *takers = xcalloc((size_t)g->node_count, sizeof *takers); /* edges that carry values of a node, by id */
    for (int i = 0; i < g->node_count; i++)
        for (int j = 0; j < g->nodes[i]->input_count; j++) takers[g->nodes[i]->inputs[j].node->id]++;
    Error *err = NULL;
    for (int i = g->node_count - 1; !err && i >= 0; i--) { /* consumers first: what only they took becomes idle too */
        Node *n = order[i];
        if (takers[n->id] || n->input_count == 0 || pass_is_root(c, n) || !node_is_pure(n) || is_check(n) || !inputs_say_all(c, n)) continue;
        for (int j = 0; j < n->input_count; j++) takers[n->inputs[j].node->id]--;
        err = become_no_op(g, n);
        c->changed = true;
    }
    free(takers);
    free(order);
    return err;
}
