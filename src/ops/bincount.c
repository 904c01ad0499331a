/* bincount.c: Bincount of dense, sparse and ragged tensors, HistogramFixedWidth: how often each value or range occurs.
 */
#include <math.h>

#include "base/float16.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/sparse_tensor.h"

const OpDef bincount_ops[] = {
    {"Bincount", "arr: int32, size: int32, weights: T -> bins: T", "T: {int32, int64, float, double}", 0},
    {"DenseBincount", "input: Tidx, size: Tidx, weights: T -> output: T",
     "Tidx: {int32, int64}; T: {int32, int64, float, double}; binary_output: bool = false", 0},
    {"SparseBincount", "indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T -> output: T",
     "Tidx: {int32, int64}; T: {int32, int64, float, double}; binary_output: bool = false", 0},
    {"RaggedBincount", "splits: int64, values: Tidx, size: Tidx, weights: T -> output: T",
     "Tidx: {int32, int64}; T: {int32, int64, float, double}; binary_output: bool = false", 0},
    {"HistogramFixedWidth", "values: T, value_range: T, nbins: int32 -> out: dtype",
     "T: {int32, int64, float, double}; dtype: {int32, int64} = int32", 0},
    {0},
};

typedef struct BinState {
    bool binary; /* only whether it occurs */
} BinState;

static Error *dense_init(const Node *node, void *state) {
    return node_attr_bool(node, "binary_output", &((BinState *)state)->binary);
}

/* One row of values into one row of bins. */
typedef struct BinRow {
    const int32_t *narrow; /* or wide: the values */
    const int64_t *wide;
    int64_t count, bins;
    const void *weights; /* NULL: 1 each */
    bool binary;
    void *out;
} BinRow;

static inline int64_t bin_of(const BinRow *r, int64_t i) {
    return r->wide ? r->wide[i] : r->narrow[i];
}

#define S int32_t
#define SUM(a, b) (int32_t)((uint32_t)(a) + (uint32_t)(b))
#define NAME(f) f##_i32
#include "ops/bincount.inc"
#undef S
#undef SUM
#undef NAME
#define S int64_t
#define SUM(a, b) (int64_t)((uint64_t)(a) + (uint64_t)(b))
#define NAME(f) f##_i64
#include "ops/bincount.inc"
#undef S
#undef SUM
#undef NAME
#define SUM(a, b) ((a) + (b))
#define S float
#define NAME(f) f##_f32
#include "ops/bincount.inc"
#undef S
#undef NAME
#define S double
#define NAME(f) f##_f64
#include "ops/bincount.inc"
#undef S
#undef NAME
#undef SUM

/* The first of a row of bins that is below 0, in the words for one row or for several. */
static Error *negative_bin(const Tensor *values, int64_t at, bool matrix) {
    if (!matrix) return error_invalid("Input arr must be non-negative!");
    while (index_at(values, at) >= 0) at++;
    return error_invalid("Input 'in' must be non-negative! Negative input value found: %lld", (long long)index_at(values, at));
}

/* False: a value is negative. */
static bool count_row(const Tensor *values, int64_t from, int64_t n, const Tensor *weights, bool binary, int64_t bins,
                      size_t size, char *out) {
    BinRow r = {.count = n, .bins = bins, .binary = binary, .out = out};
    if (values->dtype == DT_INT64)
        r.wide = tensor_i64(values) + from;
    else
        r.narrow = tensor_i32(values) + from;
    if (weights->count) r.weights = (const char *)weights->data + (size_t)from * size;
    bool (*count)(const BinRow *) = weights->dtype == DT_INT32   ? count_i32
                                    : weights->dtype == DT_INT64 ? count_i64
                                    : weights->dtype == DT_FLOAT ? count_f32
                                                                 : count_f64;
    return count(&r);
}

/* ---- One long row of integers, in parts that have bins of their own ---- */

enum { PARTS = 8, LONG_ROW = 1 << 16 };

typedef struct PartsJob {
    const Tensor *values, *weights;
    int64_t bins;
    size_t size;
    char *counts; /* of each part */
    _Atomic bool is_negative;
} PartsJob;

static void count_parts(void *arg, int64_t begin, int64_t end) {
    PartsJob *job = arg;
    for (int64_t part = begin; part < end; part++) {
        const int64_t n = job->values->count, from = part * n / PARTS;
        char *counts = job->counts + (size_t)(part * job->bins) * job->size;
        if (!count_row(job->values, from, (part + 1) * n / PARTS - from, job->weights, false, job->bins, job->size, counts)) job->is_negative = true;
    }
}

static bool is_long(const Tensor *values, const Tensor *weights, int64_t bins) {
    const bool any_order = weights->dtype == DT_INT32 || weights->dtype == DT_INT64;
    return any_order && values->count >= LONG_ROW && bins <= values->count / (4 * PARTS);
}

static Error *count_long(KernelContext *k, const Tensor *values, const Tensor *weights, int64_t bins, bool matrix, Tensor *out) {
    Shape shape = shape_matrix(PARTS, bins);
    Tensor *counts = kernel_scratch(k, out->dtype, &shape);
    if (!counts) return NULL;
    memset(counts->data, 0, tensor_bytes(counts));
    PartsJob job = {.values = values, .weights = weights, .bins = bins, .size = dtype_size(out->dtype), .counts = counts->data};
    threadpool_parallel_for(k->pool, PARTS, 1, count_parts, &job);
    for (int part = 0; part < PARTS; part++) row_math(out->dtype)->add(out->data, job.counts + (size_t)(part * bins) * job.size, bins);
    tensor_unref(counts);
    return job.is_negative ? negative_bin(values, 0, matrix) : NULL;
}

static Error *bincount(KernelContext *k, bool binary, bool rows_allowed) {
    const Tensor *values = k->in[0], *weights = k->in[2];
    int64_t bins;
    if (rows_allowed && values->shape.rank > 2)
        return error_invalid("Shape must be at most rank 2 but is rank %d", values->shape.rank);
    if (k->in[1]->shape.rank != 0) return error_invalid("Shape must be rank 0 but is rank %d", k->in[1]->shape.rank);
    bins = index_at(k->in[1], 0);
    if (bins < 0 && !rows_allowed) return error_invalid("size (%lld) must be non-negative", (long long)bins);
    if (weights->count != 0 && !shape_eq(&weights->shape, &values->shape))
        return rows_allowed
                   ? error_invalid(
                         "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as "
                         "all weights equal to 1. Received %s",
                         shape_text(&weights->shape).text)
                   : error_invalid("Input indices and weights must have the same size.");
    if (bins < 0) return error_invalid("size (%lld) must be non-negative", (long long)bins);
    bool matrix = rows_allowed && values->shape.rank == 2;
    Shape shape = matrix ? shape_matrix(values->shape.dims[0], bins) : shape_vector(bins);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    memset(out->data, 0, tensor_bytes(out));
    size_t size = dtype_size(out->dtype);
    int64_t rows = matrix ? shape.dims[0] : 1, width = rows > 0 ? values->count / rows : 0;
    if (rows == 1 && !binary && is_long(values, weights, bins)) return count_long(k, values, weights, bins, matrix, out);
    for (int64_t r = 0; r < rows; r++) {
        char *to = (char *)out->data + (size_t)(r * bins) * size;
        if (!count_row(values, r * width, width, weights, binary, bins, size, to)) return negative_bin(values, r * width, matrix);
    }
    return NULL;
}

static Error *run_bincount(KernelContext *k) {
    return bincount(k, false, false);
}

static Error *run_dense_bincount(KernelContext *k) {
    return bincount(k, ((const BinState *)k->state)->binary, true);
}

/* ---- Of sparse and ragged tensors ---- */

/* Zeros: a row of bins for each batch, or bins alone when rows is -1. */
static Tensor *bins_output(KernelContext *k, int64_t rows, int64_t bins) {
    Shape shape = rows >= 0 ? shape_matrix(rows, bins) : shape_vector(bins);
    Tensor *out = kernel_output(k, 0, &shape);
    if (out) memset(out->data, 0, tensor_bytes(out));
    return out;
}

static Error *bin_count(KernelContext *k, int input, int64_t *bins) {
    if (k->in[input]->shape.rank != 0)
        return error_invalid("Shape must be rank 0 but is rank %d", k->in[input]->shape.rank);
    *bins = index_at(k->in[input], 0);
    return *bins < 0 ? error_invalid("size (%lld) must be non-negative", (long long)*bins) : NULL;
}

/* Every value of one row is in bins [0, bins), or is left out. */
static void count_value(char *row, int64_t bin, const Tensor *weights, int64_t i, bool binary, const RowMath *math) {
    size_t size = dtype_size(weights->dtype);
    if (binary)
        memcpy(row + (size_t)bin * size, math->one, size);
    else
        math->add(row + (size_t)bin * size, weights->count ? (const char *)weights->data + (size_t)i * size : math->one,
                  1);
}

static Error *check_sparse(const Tensor *indices, const Tensor *values, const Tensor *shape, const Tensor *weights) {
    if (indices->shape.rank != 2)
        return error_invalid("Sparse indices must be rank 2 but is rank %d", indices->shape.rank);
    if (values->shape.rank != 1)
        return error_invalid("Sparse values must be rank 1 but is rank %d", values->shape.rank);
    if (shape->shape.rank != 1) return error_invalid("Sparse shape must be rank 1 but is rank %d", shape->shape.rank);
    if (indices->shape.dims[0] != values->count)
        return error_invalid("Number of elements in indices (%lld) and values (%lld) do not match",
                             (long long)indices->shape.dims[0], (long long)values->count);
    if (indices->shape.dims[1] != shape->count)
        return error_invalid("Index rank (%lld) and shape rank (%lld) do not match", (long long)indices->shape.dims[1],
                             (long long)shape->count);
    if (shape->count == 0) return error_invalid("Sparse shape must have at least one dimension");
    if (weights->count && weights->count < values->count)
        return error_invalid("Input indices and weights must have the same size.");
    return NULL;
}

static Error *check_inside(const SparseView *s) {
    for (int64_t i = 0; i < s->nnz; i++) {
        const int64_t *index = s->indices + i * s->shape.rank;
        bool inside = true;
        for (int d = 0; d < s->shape.rank; d++) inside = inside && index[d] >= 0 && index[d] < s->shape.dims[d];
        if (inside) continue;
        StrBuf text = {0};
        for (int d = 0; d < s->shape.rank; d++) strbuf_addf(&text, "%s%lld", d ? ", " : "", (long long)index[d]);
        Error *err = error_invalid("Sparse index tuple indices[%lld, :] = [%s] is out of bounds", (long long)i,
                                   strbuf_str(&text).ptr);
        strbuf_clear(&text);
        return err;
    }
    return NULL;
}

static Error *run_sparse_bincount(KernelContext *k) {
    const Tensor *values = k->in[1], *weights = k->in[4];
    bool binary = ((const BinState *)k->state)->binary;
    const RowMath *math = row_math(weights->dtype);
    SparseView s;
    int64_t bins = 0;
    Error *err = bin_count(k, 3, &bins);
    if (!err) err = check_sparse(k->in[0], values, k->in[2], weights);
    if (!err) err = sparse_view("Sparse", k->in[0], values, k->in[2], &s);
    if (!err) err = check_inside(&s);
    if (err) return err;
    bool matrix = s.shape.rank > 1;
    if (!matrix && weights->count && weights->count != values->count)
        return error_invalid("Input indices and weights must have the same size.");
    Tensor *out = bins_output(k, matrix ? s.shape.dims[0] : -1, bins);
    if (!out) return NULL;
    size_t row_bytes = matrix ? (size_t)bins * dtype_size(out->dtype) : 0;
    for (int64_t i = 0; i < s.nnz; i++) {
        int64_t bin = index_at(values, i);
        if (!matrix && bin < 0) return error_invalid("Input arr must be non-negative!");
        if (bin < 0 || bin >= bins) continue;
        count_value((char *)out->data + row_bytes * (size_t)s.indices[i * s.shape.rank], bin, weights, i, binary, math);
    }
    return NULL;
}

static Error *check_ragged(const Tensor *splits, const Tensor *values, const Tensor *weights) {
    int64_t last = splits->count - 1;
    if (last < 0) return error_invalid("Splits must be non-empty");
    if (index_at(splits, 0) != 0)
        return error_invalid("Splits must start with 0, not with %lld", (long long)index_at(splits, 0));
    if (index_at(splits, last) != values->count)
        return error_invalid("Splits must end with the number of values, got %lld instead of %lld",
                             (long long)index_at(splits, last), (long long)values->count);
    if (weights->count && weights->count < values->count)
        return error_invalid("Input indices and weights must have the same size.");
    return NULL;
}

static Error *run_ragged_bincount(KernelContext *k) {
    const Tensor *splits = k->in[0], *values = k->in[1], *weights = k->in[3];
    bool binary = ((const BinState *)k->state)->binary;
    const RowMath *math = row_math(weights->dtype);
    int64_t bins = 0, row = 0;
    Error *err = bin_count(k, 2, &bins);
    if (!err) err = check_ragged(splits, values, weights);
    if (err) return err;
    Tensor *out = bins_output(k, splits->count - 1, bins);
    if (!out) return NULL;
    size_t row_bytes = (size_t)bins * dtype_size(out->dtype);
    for (int64_t i = 0; i < values->count; i++) {
        while (i >= index_at(splits, row)) row++; /* ends: the last split is above every i */
        int64_t bin = index_at(values, i);
        if (bin < 0) return error_invalid("Input must be non-negative");
        if (bin < bins) count_value((char *)out->data + row_bytes * (size_t)(row - 1), bin, weights, i, binary, math);
    }
    return NULL;
}

/* ---- Histograms ---- */

static double number_at(const Tensor *t, int64_t i) {
    switch (t->dtype) {
        case DT_FLOAT:
            return tensor_f32(t)[i];
        case DT_DOUBLE:
            return tensor_f64(t)[i];
        default:
            return (double)index_at(t, i);
    }
}

enum { BLOCK = 512 };

/* Values of the types that a histogram takes. */
static void numbers_at(const Tensor *t, int64_t start, int64_t n, double *to) {
    switch (t->dtype) {
        case DT_INT32:
            for (int64_t i = 0; i < n; i++) to[i] = tensor_i32(t)[start + i];
            break;
        case DT_INT64:
            for (int64_t i = 0; i < n; i++) to[i] = (double)tensor_i64(t)[start + i];
            break;
        case DT_FLOAT:
            for (int64_t i = 0; i < n; i++) to[i] = (double)tensor_f32(t)[start + i];
            break;
        default:
            memcpy(to, tensor_f64(t) + start, (size_t)n * sizeof *to);
    }
}

static Error *run_histogram(KernelContext *k) {
    const Tensor *values = k->in[0], *range = k->in[1];
    if (range->shape.rank != 1) return error_invalid("value_range should be a vector.");
    if (range->count != 2) return error_invalid("value_range should be a vector of 2 elements.");
    if (k->in[2]->shape.rank != 0) return error_invalid("nbins should be a scalar.");
    double low = number_at(range, 0), high = number_at(range, 1);
    int64_t bins = index_at(k->in[2], 0);
    if (!(low < high))
        return error_invalid("value_range should satisfy value_range[0] < value_range[1], but got '[%g, %g]'", low,
                             high);
    if (bins <= 0) return error_invalid("nbins should be a positive number, but got '%lld'", (long long)bins);
    Shape shape = shape_vector(bins);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    memset(out->data, 0, tensor_bytes(out));
    double step = (high - low) / (double)bins, block[BLOCK];
    for (int64_t start = 0; start < values->count; start += BLOCK) {
        const int64_t n = values->count - start < BLOCK ? values->count - start : BLOCK;
        numbers_at(values, start, n, block);
        for (int64_t i = 0; i < n; i++) {
            const double at = (block[i] - low) / step;
            if (isnan(at)) return error_invalid("Histogram values must not contain NaN");
            const int64_t bin = at > 0 ? (at < (double)(bins - 1) ? (int64_t)at : bins - 1) : 0;
            if (out->dtype == DT_INT64) {
                tensor_i64(out)[bin]++;
            } else {
                tensor_i32(out)[bin]++;
            }
        }
    }
    return NULL;
}

const KernelDef bincount_cpu[] = {
    {"Bincount", .run = run_bincount},
    {"DenseBincount", .run = run_dense_bincount, .state_size = sizeof(BinState), .init = dense_init},
    {"SparseBincount", .run = run_sparse_bincount, .state_size = sizeof(BinState), .init = dense_init},
    {"RaggedBincount", .run = run_ragged_bincount, .state_size = sizeof(BinState), .init = dense_init},
    {"HistogramFixedWidth", .run = run_histogram},
    {0},
};
