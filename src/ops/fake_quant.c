/* fake_quant.c: FakeQuantWithMinMax*, QuantizeAndDequantize*: floats rounded as quantization would; gradients. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/fake_quant.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef fake_quant_ops[] = {
    {"FakeQuantWithMinMaxArgs", "inputs: float -> outputs: float",
     "min: float = -6.0; max: float = 6.0; num_bits: int = 8; narrow_range: bool = false", 0},
    {"FakeQuantWithMinMaxArgsGradient", "gradients: float, inputs: float -> backprops: float",
     "min: float = -6.0; max: float = 6.0; num_bits: int = 8; narrow_range: bool = false", 0},
    {"FakeQuantWithMinMaxVars", "inputs: float, min: float, max: float -> outputs: float",
     "num_bits: int = 8; narrow_range: bool = false", 0},
    {"FakeQuantWithMinMaxVarsGradient",
     "gradients: float, inputs: float, min: float, max: float -> backprops_wrt_input: float, backprop_wrt_min: float, "
     "backprop_wrt_max: float",
     "num_bits: int = 8; narrow_range: bool = false", 0},
    {"FakeQuantWithMinMaxVarsPerChannel", "inputs: float, min: float, max: float -> outputs: float",
     "num_bits: int = 8; narrow_range: bool = false", 0},
    {"FakeQuantWithMinMaxVarsPerChannelGradient",
     "gradients: float, inputs: float, min: float, max: float -> backprops_wrt_input: float, backprop_wrt_min: float, "
     "backprop_wrt_max: float",
     "num_bits: int = 8; narrow_range: bool = false", 0},
    {"QuantizeAndDequantize", "input: T -> output: T",
     "signed_input: bool = true; num_bits: int = 8; range_given: bool = false; input_min: float = 0.0; input_max: "
     "float = 0.0; T: {bfloat16, half, float, double}",
     0},
    {"QuantizeAndDequantizeV2", "input: T, input_min: T, input_max: T -> output: T",
     "signed_input: bool = true; num_bits: int = 8; range_given: bool = false; T: {bfloat16, half, float, double}; "
     "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'; narrow_range: bool = false; axis: int = -1",
     0},
    {"QuantizeAndDequantizeV3", "input: T, input_min: T, input_max: T, num_bits: int32 -> output: T",
     "signed_input: bool = true; range_given: bool = true; T: {bfloat16, half, float, double}; narrow_range: bool = "
     "false; axis: int = -1",
     0},
    {"QuantizeAndDequantizeV4", "input: T, input_min: T, input_max: T -> output: T",
     "signed_input: bool = true; num_bits: int = 8; range_given: bool = false; T: {bfloat16, half, float, double}; "
     "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'; narrow_range: bool = false; axis: int = -1",
     0},
    {"QuantizeAndDequantizeV4Grad",
     "gradients: T, input: T, input_min: T, input_max: T -> input_backprop: T, input_min_backprop: T, "
     "input_max_backprop: T",
     "T: {bfloat16, half, float, double}; axis: int = -1", 0},
    {0},
};

/* ---- FakeQuantWithMinMax* ---- */

typedef struct FakeState {
    float low, high; /* of the Args forms */
    bool per_channel, has_args;
    float least, most; /* integers */
} FakeState;

static Error *fake_init(const Node *node, void *state) {
    FakeState *st = state;
    int64_t bits = 8;
    bool narrow = false;
    Error *err = node_attr_int(node, "num_bits", &bits);
    if (!err) err = node_attr_bool(node, "narrow_range", &narrow);
    st->per_channel = str_starts(node->op, STR("FakeQuantWithMinMaxVarsPerChannel"));
    st->has_args = str_starts(node->op, STR("FakeQuantWithMinMaxArgs"));
    if (!err && st->has_args) err = node_attr_float(node, "min", &st->low);
    if (!err && st->has_args) err = node_attr_float(node, "max", &st->high);
    if (err) return err;
    if (st->has_args && !(st->low < st->high)) {
        return error_invalid("min has to be smaller than max, was: %g >= %g", (double)st->low, (double)st->high);
    }
    if (bits < 2 || bits > 16) {
        return error_invalid("num_bits must be between 2 and 16, inclusive");
    }
    st->least = narrow ? 1 : 0;
    st->most = (float)((1 << bits) - 1);
    return NULL;
}

/* The range moved so that zero is one of its steps. */
typedef struct Nudged {
    float low, high, scale;
    bool empty; /* min and max were both 0 */
} Nudged;

static Nudged nudge(const FakeState *st, float low, float high) {
    float scale = (high - low) / (st->most - st->least), zero = st->least - low / scale;
    zero = zero < st->least ? st->least : zero > st->most ? st->most : roundf(zero);
    return (Nudged){(st->least - zero) * scale, (st->most - zero) * scale, scale, low == 0 && high == 0};
}

static float fake_one(const Nudged *n, float x) {
    if (n->empty) return 0;
    if (isnan(x)) return x;
    const float inverse = 1 / n->scale, zero = floorf(-n->low * inverse + 0.5f);
    float v = fmaxf(fminf(x, n->high), n->low) - n->low; /* in this order: a range may be upside down */
    return floorf(v * inverse - zero + 0.5f) * n->scale;
}

/* The ranges: attributes, two scalars or two vectors in inputs `first` and the next, one number per channel. */
static Error *fake_ranges(const KernelContext *k, int first, int64_t *channels) {
    const FakeState *st = k->state;
    const Shape *x = &k->in[first - 1]->shape;
    *channels = 1;
    if (st->has_args) return NULL;
    const Tensor *low = k->in[first], *high = k->in[first + 1];
    if (st->per_channel && x->rank < 1) return error_invalid("`inputs` must have at least rank 1");
    if (st->per_channel) *channels = x->dims[x->rank - 1];
    for (int i = 0; i < 2; i++) {
        const Tensor *t = i ? high : low;
        const char *name = i ? "max" : "min";
        if (t->shape.rank != st->per_channel) return error_invalid("`%s` must be rank %d but is rank %d", name, st->per_channel, t->shape.rank);
        if (t->count != *channels) return error_invalid("%s has incorrect size, expected %lld was %lld", name, (long long)*channels, (long long)t->count);
    }
    return NULL;
}

static Nudged fake_range(const KernelContext *k, int first, int64_t channel) {
    const FakeState *st = k->state;
    if (st->has_args) return nudge(st, st->low, st->high);
    return nudge(st, tensor_f32(k->in[first])[channel], tensor_f32(k->in[first + 1])[channel]);
}

/* ---- Whole tensors ---- */

typedef struct FakeJob {
    FakeQuantColumns columns;
    float *memory; /* of the columns */
    const float *x, *dz;
    float *z;
    double *below, *above; /* for each block of rows and column */
    int64_t count, block;  /* numbers in all, and in a block: whole rows */
} FakeJob;

/* false: a range that is empty or not finite, whose numbers are rounded one by one. */
static bool fake_columns(const KernelContext *k, int first, int64_t channels, FakeJob *job) {
    float *m = xmalloc((size_t)channels * 5 * sizeof *m);
    job->memory = m;
    job->columns = (FakeQuantColumns){channels, m, m + channels, m + 2 * channels, m + 3 * channels, m + 4 * channels};
    for (int64_t c = 0; c < channels; c++, m++) {
        const Nudged n = fake_range(k, first, c);
        const float inverse = 1 / n.scale;
        m[0] = n.low, m[channels] = n.high, m[2 * channels] = inverse, m[3 * channels] = floorf(-n.low * inverse + 0.5f), m[4 * channels] = n.scale;
        if (n.empty || !isfinite(n.low) || !isfinite(n.high) || !isfinite(inverse) || !isfinite(n.scale)) return false;
    }
    const int64_t all = job->count / channels, few = (16384 + channels - 1) / channels, share = (all + 63) / 64; /* 64 blocks at most, each with sums of its own */
    job->block = (few > share ? few : share) * channels;
    return true;
}

static void fake_blocks(void *arg, int64_t begin, int64_t end) {
    const FakeJob *job = arg;
    for (int64_t b = begin; b < end; b++) {
        const int64_t at = b * job->block, n = job->count - at < job->block ? job->count - at : job->block;
        if (job->dz)
            fake_quant_backward(&job->columns, job->dz + at, job->x + at, job->z + at, n, job->below + b * job->columns.count, job->above + b * job->columns.count);
        else
            fake_quant_round(&job->columns, job->x + at, job->z + at, n);
    }
}

static Error *fake(KernelContext *k) {
    int64_t channels;
    Error *err = fake_ranges(k, 1, &channels);
    if (err) return err;
    const Tensor *x = k->in[0];
    Tensor *z = kernel_output(k, 0, &x->shape);
    if (!z || x->count == 0) return NULL;
    FakeJob job = {.x = tensor_f32(x), .z = tensor_f32(z), .count = x->count};
    if (fake_columns(k, 1, channels, &job)) {
        threadpool_parallel_for(k->pool, (x->count + job.block - 1) / job.block, 1, fake_blocks, &job);
    } else {
        for (int64_t c = 0; c < channels; c++) {
            const Nudged n = fake_range(k, 1, c);
            for (int64_t i = c; i < x->count; i += channels) job.z[i] = fake_one(&n, job.x[i]);
        }
    }
    free(job.memory);
    return NULL;
}

static void fake_grad_column(const Nudged *n, const FakeJob *job, int64_t column, int64_t channels, double *below, double *above) {
    for (int64_t i = column; i < job->count; i += channels) {
        const float v = job->x[i], g = job->dz[i];
        const bool inside = n->empty || (v >= n->low && v <= n->high);
        job->z[i] = inside ? g : 0;
        if (!n->empty && v < n->low) *below += (double)g;
        if (!n->empty && v > n->high) *above += (double)g;
    }
}

/* Inputs: gradients, inputs and perhaps the range, which then has gradients too: those of what lies beyond its ends. */
static Error *fake_grad(KernelContext *k) {
    int64_t channels;
    const Tensor *dz = k->in[0], *x = k->in[1];
    Error *err = fake_ranges(k, 2, &channels);
    if (err) return err;
    if (!shape_eq(&dz->shape, &x->shape)) {
        if (!((const FakeState *)k->state)->has_args) return error_invalid("gradient and input must be the same size");
        return error_invalid("Inputs to operation %.*s of type %.*s must have the same size and shape.  Input 0: %s != input 1: %s", STR_ARG(k->node->name), STR_ARG(k->node->op),
                             shape_text(&dz->shape).text, shape_text(&x->shape).text);
    }
    Tensor *dx = kernel_output(k, 0, &x->shape), *d_low = NULL, *d_high = NULL;
    if (dx && k->output_count == 3) {
        d_low = kernel_output(k, 1, &k->in[2]->shape);
        d_high = kernel_output(k, 2, &k->in[3]->shape);
        if (!d_low || !d_high) return NULL;
    }
    if (!dx || channels == 0) return NULL;
    FakeJob job = {.x = tensor_f32(x), .dz = tensor_f32(dz), .z = tensor_f32(dx), .count = x->count};
    const bool whole = fake_columns(k, 2, channels, &job);
    const int64_t blocks = whole ? (x->count + job.block - 1) / job.block : 0, sums = (blocks + 1) * channels;
    job.below = xcalloc((size_t)sums, sizeof *job.below);
    job.above = xcalloc((size_t)sums, sizeof *job.above);
    if (blocks) threadpool_parallel_for(k->pool, blocks, 1, fake_blocks, &job);
    for (int64_t c = 0; c < channels; c++) {
        double below = 0, above = 0;
        const Nudged n = fake_range(k, 2, c);
        if (!whole) fake_grad_column(&n, &job, c, channels, &below, &above);
        for (int64_t b = 0; b < blocks; b++) below += job.below[b * channels + c], above += job.above[b * channels + c];
        if (d_low) tensor_f32(d_low)[c] = (float)below;
        if (d_low) tensor_f32(d_high)[c] = (float)above;
    }
    free(job.memory);
    free(job.below);
    free(job.above);
    return NULL;
}

/* ---- QuantizeAndDequantize* ---- */

typedef struct RoundState {
    bool is_signed, range_given, narrow, half_up;
    int64_t bits, axis;
    float low, high; /* of the first form */
} RoundState;

static Error *check_bits(const RoundState *st, int64_t bits, const char *name) {
    if (bits > 0 && bits < (st->is_signed ? 62 : 63)) return NULL;
    return error_invalid("num_bits is out of range: %lld with %s %d", (long long)bits, name, st->is_signed);
}

static Error *round_init(const Node *node, void *state) {
    RoundState *st = state;
    Str value, mode = STR("");
    st->axis = -1;
    Error *err = NULL;
    if (node_attr(node, "signed_input", &value)) err = node_attr_bool(node, "signed_input", &st->is_signed);
    if (!err && node_attr(node, "range_given", &value)) err = node_attr_bool(node, "range_given", &st->range_given);
    if (!err && node_attr(node, "narrow_range", &value)) err = node_attr_bool(node, "narrow_range", &st->narrow);
    if (!err && node_attr(node, "axis", &value)) err = node_attr_int(node, "axis", &st->axis);
    if (!err && node_attr(node, "input_min", &value)) err = node_attr_float(node, "input_min", &st->low);
    if (!err && node_attr(node, "input_max", &value)) err = node_attr_float(node, "input_max", &st->high);
    if (!err && node_attr(node, "round_mode", &value)) err = node_attr_string(node, "round_mode", &mode);
    if (!err && node_attr(node, "num_bits", &value)) {
        err = node_attr_int(node, "num_bits", &st->bits);
        if (!err) err = check_bits(st, st->bits, str_is(node->op, "QuantizeAndDequantize") ? "`signed_input_`" : "signed_input_");
    }
    st->half_up = str_is(mode, "HALF_UP");
    if (!err && st->axis < -1) err = error_invalid("Axis must be at least -1. Found %lld", (long long)st->axis);
    return err;
}

/* The slices of an axis, each with its own range: element i of the tensor is in slice i / length % slices. */
typedef struct RoundJob {
    const RoundState *state;
    int64_t bits, slices, length;
    const Tensor *x;
    const void *low, *high; /* one number per slice; NULL: not given */
    const void *dz;
    Tensor *z;
} RoundJob;

static Error *round_slices(const RoundState *st, const Shape *x, RoundJob *job) {
    job->state = st;
    job->slices = 1;
    job->length = shape_count(x);
    if (st->axis == -1) return NULL;
    if (st->axis >= x->rank)
        return error_invalid("Shape must be at least rank %llu but is rank %d", (unsigned long long)st->axis + 1, x->rank);
    job->slices = x->dims[st->axis];
    job->length = shape_prod(x, (int)st->axis + 1, x->rank);
    return NULL;
}

/* Inputs `first` and the next: scalars, or one number per slice. V2 and V4 take scalars only; the gradient, whose range is third, has words of its own. */
static Error *round_ranges(const KernelContext *k, int first, RoundJob *job) {
    const bool only_scalars = str_is(k->node->op, "QuantizeAndDequantizeV2") || str_is(k->node->op, "QuantizeAndDequantizeV4"), of_gradient = first == 2;
    for (int i = first; i < first + 2; i++) {
        const Tensor *t = k->in[i];
        const char *name = i == first ? "min" : "max";
        if (only_scalars && t->shape.rank != 0) return error_invalid("input_%s must be a scalar.", name);
        if (of_gradient && job->state->axis == -1 && t->shape.rank != 0) return error_invalid("input_%s must be a scalar if axis is unspecified", name);
        if (of_gradient && job->state->axis != -1 && t->shape.rank != 1) return error_invalid("Shape must be rank 1 for input_%s_tensor when the axis is specified", name);
        if (of_gradient && job->state->axis != -1 && t->count != job->slices)
            return error_invalid("%s has incorrect size, expected %lld was %lld", name, (long long)job->slices, (long long)t->count);
        bool fits = job->state->axis == -1 ? t->count == 1 : t->shape.rank == 1 && t->count == job->slices;
        if (!fits) {
            return error_invalid("input_min_tensor has incorrect size, was %lld expected %lld", (long long)t->count,
                                 (long long)job->slices);
        }
    }
    job->low = k->in[first]->data;
    job->high = k->in[first + 1]->data;
    return NULL;
}

static Error *round_run(KernelContext *k, Error *(*loop)(const RoundJob *)) {
    const RoundState *st = k->state;
    RoundJob job = {.bits = st->bits, .x = k->in[0]};
    float range[2] = {st->low, st->high};
    double wide[2] = {(double)st->low, (double)st->high};
    Error *err = round_slices(st, &k->in[0]->shape, &job);
    if (!err && k->input_count == 4) {
        if (k->in[3]->shape.rank != 0) return error_invalid("Invalid shape. The `num_bits` tensor should be a scalar. Got dimensions: %d", k->in[3]->shape.rank);
        job.bits = tensor_i32(k->in[3])[0];
        err = check_bits(st, job.bits, "`signed_input_`");
    }
    if (!err && st->range_given && k->input_count > 1) err = round_ranges(k, 1, &job);
    if (err) return err;
    if (st->range_given && k->input_count == 1) {
        bool is_double = k->in[0]->dtype == DT_DOUBLE;
        job.low = is_double ? (void *)&wide[0] : (void *)&range[0];
        job.high = is_double ? (void *)&wide[1] : (void *)&range[1];
    }
    job.z = kernel_output(k, 0, &k->in[0]->shape);
    return job.z && job.z->count > 0 ? loop(&job) : NULL;
}

/* Inputs: gradient, input and range; the gradient passes where the input is inside. */
static Error *round_grad_run(KernelContext *k, void (*loop)(const RoundJob *)) {
    RoundJob job = {.x = k->in[1], .dz = k->in[0]->data};
    if (!shape_eq(&k->in[0]->shape, &k->in[1]->shape)) return error_invalid("gradient and input must be the same size");
    Error *err = round_slices(k->state, &k->in[1]->shape, &job);
    if (!err) err = round_ranges(k, 2, &job);
    if (err) return err;
    for (int i = 1; i < 3; i++) {
        Tensor *none = kernel_output(k, i, &k->in[i + 1]->shape);
        if (!none) return NULL;
        memset(none->data, 0, tensor_bytes(none));
    }
    job.z = kernel_output(k, 0, &k->in[1]->shape);
    if (job.z && job.z->count > 0) loop(&job);
    return NULL;
}

#define C float
#define MOST FLT_MAX
#define NAME(f) f##_f32
#define RINT(v) rintf(v)
#define FLOOR(v) floorf(v)
#include "ops/fake_quant.inc"
#undef C
#undef MOST
#undef NAME
#undef RINT
#undef FLOOR
#define C double
#define MOST DBL_MAX
#define NAME(f) f##_f64
#define RINT(v) rint(v)
#define FLOOR(v) floor(v)
#include "ops/fake_quant.inc"

#define FAKE .state_size = sizeof(FakeState), .init = fake_init
#define ROUNDS .state_size = sizeof(RoundState), .init = round_init
#define TYPES(f) .by_type = {[DT_FLOAT] = f##_f32, [DT_DOUBLE] = f##_f64}

const KernelDef fake_quant_cpu[] = {
    {"FakeQuantWithMinMaxArgs", .run = fake, FAKE},
    {"FakeQuantWithMinMaxArgsGradient", .run = fake_grad, FAKE},
    {"FakeQuantWithMinMaxVars", .run = fake, FAKE},
    {"FakeQuantWithMinMaxVarsGradient", .run = fake_grad, FAKE},
    {"FakeQuantWithMinMaxVarsPerChannel", .run = fake, FAKE},
    {"FakeQuantWithMinMaxVarsPerChannelGradient", .run = fake_grad, FAKE},
    {"QuantizeAndDequantize", TYPES(round), ROUNDS},
    {"QuantizeAndDequantizeV2", TYPES(round), ROUNDS},
    {"QuantizeAndDequantizeV3", TYPES(round), ROUNDS},
    {"QuantizeAndDequantizeV4", TYPES(round), ROUNDS},
    {"QuantizeAndDequantizeV4Grad", TYPES(round_grad), ROUNDS},
    {0},
};
