/* pass.c: the table of passes and the run through it. */
#include "passes/pass.h"

#include <stdlib.h>

#include "base/memory.h"
#include "passes/pass_internal.h"

/* In this order: constants show behind identities, simplifications need constants, and equal nodes are equal only when their
   inputs are. Fused nodes are looked into by nobody else: they come last. */
static const Pass passes[] = {
    {"bypass", PASS_BYPASS, pass_bypass},       {"fold", PASS_FOLD, pass_fold},
    {"simplify", PASS_SIMPLIFY, pass_simplify}, {"share", PASS_SHARE, pass_share},
    {"idle", PASS_IDLE, pass_idle},             {"controls", PASS_CONTROLS, pass_controls},
    {"products", PASS_FUSE, pass_products},     {"fuse", PASS_FUSE, pass_fuse},
};

static void find_roots(PassContext *c) {
    int *fanout = graph_fanout(c->graph);
    c->root_count = c->graph->node_count;
    c->is_root = xcalloc((size_t)c->root_count, sizeof *c->is_root);
    for (int i = 0; i < c->root_count; i++) c->is_root[i] = fanout[i] == 0;
    free(fanout);
}

/* A node whose op nobody knows has no types to go by. Such a graph is left alone: it cannot be compiled anyway. */
static bool is_known(const Graph *g) {
    for (int i = 0; i < g->node_count; i++)
        if (!g->nodes[i]->info) return false;
    return true;
}

Error *graph_optimize(Graph *g, const PassOptions *options, const PassRuntime *runtime) {
    if ((options->disabled & PASS_ALL) == PASS_ALL || !is_known(g)) return NULL;
    PassContext c = {.graph = g, .options = options, .runtime = runtime};
    find_roots(&c);
    Error *err = NULL;
    for (size_t i = 0; !err && i < sizeof passes / sizeof passes[0]; i++) {
        if (options->disabled & passes[i].bit) continue;
        c.changed = false;
        err = error_wrap(passes[i].run(&c), "Pass %s", passes[i].name);
        if (!err && c.changed) pass_sweep(&c);
    }
    free(c.is_root);
    return err;
}
