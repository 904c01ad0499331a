/* scatter.c: rows of variables and tensors changed by index: Scatter*, ScatterNd*, TensorScatter*. */
#include "kernels/indexed_rows.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef scatter_ops[] = {
    {"ScatterAdd", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     0},
    {"ScatterSub", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     0},
    {"ScatterMul", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     0},
    {"ScatterDiv", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     0},
    {"ScatterMin", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: {half, bfloat16, float, double, int32, int64}; Tindices: {int32, int64}; use_locking: bool = false", 0},
    {"ScatterMax", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: {half, bfloat16, float, double, int32, int64}; Tindices: {int32, int64}; use_locking: bool = false", 0},
    {"ScatterUpdate", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: type; Tindices: {int32, int64}; use_locking: bool = true", 0},
    {"ResourceScatterAdd", "resource: resource, indices: Tindices, updates: dtype ->",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}",
     OP_STATEFUL},
    {"ResourceScatterSub", "resource: resource, indices: Tindices, updates: dtype ->",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}",
     OP_STATEFUL},
    {"ResourceScatterMul", "resource: resource, indices: Tindices, updates: dtype ->",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}",
     OP_STATEFUL},
    {"ResourceScatterDiv", "resource: resource, indices: Tindices, updates: dtype ->",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}",
     OP_STATEFUL},
    {"ResourceScatterMin", "resource: resource, indices: Tindices, updates: dtype ->",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}",
     OP_STATEFUL},
    {"ResourceScatterMax", "resource: resource, indices: Tindices, updates: dtype ->",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}",
     OP_STATEFUL},
    {"ResourceScatterUpdate", "resource: resource, indices: Tindices, updates: dtype ->",
     "dtype: type; Tindices: {int32, int64}", OP_STATEFUL},
    {"ScatterNd", "indices: Tindices, updates: T, shape: Tindices -> output: T",
     "T: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''", 0},
    {"ScatterNdNonAliasingAdd", "input: T, indices: Tindices, updates: T -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64, bool}; Tindices: {int32, int64}; bad_indices_policy: string "
     "= ''",
     0},
    {"TensorScatterAdd", "tensor: T, indices: Tindices, updates: T -> output: T",
     "T: type; Tindices: {int32, int64}; bad_indices_policy: string = ''", 0},
    {"TensorScatterSub", "tensor: T, indices: Tindices, updates: T -> output: T",
     "T: type; Tindices: {int32, int64}; bad_indices_policy: string = ''", 0},
    {"TensorScatterMin", "tensor: T, indices: Tindices, updates: T -> output: T",
     "T: type; Tindices: {int32, int64}; bad_indices_policy: string = ''", 0},
    {"TensorScatterMax", "tensor: T, indices: Tindices, updates: T -> output: T",
     "T: type; Tindices: {int32, int64}; bad_indices_policy: string = ''", 0},
    {"TensorScatterUpdate", "tensor: T, indices: Tindices, updates: T -> output: T",
     "T: type; Tindices: {int16, int32, int64, uint16}; bad_indices_policy: string = ''", 0},
    {"ScatterNdAdd", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "bad_indices_policy: string = ''",
     0},
    {"ScatterNdSub", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "bad_indices_policy: string = ''",
     0},
    {"ScatterNdMin", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "bad_indices_policy: string = ''",
     0},
    {"ScatterNdMax", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "bad_indices_policy: string = ''",
     0},
    {"ScatterNdUpdate", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     "T: type; Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = ''", 0},
    {"ResourceScatterNdAdd", "ref: resource, indices: Tindices, updates: T ->",
     "T: type; Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = ''", OP_STATEFUL},
    {"ResourceScatterNdSub", "ref: resource, indices: Tindices, updates: T ->",
     "T: type; Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = ''", OP_STATEFUL},
    {"ResourceScatterNdMin", "ref: resource, indices: Tindices, updates: T ->",
     "T: type; Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = ''", OP_STATEFUL},
    {"ResourceScatterNdMax", "ref: resource, indices: Tindices, updates: T ->",
     "T: type; Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = ''", OP_STATEFUL},
    {"ResourceScatterNdUpdate", "ref: resource, indices: Tindices, updates: T ->",
     "T: type; Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = ''", OP_STATEFUL},
    {0},
};

typedef enum ScatterKind {
    SCATTER_ADD,
    SCATTER_SUB,
    SCATTER_MUL,
    SCATTER_DIV,
    SCATTER_MIN,
    SCATTER_MAX,
    SCATTER_UPDATE
} ScatterKind;

typedef struct ScatterState {
    ScatterKind kind;
    bool ignore_bad; /* bad indices are skipped */
} ScatterState;

static Error *scatter_init(const Node *node, void *state) {
    static const char *const endings[] = {"Add", "Sub", "Mul", "Div", "Min", "Max", "Update"};
    ScatterState *s = state;
    s->kind = SCATTER_ADD; /* ScatterNd itself sums */
    for (int i = 0; i < 7; i++) {
        if (str_ends(node->op, str_of(endings[i]))) s->kind = (ScatterKind)i;
    }
    if (!op_attr(node->info, STR("bad_indices_policy"))) return NULL;
    Str policy;
    Error *err = node_attr_string(node, "bad_indices_policy", &policy);
    if (!err) s->ignore_bad = str_is(policy, "IGNORE");
    return err;
}

/* How a row is changed: by arithmetic or, when fn is NULL, by copying. */
typedef struct RowChange {
    RowFn *fn;
    ElementKind element;
    char *to;
    const char *from;
    int64_t width;
    bool same_row; /* one row of updates serves all */
} RowChange;

/* The sum of strings is one after the other. */
static void join_row(void *to, const void *from, int64_t n) {
    TString *z = to;
    const TString *x = from;
    for (int64_t i = 0; i < n; i++) {
        StrBuf b = {0};
        strbuf_add(&b, tstring_str(&z[i]));
        strbuf_add(&b, tstring_str(&x[i]));
        tstring_set(&z[i], (Str){b.ptr, b.len});
        strbuf_clear(&b);
    }
}

/* The difference of bools is whether they differ. */
static void differ_row(void *to, const void *from, int64_t n) {
    bool *z = to;
    const bool *x = from;
    for (int64_t i = 0; i < n; i++) z[i] = z[i] != x[i];
}

static Error *row_change_init(RowChange *c, ScatterKind kind, Tensor *to, const Tensor *updates, int64_t width) {
    *c = (RowChange){.element = element_kind(to->dtype), .to = to->data, .from = updates->data, .width = width};
    if (kind == SCATTER_UPDATE) return NULL;
    const RowMath *m = row_math(to->dtype);
    if (m) {
        RowFn *const fns[] = {m->add, m->sub, m->mul, m->div, m->min, m->max};
        c->fn = fns[kind];
    } else if (to->dtype == DT_STRING && kind == SCATTER_ADD) {
        c->fn = join_row;
    }
    if (to->dtype == DT_BOOL && kind == SCATTER_SUB) c->fn = differ_row;
    return c->fn ? NULL : error_unimplemented("Scatter of type %s with arithmetic", dtype_name(to->dtype));
}

static void change_row(void *arg, int64_t row, int64_t update) {
    const RowChange *c = arg;
    char *to = c->to + (size_t)(row * c->width) * c->element.size;
    const char *from = c->from + (size_t)(c->same_row ? 0 : update * c->width) * c->element.size;
    if (c->fn) {
        c->fn(to, from, c->width);
    } else {
        copy_elements(c->element, to, from, c->width);
    }
}

/* ---- Scatter: one index a row. */

static Error *check_rows(const Tensor *params, const Tensor *indices, const Tensor *updates, bool by_handle) {
    const Shape *p = &params->shape, *i = &indices->shape, *u = &updates->shape;
    if (p->rank < 1 && (!by_handle || u->rank == i->rank - 1)) return error_invalid("params must be at least 1-D, got shape %s", shape_text(p).text);
    if (u->rank == 0 && p->rank > 0) return NULL;
    bool prefix = u->rank >= i->rank, ok = u->rank == i->rank + p->rank - 1;
    for (int d = 0; prefix && d < i->rank; d++) prefix = u->dims[d] == i->dims[d];
    for (int d = 1; prefix && ok && d < p->rank; d++) ok = u->dims[i->rank + d - 1] == p->dims[d];
    if (prefix && ok) return NULL;
    if (!prefix && by_handle && u->rank == i->rank + p->rank - 1)
        return error_invalid("The shape of indices (%s) must be a prefix of the shape of updates (%s)", shape_text(i).text,
                             shape_text(u).text);
    return error_invalid(
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape "
        "%s, indices.shape %s, params.shape %s",
        shape_text(u).text, shape_text(i).text, shape_text(p).text);
}

static bool is_integer(DataType t) {
    return (t >= DT_INT32 && t <= DT_INT8) || t == DT_INT64 || t == DT_UINT16 || t == DT_UINT32 || t == DT_UINT64;
}

/* Whether a divisor is 0 and the quotient would be no number. */
static bool divides_by_zero(ScatterKind kind, const Tensor *updates) {
    if (kind != SCATTER_DIV || !is_integer(updates->dtype)) return false;
    size_t size = dtype_size(updates->dtype);
    const char *at = updates->data;
    uint64_t number = 0;
    for (int64_t i = 0; i < updates->count; i++, at += size) {
        memcpy(&number, at, size);
        if (number == 0) return true;
    }
    return false;
}

static Error *scatter_rows(KernelContext *k, Tensor *params, const Tensor *indices, const Tensor *updates) {
    const ScatterState *s = k->state;
    bool by_handle = str_starts(k->node->op, STR("Resource"));
    if (by_handle && indices->count == 0) return NULL; /* then TensorFlow looks at no shape */
    Error *err = check_rows(params, indices, updates, by_handle);
    if (!err && divides_by_zero(s->kind, updates)) err = error_invalid("updates must not contain 0");
    if (err) return err;
    int64_t rows = params->shape.dims[0], width = shape_prod(&params->shape, 1, params->shape.rank);
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t row = index_at(indices, i);
        if (row < 0 || row >= rows) return bad_index("indices", indices, i, row, rows);
    }
    RowChange c;
    err = row_change_init(&c, s->kind, params, updates, width);
    if (err) return err;
    Tensor *repeated = NULL;
    if (updates->shape.rank == 0) {
        Shape shape = shape_vector(width);
        repeated = kernel_scratch(k, updates->dtype, &shape);
        if (!repeated) return NULL;
        copy_fill(NULL, c.element, repeated->data, updates->data, width);
        c.from = repeated->data;
        c.same_row = true;
    }
    IndexedRows changes = {.indices = indices->data, .wide = indices->dtype == DT_INT64, .count = indices->count, .first = c.to,
                           .row_bytes = (size_t)width * c.element.size, .fn = change_row, .arg = &c};
    indexed_rows_run(&changes, dtype_is_plain(params->dtype) ? k->pool : NULL);
    tensor_unref(repeated);
    return NULL;
}

/* ---- ScatterNd: several indices name a place. */

static Error *prefix_mismatch(const Shape *i, const Shape *u, int outer) {
    return error_invalid("Dimensions [0,%d) of indices[shape=%s] must match dimensions [0,%d) of updates[shape=%s]", outer,
                         shape_text(i).text, outer, shape_text(u).text);
}

static Error *first_mismatch(const Shape *i, const Shape *u) {
    return error_invalid("Dimensions [0,1) of indices[shape=%s] = %lld must match dimensions [0,1) of updates[shape=%s] = %lld",
                         shape_text(i).text, (long long)i->dims[0], shape_text(u).text, (long long)(u->rank ? u->dims[0] : 0));
}

static Error *suffix_mismatch(const Shape *to, int depth, const Shape *u, int from) {
    return error_invalid("Dimensions [%d,%d) of input[shape=%s] must match dimensions [%d,%d) of updates[shape=%s]", depth,
                         to->rank, shape_text(to).text, from, u->rank, shape_text(u).text);
}

/* u[outer..] is to[depth..]. */
static bool fits(const Shape *to, int depth, const Shape *u, int outer) {
    bool ok = depth <= to->rank && u->rank == outer + to->rank - depth;
    for (int d = depth; ok && d < to->rank; d++) ok = u->dims[outer + d - depth] == to->dims[d];
    return ok;
}

static bool starts_as(const Shape *u, const Shape *i, int outer) {
    bool ok = u->rank >= outer;
    for (int d = 0; ok && d < outer; d++) ok = u->dims[d] == i->dims[d];
    return ok;
}

/* Indices and updates of the ops that make a tensor. `copies`: from another one. */
static Error *check_made(const Shape *to, const Shape *i, const Shape *u, int depth, bool copies) {
    int outer = i->rank - 1;
    if (!starts_as(u, i, outer))
        return !copies ? prefix_mismatch(i, u, outer)
                       : error_invalid("Outer dimensions of indices and update must match. Indices shape: %s, updates shape:%s",
                                       shape_text(i).text, shape_text(u).text);
    bool same_rank = depth <= to->rank && u->rank == outer + to->rank - depth;
    if (copies && !same_rank)
        return error_invalid("Inner dimensions of output shape must match inner dimensions of updates shape. Output: %s updates: %s",
                             shape_text(to).text, shape_text(u).text);
    if (!fits(to, depth, u, outer)) {
        if (!copies) return suffix_mismatch(to, depth, u, outer);
        int inner = to->rank - depth;
        return error_invalid("The inner %d dimensions of output.shape=%s must match the inner %d dimensions of updates.shape=%s", inner,
                             shape_text(to).text, inner, shape_text(u).text);
    }
    return i->rank == 1 && i->dims[0] != u->dims[0] ? first_mismatch(i, u) : NULL;
}

/* Indices and updates of the ops that change what is there. */
static Error *check_changed(const Tensor *to, const Tensor *indices, const Tensor *updates, int depth, int outer) {
    const Shape *i = &indices->shape, *u = &updates->shape;
    if (to->shape.rank < 1) return error_invalid("Output must be at least 1-D, got shape: %s", shape_text(&to->shape).text);
    bool empty = to->count == 0 || indices->count == 0 || updates->count == 0;
    if (empty && (indices->count > 0 || updates->count > 0))
        return error_invalid("Indices and updates specified for empty output.  indices shape: %s", shape_text(i).text);
    if (i->rank < 1) return prefix_mismatch(i, u, outer);
    if (u->rank < 1 || i->dims[0] != u->dims[0]) return first_mismatch(i, u);
    if (u->rank < outer) return prefix_mismatch(i, u, outer);
    if (depth > to->shape.rank || u->rank != outer + to->shape.rank - depth) return suffix_mismatch(&to->shape, depth, u, depth);
    if (!starts_as(u, i, outer)) return prefix_mismatch(i, u, outer);
    return fits(&to->shape, depth, u, outer) ? NULL : suffix_mismatch(&to->shape, depth, u, depth);
}

/* The row that indices[at] names; -1 when it is out of range. */
static int64_t nd_row(const Shape *to, const Tensor *indices, int64_t at, int depth) {
    int64_t row = 0;
    for (int d = 0; d < depth; d++) {
        int64_t index = index_at(indices, at * depth + d);
        if (index < 0 || index >= to->dims[d]) return -1;
        row = row * to->dims[d] + index;
    }
    return row;
}

static Error *scatter_nd(KernelContext *k, Tensor *to, const Tensor *indices, const Tensor *updates) {
    const ScatterState *s = k->state;
    const Shape *shape = &indices->shape;
    bool makes = str_is(k->node->op, "ScatterNd"), copies = str_starts(k->node->op, STR("TensorScatter"));
    int64_t last = shape->rank > 1 || (shape->rank == 1 && (makes || copies)) ? shape->dims[shape->rank - 1] : 1;
    int depth = last > SHAPE_MAX_RANK ? SHAPE_MAX_RANK + 1 : (int)last;
    Error *err = makes || copies ? check_made(&to->shape, shape, &updates->shape, depth, copies)
                                 : check_changed(to, indices, updates, depth, shape->rank > 1 ? shape->rank - 1 : 1);
    if (err) return err;
    /* A single vector names one place, by its first number where something is changed. */
    int64_t count = depth > 0 && indices->count == 0 ? 0 : shape_prod(shape, 0, shape->rank - 1);
    for (int64_t i = 0; i < count && !s->ignore_bad; i++) {
        if (nd_row(&to->shape, indices, i, depth) < 0) return bad_nd_index(indices, i, depth, "shape", &to->shape);
    }
    RowChange c;
    err = row_change_init(&c, s->kind, to, updates, shape_prod(&to->shape, depth, to->shape.rank));
    if (err) return err;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = nd_row(&to->shape, indices, i, depth);
        if (row >= 0) change_row(&c, row, i);
    }
    return NULL;
}

/* ---- On variables, by reference or handle. */

typedef Error *ScatterFn(KernelContext *k, Tensor *to, const Tensor *indices, const Tensor *updates);

static Error *on_variable(KernelContext *k, ScatterFn *fn) {
    Variable *v = NULL;
    Error *err = kernel_variable(k, 0, &v);
    if (err) return err;
    pthread_mutex_lock(&v->mutex);
    err = variable_write_locked(k, 0, v, k->in[2]->dtype);
    if (!err) err = fn(k, v->value, k->in[1], k->in[2]);
    pthread_mutex_unlock(&v->mutex);
    if (!err) kernel_pass_ref(k, 0);
    resource_unref(&v->base);
    return err;
}

static Error *run_scatter(KernelContext *k) {
    return on_variable(k, scatter_rows);
}

static Error *run_scatter_nd_variable(KernelContext *k) {
    return on_variable(k, scatter_nd);
}

/* ---- On tensors. */

/* What the ops that make a tensor ask first. */
static Error *check_some(const Tensor *indices, const Tensor *updates, int64_t out_count) {
    if (indices->shape.rank < 1)
        return error_invalid("Indices shape must have rank at least one. Found:%s", shape_text(&indices->shape).text);
    if (updates->shape.rank < 1)
        return error_invalid("Updates shape must have rank at least one. Found:%s", shape_text(&updates->shape).text);
    bool nothing = indices->count == 0 && updates->count == 0;
    if (!nothing && (indices->count == 0 || updates->count == 0 || out_count == 0))
        return error_invalid("Indices and updates specified for empty output shape");
    return NULL;
}

static Error *run_scatter_nd(KernelContext *k) {
    Shape shape;
    const Tensor *dims = k->in[2];
    if (dims->shape.rank != 1 || dims->count > SHAPE_MAX_RANK)
        return error_invalid("Shape must be a vector, got shape %s", shape_text(&dims->shape).text);
    shape.rank = (int)dims->count;
    for (int d = 0; d < shape.rank; d++) shape.dims[d] = index_at(dims, d);
    Error *err = shape_check(&shape);
    if (!err) err = check_some(k->in[0], k->in[1], dims->count == 0 ? 0 : shape_count(&shape));
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    if (dtype_is_plain(out->dtype)) memset(out->data, 0, tensor_bytes(out));
    return scatter_nd(k, out, k->in[0], k->in[1]);
}

static Error *run_tensor_scatter(KernelContext *k) {
    const Tensor *in = k->in[0];
    Error *err = str_starts(k->node->op, STR("TensorScatter")) ? check_some(k->in[1], k->in[2], in->count) : NULL;
    if (err) return err;
    Tensor *out = kernel_output_from(k, 0, 0, &in->shape);
    if (!out) return NULL;
    if (out->data != in->data) elements_copy(in->dtype, out->data, in->data, in->count);
    return scatter_nd(k, out, k->in[1], k->in[2]);
}

const KernelDef scatter_cpu[] = {
    {"ScatterAdd", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init, .flags = KERNEL_REFS},
    {"ScatterSub", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init, .flags = KERNEL_REFS},
    {"ScatterMul", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init, .flags = KERNEL_REFS},
    {"ScatterDiv", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init, .flags = KERNEL_REFS},
    {"ScatterMin", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init, .flags = KERNEL_REFS},
    {"ScatterMax", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init, .flags = KERNEL_REFS},
    {"ScatterUpdate", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init,
     .flags = KERNEL_REFS},
    {"ResourceScatterAdd", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ResourceScatterSub", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ResourceScatterMul", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ResourceScatterDiv", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ResourceScatterMin", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ResourceScatterMax", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ResourceScatterUpdate", .run = run_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ScatterNd", .run = run_scatter_nd, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ScatterNdNonAliasingAdd", .run = run_tensor_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"TensorScatterAdd", .run = run_tensor_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"TensorScatterSub", .run = run_tensor_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"TensorScatterMin", .run = run_tensor_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"TensorScatterMax", .run = run_tensor_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"TensorScatterUpdate", .run = run_tensor_scatter, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ScatterNdAdd", .run = run_scatter_nd_variable, .state_size = sizeof(ScatterState), .init = scatter_init,
     .flags = KERNEL_REFS},
    {"ScatterNdSub", .run = run_scatter_nd_variable, .state_size = sizeof(ScatterState), .init = scatter_init,
     .flags = KERNEL_REFS},
    {"ScatterNdMin", .run = run_scatter_nd_variable, .state_size = sizeof(ScatterState), .init = scatter_init,
     .flags = KERNEL_REFS},
    {"ScatterNdMax", .run = run_scatter_nd_variable, .state_size = sizeof(ScatterState), .init = scatter_init,
     .flags = KERNEL_REFS},
    {"ScatterNdUpdate", .run = run_scatter_nd_variable, .state_size = sizeof(ScatterState), .init = scatter_init,
     .flags = KERNEL_REFS},
    {"ResourceScatterNdAdd", .run = run_scatter_nd_variable, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ResourceScatterNdSub", .run = run_scatter_nd_variable, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ResourceScatterNdMin", .run = run_scatter_nd_variable, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ResourceScatterNdMax", .run = run_scatter_nd_variable, .state_size = sizeof(ScatterState), .init = scatter_init},
    {"ResourceScatterNdUpdate", .run = run_scatter_nd_variable, .state_size = sizeof(ScatterState),
     .init = scatter_init},
    {0},
};
