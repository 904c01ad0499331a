/* csr_cholesky.c: SparseMatrixSparseCholesky, lower triangular factors of sparse matrices, rows and columns taken in a given order;
 * SparseMatrixOrderingAMD, an order that keeps them sparse. */
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
    {"SparseMatrixOrderingAMD", "input: variant -> output: int32", "", 0},
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

/* ---- An order by least degree: the row with the fewest others is taken, which then all have each other ---- */

typedef struct Neighbours {
    int32_t *items;
    size_t count, capacity;
} Neighbours;

/* A heap of rows by degree, then number; a row may be in it with degrees it had before. */
typedef struct DegreeHeap {
    struct {
        size_t degree;
        int32_t row;
    } *items;
    size_t count, capacity;
} DegreeHeap;

static bool heap_less(const DegreeHeap *h, size_t a, size_t b) {
    return h->items[a].degree != h->items[b].degree ? h->items[a].degree < h->items[b].degree : h->items[a].row < h->items[b].row;
}

static void heap_swap(DegreeHeap *h, size_t a, size_t b) {
    size_t degree = h->items[a].degree;
    int32_t row = h->items[a].row;
    h->items[a] = h->items[b];
    h->items[b].degree = degree;
    h->items[b].row = row;
}

static void heap_add(DegreeHeap *h, size_t degree, int32_t row) {
    h->items = vec_reserve(h->items, &h->capacity, h->count + 1, sizeof *h->items);
    h->items[h->count].degree = degree;
    h->items[h->count].row = row;
    for (size_t i = h->count++; i > 0 && heap_less(h, i, (i - 1) / 2); i = (i - 1) / 2) heap_swap(h, i, (i - 1) / 2);
}

static void heap_drop(DegreeHeap *h) {
    heap_swap(h, 0, --h->count);
    for (size_t i = 0;;) {
        size_t least = i, left = 2 * i + 1;
        for (size_t c = left; c < left + 2 && c < h->count; c++)
            if (heap_less(h, c, least)) least = c;
        if (least == i) return;
        heap_swap(h, i, least);
        i = least;
    }
}

static void neighbours_add(Neighbours *n, int32_t row) {
    n->items = vec_reserve(n->items, &n->capacity, n->count + 1, sizeof *n->items);
    n->items[n->count++] = row;
}

/* Row u after v was taken: without it, with all that v had. mark is of as many rows, and not yet `stamp` anywhere. */
static void join_neighbours(Neighbours *all, int32_t u, int32_t v, int32_t *mark, int32_t stamp) {
    size_t kept = 0;
    mark[u] = mark[v] = stamp;
    for (size_t i = 0; i < all[u].count; i++) {
        int32_t w = all[u].items[i];
        if (mark[w] == stamp) continue;
        mark[w] = stamp;
        all[u].items[kept++] = w;
    }
    all[u].count = kept;
    for (size_t i = 0; i < all[v].count; i++)
        if (mark[all[v].items[i]] != stamp) neighbours_add(&all[u], all[v].items[i]);
}

static Neighbours *neighbours_of(const CsrView *m) {
    Neighbours *all = xcalloc((size_t)m->row_count + 1, sizeof *all);
    for (int32_t r = 0; r < m->row_count; r++)
        for (int32_t i = m->rows[r]; i < m->rows[r + 1]; i++) {
            if (m->cols[i] == r) continue;
            neighbours_add(&all[r], m->cols[i]);
            neighbours_add(&all[m->cols[i]], r);
        }
    return all;
}

static void order_rows(const CsrView *m, int32_t *order) {
    Neighbours *all = neighbours_of(m);
    DegreeHeap heap = {0};
    int32_t n = (int32_t)m->row_count, *mark = xcalloc((size_t)n + 1, sizeof *mark), stamp = 0;
    bool *taken = xcalloc((size_t)n + 1, sizeof *taken);
    Neighbours none = {0};
    for (int32_t r = 0; r < n; r++) { /* each neighbour once */
        all[n] = none;
        join_neighbours(all, r, n, mark, ++stamp);
        heap_add(&heap, all[r].count, r);
    }
    for (int32_t at = 0; at < n;) {
        int32_t v = heap.items[0].row;
        bool stale = taken[v] || heap.items[0].degree != all[v].count;
        heap_drop(&heap);
        if (stale) continue;
        taken[v] = true;
        order[at++] = v;
        for (size_t i = 0; i < all[v].count; i++) {
            int32_t u = all[v].items[i];
            join_neighbours(all, u, v, mark, ++stamp);
            heap_add(&heap, all[u].count, u);
        }
    }
    for (int32_t r = 0; r < n; r++) free(all[r].items);
    free(all);
    free(heap.items);
    free(mark);
    free(taken);
}

static Error *run_ordering(KernelContext *k) {
    const CsrMatrix *m = NULL;
    Error *err = kernel_csr(k, 0, DT_INVALID, &m);
    if (err) return err;
    if (csr_row_count(m) != csr_col_count(m))
        return error_invalid("sparse matrix must be square; got: %lld != %lld", (long long)csr_row_count(m), (long long)csr_col_count(m));
    Shape shape = csr_rank(m) == 2 ? shape_vector(csr_row_count(m)) : shape_matrix(csr_batch_count(m), csr_row_count(m));
    Tensor *out = kernel_output(k, 0, &shape);
    for (int64_t b = 0; out && b < csr_batch_count(m); b++) {
        CsrView view = csr_view(m, b);
        order_rows(&view, tensor_i32(out) + b * csr_row_count(m));
    }
    return NULL;
}

const KernelDef csr_cholesky_cpu[] = {
    {"SparseMatrixOrderingAMD", .run = run_ordering, .flags = KERNEL_EXPENSIVE},
    {"SparseMatrixSparseCholesky", .by_type = {[DT_FLOAT] = run, [DT_DOUBLE] = run, [DT_COMPLEX64] = run, [DT_COMPLEX128] = run}, .type_attr = "type", .flags = KERNEL_EXPENSIVE},
    {0},
};
