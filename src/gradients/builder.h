/* builder.h: Builder, adds nodes to a graph with few words; the first error stays and makes everything after it do
 * nothing. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"
#include "tensor/tensor.h"

/* Values are Outputs; one without a node is "none", and what an op made after an error returns. */
typedef struct Builder {
    Graph *g;
    Error *error;
    Str scope;   /* new nodes are called SCOPE/OP */
    Str device;  /* of new nodes */
    Node *pivot; /* inside of a loop: nodes without inputs wait for it, which puts them there; else NULL */
    Attr *attrs; /* of the next node, set by b_with_* */
    int attr_count;
    size_t attr_capacity;
    const Node *like; /* the next node takes attributes from it */
} Builder;

#define NO_OUTPUT ((Output){NULL, 0})
static inline bool has(Output x) {
    return x.node != NULL;
}
static inline bool same_output(Output a, Output b) {
    return a.node == b.node && a.index == b.index;
}
DataType output_dtype(Output x); /* never a reference; DT_INVALID for none */
bool dtype_is_complex(DataType t);
bool dtype_is_float(DataType t);     /* half, bfloat16, float, double */
bool dtype_is_trainable(DataType t); /* floats and complex numbers, lists (variant), and handles of variables */

void builder_clear(Builder *b); /* frees what it holds; the error stays for the caller to take */
void b_fail(Builder *b, Error *take);

/* Attributes of the next node: give them after its inputs are made. Types and numbers that follow from its inputs need
 * not be given. */
void b_with(Builder *b, const char *name, Str value); /* serialised AttrValue */
void b_with_bool(Builder *b, const char *name, bool v);
void b_with_int(Builder *b, const char *name, int64_t v);
void b_with_float(Builder *b, const char *name, float v);
void b_with_type(Builder *b, const char *name, DataType v);
void b_with_string(Builder *b, const char *name, const char *v);
void b_with_attrs_of(Builder *b, const Node *n); /* those the next op has too and that were not given otherwise */

/* A node with these inputs; NULL after an error. */
Node *b_node(Builder *b, const char *op, const Output *inputs, int count);
Output b_op(Builder *b, const char *op, const Output *inputs, int count); /* its first output */
Output b_op0(Builder *b, const char *op);
Output b_op1(Builder *b, const char *op, Output x);
Output b_op2(Builder *b, const char *op, Output x, Output y);
Output b_op3(Builder *b, const char *op, Output x, Output y, Output z);
Output b_op4(Builder *b, const char *op, Output x, Output y, Output z, Output u);
Output b_op5(Builder *b, const char *op, Output x, Output y, Output z, Output u, Output v);
static inline Output output_of(Node *n, int i) {
    return (Output){n, i};
}

/* Constants. */
Output b_const(Builder *b, Tensor *take);
Output b_scalar(Builder *b, DataType type, double v);
Output b_i32(Builder *b, int v);
Output b_i32s(Builder *b, int count, const int *v); /* a vector */

/* Arithmetic. Casts and conjugates that change nothing are left out. */
Output b_add(Builder *b, Output x, Output y);
Output b_sub(Builder *b, Output x, Output y);
Output b_mul(Builder *b, Output x, Output y);
Output b_div(Builder *b, Output x, Output y); /* RealDiv */
Output b_neg(Builder *b, Output x);
Output b_square(Builder *b, Output x);
Output b_scale(Builder *b, Output x, double factor);
Output b_shift(Builder *b, Output x, double term); /* x + term */
Output b_from(Builder *b, double term, Output x);  /* term - x */
Output b_conj(Builder *b, Output x);
Output b_cast(Builder *b, Output x, DataType type);
Output b_select(Builder *b, Output condition, Output x, Output y); /* SelectV2 */
Output b_where_or_zero(Builder *b, Output condition, Output x);    /* x where it holds, else 0 */
Output b_sum(Builder *b, Output x, Output axes, bool keep_dims);
Output b_prod(Builder *b, Output x, Output axes);
Output b_identity(Builder *b, Output x);

/* Shapes, int32. */
Output b_shape(Builder *b, Output x);
Output b_rank(Builder *b, Output x);
Output b_size(Builder *b, Output x);
Output b_reshape(Builder *b, Output x, Output shape);
Output b_reshape_like(Builder *b, Output x, Output like);
Output b_flatten(Builder *b, Output x); /* to a vector */
Output b_expand(Builder *b, Output x, int axis);
Output b_squeeze(Builder *b, Output x, int axis);
Output b_zeros_like(Builder *b, Output x);
Output b_ones_like(Builder *b, Output x);
Output b_fill(Builder *b, Output shape, Output value);
Output b_broadcast(Builder *b, Output x, Output shape);
Output b_concat(Builder *b, const Output *parts, int count, int axis);
Output b_concat2(Builder *b, Output x, Output y, int axis);
Output b_range(Builder *b, Output from, Output to);    /* int32, in steps of one */
Output b_gather(Builder *b, Output x, Output indices); /* along the first axis */
Output b_slice(Builder *b, Output x, Output begin, Output size);
Output b_item(Builder *b, Output vector, int i); /* element i of a vector, from its end when negative, as a scalar */
Output b_items(Builder *b, Output vector, int from,
               int to); /* elements [from, to), from the end when negative; to 0: to the end */
Output b_pack(Builder *b, const Output *parts, int count);
Output b_transpose(Builder *b, Output x, Output perm);
Output b_swap_last(Builder *b, Output x, bool conjugate); /* the last two dimensions change places */
Output b_matmul(Builder *b, Output x, Output y, bool transpose_x, bool transpose_y);
Output b_batch_matmul(Builder *b, Output x, Output y, bool adjoint_x, bool adjoint_y);
