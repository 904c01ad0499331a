/* csr_ops.c: sparse matrices by compressed rows: made of dense and sparse tensors and back, multiplied, transposed. */
#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/csr_matrix.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/sparse_tensor.h"

#define TYPES "{float, double, complex64, complex128}"

const OpDef csr_ops_ops[] = {
    {"SparseTensorToCSRSparseMatrix", "indices: int64, values: T, dense_shape: int64 -> sparse_matrix: variant", "T: " TYPES, 0},
    {"DenseToCSRSparseMatrix", "dense_input: T, indices: int64 -> sparse_output: variant", "T: " TYPES, 0},
    {"CSRSparseMatrixToDense", "sparse_input: variant -> dense_output: type", "type: " TYPES, 0},
    {"CSRSparseMatrixToSparseTensor", "sparse_matrix: variant -> indices: int64, values: type, dense_shape: int64", "type: " TYPES, 0},
    {"CSRSparseMatrixComponents", "csr_sparse_matrix: variant, index: int32 -> row_ptrs: int32, col_inds: int32, values: type", "type: " TYPES, 0},
    {"SparseMatrixNNZ", "sparse_matrix: variant -> nnz: int32", "", 0},
    {"SparseMatrixMatMul", "a: variant, b: T -> output: T",
     "T: type; transpose_a: bool = false; transpose_b: bool = false; adjoint_a: bool = false; adjoint_b: bool = false; transpose_output: bool = false; "
     "conjugate_output: bool = false",
     0},
    {"SparseMatrixSparseMatMul", "a: variant, b: variant -> c: variant",
     "type: " TYPES "; transpose_a: bool = false; transpose_b: bool = false; adjoint_a: bool = false; adjoint_b: bool = false", 0},
    {"SparseMatrixTranspose", "input: variant -> output: variant", "conjugate: bool = false; type: " TYPES, 0},
    {0},
};

/* ---- Arithmetic by type ---- */

typedef struct CsrProduct {
    int64_t width;
    bool a_transposed, a_conjugated;
} CsrProduct;

typedef struct CsrMath {
    void (*transpose)(const CsrView *a, bool conjugate, int32_t *rows, int32_t *cols, void *values);
    void (*multiply)(const CsrView *a, const CsrProduct *p, const void *dense, void *result, int64_t begin, int64_t end);
    void (*flip)(const void *from, void *to, int64_t rows, int64_t cols, bool conjugate);
    void (*conjugate)(void *data, int64_t n);
    void (*sparse_product)(const CsrView *a, const CsrView *b, int32_t *rows, int32_t *cols, void *values, int64_t *seen, int64_t mark, void *sums);
} CsrMath;

static int compare_columns(const void *a, const void *b) {
    return *(const int32_t *)a < *(const int32_t *)b ? -1 : *(const int32_t *)a > *(const int32_t *)b;
}

#define CONJ(v) (v)
#define S float
#define NAME(f) f##_f32
#include "ops/csr.inc"
#undef S
#undef NAME
#define S double
#define NAME(f) f##_f64
#include "ops/csr.inc"
#undef S
#undef NAME
#undef CONJ
#define CONJ(v) conj(v)
#define S double _Complex
#define NAME(f) f##_c128
#include "ops/csr.inc"
#undef S
#undef NAME
#undef CONJ
#define CONJ(v) conjf(v)
#define S float _Complex
#define NAME(f) f##_c64
#include "ops/csr.inc"
#undef S
#undef NAME
#undef CONJ

static const CsrMath *math_of(DataType t) {
    return t == DT_FLOAT ? &csr_math_f32 : t == DT_DOUBLE ? &csr_math_f64 : t == DT_COMPLEX64 ? &csr_math_c64 : &csr_math_c128;
}

/* ---- From tensors ---- */

/* Batches, rows and columns of a matrix from the indices of its entries, which lie in the shape. */
static Error *fill_pointers(CsrMatrix *m, const int64_t *indices, int64_t nnz, int rank) {
    int32_t *batches = tensor_i32(m->batches), *rows = tensor_i32(m->rows), *cols = tensor_i32(m->cols);
    const int64_t row_count = csr_row_count(m), batch_count = csr_batch_count(m);
    for (int64_t i = 0; i < nnz; i++) {
        const int64_t *at = indices + i * rank, b = rank == 3 ? at[0] : 0;
        batches[b + 1]++;
        rows[b * (row_count + 1) + at[rank - 2] + 1]++;
        cols[i] = (int32_t)at[rank - 1];
        if (i && rank == 3 && at[0] < at[-rank]) return error_invalid("indices must be sorted by the batch they belong to");
    }
    for (int64_t b = 0; b < batch_count; b++) {
        batches[b + 1] += batches[b];
        for (int64_t r = 0; r < row_count; r++) rows[b * (row_count + 1) + r + 1] += rows[b * (row_count + 1) + r];
    }
    return NULL;
}

static Error *check_columns(const Shape *s) {
    return s->dims[s->rank - 1] > INT32_MAX ? error_invalid("A matrix of %lld columns is too wide", (long long)s->dims[s->rank - 1]) : NULL;
}

static Error *run_from_sparse(KernelContext *k) {
    SparseView s;
    CsrMatrix *m = NULL;
    Error *err = sparse_view("Sparse", k->in[0], k->in[1], k->in[2], &s);
    if (!err && s.shape.rank != 2 && s.shape.rank != 3)
        err = error_invalid("SparseTensor must have rank 2 or 3; but indices has rank: %d", s.shape.rank);
    if (!err) err = sparse_check_inside(&s);
    if (!err) err = check_columns(&s.shape);
    if (!err) err = csr_new(k->in[1]->dtype, &s.shape, s.nnz, &m);
    if (err) return err;
    tensor_unref(m->values);
    m->values = tensor_ref(k->in[1]);
    err = fill_pointers(m, s.indices, s.nnz, s.shape.rank);
    if (err)
        csr_unref(m);
    else
        kernel_set_csr(k, 0, m);
    return err;
}

static Error *run_from_dense(KernelContext *k) {
    const Tensor *x = k->in[0], *indices = k->in[1];
    const int rank = x->shape.rank;
    if (rank != 2 && rank != 3) return error_invalid("params must have rank == 2 or 3; but saw shape: %s", shape_text(&x->shape).text);
    if (indices->shape.rank != 2) return error_invalid("indices must be a matrix, but saw shape: %s", shape_text(&indices->shape).text);
    if (indices->shape.dims[1] != rank)
        return error_invalid("indices.shape[1] must be equal to the rank of params, but saw: %lld vs. %d", (long long)indices->shape.dims[1], rank);
    const int64_t nnz = indices->shape.dims[0];
    SparseView s = {.indices_tensor = indices, .indices = tensor_i64(indices), .nnz = nnz, .shape = x->shape};
    CsrMatrix *m = NULL;
    Error *err = sparse_check_inside(&s);
    if (!err) err = check_columns(&s.shape);
    if (!err) err = csr_new(x->dtype, &x->shape, nnz, &m);
    if (err) return err;
    const size_t size = dtype_size(x->dtype);
    for (int64_t i = 0; i < nnz; i++) {
        int64_t at = 0;
        for (int d = 0; d < rank; d++) at = at * x->shape.dims[d] + s.indices[i * rank + d];
        memcpy((char *)m->values->data + (size_t)i * size, (const char *)x->data + (size_t)at * size, size);
    }
    err = fill_pointers(m, s.indices, nnz, rank);
    if (err)
        csr_unref(m);
    else
        kernel_set_csr(k, 0, m);
    return err;
}

/* ---- To tensors ---- */

static Error *run_to_dense(KernelContext *k) {
    const CsrMatrix *m;
    Error *err = kernel_csr(k, 0, kernel_output_type(k, 0), &m);
    if (err) return err;
    Shape shape = shape_of(csr_rank(m), tensor_i64(m->shape));
    err = shape_check(&shape);
    if (err) return err;
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    const size_t size = dtype_size(z->dtype);
    memset(z->data, 0, tensor_bytes(z));
    for (int64_t b = 0; b < csr_batch_count(m); b++) {
        CsrView v = csr_view(m, b);
        char *to = (char *)z->data + (size_t)(b * v.row_count * v.col_count) * size;
        for (int64_t r = 0; r < v.row_count; r++)
            for (int32_t i = v.rows[r]; i < v.rows[r + 1]; i++)
                memcpy(to + (size_t)(r * v.col_count + v.cols[i]) * size, (const char *)v.values + (size_t)i * size, size);
    }
    return NULL;
}

static Error *run_to_sparse(KernelContext *k) {
    const CsrMatrix *m;
    Error *err = kernel_csr(k, 0, kernel_output_type(k, 1), &m);
    if (err) return err;
    const int rank = csr_rank(m);
    Shape shape = shape_matrix(m->cols->count, rank);
    Tensor *indices = kernel_output(k, 0, &shape);
    if (!indices) return NULL;
    int64_t *to = tensor_i64(indices);
    for (int64_t b = 0; b < csr_batch_count(m); b++) {
        CsrView v = csr_view(m, b);
        for (int64_t r = 0; r < v.row_count; r++)
            for (int32_t i = v.rows[r]; i < v.rows[r + 1]; i++, to += rank) {
                to[0] = b;
                to[rank - 2] = r;
                to[rank - 1] = v.cols[i];
            }
    }
    kernel_set_output(k, 1, tensor_ref(m->values));
    kernel_set_output(k, 2, tensor_ref(m->shape));
    return NULL;
}

static Error *run_components(KernelContext *k) {
    const CsrMatrix *m;
    Error *err = kernel_csr(k, 0, kernel_output_type(k, 2), &m);
    if (err) return err;
    if (k->in[1]->shape.rank != 0) return error_invalid("index should be a scalar, but saw shape %s", shape_text(&k->in[1]->shape).text);
    int32_t index = tensor_i32(k->in[1])[0];
    if (index < 0 || index >= csr_batch_count(m)) return error_invalid("index (%d) not in [0, %lld)", index, (long long)csr_batch_count(m));
    CsrView v = csr_view(m, index);
    Shape rows = shape_vector(v.row_count + 1), entries = shape_vector(v.nnz);
    Tensor *z_rows = kernel_output(k, 0, &rows), *z_cols = z_rows ? kernel_output(k, 1, &entries) : NULL, *z_values = z_cols ? kernel_output(k, 2, &entries) : NULL;
    if (!z_values) return NULL;
    memcpy(z_rows->data, v.rows, tensor_bytes(z_rows));
    memcpy(z_cols->data, v.cols, tensor_bytes(z_cols));
    memcpy(z_values->data, v.values, tensor_bytes(z_values));
    return NULL;
}

static Error *run_nnz(KernelContext *k) {
    const CsrMatrix *m;
    Error *err = kernel_csr(k, 0, DT_INVALID, &m);
    if (err) return err;
    Shape shape = csr_rank(m) == 2 ? SHAPE_SCALAR : shape_vector(csr_batch_count(m));
    Tensor *z = kernel_output(k, 0, &shape);
    for (int64_t b = 0; z && b < csr_batch_count(m); b++) tensor_i32(z)[b] = tensor_i32(m->batches)[b + 1] - tensor_i32(m->batches)[b];
    return NULL;
}

/* ---- Products ---- */

typedef struct Flips {
    bool a_transposed, a_conjugated, b_transposed, b_conjugated, z_transposed, z_conjugated;
} Flips;

static Error *product_init(const Node *node, void *state) {
    Flips *f = state;
    Str value;
    Error *err = node_attr_bool(node, "transpose_a", &f->a_transposed);
    if (!err) err = node_attr_bool(node, "adjoint_a", &f->a_conjugated);
    if (!err) err = node_attr_bool(node, "transpose_b", &f->b_transposed);
    if (!err) err = node_attr_bool(node, "adjoint_b", &f->b_conjugated);
    if (!err && node_attr(node, "transpose_output", &value)) err = node_attr_bool(node, "transpose_output", &f->z_transposed);
    if (!err && node_attr(node, "conjugate_output", &value)) err = node_attr_bool(node, "conjugate_output", &f->z_conjugated);
    if (!err && f->a_transposed && f->a_conjugated) err = error_invalid("Only one of adjoint_a and transpose_a may be true.");
    if (!err && f->b_transposed && f->b_conjugated) err = error_invalid("Only one of adjoint_b and transpose_b may be true.");
    f->a_transposed |= f->a_conjugated;
    f->b_transposed |= f->b_conjugated;
    return err;
}

typedef struct DenseJob {
    const CsrMatrix *a;
    const CsrMath *math;
    CsrProduct product;
    const char *b;
    char *z;
    size_t b_bytes, z_bytes; /* of one matrix */
    int64_t row_count;
} DenseJob;

/* Rows of all matrices one after the other; of transposed ones each row adds to many, so matrices as a whole. */
static void dense_range(void *arg, int64_t begin, int64_t end) {
    const DenseJob *job = arg;
    const int64_t rows = job->product.a_transposed ? 1 : job->row_count;
    while (begin < end) {
        int64_t b = begin / rows, stop = (b + 1) * rows < end ? (b + 1) * rows : end;
        CsrView v = csr_view(job->a, b);
        job->math->multiply(&v, &job->product, job->b + (size_t)b * job->b_bytes, job->z + (size_t)b * job->z_bytes, job->product.a_transposed ? 0 : begin - b * rows,
                            job->product.a_transposed ? v.row_count : stop - b * rows);
        begin = stop;
    }
}

/* The matrices of the last two dimensions of t, each transposed. */
static Tensor *flipped(KernelContext *k, const CsrMath *math, const Tensor *t, bool conjugate) {
    Shape shape = t->shape;
    int64_t rows = shape.dims[shape.rank - 2], cols = shape.dims[shape.rank - 1];
    shape.dims[shape.rank - 2] = cols;
    shape.dims[shape.rank - 1] = rows;
    Tensor *z = kernel_scratch(k, t->dtype, &shape);
    size_t bytes = (size_t)(rows * cols) * dtype_size(t->dtype);
    int64_t count = shape_prod(&shape, 0, shape.rank - 2);
    for (int64_t b = 0; z && b < count; b++)
        math->flip((const char *)t->data + (size_t)b * bytes, (char *)z->data + (size_t)b * bytes, rows, cols, conjugate);
    return z;
}

static Error *check_product(const Flips *f, const CsrMatrix *a, const Tensor *b) {
    const int rank = csr_rank(a);
    if (rank != b->shape.rank) return error_invalid("Ranks of a and b must match, saw: %d vs. %d.", rank, b->shape.rank);
    int64_t batch = rank == 2 ? 1 : b->shape.dims[0];
    if (csr_batch_count(a) != batch)
        return error_invalid("Batch sizes of a and b must match, saw: %lld vs. %lld.", (long long)csr_batch_count(a), (long long)batch);
    if ((f->a_transposed ? csr_row_count(a) : csr_col_count(a)) != b->shape.dims[f->b_transposed ? rank - 1 : rank - 2]) {
        Shape shape = shape_of(rank, tensor_i64(a->shape));
        return error_invalid("Inner product dimensions of A and B do not agree. Shapes are: %s vs. %s", shape_text(&shape).text, shape_text(&b->shape).text);
    }
    return NULL;
}

static Error *run_product(KernelContext *k) {
    const Flips *f = k->state;
    const CsrMatrix *a;
    Error *err = kernel_csr(k, 0, k->in[1]->dtype, &a);
    if (!err) err = check_product(f, a, k->in[1]);
    if (err) return err;
    const CsrMath *math = math_of(a->dtype);
    const int rank = csr_rank(a);
    Tensor *b = f->b_transposed ? flipped(k, math, k->in[1], f->b_conjugated) : tensor_ref(k->in[1]), *z = NULL;
    if (!b) return NULL;
    Shape shape = b->shape;
    shape.dims[rank - 2] = f->a_transposed ? csr_col_count(a) : csr_row_count(a);
    z = f->z_transposed ? kernel_scratch(k, a->dtype, &shape) : kernel_output(k, 0, &shape);
    if (z) {
        DenseJob job = {.a = a, .math = math, .product = {shape.dims[rank - 1], f->a_transposed, f->a_conjugated}, .b = b->data, .z = z->data, .row_count = csr_row_count(a)};
        job.b_bytes = (size_t)shape_prod(&b->shape, rank - 2, rank) * dtype_size(a->dtype);
        job.z_bytes = (size_t)shape_prod(&shape, rank - 2, rank) * dtype_size(a->dtype);
        if (f->a_transposed) memset(z->data, 0, tensor_bytes(z));
        int64_t work = a->cols->count / (a->rows->count + 1) * job.product.width + 1;
        threadpool_parallel_for(k->pool, csr_batch_count(a) * (f->a_transposed ? 1 : job.row_count), f->a_transposed ? 1 : 65536 / work + 1, dense_range, &job);
        if (f->z_conjugated) math->conjugate(z->data, z->count);
    }
    tensor_unref(b);
    if (z && f->z_transposed) {
        Tensor *turned = flipped(k, math, z, false);
        tensor_unref(z);
        if (turned) kernel_set_output(k, 0, turned);
    }
    return NULL;
}

/* The matrices of a batch, transposed. */
static Error *transposed(const CsrMatrix *a, bool conjugate, CsrMatrix **out) {
    Shape shape = shape_of(csr_rank(a), tensor_i64(a->shape));
    shape.dims[shape.rank - 1] = csr_row_count(a);
    shape.dims[shape.rank - 2] = csr_col_count(a);
    CsrMatrix *z = NULL;
    Error *err = csr_new(a->dtype, &shape, a->cols->count, &z);
    if (err) return err;
    memcpy(z->batches->data, a->batches->data, tensor_bytes(a->batches));
    for (int64_t b = 0; b < csr_batch_count(a); b++) {
        CsrView from = csr_view(a, b);
        int64_t at = tensor_i32(a->batches)[b];
        math_of(a->dtype)->transpose(&from, conjugate, tensor_i32(z->rows) + b * (from.col_count + 1), tensor_i32(z->cols) + at,
                                     (char *)z->values->data + (size_t)at * dtype_size(a->dtype));
    }
    *out = z;
    return NULL;
}

static Error *transpose_init(const Node *node, void *state) {
    Flips *f = state;
    Error *err = node_attr_bool(node, "conjugate", &f->a_conjugated);
    return err;
}

static DataType type_of(const KernelContext *k) {
    DataType t = DT_INVALID;
    error_free(node_attr_type(k->node, "type", &t));
    return t;
}

static Error *run_transpose(KernelContext *k) {
    const CsrMatrix *a;
    CsrMatrix *z = NULL;
    Error *err = kernel_csr(k, 0, type_of(k), &a);
    if (!err) err = transposed(a, ((const Flips *)k->state)->a_conjugated, &z);
    if (!err) kernel_set_csr(k, 0, z);
    return err;
}

/* Counts the entries of each row of all products, then fills them in. */
static Error *multiply_sparse(const CsrMatrix *a, const CsrMatrix *b, CsrMatrix **out) {
    const int64_t batch = csr_batch_count(a), rows = csr_row_count(a), cols = csr_col_count(b);
    const CsrMath *math = math_of(a->dtype);
    Shape shape = shape_of(csr_rank(a), tensor_i64(a->shape));
    shape.dims[shape.rank - 1] = cols;
    CsrMatrix *counts = NULL, *z = NULL;
    Tensor *seen = NULL, *sums = NULL;
    Shape line = shape_vector(cols);
    Error *err = csr_new(a->dtype, &shape, 0, &counts);
    if (!err) err = tensor_new(DT_INT64, &line, &seen);
    if (!err) err = tensor_new(a->dtype, &line, &sums);
    if (err) goto out;
    for (int64_t c = 0; c < cols; c++) tensor_i64(seen)[c] = -1;
    int64_t total = 0;
    for (int64_t i = 0; i < batch; i++) {
        CsrView x = csr_view(a, i), y = csr_view(b, i);
        int32_t *own = tensor_i32(counts->rows) + i * (rows + 1);
        math->sparse_product(&x, &y, own, NULL, NULL, tensor_i64(seen), i * rows, sums->data);
        int64_t in_all = 0;
        for (int64_t r = 0; r < rows && in_all <= INT32_MAX; r++) {
            in_all += own[r + 1];
            own[r + 1] = (int32_t)in_all;
        }
        total += in_all;
        if (total > INT32_MAX) break;
        tensor_i32(counts->batches)[i + 1] = (int32_t)total;
    }
    err = csr_new(a->dtype, &shape, total, &z);
    if (err) goto out;
    memcpy(z->batches->data, counts->batches->data, tensor_bytes(z->batches));
    memcpy(z->rows->data, counts->rows->data, tensor_bytes(z->rows));
    for (int64_t i = 0; i < batch; i++) {
        CsrView x = csr_view(a, i), y = csr_view(b, i);
        int64_t at = tensor_i32(z->batches)[i];
        math->sparse_product(&x, &y, tensor_i32(z->rows) + i * (rows + 1), tensor_i32(z->cols) + at, (char *)z->values->data + (size_t)at * dtype_size(a->dtype),
                             tensor_i64(seen), (batch + i) * rows, sums->data);
    }
    *out = z;
out:
    if (counts) csr_unref(counts);
    tensor_unref(seen);
    tensor_unref(sums);
    return err;
}

static Error *check_sparse_product(const CsrMatrix *a, const CsrMatrix *b) {
    if (csr_batch_count(a) != csr_batch_count(b))
        return error_invalid("Batch sizes of A and B do not agree.  Batch sizes are: %lld vs. %lld", (long long)csr_batch_count(a), (long long)csr_batch_count(b));
    Shape x = shape_of(csr_rank(a), tensor_i64(a->shape)), y = shape_of(csr_rank(b), tensor_i64(b->shape));
    if (x.rank != y.rank || csr_col_count(a) != csr_row_count(b))
        return error_invalid("Inner product dimensions of A and B do not agree.  Shapes are: %s vs. %s", shape_text(&x).text, shape_text(&y).text);
    return NULL;
}

static Error *run_sparse_product(KernelContext *k) {
    const Flips *f = k->state;
    const CsrMatrix *a, *b;
    CsrMatrix *turned_a = NULL, *turned_b = NULL, *z = NULL;
    Error *err = kernel_csr(k, 0, type_of(k), &a);
    if (!err) err = kernel_csr(k, 1, type_of(k), &b);
    if (!err && f->a_transposed) err = transposed(a, f->a_conjugated, &turned_a);
    if (!err && f->b_transposed) err = transposed(b, f->b_conjugated, &turned_b);
    if (!err) err = check_sparse_product(turned_a ? turned_a : a, turned_b ? turned_b : b);
    if (!err) err = multiply_sparse(turned_a ? turned_a : a, turned_b ? turned_b : b, &z);
    if (turned_a) csr_unref(turned_a);
    if (turned_b) csr_unref(turned_b);
    if (!err) kernel_set_csr(k, 0, z);
    return err;
}

#define BY_TYPE(f) {[DT_FLOAT] = f, [DT_DOUBLE] = f, [DT_COMPLEX64] = f, [DT_COMPLEX128] = f}

const KernelDef csr_ops_cpu[] = {
    {"SparseTensorToCSRSparseMatrix", .by_type = BY_TYPE(run_from_sparse)},
    {"DenseToCSRSparseMatrix", .by_type = BY_TYPE(run_from_dense)},
    {"CSRSparseMatrixToDense", .by_type = BY_TYPE(run_to_dense), .type_attr = "type"},
    {"CSRSparseMatrixToSparseTensor", .by_type = BY_TYPE(run_to_sparse), .type_attr = "type"},
    {"CSRSparseMatrixComponents", .by_type = BY_TYPE(run_components), .type_attr = "type"},
    {"SparseMatrixNNZ", .run = run_nnz},
    {"SparseMatrixMatMul", .by_type = BY_TYPE(run_product), .state_size = sizeof(Flips), .init = product_init, .flags = KERNEL_EXPENSIVE},
    {"SparseMatrixSparseMatMul", .by_type = BY_TYPE(run_sparse_product), .type_attr = "type", .state_size = sizeof(Flips), .init = product_init, .flags = KERNEL_EXPENSIVE},
    {"SparseMatrixTranspose", .by_type = BY_TYPE(run_transpose), .type_attr = "type", .state_size = sizeof(Flips), .init = transpose_init},
    {0},
};
