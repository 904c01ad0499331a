/* sparse_cross.c: crosses of feature columns, sparse, dense and ragged ones, as joined strings or as hashes of all combinations in a row. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fingerprint.h"
#include "base/memory.h"
#include "ops/op_list.h"
#include "ops/sparse_tensor.h"
#include "tensor/print.h"

const OpDef sparse_cross_ops[] = {
    {"SparseCross",
     "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types -> output_indices: "
     "int64, output_values: out_type, output_shape: int64",
     "N: int >= 0; hashed_output: bool; num_buckets: int >= 0; hash_key: int; sparse_types: list({int64, string}) "
     ">= 0; dense_types: list({int64, string}) >= 0; out_type: {int64, string}; internal_type: {int64, string}",
     0},
    {"SparseCrossV2",
     "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types, sep: string -> "
     "output_indices: int64, output_values: string, output_shape: int64",
     "N: int >= 0; sparse_types: list({int64, string}) >= 0; dense_types: list({int64, string}) >= 0", 0},
    {"SparseCrossHashed",
     "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types, num_buckets: int64, "
     "strong_hash: bool, salt: int64 -> output_indices: int64, output_values: int64, output_shape: int64",
     "N: int >= 0; sparse_types: list({int64, string}) >= 0; dense_types: list({int64, string}) >= 0", 0},
    {"RaggedCross",
     "ragged_values: ragged_values_types, ragged_row_splits: ragged_splits_types, sparse_indices: Nsparse * int64, "
     "sparse_values: sparse_values_types, sparse_shape: Nsparse * int64, dense_inputs: dense_types -> output_values: "
     "out_values_type, output_row_splits: out_row_splits_type",
     "Nsparse: int >= 0; input_order: string; hashed_output: bool; num_buckets: int >= 0; hash_key: int; ragged_values_types: "
     "list({int64, string}) >= 0; ragged_splits_types: list({int32, int64}) >= 0; sparse_values_types: list({int64, string}) "
     ">= 0; dense_types: list({int64, string}) >= 0; out_values_type: {int64, string}; out_row_splits_type: {int32, int64}",
     0},
    {0},
};

typedef struct CrossState {
    int64_t sparse_count;
    int dense_count;
    bool hashed;       /* SparseCross: hash all, or join as strings */
    bool internal_int; /* SparseCross: int64 features are used as they are, strings by their fingerprint; else only strings */
    int64_t buckets, key;
} CrossState;

static Error *cross_init(const Node *node, void *state) {
    CrossState *s = state;
    DataType *types = NULL, *sparse_types = NULL;
    int sparse_type_count = 0;
    Error *err = node_attr_int(node, "N", &s->sparse_count);
    if (!err) err = node_attr_types(node, "sparse_types", &sparse_types, &sparse_type_count);
    if (!err) err = node_attr_types(node, "dense_types", &types, &s->dense_count);
    if (!err && sparse_type_count != s->sparse_count) err = error_invalid("sparse_types must have N elements");
    free(types);
    free(sparse_types);
    return err;
}

static Error *cross_v1_init(const Node *node, void *state) {
    CrossState *s = state;
    DataType out = DT_INVALID, internal = DT_INVALID;
    Error *err = cross_init(node, state);
    if (!err) err = node_attr_bool(node, "hashed_output", &s->hashed);
    if (!err) err = node_attr_int(node, "num_buckets", &s->buckets);
    if (!err) err = node_attr_int(node, "hash_key", &s->key);
    if (!err) err = node_attr_type(node, "out_type", &out);
    if (!err) err = node_attr_type(node, "internal_type", &internal);
    s->internal_int = internal == DT_INT64;
    if (!err && s->hashed != (out == DT_INT64))
        err = error_invalid("hashed_output must be true exactly when out_type is int64");
    return err;
}

enum { MAX_ROWS = 1 << 28 }; /* a peer chooses the shape; far above any batch */

/* One feature column: values of row r are elements [starts[r], starts[r + 1]). */
typedef struct Column {
    const Tensor *values;
    int64_t *starts; /* NULL: dense, `width` in each row */
    int64_t width;
} Column;

typedef struct Cross {
    Column *columns;
    int column_count;
    int64_t rows;
} Cross;

static void cross_clear(Cross *c) {
    for (int i = 0; c->columns && i < c->column_count; i++) free(c->columns[i].starts);
    free(c->columns);
}

static int64_t first_of(const Column *c, int64_t row) {
    return c->starts ? c->starts[row] : row * c->width;
}
static int64_t count_of(const Column *c, int64_t row) {
    return c->starts ? c->starts[row + 1] - c->starts[row] : c->width;
}

static Error *sparse_column(const Cross *c, const SparseView *v, int at, Column *out) {
    if (v->shape.rank != 2)
        return error_invalid("Expected D2 of index to be 2 got %d at position %d", v->shape.rank, at);
    if (v->shape.dims[0] != c->rows)
        return error_invalid("Expected batch size %lld got %lld at position %d", (long long)c->rows,
                             (long long)v->shape.dims[0], at);
    int64_t *starts = c->rows > MAX_ROWS ? NULL : try_alloc(((size_t)c->rows + 1) * sizeof *starts), before = 0;
    if (!starts) return error_new(CODE_RESOURCE_EXHAUSTED, "Too many rows: %lld", (long long)c->rows);
    memset(starts, 0, ((size_t)c->rows + 1) * sizeof *starts);
    *out = (Column){v->values, starts, 0};
    for (int64_t i = 0; i < v->nnz; i++) {
        int64_t row = v->indices[2 * i];
        if (row < before || row >= c->rows)
            return error_invalid("Row %lld of the indices of input %d is out of order or not in [0, %lld)",
                                 (long long)row, at, (long long)c->rows);
        before = row;
        starts[row + 1]++;
    }
    for (int64_t r = 0; r < c->rows; r++) starts[r + 1] += starts[r];
    return NULL;
}

/* Input i of n and what it has to be: a matrix with as many rows as it has values. */
static Error *check_input(const Tensor *indices, const Tensor *values, const Tensor *shape, int at) {
    Error *err = sparse_check_at(indices, values, shape, at);
    if (err) return err;
    if (values->count != indices->shape.dims[0])
        return error_invalid("Expected size of values to be %lld got %lld at position %d", (long long)indices->shape.dims[0], (long long)values->count, at);
    if (indices->shape.dims[1] != 2) return error_invalid("Expected D2 of index to be 2 got %lld at position %d", (long long)indices->shape.dims[1], at);
    if (shape->count != 2) return error_invalid("shape should imply a 2D tensor, but got %s at position %d", shape_text(&shape->shape).text, at);
    return NULL;
}

/* Inputs: N indices, N values, N shapes, dense ones. */
static Error *cross_read(KernelContext *k, Cross *c) {
    const CrossState *s = k->state;
    int n = (int)s->sparse_count, dense = s->dense_count;
    c->columns = xcalloc((size_t)(n + dense) + 1, sizeof *c->columns);
    c->column_count = n + dense;
    c->rows = -1;
    Error *err = NULL;
    for (int i = 0; i < n && !err; i++) {
        SparseView v;
        err = check_input(k->in[i], k->in[n + i], k->in[2 * n + i], i);
        if (!err) err = sparse_view("Input", k->in[i], k->in[n + i], k->in[2 * n + i], &v);
        if (!err && c->rows < 0 && v.shape.rank) c->rows = v.shape.dims[0];
        if (!err) err = sparse_column(c, &v, i, &c->columns[i]);
    }
    for (int i = 0; i < dense && !err; i++) {
        const Tensor *t = k->in[3 * n + i];
        if (t->shape.rank != 2)
            return error_invalid("Dense inputs should be a matrix but received shape %s at position %d",
                                 shape_text(&t->shape).text, i);
        if (c->rows < 0) c->rows = t->shape.dims[0];
        if (t->shape.dims[0] != c->rows)
            return error_invalid("Expected batch size %lld got %lld at dense tensor %d", (long long)c->rows,
                                 (long long)t->shape.dims[0], i);
        c->columns[n + i] = (Column){t, NULL, t->shape.dims[1]};
    }
    if (!err && c->column_count == 0) err = error_invalid("A cross needs at least one input");
    return err;
}

/* How the features of one combination become a value. */
typedef struct Crosser {
    bool hash;
    bool strong;
    bool keyed_start; /* the first hash is mixed into `start` */
    uint64_t start, key[2];
    int64_t buckets;
    Str separator;
} Crosser;

static uint64_t shift_mix(uint64_t v) {
    return v ^ v >> 47;
}

static uint64_t fingerprint_cat(uint64_t a, uint64_t b) {
    const uint64_t mul = 0xc6a4a7935bd1e995u;
    uint64_t v = (a ^ mul) ^ shift_mix(b * mul) * mul;
    v *= mul;
    return shift_mix(shift_mix(v) * mul);
}

static uint64_t feature_hash(const Crosser *how, const Column *column, int64_t i) {
    const Tensor *t = column->values;
    if (t->dtype == DT_STRING) {
        Str s = tstring_str(&tensor_str(t)[i]);
        uint64_t key[2] = {how->key[0], how->key[1]};
        return how->strong ? siphash(s, key) : fingerprint64(s);
    }
    /* A number is its own hash, but for sparse columns of SparseCrossHashed, as TensorFlow has it. */
    if (how->keyed_start || !column->starts) return (uint64_t)tensor_i64(t)[i];
    return fingerprint64((Str){(const char *)&tensor_i64(t)[i], 4}); /* of its lower half only */
}

static void put_cross(const Crosser *how, const Cross *c, const int64_t *at, Tensor *out, int64_t n) {
    if (how->hash) {
        uint64_t hash = how->start;
        for (int i = 0; i < c->column_count; i++) {
            uint64_t next = feature_hash(how, &c->columns[i], at[i]);
            hash = i == 0 && !how->keyed_start ? next : fingerprint_cat(hash, next);
        }
        uint64_t limit = how->buckets > 0 ? (uint64_t)how->buckets : (uint64_t)INT64_MAX;
        tensor_i64(out)[n] = (int64_t)(hash % limit);
        return;
    }
    StrBuf text = {0};
    for (int i = 0; i < c->column_count; i++) {
        if (i) strbuf_add(&text, how->separator);
        const Tensor *t = c->columns[i].values;
        if (t->dtype == DT_STRING) {
            strbuf_add(&text, tstring_str(&tensor_str(t)[at[i]]));
        } else {
            strbuf_addf(&text, "%lld", (long long)tensor_i64(t)[at[i]]);
        }
    }
    tstring_set(&tensor_str(out)[n], strbuf_str(&text));
    strbuf_clear(&text);
}

static int64_t combinations(const Cross *c, int64_t row, bool *overflow) {
    int64_t n = 1;
    for (int i = 0; i < c->column_count; i++)
        if (count_of(&c->columns[i], row) == 0) return 0;
    for (int i = 0; i < c->column_count; i++)
        *overflow = __builtin_mul_overflow(n, count_of(&c->columns[i], row), &n) || *overflow;
    return n;
}

/* `indices` is NULL where nobody asks for them. */
static void cross_rows(const Crosser *how, const Cross *c, int64_t *indices, Tensor *values) {
    int64_t n = 0, *at = xcalloc((size_t)c->column_count + 1, sizeof *at);
    bool overflow = false;
    for (int64_t row = 0; row < c->rows; row++) {
        int64_t total = combinations(c, row, &overflow);
        for (int i = 0; i < c->column_count; i++) at[i] = first_of(&c->columns[i], row);
        for (int64_t j = 0; j < total; j++, n++) {
            if (indices) {
                indices[2 * n] = row;
                indices[2 * n + 1] = j;
            }
            put_cross(how, c, at, values, n);
            for (int i = c->column_count - 1; i >= 0; i--) {
                const Column *column = &c->columns[i];
                if (++at[i] < first_of(column, row) + count_of(column, row)) break;
                at[i] = first_of(column, row);
            }
        }
    }
    free(at);
}

static Error *cross(KernelContext *k, const Crosser *how) {
    Cross c = {0};
    Error *err = cross_read(k, &c);
    int64_t total = 0, most = 0;
    bool overflow = false;
    for (int64_t row = 0; row < c.rows && !err; row++) {
        int64_t n = combinations(&c, row, &overflow);
        most = n > most ? n : most;
        overflow = __builtin_add_overflow(total, n, &total) || overflow;
    }
    if (!err && overflow) err = error_invalid("The cross has too many values");
    Shape shape = shape_matrix(c.rows, most);
    SparseOut out;
    if (!err && sparse_output(k, 0, total, &shape, &out)) cross_rows(how, &c, tensor_i64(out.indices), out.values);
    cross_clear(&c);
    return err;
}

static Error *run_cross(KernelContext *k) {
    const CrossState *s = k->state;
    Crosser how = {.hash = s->hashed,
                   .keyed_start = true,
                   .start = (uint64_t)s->key,
                   .buckets = s->buckets,
                   .separator = STR("_X_")};
    for (int i = 0; s->hashed && !s->internal_int && i < k->input_count; i++) {
        bool is_value = (i >= s->sparse_count && i < 2 * s->sparse_count) || i >= 3 * s->sparse_count;
        if (is_value && k->in[i]->dtype != DT_STRING)
            return error_invalid("Inputs must be strings where the internal type is string, input %d is of type %s", i,
                                 dtype_name(k->in[i]->dtype));
    }
    return cross(k, &how);
}

static Error *separator_refused(const Tensor *t) {
    StrBuf values = {0};
    print_values(&values, t, 3);
    Error *err = error_invalid("Input separator should be a scalar. Received: Tensor<type: string shape: %s values: %.*s>",
                               shape_text(&t->shape).text, STR_ARG(strbuf_str(&values)));
    strbuf_clear(&values);
    return err;
}

static Error *run_cross_v2(KernelContext *k) {
    const Tensor *separator = k->in[k->input_count - 1];
    if (separator->shape.rank != 0) return separator_refused(separator);
    Crosser how = {.separator = tstring_str(tensor_str(separator))};
    return cross(k, &how);
}

static Error *run_cross_hashed(KernelContext *k) {
    Tensor *const *last = k->in + k->input_count - 3;
    if (last[0]->count != 1 || last[1]->count != 1) return error_invalid("num_buckets and strong_hash must be scalars");
    if (last[2]->count != 2) return error_invalid("Input \"salt\" must have length 2 but has length %lld", (long long)last[2]->count);
    Crosser how = {.hash = true,
                   .strong = tensor_bool(last[1])[0],
                   .buckets = tensor_i64(last[0])[0],
                   .key = {(uint64_t)tensor_i64(last[2])[0], (uint64_t)tensor_i64(last[2])[1]}};
    return cross(k, &how);
}

/* ---- RaggedCross ---- */

typedef struct RaggedState {
    int64_t sparse_count;
    int ragged_count, dense_count;
    char *order; /* R, S or D for each column */
    int64_t buckets, key;
} RaggedState;

static void ragged_clear(void *state) {
    free(((RaggedState *)state)->order);
}

static Error *ragged_init(const Node *node, void *state) {
    static const char *const lists[] = {"ragged_values_types", "ragged_splits_types", "sparse_values_types", "dense_types"};
    RaggedState *s = state;
    int counts[4] = {0};
    Str order = {0};
    Error *err = node_attr_int(node, "Nsparse", &s->sparse_count);
    for (int i = 0; !err && i < 4; i++) {
        DataType *types = NULL;
        err = node_attr_types(node, lists[i], &types, &counts[i]);
        free(types);
    }
    if (!err) err = node_attr_string(node, "input_order", &order);
    if (!err) err = node_attr_int(node, "num_buckets", &s->buckets);
    if (!err) err = node_attr_int(node, "hash_key", &s->key);
    if (err) return err;
    if (counts[0] != counts[1]) return error_invalid("ragged values and splits must have the same length");
    if (counts[2] != s->sparse_count) return error_invalid("sparse indices and values must have the same length");
    if ((size_t)(counts[0] + counts[2] + counts[3]) != order.len) return error_invalid("Invalid length for input_order");
    s->ragged_count = counts[0];
    s->dense_count = counts[3];
    s->order = str_dup(order);
    return NULL;
}

static Error *ragged_column(const Tensor *values, const Tensor *splits, Column *out) {
    if (values->shape.rank != 1 || splits->shape.rank != 1) return error_invalid("tf.ragged.cross only supports inputs with rank=2.");
    if (splits->count < 1) return error_invalid("Invalid ragged splits: ragged splits must have at least one splits, but is empty");
    *out = (Column){values, try_alloc((size_t)splits->count * sizeof *out->starts), 0};
    if (!out->starts) return error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for %lld rows", (long long)splits->count);
    for (int64_t i = 0; i < splits->count; i++) {
        out->starts[i] = tensor_index(splits, i);
        if (out->starts[i] < (i ? out->starts[i - 1] : 0))
            return error_invalid("Invalid ragged splits: ragged splits must be monotonically increasing, but ragged_splits[%lld]=%lld is smaller than row_splits[%lld]=%lld",
                                 (long long)i, (long long)out->starts[i], (long long)i - 1, (long long)(i ? out->starts[i - 1] : 0));
    }
    if (out->starts[0] != 0) return error_invalid("Invalid ragged splits: first element of ragged splits  must be 0 but is %lld", (long long)out->starts[0]);
    if (out->starts[splits->count - 1] != values->count)
        return error_invalid("Invalid ragged splits: last element of ragged splits must be the number of ragged values(%lld) but is %lld",
                             (long long)values->count, (long long)out->starts[splits->count - 1]);
    return NULL;
}

static Error *same_rows(Cross *c, int64_t rows) {
    if (c->rows < 0) c->rows = rows;
    return rows == c->rows ? NULL : error_invalid("inputs must all have the same batch dimension size.");
}

/* Number i of the sparse inputs; `at` is where those begin. */
static Error *ragged_sparse_column(KernelContext *k, Cross *c, int at, int i, Column *out) {
    const RaggedState *s = k->state;
    int n = (int)s->sparse_count;
    SparseView v;
    const Tensor *indices = k->in[at + i], *values = k->in[at + n + i], *shape = k->in[at + 2 * n + i];
    if (indices->shape.rank != 2 || values->shape.rank != 1 || shape->shape.rank != 1) return error_invalid("Invalid SparseTensor %d", i);
    if (shape->count != 2) return error_invalid("tf.ragged.cross only supports inputs with rank=2.");
    Error *err = sparse_view("Input", indices, values, shape, &v);
    if (!err) err = same_rows(c, v.shape.dims[0]);
    return err ? err : sparse_column(c, &v, i, out);
}

static Error *order_error(const RaggedState *s, char column) {
    if (column == 'R')
        return error_invalid("input_order \"%s\" specifies reading a ragged tensor value at index %d from a list of %d values.", s->order, s->ragged_count, s->ragged_count);
    if (column == 'S')
        return error_invalid("input_order \"%s\" specifies reading a sparse tensor value at index %d from a list of %d values.", s->order, (int)s->sparse_count, (int)s->sparse_count);
    if (column == 'D')
        return error_invalid("input_order \"%s\" specifies reading a dense tensor at index %d from a list of %d tensors.", s->order, s->dense_count, s->dense_count);
    return error_invalid("Unexpected input_order value.");
}

/* Columns in the order that input_order tells; inputs: ragged values, their splits, sparse indices, values, shapes, dense ones. */
static Error *ragged_read(KernelContext *k, Cross *c) {
    const RaggedState *s = k->state;
    const int r = s->ragged_count, n = (int)s->sparse_count, sparse = 2 * r, dense = sparse + 3 * n;
    int next_ragged = 0, next_sparse = 0, next_dense = 0;
    c->column_count = r + n + s->dense_count;
    c->columns = xcalloc((size_t)c->column_count + 1, sizeof *c->columns);
    c->rows = -1;
    Error *err = NULL;
    for (int i = 0; i < c->column_count && !err; i++) {
        Column *column = &c->columns[i];
        if (s->order[i] == 'R' && next_ragged < r) {
            err = ragged_column(k->in[next_ragged], k->in[r + next_ragged], column);
            if (!err) err = same_rows(c, k->in[r + next_ragged]->count - 1);
            next_ragged++;
        } else if (s->order[i] == 'S' && next_sparse < n) {
            err = ragged_sparse_column(k, c, sparse, next_sparse++, column);
        } else if (s->order[i] == 'D' && next_dense < s->dense_count) {
            const Tensor *t = k->in[dense + next_dense++];
            if (t->shape.rank != 2) return error_invalid("tf.ragged.cross only supports inputs with rank=2.");
            *column = (Column){t, NULL, t->shape.dims[1]};
            err = same_rows(c, t->shape.dims[0]);
        } else {
            err = order_error(s, s->order[i]);
        }
    }
    if (c->rows < 0) c->rows = 0;
    return err;
}

/* The splits of the output; *total is how many values it has. */
static Error *ragged_splits(const Cross *c, Tensor *splits, int64_t *total) {
    bool overflow = false;
    *total = 0;
    for (int64_t row = 0; row <= c->rows; row++) {
        if (splits->dtype == DT_INT64) {
            tensor_i64(splits)[row] = *total;
        } else {
            overflow = overflow || *total > INT32_MAX;
            tensor_i32(splits)[row] = (int32_t)*total;
        }
        if (row < c->rows) overflow = __builtin_add_overflow(*total, combinations(c, row, &overflow), total) || overflow;
    }
    return overflow ? error_invalid("The cross has too many values") : NULL;
}

static Error *run_ragged_cross(KernelContext *k) {
    const RaggedState *s = k->state;
    Cross c = {0};
    int64_t total = 0;
    Error *err = ragged_read(k, &c);
    Crosser how = {.hash = kernel_output_type(k, 0) == DT_INT64, .keyed_start = true, .start = (uint64_t)s->key, .buckets = s->buckets, .separator = STR("_X_")};
    Shape of_splits = shape_vector(c.rows + 1);
    Tensor *splits = err ? NULL : kernel_output(k, 1, &of_splits);
    if (splits) err = ragged_splits(&c, splits, &total);
    Shape of_values = shape_vector(total);
    Tensor *values = err || !splits ? NULL : kernel_output(k, 0, &of_values);
    if (values) cross_rows(&how, &c, NULL, values);
    cross_clear(&c);
    return err;
}

const KernelDef sparse_cross_cpu[] = {
    {"RaggedCross", .run = run_ragged_cross, .state_size = sizeof(RaggedState), .init = ragged_init, .clear = ragged_clear,
     .flags = KERNEL_EXPENSIVE},
    {"SparseCross", .run = run_cross, .state_size = sizeof(CrossState), .init = cross_v1_init,
     .flags = KERNEL_EXPENSIVE},
    {"SparseCrossV2", .run = run_cross_v2, .state_size = sizeof(CrossState), .init = cross_init,
     .flags = KERNEL_EXPENSIVE},
    {"SparseCrossHashed", .run = run_cross_hashed, .state_size = sizeof(CrossState), .init = cross_init,
     .flags = KERNEL_EXPENSIVE},
    {0},
};
