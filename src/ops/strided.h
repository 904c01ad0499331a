/* strided.h: SliceSpec, what begin, end, strides and the masks of a StridedSlice mean for one shape. */
#pragma once
#include "graph/graph.h"
#include "tensor/tensor.h"

typedef struct SliceMasks {
    int64_t begin, end, ellipsis, new_axis, shrink_axis;
} SliceMasks;

typedef struct SliceSpec {
    Shape source;                   /* the shape that is sliced */
    int64_t start[SHAPE_MAX_RANK];  /* first index in each of its dimensions */
    int64_t stride[SHAPE_MAX_RANK]; /* 0 where at most one element is taken */
    Shape picked;                   /* how many in each */
    Shape final;                    /* after dropped and new axes; as many elements as picked */
} SliceSpec;

Error *slice_masks_init(const Node *node, void *masks) MUST_CHECK;
Error *slice_spec_init(SliceSpec *spec, const Shape *source, const Tensor *begin, const Tensor *end,
                       const Tensor *strides, const SliceMasks *masks) MUST_CHECK;
