/* argmax.c: ArgMax, ArgMin, TopK, InTopK. */
#include <math.h>
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef argmax_ops[] = {
    {"ArgMax", "input: T, dimension: Tidx -> output: output_type",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, "
     "qint32, qint16, quint16, bool}; Tidx: {int16, int32, int64} = int32; output_type: {int16, uint16, int32, "
     "int64} = int64",
     0},
    {"ArgMin", "input: T, dimension: Tidx -> output: output_type",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, "
     "qint32, qint16, quint16, bool}; Tidx: {int32, int64} = int32; output_type: {int32, int64} = int64",
     0},
    {"TopK", "input: T -> values: T, indices: int32",
     "k: int >= 0; sorted: bool = true; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
     "uint32, uint64}",
     0},
    {"TopKV2", "input: T, k: Tk -> values: T, indices: index_type",
     "sorted: bool = true; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
     "uint64}; Tk: {int16, int32, int64} = int32; index_type: {int16, int32, int64} = int32",
     0},
    {"InTopK", "predictions: float, targets: T -> precision: bool", "k: int; T: {int32, int64} = int32", 0},
    {"InTopKV2", "predictions: float, targets: T, k: T -> precision: bool", "T: {int32, int64} = int32", 0},
    {0},
};

/* Writes an index of type int16, uint16, int32 or int64. */
static void put_index(void *to, DataType t, int64_t at, int64_t value) {
    if (t == DT_INT64) {
        ((int64_t *)to)[at] = value;
    } else if (t == DT_INT32) {
        ((int32_t *)to)[at] = (int32_t)value;
    } else {
        ((uint16_t *)to)[at] = (uint16_t)value;
    }
}

/* ---- ArgMax, ArgMin ---- */

typedef struct ArgJob {
    void *z;
    DataType type; /* of z */
    const void *x;
    int64_t n, inner;
} ArgJob;

static void arg_put(const ArgJob *job, int64_t at, int64_t value) {
    put_index(job->z, job->type, at, value);
}

static Error *arg_run(KernelContext *k, RangeFn *range) {
    const Tensor *x = k->in[0], *dim = k->in[1];
    if (dim->shape.rank != 0) {
        return error_invalid("dim must be a scalar, but received tensor of shape: %s", shape_text(&dim->shape).text);
    }
    int rank = x->shape.rank;
    int64_t axis = index_at(dim, 0);
    if (axis < -rank || axis >= rank) {
        return error_invalid("Expected dimension in the range [%d, %d), but got %lld", -rank, rank, (long long)axis);
    }
    if (axis < 0) axis += rank;
    Shape shape = x->shape;
    if (shape.dims[axis] == 0) {
        return error_invalid("Reduction axis %lld is empty in shape %s", (long long)axis, shape_text(&shape).text);
    }
    shape_remove_dim(&shape, (int)axis);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    ArgJob job = {z->data, z->dtype, x->data, x->shape.dims[axis], shape_prod(&x->shape, (int)axis + 1, rank)};
    threadpool_parallel_for(k->pool, z->count, 32768 / job.n + 1, range, &job);
    return NULL;
}

/* ---- TopK ---- */

typedef struct TopKState {
    int64_t k; /* of TopK; the later form has it as an input */
    bool k_is_attr;
} TopKState;

static Error *top_k_init(const Node *node, void *state) {
    TopKState *st = state;
    st->k_is_attr = !node_is(node, "TopKV2");
    return st->k_is_attr ? node_attr_int(node, "k", &st->k) : NULL;
}

typedef struct TopKJob {
    void *values, *indices;
    DataType index_type;
    const void *x;
    int64_t n, k;
    int64_t *heaps;
} TopKJob;

static void top_k_put(const TopKJob *job, int64_t at, int64_t value) {
    put_index(job->indices, job->index_type, at, value);
}

/* Always sorted: what `sorted` leaves open is the order, and any will do. */
static Error *top_k_run(KernelContext *k, RangeFn *range) {
    const TopKState *st = k->state;
    const Tensor *x = k->in[0];
    int64_t want = st->k;
    if (!st->k_is_attr) {
        if (k->in[1]->shape.rank != 0) {
            return error_invalid("k must be scalar, got shape %s", shape_text(&k->in[1]->shape).text);
        }
        want = index_at(k->in[1], 0);
    }
    if (want < 0) return error_invalid("Need k >= 0, got %lld", (long long)want);
    if (x->shape.rank < 1) return error_invalid("input must be >= 1-D, got shape %s", shape_text(&x->shape).text);
    int last = x->shape.rank - 1;
    int64_t n = x->shape.dims[last];
    if (n < want) {
        return error_invalid("input must have at least k columns. Had %lld, needed %lld", (long long)n,
                             (long long)want);
    }
    Shape shape = x->shape;
    shape.dims[last] = want;
    Tensor *values = kernel_output(k, 0, &shape), *indices = values ? kernel_output(k, 1, &shape) : NULL;
    if (!indices || values->count == 0) return NULL;
    Tensor *heaps = kernel_scratch(k, DT_INT64, &shape);
    if (!heaps) return NULL;
    TopKJob job = {values->data, indices->data, indices->dtype, x->data, n, want, tensor_i64(heaps)};
    threadpool_parallel_for(k->pool, values->count / want, 8192 / n + 1, range, &job);
    tensor_unref(heaps);
    return NULL;
}

/* ---- InTopK ---- */

/* In when fewer than k classes are more probable; a row with a number that is not finite says no. */
static bool in_top_k(const float *row, int64_t n, int64_t target, int64_t k) {
    if (target < 0 || target >= n) return false;
    int64_t more = 0;
    for (int64_t c = 0; c < n; c++) {
        if (!isfinite(row[c])) return false;
        more += row[c] > row[target];
        if (more >= k) return false;
    }
    return more < k;
}

static Error *in_top_k_run(KernelContext *k) {
    const TopKState *st = k->state;
    const Tensor *x = k->in[0], *targets = k->in[1];
    int64_t want = st->k;
    if (!st->k_is_attr) {
        if (k->in[2]->shape.rank != 0) {
            return error_invalid("k must be 0-D, got shape %s", shape_text(&k->in[2]->shape).text);
        }
        want = index_at(k->in[2], 0);
    }
    if (x->shape.rank != 2) return error_invalid("predictions must be 2-dimensional");
    if (targets->shape.rank != 1) return error_invalid("targets must be 1-dimensional");
    if (x->shape.dims[0] != targets->count) {
        return error_invalid("First dimension of predictions %lld must match length of targets %lld",
                             (long long)x->shape.dims[0], (long long)targets->count);
    }
    Tensor *z = kernel_output(k, 0, &targets->shape);
    if (!z) return NULL;
    int64_t n = x->shape.dims[1];
    for (int64_t r = 0; r < targets->count; r++) {
        tensor_bool(z)[r] = in_top_k(tensor_f32(x) + r * n, n, tensor_index(targets, r), want);
    }
    return NULL;
}
static Error *in_top_k_init(const Node *node, void *state) {
    TopKState *st = state;
    st->k_is_attr = node_is(node, "InTopK");
    return st->k_is_attr ? node_attr_int(node, "k", &st->k) : NULL;
}

#define BODY "ops/argmax.inc"
#define IS_NAN(v) ((v) != (v))
#include "kernels/each_float.inc"
#undef IS_NAN
#define IS_NAN(v) false
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
#define S bool
#define C bool
#define LOAD(s) (s)
#define NAME(f) f##_bool
#include "ops/argmax.inc"
#undef S
#undef C
#undef LOAD
#undef NAME
#undef BODY
#define BODY "ops/top_k.inc"
#include "kernels/each_float.inc"
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"

#define STATE(f) .state_size = sizeof(TopKState), .init = f

const KernelDef argmax_cpu[] = {
    {"ArgMax", .by_type = {REAL_TYPES(argmax), [DT_BOOL] = argmax_bool}},
    {"ArgMin", .by_type = {REAL_TYPES(argmin), [DT_BOOL] = argmin_bool}},
    {"TopK", .by_type = {REAL_TYPES(top_k)}, STATE(top_k_init)},
    {"TopKV2", .by_type = {REAL_TYPES(top_k)}, STATE(top_k_init)},
    {"InTopK", .run = in_top_k_run, STATE(in_top_k_init)},
    {"InTopKV2", .run = in_top_k_run, STATE(in_top_k_init)},
    {0},
};
