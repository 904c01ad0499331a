/* quantized_array.c: ops that move integers that stand for floats: QuantizedReshape, QuantizedConcat, pools, QuantizedResizeBilinear. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/pool.h"
#include "kernels/resize.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/quantized.h"
#include "ops/window.h"

#define QUANTIZED "{qint8, quint8, qint32, qint16, quint16}"

const OpDef quantized_array_ops[] = {
    {"QuantizedReshape",
     "tensor: T, shape: Tshape, input_min: float, input_max: float -> output: T, output_min: float, output_max: float",
     "T: type; Tshape: {int32, int64} = int32", 0},
    {"QuantizedConcat",
     "concat_dim: int32, values: N * T, input_mins: N * float, input_maxes: N * float -> output: T, output_min: float, "
     "output_max: float",
     "N: int >= 2; T: type", 0},
    {"QuantizedConcatV2",
     "values: N * T, axis: Tidx, input_mins: N * float, input_maxes: N * float -> output: T, output_min: float, "
     "output_max: float",
     "N: int >= 2; T: type; Tidx: {int32, int64} = int32", 0},
    {"QuantizedMaxPool", "input: T, min_input: float, max_input: float -> output: T, min_output: float, max_output: float",
     "T: " QUANTIZED "; ksize: list(int); strides: list(int); padding: {'SAME', 'VALID'}", 0},
    {"QuantizedAvgPool", "input: T, min_input: float, max_input: float -> output: T, min_output: float, max_output: float",
     "T: " QUANTIZED "; ksize: list(int); strides: list(int); padding: {'SAME', 'VALID'}", 0},
    {"QuantizedResizeBilinear",
     "images: T, size: int32, min: float, max: float -> resized_images: T, out_min: float, out_max: float",
     "T: {quint8, qint32, float}; align_corners: bool = false; half_pixel_centers: bool = false", 0},
    {0},
};

static Error *run_reshape(KernelContext *k) {
    QuantizedRange range = {0, 0};
    Error *err = kernel_reshape(k);
    for (int i = 2; !err && i < 4; i++)
        if (k->in[i]->count != 1 || k->in[i]->shape.rank > 1)
            err = error_invalid("input_%s must be a scalar or a vector of 1 element", i == 2 ? "min" : "max");
    if (!err) err = quantized_range_input(k, 2, "input_min", "input_max", &range);
    if (!err) quantized_range_output(k, 1, range);
    return err;
}

/* ---- Concat ---- */

typedef struct Concat {
    Tensor **values, **lows, **highs;
    int count, axis;
} Concat;

static Error *concat_shape(const Concat *c, Shape *out) {
    *out = c->values[0]->shape;
    for (int i = 1; i < c->count; i++) {
        const Shape *s = &c->values[i]->shape;
        if (s->rank != out->rank)
            return error_invalid("ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. shape[%d] = %s",
                                 shape_text(&c->values[0]->shape).text, i, shape_text(s).text);
        for (int d = 0; d < out->rank; d++)
            if (d != c->axis && s->dims[d] != out->dims[d])
                return error_invalid("ConcatOp : Dimensions of inputs should match: shape[0] = %s vs. shape[%d] = %s",
                                     shape_text(&c->values[0]->shape).text, i, shape_text(s).text);
        out->dims[c->axis] += s->dims[c->axis];
    }
    return shape_check(out);
}

/* The range of all and of zero; of signed types it has zero in its middle. */
static Error *concat_range(const Concat *c, bool is_signed, QuantizedRange *out) {
    *out = (QuantizedRange){0, -INFINITY};
    for (int i = 0; i < c->count; i++) {
        if (c->lows[i]->count != 1 || c->highs[i]->count != 1)
            return error_invalid("The range of input %d must be two scalars, but got shapes %s and %s", i,
                                 shape_text(&c->lows[i]->shape).text, shape_text(&c->highs[i]->shape).text);
        out->low = fminf(out->low, tensor_f32(c->lows[i])[0]);
        out->high = fmaxf(out->high, tensor_f32(c->highs[i])[0]);
    }
    float wide = fmaxf(fabsf(out->low), fabsf(out->high));
    if (is_signed) *out = (QuantizedRange){-wide, wide};
    return NULL;
}

static Error *concat(KernelContext *k, Concat *c, const Tensor *axis, bool counts_back) {
    int rank = c->values[0]->shape.rank;
    if (axis->count != 1)
        return error_invalid("Concat dim tensor should be a scalar integer, but got shape %s", shape_text(&axis->shape).text);
    int64_t at = index_at(axis, 0);
    if (at < (counts_back ? -rank : 0) || at >= rank)
        return error_invalid("ConcatOp : Expected concatenating dimensions in the range [%d, %d), but got %lld",
                             counts_back ? -rank : 0, rank, (long long)at);
    c->axis = (int)(at < 0 ? at + rank : at);
    const QuantizedType *type = quantized_type(kernel_output_type(k, 0));
    Shape shape;
    QuantizedRange range = {0, 0};
    Error *err = concat_range(c, type->lowest < 0, &range);
    if (!err) err = concat_shape(c, &shape);
    if (err) return err;
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || !quantized_range_output(k, 1, range)) return NULL;
    const int64_t outer = shape_prod(&shape, 0, c->axis), row = shape_prod(&shape, c->axis, rank), size = type->bits / 8;
    char *to = z->data;
    for (int i = 0; i < c->count; i++) {
        const Tensor *x = c->values[i];
        const QuantizedRange own = {tensor_f32(c->lows[i])[0], tensor_f32(c->highs[i])[0]};
        const bool same = own.low == range.low && own.high == range.high;
        int64_t part = shape_prod(&x->shape, c->axis, rank);
        for (int64_t o = 0; part > 0 && o < outer; o++) {
            const char *from = (const char *)x->data + o * part * size;
            if (same)
                memcpy(to + o * row * size, from, (size_t)(part * size));
            else
                quantized_convert(type, own, from, type, range, to + o * row * size, part);
        }
        to += part * size;
    }
    return NULL;
}

static Error *run_concat(KernelContext *k) {
    int n = (k->input_count - 1) / 3;
    Concat c = {k->in + 1, k->in + 1 + n, k->in + 1 + 2 * n, n, 0};
    return concat(k, &c, k->in[0], false);
}

static Error *run_concat_v2(KernelContext *k) {
    int n = (k->input_count - 1) / 3;
    Concat c = {k->in, k->in + n + 1, k->in + 2 * n + 1, n, 0};
    return concat(k, &c, k->in[n], true);
}

/* ---- Pools ---- */

static Error *pool_init(const Node *node, void *state) {
    Window *win = state;
    Error *err = window_init(win, node);
    if (err) return err;
    if (win->rank != 4) return error_invalid("Sliding window strides field must specify 4 dimensions");
    if (win->ksize[0] != 1 || win->strides[0] != 1)
        return error_unimplemented("Pooling is not yet supported on the batch dimension.");
    if (win->ksize[3] != 1 || win->strides[3] != 1) return error_unimplemented("Non-spatial pooling is not yet supported.");
    for (int d = 1; d <= 2; d++)
        if (win->ksize[d] <= 0 || win->strides[d] <= 0)
            return error_invalid("Sliding window ksize and strides must be positive, got %lld and %lld",
                                 (long long)win->ksize[d], (long long)win->strides[d]);
    return NULL;
}

/* The mean of the pixels of each window that lie in the image, to the nearest integer, the even one of two. */
static void pool_mean(const PoolShape *s, const QuantizedType *type, void *z, const void *x) {
    const int64_t area = s->out[1] * s->out[2], pixels = s->in[1] * s->in[2];
    for (int64_t at = 0; at < s->batch * area; at++) {
        PoolBox box = pool_box(s, at % area);
        for (int64_t c = 0; c < s->channels; c++) {
            int32_t sum = 0;
            for (int64_t y = box.from[1]; y < box.to[1]; y++)
                for (int64_t w = box.from[2]; w < box.to[2]; w++)
                    sum += quantized_get(type, x, (at / area * pixels + y * s->in[2] + w) * s->channels + c);
            float mean = box.count > 0 ? rintf((float)sum / (float)box.count) : 0.0f;
            quantized_put(type, z, at * s->channels + c, (int32_t)mean);
        }
    }
}

static Error *run_pool(KernelContext *k) {
    const Window *win = k->state;
    const Tensor *x = k->in[0];
    QuantizedRange range = {0, 0};
    Error *err = quantized_scalars_input(k, 1, "min_input", "max_input", QUANTIZED_SHAPE, &range);
    if (err) return err;
    if (x->shape.rank != 4) return error_invalid("Input must be 4 or 5-dimensional");
    Span h, w;
    err = window_span(win, 1, x->shape.dims[1], win->ksize[1], &h);
    if (!err) err = window_span(win, 2, x->shape.dims[2], win->ksize[2], &w);
    if (err) return err;
    Shape shape = shape_of(4, (int64_t[]){x->shape.dims[0], h.out, w.out, x->shape.dims[3]});
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || !quantized_range_output(k, 1, range) || z->count == 0) return NULL;
    PoolShape s = {.batch = x->shape.dims[0],
                   .channels = x->shape.dims[3],
                   .in = {1, x->shape.dims[1], x->shape.dims[2]},
                   .out = {1, h.out, w.out},
                   .k = {1, win->ksize[1], win->ksize[2]},
                   .stride = {1, win->strides[1], win->strides[2]},
                   .pad = {0, h.before, w.before}};
    if (node_is(k->node, "QuantizedAvgPool"))
        pool_mean(&s, quantized_type(x->dtype), z->data, x->data);
    else if (x->dtype == DT_QINT8)
        pool_max_i8(&s, 0, s.batch, z->data, x->data, NULL);
    else
        pool_max_u8(&s, 0, s.batch, z->data, x->data, NULL);
    return NULL;
}

/* ---- QuantizedResizeBilinear ---- */

static Error *resize_init(const Node *node, void *state) {
    ResizeMap *map = state;
    Error *err = node_attr_bool(node, "align_corners", &map->align_corners);
    return err ? err : node_attr_bool(node, "half_pixel_centers", &map->half_pixel);
}

/* For each place along one side: the pixels before and after it, and how far it is from the first. */
typedef struct ResizePlace {
    int64_t lower, upper;
    float part;
} ResizePlace;

static void resize_places(ResizePlace *p, int64_t in, int64_t out, ResizeMap map) {
    const float scale = resize_scale(in, out, map.align_corners);
    for (int64_t i = 0; i < out; i++) {
        float at = map.half_pixel ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale, floor = floorf(at);
        int64_t upper = (int64_t)ceilf(at), lower = (int64_t)floor;
        upper = upper < in - 1 ? upper : in - 1;
        lower = lower > 0 ? lower : 0;
        p[i] = (ResizePlace){lower < upper ? lower : upper, upper, at - floor};
    }
}

/* Four pixels and the shares of the second of each pair, with `bits` behind the point; rounded towards zero on the way. */
static int64_t mix(const int64_t *v, int64_t x, int64_t y, int bits) {
    const int64_t one = (int64_t)1 << bits;
    int64_t top = v[0] * one + (v[1] - v[0]) * x, bottom = v[2] * one + (v[3] - v[2]) * x;
    return (top + (bottom - top) / one * y + one / 2) / one;
}

static void resize_pixel(const Tensor *in, const int64_t *at, float y, float x, Tensor *out, int64_t to) {
    if (in->dtype == DT_FLOAT) {
        const float *v = tensor_f32(in);
        float top = v[at[0]] + (v[at[1]] - v[at[0]]) * x, bottom = v[at[2]] + (v[at[3]] - v[at[2]]) * x;
        tensor_f32(out)[to] = top + (bottom - top) * y;
        return;
    }
    const QuantizedType *type = quantized_type(in->dtype);
    const int bits = type->bits == 8 ? 7 : 30;
    const float one = (float)(1 << bits);
    int64_t v[4];
    for (int i = 0; i < 4; i++) v[i] = (int64_t)(float)quantized_get(type, in->data, at[i]); /* large ones become floats on the way */
    quantized_put(type, out->data, to, (int32_t)mix(v, (int64_t)(x * one), (int64_t)(y * one), bits));
}

static Error *run_resize(KernelContext *k) {
    const ResizeMap *map = k->state;
    const Tensor *x = k->in[0], *size = k->in[1];
    QuantizedRange range = {0, 0};
    for (int i = 2; i < 4; i++)
        if (k->in[i]->shape.rank != 0) return error_invalid("%s must be a scalar", i == 2 ? "min" : "max");
    Error *err = quantized_range_input(k, 2, "min", "max", &range);
    if (err) return err;
    if (x->shape.rank != 4) return error_invalid("input must be 4-dimensional%s", shape_text(&x->shape).text);
    if (size->shape.rank != 1) return error_invalid("shape_t must be 1-dimensional%s", shape_text(&size->shape).text);
    if (size->count != 2) return error_invalid("shape_t must have two elements%s", shape_text(&size->shape).text);
    const int64_t *d = x->shape.dims, h = tensor_i32(size)[0], w = tensor_i32(size)[1];
    if (d[1] > INT32_MAX || d[2] > INT32_MAX) return error_invalid("input sizes must be between 0 and max int32");
    if (h <= 0 || w <= 0) return error_invalid("output dimensions must be positive");
    if (d[3] <= 0) return error_invalid("image must have at least one channel");
    if (d[1] <= 0 || d[2] <= 0) return error_invalid("input image must be of non-zero size");
    Shape shape = shape_of(4, (int64_t[]){d[0], h, w, d[3]}), lines = shape_vector((h + w) * (int64_t)sizeof(ResizePlace));
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || !quantized_range_output(k, 1, range) || z->count == 0) return NULL;
    if (h == d[1] && w == d[2]) {
        memcpy(z->data, x->data, tensor_bytes(x));
        return NULL;
    }
    Tensor *scratch = kernel_scratch(k, DT_UINT8, &lines);
    if (!scratch) return NULL;
    ResizePlace *ys = scratch->data, *xs = ys + h;
    resize_places(ys, d[1], h, *map);
    resize_places(xs, d[2], w, *map);
    for (int64_t i = 0; i < z->count; i++) {
        const int64_t c = i % d[3], b = i / (d[3] * w * h);
        const ResizePlace *px = xs + i / d[3] % w, *py = ys + i / (d[3] * w) % h;
        const int64_t upper = (b * d[1] + py->lower) * d[2], lower = (b * d[1] + py->upper) * d[2];
        const int64_t at[4] = {(upper + px->lower) * d[3] + c, (upper + px->upper) * d[3] + c, (lower + px->lower) * d[3] + c,
                               (lower + px->upper) * d[3] + c};
        resize_pixel(x, at, py->part, px->part, z, i);
    }
    tensor_unref(scratch);
    return NULL;
}

const KernelDef quantized_array_cpu[] = {
    {"QuantizedReshape", .by_type = {[DT_QUINT8] = run_reshape, [DT_QINT32] = run_reshape}},
    {"QuantizedConcat", .by_type = {[DT_QUINT8] = run_concat, [DT_QINT32] = run_concat}},
    {"QuantizedConcatV2", .by_type = {[DT_QUINT8] = run_concat_v2, [DT_QINT8] = run_concat_v2}},
    {"QuantizedMaxPool", .by_type = {[DT_QUINT8] = run_pool, [DT_QINT8] = run_pool}, .state_size = sizeof(Window), .init = pool_init},
    {"QuantizedAvgPool", .by_type = {[DT_QUINT8] = run_pool, [DT_QINT8] = run_pool}, .state_size = sizeof(Window), .init = pool_init},
    {"QuantizedResizeBilinear",
     .by_type = {[DT_QUINT8] = run_resize, [DT_QINT32] = run_resize, [DT_FLOAT] = run_resize},
     .state_size = sizeof(ResizeMap),
     .init = resize_init},
    {0},
};
