/* quantized_math.c: arithmetic on integers that stand for floats: QuantizedAdd, QuantizedMul, QuantizedBiasAdd, QuantizedRelu, norms. */
#include <math.h>

#include "kernels/broadcast.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"
#include "ops/quantized.h"

#define QUANTIZED "{qint8, quint8, qint32, qint16, quint16}"

const OpDef quantized_math_ops[] = {
    {"QuantizedAdd",
     "x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float -> z: Toutput, min_z: float, max_z: float",
     "T1: " QUANTIZED "; T2: " QUANTIZED "; Toutput: " QUANTIZED " = qint32", 0},
    {"QuantizedMul",
     "x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float -> z: Toutput, min_z: float, max_z: float",
     "T1: " QUANTIZED "; T2: " QUANTIZED "; Toutput: " QUANTIZED " = qint32", 0},
    {"QuantizedBiasAdd",
     "input: T1, bias: T2, min_input: float, max_input: float, min_bias: float, max_bias: float -> output: out_type, "
     "min_out: float, max_out: float",
     "T1: " QUANTIZED "; T2: " QUANTIZED "; out_type: " QUANTIZED, 0},
    {"QuantizedRelu",
     "features: Tinput, min_features: float, max_features: float -> activations: out_type, min_activations: float, "
     "max_activations: float",
     "Tinput: " QUANTIZED "; out_type: " QUANTIZED " = quint8", 0},
    {"QuantizedRelu6",
     "features: Tinput, min_features: float, max_features: float -> activations: out_type, min_activations: float, "
     "max_activations: float",
     "Tinput: " QUANTIZED "; out_type: " QUANTIZED " = quint8", 0},
    {"QuantizedBatchNormWithGlobalNormalization",
     "t: Tinput, t_min: float, t_max: float, m: Tinput, m_min: float, m_max: float, v: Tinput, v_min: float, v_max: "
     "float, beta: Tinput, beta_min: float, beta_max: float, gamma: Tinput, gamma_min: float, gamma_max: float -> "
     "result: out_type, result_min: float, result_max: float",
     "Tinput: " QUANTIZED "; out_type: " QUANTIZED "; variance_epsilon: float; scale_after_normalization: bool", 0},
    {"QuantizedInstanceNorm", "x: T, x_min: float, x_max: float -> y: T, y_min: float, y_max: float",
     "T: " QUANTIZED
     "; output_range_given: bool = false; given_y_min: float = 0.0; given_y_max: float = 0.0; variance_epsilon: float "
     "= 1e-05; min_separation: float = 0.001000000047",
     0},
    {0},
};

/* ---- Two tensors ---- */

static Error *bytes_init(const Node *node, void *state) {
    (void)state;
    Error *err = quantized_need_type(node, "T2", DT_QUINT8);
    return err ? err : quantized_need_type(node, "Toutput", DT_QINT32);
}

typedef struct Operand {
    const uint8_t *data;
    int64_t count;
    QuantizedRange range;
    int64_t zero, one; /* where 0 lies, and how far the next integer; in the result's integers for sums */
} Operand;

/* The range of operand i; both numbers are scalars. */
static Error *operand(KernelContext *k, int i, Operand *out) {
    const char *const names[] = {"min_x", "max_x", "min_y", "max_y"};
    for (int j = 0; j < 2; j++)
        if (k->in[2 + 2 * i + j]->shape.rank != 0)
            return node_is(k->node, "QuantizedMul") ? error_invalid("%s must be a scalar", names[2 * i + j])
                                                    : error_invalid("`%s` must be rank 0 but is rank %d", names[2 * i + j],
                                                                    k->in[2 + 2 * i + j]->shape.rank);
    *out = (Operand){tensor_u8(k->in[i]), k->in[i]->count, {0, 0}, 0, 0};
    return quantized_range_input(k, 2 + 2 * i, names[2 * i], names[2 * i + 1], &out->range);
}

/* Which elements meet. A vector of fewer elements is repeated over the other tensor from its first element on, as TensorFlow does
 * whatever the shapes say, as long as the result has the size of the other. */
typedef struct Pairs {
    BroadcastPlan plan;
    Shape shape;
    bool wraps;
} Pairs;

static Error *pairs_init(Pairs *p, const KernelContext *k) {
    const Shape *x = &k->in[0]->shape, *y = &k->in[1]->shape;
    int64_t few = k->in[0]->count < k->in[1]->count ? k->in[0]->count : k->in[1]->count;
    BroadcastInput inputs[2] = {{x->rank, x->dims}, {y->rank, y->dims}};
    if (!broadcast_plan_init(&p->plan, inputs, 2)) return incompatible_shapes(x, y);
    if (p->plan.rank > 2)
        return error_unimplemented("Broadcast between %s and %s is not supported yet.", shape_text(x).text,
                                   shape_text(y).text);
    if (few == 0 && !shape_eq(x, y) && k->in[0]->count + k->in[1]->count > 1)
        return error_invalid(node_is(k->node, "QuantizedAdd") ? "Must have some elements to add" : "vector must have at least 1 element");
    p->shape = shape_of(p->plan.out_rank, p->plan.out_dims);
    p->wraps = p->plan.count == (k->in[0]->count > k->in[1]->count ? k->in[0]->count : k->in[1]->count);
    return NULL;
}

static inline int64_t pairs_at(const Pairs *p, int input, int64_t count, int64_t i) {
    if (p->wraps) return i % count;
    int64_t last = p->plan.dims[p->plan.rank - 1];
    return i / last * p->plan.strides[input][0] + i % last * p->plan.strides[input][p->plan.rank - 1];
}

static int32_t in_sum(const Operand *o, uint8_t v) {
    int64_t at = o->zero + v * o->one;
    return at < INT32_MIN ? INT32_MIN : at > INT32_MAX ? INT32_MAX : (int32_t)at;
}

static Error *run_add(KernelContext *k) {
    Operand o[2];
    Pairs pairs;
    Error *err = operand(k, 0, &o[0]);
    if (!err) err = operand(k, 1, &o[1]);
    if (!err) err = pairs_init(&pairs, k);
    if (err) return err;
    if (!(o[0].range.high > o[0].range.low)) return error_invalid("max_x must be larger than min_x.");
    if (!(o[1].range.high > o[1].range.low)) return error_invalid("max_y must be larger than min_y.");
    float low = o[0].range.low < o[1].range.low ? o[0].range.low : o[1].range.low,
          high = o[0].range.high > o[1].range.high ? o[0].range.high : o[1].range.high,
          wide = fmaxf(fabsf(low), fabsf(high)) * (1 << 14);
    QuantizedRange sum = {-wide, wide};
    Tensor *z = kernel_output(k, 0, &pairs.shape);
    if (!z || !quantized_range_output(k, 1, sum)) return NULL;
    for (int j = 0; j < 2; j++) {
        o[j].zero = quantized_place(&quantized_i32, quantized_to_float(&quantized_u8, 0, o[j].range), sum);
        o[j].one = (int32_t)(quantized_place(&quantized_i32, quantized_to_float(&quantized_u8, 1, o[j].range), sum) - o[j].zero);
    }
    /* One number is converted by itself, not along the line through the first two. */
    int alone = pairs.plan.rank > 1 ? -1 : o[0].count == 1 ? 0 : o[1].count == 1 ? 1 : -1;
    int32_t single = alone < 0 ? 0 : quantized_move(&quantized_u8, o[alone].range, &quantized_i32, sum, o[alone].data[0]);
    for (int64_t i = 0; i < z->count; i++) {
        uint32_t a = (uint32_t)(alone == 0 ? single : in_sum(&o[0], o[0].data[pairs_at(&pairs, 0, o[0].count, i)])),
                 b = (uint32_t)(alone == 1 ? single : in_sum(&o[1], o[1].data[pairs_at(&pairs, 1, o[1].count, i)]));
        tensor_i32(z)[i] = (int32_t)(a + b);
    }
    return NULL;
}

static Error *run_mul(KernelContext *k) {
    Operand o[2];
    Pairs pairs;
    Error *err = operand(k, 0, &o[0]);
    if (!err) err = operand(k, 1, &o[1]);
    if (!err) err = pairs_init(&pairs, k);
    if (err) return err;
    for (int j = 0; j < 2; j++) {
        if (!(o[j].range.high > o[j].range.low)) return error_invalid("max_x must be larger than min_%c.", j ? 'b' : 'a');
        o[j].zero = quantized_place(&quantized_u8, 0.0f, o[j].range);
    }
    Tensor *z = kernel_output(k, 0, &pairs.shape);
    if (!z || !quantized_range_output(k, 1, quantized_product_range(&quantized_u8, o[0].range, &quantized_u8, o[1].range, false)))
        return NULL;
    const uint32_t x0 = (uint32_t)o[0].zero, y0 = (uint32_t)o[1].zero;
    for (int64_t i = 0; i < z->count; i++) {
        uint32_t x = o[0].data[pairs_at(&pairs, 0, o[0].count, i)], y = o[1].data[pairs_at(&pairs, 1, o[1].count, i)];
        tensor_i32(z)[i] = (int32_t)((x - x0) * (y - y0));
    }
    return NULL;
}

static Error *bias_init(const Node *node, void *state) {
    (void)state;
    DataType type;
    Error *err = node_attr_type(node, "T1", &type);
    if (!err) err = quantized_need_type(node, "T2", type);
    return err ? err : quantized_need_type(node, "out_type", DT_QINT32);
}

static Error *run_bias(KernelContext *k) {
    const Tensor *x = k->in[0], *bias = k->in[1];
    const QuantizedType *type = quantized_type(x->dtype);
    QuantizedRange of_x = {0, 0}, of_bias = {0, 0};
    Error *err = quantized_scalars_input(k, 2, "min_input", "max_input", QUANTIZED_QUOTED, &of_x);
    if (!err) err = quantized_scalars_input(k, 4, "min_bias", "max_bias", QUANTIZED_QUOTED, &of_bias);
    if (err) return err;
    if (x->shape.rank < 2) return error_invalid("Input tensor must be at least 2D: %s", shape_text(&x->shape).text);
    if (bias->shape.rank != 1) return error_invalid("Biases must be 1D: %s", shape_text(&bias->shape).text);
    int64_t depth = x->shape.dims[x->shape.rank - 1];
    if (bias->count != depth)
        return error_invalid("Must provide as many biases as the last dimension of the input tensor: %s vs. %s",
                             shape_text(&bias->shape).text, shape_text(&x->shape).text);
    float wide = fmaxf(fmaxf(of_x.high, -of_x.low), fmaxf(of_bias.high, -of_bias.low)) * (1 << 17);
    QuantizedRange sum = {-wide, wide};
    Tensor *z = kernel_output(k, 0, &x->shape);
    if (!z || !quantized_range_output(k, 1, sum)) return NULL;
    const uint32_t zero = (uint32_t)quantized_from_float(&quantized_i32, 0.0f, sum);
    const QuantizedReader read_x = quantized_reader(type, of_x), read_bias = quantized_reader(type, of_bias);
    const QuantizedWriter writer = quantized_writer(&quantized_i32, sum);
    for (int64_t i = 0; i < z->count; i++) {
        uint32_t a = (uint32_t)quantized_write(writer, quantized_read(read_x, quantized_get(type, x->data, i))),
                 b = (uint32_t)quantized_write(writer, quantized_read(read_bias, quantized_get(type, bias->data, i % depth)));
        tensor_i32(z)[i] = (int32_t)(a + b + zero);
    }
    return NULL;
}

/* ---- Relu ---- */

static Error *relu_init(const Node *node, void *state) {
    DataType type;
    *(bool *)state = str_is(node->op, "QuantizedRelu6");
    Error *err = node_attr_type(node, "Tinput", &type);
    return err ? err : quantized_need_type(node, "out_type", type);
}

static Error *run_relu(KernelContext *k) {
    const Tensor *x = k->in[0];
    const QuantizedType *type = quantized_type(x->dtype);
    QuantizedRange range = {0, 0};
    Error *err = quantized_scalars_input(k, 1, "min_input", "max_input", QUANTIZED_QUOTED, &range);
    if (err) return err;
    int32_t least = quantized_from_float(type, 0.0f, range),
            most = *(const bool *)k->state ? quantized_from_float(type, 6.0f, range) : (int32_t)type->highest;
    Tensor *z = kernel_output_from(k, 0, 0, &x->shape);
    if (!z || !quantized_range_output(k, 1, range)) return NULL;
    for (int64_t i = 0; i < z->count; i++) {
        int32_t v = quantized_get(type, x->data, i);
        v = v < least ? least : v;
        quantized_put(type, z->data, i, v > most ? most : v);
    }
    return NULL;
}

/* ---- Norms ---- */

typedef struct BatchState {
    float epsilon;
    bool scales;
} BatchState;

static Error *batch_init(const Node *node, void *state) {
    BatchState *st = state;
    Error *err = node_attr_float(node, "variance_epsilon", &st->epsilon);
    if (!err) err = node_attr_bool(node, "scale_after_normalization", &st->scales);
    return err ? err : quantized_need_type(node, "out_type", DT_QINT32);
}

static Error *run_batch_norm(KernelContext *k) {
    static const char *const names[] = {"input", "mean", "var", "beta", "gamma"};
    const BatchState *st = k->state;
    QuantizedRange range[5];
    for (int i = 0; i < 5; i++) {
        Error *err = quantized_range_input(k, 3 * i + 1, "The minimum", "The maximum", &range[i]);
        if (err) return err;
    }
    for (int i = 0; i < 5; i++)
        if (k->in[3 * i]->shape.rank != (i ? 1 : 4))
            return error_invalid("%s must be %d-dimensional%s", names[i], i ? 1 : 4, shape_text(&k->in[3 * i]->shape).text);
    const Tensor *x = k->in[0];
    int64_t depth = k->in[3]->count;
    for (int i = 2; i < 5; i++)
        if (k->in[3 * i]->count != depth || depth < 1)
            return error_invalid("%s must have the same shape as mean and at least one element: %s vs. %s", names[i],
                                 shape_text(&k->in[3 * i]->shape).text, shape_text(&k->in[3]->shape).text);
    if (x->shape.dims[3] != depth)
        return error_invalid("input has %lld channels, but mean has %lld elements", (long long)x->shape.dims[3], (long long)depth);
    const QuantizedRange out = {-(1 << 20), 1 << 20};
    Shape two = shape_matrix(2, depth);
    Tensor *z = kernel_output(k, 0, &x->shape), *lines = z ? kernel_scratch(k, DT_INT32, &two) : NULL;
    if (!lines) return NULL;
    int32_t *scale = tensor_i32(lines), *offset = scale + depth;
    for (int64_t c = 0; c < depth; c++) {
        float v[5];
        for (int i = 1; i < 5; i++) v[i] = quantized_to_float(&quantized_u8, tensor_u8(k->in[3 * i])[c], range[i]);
        float by = 1.0f / sqrtf(v[2] + st->epsilon) * (st->scales ? v[4] : 1.0f);
        scale[c] = quantized_from_float(&quantized_i32, by, out);
        offset[c] = quantized_from_float(&quantized_i32, -v[1] * by + v[3], out);
    }
    const int32_t one = quantized_from_float(&quantized_i32, 1.0f, out);
    for (int64_t i = 0; i < x->count; i++) {
        int32_t v = quantized_move(&quantized_u8, range[0], &quantized_i32, out, tensor_u8(x)[i]);
        int32_t product = (int32_t)((uint32_t)v * (uint32_t)scale[i % depth]) / one;
        tensor_i32(z)[i] = (int32_t)((uint32_t)product + (uint32_t)offset[i % depth]);
    }
    tensor_unref(lines);
    quantized_range_output(k, 1, out);
    return NULL;
}

typedef struct InstanceState {
    bool given;
    QuantizedRange range;
    float epsilon, separation;
} InstanceState;

static Error *instance_init(const Node *node, void *state) {
    InstanceState *st = state;
    Error *err = node_attr_bool(node, "output_range_given", &st->given);
    if (!err) err = node_attr_float(node, "given_y_min", &st->range.low);
    if (!err) err = node_attr_float(node, "given_y_max", &st->range.high);
    if (!err) err = node_attr_float(node, "variance_epsilon", &st->epsilon);
    if (!err) err = node_attr_float(node, "min_separation", &st->separation);
    if (!err && st->given && !(st->range.low < st->range.high))
        err = error_invalid("given_y_min must be less than given_y_max : %g >= %g", (double)st->range.low,
                            (double)st->range.high);
    return err;
}

/* The pixels of one channel of one image, `step` apart, normed. */
static void norm_channel(const uint8_t *x, float *z, int64_t pixels, int64_t step, float scale, float epsilon) {
    float sum = 0, squares = 0;
    for (int64_t i = 0; i < pixels; i++) sum += x[i * step];
    float mean = sum / (float)pixels;
    for (int64_t i = 0; i < pixels; i++) {
        float d = scale * (x[i * step] - mean);
        squares += d * d;
    }
    float by = 1.0f / sqrtf(squares / (float)pixels + epsilon);
    for (int64_t i = 0; i < pixels; i++) z[i * step] = scale * (x[i * step] - mean) * by;
}

static Error *run_instance_norm(KernelContext *k) {
    const InstanceState *st = k->state;
    const Tensor *x = k->in[0];
    QuantizedRange in = {0, 0}, range = st->range;
    for (int i = 1; i <= 2; i++)
        if (k->in[i]->shape.rank != 0)
            return error_invalid("`x_%s` must be rank 0 but is rank %d", i == 1 ? "min" : "max", k->in[i]->shape.rank);
    Error *err = quantized_range_input(k, 1, "x_min", "x_max", &in);
    if (err) return err;
    if (!(in.low < in.high))
        return error_invalid("input_min must be less than input_max : %g >= %g", (double)in.low, (double)in.high);
    if (x->shape.rank != 4 || x->count == 0)
        return error_invalid("input must be 4-dimensional and not empty, got shape %s", shape_text(&x->shape).text);
    Tensor *z = kernel_output(k, 0, &x->shape), *normed = z ? kernel_scratch(k, DT_FLOAT, &x->shape) : NULL;
    if (!normed) return NULL;
    const int64_t channels = x->shape.dims[3], pixels = x->shape.dims[1] * x->shape.dims[2];
    float *v = tensor_f32(normed);
    for (int64_t b = 0; b < x->shape.dims[0]; b++)
        for (int64_t c = 0; c < channels; c++) {
            int64_t at = b * pixels * channels + c;
            norm_channel(tensor_u8(x) + at, v + at, pixels, channels, (in.high - in.low) / 255.0f, st->epsilon);
        }
    if (!st->given) range = (QuantizedRange){v[0], v[0]};
    for (int64_t i = 0; !st->given && i < x->count; i++) {
        range.low = v[i] < range.low ? v[i] : range.low;
        range.high = v[i] > range.high ? v[i] : range.high;
    }
    if (range.high - range.low < st->separation) range.high = range.low + st->separation;
    const QuantizedWriter writer = quantized_writer(&quantized_u8, range);
    for (int64_t i = 0; i < x->count; i++) tensor_u8(z)[i] = (uint8_t)quantized_write(writer, v[i]);
    tensor_unref(normed);
    quantized_range_output(k, 1, range);
    return NULL;
}

const KernelDef quantized_math_cpu[] = {
    {"QuantizedAdd", .by_type = {[DT_QUINT8] = run_add}, .type_attr = "T1", .init = bytes_init},
    {"QuantizedMul", .by_type = {[DT_QUINT8] = run_mul}, .type_attr = "T1", .init = bytes_init},
    {"QuantizedBiasAdd", .by_type = {[DT_QINT8] = run_bias, [DT_QUINT8] = run_bias}, .type_attr = "T1", .init = bias_init},
    {"QuantizedRelu", .by_type = {[DT_QUINT8] = run_relu, [DT_QINT32] = run_relu}, .type_attr = "Tinput", .state_size = sizeof(bool), .init = relu_init},
    {"QuantizedRelu6", .by_type = {[DT_QUINT8] = run_relu, [DT_QINT32] = run_relu}, .type_attr = "Tinput", .state_size = sizeof(bool), .init = relu_init},
    {"QuantizedBatchNormWithGlobalNormalization",
     .by_type = {[DT_QUINT8] = run_batch_norm},
     .type_attr = "Tinput",
     .state_size = sizeof(BatchState),
     .init = batch_init},
    {"QuantizedInstanceNorm", .by_type = {[DT_QUINT8] = run_instance_norm}, .state_size = sizeof(InstanceState), .init = instance_init},
    {0},
};
