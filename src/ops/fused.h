/* fused.h: FusedTail, what follows a product in _FusedMatMul and _FusedConv2D: bias or batch norm, then an activation.
 */
#pragma once
#include "runtime/kernel.h"

typedef enum Activation {
    ACTIVATION_NONE,
    ACTIVATION_RELU,
    ACTIVATION_RELU6,
    ACTIVATION_ELU,
    ACTIVATION_LEAKY_RELU,
    ACTIVATION_TANH,
    ACTIVATION_SIGMOID,
    ACTIVATION_GELU_TANH,
    ACTIVATION_GELU_ERF,
} Activation;

typedef struct FusedTail {
    bool bias, batch_norm;
    Activation activation;
    float epsilon, leaky_alpha;
} FusedTail;

Error *fused_tail_init(FusedTail *tail, const Node *node) MUST_CHECK; /* reads fused_ops, epsilon, leakyrelu_alpha */
/* The arguments of the tail begin at input `first`. There are enough of them; each has `channels` elements. */
Error *fused_tail_check(const FusedTail *tail, const KernelContext *k, int first) MUST_CHECK;
Error *fused_tail_sizes(const FusedTail *tail, const KernelContext *k, int first, int64_t channels) MUST_CHECK;
/* Applies it in place to z, whose last dimension is `channels`; float, half or bfloat16. */
Error *fused_tail_run(const FusedTail *tail, KernelContext *k, int first, Tensor *z, int64_t channels) MUST_CHECK;
/* The same for planes of `plane` elements each, one after the other for every channel (NCHW). */
Error *fused_tail_run_planes(const FusedTail *tail, KernelContext *k, int first, Tensor *z, int64_t channels, int64_t plane) MUST_CHECK;
