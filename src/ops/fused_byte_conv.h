/* fused_byte_conv.h: ByteConv, what _FusedConv2D does with bytes. */
#pragma once
#include "ops/window.h"

typedef struct ByteConv {
    Window win;
    bool relu;
} ByteConv;

Error *byte_conv_init(const Node *node, ByteConv *conv) MUST_CHECK;
/* Inputs: image, filter, bias, what is added (may be empty), the scale of the products (one, or one per channel) and of what is added. */
Error *byte_conv_run(KernelContext *k, const ByteConv *conv) MUST_CHECK;
