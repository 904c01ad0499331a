/* body_gradient.h: BodyGradient, the body of a function together with its gradient, to be split into a function for
 * each. */
#pragma once
#include "graph/function.h"
#include "gradients/builder.h"
#include "gradients/gradients.h"

typedef struct BodyGradient {
    FunctionBody *body; /* its graph also holds the gradient */
    bool *is_backward;  /* by node id: whether it computes the gradient */
    Node **dys;         /* by result: the _Arg that stands for its gradient, NULL when it has none */
    Gradient *dxs;      /* by argument: its gradient, without values when nothing flows back to it */
    Output *needs;      /* what the gradient uses of the function: arguments and values in between, each once */
    int need_count;
} BodyGradient;

/* given: by result, whether it has a gradient. wanted: by argument, whether its gradient is asked for; the function
 * must have as many of both. sparse (optional): by argument, whether its gradient may be rows. Functions made for calls
 * inside go to lib. */
Error *body_gradient_new(FunctionLibrary *lib, Str name_attr_list, const bool *wanted, const bool *sparse, int arg_count,
                         const bool *given, int ret_count, BodyGradient **out) MUST_CHECK;
void body_gradient_free(BodyGradient *m);
int body_need_arg(const BodyGradient *m, int need); /* which argument a need is; -1 for a value in between */
/* A further need, unless it is one already; its position. */
int body_need(BodyGradient *m, Output x);

/* A function in the making: room for `args` and `rets`. The Builder adds to its graph. */
FunctionBody *body_new(FunctionLibrary *lib, int args, int rets, Builder *b);
Output body_add_arg(Builder *b, FunctionBody *body, const char *name, DataType type);
void body_add_ret(FunctionBody *body, Output x);
/* Adds it to the library under a new name made of `wish`, which is returned; frees body. */
Str body_finish(Builder *b, FunctionLibrary *lib, FunctionBody *body, Str wish);
bool body_is_stateful(const FunctionBody *body);

/* The function itself as a new body with room for more arguments and results; needs (args and kept) as outputs there,
 * when asked for. */
FunctionBody *body_gradient_forward(const BodyGradient *m, FunctionLibrary *lib, int more_args, int more_rets,
                                    Builder *b, Output *needs);
/* The nodes of the gradient, copied to where the Builder adds; what they use is given, dxs are by argument (without dense_shape: it is the argument's). */
void body_gradient_copy(const BodyGradient *m, Builder *b, const Output *dys, const Output *needs, Gradient *dxs);

/* The body of the function that an attribute of a node names. */
Error *node_function_body(const FunctionLibrary *lib, Str name_attr_list, FunctionBody **out) MUST_CHECK;
/* Unknown shapes for `count` new outputs of a node, when its attribute output_shapes says something of the ones it had.
 */
void node_extend_shapes(Graph *g, Node *n, int count);
