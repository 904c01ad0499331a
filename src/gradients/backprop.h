/* backprop.h: the walk from ys back to xs, in a graph or in the body of one of its loops. */
#pragma once
#include "base/arena.h"
#include "base/hashmap.h"
#include "graph/frames.h"
#include "gradients/rule.h"

typedef struct LoopGradient LoopGradient; /* loop.h */

/* The Enter nodes that lead to one loop. */
typedef struct FrameEnters {
    Node **nodes;
    int count;
} FrameEnters;

/* One call of gradients_add. */
typedef struct Backprop {
    Graph *g;
    Builder b;
    Arena *scratch;
    StrMap rules;        /* op to GradientDef */
    FrameMap frames;     /* of the nodes there were at the start; later ones are in frame_of */
    FrameEnters *enters; /* by frame */
    IntMap frame_of;     /* node id to frame + 1, for nodes added to forward loops since */
    int node_count;      /* at the start */
    Str prefix;          /* unique in the graph */
    bool colocate;
    IntMap stops;               /* keys of outputs nothing flows back through */
    struct BranchMap *branches; /* which Switch each node depends on; made when a loop first needs it */
    IntMap loops;               /* by frame: struct ForwardLoop */
    IntMap *forward_nodes;      /* (optional) gets the ids + 1 of nodes that were added to forward loops */
} Backprop;

/* The graph outside of loops, or one loop that is being undone. */
typedef struct Scope {
    Backprop *p;
    struct Scope *parent;
    int frame;          /* whose nodes are differentiated here; loops inside of it count as one node each */
    LoopGradient *loop; /* NULL outside of loops */
    IntMap sums;        /* by output: struct Sum */
    IntMap xs;          /* by output: any value, for those asked for */
    bool *depends;      /* by unit (a node id, or node_count + frame): whether it depends on an x */
} Scope;

static inline uint64_t output_key(Output x) {
    return ((uint64_t)x.node->id << 24 | (uint64_t)x.index) + 1;
}

/* Fills dys[i], dense or sparse, with the gradient by xs[i]; values without a node when there is none. `given` are the
 * gradients by ys. */
void scope_backprop(Scope *s, const Output *ys, const Gradient *given, int ny, const Output *xs, int nx, Gradient *dys);

/* Only whether each of ys depends on one of xs. */
void scope_find_dependent(Scope *s, const Output *ys, int ny, const Output *xs, int nx, bool *found);

/* Whether ys need each of xs, smoothly or not. */
void scope_find_needed(Scope *s, const Output *ys, int ny, const Output *xs, int nx, bool *found);

/* Adds a part to the gradient by a forward output. */
void scope_add(Scope *s, Output forward, Gradient part);
/* The sum of the parts so far; false when there are none. */
bool scope_gradient(Scope *s, Output forward, Gradient *out);
bool scope_depends(const Scope *s, Output forward);
/* A forward value as nodes of this scope may use it: itself outside of loops; inside, what it was in the iteration
 * being undone. */
Output scope_value(Scope *s, Output forward);
int backprop_frame(const Backprop *p, const Node *n); /* the frame a node's outputs belong to */

/* gradients_add_with, and which of the new nodes belong to loops of the graph itself. */
Error *backprop_run(Graph *g, const Output *ys, int ny, const Output *xs, int nx, const GradientOptions *o,
                    IntMap *forward_nodes, Gradient *dys) MUST_CHECK;

void backprop_mark_forward(Backprop *p, int first); /* the nodes from id `first` on are such */

/* Undoes a whole loop, a child of the scope's frame: from the gradients by its exits to those by its inputs. */
void loop_backprop(Scope *s, int frame);

Output gradient_dense(Builder *b, Gradient x);
Gradient gradient_sum(Builder *b, const Gradient *parts, int count);
/* A sparse gradient of nothing by a value of this shape. */
Gradient gradient_no_rows(Builder *b, Output shape, DataType type, DataType index_type);

struct Rule {
    Scope *scope;
    const Node *node;
    const GradientDef *def;
};
