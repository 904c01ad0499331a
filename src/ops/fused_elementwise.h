/* fused_elementwise.h: FusedState, several nodes that run as one: a product, perhaps, and element-wise nodes that follow it. */
#pragma once
#include "ops/pieces.h"
#include "ops/tiles.h"

/* The state of a kernel of fused nodes. */
typedef struct FusedState {
    Pieces pieces;
    bool has_head;                      /* the first piece is a KERNEL_TAIL kernel, the others follow it while its output is in the cache */
    bool one_by_one;                    /* there is a piece that is no loop over elements */
    ElementLoop loops[TILE_MAX_PIECES]; /* not of the head */
    int tiles[TILE_MAX_PIECES];         /* where each result lies in the scratch */
    int tile_count;
    size_t largest_element; /* of a result */
    void *own;              /* (optional) freed with the state */
} FusedState;

/* For a node with parts, whose kernels are looked for in own_kernels (optional) first. When they must not be run one by one, a part that is no loop is
 * Unimplemented. */
Error *fused_init_parts(FusedState *st, const Node *node, const KernelDef *own_kernels, bool may_run_one_by_one) MUST_CHECK;
Error *fused_run(KernelContext *k); /* its state begins with a FusedState */
void fused_clear(void *state);
