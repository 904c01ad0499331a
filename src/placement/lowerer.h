/* lowerer.h: one graph on its way to no functions: what is still to be lowered, and the nodes that take its place. For the files of the lowering only. */
#pragma once
#include "graph/function.h"
#include "graph/graph.h"
#include "placement/placer.h"

typedef enum Functional { NOT_FUNCTIONAL, CALL, REMOTE_CALL, IF, CASE, WHILE } Functional;

typedef struct Pending {
    Node *node;
    int depth;
    Node *gate; /* runs in the branch or iteration the node is in; NULL outside of those of functional nodes */
} Pending;

typedef struct Lowerer {
    Graph *g;
    const FunctionLibrary *lib;
    const PlacerDevice *devices; /* of the cluster, where they are known */
    int device_count;
    Pending *queue;
    size_t count, capacity;
    struct Replaced {
        Node *node;
        const Output *results;
    } *replaced; /* lowered nodes */
    size_t replaced_count, replaced_capacity;
    int body_count;    /* inlined so far */
    bool all;          /* If, Case and While are lowered even when the client did not ask for it */
    bool calls_only;   /* If, Case and While are not lowered even when the client asked for it */
    int nesting;       /* how many gradients this graph is inside of */
    bool has_switches; /* the client's own Switch or Enter nodes: a call may be in a branch without a gate to tell */
} Lowerer;

/* The copy of a function's body in the graph. */
typedef struct Inlined {
    Output *rets;
    int ret_count;
    Node *effects; /* a NoOp after everything that must run; NULL when nothing must */
} Inlined;

/* What kind of functional node `n` is, NOT_FUNCTIONAL when it stays as it is. */
Functional lowerer_kind(const Lowerer *l, const Node *n);
/* Whether its functions exist, take its inputs and return its outputs. */
bool lowerer_fits(Lowerer *l, const Node *n);
/* Remembers a node of the graph: it may have to be lowered (`gate` runs in its branch or iteration), and a Switch among the nodes says that calls may be in branches. */
void lowerer_note(Lowerer *l, Node *n, int depth, Node *gate);

/* A new name NODE/PART. */
Str lowerer_name(Lowerer *l, const Node *n, const char *part);
/* New nodes, on the device of `like`. lowerer_add leaves inputs, attributes and node_resolve to the caller. */
Error *lowerer_add(Lowerer *l, Str name, const char *op, const Node *like, Node **out) MUST_CHECK;
Error *lowerer_add_unary(Lowerer *l, Str name, const char *op, const Node *like, Output input, DataType type, Node **out) MUST_CHECK;
Error *lowerer_add_switch(Lowerer *l, Str name, const Node *like, Output data, Output pred, Node **out) MUST_CHECK;
Error *lowerer_add_merge(Lowerer *l, Str name, const Node *like, const Output *inputs, int count, Node **out) MUST_CHECK;
/* A NoOp that waits for what the node waits for; NULL when it waits for nothing. */
Error *lowerer_gate(Lowerer *l, Node *n, Node **gate) MUST_CHECK;
DataType lowerer_type(Output o);

/* Copies the body of `function` (a NameAttrList) into the graph as PREFIX/...; nodes that would start by themselves wait for `gate` if there is one. */
Error *lowerer_inline(Lowerer *l, Node *caller, Str function, Str prefix, const Output *args, int arg_count, Node *gate, int depth, Inlined *out) MUST_CHECK;

/* Whether all that has an effect in the functions of `n` must run, as in a call by name or a condition that TensorFlow runs as one kernel. Else only what the
   functions say must: PartitionedCall, and conditions and loops that are lowered at the client's wish. */
bool lowerer_runs_whole(const Node *n);

/* Turns the functional node itself into an IdentityN of its results that waits for `before`. */
Error *lowerer_become_results(Lowerer *l, Node *n, const Output *results, int count, Node *before) MUST_CHECK;
/* Lets the consumers of lowered nodes take the results directly. */
void lowerer_bypass_replaced(Lowerer *l);

/* The device that a RemoteCall is for. False: it stays a call, which then knows the tasks there are. */
bool lowerer_remote_device(Lowerer *l, Node *n, Str *out);

/* One kind of functional node each. */
Error *lower_if(Lowerer *l, Node *n, int depth) MUST_CHECK;
Error *lower_case(Lowerer *l, Node *n, int depth) MUST_CHECK;
Error *lower_while(Lowerer *l, Node *n, Node *enclosing, int depth) MUST_CHECK; /* `enclosing`: the gate of the body it is in, or NULL */
