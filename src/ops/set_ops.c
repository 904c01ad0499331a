/* set_ops.c: set operations on the last dimension of dense and sparse tensors, sizes of sets; edit distance. */
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/memory.h"
#include "ops/op_list.h"
#include "ops/sparse_tensor.h"

const OpDef set_ops_ops[] = {
    {"DenseToDenseSetOperation", "set1: T, set2: T -> result_indices: int64, result_values: T, result_shape: int64",
     "set_operation: string; validate_indices: bool = true; T: {int8, int16, int32, int64, uint8, uint16, string}", 0},
    {"DenseToSparseSetOperation",
     "set1: T, set2_indices: int64, set2_values: T, set2_shape: int64 -> result_indices: int64, result_values: T, "
     "result_shape: int64",
     "set_operation: string; validate_indices: bool = true; T: {int8, int16, int32, int64, uint8, uint16, string}", 0},
    {"SparseToSparseSetOperation",
     "set1_indices: int64, set1_values: T, set1_shape: int64, set2_indices: int64, set2_values: T, set2_shape: "
     "int64 -> result_indices: int64, result_values: T, result_shape: int64",
     "set_operation: string; validate_indices: bool = true; T: {int8, int16, int32, int64, uint8, uint16, string}", 0},
    {"SetSize", "set_indices: int64, set_values: T, set_shape: int64 -> size: int32",
     "validate_indices: bool = true; T: {int8, int16, int32, int64, uint8, uint16, string}", 0},
    {"EditDistance",
     "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: int64, "
     "truth_values: T, truth_shape: int64 -> output: float",
     "normalize: bool = true; T: type", 0},
    {0},
};

/* ---- Sets ---- */

typedef enum SetOperation { SET_A_MINUS_B, SET_B_MINUS_A, SET_INTERSECTION, SET_UNION } SetOperation;

typedef struct SetState {
    SetOperation operation;
    bool validate;
} SetState;

static Error *set_init(const Node *node, void *state) {
    static const char *const names[] = {"a-b", "b-a", "intersection", "union"};
    SetState *s = state;
    Str name = STR("");
    Error *err = node_attr_bool(node, "validate_indices", &s->validate);
    if (!err) err = node_attr_string(node, "set_operation", &name);
    if (err) return err;
    for (int i = 0; i < 4; i++) {
        if (name.len == strlen(names[i]) && strncasecmp(name.ptr, names[i], name.len) == 0) {
            s->operation = (SetOperation)i;
            return NULL;
        }
    }
    return error_invalid("Invalid set_operation %.*s.", STR_ARG(name));
}

static Error *size_init(const Node *node, void *state) {
    return node_attr_bool(node, "validate_indices", &((SetState *)state)->validate);
}

/* One operand: groups of values that share all dimensions but the last. */
typedef struct SetInput {
    const Tensor *values;
    const int64_t *indices; /* NULL: dense */
    int64_t nnz, width;     /* width: of a dense row */
    Shape group;            /* dimensions but the last */
    int64_t last;           /* the last dimension */
    int64_t at;             /* of sparse ones: where the next group starts */
} SetInput;

static Error *dense_input(const Tensor *t, SetInput *in) {
    if (t->shape.rank < 2) return error_invalid("Shape %s has rank %d < 2", shape_text(&t->shape).text, t->shape.rank);
    *in = (SetInput){.values = t, .group = t->shape, .width = t->shape.dims[t->shape.rank - 1]};
    in->group.rank--;
    in->last = in->width;
    return NULL;
}

static Error *sparse_input(const Tensor *indices, const Tensor *values, const Tensor *shape, bool validate,
                           SetInput *in) {
    SparseView v;
    if (shape->shape.rank == 1 && shape->count < 2) return error_invalid("Invalid rank %lld.", (long long)shape->count);
    Error *err = shape->shape.rank == 1 ? NULL : error_invalid("Shape must be a 1D tensor.");
    if (!err) err = sparse_check_made(indices, values);
    if (!err) err = sparse_view("Input", indices, values, shape, &v);
    if (!err) err = sparse_check_indices(&v, validate);
    if (err) return err;
    *in = (SetInput){.values = values, .indices = v.indices, .nnz = v.nnz, .group = v.shape};
    in->group.rank--;
    in->last = v.shape.dims[v.shape.rank - 1];
    return NULL;
}

/* Sorts the values [from, to) of an input as positions, each value once. */
typedef struct SetBuffer {
    const Tensor *values;
    int64_t *at;
    int64_t count;
    size_t capacity;
} SetBuffer;

static int compare_elements(const Tensor *x, int64_t i, const Tensor *y, int64_t j) {
    if (x->dtype == DT_STRING) return str_compare(tstring_str(&tensor_str(x)[i]), tstring_str(&tensor_str(y)[j]));
    int64_t a = index_at(x, i), b = index_at(y, j);
    return (a > b) - (a < b);
}

static int compare_positions(const void *x, const void *y, void *arg) {
    const Tensor *t = arg;
    return compare_elements(t, *(const int64_t *)x, t, *(const int64_t *)y);
}

static void buffer_fill(SetBuffer *b, const Tensor *values, int64_t from, int64_t to) {
    int64_t n = 0;
    b->values = values;
    b->at = vec_reserve(b->at, &b->capacity, (size_t)(to - from) + 1, sizeof *b->at);
    for (int64_t i = from; i < to; i++) b->at[n++] = i;
    qsort_r(b->at, (size_t)n, sizeof *b->at, compare_positions, (void *)values);
    b->count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (b->count == 0 || compare_elements(values, b->at[b->count - 1], values, b->at[i]) != 0)
            b->at[b->count++] = b->at[i];
    }
}

/* The values of group number `flat`, whose indices are `group`. Groups are asked for in ascending order. */
static void buffer_group(SetBuffer *b, SetInput *in, int64_t flat, const int64_t *group) {
    if (!in->indices) {
        buffer_fill(b, in->values, flat * in->width, (flat + 1) * in->width);
        return;
    }
    int rank = in->group.rank + 1;
    int64_t from = in->at, to;
    for (to = from; to < in->nnz && sparse_compare(in->indices + to * rank, group, in->group.rank) == 0;) to++;
    in->at = to;
    buffer_fill(b, in->values, from, to);
}

/* Results gathered while the groups go by. */
typedef struct SetResult {
    int64_t *groups; /* the number of the group of each value */
    int64_t *from;   /* its position in values */
    bool *second;    /* of which operand */
    int64_t count;
    size_t capacity[3];
    int64_t most; /* in one group */
} SetResult;

static void result_add(SetResult *r, int64_t group, int64_t at, bool second) {
    size_t n = (size_t)r->count + 1;
    r->groups = vec_reserve(r->groups, &r->capacity[0], n, sizeof *r->groups);
    r->from = vec_reserve(r->from, &r->capacity[1], n, sizeof *r->from);
    r->second = vec_reserve(r->second, &r->capacity[2], n, sizeof *r->second);
    r->groups[r->count] = group;
    r->from[r->count] = at;
    r->second[r->count++] = second;
}

static void combine(SetOperation op, const SetBuffer *a, const SetBuffer *b, int64_t group, SetResult *r) {
    int64_t i = 0, j = 0, before = r->count;
    while (i < a->count || j < b->count) {
        int order = i == a->count ? 1 : j == b->count ? -1 : compare_elements(a->values, a->at[i], b->values, b->at[j]);
        bool take = op == SET_UNION || (op == SET_INTERSECTION && order == 0) || (op == SET_A_MINUS_B && order < 0) ||
                    (op == SET_B_MINUS_A && order > 0);
        if (take) result_add(r, group, order <= 0 ? a->at[i] : b->at[j], order > 0);
        i += order <= 0;
        j += order >= 0;
    }
    if (r->count - before > r->most) r->most = r->count - before;
}

/* Where the next group is that either operand has: dense ones have all. */
static bool next_group(const SetInput *a, const SetInput *b, const Shape *shape, int64_t groups, int64_t *flat,
                       int64_t *group) {
    int rank = shape->rank;
    if (!a->indices || !b->indices) {
        if (++*flat >= groups) return false;
        for (int64_t d = rank - 1, rest = *flat; d >= 0; d--) {
            group[d] = rest % shape->dims[d];
            rest /= shape->dims[d];
        }
        return true;
    }
    const int64_t *x = a->at < a->nnz ? a->indices + a->at * (rank + 1) : NULL,
                  *y = b->at < b->nnz ? b->indices + b->at * (rank + 1) : NULL;
    if (!x && !y) return false;
    const int64_t *first = !y || (x && sparse_compare(x, y, rank) <= 0) ? x : y;
    memcpy(group, first, (size_t)rank * sizeof *group);
    *flat = 0;
    for (int d = 0; d < rank; d++) *flat = *flat * shape->dims[d] + group[d];
    return true;
}

static void put_result(KernelContext *k, const SetResult *r, const Shape *groups, const SetInput *a,
                       const SetInput *b) {
    Shape shape = *groups;
    shape.dims[shape.rank++] = r->most;
    SparseOut out;
    if (!sparse_output(k, 0, r->count, &shape, &out)) return;
    for (int64_t i = 0, in_group = 0; i < r->count; i++) {
        int64_t *row = tensor_i64(out.indices) + i * shape.rank, rest = r->groups[i];
        in_group = i > 0 && r->groups[i - 1] == rest ? in_group + 1 : 0;
        row[shape.rank - 1] = in_group;
        for (int d = shape.rank - 2; d >= 0; d--) {
            row[d] = rest % shape.dims[d];
            rest /= shape.dims[d];
        }
        elements_copy(out.values->dtype, element_to(out.values, i),
                      element_at(r->second[i] ? b->values : a->values, r->from[i]), 1);
    }
}

static Error *set_operation(KernelContext *k, SetInput *a, SetInput *b) {
    const SetState *s = k->state;
    int64_t groups = 0, flat = -1, group[SHAPE_MAX_RANK];
    if (!shape_eq(&a->group, &b->group))
        return error_invalid("Mismatched shapes %s vs %s", shape_text(&a->group).text, shape_text(&b->group).text);
    Error *err = sparse_shape_count(&a->group, &groups);
    if (err) return err;
    SetBuffer x = {0}, y = {0};
    SetResult r = {0};
    while (next_group(a, b, &a->group, groups, &flat, group)) {
        buffer_group(&x, a, flat, group);
        buffer_group(&y, b, flat, group);
        combine(s->operation, &x, &y, flat, &r);
    }
    put_result(k, &r, &a->group, a, b);
    free(x.at);
    free(y.at);
    free(r.groups);
    free(r.from);
    free(r.second);
    return NULL;
}

static Error *run_dense_dense(KernelContext *k) {
    SetInput a, b;
    Error *err = dense_input(k->in[0], &a);
    if (!err) err = dense_input(k->in[1], &b);
    return err ? err : set_operation(k, &a, &b);
}

static Error *run_dense_sparse(KernelContext *k) {
    SetInput a, b;
    Error *err = dense_input(k->in[0], &a);
    if (!err) err = sparse_input(k->in[1], k->in[2], k->in[3], ((const SetState *)k->state)->validate, &b);
    return err ? err : set_operation(k, &a, &b);
}

static Error *run_sparse_sparse(KernelContext *k) {
    bool validate = ((const SetState *)k->state)->validate;
    SetInput a, b;
    Error *err = sparse_input(k->in[0], k->in[1], k->in[2], validate, &a);
    if (!err) err = sparse_input(k->in[3], k->in[4], k->in[5], validate, &b);
    return err ? err : set_operation(k, &a, &b);
}

static Error *run_size(KernelContext *k) {
    SetInput in;
    Error *err = sparse_input(k->in[0], k->in[1], k->in[2], ((const SetState *)k->state)->validate, &in);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &in.group);
    if (!out) return NULL;
    memset(out->data, 0, tensor_bytes(out));
    SetBuffer b = {0};
    while (in.at < in.nnz) {
        int64_t flat = 0, group[SHAPE_MAX_RANK];
        memcpy(group, in.indices + in.at * (in.group.rank + 1), (size_t)in.group.rank * sizeof *group);
        for (int d = 0; d < in.group.rank; d++) flat = flat * in.group.dims[d] + group[d];
        buffer_group(&b, &in, flat, group);
        tensor_i32(out)[flat] = (int32_t)b.count;
    }
    free(b.at);
    return NULL;
}

/* ---- EditDistance ---- */

typedef struct DistanceState {
    bool normalize;
} DistanceState;

static Error *distance_init(const Node *node, void *state) {
    return node_attr_bool(node, "normalize", &((DistanceState *)state)->normalize);
}

static bool same_element(const Tensor *x, int64_t i, const Tensor *y, int64_t j) {
    if (x->dtype == DT_STRING) return str_eq(tstring_str(&tensor_str(x)[i]), tstring_str(&tensor_str(y)[j]));
    if (x->dtype == DT_FLOAT) return tensor_f32(x)[i] == tensor_f32(y)[j];
    if (x->dtype == DT_DOUBLE) return tensor_f64(x)[i] == tensor_f64(y)[j];
    return memcmp(element_at(x, i), element_at(y, j), dtype_size(x->dtype)) == 0;
}

/* Levenshtein's distance of values [a, a_end) and [b, b_end). */
static int64_t distance(const Tensor *x, int64_t a, int64_t a_end, const Tensor *y, int64_t b, int64_t b_end) {
    int64_t m = b_end - b, *row = xmalloc((size_t)(m + 1) * sizeof *row);
    for (int64_t j = 0; j <= m; j++) row[j] = j;
    for (int64_t i = a; i < a_end; i++) {
        int64_t diagonal = row[0]++;
        for (int64_t j = 1; j <= m; j++) {
            int64_t best = diagonal + !same_element(x, i, y, b + j - 1);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    int64_t result = row[m];
    free(row);
    return result;
}

static int64_t group_end(const SparseView *v, int64_t from, int rank) {
    int64_t to = from + 1;
    while (to < v->nnz && sparse_compare(v->indices + from * (rank + 1), v->indices + to * (rank + 1), rank) == 0) to++;
    return to;
}

static Error *distance_shape(const Tensor *shape) {
    for (int64_t i = 0; i < shape->count; i++) {
        if (index_at(shape, i) < 0) return error_invalid("Dimension %lld must be >= 0", (long long)index_at(shape, i));
    }
    return NULL;
}

static Error *distance_views(KernelContext *k, SparseView *h, SparseView *t) {
    const Tensor *of_h = k->in[2], *of_t = k->in[5];
    for (int i = 0; i < 6; i += 3) {
        const Shape *indices = &k->in[i]->shape, *values = &k->in[i + 1]->shape, *size = &k->in[i + 2]->shape;
        const char *name = i ? "truth" : "hypothesis";
        if (indices->rank != 2) return error_invalid("%s_indices should be a matrix, but got shape: %s", name, shape_text(indices).text);
        if (values->rank != 1) return error_invalid("%s_values should be a vector, but got shape: %s", name, shape_text(values).text);
        if (size->rank != 1) return error_invalid("%s_shape should be a vector, but got shape: %s", name, shape_text(size).text);
        if (i && of_t->count < 2) return error_invalid("Input SparseTensors must have rank at least 2, but truth_shape rank is: %lld", (long long)of_t->count);
        if (k->in[i + 2]->count != indices->dims[1])
            return error_invalid("Expected %s_shape.NumElements == #cols(%s_indices), their shapes are: %s and %s", name, name,
                                 shape_text(&k->in[i + 2]->shape).text, shape_text(indices).text);
        if (sparse_counts_differ(k->in[i], k->in[i + 1]))
            return error_invalid("Expected %s_values.NumElements == #rows(%s_indices), their shapes are: %s and %s", name, name, shape_text(&k->in[i + 1]->shape).text,
                                 shape_text(indices).text);
    }
    if (of_h->count != of_t->count)
        return error_invalid("Expected truth and hypothesis to have matching ranks, but their shapes are: %s and %s",
                             shape_text(&of_t->shape).text, shape_text(&of_h->shape).text);
    Error *err = distance_shape(of_h);
    if (!err) err = distance_shape(of_t);
    if (!err) err = sparse_view("hypothesis_", k->in[0], k->in[1], of_h, h);
    if (!err) err = sparse_view("truth_", k->in[3], k->in[4], of_t, t);
    return err;
}

static Error *run_edit_distance(KernelContext *k) {
    bool normalize = ((const DistanceState *)k->state)->normalize;
    SparseView h, t;
    Error *err = distance_views(k, &h, &t);
    if (err) return err;
    int rank = h.shape.rank - 1;
    Shape shape = {.rank = rank};
    for (int d = 0; d < rank; d++)
        shape.dims[d] = h.shape.dims[d] > t.shape.dims[d] ? h.shape.dims[d] : t.shape.dims[d];
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    memset(out->data, 0, tensor_bytes(out));
    for (int64_t i = 0, j = 0; i < h.nnz || j < t.nnz;) {
        const int64_t *x = h.indices + i * (rank + 1), *y = t.indices + j * (rank + 1);
        int order = i == h.nnz ? 1 : j == t.nnz ? -1 : sparse_compare(x, y, rank);
        int64_t i_end = order <= 0 ? group_end(&h, i, rank) : i, j_end = order >= 0 ? group_end(&t, j, rank) : j,
                flat = 0;
        for (int d = 0; d < rank; d++) /* of what a client gave: may wrap */
            flat = (int64_t)((uint64_t)flat * (uint64_t)shape.dims[d] + (uint64_t)(order <= 0 ? x : y)[d]);
        if (flat < 0 || flat >= out->count)
            return error_internal(
                "Got an inner product %lld which would require writing to outside of the buffer for the output tensor (max elements %lld)",
                (long long)flat, (long long)out->count);
        float value = (float)distance(h.values, i, i_end, t.values, j, j_end);
        if (normalize) value = j_end > j ? value / (float)(j_end - j) : INFINITY;
        tensor_f32(out)[flat] = value;
        i = i_end;
        j = j_end;
    }
    return NULL;
}

#define SETS(run_fn, init_fn) .run = run_fn, .state_size = sizeof(SetState), .init = init_fn

const KernelDef set_ops_cpu[] = {
    {"DenseToDenseSetOperation", SETS(run_dense_dense, set_init)},
    {"DenseToSparseSetOperation", SETS(run_dense_sparse, set_init)},
    {"SparseToSparseSetOperation", SETS(run_sparse_sparse, set_init)},
    {"SetSize", SETS(run_size, size_init)},
    {"EditDistance", .run = run_edit_distance, .state_size = sizeof(DistanceState), .init = distance_init},
    {0},
};
