/* shape_inference.h: ShapeInfo, what is known of the shape of every output of a graph before it runs. */
#pragma once
#include <stdbool.h>

#include "base/error.h"
#include "graph/graph.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

/* Belongs to one graph, which must outlive it and may grow. Says of each output what TensorFlow would say: a shape that is
 * known, in part, or not at all. Not thread-safe. */
typedef struct ShapeInfo ShapeInfo;

ShapeInfo *shape_info_new(const Graph *g);
void shape_info_free(ShapeInfo *info);

/* Works out the shapes of a node's outputs. The node was added and resolved, its inputs are set, and those that were inferred
 * before are used; of others (back edges of loops) nothing is known. A node inferred before is inferred again.
 * InvalidArgument when its inputs cannot go together; the message names the node, the shapes and where they come from. */
Error *shapes_infer_node(ShapeInfo *info, const Node *n) MUST_CHECK;
/* The same for all nodes that were not inferred yet, inputs first. */
Error *shapes_infer_graph(ShapeInfo *info) MUST_CHECK;

/* Nothing known (rank -1) for a node that was not inferred or whose op is unknown. */
void shapes_of(const ShapeInfo *info, Output output, PartialShape *out);
bool shapes_inferred(const ShapeInfo *info, const Node *n);

/* Adds what the caller knows: merged with what is there; InvalidArgument when the two contradict each other. Nodes that were
 * inferred before from this output are not inferred again. */
Error *shapes_set(ShapeInfo *info, Output output, const PartialShape *shape) MUST_CHECK;

/* Forgets the nodes from this id on: they were taken out of the graph. */
void shapes_forget(ShapeInfo *info, int first_id);

/* What a resource or variant holds: of a variable its value, of a tensor list its elements. False when nothing is known. */
bool shapes_handle(const ShapeInfo *info, Output output, DataType *dtype, PartialShape *shape);
void shapes_set_handle(ShapeInfo *info, Output output, DataType dtype, const PartialShape *shape);

/* The value of an output that does not depend on anything a step brings, or NULL: constants, shapes that are known, and
 * arithmetic on them. Borrowed from info. */
const Tensor *shapes_constant(ShapeInfo *info, Output output);
/* The vector that an output is, read as a shape, as far as it is known: [?,3] for Pack(n, 3). */
void shapes_constant_as_shape(ShapeInfo *info, Output output, PartialShape *out);

/* Whether there is a rule for the op. */
bool shapes_has_rule(const ShapeInfo *info, Str op);
