/* variable.c: gradients of reading variables: a handle's gradient is that of the value. */
#include "gradients/rule.h"

static void read_grad(Builder *b, Rule *r) {
    (void)b;
    Gradient dy = rule_sparse_dy(r, 0);
    rule_set_sparse(r, 0, dy.values, dy.indices, dy.dense_shape);
}

const GradientDef variable_gradients[] = {
    {"ReadVariableOp", read_grad},
    {0},
};
