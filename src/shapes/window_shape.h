/* window_shape.h: how many places a window has along one dimension; shared by convolutions, pools and patches. */
#pragma once
#include "shapes/shape_context.h"

typedef struct Window {
    int64_t size; /* DIM_UNKNOWN when not known */
    int64_t stride, dilation;
    int64_t pad_before, pad_after; /* for EXPLICIT padding */
} Window;

/* padding: "SAME", "VALID" or "EXPLICIT". */
int64_t window_places(ShapeContext *c, int64_t input, const Window *w, Str padding);

/* Where batch, depth and the spatial dimensions of an image stand. */
typedef struct ImageLayout {
    int rank, batch, depth, spatial; /* spatial: the first of rank - 2 */
} ImageLayout;
ImageLayout image_layout(Str data_format, int rank);
