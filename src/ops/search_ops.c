/* search_ops.c: places in sorted rows (Bucketize, LowerBound, UpperBound), UnravelIndex; Cross of 3-vectors. */
#include <stdlib.h>

#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef search_ops_ops[] = {
    {"Bucketize", "input: T -> output: int32", "T: {int32, int64, float, double}; boundaries: list(float)", 0},
    {"LowerBound", "sorted_inputs: T, values: T -> output: out_type", "T: type; out_type: {int32, int64} = int32", 0},
    {"UpperBound", "sorted_inputs: T, values: T -> output: out_type", "T: type; out_type: {int32, int64} = int32", 0},
    {"UnravelIndex", "indices: Tidx, dims: Tidx -> output: Tidx", "Tidx: {int32, int64} = int32", 0},
    {"Cross", "a: T, b: T -> product: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {0},
};

/* ---- Bucketize ---- */

typedef struct BucketState {
    float *boundaries;
    int count;
} BucketState;

static Error *bucketize_init(const Node *node, void *state) {
    BucketState *s = state;
    Error *err = node_attr_floats(node, "boundaries", &s->boundaries, &s->count);
    for (int i = 1; !err && i < s->count; i++)
        if (s->boundaries[i] < s->boundaries[i - 1]) err = error_invalid("Expected sorted boundaries");
    return err;
}

static void bucketize_clear(void *state) {
    free(((BucketState *)state)->boundaries);
}

/* A float, as int32 and int64 are compared as floats too. */
static double comparable(const Tensor *t, int64_t i) {
    switch (t->dtype) {
        case DT_DOUBLE:
            return tensor_f64(t)[i];
        case DT_FLOAT:
            return tensor_f32(t)[i];
        default:
            return (float)index_at(t, i);
    }
}

static Error *run_bucketize(KernelContext *k) {
    const BucketState *s = k->state;
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++) {
        double v = comparable(k->in[0], i);
        int low = 0, high = s->count;
        while (low < high) { /* the first boundary above v */
            int mid = low + (high - low) / 2;
            if (v < (double)s->boundaries[mid]) {
                high = mid;
            } else {
                low = mid + 1;
            }
        }
        tensor_i32(out)[i] = low;
    }
    return NULL;
}

/* ---- LowerBound, UpperBound, Cross ---- */

typedef struct SearchJob {
    const Tensor *sorted, *values;
    bool upper;
    Tensor *out;
} SearchJob;
typedef void CrossFn(const void *a, const void *b, void *to, int64_t rows);

#define BODY "ops/search.inc"
#include "kernels/each_float.inc"
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
#undef BODY

static Error *search(KernelContext *k, bool upper) {
    static RangeFn *const fns[DT_COUNT] = {REAL_TYPES(search)};
    const Tensor *sorted = k->in[0], *values = k->in[1];
    for (int i = 0; i < 2; i++) {
        if (k->in[i]->shape.rank != 2)
            return error_invalid("Shape must be rank 2 but is rank %d for `%s` argument", k->in[i]->shape.rank, i ? "values" : "sorted_inputs");
    }
    if (sorted->shape.dims[0] != values->shape.dims[0])
        return error_invalid("Leading dim_size of both tensors must match.");
    if (!fns[sorted->dtype])
        return kernel_lacks_type(k->node, sorted->dtype);
    if (kernel_output_type(k, 0) == DT_INT32 && (values->count > INT32_MAX || sorted->shape.dims[1] > INT32_MAX))
        return error_invalid("values tensor size must less than INT_MAX");
    Tensor *out = kernel_output(k, 0, &values->shape);
    SearchJob job = {sorted, values, upper, out};
    if (out) threadpool_parallel_for(k->pool, values->count, 2048, fns[sorted->dtype], &job);
    return NULL;
}

static Error *run_lower_bound(KernelContext *k) {
    return search(k, false);
}
static Error *run_upper_bound(KernelContext *k) {
    return search(k, true);
}

static Error *run_cross(KernelContext *k) {
    static CrossFn *const fns[DT_COUNT] = {REAL_TYPES(cross)};
    const Tensor *a = k->in[0], *b = k->in[1];
    if (!shape_eq(&a->shape, &b->shape))
        return error_invalid("Both inputs must be of same shape: %s vs. %s", shape_text(&a->shape).text,
                             shape_text(&b->shape).text);
    if (a->shape.rank < 1) return error_invalid("Input must be at least 1D[]");
    if (a->shape.dims[a->shape.rank - 1] != 3)
        return error_new(CODE_FAILED_PRECONDITION, "Cross-products are only defined for 3-element vectors.");
    Tensor *out = kernel_output(k, 0, &a->shape);
    if (out) fns[a->dtype](a->data, b->data, out->data, out->count / 3);
    return NULL;
}

/* ---- UnravelIndex ---- */

static Error *dims_overflow(const Tensor *dims) {
    StrBuf text = {0};
    for (int64_t d = 0; d < dims->count; d++) strbuf_addf(&text, "%s%lld", d ? " " : "", (long long)index_at(dims, d));
    Error *err = error_invalid("Input dims product is causing integer overflow: (%s)", strbuf_str(&text).ptr);
    strbuf_clear(&text);
    return err;
}

static Error *run_unravel(KernelContext *k) {
    const Tensor *indices = k->in[0], *dims = k->in[1];
    if (indices->shape.rank > 1)
        return error_invalid("The indices can only be scalar or vector, got \"%s\"", shape_text(&indices->shape).text);
    if (indices->count == 0)
        return error_invalid("received empty tensor indices: Tensor<type: %s shape: %s values: >", dtype_name(indices->dtype),
                             shape_text(&indices->shape).text);
    if (dims->shape.rank != 1)
        return error_invalid("The indices can only be 1-D, got \"%s\"", shape_text(&dims->shape).text);
    int64_t rank = dims->count, limit = 1, n = indices->count;
    for (int64_t d = 0; d < rank; d++) {
        if (index_at(dims, d) == 0)
            return error_invalid("Input dims cannot contain a dim of zero, but dims contains zero at index %lld",
                                 (long long)d);
        if (index_at(dims, d) < 0)
            return error_invalid("Input dims cannot be negative. Got dim = %lld at index %lld",
                                 (long long)index_at(dims, d), (long long)d);
        if (__builtin_mul_overflow(limit, index_at(dims, d), &limit) || (dims->dtype == DT_INT32 && limit > INT32_MAX))
            return dims_overflow(dims);
    }
    for (int64_t i = 0; i < n; i++)
        if (index_at(indices, i) >= limit) /* negative ones are divided like others, as in TensorFlow */
            return error_invalid("index is out of bound as with dims");
    Shape shape = indices->shape.rank ? shape_matrix(rank, n) : shape_vector(rank);
    Tensor *out = kernel_output(k, 0, &shape);
    for (int64_t i = 0; out && i < n; i++) {
        int64_t rest = index_at(indices, i);
        for (int64_t d = rank - 1; d >= 0; d--) {
            index_put(out, d * n + i, rest % index_at(dims, d));
            rest /= index_at(dims, d);
        }
    }
    return NULL;
}

const KernelDef search_ops_cpu[] = {
    {"Bucketize", .run = run_bucketize, .state_size = sizeof(BucketState), .init = bucketize_init,
     .clear = bucketize_clear},
    {"LowerBound", .run = run_lower_bound},
    {"UpperBound", .run = run_upper_bound},
    {"UnravelIndex", .run = run_unravel},
    {"Cross", .run = run_cross},
    {0},
};
