/* rng_state.c: RngSkip and RngReadAndSkip, the state of a tf.random.Generator: a variable with a counter and a key.

   The state of Philox is a counter of two numbers and a key, that of ThreeFry one of one; every sample that is drawn
   takes 256 steps. */
#include "ops/rng_state.h"

#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef rng_state_ops[] = {
    {"RngSkip", "resource: resource, algorithm: int64, delta: int64 ->", "", OP_STATEFUL},
    {"RngReadAndSkip", "resource: resource, alg: int32, delta: uint64 -> value: int64", "", OP_STATEFUL},
    {0},
};

enum { PHILOX = 1, THREEFRY = 2, AUTO_SELECT = 3, STATE_SIZE = 3, STEPS_PER_SAMPLE = 256 };

static Error *check_form(const Variable *v) {
    if (v->value->dtype != DT_INT64)
        return error_invalid("dtype of RNG state variable must be int64, not %s", dtype_name(v->value->dtype));
    if (v->value->shape.rank != 1)
        return error_invalid("RNG state must have one and only one dimension, not %d", v->value->shape.rank);
    return NULL;
}

static Error *check_state(const Variable *v, int64_t algorithm, int tag) {
    if (algorithm != PHILOX && algorithm != THREEFRY)
        return error_invalid("Unsupported algorithm id: %lld", (long long)algorithm);
    int64_t size = (algorithm == PHILOX ? 3 : 2) + tag;
    if (v->value->count < size)
        return error_invalid("For the %s algorithm, the size of state must be at least %lld; got %lld",
                             algorithm == PHILOX ? "Philox" : "ThreeFry", (long long)size, (long long)v->value->count);
    return NULL;
}

static void skip(int64_t *state, int64_t algorithm, uint64_t delta) {
    uint64_t low = (uint64_t)state[0], steps = delta * STEPS_PER_SAMPLE;
    state[0] = (int64_t)(low + steps);
    if (algorithm == PHILOX) state[1] = (int64_t)((uint64_t)state[1] + (low + steps < low));
}

enum { FROM_STATE = -1 }; /* the algorithm is the first number of the state */

/* Moves the state in input i on; `old` gets what it was. */
static Error *move_state(KernelContext *k, int i, int64_t algorithm, uint64_t delta, int64_t *old) {
    const int tag = algorithm == FROM_STATE;
    Variable *v = NULL;
    Error *err = kernel_variable(k, i, &v);
    if (err) return variable_missing(k, i, err);
    pthread_mutex_lock(&v->mutex);
    err = v->value ? check_form(v) : NULL;
    if (!err) err = variable_write_locked(k, i, v, DT_INT64);
    if (!err && tag && v->value->count == 0) err = error_invalid("Size of tensor must be at least 1");
    if (!err && tag) algorithm = tensor_i64(v->value)[0];
    if (!err && tag && algorithm == THREEFRY) err = error_unimplemented("Non-XLA devices don't support the ThreeFry algorithm.");
    if (!err && tag && algorithm != PHILOX) err = error_invalid("Unsupported algorithm id: %lld", (long long)algorithm);
    if (!err) err = check_state(v, algorithm, tag);
    if (!err) {
        int64_t *state = tensor_i64(v->value) + tag;
        for (int j = 0; j < STATE_SIZE; j++) old[j] = j < (algorithm == PHILOX ? 3 : 2) ? state[j] : 0;
        skip(state, algorithm, delta);
    }
    pthread_mutex_unlock(&v->mutex);
    resource_unref(&v->base);
    return err;
}

Error *rng_state_take(KernelContext *k, int i, int64_t algorithm, uint64_t samples, Philox *out) {
    int64_t old[STATE_SIZE] = {0};
    if (algorithm == THREEFRY) return error_unimplemented("Non-XLA devices don't support the ThreeFry algorithm.");
    if (algorithm != PHILOX) return error_invalid("Unsupported algorithm id: %lld", (long long)algorithm);
    Error *err = move_state(k, i, algorithm, samples, old);
    if (!err) *out = philox_from_state((uint64_t)old[2], (uint64_t)old[0], (uint64_t)old[1]);
    return err;
}

Error *rng_state_take_tagged(KernelContext *k, int i, uint64_t samples, Philox *out) {
    int64_t old[STATE_SIZE] = {0};
    Error *err = move_state(k, i, FROM_STATE, samples, old);
    if (!err) *out = philox_from_state((uint64_t)old[2], (uint64_t)old[0], (uint64_t)old[1]);
    return err;
}

static Error *change_state(KernelContext *k, int64_t *old) {
    int64_t algorithm = 0;
    Error *err = element_scalar_int(k, 1, "algorithm", &algorithm);
    if (err) return err;
    if (k->in[2]->count != 1) return error_invalid("delta must be a scalar");
    uint64_t delta = k->in[2]->dtype == DT_UINT64 ? *(uint64_t *)k->in[2]->data : (uint64_t)tensor_i64(k->in[2])[0];
    if (algorithm == THREEFRY) return error_unimplemented("Non-XLA devices don't support the ThreeFry algorithm.");
    if (algorithm == AUTO_SELECT) algorithm = PHILOX;
    if (algorithm != PHILOX) return error_invalid("Unsupported algorithm id: %lld", (long long)algorithm);
    return move_state(k, 0, algorithm, delta, old);
}

static Error *run_skip(KernelContext *k) {
    int64_t old[STATE_SIZE];
    return change_state(k, old);
}

static Error *run_read_and_skip(KernelContext *k) {
    int64_t old[STATE_SIZE];
    Error *err = change_state(k, old);
    if (err) return err;
    Shape shape = shape_vector(STATE_SIZE);
    Tensor *out = kernel_output(k, 0, &shape);
    if (out) memcpy(out->data, old, sizeof old);
    return NULL;
}

const KernelDef rng_state_cpu[] = {
    {"RngSkip", .run = run_skip},
    {"RngReadAndSkip", .run = run_read_and_skip},
    {0},
};
