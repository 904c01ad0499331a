/* window.h: Window, the sliding window of convolutions and pools: strides, dilations, padding and where they put it. */
#pragma once
#include "runtime/kernel.h"

typedef enum Padding { PADDING_VALID, PADDING_SAME, PADDING_EXPLICIT } Padding;

/* As the node says it; arrays in the order of the image's dimensions. */
typedef struct Window {
    int rank; /* of images: 4, or 5 when they have a depth */
    bool channels_first;
    int d, h, w, c; /* which dimensions these are; 0 is the batch (and d, when there is no depth) */
    Padding padding;
    int64_t strides[5], dilations[5], ksize[5];
    int64_t explicit_pads[10]; /* before and after of each dimension */
} Window;

/* Whether `count` explicit paddings go with images of `rank` dimensions whose channels are dimension channel_dim. */
Error *window_check_pads(const int64_t *pads, int count, int rank, int channel_dim) MUST_CHECK;

/* Reads padding, and data_format, strides, dilations or rates, ksize or ksizes, explicit_paddings and padding_list, which
 * stands above the padding, where the op has them. The rank is that of the data format, or as many as there are strides. */
Error *window_init(Window *win, const Node *node) MUST_CHECK;

/* How a window of k elements moves over one dimension. */
typedef struct Span {
    int64_t out, before, after; /* positions; padding */
} Span;
/* dim is win->d, win->h or win->w; InvalidArgument "Computed output size would be negative: ...". */
Error *window_span(const Window *win, int dim, int64_t in, int64_t k, Span *out) MUST_CHECK;
