/* shape_info_internal.h: what the files of this module share of ShapeInfo. */
#pragma once
#include "base/hashmap.h"
#include "shapes/shape_context.h"

typedef struct NodeShapes {
    PartialShape *shapes; /* by output; NULL: not inferred */
    HandleShape *handles;
    int count;
} NodeShapes;

struct ShapeInfo {
    const Graph *graph;
    Arena *arena;
    NodeShapes **nodes; /* by node id, NULL: not inferred */
    size_t node_capacity;
    StrMap rules;      /* by op: const ShapeRow * */
    IntMap constants;  /* by output: Tensor *, or a mark that it is none */
    int constant_depth;
    ShapeContext *caller; /* (optional) the call whose function body the graph is */
    int call_depth;
};

/* A ShapeInfo for the body of a function that `caller` calls: arguments are as the inputs there. */
ShapeInfo *shape_info_for_call(const Graph *body, ShapeContext *caller);
NodeShapes *shape_info_node(const ShapeInfo *info, const Node *n); /* NULL when it was not inferred */
void shape_info_forget_unknown_constants(ShapeInfo *info);
void shape_info_clear_constants(ShapeInfo *info);
/* A node was inferred: what was known of its values goes, and they are worked out from those of its inputs. Doing so at once
 * keeps long chains from being followed back from their end. */
void shape_info_note_constants(ShapeInfo *info, const Node *n);
