/* ragged.c: RaggedRange, RaggedGather, and ragged tensors as sparse and as dense ones.

   A ragged tensor comes as its splits, outermost first, and its values: row i of a level is [splits[i], splits[i + 1])
   of the next. */
#include <math.h>
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef ragged_ops[] = {
    {"RaggedRange", "starts: T, limits: T, deltas: T -> rt_nested_splits: Tsplits, rt_dense_values: T",
     "T: {bfloat16, float, double, int32, int64} = int32; Tsplits: {int32, int64} = int64", 0},
    {"RaggedGather",
     "params_nested_splits: PARAMS_RAGGED_RANK * Tsplits, params_dense_values: Tvalues, indices: Tindices -> "
     "output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, output_dense_values: Tvalues",
     "Tvalues: type; Tindices: {int32, int64}; Tsplits: {int32, int64} = int64; PARAMS_RAGGED_RANK: int >= 1; "
     "OUTPUT_RAGGED_RANK: int >= 0",
     0},
    {"RaggedTensorToSparse",
     "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T -> sparse_indices: int64, sparse_values: T, "
     "sparse_dense_shape: int64",
     "RAGGED_RANK: int >= 1; T: type; Tsplits: {int32, int64} = int64", 0},
    {0},
};

/* ---- Splits ---- */

/* A vector that starts with 0, does not fall, and ends with `rows`. */
static Error *check_splits(const Tensor *splits, int level, int64_t rows) {
    if (splits->count == 0) return error_invalid("ragged splits may not be empty.");
    if (splits->shape.rank != 1)
        return error_invalid("Ragged splits %d must be a vector, not of shape %s", level, shape_text(&splits->shape).text);
    if (index_at(splits, 0) != 0) return error_invalid("First value of ragged splits must be 0.");
    for (int64_t i = 1; i < splits->count; i++)
        if (index_at(splits, i) < index_at(splits, i - 1))
            return error_invalid("Ragged splits should be non decreasing, but we got %lld followed by %lld", (long long)index_at(splits, i - 1),
                                 (long long)index_at(splits, i));
    if (index_at(splits, splits->count - 1) != rows)
        return error_invalid("Final value of ragged splits must match the length the corresponding ragged values.");
    return NULL;
}

/* What rows can be taken by: a vector that does not fall and stays within `rows`. */
static Error *check_places(const Tensor *splits, int level, int64_t rows) {
    if (splits->shape.rank != 1 || splits->count == 0)
        return error_invalid("Ragged splits %d must be a vector with at least one element, not of shape %s", level,
                             shape_text(&splits->shape).text);
    if (index_at(splits, 0) < 0) return error_invalid("Ragged splits must be non-negative");
    if (index_at(splits, splits->count - 1) > rows) return error_invalid("Ragged splits must not point past values");
    for (int64_t i = 1; i < splits->count; i++)
        if (index_at(splits, i) < index_at(splits, i - 1)) return error_invalid("Ragged splits must be sorted");
    return NULL;
}

/* All levels, and the values below them. */
static Error *check_ragged(Tensor *const *splits, int rank, const Tensor *values, Error *(*check)(const Tensor *, int, int64_t)) {
    if (values->shape.rank < 1) return error_invalid("Ragged values must be a vector at least");
    for (int i = 0; i < rank; i++) {
        int64_t below = i + 1 < rank ? splits[i + 1]->count - 1 : values->shape.dims[0];
        Error *err = check(splits[i], i, below);
        if (err) return err;
    }
    return NULL;
}

/* ---- RaggedRange ---- */

static double number_at(const Tensor *t, int64_t i) {
    i = t->shape.rank ? i : 0;
    switch (t->dtype) {
        case DT_DOUBLE:
            return tensor_f64(t)[i];
        case DT_FLOAT:
            return tensor_f32(t)[i];
        case DT_BFLOAT16:
            return bfloat16_to_float(((const uint16_t *)t->data)[i]);
        default:
            return (double)index_at(t, i);
    }
}

/* How many numbers there are from start to limit; negative when they cannot be counted. */
static int64_t range_size(const KernelContext *k, int64_t i) {
    if (k->in[0]->dtype == DT_INT32 || k->in[0]->dtype == DT_INT64) {
        __int128 start = index_at(k->in[0], k->in[0]->shape.rank ? i : 0);
        __int128 limit = index_at(k->in[1], k->in[1]->shape.rank ? i : 0);
        __int128 delta = index_at(k->in[2], k->in[2]->shape.rank ? i : 0);
        if (delta == 0) return -1;
        __int128 n = delta > 0 ? (limit - start + delta - 1) / delta : (start - limit - delta - 1) / -delta;
        if (delta > 0 ? limit <= start : limit >= start) n = 0;
        return n > INT64_MAX ? -2 : (int64_t)n;
    }
    double start = number_at(k->in[0], i), limit = number_at(k->in[1], i), delta = number_at(k->in[2], i);
    if (delta == 0) return -1;
    double n = ceil((limit - start) / delta);
    if (!(n > 0)) return n <= 0 ? 0 : -2;
    return n < 9e18 ? (int64_t)n : -2;
}

static void put_range(const KernelContext *k, int64_t row, int64_t n, Tensor *out, int64_t at) {
    bool whole = out->dtype == DT_INT32 || out->dtype == DT_INT64;
    uint64_t start = whole ? (uint64_t)index_at(k->in[0], k->in[0]->shape.rank ? row : 0) : 0;
    uint64_t delta = whole ? (uint64_t)index_at(k->in[2], k->in[2]->shape.rank ? row : 0) : 0;
    double from = number_at(k->in[0], row), by = number_at(k->in[2], row);
    float f = (float)from;
    for (int64_t i = 0; i < n; i++) {
        if (whole)
            index_put(out, at + i, (int64_t)(start + delta * (uint64_t)i));
        else if (out->dtype == DT_DOUBLE)
            tensor_f64(out)[at + i] = from, from += by;
        else if (out->dtype == DT_FLOAT)
            tensor_f32(out)[at + i] = f, f += (float)by;
        else
            f = bfloat16_to_float(((uint16_t *)out->data)[at + i] = float_to_bfloat16(f)) + (float)by;
    }
}

static Error *run_range(KernelContext *k) {
    static const char *const names[] = {"starts", "limits", "deltas"};
    int64_t rows = 1, total = 0;
    for (int i = 0, seen = -1; i < 3; i++) {
        const Shape *s = &k->in[i]->shape;
        if (s->rank > 1) return error_invalid("%s must be a scalar or vector", names[i]);
        if (s->rank == 0) continue;
        if (seen >= 0 && s->dims[0] != rows)
            return error_invalid("starts, limits, and deltas must have the same shape");
        rows = s->dims[0];
        seen = i;
    }
    Shape shape = shape_vector(rows + 1);
    Tensor *splits = kernel_output(k, 0, &shape);
    if (!splits) return NULL;
    index_put(splits, 0, 0);
    int64_t limit = splits->dtype == DT_INT32 ? INT32_MAX : INT64_MAX;
    for (int64_t i = 0; i < rows; i++) {
        int64_t n = range_size(k, i);
        if (n == -1) return error_invalid("Requires delta != 0");
        if (n < 0 || n > limit) return error_invalid("Requires ((limit - start) / delta) <= %lld", (long long)limit);
        if (n > limit - total)
            return error_invalid("The total range size overflowed. Consider using int64 instead of int32 for row_splits_dtype.");
        total += n;
        index_put(splits, i + 1, total);
    }
    shape = shape_vector(total);
    Tensor *out = kernel_output(k, 1, &shape);
    for (int64_t i = 0; out && i < rows; i++)
        put_range(k, i, index_at(splits, i + 1) - index_at(splits, i), out, index_at(splits, i));
    return NULL;
}

/* ---- RaggedGather ---- */

/* A piece of one level: rows [from, to). */
typedef struct Piece {
    int64_t from, to;
} Piece;

/* The splits of the dimensions that the indices themselves have, but for the last. */
static Error *put_index_splits(KernelContext *k, const Tensor *indices) {
    int64_t rows = 1;
    for (int d = 0; d + 1 < indices->shape.rank; d++) {
        rows *= indices->shape.dims[d];
        Shape shape = shape_vector(rows + 1);
        Tensor *splits = kernel_output(k, d, &shape);
        if (!splits) return NULL;
        for (int64_t i = 0; i <= rows; i++) index_put(splits, i, i * indices->shape.dims[d + 1]);
    }
    return NULL;
}

/* The rows of one level that the pieces name, as new splits; the pieces become those of the next level. */
static bool gather_level(KernelContext *k, const Tensor *splits, Piece *pieces, int64_t count, int out_index) {
    int64_t rows = 0, at = 0, total = 0;
    for (int64_t i = 0; i < count; i++) rows += pieces[i].to - pieces[i].from;
    Shape shape = shape_vector(rows + 1);
    Tensor *out = kernel_output(k, out_index, &shape);
    if (!out) return false;
    index_put(out, 0, 0);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t row = pieces[i].from; row < pieces[i].to; row++) {
            total += index_at(splits, row + 1) - index_at(splits, row);
            index_put(out, ++at, total);
        }
        pieces[i] = (Piece){index_at(splits, pieces[i].from), index_at(splits, pieces[i].to)};
    }
    return true;
}

static void gather_values(KernelContext *k, const Tensor *values, const Piece *pieces, int64_t count) {
    Shape shape = values->shape;
    shape.dims[0] = 0;
    for (int64_t i = 0; i < count; i++) shape.dims[0] += pieces[i].to - pieces[i].from;
    Tensor *out = kernel_output(k, k->output_count - 1, &shape);
    if (!out) return;
    ElementKind kind = element_kind(values->dtype);
    int64_t width = shape_prod(&shape, 1, shape.rank), at = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t n = (pieces[i].to - pieces[i].from) * width;
        copy_elements(kind, (char *)out->data + (size_t)at * kind.size,
                      (const char *)values->data + (size_t)(pieces[i].from * width) * kind.size, n);
        at += n;
    }
}

static Error *run_gather(KernelContext *k) {
    int rank = k->input_count - 2;
    const Tensor *values = k->in[rank], *indices = k->in[rank + 1];
    Error *err = check_ragged(k->in, rank, values, check_places);
    if (err) return err;
    if (indices->shape.rank - 1 + rank != k->output_count - 1)
        return error_invalid("Indices of rank %d and %d levels of splits do not make %d levels", indices->shape.rank,
                             rank, k->output_count - 1);
    int64_t rows = k->in[0]->count - 1;
    Piece *pieces = xcalloc((size_t)indices->count + 1, sizeof *pieces);
    for (int64_t i = 0; !err && i < indices->count; i++) {
        int64_t row = index_at(indices, i);
        if (row < 0 || row >= rows) err = bad_index("indices", indices, i, row, rows);
        if (!err) pieces[i] = (Piece){row, row + 1};
    }
    if (!err) err = put_index_splits(k, indices);
    bool ok = !err && !k->error;
    int first = indices->shape.rank - 1; /* of the outputs: -1 for one row, which loses its own level */
    for (int i = 0; ok && i < rank; i++) {
        if (first + i >= 0) {
            ok = gather_level(k, k->in[i], pieces, indices->count, first + i);
        } else {
            for (int64_t j = 0; j < indices->count; j++)
                pieces[j] = (Piece){index_at(k->in[i], pieces[j].from), index_at(k->in[i], pieces[j].to)};
        }
    }
    if (ok) gather_values(k, values, pieces, indices->count);
    free(pieces);
    return err;
}

/* ---- RaggedTensorToSparse ---- */

/* The longest row of a level. */
static int64_t longest(const Tensor *splits) {
    int64_t most = 0;
    for (int64_t i = 1; i < splits->count; i++) {
        int64_t n = index_at(splits, i) - index_at(splits, i - 1);
        most = n > most ? n : most;
    }
    return most;
}

/* Where row `row` of the innermost level lies: at[level] steps through the rows of the level above. */
typedef struct Walk {
    Tensor **splits;
    int rank;
    int64_t parent[SHAPE_MAX_RANK]; /* the row of each level that holds the current one */
} Walk;

static void walk_to(Walk *w, int64_t row, int64_t *index) {
    for (int level = w->rank - 1; level >= 0; level--) {
        while (index_at(w->splits[level], w->parent[level] + 1) <= row) w->parent[level]++;
        index[level + 1] = row - index_at(w->splits[level], w->parent[level]);
        row = w->parent[level];
    }
    index[0] = row;
}

static Error *run_to_sparse(KernelContext *k) {
    int rank = k->input_count - 1;
    const Tensor *values = k->in[rank];
    Error *err = check_ragged(k->in, rank, values, check_splits);
    if (err) return err;
    int dims = rank + values->shape.rank;
    if (dims > SHAPE_MAX_RANK) return error_invalid("The ragged tensor has more than %d dimensions", SHAPE_MAX_RANK);
    Shape shape = shape_matrix(values->count, dims), vector = shape_vector(values->count),
          of_shape = shape_vector(dims);
    Tensor *indices = kernel_output(k, 0, &shape), *out = kernel_output(k, 1, &vector);
    Tensor *dense = kernel_output(k, 2, &of_shape);
    if (!indices || !out || !dense) return NULL;
    ElementKind kind = element_kind(values->dtype);
    copy_elements(kind, out->data, values->data, values->count);
    int64_t *d = tensor_i64(dense), *to = tensor_i64(indices);
    d[0] = k->in[0]->count - 1;
    for (int i = 0; i < rank; i++) d[i + 1] = longest(k->in[i]);
    for (int i = 1; i < values->shape.rank; i++) d[rank + i] = values->shape.dims[i];
    Walk walk = {.splits = k->in, .rank = rank};
    int64_t width = shape_prod(&values->shape, 1, values->shape.rank);
    for (int64_t i = 0; i < values->count; i++, to += dims) {
        walk_to(&walk, i / width, to);
        int64_t rest = i % width;
        for (int j = values->shape.rank - 1; j >= 1; rest /= values->shape.dims[j--])
            to[rank + j] = rest % values->shape.dims[j];
    }
    return NULL;
}

const KernelDef ragged_cpu[] = {
    {"RaggedRange", .run = run_range},
    {"RaggedGather", .run = run_gather},
    {"RaggedTensorToSparse", .run = run_to_sparse},
    {0},
};
