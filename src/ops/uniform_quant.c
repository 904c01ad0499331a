/* uniform_quant.c: UniformQuantize, UniformDequantize, UniformRequantize, UniformQuantizedAdd, UniformQuantizedClipByValue. */
#include <string.h>

#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/uniform_scale.h"

#define RANGE(what) what "_quantization_axis: int = -1; " what "_quantization_min_val: int; " what "_quantization_max_val: int"

const OpDef uniform_quant_ops[] = {
    {"UniformQuantize", "input: Tin, scales: float, zero_points: int32 -> output: Tout",
     "Tin: {float}; Tout: {qint8, quint8, qint32}; quantization_axis: int = -1; quantization_min_val: int; quantization_max_val: int", 0},
    {"UniformDequantize", "input: Tin, scales: float, zero_points: int32 -> output: Tout",
     "Tin: {qint8, quint8, qint32}; Tout: {float}; quantization_axis: int = -1; quantization_min_val: int; quantization_max_val: int", 0},
    {"UniformRequantize", "input: Tin, input_scales: float, input_zero_points: int32, output_scales: float, output_zero_points: int32 -> output: Tout",
     "Tin: {qint8, qint32}; Tout: {qint8, qint32}; " RANGE("input") "; " RANGE("output"), 0},
    {"UniformQuantizedAdd",
     "lhs: T, rhs: T, lhs_scales: float, lhs_zero_points: int32, rhs_scales: float, rhs_zero_points: int32, output_scales: float, output_zero_points: int32 -> output: T",
     RANGE("lhs") "; " RANGE("rhs") "; " RANGE("output") "; T: {qint32}", 0},
    {"UniformQuantizedClipByValue", "operand: T, min: T, max: T, scales: float, zero_points: int32 -> output: T",
     "T: {qint32}; quantization_axis: int = -1; quantization_min_val: int; quantization_max_val: int", 0},
    {0},
};

typedef struct UniformState {
    int32_t axis, input_axis, rhs_axis; /* of the result, and of what it is made of */
    UniformRange range;
} UniformState;

/* A tensor as outer x axis x inner; axis is one when there is none. */
typedef struct AxisWalk {
    int64_t outer, size, inner;
} AxisWalk;

static AxisWalk walk_of(const Tensor *t, int64_t axis) {
    if (axis < 0 || t->count == 0) return (AxisWalk){1, 1, t->count};
    return (AxisWalk){shape_prod(&t->shape, 0, (int)axis), t->shape.dims[axis], shape_prod(&t->shape, (int)axis + 1, t->shape.rank)};
}

static int32_t element(const Tensor *t, int64_t i) {
    return t->dtype == DT_QINT8 ? ((const int8_t *)t->data)[i] : t->dtype == DT_QUINT8 ? ((const uint8_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}

static void put_element(const Tensor *t, int64_t i, int32_t v) {
    if (t->dtype == DT_QINT8) {
        ((int8_t *)t->data)[i] = (int8_t)v;
    } else if (t->dtype == DT_QUINT8) {
        ((uint8_t *)t->data)[i] = (uint8_t)v;
    } else {
        ((int32_t *)t->data)[i] = v;
    }
}

/* ---- To integers and back ---- */

static Error *plain_init(const Node *node, void *state) {
    UniformState *st = state;
    Error *err = uniform_attr(node, "quantization_axis", &st->axis);
    if (!err) err = uniform_range(node, "quantization_min_val", "quantization_max_val", &st->range);
    if (!err && st->axis < -1 && str_is(node->op, "UniformQuantize")) err = error_invalid("quantization_axis must be >= -1, given: %d", st->axis);
    return err;
}

static Error *quantize_run(KernelContext *k) {
    const UniformState *st = k->state;
    const Tensor *x = k->in[0];
    Error *err = uniform_check(&x->shape, k->in[1], k->in[2], st->axis);
    Tensor *y = err ? NULL : kernel_output(k, 0, &x->shape);
    if (!y) return err;
    const AxisWalk w = walk_of(x, st->axis);
    for (int64_t o = 0; o < w.outer; o++) {
        for (int64_t a = 0; a < w.size && y->count; a++) {
            const float inverse = 1.0f / tensor_f32(k->in[1])[a];
            const int32_t zero = ((const int32_t *)k->in[2]->data)[a];
            for (int64_t i = 0, at = (o * w.size + a) * w.inner; i < w.inner; i++, at++) put_element(y, at, uniform_quantized(tensor_f32(x)[at], inverse, zero, st->range));
        }
    }
    return NULL;
}

static Error *dequantize_run(KernelContext *k) {
    const UniformState *st = k->state;
    const Tensor *x = k->in[0];
    Error *err = uniform_check(&x->shape, k->in[1], k->in[2], st->axis);
    if (!err && !uniform_all_positive(k->in[1])) err = error_invalid("rhs scales elements must be all positive.");
    Tensor *y = err ? NULL : kernel_output(k, 0, &x->shape);
    if (!y) return err;
    const AxisWalk w = walk_of(x, st->axis);
    for (int64_t o = 0; o < w.outer; o++) {
        for (int64_t a = 0; a < w.size && y->count; a++) {
            const float scale = tensor_f32(k->in[1])[a];
            const int32_t zero = ((const int32_t *)k->in[2]->data)[a];
            for (int64_t i = 0, at = (o * w.size + a) * w.inner; i < w.inner; i++, at++) tensor_f32(y)[at] = (float)wrap_sub(element(x, at), zero) * scale;
        }
    }
    return NULL;
}

/* ---- To other scales ---- */

typedef struct Requantize {
    const Tensor *x, *y;
    const Tensor *scales, *zero_points, *new_scales;
    const int32_t *new_zero_points; /* NULL: all are zero */
    int64_t axis, new_axis;         /* -1: one for all */
    UniformRange range;
} Requantize;

static Error *requantize(const Requantize *r) {
    const AxisWalk w = walk_of(r->x, r->axis >= 0 ? r->axis : r->new_axis);
    for (int64_t a = 0; a < w.size && r->x->count; a++) {
        const int64_t from = r->axis >= 0 ? a : 0, to = r->new_axis >= 0 ? a : 0;
        UniformFactor factor = {0};
        Error *err = uniform_factor((double)tensor_f32(r->scales)[from] / (double)tensor_f32(r->new_scales)[to], &factor);
        if (err) return err;
        const int32_t zero = ((const int32_t *)r->zero_points->data)[from], new_zero = r->new_zero_points ? r->new_zero_points[to] : 0;
        for (int64_t o = 0; o < w.outer; o++) {
            for (int64_t i = 0, at = (o * w.size + a) * w.inner; i < w.inner; i++, at++)
                put_element(r->y, at, uniform_scaled(wrap_sub(element(r->x, at), zero), factor, new_zero, r->range));
        }
    }
    return NULL;
}

static Error *requantize_init(const Node *node, void *state) {
    UniformState *st = state;
    Error *err = uniform_range(node, "output_quantization_min_val", "output_quantization_max_val", &st->range);
    if (!err) err = uniform_attr(node, "input_quantization_axis", &st->input_axis);
    if (!err) err = uniform_attr(node, "output_quantization_axis", &st->axis);
    if (err) return err;
    if (st->input_axis < -1) return error_invalid("input_quantization_axis must be >= -1, given: %d", st->input_axis);
    if (st->axis < -1) return error_invalid("output_quantization_axis must be >= -1, given: %d", st->axis);
    if (st->input_axis >= 0 && st->axis >= 0 && st->input_axis != st->axis)
        return error_invalid("If input and output is both per-axis quantized, the quantization axis must be same.");
    return NULL;
}

static Error *requantize_run(KernelContext *k) {
    const UniformState *st = k->state;
    const Tensor *x = k->in[0];
    if (k->node->output_types[0] != DT_QINT8) return error_invalid("Unsupported output type.");
    Error *err = uniform_check(&x->shape, k->in[1], k->in[2], st->input_axis);
    if (!err) err = uniform_check(&x->shape, k->in[3], k->in[4], st->axis);
    if (!err && (!uniform_all_positive(k->in[1]) || !uniform_all_positive(k->in[3]))) err = error_invalid("input/output scales elements must be all positive.");
    Tensor *y = err ? NULL : kernel_output(k, 0, &x->shape);
    if (!y) return err;
    return requantize(&(Requantize){x, y, k->in[1], k->in[2], k->in[3], k->in[4]->data, st->input_axis, st->axis, st->range});
}

/* ---- Sums ---- */

static Error *add_init(const Node *node, void *state) {
    UniformState *st = state;
    Error *err = uniform_range(node, "output_quantization_min_val", "output_quantization_max_val", &st->range);
    if (!err) err = uniform_attr(node, "lhs_quantization_axis", &st->input_axis);
    if (!err) err = uniform_attr(node, "rhs_quantization_axis", &st->rhs_axis);
    if (!err) err = uniform_attr(node, "output_quantization_axis", &st->axis);
    if (!err && (st->input_axis < -1 || st->rhs_axis < -1 || st->axis < -1)) err = error_invalid("lhs, rhs and output quantization_axis must be -1 or within [0, dims)");
    return err;
}

static Error *sum_shape(const Shape *a, const Shape *b, Shape *out) {
    *out = (Shape){.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 1; i <= out->rank; i++) {
        int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1, y = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (x != 1 && y != 1 && x != y) return error_invalid("Cannot Add tensors of shapes: %s%s", shape_text(a).text, shape_text(b).text);
        out->dims[out->rank - i] = x == 1 ? y : x;
    }
    return NULL;
}

/* One of the terms in the scales of the sum, with zeros of zero. own_axis: of the term; a term without one has that of the sum when it is as large there. */
static Error *term_of(KernelContext *k, int i, int own_axis, const Shape *sum, Tensor **out) {
    const UniformState *st = k->state;
    const Tensor *x = k->in[i];
    int new_axis = st->axis < 0 ? -1 : own_axis >= 0 ? own_axis : st->axis;
    if (st->axis >= 0 && own_axis < 0 && (x->shape.rank != sum->rank || x->shape.dims[st->axis] != sum->dims[st->axis]))
        return error_invalid("A term without a quantization axis must be as large as the output in dimension %d, got %s", st->axis, shape_text(&x->shape).text);
    if (own_axis >= 0 && st->axis >= 0 && x->shape.dims[own_axis] != sum->dims[st->axis])
        return error_invalid("A term must be as large as the output in its quantization axis, got %s", shape_text(&x->shape).text);
    *out = kernel_scratch(k, DT_QINT32, &x->shape);
    if (!*out) return NULL;
    return requantize(&(Requantize){x, *out, k->in[2 + 2 * i], k->in[3 + 2 * i], k->in[6], NULL, own_axis, new_axis, {INT32_MIN, INT32_MAX}});
}

static void add_terms(const Tensor *a, const Tensor *b, const int32_t *zeros, const UniformState *st, const Tensor *y) {
    const int rank = y->shape.rank;
    int64_t at[SHAPE_MAX_RANK] = {0}, step_a[SHAPE_MAX_RANK] = {0}, step_b[SHAPE_MAX_RANK] = {0}, size_a = 1, size_b = 1, i = 0, j = 0;
    for (int d = 1; d <= rank; d++) { /* from the innermost dimension */
        int64_t na = d <= a->shape.rank ? a->shape.dims[a->shape.rank - d] : 1, nb = d <= b->shape.rank ? b->shape.dims[b->shape.rank - d] : 1;
        step_a[rank - d] = na == 1 ? 0 : size_a;
        step_b[rank - d] = nb == 1 ? 0 : size_b;
        size_a *= na;
        size_b *= nb;
    }
    for (int64_t to = 0; to < y->count; to++) {
        const int32_t sum = wrap_add(((const int32_t *)a->data)[i], ((const int32_t *)b->data)[j]);
        ((int32_t *)y->data)[to] = uniform_clamp(wrap_add(sum, zeros[st->axis >= 0 ? at[st->axis] : 0]), st->range);
        for (int d = rank - 1; d >= 0; d--) {
            i += step_a[d];
            j += step_b[d];
            if (++at[d] < y->shape.dims[d]) break;
            i -= step_a[d] * at[d];
            j -= step_b[d] * at[d];
            at[d] = 0;
        }
    }
}

static Error *add_run(KernelContext *k) {
    const UniformState *st = k->state;
    const Shape *a = &k->in[0]->shape, *b = &k->in[1]->shape;
    Shape sum = {0};
    Error *err = uniform_check(a, k->in[2], k->in[3], st->input_axis);
    if (!err) err = uniform_check(b, k->in[4], k->in[5], st->rhs_axis);
    if (!err) err = sum_shape(a, b, &sum);
    if (!err) err = uniform_check(&sum, k->in[6], k->in[7], st->axis);
    if (err) return err;
    if (st->input_axis >= 0 && st->axis >= 0 && a->rank - st->input_axis != sum.rank - st->axis)
        return error_invalid("If lhs and output is both per-axis quantized, the quantization axis must match.");
    if (st->rhs_axis >= 0 && st->axis >= 0 && b->rank - st->rhs_axis != sum.rank - st->axis)
        return error_invalid("If rhs and output is both per-axis quantized, the quantization axis must match.");
    if (!uniform_all_positive(k->in[2]) || !uniform_all_positive(k->in[4]) || !uniform_all_positive(k->in[6]))
        return error_invalid("lhs/rhs/output scales elements must be all positive.");
    Tensor *y = kernel_output(k, 0, &sum), *terms[2] = {NULL, NULL};
    if (!y || y->count == 0) return NULL;
    err = term_of(k, 0, st->input_axis, &sum, &terms[0]);
    if (!err) err = term_of(k, 1, st->rhs_axis, &sum, &terms[1]);
    if (!err && terms[0] && terms[1]) add_terms(terms[0], terms[1], k->in[7]->data, st, y);
    tensor_unref(terms[0]);
    tensor_unref(terms[1]);
    return err;
}

/* ---- Limits ---- */

static Error *clip_run(KernelContext *k) {
    const UniformState *st = k->state;
    const Tensor *x = k->in[0];
    Error *err = uniform_check(&x->shape, k->in[3], k->in[4], st->axis);
    if (err) return err;
    for (int i = 1; i < 3; i++) {
        if (!shape_eq(&k->in[i]->shape, &k->in[3]->shape))
            return error_invalid("Input %s shape must be same as scales/zero_points. Given %s of shape %s and scales/zero_points of shape %s", i == 1 ? "min" : "max", i == 1 ? "min" : "max",
                                 shape_text(&k->in[i]->shape).text, shape_text(&k->in[3]->shape).text);
    }
    Tensor *y = kernel_output_from(k, 0, 0, &x->shape);
    if (!y) return NULL;
    const AxisWalk w = walk_of(x, st->axis);
    for (int64_t o = 0; o < w.outer; o++) {
        for (int64_t a = 0; a < w.size && y->count; a++) {
            const int32_t low = ((const int32_t *)k->in[1]->data)[a], high = ((const int32_t *)k->in[2]->data)[a];
            for (int64_t i = 0, at = (o * w.size + a) * w.inner; i < w.inner; i++, at++) {
                int32_t v = ((const int32_t *)x->data)[at];
                v = v > low ? v : low;
                ((int32_t *)y->data)[at] = v < high ? v : high;
            }
        }
    }
    return NULL;
}

#define STATE(init_of) .state_size = sizeof(UniformState), .init = init_of, .flags = KERNEL_EXPENSIVE

const KernelDef uniform_quant_cpu[] = {
    {"UniformQuantize", .by_type = {[DT_QINT8] = quantize_run, [DT_QUINT8] = quantize_run, [DT_QINT32] = quantize_run}, .type_attr = "Tout", STATE(plain_init)},
    {"UniformDequantize", .by_type = {[DT_QINT8] = dequantize_run, [DT_QUINT8] = dequantize_run, [DT_QINT32] = dequantize_run}, .type_attr = "Tin", STATE(plain_init)},
    {"UniformRequantize", .by_type = {[DT_QINT8] = requantize_run, [DT_QINT32] = requantize_run}, .type_attr = "Tin", STATE(requantize_init)},
    {"UniformQuantizedAdd", .by_type = {[DT_QINT32] = add_run}, STATE(add_init)},
    {"UniformQuantizedClipByValue", .by_type = {[DT_QINT32] = clip_run}, STATE(plain_init)},
    {0},
};
