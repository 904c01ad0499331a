/* parse_example.h: ParseState, which features are wanted of serialised examples and as what; how they are read. */
#pragma once
#include "base/threadpool.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

/* What the attributes say. */
typedef struct ParseState {
    int sparse_count, dense_count, ragged_count, split_count, shape_count;
    DataType *sparse_types, *dense_types, *ragged_types, *split_types;
    PartialShape *shapes;
    Str *keys; /* where attributes name them: of sparse, dense and ragged columns; copies */
} ParseState;

/* From a node that names its keys in attributes. */
Error *parse_state_init(const Node *node, ParseState *s) MUST_CHECK;
void parse_state_clear(void *state);

/* How many tensors come out: indices, values, shapes of sparse columns, dense ones, values and splits of ragged ones. */
int parse_result_count(const ParseState *s);
/* `serialized` is one example or a vector of them; keys are those of sparse, dense and ragged columns in this order, defaults those of
 * dense ones. Fills out[parse_result_count], cleared before; what is there after an error is the caller's to unref. */
Error *parse_examples(const ParseState *s, ThreadPool *pool, const Tensor *serialized, const Tensor *names, const Str *keys,
                      Tensor *const *defaults, Tensor **out) MUST_CHECK;
