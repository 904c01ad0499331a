/* pieces.h: Pieces, the nodes that a fused node stands for, with their own kernels. */
#pragma once
#include "runtime/kernel.h"

typedef struct Piece {
    const Node *node;
    const KernelDef *def;
    KernelFn *run;
    void *state;
} Piece;

typedef struct Pieces {
    Piece *pieces;
    int count;
    int *last_use;       /* by piece: the last one that takes its result; count for the last */
    int *input_last_use; /* the same of each input of the fused node */
} Pieces;

enum { PIECE_MAX_INPUTS = 8, PIECE_MAX_OUTPUTS = 6 }; /* only the first output is of use to others */

/* InvalidArgument when the node has no parts; clear it also then. own_kernels (optional), ended by {0}, have kernels for what is no op. */
Error *pieces_init(Pieces *p, const Node *fused, const KernelDef *own_kernels) MUST_CHECK;
void pieces_clear(Pieces *p);

/* Runs piece i as if it stood alone. values[j] are the results of earlier pieces; its own is set. What nobody takes later is written on and freed, unless
 * all is to be kept. tail (optional) is for a KERNEL_TAIL kernel. When it fails, k->node is its node. */
Error *piece_run(KernelContext *k, const Pieces *p, int i, bool keep, const OutputTail *tail, Tensor **values) MUST_CHECK;
/* Runs those from `first` on, one by one; values are those of the earlier ones. Output 0 of k is the result of the last. */
Error *pieces_run(KernelContext *k, const Pieces *p, int first, Tensor **values) MUST_CHECK;
/* Where an input of piece i comes from: an input of k, or values. */
Tensor *piece_input(const KernelContext *k, const Piece *piece, int input, Tensor *const *values);
