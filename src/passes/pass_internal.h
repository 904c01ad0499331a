/* pass_internal.h: what the passes share: their context, the order of nodes, edges led elsewhere. */
#pragma once
#include "passes/pass.h"

typedef struct PassContext {
    Graph *graph;
    const PassOptions *options;
    const PassRuntime *runtime;
    bool *is_root;  /* by node id, for the first root_count nodes: the graph is run for it */
    int root_count; /* nodes added later are no roots */
    bool changed;   /* set by a pass that led an edge elsewhere: nodes may have become useless */
} PassContext;

static inline bool pass_is_root(const PassContext *c, const Node *n) {
    return n->id < c->root_count && c->is_root[n->id];
}

/* One row of the table in pass.c. */
typedef struct Pass {
    const char *name;
    unsigned bit;
    Error *(*run)(PassContext *c);
} Pass;

Error *pass_bypass(PassContext *c) MUST_CHECK;
Error *pass_fold(PassContext *c) MUST_CHECK;
Error *pass_simplify(PassContext *c) MUST_CHECK;
Error *pass_share(PassContext *c) MUST_CHECK;
Error *pass_idle(PassContext *c) MUST_CHECK;
Error *pass_controls(PassContext *c) MUST_CHECK;
Error *pass_products(PassContext *c) MUST_CHECK;
Error *pass_fuse(PassContext *c) MUST_CHECK;

/* Removes the nodes that no root, stateful node or node with a control consumer needs, and numbers the rest anew. */
void pass_sweep(PassContext *c);

/* ---- The order of nodes ---- */
/* Every node after those it takes values from or waits for, except round a loop (NextIteration). malloced; NULL when the graph
 * has another cycle. */
Node **graph_order(const Graph *g);
/* How many edges leave each node, by id; malloced. */
int *graph_fanout(const Graph *g);
/* The longest way from the beginning of the graph to each node, by id; malloced. */
int *graph_levels(const Graph *g, Node *const *order);

/* ---- Edges led elsewhere ---- */
/* Where the consumers of a node take its values instead, and what those that wait for it wait for instead. */
typedef struct Rewire {
    Output **outputs; /* by node id: [output_count], node NULL where it stays; NULL: all stay */
    Node **controls;  /* by node id; NULL: stays */
    int count;
} Rewire;
void rewire_init(Rewire *r, const Graph *g); /* for the nodes it has now */
void rewire_clear(Rewire *r);
void rewire_output(Rewire *r, Graph *g, const Node *n, int index, Output to);
void rewire_control(Rewire *r, const Node *n, Node *to);
Output rewire_find(const Rewire *r, Output o);
/* Leads the edges into a node, or into all nodes, to where they go now; true when one changed. */
bool rewire_node(const Rewire *r, Node *n);
bool rewire_apply(const Rewire *r, Graph *g);

/* ---- What nodes are ---- */
bool node_is_control_flow(const Node *n);  /* takes part in loops and branches: Switch, Merge, Enter, ... */
bool node_is_pure(const Node *n);          /* the same inputs always give the same plain values, and nothing else happens */
bool node_is_constant(const Node *n);      /* a Const of a plain or string type */
Error *node_constant(const Node *n, Tensor **out) MUST_CHECK; /* its value */
/* Turns n into a Const of this value; its controls stay. */
Error *node_become_constant(Graph *g, Node *n, const Tensor *value) MUST_CHECK;
/* A new Const beside n, on its device, that waits for what n waits for. */
Error *node_add_constant(Graph *g, const Node *n, const char *part, const Tensor *value, Node **out) MUST_CHECK;
