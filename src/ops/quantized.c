/* quantized.c: sums of products as narrower integers: Requantize and its relatives, and the range that fits. */
#include "ops/quantized.h"

#include <math.h>

#include "ops/elements.h"
#include "ops/op_list.h"

#define QUANTIZED "{qint8, quint8, qint32, qint16, quint16}"

const OpDef quantized_ops[] = {
    {"QuantizeDownAndShrinkRange",
     "input: Tinput, input_min: float, input_max: float -> output: out_type, output_min: float, output_max: float",
     "Tinput: " QUANTIZED "; out_type: " QUANTIZED, 0},
    {"RequantizationRange", "input: Tinput, input_min: float, input_max: float -> output_min: float, output_max: float",
     "Tinput: " QUANTIZED, 0},
    {"RequantizationRangePerChannel",
     "input: T, input_min: float, input_max: float -> output_min: float, output_max: float",
     "T: " QUANTIZED " = qint32; clip_value_max: float", 0},
    {"Requantize",
     "input: Tinput, input_min: float, input_max: float, requested_output_min: float, requested_output_max: float -> "
     "output: out_type, output_min: float, output_max: float",
     "Tinput: " QUANTIZED "; out_type: " QUANTIZED, 0},
    {"RequantizePerChannel",
     "input: T, input_min: float, input_max: float, requested_output_min: float, requested_output_max: float -> "
     "output: out_type, output_min: float, output_max: float",
     "T: " QUANTIZED " = qint32; out_type: " QUANTIZED " = quint8", 0},
    {0},
};

const QuantizedType *quantized_type(DataType t) {
    switch ((int)t) {
        case DT_QINT8:
            return &quantized_i8;
        case DT_QUINT8:
            return &quantized_u8;
        case DT_QINT16:
            return &quantized_i16;
        case DT_QUINT16:
            return &quantized_u16;
        default:
            return &quantized_i32;
    }
}

Error *quantized_range_input(KernelContext *k, int i, const char *low, const char *high, QuantizedRange *out) {
    for (int j = 0; j < 2; j++)
        if (k->in[i + j]->count != 1)
            return error_invalid("%s must be a scalar, but got shape%s", j ? high : low,
                                 shape_text(&k->in[i + j]->shape).text);
    *out = (QuantizedRange){tensor_f32(k->in[i])[0], tensor_f32(k->in[i + 1])[0]};
    return NULL;
}

Error *quantized_scalars_input(KernelContext *k, int i, const char *low, const char *high, QuantizedWords words, QuantizedRange *out) {
    for (int j = 0; j < 2; j++) {
        const Shape *shape = &k->in[i + j]->shape;
        const char *name = j ? high : low;
        if (shape->rank == 0) continue;
        if (words == QUANTIZED_SHAPE)
            return error_invalid("%s shape must be rank 0 but is rank %d, received shape: %s", name, shape->rank, shape_text(shape).text);
        if (words == QUANTIZED_SCALAR) return error_invalid("%s must be a scalar, but got shape%s", name, shape_text(shape).text);
        const char *quote = words == QUANTIZED_QUOTED ? "`" : "";
        return error_invalid("%s%s%s must be rank 0 but is rank %d", quote, name, quote, shape->rank);
    }
    return quantized_range_input(k, i, low, high, out);
}

bool quantized_range_output(KernelContext *k, int i, QuantizedRange r) {
    Tensor *low = kernel_output(k, i, &SHAPE_SCALAR), *high = low ? kernel_output(k, i + 1, &SHAPE_SCALAR) : NULL;
    if (!high) return false;
    tensor_f32(low)[0] = r.low;
    tensor_f32(high)[0] = r.high;
    return true;
}

Error *quantized_need_type(const Node *node, const char *attr, DataType want) {
    DataType got;
    Error *err = node_attr_type(node, attr, &got);
    if (!err && got != want)
        err = error_invalid("No CPU kernel of op %.*s for %s of type %s; it has: %s", STR_ARG(node->op), attr,
                            dtype_name(got), dtype_name(want));
    return err;
}

/* ---- One range for all ---- */

/* From zero or below to the greatest number there is. */
static QuantizedRange actual_range(const Tensor *x, QuantizedRange given) {
    const int32_t *v = x->data;
    int32_t least = INT32_MAX, most = INT32_MIN;
    for (int64_t i = 0; i < x->count; i++) {
        least = v[i] < least ? v[i] : least;
        most = v[i] > most ? v[i] : most;
    }
    float low = quantized_to_float(&quantized_i32, least, given);
    return (QuantizedRange){low < 0 ? low : 0, quantized_to_float(&quantized_i32, most, given)};
}

static Error *run_range(KernelContext *k) {
    QuantizedRange given = {0, 0};
    for (int i = 1; i <= 2; i++)
        if (k->in[i]->count == 0) return error_invalid("Input %s must not be empty.", i == 1 ? "min" : "max");
    Error *err = quantized_range_input(k, 1, "input_min", "input_max", &given);
    if (!err) quantized_range_output(k, 0, actual_range(k->in[0], given));
    return err;
}

static void convert(KernelContext *k, QuantizedRange from, QuantizedRange to) {
    const Tensor *x = k->in[0];
    Tensor *z = kernel_output(k, 0, &x->shape);
    if (!z || !quantized_range_output(k, 1, to)) return;
    quantized_convert(&quantized_i32, from, x->data, quantized_type(z->dtype), to, z->data, z->count);
}

static Error *run_shrink(KernelContext *k) {
    QuantizedRange given = {0, 0};
    Error *err = quantized_scalars_input(k, 1, "input_min", "input_max", QUANTIZED_QUOTED, &given);
    if (!err) convert(k, given, actual_range(k->in[0], given));
    return err;
}

static Error *run_requantize(KernelContext *k) {
    QuantizedRange given = {0, 0}, asked = {0, 0};
    Error *err = quantized_scalars_input(k, 1, "input_min", "input_max", QUANTIZED_QUOTED, &given);
    if (!err) err = quantized_scalars_input(k, 3, "requested_output_min", "requested_output_max", QUANTIZED_QUOTED, &asked);
    if (err) return err;
    if (!(asked.low <= 0)) return error_invalid("requested_output_min must be <= 0, but got %g", (double)asked.low);
    if (!(asked.high >= asked.low))
        return error_invalid("requested_output_max must be >= requested_output_min, but got %g and %g", (double)asked.high, (double)asked.low);
    convert(k, given, asked);
    return NULL;
}

static Error *shrink_init(const Node *node, void *state) {
    (void)state;
    return quantized_need_type(node, "out_type", DT_QUINT8);
}

static Error *narrow_init(const Node *node, void *state) {
    (void)state;
    DataType to;
    Error *err = node_attr_type(node, "out_type", &to);
    return !err && to != DT_QINT8 ? quantized_need_type(node, "out_type", DT_QUINT8) : err;
}

/* ---- A range for each channel ---- */

static float outer(const Tensor *low, const Tensor *high, int64_t i) {
    return fmaxf(fabsf(tensor_f32(low)[i]), fabsf(tensor_f32(high)[i]));
}

static Error *clip_init(const Node *node, void *state) {
    return node_attr_float(node, "clip_value_max", state);
}

static Error *run_channel_range(KernelContext *k) {
    const Tensor *x = k->in[0], *low = k->in[1], *high = k->in[2];
    int64_t depth = high->count;
    for (int i = 1; i <= 2; i++) {
        const Shape *s = &k->in[i]->shape;
        if (s->rank != 1 || s->dims[0] != depth)
            return error_invalid("input_%s has incorrect size, expected %lld was %lld", i == 1 ? "min" : "max", (long long)depth,
                                 (long long)(s->rank ? s->dims[0] : 0));
    }
    if (x->count == 0) return error_invalid("input must not be empty");
    if (x->shape.rank != 4) return error_invalid("input must be in NHWC format");
    if (x->shape.dims[3] != depth)
        return error_invalid("input must have same number of channels as length of input_min: %lld vs %lld",
                             (long long)x->shape.dims[3], (long long)depth);
    float most = 0x1p-126f;
    bool positive = true;
    for (int64_t c = 0; c < depth; c++) {
        int64_t far = 0;
        for (int64_t i = c; i < x->count; i += depth) {
            int64_t v = tensor_i32(x)[i];
            positive &= v >= 0;
            far = (v < 0 ? -v : v) > far ? (v < 0 ? -v : v) : far;
        }
        float range = outer(low, high, c) * (float)far / 0x1p31f;
        most = range > most ? range : most;
    }
    float clip = *(const float *)k->state;
    if (most > clip) most = clip;
    quantized_range_output(k, 0, (QuantizedRange){positive ? 0 : -most, most});
    return NULL;
}

static Error *run_channels(KernelContext *k) {
    const Tensor *x = k->in[0], *low = k->in[1], *high = k->in[2];
    const QuantizedType *to = quantized_type(kernel_output_type(k, 0));
    int64_t depth = low->count;
    QuantizedRange asked = {0, 0};
    if (high->count != depth)
        return error_invalid("input_max has incorrect size, expected %lld was %lld", (long long)depth,
                             (long long)high->count);
    Error *err = quantized_range_input(k, 3, "requested_output_min", "requested_output_max", &asked);
    if (err) return err;
    if (to == &quantized_i8 && !(asked.low < 0))
        return error_invalid("If out_type is QINT8, requested_output_max must be non negative, got %g", (double)asked.low);
    int rank = x->shape.rank;
    if (rank != 4 && rank != 5) return error_invalid("input must have 4 or 5 dimensions, got shape %s", shape_text(&x->shape).text);
    if (x->shape.dims[rank - 1] != depth)
        return error_invalid("input has %lld channels, but input_min has %lld elements",
                             (long long)x->shape.dims[rank - 1], (long long)depth);
    Tensor *z = kernel_output(k, 0, &x->shape);
    if (!z || !quantized_range_output(k, 1, asked)) return NULL;
    const float most = fmaxf(fabsf(asked.low), fabsf(asked.high)), factor = to == &quantized_i8 ? 127.0f : 255.0f;
    for (int64_t c = 0; c < depth; c++) {
        const float scale = factor * (outer(low, high, c) / most / 0x1p31f);
        for (int64_t i = c; i < x->count; i += depth) {
            float v = (float)tensor_i32(x)[i] * scale;
            v = v > (float)to->lowest ? v < (float)to->highest ? v : (float)to->highest : (float)to->lowest;
            quantized_put(to, z->data, i, (int32_t)rintf(v));
        }
    }
    return NULL;
}

const KernelDef quantized_cpu[] = {
    {"QuantizeDownAndShrinkRange", .by_type = {[DT_QINT32] = run_shrink}, .type_attr = "Tinput", .init = shrink_init},
    {"RequantizationRange", .by_type = {[DT_QINT32] = run_range}, .type_attr = "Tinput"},
    {"RequantizationRangePerChannel",
     .by_type = {[DT_QINT32] = run_channel_range},
     .state_size = sizeof(float),
     .init = clip_init},
    {"Requantize", .by_type = {[DT_QINT32] = run_requantize}, .type_attr = "Tinput", .init = narrow_init},
    {"RequantizePerChannel", .by_type = {[DT_QINT32] = run_channels}, .init = narrow_init},
    {0},
};
