/* conv_primitive.h: a convolution of one shape made ready in oneDNN, with the filter in the layout it likes best; found again by shape. */
#pragma once
#include "kernels/conv2d.h"
#include "kernels/onednn.h"

/* Immutable once made; several threads may run it. */
typedef struct ConvPrimitive ConvPrimitive;

/* A reference to the one of this shape; NULL when oneDNN has none. */
ConvPrimitive *conv_primitive_find(Conv2dCache *cache, Conv2dKind kind, Conv2dType type, const Conv2dShape *s);
void conv_primitive_unref(ConvPrimitive *p);

/* The filter as the primitive wants it, or gives it (then floats). It is the caller's when `same`. */
typedef struct ConvLayout {
    size_t bytes;
    bool same;
} ConvLayout;
ConvLayout conv_primitive_layout(const ConvPrimitive *p);
bool conv_primitive_shares_layout(const ConvPrimitive *a, const ConvPrimitive *b);

/* From the caller's layout and type to the primitive's, or back in CONV2D_BACK_FILTER. */
bool conv_primitive_reorder(const ConvPrimitive *p, OnednnRunner *r, const void *from, void *to);
bool conv_primitive_run(const ConvPrimitive *p, OnednnRunner *r, void *in, void *inner_filter, void *out);
