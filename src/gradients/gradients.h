/* gradients.h: adds to a graph the nodes that compute derivatives. */
#pragma once
#include "base/error.h"
#include "graph/graph.h"

/* The derivative by one x: a dense value; or, when indices has a node, rows `values` to be added to zeros of
 * dense_shape at those indices (the same index may come more than once). values without a node: y does not depend on x.
 */
typedef struct Gradient {
    Output values, indices, dense_shape;
} Gradient;

typedef struct GradientOptions {
    const Output *dxs;   /* (optional) gradients by each y; one without a node stands for ones. NULL: ones for all */
    const Output *stops; /* (optional) taken as constants: nothing flows back through them */
    int stop_count;
    const char *prefix; /* of the names of new nodes; NULL: "gradients". Made unique in the graph */
    bool colocate;      /* new nodes ask for the device of the node they differentiate; else for none */
    bool sparse;        /* the caller takes Gradients with indices; else all are dense */
} GradientOptions;

/* dys[i] becomes the sum over all ys of the derivative by xs[i], weighted by dxs: what tf.gradients gives.

   xs may be any outputs outside of loops and branches: placeholders, reads, references or handles of variables (the
   gradient by a handle is one by its value). dys[i].node is NULL when no y depends on xs[i] through differentiable ops.
   NotFound names the node and the op when a gradient must pass an op that has none; InvalidArgument when a y needs a dx
   that was not given (complex, integer). The graph must have passed graph_import. If, Case, While and calls on the way
   are rewritten to functions that return what their gradients need: their outputs get more, the ones they had stay;
   while loops of Enter and Exit get further variables. On error the graph may hold part of the new nodes. New functions
   go to g->functions, which must not be shared with readers meanwhile. */
Error *gradients_add(Graph *g, const Output *ys, int ny, const Output *xs, int nx, const Output *dxs,
                     const char *prefix, Output *dys) MUST_CHECK;
Error *gradients_add_with(Graph *g, const Output *ys, int ny, const Output *xs, int nx, const GradientOptions *options,
                          Gradient *dys) MUST_CHECK;

/* What is known of an op. */
typedef enum GradientKind {
    GRADIENT_UNKNOWN, /* no row: gradients that must pass it are an error */
    GRADIENT_RULE,
    GRADIENT_NONE, /* nothing flows back through it */
} GradientKind;
GradientKind gradient_kind(Str op);
