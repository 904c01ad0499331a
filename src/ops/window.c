/* window.c: reads the attributes of a sliding window and computes its positions. */
#include "ops/window.h"

#include <stdlib.h>

/* An attribute of exactly `want` numbers; left alone when the op has none of that name. */
static Error *read_ints(const Node *node, const char *name, int64_t *out, int want, bool empty_ok) {
    Str value;
    if (!node_attr(node, name, &value)) return NULL;
    int64_t *items = NULL;
    int count = 0;
    Error *err = node_attr_ints(node, name, &items, &count);
    if (err || (count == 0 && empty_ok)) goto out;
    if (count != want) {
        err = error_invalid("%.*s: %s must have %d elements, got %d", STR_ARG(node->op), name, want, count);
        goto out;
    }
    for (int i = 0; i < want; i++) {
        out[i] = items[i];
        if (items[i] < 0 || items[i] > INT32_MAX) {
            err = error_invalid("%.*s: %s[%d] = %lld is out of range", STR_ARG(node->op), name, i, (long long)items[i]);
        }
        if (err) break;
    }
out:
    free(items);
    return err;
}

/* The layout of images: data_format, or channels last in as many dimensions as the op has strides. */
static Error *read_layout(Window *win, const Node *node) {
    Str value, format = STR("NHWC");
    if (node_attr(node, "data_format", &value)) {
        Error *err = node_attr_string(node, "data_format", &format);
        if (err) return err;
    } else if (node_attr(node, "strides", &value) && attr_list_ints(value, NULL, 0) == 5) {
        format = STR("NDHWC");
    }
    if (str_is(format, "CHANNELS_LAST") || str_is(format, "CHANNELS_FIRST")) {
        bool volume = node_attr(node, "strides", &value) && attr_list_ints(value, NULL, 0) == 5;
        bool last = str_is(format, "CHANNELS_LAST");
        format = str_of(volume ? (last ? "NDHWC" : "NCDHW") : last ? "NHWC" : "NCHW");
    }
    bool flat = str_is(format, "NHWC") || str_is(format, "NCHW");
    if (!flat && !str_is(format, "NDHWC") && !str_is(format, "NCDHW")) {
        return error_invalid("%.*s: data format %.*s is not supported", STR_ARG(node->op), STR_ARG(format));
    }
    win->rank = flat ? 4 : 5;
    win->channels_first = str_starts(format, STR("NC"));
    int first = win->channels_first ? 2 : 1;
    win->d = flat ? 0 : first;
    win->h = flat ? first : first + 1;
    win->w = win->h + 1;
    win->c = win->channels_first ? 1 : win->rank - 1;
    return NULL;
}

Error *window_check_pads(const int64_t *pads, int count, int rank, int channel_dim) {
    if (count != 2 * rank) return error_invalid("explicit_paddings attribute must contain %d values, but got: %d", 2 * rank, count);
    for (int i = 0; i < count; i++) {
        if (pads[i] < 0) return error_invalid("All elements of explicit_paddings must be nonnegative");
        if (pads[i] > INT32_MAX) return error_invalid("explicit_paddings[%d] = %lld is out of range", i, (long long)pads[i]);
    }
    for (int i = 0; i < count; i++) {
        if (pads[i] != 0 && (i / 2 == 0 || i / 2 == channel_dim))
            return error_invalid("Nonzero explicit padding in the batch or depth dimensions is not supported");
    }
    return NULL;
}

static Error *read_pads(Window *win, const Node *node) {
    int64_t *items = NULL;
    int count = 0;
    Str value;
    if (!node_attr(node, "explicit_paddings", &value)) return NULL;
    Error *err = node_attr_ints(node, "explicit_paddings", &items, &count);
    if (!err) err = window_check_pads(items, count, win->rank, win->c);
    for (int i = 0; i < count && !err; i++) win->explicit_pads[i] = items[i];
    free(items);
    return err;
}

Error *window_init(Window *win, const Node *node) {
    Str padding;
    Error *err = read_layout(win, node);
    if (!err) err = node_attr_string(node, "padding", &padding);
    if (err) return err;
    const int rank = win->rank;
    win->padding = str_is(padding, "SAME") ? PADDING_SAME : str_is(padding, "VALID") ? PADDING_VALID : PADDING_EXPLICIT;
    for (int i = 0; i < rank; i++) win->strides[i] = win->dilations[i] = win->ksize[i] = 1;
    err = read_ints(node, "strides", win->strides, rank, false);
    if (!err) err = read_ints(node, "dilations", win->dilations, rank, true);
    if (!err) err = read_ints(node, "rates", win->dilations, rank, false);
    if (!err) err = read_ints(node, "ksize", win->ksize, rank, false);
    if (!err) err = read_ints(node, "ksizes", win->ksize, rank, false);
    if (!err && win->padding == PADDING_EXPLICIT) err = read_pads(win, node);
    if (!err && node_attr(node, "padding_list", &padding) && attr_list_ints(padding, NULL, 0) > 0) {
        win->padding = PADDING_EXPLICIT;
        err = read_ints(node, "padding_list", win->explicit_pads, 2 * rank, false);
    }
    return err;
}

Error *window_span(const Window *win, int dim, int64_t in, int64_t k, Span *out) {
    int64_t stride = win->strides[dim], wide = (k - 1) * win->dilations[dim] + 1;
    if (stride <= 0) return error_invalid("Stride must be > 0, but got %lld", (long long)stride);
    if (win->dilations[dim] <= 0) {
        return error_invalid("Dilation rate must be >= 1, but got %lld", (long long)win->dilations[dim]);
    }
    out->before = out->after = 0;
    if (win->padding == PADDING_SAME) {
        out->out = (in + stride - 1) / stride;
        int64_t total = (out->out - 1) * stride + wide - in;
        if (total < 0) total = 0;
        out->before = total / 2;
        out->after = total - out->before;
        return NULL;
    }
    if (win->padding == PADDING_EXPLICIT) {
        out->before = win->explicit_pads[2 * dim];
        out->after = win->explicit_pads[2 * dim + 1];
    }
    int64_t slack = in + out->before + out->after - wide + stride;
    out->out = slack / stride;
    if (out->out < 0) {
        return error_invalid(
            "Computed output size would be negative: %lld [input_size: %lld, effective_filter_size: %lld, stride: "
            "%lld]",
            (long long)out->out, (long long)in, (long long)wide, (long long)stride);
    }
    return NULL;
}
