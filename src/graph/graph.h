/* graph.h: Graph, nodes joined by edges; what a client sends and all passes work on. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hashmap.h"
#include "graph/attr.h"
#include "graph/op_def.h"
#include "tensor/dtype.h"

typedef struct Node Node;

/* One output of a node: where a data edge starts. */
typedef struct Output {
    Node *node;
    int index;
} Output;

struct Node {
    int id; /* position in graph->nodes */
    Str name, op;
    Str device;         /* as requested; "" when not */
    int placed;         /* index of the device it was placed on, -1 before */
    const OpInfo *info; /* NULL: an op nobody registered; such a node has no known types and cannot run */
    Attr *attrs;        /* as given; defaults come from info */
    int attr_count;
    Output *inputs; /* data edges, in order */
    int input_count;
    int expected_inputs; /* how many the op wants */
    Node **controls; /* nodes that must run before */
    int control_count;
    DataType *input_types, *output_types; /* as the op declares them; may be references */
    int output_count;
    /* Of a node made of several others (passes/fuse.c): those, in order, the last being the one it is named after. Their inputs
     * are earlier parts, by Node.id their position; or, with node NULL, inputs of this node. */
    Node **parts;
    int part_count;
};

typedef struct FunctionLibrary FunctionLibrary;

/* Grows only. Everything in it lives in its arena. */
typedef struct Graph {
    Arena *arena;
    Node **nodes;
    int node_count;
    size_t node_capacity;
    StrMap by_name;
    int producer, min_consumer;
    FunctionLibrary *functions; /* the graph's own; see graph/function.h */
    bool is_function_body;      /* names of its nodes mean nothing to the session */
} Graph;

Graph *graph_new(void);
void graph_free(Graph *g);
Node *graph_find(const Graph *g, Str name);

/* Adds a node without inputs; strings and attributes are copied into the graph. Names are unique: AlreadyExists. */
Error *graph_add_node(Graph *g, Str name, Str op, Str device, Node **out) MUST_CHECK;
/* The same for strings that already live in the graph's arena. */
Error *graph_adopt_node(Graph *g, Str name, Str op, Str device, Node **out) MUST_CHECK;
/* A node like n, of another graph, without its edges; its strings and attributes are shared: that graph must live on. */
Error *graph_copy_node(Graph *g, const Node *n, Node **out) MUST_CHECK;
/* Drops the nodes from `count` on, which no other node uses; functions and memory stay. */
void graph_truncate(Graph *g, int count);
/* An unused name that starts with prefix. */
Str graph_unique_name(Graph *g, Str prefix);

void node_add_attr(Graph *g, Node *n, Str name, Str value); /* replaces one of that name */
void node_add_defaults(Graph *g, Node *n); /* attributes of its op that were not given, with their default values */
void node_set_inputs(Graph *g, Node *n, const Output *inputs, int count);
void node_add_input(Graph *g, Node *n, Output input);
void node_add_control(Graph *g, Node *n, Node *before); /* once for each pair */
/* Finds the op (or function of that name) and works out input and output types from the attributes; the edges are checked by
 * graph_validate_node. */
Error *node_resolve(Graph *g, Node *n) MUST_CHECK;

/* The value of an attribute, given or default; false when the node has none. */
bool node_attr(const Node *n, const char *name, Str *value);
/* The same decoded. An Error names the node and the attribute when it is missing or of another kind. */
Error *node_attr_string(const Node *n, const char *name, Str *out) MUST_CHECK;
Error *node_attr_int(const Node *n, const char *name, int64_t *out) MUST_CHECK;
Error *node_attr_float(const Node *n, const char *name, float *out) MUST_CHECK;
Error *node_attr_bool(const Node *n, const char *name, bool *out) MUST_CHECK;
Error *node_attr_type(const Node *n, const char *name, DataType *out) MUST_CHECK;
Error *node_attr_shape(const Node *n, const char *name, PartialShape *out) MUST_CHECK;
/* Lists, malloced, *count items (items may be NULL when there are none). */
Error *node_attr_ints(const Node *n, const char *name, int64_t **items, int *count) MUST_CHECK;
Error *node_attr_floats(const Node *n, const char *name, float **items, int *count) MUST_CHECK;
Error *node_attr_strings(const Node *n, const char *name, Str **items, int *count) MUST_CHECK;
Error *node_attr_types(const Node *n, const char *name, DataType **items, int *count) MUST_CHECK;
Error *node_attr_shapes(const Node *n, const char *name, PartialShape **items, int *count) MUST_CHECK;

/* The tensors that a named argument of the op stands for: `count` inputs or outputs from `from` on. */
Error *node_arg_range(const Node *n, bool is_input, Str arg_name, int *from, int *count) MUST_CHECK;
/* Which output the `position`-th tensor of the named output argument is. */
Error *node_output_index(const Node *n, Str arg_name, int position, int *out) MUST_CHECK;

static inline bool node_is(const Node *n, const char *op) {
    return str_is(n->op, op);
}
bool node_is_stateful(const Node *n);
/* Of a node whose op is not registered: NotFound, with its name and what to do. */
Error *node_unknown_op(const Node *n) MUST_CHECK;
