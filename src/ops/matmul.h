/* matmul.h: the matrix product of each element type, and what a MatMul makes of its inputs. */
#pragma once
#include "graph/graph.h"
#include "kernels/gemm.h"
#include "tensor/shape.h"

typedef struct MatMulState {
    bool transpose_a, transpose_b;
} MatMulState;

Error *matmul_init(const Node *node, void *state) MUST_CHECK; /* reads the attributes of a MatMul */
/* Sizes of a product of the last two dimensions, the rest cleared; false when they do not fit. */
bool matmul_sizes(const MatMulState *st, const Shape *a, const Shape *b, Gemm *g);
GemmFn *gemm_of(DataType t); /* NULL: none */
