/* methods.h: how one gradient changes its variable, by the method of an optimizer. */
#pragma once
#include "rill/optimizer.h"

typedef struct MethodState {
    const RillOptimizer *o;
    RillGraph *g;
    double beta1, beta2;
    RillVariable *power1, *power2; /* of Adam */
} MethodState;

void method_begin(MethodState *m, RillGraph *g, const RillOptimizer *o, const RillVariable *first);
TF_Operation *method_apply(MethodState *m, const RillGradient *gradient);
/* What runs once after all variables have changed; NULL when there is nothing. */
TF_Operation *method_end(MethodState *m, TF_Operation *const *after, int count);
