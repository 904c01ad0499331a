/* rule.h: Rule, what the gradient of one op may ask and answer; the tables of all gradients. */
#pragma once
#include "gradients/builder.h"
#include "gradients/gradients.h"

typedef struct Rule Rule;

/* One op that can be differentiated. `add` adds nodes that compute the gradients of the inputs from those of the
 * outputs. */
typedef struct GradientDef {
    const char *op;
    void (*add)(Builder *b, Rule *r); /* NULL: nothing flows back through this op */
} GradientDef;

/* The node that is differentiated. Its values come only from here: inside of a loop they are those of the iteration
 * that is undone. */
const Node *rule_node(const Rule *r);
Output rule_in(Rule *r, int i); /* the value of input i; negative: from the end */
Output rule_out(Rule *r, int i);
Output rule_in_shape(Rule *r, int i); /* int32; cheaper in loops than the shape of the value */
bool rule_has_dy(const Rule *r, int i);
Output rule_dy(Rule *r, int i);          /* the gradient by output i; zeros when there is none */
Gradient rule_sparse_dy(Rule *r, int i); /* the same, perhaps sparse; output i must have one */
bool rule_wants(const Rule *r, int i);   /* whether input i leads to an x */
void rule_set(Rule *r, int i, Output dx);
void rule_set_sparse(Rule *r, int i, Output values, Output indices, Output dense_shape);
Output rule_value(
    Rule *r, Output forward);   /* any output of the graph before gradients, of the node's loop, as rule_in gives it */
Str rule_source(const Rule *r); /* differs between calls of gradients_add on a graph */

/* Attributes of the node; the Builder gets the error when it is missing. */
bool rule_bool(Builder *b, Rule *r, const char *name);
int64_t rule_int(Builder *b, Rule *r, const char *name);
double rule_float(Builder *b, Rule *r, const char *name);
DataType rule_type(Builder *b, Rule *r, const char *name);
Str rule_string(Builder *b, Rule *r, const char *name);

/* The value of an integer scalar input that is a constant of the graph. */
bool rule_const_int(Rule *r, int i, int64_t *out);

/* For ops that broadcast input i and j: sums the gradients gx of i and gy of j over what was broadcast and sets them.
 * Either may be none. */
void rule_set_reduced(Builder *b, Rule *r, int i, Output gx, int j, Output gy);

/* The same for one input, which was broadcast to full_shape. */
void rule_set_reduced_to(Builder *b, Rule *r, int i, Output g, Output full_shape);

#define GRADIENT_FILES(ROW) \
    ROW(special)            \
    ROW(unary)              \
    ROW(binary)             \
    ROW(array)              \
    ROW(reduce)             \
    ROW(matmul)             \
    ROW(nn)                 \
    ROW(conv)               \
    ROW(batch_norm)         \
    ROW(gather)             \
    ROW(segment)            \
    ROW(diag)               \
    ROW(linalg)             \
    ROW(banded)             \
    ROW(factors)            \
    ROW(einsum)             \
    ROW(fft)                \
    ROW(sparse)             \
    ROW(csr)                \
    ROW(ragged)             \
    ROW(image)              \
    ROW(quantize)           \
    ROW(sample)             \
    ROW(variable)           \
    ROW(control_flow)       \
    ROW(tensor_array)       \
    ROW(list)               \
    ROW(call)               \
    ROW(while)              \
    ROW(not_differentiable)

#define ROW(name) extern const GradientDef name##_gradients[];
GRADIENT_FILES(ROW)
#undef ROW

const GradientDef *gradient_find(Str op); /* NULL when there is no row */
void gradient_rules(StrMap *out);         /* all rows, by op */
