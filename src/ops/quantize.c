/* quantize.c: QuantizeV2, Dequantize: floats as small integers with a range, and back. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/float16.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef quantize_ops[] = {
    {"QuantizeV2",
     "input: float, min_range: float, max_range: float -> output: T, output_min: float, output_max: float",
     "T: {qint8, quint8, qint32, qint16, quint16}; mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'; "
     "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'; narrow_range: bool = false; axis: "
     "int = -1; ensure_minimum_range: float = 0.009999999776",
     0},
    {"Dequantize", "input: T, min_range: float, max_range: float -> output: dtype",
     "T: {qint8, quint8, qint32, qint16, quint16}; mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'; "
     "narrow_range: bool = false; axis: int = -1; dtype: {bfloat16, float} = float",
     0},
    {0},
};

typedef enum Mode { MIN_COMBINED, MIN_FIRST, SCALED } Mode;

typedef struct QuantizeState {
    Mode mode;
    bool half_to_even, narrow;
    int64_t axis; /* -1: one range for all */
    float minimum_range;
} QuantizeState;

static Error *quantize_init(const Node *node, void *state) {
    QuantizeState *st = state;
    Str mode, round, value;
    Error *err = node_attr_string(node, "mode", &mode);
    if (!err) err = node_attr_bool(node, "narrow_range", &st->narrow);
    if (!err) err = node_attr_int(node, "axis", &st->axis);
    if (err) return err;
    st->mode = str_is(mode, "SCALED") ? SCALED : str_is(mode, "MIN_FIRST") ? MIN_FIRST : MIN_COMBINED;
    if (node_attr(node, "round_mode", &value)) {
        err = node_attr_string(node, "round_mode", &round);
        if (!err) err = node_attr_float(node, "ensure_minimum_range", &st->minimum_range);
        if (err) return err;
        st->half_to_even = str_is(round, "HALF_TO_EVEN");
        if (st->half_to_even && st->mode != SCALED) {
            return error_invalid("Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '%.*s'.",
                                 STR_ARG(mode));
        }
    }
    DataType to = DT_FLOAT;
    if (str_is(node->op, "Dequantize")) err = node_attr_type(node, "dtype", &to);
    if (!err && to == DT_BFLOAT16 && st->mode != MIN_COMBINED)
        err = error_invalid("When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '%.*s'", STR_ARG(mode));
    if (err) return err;
    if (st->axis < -1) return error_invalid("Axis must be at least -1. Found %lld", (long long)st->axis);
    return NULL;
}

/* ---- Integers with a range ---- */

typedef struct Range {
    double low, high; /* of the type */
    bool is_signed;
} Range;

static Range type_range(DataType t) {
    switch ((int)t) {
        case DT_QINT8:
            return (Range){INT8_MIN, INT8_MAX, true};
        case DT_QUINT8:
            return (Range){0, UINT8_MAX, false};
        case DT_QINT16:
            return (Range){INT16_MIN, INT16_MAX, true};
        case DT_QUINT16:
            return (Range){0, UINT16_MAX, false};
        default:
            return (Range){INT32_MIN, INT32_MAX, true};
    }
}

static void put_integer(Tensor *t, int64_t i, double v) {
    Range r = type_range(t->dtype);
    v = v >= r.low ? v <= r.high ? v : r.high : r.low; /* NaN: the least */
    switch ((int)t->dtype) {
        case DT_QINT8:
            ((int8_t *)t->data)[i] = (int8_t)v;
            break;
        case DT_QUINT8:
            ((uint8_t *)t->data)[i] = (uint8_t)v;
            break;
        case DT_QINT16:
            ((int16_t *)t->data)[i] = (int16_t)v;
            break;
        case DT_QUINT16:
            ((uint16_t *)t->data)[i] = (uint16_t)v;
            break;
        default:
            ((int32_t *)t->data)[i] = (int32_t)v;
    }
}
static double get_integer(const Tensor *t, int64_t i) {
    switch ((int)t->dtype) {
        case DT_QINT8:
            return ((const int8_t *)t->data)[i];
        case DT_QUINT8:
            return ((const uint8_t *)t->data)[i];
        case DT_QINT16:
            return ((const int16_t *)t->data)[i];
        case DT_QUINT16:
            return ((const uint16_t *)t->data)[i];
        default:
            return ((const int32_t *)t->data)[i];
    }
}

/* Steps between the ends of the range when it is divided as MIN_FIRST does. */
static double step_count(DataType t) {
    return pow(2, 8 * (double)dtype_size(t));
}

/* The elements [slice] of the axis: runs of `length`, `count` of them, `distance` apart. */
typedef struct Slices {
    int64_t slices, count, length, distance;
} Slices;

static Error *slices_of(const KernelContext *k, const Shape *x, Slices *s) {
    const QuantizeState *st = k->state;
    *s = (Slices){1, 1, shape_count(x), 0};
    if (st->axis == -1) return NULL;
    if (st->axis >= x->rank && str_is(k->node->op, "QuantizeV2"))
        return error_invalid("Axis is on a zero-based index, so its value must always be less than number of input's dims, but given axis value was %lld and input's dims was %d",
                             (long long)st->axis, x->rank);
    if (st->axis >= x->rank) {
        return error_invalid("Axis must be less than input dimension(%d). Found %lld", x->rank, (long long)st->axis);
    }
    int axis = (int)st->axis;
    s->slices = x->dims[axis];
    s->count = shape_prod(x, 0, axis);
    s->length = shape_prod(x, axis + 1, x->rank);
    s->distance = s->slices * s->length;
    return NULL;
}

/* One number for each slice, or one in all; each op has its own words. */
static Error *check_ranges(const KernelContext *k, const Tensor *low, const Tensor *high, int64_t slices) {
    const QuantizeState *st = k->state;
    const bool back = str_is(k->node->op, "Dequantize");
    for (int i = 0; i < 2; i++) {
        const Tensor *t = i ? high : low;
        const char *name = i ? "max" : "min";
        if (t->count == slices && (st->axis == -1 || t->shape.rank == 1)) continue;
        if (back)
            return error_invalid("input_%s_tensor must have as many elements as input on the dequantization axis (%lld), got %lld, expected %lld", name, (long long)st->axis, (long long)t->count,
                                 (long long)slices);
        if (st->axis == -1) return error_invalid("If axis is not specified, %s_range must contain a single float element, but it contains %lld elements", name, (long long)t->count);
        return error_invalid(
            "If axis is specified, %s_range must be a 1-D tensor whose size matches the axis dimension of the input and output tensors, but %s_range is a %d-D tensor of size %lld and "
            "input's axis dimension is of size %lld",
            name, name, t->shape.rank, (long long)t->count, (long long)slices);
    }
    return NULL;
}

/* ---- Quantize ---- */

static float round_even_or_away(float v, bool even) {
    return even ? rintf(v) : roundf(v);
}

static void quantize_run(const QuantizeState *st, const float *x, Tensor *z, int64_t at, int64_t n, float *low,
                         float *high) {
    const Range r = type_range(z->dtype);
    if (st->mode == SCALED) {
        const float least = (float)(r.low + (st->narrow ? 1 : 0)), most = (float)r.high;
        float from_low = least * *low > 0 ? least / *low : FLT_MAX;
        float from_high = most * *high > 0 ? most / *high : FLT_MAX;
        float scale = from_low < from_high ? from_low : from_high;
        *low = least / scale;
        *high = most / scale;
        for (int64_t i = at; i < at + n; i++) {
            float v = fmaxf(fminf(x[i], *high), *low) * scale;
            put_integer(z, i, (double)round_even_or_away(v, st->half_to_even));
        }
        return;
    }
    if (st->mode == MIN_FIRST) {
        const double steps = step_count(z->dtype), range = ((double)*high - (double)*low) * (steps / (steps - 1));
        const double scale = steps / range, first = round((double)*low * scale);
        for (int64_t i = at; i < at + n; i++) put_integer(z, i, round((double)x[i] * scale) - first + r.low);
        return;
    }
    const float scale = (float)((r.high - r.low) / ((double)*high - (double)*low));
    const float half = r.is_signed ? (float)((r.high - r.low + 1) / 2) : 0;
    for (int64_t i = at; i < at + n; i++) {
        float v = (fmaxf(fminf(x[i], *high), *low) - *low) * scale;
        put_integer(z, i, r.is_signed ? (double)roundf(v - half) : floor((double)(v + 0.5f)));
    }
}

static Error *quantize(KernelContext *k) {
    const QuantizeState *st = k->state;
    const Tensor *x = k->in[0], *low = k->in[1], *high = k->in[2];
    Slices s;
    Error *err = slices_of(k, &x->shape, &s);
    if (!err) err = check_ranges(k, low, high, s.slices);
    if (err) return err;
    Shape ranges = st->axis == -1 ? SHAPE_SCALAR : shape_vector(s.slices);
    Tensor *z = kernel_output(k, 0, &x->shape), *z_low = z ? kernel_output(k, 1, &ranges) : NULL;
    Tensor *z_high = z_low ? kernel_output(k, 2, &ranges) : NULL;
    if (!z_high) return NULL;
    for (int64_t i = 0; i < s.slices; i++) {
        float from = tensor_f32(low)[i], to = tensor_f32(high)[i];
        if (from > to || isnan(from) || isnan(to)) {
            return error_invalid("input_max_range must be larger than input_min_range.");
        }
        float least = fminf(0, from), room = fmaxf(1, fmaxf(fabsf(from), fabsf(to))) * st->minimum_range;
        float most = fmaxf(0, fmaxf(to, least + room));
        tensor_f32(z_low)[i] = least;
        tensor_f32(z_high)[i] = most;
        for (int64_t run = 0; run < s.count; run++) {
            float a = least, b = most; /* the range that SCALED makes of it */
            quantize_run(st, tensor_f32(x), z, run * s.distance + i * s.length, s.length, &a, &b);
            tensor_f32(z_low)[i] = a;
            tensor_f32(z_high)[i] = b;
        }
    }
    return NULL;
}

/* ---- Dequantize ---- */

static float dequantize_scale(const QuantizeState *st, Range r, float low, float high) {
    if (st->mode == SCALED) {
        float from_high = high / (float)r.high, from_low = low / (float)(r.low + (st->narrow ? 1 : 0));
        return r.is_signed ? fmaxf(from_low, from_high) : from_high;
    }
    return (high - low) / (float)(r.high - r.low);
}

static void dequantize_run(const QuantizeState *st, const Tensor *x, Tensor *z, int64_t at, int64_t n, float low,
                           float high) {
    const Range r = type_range(x->dtype);
    const float scale = dequantize_scale(st, r, low, high);
    const float half = r.is_signed ? (float)((r.high - r.low + 1) / 2) : 0;
    const double steps = step_count(x->dtype), step = ((double)high - (double)low) * (steps / (steps - 1)) / steps;
    const double first = low == high ? (double)low : round((double)low / step) * step;
    for (int64_t i = at; i < at + n; i++) {
        double v = get_integer(x, i);
        float f = st->mode == SCALED      ? (float)v * scale
                  : st->mode == MIN_FIRST ? (float)(first + (v - r.low) * step)
                                          : ((float)v + half) * scale + low;
        if (z->dtype == DT_FLOAT) {
            tensor_f32(z)[i] = f;
        } else {
            ((uint16_t *)z->data)[i] = float_to_bfloat16(f);
        }
    }
}

static Error *dequantize(KernelContext *k) {
    const QuantizeState *st = k->state;
    const Tensor *x = k->in[0], *low = k->in[1], *high = k->in[2];
    Slices s;
    Error *err = slices_of(k, &x->shape, &s);
    if (!err) err = check_ranges(k, low, high, s.slices);
    if (err) return err;
    Tensor *z = kernel_output(k, 0, &x->shape);
    if (!z) return NULL;
    for (int64_t i = 0; i < s.slices; i++) {
        for (int64_t run = 0; run < s.count; run++) {
            dequantize_run(st, x, z, run * s.distance + i * s.length, s.length, tensor_f32(low)[i],
                           tensor_f32(high)[i]);
        }
    }
    return NULL;
}

#define STATE .state_size = sizeof(QuantizeState), .init = quantize_init

const KernelDef quantize_cpu[] = {
    {"QuantizeV2", .run = quantize, STATE},
    {"Dequantize", .run = dequantize, STATE},
    {0},
};
