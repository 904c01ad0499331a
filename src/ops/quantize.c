/* quantize.c: QuantizeV2, Dequantize: floats as small integers with a range, and back. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/float16.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
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

/* How the numbers of one range become integers. */
typedef struct Line {
    const QuantizeState *state;
    Range type;
    size_t size; /* of the type */
    float low, high, scale, half;
    float first; /* of MIN_FIRST: what the type's lowest number stands for, scaled */
} Line;

/* Halves away from zero, without a call. */
static inline float round_away(float v) {
    return truncf(v + copysignf(0x1.fffffep-2f, v));
}

/* NaN: the high end. */
static inline float bounded(float v, const Line *l) {
    v = v < l->high ? v : l->high;
    return v > l->low ? v : l->low;
}

/* NaN: the least. */
INLINE float within(float v, float low, float high) {
    v = v >= low ? v : low;
    return v <= high ? v : high;
}
/* The limits of small types are floats, those of int32 are not. */
INLINE void places(const Line *l, const float *x, void *z, int64_t n, float (*place)(const Line *, float)) {
    const Line own = *l;
    const float low = (float)own.type.low, high = (float)own.type.high;
    uint8_t *bytes = z;
    uint16_t *shorts = z;
    int32_t *words = z;
    if (own.size == 1) {
        NO_OVERLAP for (int64_t i = 0; i < n; i++) bytes[i] = (uint8_t)(int32_t)within(place(&own, x[i]), low, high);
    } else if (own.size == 2) {
        NO_OVERLAP for (int64_t i = 0; i < n; i++) shorts[i] = (uint16_t)(int32_t)within(place(&own, x[i]), low, high);
    } else {
        NO_OVERLAP for (int64_t i = 0; i < n; i++) {
            double v = (double)place(&own, x[i]);
            v = v >= own.type.low ? v : own.type.low;
            words[i] = (int32_t)(v <= own.type.high ? v : own.type.high);
        }
    }
}

static inline float place_even(const Line *l, float v) {
    return rintf(bounded(v, l) * l->scale);
}
static inline float place_away(const Line *l, float v) {
    return round_away(bounded(v, l) * l->scale);
}
static inline float place_first(const Line *l, float v) {
    return round_away(v * l->scale) - l->first;
}
static inline float place_signed(const Line *l, float v) {
    return round_away((bounded(v, l) - l->low) * l->scale - l->half);
}
static inline float place_unsigned(const Line *l, float v) {
    return floorf((bounded(v, l) - l->low) * l->scale + 0.5f);
}

#define PLACES_PARAMS (const Line *l, const float *x, void *z, int64_t n)
#define PLACES_ARGS (l, x, z, n)
CPU_LOOP(places_even, PLACES_PARAMS, PLACES_ARGS, places(l, x, z, n, place_even))
CPU_LOOP(places_away, PLACES_PARAMS, PLACES_ARGS, places(l, x, z, n, place_away))
CPU_LOOP(places_first, PLACES_PARAMS, PLACES_ARGS, places(l, x, z, n, place_first))
CPU_LOOP(places_signed, PLACES_PARAMS, PLACES_ARGS, places(l, x, z, n, place_signed))
CPU_LOOP(places_unsigned, PLACES_PARAMS, PLACES_ARGS, places(l, x, z, n, place_unsigned))

/* SCALED makes another range of low and high. */
static Line line_of(const QuantizeState *st, DataType type, float *low, float *high) {
    Line l = {.state = st, .type = type_range(type), .size = dtype_size(type)};
    const Range r = l.type;
    if (st->mode == SCALED) {
        const float least = (float)(r.low + (st->narrow ? 1 : 0)), most = (float)r.high;
        float from_low = least * *low > 0 ? least / *low : FLT_MAX;
        float from_high = most * *high > 0 ? most / *high : FLT_MAX;
        l.scale = from_low < from_high ? from_low : from_high;
        *low = least / l.scale;
        *high = most / l.scale;
    } else if (st->mode == MIN_FIRST) {
        l.scale = (float)((step_count(type) - 1) / (double)(*high - *low));
        l.first = roundf(*low * l.scale) - (float)r.low;
        l.type.high = fmin(r.high, 0x1.fffffep30); /* the largest float that is an int32 */
    } else {
        l.scale = (float)((r.high - r.low) / (double)(*high - *low));
        l.half = r.is_signed ? (float)((r.high - r.low + 1) / 2) : 0;
    }
    l.low = *low;
    l.high = *high;
    return l;
}

static void quantize_run(const Line *l, const float *x, Tensor *z, int64_t at, int64_t n) {
    const QuantizeState *st = l->state;
    void *to = (char *)z->data + (size_t)at * l->size;
    if (st->mode == SCALED) {
        (st->half_to_even ? places_even : places_away)(l, x + at, to, n);
    } else if (st->mode == MIN_FIRST) {
        places_first(l, x + at, to, n);
    } else {
        (l->type.is_signed ? places_signed : places_unsigned)(l, x + at, to, n);
    }
}

typedef struct QuantizeJob {
    const Line *line;
    const float *x;
    Tensor *z;
    int64_t first;
} QuantizeJob;

static void quantize_range(void *arg, int64_t begin, int64_t end) {
    const QuantizeJob *job = arg;
    quantize_run(job->line, job->x, job->z, job->first + begin, end - begin);
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
        Line line = line_of(st, z->dtype, &least, &most);
        if (s.count > 0) {
            tensor_f32(z_low)[i] = least;
            tensor_f32(z_high)[i] = most;
        }
        for (int64_t run = 0; run < s.count; run++) {
            QuantizeJob job = {&line, tensor_f32(x), z, run * s.distance + i * s.length};
            threadpool_parallel_for(k->pool, s.length, 1 << 15, quantize_range, &job);
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

#define LOADS(name, type)                                                                                \
    INLINE void name##_row(double *z, const type *x, int64_t n) {                                          \
        NO_OVERLAP for (int64_t i = 0; i < n; i++) z[i] = x[i];                                            \
    }                                                                                                    \
    CPU_LOOP(name, (double *z, const void *x, int64_t n), (z, x, n), name##_row(z, x, n))
LOADS(load_i8, int8_t)
LOADS(load_u8, uint8_t)
LOADS(load_i16, int16_t)
LOADS(load_u16, uint16_t)
LOADS(load_i32, int32_t)

static void load_integers(const Tensor *x, int64_t at, int64_t n, double *to) {
    const void *from = (const char *)x->data + (size_t)at * dtype_size(x->dtype);
    switch ((int)x->dtype) {
        case DT_QINT8:
            load_i8(to, from, n);
            break;
        case DT_QUINT8:
            load_u8(to, from, n);
            break;
        case DT_QINT16:
            load_i16(to, from, n);
            break;
        case DT_QUINT16:
            load_u16(to, from, n);
            break;
        default:
            load_i32(to, from, n);
    }
}

/* The numbers that integers of one range stand for. */
typedef struct BackLine {
    float scale, half, low;
    double lowest, first, step; /* of MIN_FIRST */
} BackLine;

INLINE void scaled_row(const BackLine *l, const double *v, float *z, int64_t n) {
    const float scale = l->scale;
    NO_OVERLAP for (int64_t i = 0; i < n; i++) z[i] = (float)v[i] * scale;
}
INLINE void first_row(const BackLine *l, const double *v, float *z, int64_t n) {
    const double first = l->first, lowest = l->lowest, step = l->step;
    NO_OVERLAP for (int64_t i = 0; i < n; i++) z[i] = (float)(first + (v[i] - lowest) * step);
}
INLINE void combined_row(const BackLine *l, const double *v, float *z, int64_t n) {
    const float scale = l->scale, half = l->half, low = l->low;
    NO_OVERLAP for (int64_t i = 0; i < n; i++) z[i] = ((float)v[i] + half) * scale + low;
}
#define BACK_PARAMS (const BackLine *l, const double *v, float *z, int64_t n)
#define BACK_ARGS (l, v, z, n)
CPU_LOOP(scaled_back, BACK_PARAMS, BACK_ARGS, scaled_row(l, v, z, n))
CPU_LOOP(first_back, BACK_PARAMS, BACK_ARGS, first_row(l, v, z, n))
CPU_LOOP(combined_back, BACK_PARAMS, BACK_ARGS, combined_row(l, v, z, n))

typedef struct DequantizeJob {
    const QuantizeState *state;
    BackLine line;
    const Tensor *x;
    Tensor *z;
    int64_t first;
} DequantizeJob;

static void dequantize_range(void *arg, int64_t begin, int64_t end) {
    enum { PIECE = 1024 };
    const DequantizeJob *job = arg;
    const Mode mode = job->state->mode;
    double v[PIECE];
    float f[PIECE];
    for (int64_t i = job->first + begin; i < job->first + end; i += PIECE) {
        int64_t n = job->first + end - i < PIECE ? job->first + end - i : PIECE;
        const bool floats = job->z->dtype == DT_FLOAT;
        load_integers(job->x, i, n, v);
        (mode == SCALED ? scaled_back : mode == MIN_FIRST ? first_back : combined_back)(&job->line, v, floats ? tensor_f32(job->z) + i : f, n);
        for (int64_t j = 0; j < n && !floats; j++) ((uint16_t *)job->z->data)[i + j] = float_to_bfloat16(f[j]);
    }
}

static BackLine back_line_of(const QuantizeState *st, DataType type, float low, float high) {
    const Range r = type_range(type);
    const double steps = step_count(type), step = ((double)high - (double)low) * (steps / (steps - 1)) / steps;
    return (BackLine){.scale = dequantize_scale(st, r, low, high), .half = r.is_signed ? (float)((r.high - r.low + 1) / 2) : 0, .low = low, .lowest = r.low,
                      .first = low == high ? (double)low : round((double)low / step) * step, .step = step};
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
        DequantizeJob job = {st, back_line_of(st, x->dtype, tensor_f32(low)[i], tensor_f32(high)[i]), x, z, 0};
        for (int64_t run = 0; run < s.count; run++) {
            job.first = run * s.distance + i * s.length;
            threadpool_parallel_for(k->pool, s.length, 1 << 15, dequantize_range, &job);
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
