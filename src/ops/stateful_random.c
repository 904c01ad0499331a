/* stateful_random.c: random numbers of a tf.random.Generator, whose state is a variable; NonDeterministicInts. */
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/rng_state.h"
#include "ops/sampling.h"

const OpDef stateful_random_ops[] = {
    {"StatefulUniform", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
     "dtype: type = float; shape_dtype: type = int64", OP_STATEFUL},
    {"StatefulUniformInt",
     "resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: dtype -> output: dtype",
     "dtype: type = int64; shape_dtype: type = int64", OP_STATEFUL},
    {"StatefulUniformFullInt", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
     "dtype: type = uint64; shape_dtype: type = int64", OP_STATEFUL},
    {"StatefulStandardNormal", "resource: resource, shape: shape_dtype -> output: dtype",
     "dtype: type = float; shape_dtype: type = int64", OP_STATEFUL},
    {"StatefulStandardNormalV2", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
     "dtype: type = float; shape_dtype: type = int64", OP_STATEFUL},
    {"StatefulTruncatedNormal", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
     "dtype: type = float; shape_dtype: type = int64", OP_STATEFUL},
    {"NonDeterministicInts", "shape: shape_dtype -> output: dtype", "dtype: type = int64; shape_dtype: type = int64",
     OP_STATEFUL},
    {0},
};

enum { PHILOX = 1, THREEFRY = 2, AUTOMATIC = 3 };

static Error *read_algorithm(KernelContext *k, int64_t *out) {
    if (k->in[1]->shape.rank != 0)
        return error_invalid("input 1 (0-based) must have shape [], not %s", shape_text(&k->in[1]->shape).text);
    *out = tensor_i64(k->in[1])[0];
    if (*out == AUTOMATIC) *out = PHILOX;
    if (*out == THREEFRY) return error_unimplemented("Non-XLA devices don't support the ThreeFry algorithm.");
    return NULL;
}

/* The output, and the generator as it was before its numbers were taken; *out stays NULL when it could not be made. */
static Error *draw(KernelContext *k, int64_t algorithm, Philox *p, Tensor **out) {
    Error *err = sampling_output(k, 2, out);
    return err || !*out ? err : rng_state_take(k, 0, algorithm, (uint64_t)(*out)->count, p);
}

static Error *fill(KernelContext *k, RandomKind kind) {
    int64_t algorithm = 0;
    Philox p;
    Tensor *out = NULL;
    Error *err = read_algorithm(k, &algorithm);
    if (!err) err = draw(k, algorithm, &p, &out);
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
    int64_t algorithm = 0;
    Philox p;
    RandomSpec spec;
    Tensor *out = NULL;
    Error *err = read_algorithm(k, &algorithm);
    if (!err) err = sampling_range(k, 3, 4, 1, &spec);
    if (!err) err = draw(k, algorithm, &p, &out);
    if (!err && out) random_fill(k->pool, &spec, p, out->data, out->count);
    return err;
}

/* The state of this one begins with the number of its algorithm. */
static Error *run_tagged_normal(KernelContext *k) {
    Philox p;
    Tensor *out = NULL;
    Error *err = sampling_output(k, 1, &out);
    if (!err && out) err = rng_state_take_tagged(k, 0, (uint64_t)out->count, &p);
    return err || !out ? err : sampling_fill(k, RANDOM_NORMAL, p, out);
}

static Error *run_non_deterministic(KernelContext *k) {
    Tensor *out = NULL;
    Error *err = sampling_output(k, 0, &out);
    if (err || !out) return err;
    return sampling_fill(k, RANDOM_UNIFORM, philox_from_seeds(rng_entropy(), rng_entropy()), out);
}

#define FLOATS(fn) \
    .type_attr = "dtype", .by_type = {[DT_HALF] = fn, [DT_BFLOAT16] = fn, [DT_FLOAT] = fn, [DT_DOUBLE] = fn}
#define INTS(fn) \
    .type_attr = "dtype", .by_type = {[DT_INT32] = fn, [DT_INT64] = fn, [DT_UINT32] = fn, [DT_UINT64] = fn}

const KernelDef stateful_random_cpu[] = {
    {"StatefulUniform", FLOATS(run_uniform)},
    {"StatefulUniformInt", INTS(run_uniform_int)},
    {"StatefulUniformFullInt", INTS(run_uniform)},
    {"StatefulStandardNormal", FLOATS(run_tagged_normal)},
    {"StatefulStandardNormalV2", FLOATS(run_normal)},
    {"StatefulTruncatedNormal", FLOATS(run_truncated_normal)},
    {"NonDeterministicInts", INTS(run_non_deterministic)},
    {0},
};
