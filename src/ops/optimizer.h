/* optimizer.h: what the dense and the sparse Apply ops share: the table of optimizers and the driver. */
#pragma once
#include "kernels/update.h"
#include "runtime/kernel.h"

typedef struct OptimizerState {
    const struct Optimizer *row;
    DataType dtype;
    UpdateType type;
    bool sparse, flag;
} OptimizerState;

/* For any op named [Resource][Sparse]Apply<Optimizer>. */
Error *optimizer_init(const Node *node, void *state) MUST_CHECK;
Error *optimizer_run(KernelContext *k) MUST_CHECK;
