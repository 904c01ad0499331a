/* fused_byte_conv.c: _FusedConv2D of bytes, with a bias and another input to add, to bytes again. */
#include "ops/fused_byte_conv.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/gemm.h"
#include "kernels/patches.h"
#include "ops/as_float.h"
#include "ops/elements.h"

enum { IMAGE, FILTER, BIAS, SIDE, SCALE, SIDE_SCALE, INPUTS };

static Error *read_fusion(const Node *node, ByteConv *st) {
    Str *ops = NULL;
    int count = 0;
    Error *err = node_attr_strings(node, "fused_ops", &ops, &count);
    if (err) return err;
    st->relu = count == 2 && str_is(ops[1], "Relu");
    bool known = count == 2 && (str_is(ops[1], "Relu6") || str_is(ops[1], "Elu") || str_is(ops[1], "LeakyRelu"));
    if (count == 0) {
        err = error_invalid("Fused Conv2D must have at least one fused op.");
    } else if (known || (str_is(ops[0], "FusedBatchNorm") && count <= 2)) {
        err = error_unimplemented("Fused conv implementation for int8/qint8 on CPU only supports BiasAdd + None or BiasAdd + Relu.");
    } else if (!str_is(ops[0], "BiasAdd") || count > 2 || (count == 2 && !st->relu)) {
        err = error_unimplemented("Fusion is not implemented: [%.*s%s%.*s]", STR_ARG(ops[0]), count > 1 ? "," : "", STR_ARG(ops[count - 1]));
    }
    free(ops);
    return err;
}

Error *byte_conv_init(const Node *node, ByteConv *st) {
    const Window *w = &st->win;
    Error *err = window_init(&st->win, node);
    if (!err) err = read_fusion(node, st);
    if (err) return err;
    if (w->channels_first) return error_unimplemented("Fused conv implementation for int8/qint8 on CPU only supports NHWC tensor format for now.");
    if (w->strides[0] != 1 || w->strides[w->c] != 1) return error_invalid("Current implementation does not yet support strides in the batch and depth dimensions.");
    if (w->dilations[w->h] != 1 || w->dilations[w->w] != 1)
        return error_unimplemented("Fused conv implementation for int8/qint8 on CPU only supports dilation of 1 for rows and cols.");
    if (node->input_count != INPUTS) return error_invalid("Fused Conv2D of bytes must have a bias, a side input and two scales, got %d inputs", node->input_count);
    return NULL;
}

static Error *check_inputs(const KernelContext *k) {
    const Shape *image = &k->in[IMAGE]->shape, *filter = &k->in[FILTER]->shape;
    if (image->rank != 4) return error_invalid("convolution input must be 4-dimensional: %s", shape_text(image).text);
    if (filter->rank != 4) return error_invalid("convolution filter must be 4-dimensional: %s", shape_text(filter).text);
    for (int d = 0; d < 4; d++) {
        if (filter->dims[d] == 0) return error_invalid("filter must not have zero elements (i.e. all dimensions must be non-zero)");
        if (image->dims[d] > INT32_MAX || filter->dims[d] > INT32_MAX) return error_invalid("convolution of %s is too large", shape_text(image).text);
    }
    if (image->dims[3] % filter->dims[2] != 0)
        return error_invalid("input depth must be evenly divisible by filter depth: %lld vs %lld", (long long)image->dims[3], (long long)filter->dims[2]);
    if (image->dims[3] != filter->dims[2]) return error_unimplemented("Fused conv implementation does not support grouped convolutions for now.");
    if (k->in[BIAS]->dtype != DT_FLOAT || k->in[SIDE]->dtype != k->in[IMAGE]->dtype)
        return error_invalid("Fused Conv2D of bytes takes a bias of floats and a side input of its own type");
    if (k->in[BIAS]->shape.rank != 1 || k->in[BIAS]->count != filter->dims[3])
        return error_invalid("bias must have %lld elements, got %s", (long long)filter->dims[3], shape_text(&k->in[BIAS]->shape).text);
    if (k->in[SCALE]->count != 1 && k->in[SCALE]->count != filter->dims[3])
        return error_invalid("conv_input_scale must have 1 or %lld elements, got %s", (long long)filter->dims[3], shape_text(&k->in[SCALE]->shape).text);
    if (k->in[SIDE_SCALE]->count != 1) return error_invalid("side_input_scale must be a scalar, got %s", shape_text(&k->in[SIDE_SCALE]->shape).text);
    return NULL;
}

static Error *patches_of(const ByteConv *st, const KernelContext *k, PatchShape *s) {
    const Shape *image = &k->in[IMAGE]->shape, *filter = &k->in[FILTER]->shape;
    *s = (PatchShape){.batch = image->dims[0], .channels = image->dims[3], .in = {1}, .out = {1}, .k = {1}, .stride = {1}, .dilation = {1, 1, 1}};
    for (int i = 1; i < 3; i++) {
        Span span;
        Error *err = window_span(&st->win, i, image->dims[i], filter->dims[i - 1], &span);
        if (err) return err;
        s->in[i] = image->dims[i];
        s->out[i] = span.out;
        s->k[i] = filter->dims[i - 1];
        s->stride[i] = st->win.strides[i];
        s->pad[i] = span.before;
    }
    return NULL;
}

/* Rows [at, at + n) of products become bytes: scaled, the side input added, then the bias. */
static void store_rows(const KernelContext *k, bool relu, const float *products, int64_t at, int64_t n) {
    const int64_t channels = k->in[FILTER]->shape.dims[3];
    const float *scale = tensor_f32(k->in[SCALE]), *bias = tensor_f32(k->in[BIAS]), side_scale = tensor_f32(k->in[SIDE_SCALE])[0];
    const int8_t *side = side_scale != 0 && k->in[SIDE]->count ? k->in[SIDE]->data : NULL;
    const bool many = k->in[SCALE]->count > 1;
    const float low = relu ? 0 : -128;
    int8_t *out = k->out[0]->data;
    for (int64_t i = 0; i < n * channels; i++) {
        int64_t c = i % channels, to = at * channels + i;
        float v = products[i] * scale[many ? c : 0];
        if (side) v = fmaf((float)side[to], side_scale, v);
        v = rintf(v + bias[c]);
        out[to] = (int8_t)(v < low ? low : v > 127 ? 127 : v == v ? v : 0);
    }
}

Error *byte_conv_run(KernelContext *k, const ByteConv *st) {
    enum { CHUNK_ELEMENTS = 1 << 20 }; /* of the matrix of patches that is made at a time */
    PatchShape s = {0};
    Error *err = check_inputs(k);
    if (!err) err = patches_of(st, k, &s);
    if (err) return err;
    const int64_t channels = k->in[FILTER]->shape.dims[3];
    Shape shape = {.rank = 4, .dims = {s.batch, s.out[1], s.out[2], channels}};
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    if (k->in[SIDE]->count != 0 && k->in[SIDE]->count != out->count)
        return error_invalid("side_input must be empty or have the shape %s, got %s", shape_text(&shape).text, shape_text(&k->in[SIDE]->shape).text);
    if (out->count == 0) return NULL;
    const int64_t rows = patch_rows(&s), length = patch_length(&s);
    int64_t chunk = CHUNK_ELEMENTS / (length + channels) + 1;
    if (chunk > rows) chunk = rows;
    Shape of_patches = shape_matrix(chunk, length), of_products = shape_matrix(chunk, channels);
    Tensor *image = kernel_floats(k, k->in[IMAGE]), *filter = kernel_floats(k, k->in[FILTER]);
    Tensor *patches = kernel_scratch(k, DT_FLOAT, &of_patches), *products = kernel_scratch(k, DT_FLOAT, &of_products);
    for (int64_t at = 0; at < rows && !k->error && image && filter && patches && products; at += chunk) {
        int64_t n = rows - at < chunk ? rows - at : chunk;
        patches_copy(&s, sizeof(float), image->data, at, at + n, patches->data);
        gemm_f32(&(Gemm){.m = n, .n = channels, .k = length, .a = patches->data, .b = filter->data, .c = products->data}, k->pool);
        store_rows(k, st->relu, products->data, at, n);
    }
    tensor_unref(image);
    tensor_unref(filter);
    tensor_unref(patches);
    tensor_unref(products);
    return NULL;
}
