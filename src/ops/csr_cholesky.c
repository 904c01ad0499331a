/* csr_cholesky.c: SparseMatrixSparseCholesky, lower triangular factors of sparse matrices, rows and columns taken in a given order. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/csr_matrix.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef csr_cholesky_ops[] = {
    {"SparseMatrixSparseCholesky", "input: variant, permutation: int32 -> output: variant", "type: {float, double, complex64, complex128}", 0},
    {0},
};

/* An entry of the lower triangle in the new order, in the row it belongs to; flipped: it came from above the diagonal of that. */
typedef struct CholeskyEntry {
    int32_t column, at;
    bool flipped;
} CholeskyEntry;
typedef struct CholeskyPlan {
    int64_t *first; /* of each row, and one more */
    CholeskyEntry *entries;
} CholeskyPlan;

#define CONJ(v) (v)
#define REAL(v) (v)
#define S float
#define ROOT(v) sqrtf(v)
#define NAME(f) f##_f32
#include "ops/csr_factor.inc"
#undef S
#undef NAME
#undef ROOT
#define S double
#define ROOT(v) sqrt(v)
#define NAME(f) f##_f64
#include "ops/csr_factor.inc"
#undef S
#undef NAME
#undef CONJ
#undef REAL
#define CONJ(v) conj(v)
#define REAL(v) creal(v)
#define S double _Complex
#define NAME(f) f##_c128
#include "ops/csr_factor.inc"
#undef S
#undef NAME
#undef ROOT
#undef CONJ
#undef REAL
#define CONJ(v) conjf(v)
#define REAL(v) crealf(v)
#define ROOT(v) sqrtf(v)
#define S float _Complex
#define NAME(f) f##_c64
#include "ops/csr_factor.inc"

/* The place of each row in the order; false when it names one twice. */
static bool places_of(const int32_t *order, int64_t n, int32_t *places) {
    for (int64_t i = 0; i < n; i++) places[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        if (order[i] < 0 || order[i] >= n || places[order[i]] >= 0) return false;
        places[order[i]] = (int32_t)i;
    }
    return true;
}

/* Sorts the lower triangle into the rows of the new order. */
static void plan_init(CholeskyPlan *p, const CsrView *a, const int32_t *places) {
    p->first = xcalloc((size_t)a->row_count + 2, sizeof *p->first);
    p->entries = xmalloc((size_t)a->nnz * sizeof *p->entries + 1);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t r = 0; r < a->row_count; r++)
            for (int32_t i = a->rows[r]; i < a->rows[r + 1]; i++) {
                if (a->cols[i] > r) continue;
                int32_t row = places[r], col = places[a->cols[i]];
                bool flipped = row < col;
                if (pass == 0) p->first[(flipped ? col : row) + 2]++;
                else p->entries[p->first[(flipped ? col : row) + 1]++] = (CholeskyEntry){flipped ? row : col, i, flipped};
            }
        for (int64_t r = 0; pass == 0 && r < a->row_count; r++) p->first[r + 2] += p->first[r + 1];
    }
}

static void plan_clear(CholeskyPlan *p) {
    free(p->first);
    free(p->entries);
}

static int compare_columns(const void *a, const void *b) {
    return *(const int32_t *)a < *(const int32_t *)b ? -1 : *(const int32_t *)a > *(const int32_t *)b;
}

/* Which entries the factor has: row k has those on the way up the elimination tree from each entry of A, and the diagonal. Row pointers, and columns into a list that
 * grows; false when there are more than int32 counts. */
static bool factor_pattern(const CholeskyPlan *p, int64_t n, int32_t *rows, int32_t **cols, size_t *capacity) {
    int32_t *parent = xmalloc((size_t)n * sizeof *parent + 1), *seen = xmalloc((size_t)n * sizeof *seen + 1);
    size_t count = 0;
    bool ok = true;
    for (int64_t k = 0; ok && k < n; k++) {
        parent[k] = -1;
        seen[k] = (int32_t)k;
        for (int64_t i = p->first[k]; i < p->first[k + 1]; i++)
            for (int32_t at = p->entries[i].column; seen[at] != k; at = parent[at]) {
                seen[at] = (int32_t)k;
                if (parent[at] < 0) parent[at] = (int32_t)k;
                *cols = vec_reserve(*cols, capacity, count + 2, sizeof **cols);
                (*cols)[count++] = at;
            }
        *cols = vec_reserve(*cols, capacity, count + 1, sizeof **cols);
        (*cols)[count++] = (int32_t)k;
        ok = count <= INT32_MAX;
        rows[k + 1] = ok ? (int32_t)count : 0;
        qsort(*cols + rows[k], (size_t)(rows[k + 1] - rows[k]), sizeof **cols, compare_columns);
    }
    free(parent);
    free(seen);
    return ok;
}

/* What one matrix of a batch becomes. */
typedef struct Factor {
    int32_t *rows, *cols;
    void *values;
} Factor;

static Error *factor_one(const CsrMatrix *m, int64_t batch, const int32_t *order, Factor *out) {
    CsrView a = csr_view(m, batch);
    CholeskyPlan plan = {0};
    size_t capacity = 0;
    int32_t *places = xmalloc((size_t)a.row_count * sizeof *places + 1);
    bool ok = places_of(order, a.row_count, places);
    if (!ok) {
        free(places);
        return error_invalid("permutation of batch %lld does not name every row once", (long long)batch);
    }
    plan_init(&plan, &a, places);
    out->rows = xcalloc((size_t)a.row_count + 1, sizeof *out->rows);
    ok = factor_pattern(&plan, a.row_count, out->rows, &out->cols, &capacity);
    if (ok) {
        out->values = xmalloc((size_t)out->rows[a.row_count] * dtype_size(m->dtype) + 1);
        ok = (m->dtype == DT_FLOAT    ? factor_f32
              : m->dtype == DT_DOUBLE ? factor_f64
              : m->dtype == DT_COMPLEX64 ? factor_c64
                                         : factor_c128)(&plan, &a, out->rows, out->cols, out->values);
    }
    plan_clear(&plan);
    free(places);
    return ok ? NULL
              : error_invalid("Sparse Cholesky factorization failed for batch index %lld. The input might not be valid.", (long long)batch);
}

static Error *join(const CsrMatrix *like, const Factor *factors, CsrMatrix **out) {
    const int64_t batch = csr_batch_count(like), n = csr_row_count(like);
    const size_t size = dtype_size(like->dtype);
    Shape shape = shape_of(csr_rank(like), tensor_i64(like->shape));
    int64_t total = 0;
    for (int64_t b = 0; b < batch; b++) total += factors[b].rows[n];
    CsrMatrix *z = NULL;
    Error *err = csr_new(like->dtype, &shape, total, &z);
    if (err) return err;
    int32_t at = 0;
    for (int64_t b = 0; b < batch; b++) {
        const Factor *f = &factors[b];
        memcpy(tensor_i32(z->rows) + b * (n + 1), f->rows, (size_t)(n + 1) * sizeof(int32_t));
        if (f->rows[n]) {
            memcpy(tensor_i32(z->cols) + at, f->cols, (size_t)f->rows[n] * sizeof(int32_t));
            memcpy((char *)z->values->data + (size_t)at * size, f->values, (size_t)f->rows[n] * size);
        }
        at += f->rows[n];
        tensor_i32(z->batches)[b + 1] = at;
    }
    *out = z;
    return NULL;
}

static Error *check_inputs(const CsrMatrix *m, const Tensor *order) {
    const int rank = csr_rank(m);
    if (csr_row_count(m) != csr_col_count(m))
        return error_invalid("sparse matrix must be square; got: %lld != %lld", (long long)csr_row_count(m), (long long)csr_col_count(m));
    if (order->shape.rank + 1 != rank)
        return error_invalid("sparse matrix must have the same rank as permutation; got: %d != %d + 1.", rank, order->shape.rank);
    if (order->shape.dims[rank - 2] != csr_row_count(m))
        return error_invalid("permutation must have the same number of elements in each batch as the number of rows in sparse matrix; got: %lld != %lld",
                             (long long)order->shape.dims[rank - 2], (long long)csr_row_count(m));
    if (rank == 3 && order->shape.dims[0] != csr_batch_count(m))
        return error_invalid("permutation must have the same batch size as sparse matrix; got: %lld != %lld", (long long)order->shape.dims[0],
                             (long long)csr_batch_count(m));
    return NULL;
}

static Error *run(KernelContext *k) {
    const CsrMatrix *m;
    CsrMatrix *z = NULL;
    DataType type = DT_INVALID;
    Error *err = node_attr_type(k->node, "type", &type);
    if (!err) err = kernel_csr(k, 0, type, &m);
    if (!err) err = check_inputs(m, k->in[1]);
    if (err) return err;
    const int64_t batch = csr_batch_count(m);
    Factor *factors = xcalloc((size_t)batch + 1, sizeof *factors);
    for (int64_t b = 0; !err && b < batch; b++) err = factor_one(m, b, tensor_i32(k->in[1]) + b * csr_row_count(m), &factors[b]);
    if (!err) err = join(m, factors, &z);
    for (int64_t b = 0; b < batch; b++) {
        free(factors[b].rows);
        free(factors[b].cols);
        free(factors[b].values);
    }
    free(factors);
    if (!err) kernel_set_csr(k, 0, z);
    return err;
}

const KernelDef csr_cholesky_cpu[] = {
    {"SparseMatrixSparseCholesky", .by_type = {[DT_FLOAT] = run, [DT_DOUBLE] = run, [DT_COMPLEX64] = run, [DT_COMPLEX128] = run}, .type_attr = "type", .flags = KERNEL_EXPENSIVE},
    {0},
};
