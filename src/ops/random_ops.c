/* random_ops.c: random ops that keep a generator: RandomUniform, TruncatedNormal, RandomShuffle, Multinomial and
 * others. */
#include "kernels/random.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/random_state.h"
#include "ops/sampling.h"

const OpDef random_ops_ops[] = {
    {"RandomUniform", "shape: T -> output: dtype",
     "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: {int32, int64}", OP_STATEFUL},
    {"RandomUniformInt", "shape: T, minval: Tout, maxval: Tout -> output: Tout",
     "seed: int = 0; seed2: int = 0; Tout: {int32, int64}; T: {int32, int64}", OP_STATEFUL},
    {"RandomStandardNormal", "shape: T -> output: dtype",
     "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: {int32, int64}", OP_STATEFUL},
    {"TruncatedNormal", "shape: T -> output: dtype",
     "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: {int32, int64}", OP_STATEFUL},
    {"RandomShuffle", "value: T -> output: T", "seed: int = 0; seed2: int = 0; T: type", OP_STATEFUL},
    {"Multinomial", "logits: T, num_samples: int32 -> output: output_dtype",
     "seed: int = 0; seed2: int = 0; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
     "uint32, uint64}; output_dtype: {int32, int64} = int64",
     OP_STATEFUL},
    {"RandomGamma", "shape: S, alpha: T -> output: T",
     "seed: int = 0; seed2: int = 0; S: {int32, int64}; T: {half, float, double}", OP_STATEFUL},
    {"RandomPoisson", "shape: S, rate: dtype -> output: dtype",
     "seed: int = 0; seed2: int = 0; S: {int32, int64}; dtype: {half, float, double}", OP_STATEFUL},
    {"RandomPoissonV2", "shape: S, rate: R -> output: dtype",
     "seed: int = 0; seed2: int = 0; S: {int32, int64}; R: {half, float, double, int32, int64} = double; dtype: "
     "{half, float, double, int32, int64} = int64",
     OP_STATEFUL},
    {0},
};

/* How far the generator moves for one number, whatever the distribution uses. */
enum { RESERVED_PER_OUTPUT = 256 };

static Error *fill(KernelContext *k, RandomKind kind) {
    Tensor *out = NULL;
    Error *err = sampling_output(k, 0, &out);
    if (err || !out) return err;
    Philox p = random_state_reserve(k->state, (uint64_t)out->count * RESERVED_PER_OUTPUT);
    return sampling_fill(k, kind, p, out);
}

static Error *run_uniform(KernelContext *k) {
    return fill(k, RANDOM_UNIFORM);
}

static Error *run_normal(KernelContext *k) {
    return fill(k, RANDOM_NORMAL);
}

static Error *run_truncated_normal(KernelContext *k) {
    return fill(k, RANDOM_TRUNCATED);
}

static Error *run_uniform_int(KernelContext *k) {
    RandomSpec spec;
    Tensor *out = NULL;
    Error *err = sampling_output(k, 0, &out);
    if (!err && out) err = sampling_range(k, 1, 2, out->count, &spec);
    if (err || !out) return err;
    Philox p = random_state_reserve(k->state, (uint64_t)out->count * RESERVED_PER_OUTPUT);
    random_fill(k->pool, &spec, p, out->data, out->count);
    return NULL;
}

static Error *run_shuffle(KernelContext *k) {
    const Tensor *in = k->in[0];
    if (in->count <= 1 || in->shape.dims[0] <= 1) {
        kernel_set_output(k, 0, tensor_ref(k->in[0]));
        return NULL;
    }
    uint64_t samples = (uint64_t)in->shape.dims[0] - 1; /* the last row has no choice */
    return sampling_shuffle(k, random_state_reserve(k->state, (samples + 3) / 4));
}

static Error *run_multinomial(KernelContext *k) {
    int64_t samples = 0;
    Error *err = sampling_class_count(k, &samples);
    if (err) return err;
    uint64_t rounded = ((uint64_t)samples + 3) / 4 * 4 * 2; /* a double takes two numbers */
    Philox p = random_state_reserve(k->state, (uint64_t)k->in[0]->shape.dims[0] * rounded * RESERVED_PER_OUTPUT);
    return sampling_classes(k, samples, p);
}

/* Gamma and Poisson: shape gives the number of samples for each element of the parameter. */
static Error *each_parameter(KernelContext *k, bool gamma) {
    const Tensor *parameters = k->in[1];
    Shape shape;
    Error *err = kernel_shape_input(k, 0, &shape);
    if (err) return err;
    if (shape.rank + parameters->shape.rank > SHAPE_MAX_RANK)
        return error_invalid("Too many dimensions for random samples");
    int64_t samples = shape_count(&shape);
    for (int d = 0; d < parameters->shape.rank; d++) shape.dims[shape.rank++] = parameters->shape.dims[d];
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    Philox p = random_state_reserve(k->state, (uint64_t)out->count * RESERVED_PER_OUTPUT);
    sampling_parameters(k->pool, p, parameters, samples, gamma, out);
    return NULL;
}

static Error *run_gamma(KernelContext *k) {
    return each_parameter(k, true);
}

static Error *run_poisson(KernelContext *k) {
    return each_parameter(k, false);
}

#define STATE                                                                                  \
    .state_size = sizeof(RandomState), .init = random_state_init, .clear = random_state_clear, \
    .flags = KERNEL_PER_SESSION

const KernelDef random_ops_cpu[] = {
    {"RandomUniform", .run = run_uniform, STATE},       {"RandomUniformInt", .run = run_uniform_int, STATE},
    {"RandomStandardNormal", .run = run_normal, STATE}, {"TruncatedNormal", .run = run_truncated_normal, STATE},
    {"RandomShuffle", .run = run_shuffle, STATE},       {"Multinomial", .run = run_multinomial, STATE},
    {"RandomGamma", .run = run_gamma, STATE},           {"RandomPoisson", .run = run_poisson, STATE},
    {"RandomPoissonV2", .run = run_poisson, STATE},     {0},
};
