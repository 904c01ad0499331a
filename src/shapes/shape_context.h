/* shape_context.h: ShapeContext, one node while its shapes are inferred; what the rules of ops are written with.

   A rule reads the shapes of the inputs and sets those of the outputs. The context keeps the first error; after it every function
   still returns something harmless, so a rule needs no checks of its own. A dimension of -1 is unknown, a rank of -1 too. */
#pragma once
#include "graph/graph.h"
#include "shapes/shape_inference.h"

typedef struct HandleShape {
    bool is_known;
    DataType dtype;
    PartialShape shape;
} HandleShape;

typedef struct ShapeContext {
    ShapeInfo *info;
    const Node *node;
    PartialShape *in, *out;
    HandleShape *in_handles, *out_handles;
    int in_count, out_count;
    const char *spec; /* of the row, NULL when it has none */
    Error *err;       /* the first one; without the words that name the node */
} ShapeContext;

typedef void ShapeRule(ShapeContext *c);

/* A row: the spec (shape_spec.h) is done first, then the rule; one of the two may be missing. */
typedef struct ShapeRow {
    const char *op;
    ShapeRule *rule;
    const char *spec;
} ShapeRow;

enum { DIM_UNKNOWN = -1 };
#define SHAPE_UNKNOWN ((PartialShape){.rank = -1})

void ctx_fail(ShapeContext *c, const char *fmt, ...) PRINTF(2, 3);
static inline bool ctx_failed(const ShapeContext *c) {
    return c->err != NULL;
}

/* ---- Shapes ---- */
PartialShape shape_unknown_dims(int rank); /* of that rank, nothing else known */
PartialShape ctx_rank(ShapeContext *c, PartialShape s, int rank);          /* s, which must have that rank */
PartialShape ctx_rank_at_least(ShapeContext *c, PartialShape s, int rank);
PartialShape ctx_rank_at_most(ShapeContext *c, PartialShape s, int rank);
PartialShape ctx_in_rank(ShapeContext *c, int i, int rank); /* of input i */
void ctx_want_scalar(ShapeContext *c, int i);
PartialShape ctx_merge(ShapeContext *c, PartialShape a, PartialShape b);        /* what both say; they must agree */
PartialShape ctx_merge_prefix(ShapeContext *c, PartialShape s, PartialShape prefix); /* s, whose first dims are prefix */
PartialShape ctx_concat(ShapeContext *c, PartialShape a, PartialShape b);
PartialShape ctx_sub(ShapeContext *c, PartialShape s, int from, int to); /* negative: from the end; SHAPE_END: to the end */
enum { SHAPE_END = 1 << 20 };
PartialShape ctx_replace(ShapeContext *c, PartialShape s, int axis, int64_t dim); /* unknown stays unknown */
PartialShape ctx_broadcast(ShapeContext *c, PartialShape a, PartialShape b);
/* An axis from a tensor or an attribute as an int; what no shape has stays out of range. */
int shape_axis(int64_t axis);
int64_t shape_dim(PartialShape s, int axis); /* negative: from the end; unknown when the rank is */
bool shape_is_full(PartialShape s);          /* everything is known */
int64_t shape_elements(PartialShape s);      /* 0 when any dimension is, else unknown when it is not full */

/* ---- Dimensions ---- */
int64_t ctx_merge_dim(ShapeContext *c, int64_t a, int64_t b);
int64_t ctx_dim_is(ShapeContext *c, int64_t dim, int64_t value); /* dim, which must be value */
int64_t ctx_dim_add(ShapeContext *c, int64_t a, int64_t b);
int64_t ctx_dim_sub(ShapeContext *c, int64_t a, int64_t b); /* negative results are an error */
int64_t ctx_dim_mul(ShapeContext *c, int64_t a, int64_t b);
int64_t ctx_dim_div(ShapeContext *c, int64_t a, int64_t b, bool must_divide);

/* ---- Inputs, attributes, outputs ---- */
void ctx_out(ShapeContext *c, int i, PartialShape s);
void ctx_out_all(ShapeContext *c, PartialShape s);
const Tensor *ctx_value(ShapeContext *c, int i); /* of input i when it is constant, else NULL */
/* The same for a whole number in a scalar (or in a vector of one); false when it is not known. */
bool ctx_int(ShapeContext *c, int i, int64_t *out);
/* A dimension of the size that scalar input i says; unknown when it does not; negative is an error. */
int64_t ctx_dim_of(ShapeContext *c, int i);
/* The shape that vector input i says. */
PartialShape ctx_shape_of(ShapeContext *c, int i);
PartialShape ctx_shape_of_or_scalar(ShapeContext *c, int i); /* the same; a scalar stands for nothing known */

/* Which inputs, [first, first + count), belong to the named argument of the op. */
void ctx_arg(ShapeContext *c, const char *name, int *first, int *count);
int ctx_arg_size(ShapeContext *c, const ArgInfo *arg); /* how many tensors an argument or result stands for */
int64_t ctx_attr_int(ShapeContext *c, const char *name);
bool ctx_attr_bool(ShapeContext *c, const char *name);
Str ctx_attr_str(ShapeContext *c, const char *name);
DataType ctx_attr_type(ShapeContext *c, const char *name);
PartialShape ctx_attr_shape(ShapeContext *c, const char *name);
/* At most max items; how many there are. Missing attributes have none. */
int ctx_attr_ints(ShapeContext *c, const char *name, int64_t *out, int max);
int ctx_attr_shapes(ShapeContext *c, const char *name, PartialShape *out, int max);

/* An axis of a shape of that rank, -rank <= axis < rank, as 0..rank-1; an error otherwise. */
int ctx_axis(ShapeContext *c, int64_t axis, int rank);

/* ---- Rules that many ops share ---- */
ShapeRule rule_same;      /* the output is like the first input */
ShapeRule rule_scalar;    /* all outputs are scalars */
ShapeRule rule_unknown;   /* TensorFlow says nothing of them either; also for ops without outputs */
ShapeRule rule_broadcast; /* of two inputs */
ShapeRule rule_merge_all; /* all inputs are alike, and the first output is too */
ShapeRule rule_identity;  /* each output is like the input of its number, and holds what that holds */
