/* uniform_window.h: UniformWindow, the window of UniformQuantizedConvolution: dimensions in any order, strides, dilations of both sides, groups. */
#pragma once
#include "graph/graph.h"
#include "tensor/shape.h"

typedef enum WindowPadding { WINDOW_VALID, WINDOW_SAME, WINDOW_EXPLICIT } WindowPadding;

/* A list of an attribute; empty ones stand for ones, or for nothing. */
typedef struct WindowList {
    int64_t at[2 * SHAPE_MAX_RANK];
    int count;
} WindowList;

/* Which dimension of a tensor is which: batch (or output features), features (or input features), then space. */
typedef struct WindowOrder {
    int64_t dims[SHAPE_MAX_RANK];
    int count; /* 0: in this order */
} WindowOrder;

typedef struct UniformWindow {
    WindowPadding padding;
    WindowList strides, lhs_dilation, rhs_dilation, pads;
    int64_t feature_groups, batch_groups;
    WindowOrder lhs, rhs, out;
} UniformWindow;

Error *uniform_window_init(UniformWindow *w, const Node *node) MUST_CHECK;

/* A window for tensors of certain shapes: everything in the order batch, features, space. */
typedef struct WindowPlan {
    int rank, lhs[SHAPE_MAX_RANK], rhs[SHAPE_MAX_RANK], out[SHAPE_MAX_RANK]; /* where each dimension is */
    int64_t stride[SHAPE_MAX_RANK], lhs_dilation[SHAPE_MAX_RANK], rhs_dilation[SHAPE_MAX_RANK], before[SHAPE_MAX_RANK], after[SHAPE_MAX_RANK]; /* of space, from 2 */
    Shape shape; /* of the result */
} WindowPlan;

/* InvalidArgument in TensorFlow's words when they do not fit together. */
Error *uniform_window_plan(const UniformWindow *w, const Shape *lhs, const Shape *rhs, WindowPlan *plan) MUST_CHECK;
