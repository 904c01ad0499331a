/* sparse_dense.c: sparse tensors made dense, and combined with dense ones: sums, products, matrix products. */
#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"
#include "ops/sparse_tensor.h"

const OpDef sparse_dense_ops[] = {
    {"SparseToDense",
     "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T -> dense: T",
     "validate_indices: bool = true; T: type; Tindices: {int32, int64}", 0},
    {"SparseTensorDenseAdd", "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}",
     0},
    {"SparseTensorDenseMatMul", "a_indices: Tindices, a_values: T, a_shape: int64, b: T -> product: T",
     "T: type; Tindices: {int32, int64} = int64; adjoint_a: bool = false; adjoint_b: bool = false", 0},
    {"SparseDenseCwiseAdd", "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {"SparseDenseCwiseMul", "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {"SparseDenseCwiseDiv", "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {0},
};

/* ---- SparseToDense ---- */

typedef struct ToDenseState {
    bool validate;
} ToDenseState;

static Error *to_dense_init(const Node *node, void *state) {
    return node_attr_bool(node, "validate_indices", &((ToDenseState *)state)->validate);
}

static Error *check_to_dense(const Tensor *indices, const Tensor *shape, const Tensor *values, const Tensor *fallback,
                             int64_t *count, int64_t *depth) {
    if (indices->shape.rank > 2)
        return error_invalid("sparse_indices should be a scalar, vector, or matrix, got shape %s",
                             shape_text(&indices->shape).text);
    *count = indices->shape.rank > 0 ? indices->shape.dims[0] : 1;
    *depth = indices->shape.rank > 1 ? indices->shape.dims[1] : 1;
    if (shape->shape.rank != 1)
        return error_invalid("output_shape must be rank 1, got shape %s", shape_text(&shape->shape).text);
    if (shape->count != *depth)
        return error_invalid("output_shape has incorrect number of elements: %lld should be: %lld",
                             (long long)shape->count, (long long)*depth);
    if (values->shape.rank > 1 || (values->shape.rank == 1 && values->count != *count))
        return error_invalid("sparse_values has incorrect shape %s, should be [] or [%lld]",
                             shape_text(&values->shape).text, (long long)*count);
    if (fallback->shape.rank != 0) return error_invalid("default_value should be a scalar.");
    for (int64_t d = 0; d < shape->count; d++) {
        if (index_at(shape, d) < 0) return error_invalid("Dimension %lld must be >= 0", (long long)index_at(shape, d));
    }
    return NULL;
}

static Error *place_outside(const SparseView *v) {
    return error_invalid("Indices are not valid (out of bounds).  Shape: %s", shape_text(&v->shape).text);
}

/* Values of one word at places of a matrix, or vector: count x depth indices, which are looked at all the same. */
typedef struct WordsJob {
    const void *indices;
    const uint32_t *values;
    int64_t value_step, rows, columns; /* step: 0 or 1 */
    bool wide, is_matrix;
    uint32_t *out;
} WordsJob;

static inline __attribute__((always_inline)) bool put_words_of(const WordsJob *job, int64_t count, bool wide, bool is_matrix) {
    const int64_t *wide_at = job->indices;
    const int32_t *at = job->indices;
    for (int64_t i = 0; i < count; i++) {
        const int64_t e = is_matrix ? 2 * i : i;
        const uint64_t row = is_matrix ? (uint64_t)(wide ? wide_at[e] : at[e]) : 0, column = (uint64_t)(wide ? wide_at[e + is_matrix] : at[e + is_matrix]);
        if (row >= (uint64_t)job->rows || column >= (uint64_t)job->columns) return false;
        job->out[row * (uint64_t)job->columns + column] = job->values[i * job->value_step];
    }
    return true;
}

static bool put_words(const WordsJob *job, int64_t count) {
    if (job->wide) return job->is_matrix ? put_words_of(job, count, true, true) : put_words_of(job, count, true, false);
    return job->is_matrix ? put_words_of(job, count, false, true) : put_words_of(job, count, false, false);
}

static Error *put_values(const SparseView *v, const Tensor *values, Tensor *out) {
    const ElementKind kind = element_kind(out->dtype);
    const Tensor *indices = v->indices_tensor;
    const int rank = v->shape.rank;
    const int64_t step = values->shape.rank ? 1 : 0;
    if (!kind.copy && kind.size == sizeof(uint32_t) && (rank == 1 || rank == 2)) {
        WordsJob job = {.indices = indices->data,
                        .values = values->data,
                        .value_step = step,
                        .rows = rank == 2 ? v->shape.dims[0] : 1,
                        .columns = v->shape.dims[rank - 1],
                        .wide = indices->dtype == DT_INT64,
                        .is_matrix = rank == 2,
                        .out = out->data};
        return put_words(&job, v->nnz) ? NULL : place_outside(v);
    }
    for (int64_t i = 0; i < v->nnz; i++) {
        int64_t flat = 0;
        for (int d = 0; d < rank; d++) {
            int64_t at = index_at(indices, i * rank + d);
            if (at < 0 || at >= v->shape.dims[d]) return place_outside(v);
            flat = flat * v->shape.dims[d] + at;
        }
        copy_elements(kind, element_to(out, flat), element_at(values, i * step), 1);
    }
    return NULL;
}

static Error *run_to_dense(KernelContext *k) {
    const Tensor *indices = k->in[0], *values = k->in[2], *fallback = k->in[3];
    int64_t count = 0, depth = 0;
    SparseView v = {.indices_tensor = indices};
    Error *err = check_to_dense(indices, k->in[1], values, fallback, &count, &depth);
    if (!err) err = sparse_shape_of(k->in[1], &v.shape);
    if (err) return err;
    v.nnz = count;
    if (((const ToDenseState *)k->state)->validate) {
        err = sparse_check_indices(&v, true);
        if (err) return err;
    }
    Tensor *out = kernel_output(k, 0, &v.shape);
    if (!out) return NULL;
    ElementKind kind = element_kind(out->dtype);
    copy_fill(k->pool, kind, out->data, fallback->data, out->count);
    return put_values(&v, values, out);
}

/* ---- SparseTensorDenseAdd ---- */

/* Every index lies in the dense tensor. */
static Error *check_places(const SparseView *v, const Tensor *dense) {
    const int rank = v->shape.rank;
    for (int64_t i = 0; i < v->nnz * rank; i++) {
        int64_t at = index_at(v->indices_tensor, i);
        if (at >= 0 && at < dense->shape.dims[i % rank]) continue;
        StrBuf text = {0};
        for (int d = 0; d < rank; d++) strbuf_addf(&text, "%s%lld", d ? " " : "", (long long)dense->shape.dims[d]);
        Error *err = error_invalid(
            "Sparse tensor has an invalid index on dimension %d: a_indices(%lld,%d) = %lld, dense tensor shape: %.*s",
            (int)(i % rank), (long long)(i / rank), (int)(i % rank), (long long)at, STR_ARG(strbuf_str(&text)));
        strbuf_clear(&text);
        return err;
    }
    return NULL;
}

static Error *run_dense_add(KernelContext *k) {
    const Tensor *dense = k->in[3];
    const RowMath *math = row_math(dense->dtype);
    SparseView v;
    Error *err = sparse_check_named("a", k->in[0], k->in[1], k->in[2]);
    if (err) return err;
    if (sparse_counts_differ(k->in[0], k->in[1]))
        return error_invalid("Dimensions %lld and %lld are not compatible", (long long)k->in[0]->shape.dims[0],
                             (long long)k->in[1]->count);
    if (sparse_ranks_differ(k->in[0], k->in[2]))
        return error_invalid("Dimensions %lld and %lld are not compatible", (long long)k->in[0]->shape.dims[1],
                             (long long)k->in[2]->count);
    err = sparse_view("Input a_", k->in[0], k->in[1], k->in[2], &v);
    if (err) return err;
    if (!math) return kernel_lacks_type(k->node, dense->dtype);
    if (v.shape.rank != dense->shape.rank)
        return error_invalid("Two operands have different ranks; received: %d and %d", v.shape.rank, dense->shape.rank);
    for (int d = 0; d < v.shape.rank; d++) {
        if (v.shape.dims[d] != dense->shape.dims[d])
            return error_invalid(
                "Dimension %d does not equal (no broadcasting is supported): sparse side %lld vs dense side %lld", d,
                (long long)v.shape.dims[d], (long long)dense->shape.dims[d]);
    }
    err = check_places(&v, dense);
    if (err) return err;
    Tensor *out = kernel_output_from(k, 0, 3, &dense->shape);
    if (!out) return NULL;
    if (out->data != dense->data) memcpy(out->data, dense->data, tensor_bytes(out));
    int64_t strides[SHAPE_MAX_RANK];
    strides_of(&dense->shape, strides);
    for (int64_t i = 0; i < v.nnz; i++) {
        int64_t flat = 0;
        for (int d = 0; d < v.shape.rank; d++) flat += index_at(k->in[0], i * v.shape.rank + d) * strides[d];
        math->add(element_to(out, flat), element_at(v.values, i), 1);
    }
    return NULL;
}

/* ---- SparseDenseCwise... ---- */

/* The dense operand, perhaps of lower rank, is broadcast to the sparse one; only where that has values there is a
 * result. */
static Error *sparse_dense(KernelContext *k, size_t fn_offset) {
    const Tensor *dense = k->in[3];
    const RowMath *math = row_math(dense->dtype);
    RowFn *fn = math ? *(RowFn *const *)((const char *)math + fn_offset) : NULL;
    SparseView v;
    Error *err = sparse_check_named("sp", k->in[0], k->in[1], k->in[2]);
    if (err) return err;
    if (sparse_counts_differ(k->in[0], k->in[1]))
        return error_invalid("The first dimension of values and indices should match. (%lld vs. %lld)",
                             (long long)k->in[1]->count, (long long)k->in[0]->shape.dims[0]);
    if (sparse_ranks_differ(k->in[0], k->in[2]))
        return error_invalid(
            "Number of dimensions must match second dimension of indices. Got %lld dimensions, indices shape: %s",
            (long long)k->in[2]->count, shape_text(&k->in[0]->shape).text);
    err = sparse_view("Input sp_", k->in[0], k->in[1], k->in[2], &v);
    if (!err && !fn) err = kernel_lacks_type(k->node, dense->dtype);
    if (err) return err;
    int rank = v.shape.rank, shift = rank - dense->shape.rank;
    bool fits = shift >= 0;
    for (int d = 0; fits && d < dense->shape.rank; d++)
        fits = dense->shape.dims[d] == v.shape.dims[d + shift] || dense->shape.dims[d] == 1;
    if (!fits)
        return error_invalid(
            "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: %s vs. %s",
            shape_text(&v.shape).text, shape_text(&dense->shape).text);
    err = sparse_check_inside(&v);
    if (err) {
        error_free(err);
        return error_invalid("Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape");
    }
    Tensor *out = kernel_output(k, 0, &v.values->shape);
    if (!out) return NULL;
    memcpy(out->data, v.values->data, tensor_bytes(out));
    int64_t strides[SHAPE_MAX_RANK];
    strides_of(&dense->shape, strides);
    for (int64_t i = 0; i < v.nnz; i++) {
        int64_t flat = 0;
        for (int d = 0; d < dense->shape.rank; d++)
            flat += dense->shape.dims[d] == 1 ? 0 : v.indices[i * rank + d + shift] * strides[d];
        fn(element_to(out, i), element_at(dense, flat), 1);
    }
    return NULL;
}

static Error *run_cwise_add(KernelContext *k) {
    return sparse_dense(k, offsetof(RowMath, add));
}
static Error *run_cwise_mul(KernelContext *k) {
    return sparse_dense(k, offsetof(RowMath, mul));
}
static Error *run_cwise_div(KernelContext *k) {
    return sparse_dense(k, offsetof(RowMath, div));
}

/* ---- SparseTensorDenseMatMul ---- */

typedef struct MatMulState {
    bool adjoint_a, adjoint_b;
} MatMulState;

static Error *matmul_init(const Node *node, void *state) {
    MatMulState *s = state;
    Error *err = node_attr_bool(node, "adjoint_a", &s->adjoint_a);
    return err ? err : node_attr_bool(node, "adjoint_b", &s->adjoint_b);
}

typedef struct SparseMatMul {
    const Tensor *indices;
    const void *values, *b;
    int64_t nnz, b_cols; /* as stored */
    int64_t m, n;
    bool adjoint_a, adjoint_b;
    void *out;
} SparseMatMul;

#define BODY "ops/sparse_matmul.inc"
#define CONJUGATE(c) (c)
#include "kernels/each_float.inc"
#define S int32_t
#define C uint32_t
#define LOAD(s) ((uint32_t)(s))
#define STORE(c) ((int32_t)(c))
#define ROUND(c) (c)
#define NAME(f) f##_i32
#include BODY
#undef S
#undef C
#undef LOAD
#undef STORE
#undef ROUND
#undef NAME
#undef CONJUGATE
#define CONJUGATE(c) (~(c))
#include "kernels/each_complex.inc"
#undef BODY

typedef void SparseMatMulFn(const SparseMatMul *g, int64_t from, int64_t to);

typedef struct MatMulJob {
    const SparseMatMul *g;
    SparseMatMulFn *fn;
} MatMulJob;

static void matmul_range(void *arg, int64_t begin, int64_t end) {
    const MatMulJob *job = arg;
    job->fn(job->g, begin, end);
}

static Error *check_matmul(const Tensor *indices, const SparseView *v, const Tensor *b, const MatMulState *s) {
    if (b->shape.rank != 2) return error_invalid("Tensor 'b' is not a matrix");
    if (v->shape.rank != 2) return error_invalid("Tensor 'a_shape' must have 2 elements");
    int64_t inner_a = v->shape.dims[s->adjoint_a ? 0 : 1], inner_b = b->shape.dims[s->adjoint_b ? 1 : 0];
    if (inner_a != inner_b)
        return error_invalid(
            "Cannot multiply A and B because inner dimension does not match: %lld vs. %lld.  Did you forget a "
            "transpose?  "
            "Dimensions of A: [%lld, %lld).  Dimensions of B: %s",
            (long long)inner_a, (long long)inner_b, (long long)v->shape.dims[0], (long long)v->shape.dims[1],
            shape_text(&b->shape).text);
    int64_t outer_a = v->shape.dims[s->adjoint_a ? 1 : 0];
    for (int64_t i = 0; i < v->nnz; i++) {
        int64_t m = index_at(indices, 2 * i + (s->adjoint_a ? 1 : 0)),
                n = index_at(indices, 2 * i + (s->adjoint_a ? 0 : 1));
        if (n < 0 || n >= inner_a)
            return error_invalid("k (%lld) from index[%lld,%d] out of bounds (>=%lld)", (long long)n, (long long)i,
                                 s->adjoint_a ? 0 : 1, (long long)inner_a);
        if (m < 0 || m >= outer_a)
            return error_invalid("m (%lld) from index[%lld,%d] out of bounds (>=%lld)", (long long)m, (long long)i,
                                 s->adjoint_a ? 1 : 0, (long long)outer_a);
    }
    return NULL;
}

static Error *run_matmul(KernelContext *k) {
    static SparseMatMulFn *const fns[DT_COUNT] = {FLOAT_TYPES(sparse_matmul),
                                                  COMPLEX_TYPES(sparse_matmul), [DT_INT32] = sparse_matmul_i32};
    const MatMulState *s = k->state;
    const Tensor *b = k->in[3];
    SparseView v;
    static const char *const names[] = {"a_indices", "a_values", "a_shape"};
    static const int ranks[] = {2, 1, 1};
    for (int i = 2; i >= 0; i--) {
        if (k->in[i]->shape.rank != ranks[i])
            return error_invalid("Tensor '%s' is not a %s", names[i], ranks[i] == 2 ? "matrix" : "vector");
    }
    if (k->in[2]->count != 2) return error_invalid("Tensor 'a_shape' must have 2 elements");
    if (sparse_counts_differ(k->in[0], k->in[1]))
        return error_invalid("Number of rows of a_indices does not match number of entries in a_values");
    if (sparse_ranks_differ(k->in[0], k->in[2]))
        return error_invalid("Number of columns of a_indices does not match number of entries in a_shape");
    Error *err = sparse_view("Tensor 'a'", k->in[0], k->in[1], k->in[2], &v);
    if (!err) err = check_matmul(k->in[0], &v, b, s);
    if (err) return err;
    if (!fns[b->dtype]) return kernel_lacks_type(k->node, b->dtype);
    SparseMatMul g = {.indices = k->in[0],
                      .values = v.values->data,
                      .b = b->data,
                      .nnz = v.nnz,
                      .b_cols = b->shape.dims[1],
                      .m = v.shape.dims[s->adjoint_a ? 1 : 0],
                      .n = b->shape.dims[s->adjoint_b ? 0 : 1],
                      .adjoint_a = s->adjoint_a,
                      .adjoint_b = s->adjoint_b};
    Shape shape = shape_matrix(g.m, g.n);
    bool half = b->dtype == DT_HALF || b->dtype == DT_BFLOAT16;
    Tensor *out = kernel_output(k, 0, &shape), *sums = out && half ? kernel_scratch(k, DT_FLOAT, &shape) : NULL;
    if (!out || (half && !sums)) return NULL;
    g.out = half ? sums->data : out->data;
    memset(g.out, 0, tensor_bytes(half ? sums : out));
    MatMulJob job = {&g, fns[b->dtype]};
    int64_t grain = 65536 / (v.nnz + 1) + 1;
    threadpool_parallel_for(k->pool, g.n, grain, matmul_range, &job);
    for (int64_t i = 0; half && i < out->count; i++)
        ((uint16_t *)out->data)[i] =
            b->dtype == DT_HALF ? float_to_half(tensor_f32(sums)[i]) : float_to_bfloat16(tensor_f32(sums)[i]);
    tensor_unref(sums);
    return NULL;
}

const KernelDef sparse_dense_cpu[] = {
    {"SparseToDense", .run = run_to_dense, .state_size = sizeof(ToDenseState), .init = to_dense_init},
    {"SparseTensorDenseAdd", .run = run_dense_add},
    {"SparseTensorDenseMatMul", .run = run_matmul, .state_size = sizeof(MatMulState), .init = matmul_init,
     .flags = KERNEL_EXPENSIVE},
    {"SparseDenseCwiseAdd", .run = run_cwise_add},
    {"SparseDenseCwiseMul", .run = run_cwise_mul},
    {"SparseDenseCwiseDiv", .run = run_cwise_div},
    {0},
};
