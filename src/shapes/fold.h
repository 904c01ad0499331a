/* fold.h: the value of a node whose inputs are all known, for the small integer tensors that shapes are made of. */
#pragma once
#include "graph/graph.h"
#include "tensor/tensor.h"

/* *out is the value of one output, or NULL when this op is not folded or its inputs are wrong: nothing is then known. */
void fold_node(const Node *n, int output, Tensor *const *inputs, Tensor **out);
bool fold_knows(Str op);
