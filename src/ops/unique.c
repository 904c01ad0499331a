/* unique.c: Unique, its relatives, and ListDiff: tables of rows seen before. */
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef unique_ops[] = {
    {"Unique", "x: T -> y: T, idx: out_idx", "T: type; out_idx: {int32, int64} = int32", 0},
    {"UniqueV2", "x: T, axis: Taxis -> y: T, idx: out_idx",
     "T: type; Taxis: {int32, int64} = int64; out_idx: {int32, int64} = int32", 0},
    {"UniqueWithCounts", "x: T -> y: T, idx: out_idx, count: out_idx", "T: type; out_idx: {int32, int64} = int32", 0},
    {"UniqueWithCountsV2", "x: T, axis: Taxis -> y: T, idx: out_idx, count: out_idx",
     "T: type; Taxis: {int32, int64} = int64; out_idx: {int32, int64} = int32", 0},
    {"ListDiff", "x: T, y: T -> out: T, idx: out_idx", "T: type; out_idx: {int32, int64} = int32", 0},
    {0},
};

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/* Equal elements hash alike: 0.0 and -0.0 are equal. */
static uint64_t element_hash(DataType type, const void *at) {
    uint64_t bits = 0;
    switch (type) {
        case DT_STRING:
            return str_hash(tstring_str(at));
        case DT_FLOAT: {
            float f = *(const float *)at + 0.0f;
            memcpy(&bits, &f, sizeof f);
            return bits;
        }
        case DT_DOUBLE: {
            double f = *(const double *)at + 0.0;
            memcpy(&bits, &f, sizeof f);
            return bits;
        }
        case DT_HALF:
            return float_bits(half_to_float(*(const uint16_t *)at) + 0.0f);
        case DT_BFLOAT16:
            return float_bits(bfloat16_to_float(*(const uint16_t *)at) + 0.0f);
        case DT_COMPLEX64:
            return mix(element_hash(DT_FLOAT, at), element_hash(DT_FLOAT, (const char *)at + 4));
        case DT_COMPLEX128:
            return mix(element_hash(DT_DOUBLE, at), element_hash(DT_DOUBLE, (const char *)at + 8));
        default:
            memcpy(&bits, at, dtype_size(type) < 8 ? dtype_size(type) : 8);
            return bits;
    }
}

/* As == says: NaN is not equal to itself. */
static bool element_equal(DataType type, const void *a, const void *b) {
    switch (type) {
        case DT_STRING:
            return str_eq(tstring_str(a), tstring_str(b));
        case DT_FLOAT:
            return *(const float *)a == *(const float *)b;
        case DT_DOUBLE:
            return *(const double *)a == *(const double *)b;
        case DT_HALF:
            return half_to_float(*(const uint16_t *)a) == half_to_float(*(const uint16_t *)b);
        case DT_BFLOAT16:
            return bfloat16_to_float(*(const uint16_t *)a) == bfloat16_to_float(*(const uint16_t *)b);
        case DT_COMPLEX64:
            return element_equal(DT_FLOAT, a, b) && element_equal(DT_FLOAT, (const char *)a + 4, (const char *)b + 4);
        case DT_COMPLEX128:
            return element_equal(DT_DOUBLE, a, b) && element_equal(DT_DOUBLE, (const char *)a + 8, (const char *)b + 8);
        default:
            return memcmp(a, b, dtype_size(type)) == 0;
    }
}

/* Rows seen, by their position in the order of appearance. Open addressing, at most half full. */
typedef struct RowTable {
    DataType type;
    int64_t width;
    const char **rows; /* the distinct ones */
    int64_t count;
    int64_t *slots; /* position + 1; 0: free */
    uint64_t mask;
    int id_size; /* of rows that are one int32 or int64, as ids of embeddings are: found without a look at the type of each; else 0 */
} RowTable;

static bool table_init(RowTable *t, DataType type, int64_t width, int64_t most) {
    uint64_t size = 16;
    while (size < (uint64_t)most * 2) size *= 2;
    *t = (RowTable){.type = type, .width = width, .mask = size - 1};
    if (width == 1 && (type == DT_INT32 || type == DT_INT64)) t->id_size = (int)dtype_size(type);
    t->rows = try_alloc((size_t)(most + 1) * sizeof *t->rows);
    t->slots = try_alloc(size * sizeof *t->slots);
    if (t->slots) memset(t->slots, 0, size * sizeof *t->slots);
    return t->rows && t->slots;
}

static void table_clear(RowTable *t) {
    free(t->rows);
    free(t->slots);
}

static int64_t id_at(const RowTable *t, const char *row) {
    return t->id_size == 4 ? *(const int32_t *)row : *(const int64_t *)row;
}

/* The slot where the row is, or where it would go. */
static inline int64_t *id_slot(const RowTable *t, const char *row) {
    const int64_t id = id_at(t, row);
    for (uint64_t at = mix(0, (uint64_t)id) & t->mask;; at = (at + 1) & t->mask) {
        int64_t *slot = &t->slots[at];
        if (*slot == 0 || id_at(t, t->rows[*slot - 1]) == id) return slot;
    }
}
static int64_t *row_slot(const RowTable *t, const char *row) {
    size_t size = dtype_size(t->type);
    uint64_t h = 0;
    for (int64_t i = 0; i < t->width; i++) h = mix(h, element_hash(t->type, row + (size_t)i * size));
    for (uint64_t at = h & t->mask;; at = (at + 1) & t->mask) {
        int64_t *slot = &t->slots[at];
        if (*slot == 0) return slot;
        bool equal = true;
        for (int64_t i = 0; equal && i < t->width; i++)
            equal = element_equal(t->type, row + (size_t)i * size, t->rows[*slot - 1] + (size_t)i * size);
        if (equal) return slot;
    }
}
static inline int64_t *table_slot(const RowTable *t, const char *row) {
    return t->id_size ? id_slot(t, row) : row_slot(t, row);
}

/* The position of the row, which is added when new. */
static int64_t table_put(RowTable *t, const char *row) {
    int64_t *slot = table_slot(t, row);
    if (*slot == 0) {
        t->rows[t->count++] = row;
        *slot = t->count;
    }
    return *slot - 1;
}

static Error *out_of_memory(int64_t n) {
    return error_new(CODE_RESOURCE_EXHAUSTED, "OOM when allocating a table of %lld rows", (long long)n);
}

/* Rows of `in`, whose dimension `axis` has been brought to the front, are compared. */
static Error *unique_rows(KernelContext *k, const Tensor *in, const Shape *shape, int axis) {
    int64_t n = in->shape.dims[0], width = shape_prod(&in->shape, 1, in->shape.rank);
    ElementKind kind = element_kind(in->dtype);
    size_t row_bytes = (size_t)width * kind.size;
    RowTable table;
    Error *err = NULL;
    if (!table_init(&table, in->dtype, width, n)) {
        err = out_of_memory(n);
        goto out;
    }
    Shape vector = shape_vector(n);
    Tensor *idx = kernel_output(k, 1, &vector);
    if (!idx) goto out;
    for (int64_t i = 0; i < n; i++)
        index_put(idx, i, table_put(&table, (const char *)in->data + (size_t)i * row_bytes));
    Shape out_shape = *shape;
    out_shape.dims[axis] = table.count;
    Tensor *out = kernel_output(k, 0, &out_shape);
    if (!out) goto out;
    int64_t outer = shape_prod(shape, 0, axis), inner = width / (outer > 0 ? outer : 1);
    for (int64_t i = 0; i < table.count && width == 1; i++) copy_elements(kind, (char *)out->data + (size_t)i * kind.size, table.rows[i], 1);
    for (int64_t i = 0; i < table.count && width > 1; i++) {
        StridedCopy c = {0};
        copy_add_dim(&c, outer, table.count * inner, inner);
        copy_add_dim(&c, inner, 1, 1);
        copy_strided(NULL, kind, &c, (char *)out->data + (size_t)(i * inner) * kind.size, table.rows[i]);
    }
    if (k->output_count > 2) {
        vector = shape_vector(table.count);
        Tensor *counts = kernel_output(k, 2, &vector);
        for (int64_t i = 0; counts && i < table.count; i++) index_put(counts, i, 0);
        for (int64_t i = 0; counts && i < n; i++) {
            int64_t at = index_at(idx, i);
            index_put(counts, at, index_at(counts, at) + 1);
        }
    }
out:
    table_clear(&table);
    return err;
}

static Error *run_unique(KernelContext *k) {
    const Tensor *in = k->in[0], *axes = k->input_count > 1 ? k->in[1] : NULL;
    if (in->dtype == DT_VARIANT || in->dtype == DT_RESOURCE)
        return kernel_lacks_type(k->node, in->dtype);
    if (axes && axes->shape.rank != 1) return error_invalid("axis expects a 1D vector.");
    if (!axes || axes->count == 0) {
        if (in->shape.rank != 1) return error_invalid("unique expects a 1D vector.");
        return unique_rows(k, in, &in->shape, 0);
    }
    if (axes->count != 1) return error_invalid("axis does not support input tensors larger than 1 elements");
    int rank = in->shape.rank;
    int64_t axis = index_at(axes, 0);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return error_invalid("axis has to be between [0, %d)", rank);
    int perm[SHAPE_MAX_RANK] = {(int)axis};
    Shape front = {.rank = rank, .dims = {in->shape.dims[axis]}};
    for (int d = 0, at = 1; d < rank; d++) {
        if (d == axis) continue;
        front.dims[at] = in->shape.dims[d];
        perm[at++] = d;
    }
    Tensor *moved = kernel_scratch(k, in->dtype, &front);
    if (!moved) return NULL;
    if (in->count > 0)
        copy_transpose(k->pool, element_kind(in->dtype), rank, in->shape.dims, perm, moved->data, in->data);
    Error *err = unique_rows(k, moved, &in->shape, (int)axis);
    tensor_unref(moved);
    return err;
}

/* The elements of x that are not in y, and where they were. */
static Error *list_diff(KernelContext *k, RowTable *table, int64_t *kept) {
    const Tensor *x = k->in[0], *y = k->in[1];
    size_t size = dtype_size(x->dtype);
    int64_t n = 0;
    for (int64_t i = 0; i < y->count; i++) table_put(table, (const char *)y->data + (size_t)i * size);
    for (int64_t i = 0; i < x->count; i++) {
        if (*table_slot(table, (const char *)x->data + (size_t)i * size) == 0) kept[n++] = i;
    }
    Shape shape = shape_vector(n);
    Tensor *out = kernel_output(k, 0, &shape), *idx = out ? kernel_output(k, 1, &shape) : NULL;
    for (int64_t i = 0; idx && i < n; i++) {
        index_put(idx, i, kept[i]);
        elements_copy(x->dtype, (char *)out->data + (size_t)i * size, (const char *)x->data + (size_t)kept[i] * size,
                      1);
    }
    return NULL;
}

static Error *run_list_diff(KernelContext *k) {
    const Tensor *x = k->in[0], *y = k->in[1];
    if (x->shape.rank != 1) return error_invalid("x should be a 1D vector.");
    if (y->shape.rank != 1) return error_invalid("y should be a 1D vector.");
    if (x->dtype == DT_VARIANT || x->dtype == DT_RESOURCE)
        return kernel_lacks_type(k->node, x->dtype);
    RowTable table;
    int64_t *kept = try_alloc((size_t)(x->count + 1) * sizeof *kept);
    bool ok = table_init(&table, x->dtype, 1, y->count) && kept;
    Error *err = ok ? list_diff(k, &table, kept) : out_of_memory(y->count);
    table_clear(&table);
    free(kept);
    return err;
}

const KernelDef unique_cpu[] = {
    {"Unique", .run = run_unique},           {"UniqueV2", .run = run_unique},
    {"UniqueWithCounts", .run = run_unique}, {"UniqueWithCountsV2", .run = run_unique},
    {"ListDiff", .run = run_list_diff},      {0},
};
