/* graph_def.h: Graph to and from serialised GraphDef. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "graph/graph.h"
#include "graph/graph_undo.h"

/* Adds the nodes and functions of a GraphDef to a graph, validated: names, ops, attributes, edges and their types. Nodes
 * may refer to nodes that are already there. On error the graph may hold part of it: use a fresh or copied graph. */
Error *graph_import(Graph *g, Str graph_def) MUST_CHECK;

/* The attribute (a bool) by which a client marks a NodeDef of a node that it has sent before and that has more inputs and outputs since:
 * a call, If, Case or While whose gradient was asked for. It is not kept. */
#define ATTR_GROWN "_rill_grown"

/* The same for a graph that is in use: nodes marked as grown take the place of those they were. On error the caller takes everything
 * back by `undo`, which graph_undo_begin made. */
Error *graph_extend(Graph *g, Str graph_def, GraphUndo *undo) MUST_CHECK;

typedef struct GraphExport {
    bool strip_defaults;            /* leave out attributes that equal the op's default */
    const Str *device_names;        /* (optional) by Node.placed; else Node.device is written */
    bool is_grown;                  /* with ATTR_GROWN */
} GraphExport;

void graph_export(const Graph *g, const GraphExport *options, StrBuf *out);
/* One NodeDef, without tag and length. */
void node_export(const Node *n, const GraphExport *options, StrBuf *out);

/* One NodeDef, read; strings point into the bytes. Used for graphs and for function bodies. */
typedef struct NodeDefView {
    Str name, op, device;
    Str *inputs;
    int input_count;
    Attr *attrs;
    int attr_count;
} NodeDefView;
Error *node_def_view(Arena *arena, Str node_def, NodeDefView *out) MUST_CHECK;

/* Checks that the edges into a resolved node have the types its op wants. */
Error *graph_validate_node(const Node *n) MUST_CHECK;
