/* stateless_random.c: random ops that are functions of their seed: Stateless*, by seed or by key and counter. */
#include "kernels/random.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/sampling.h"

const OpDef stateless_random_ops[] = {
    {"StatelessRandomUniform", "shape: T, seed: Tseed -> output: dtype",
     "dtype: {half, bfloat16, float, double} = float; T: {int32, int64} = int32; Tseed: {int32, int64} = int64", 0},
    {"StatelessRandomUniformV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
     "dtype: {half, bfloat16, float, double} = float; Tshape: {int32, int64} = int32", 0},
    {"StatelessRandomUniformInt", "shape: T, seed: Tseed, minval: dtype, maxval: dtype -> output: dtype",
     "dtype: {int32, int64}; T: {int32, int64}; Tseed: {int32, int64} = int64", 0},
    {"StatelessRandomUniformIntV2",
     "shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, maxval: dtype -> output: dtype",
     "dtype: {int32, int64, uint32, uint64}; Tshape: {int32, int64} = int32", 0},
    {"StatelessRandomUniformFullInt", "shape: T, seed: Tseed -> output: dtype",
     "dtype: {int32, int64, uint32, uint64} = uint64; T: {int32, int64} = int32; Tseed: {int32, int64, uint32, "
     "uint64} = int64",
     0},
    {"StatelessRandomUniformFullIntV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
     "dtype: {int32, int64, uint32, uint64} = uint64; Tshape: {int32, int64} = int32", 0},
    {"StatelessRandomNormal", "shape: T, seed: Tseed -> output: dtype",
     "dtype: {half, bfloat16, float, double} = float; T: {int32, int64} = int32; Tseed: {int32, int64} = int64", 0},
    {"StatelessRandomNormalV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
     "dtype: {half, bfloat16, float, double} = float; Tshape: {int32, int64} = int32", 0},
    {"StatelessTruncatedNormal", "shape: T, seed: Tseed -> output: dtype",
     "dtype: {half, bfloat16, float, double} = float; T: {int32, int64} = int32; Tseed: {int32, int64} = int64", 0},
    {"StatelessTruncatedNormalV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
     "dtype: {half, bfloat16, float, double} = float; Tshape: {int32, int64} = int32", 0},
    {"StatelessMultinomial", "logits: T, num_samples: int32, seed: Tseed -> output: output_dtype",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; Tseed: {int32, "
     "int64} = int64; output_dtype: {int32, int64} = int64",
     0},
    {"StatelessRandomGammaV2", "shape: T, seed: Tseed, alpha: dtype -> output: dtype",
     "dtype: {half, float, double}; T: {int32, int64}; Tseed: {int32, int64} = int64", 0},
    {"StatelessRandomGammaV3",
     "shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype -> output: dtype",
     "dtype: {half, float, double}; shape_dtype: {int32, int64} = int32", 0},
    {"StatelessRandomPoisson", "shape: T, seed: Tseed, lam: Rtype -> output: dtype",
     "Rtype: {half, float, double, int32, int64}; dtype: {half, float, double, int32, int64}; T: {int32, int64}; Tseed: {int32, "
     "int64} = int64",
     0},
    {"StatelessShuffle", "value: T, key: uint64, counter: uint64, alg: int32 -> output: T", "T: type", 0},
    {"StatelessRandomGetKeyCounter", "seed: Tseed -> key: uint64, counter: uint64", "Tseed: {int32, int64} = int64", 0},
    {"StatelessRandomGetKeyCounterAlg", "seed: Tseed -> key: uint64, counter: uint64, alg: int32",
     "Tseed: {int32, int64} = int64", 0},
    {"StatelessRandomGetAlg", "-> alg: int32", "", OP_STATEFUL},
    {0},
};

/* The op has "V2" (or V3) behind its name: key, counter and alg instead of a seed. */
static Error *generator(KernelContext *k, int i, Philox *out) {
    return k->in[i]->dtype == DT_UINT64 && k->input_count >= i + 3 ? sampling_key(k, i, out) : sampling_seed(k, i, out);
}

static Error *fill(KernelContext *k, RandomKind kind) {
    Philox p;
    Tensor *out = NULL;
    Error *err = generator(k, 1, &p);
    if (!err) err = sampling_output(k, 0, &out);
    return err || !out ? err : sampling_fill(k, kind, p, out);
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
    Philox p;
    RandomSpec spec;
    Tensor *out = NULL;
    Error *err = generator(k, 1, &p);
    if (!err) err = sampling_output(k, 0, &out);
    if (!err && out) err = sampling_range(k, k->input_count - 2, k->input_count - 1, out->count, &spec);
    if (!err && out) random_fill(k->pool, &spec, p, out->data, out->count);
    return err;
}

static Error *run_multinomial(KernelContext *k) {
    int64_t samples = 0;
    Philox p;
    Error *err = sampling_seed(k, 2, &p);
    if (!err) err = sampling_class_count(k, &samples);
    return err ? err : sampling_classes(k, samples, p);
}

/* The shape ends with the shape of the parameter, or one that it broadcasts to by repeating from the front. */
static Error *each_parameter(KernelContext *k, bool gamma) {
    const Tensor *alpha = k->in[k->input_count - 1];
    Philox p;
    Tensor *out = NULL;
    Error *err = generator(k, 1, &p);
    if (!err) err = sampling_output(k, 0, &out);
    if (err || !out || out->count == 0) return err;
    int extra = out->shape.rank - alpha->shape.rank;
    bool ends = extra >= 0;
    for (int d = 0; ends && d < alpha->shape.rank; d++) ends = out->shape.dims[d + extra] == alpha->shape.dims[d];
    if (!ends)
        return error_invalid("Shape passed in must end with broadcasted shape.");
    sampling_parameters(k->pool, p, alpha, out->count / alpha->count, gamma, out);
    return NULL;
}

static Error *run_gamma(KernelContext *k) {
    return each_parameter(k, true);
}

/* The shape ends with the shape of lam. */
static Error *run_poisson(KernelContext *k) {
    return each_parameter(k, false);
}

static Error *run_shuffle(KernelContext *k) {
    Philox p;
    Error *err = sampling_key(k, 1, &p);
    if (err) return err;
    if (k->in[0]->shape.rank >= 1 && k->in[0]->shape.dims[0] > 1) return sampling_shuffle(k, p);
    kernel_set_output(k, 0, tensor_ref(k->in[0]));
    return NULL;
}

static Error *run_get_key_counter(KernelContext *k) {
    Philox p;
    Error *err = sampling_seed(k, 0, &p);
    if (err) return err;
    Shape one = shape_vector(1), two = shape_vector(2);
    Tensor *key = kernel_output(k, 0, &one), *counter = key ? kernel_output(k, 1, &two) : NULL;
    if (!counter) return NULL;
    *(uint64_t *)key->data = philox_key(&p);
    for (int i = 0; i < 2; i++) ((uint64_t *)counter->data)[i] = philox_counter(&p, i);
    if (k->output_count > 2) kernel_set_output(k, 2, tensor_scalar_i32(SAMPLING_PHILOX));
    return NULL;
}

static Error *run_get_alg(KernelContext *k) {
    kernel_set_output(k, 0, tensor_scalar_i32(SAMPLING_PHILOX));
    return NULL;
}

const KernelDef stateless_random_cpu[] = {
    {"StatelessRandomUniform", .run = run_uniform},
    {"StatelessRandomUniformV2", .run = run_uniform},
    {"StatelessRandomUniformInt", .run = run_uniform_int},
    {"StatelessRandomUniformIntV2", .run = run_uniform_int},
    {"StatelessRandomUniformFullInt", .run = run_uniform},
    {"StatelessRandomUniformFullIntV2", .run = run_uniform},
    {"StatelessRandomNormal", .run = run_normal},
    {"StatelessRandomNormalV2", .run = run_normal},
    {"StatelessTruncatedNormal", .run = run_truncated_normal},
    {"StatelessTruncatedNormalV2", .run = run_truncated_normal},
    {"StatelessMultinomial", .run = run_multinomial},
    {"StatelessRandomGammaV2", .run = run_gamma},
    {"StatelessRandomGammaV3", .run = run_gamma},
    {"StatelessRandomPoisson", .run = run_poisson},
    {"StatelessShuffle", .run = run_shuffle},
    {"StatelessRandomGetKeyCounter", .run = run_get_key_counter},
    {"StatelessRandomGetKeyCounterAlg", .run = run_get_key_counter},
    {"StatelessRandomGetAlg", .run = run_get_alg},
    {0},
};
