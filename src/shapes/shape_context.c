/* shape_context.c: what rules say of shapes, dimensions, inputs and attributes. */
#include "shapes/shape_context.h"

#include <stdlib.h>

#include "base/memory.h"

void ctx_fail(ShapeContext *c, const char *fmt, ...) {
    if (c->err) return;
    va_list args;
    va_start(args, fmt);
    c->err = error_newv(CODE_INVALID_ARGUMENT, fmt, args);
    va_end(args);
}

/* ---- Shapes ---- */

PartialShape shape_unknown_dims(int rank) {
    if (rank > SHAPE_MAX_RANK) return SHAPE_UNKNOWN;
    PartialShape s = {.rank = rank};
    for (int i = 0; i < rank; i++) s.dims[i] = DIM_UNKNOWN;
    return s;
}

PartialShape ctx_rank(ShapeContext *c, PartialShape s, int rank) {
    if (s.rank == rank) return s;
    if (s.rank >= 0) ctx_fail(c, "Shape must be rank %d but is rank %d", rank, s.rank);
    return shape_unknown_dims(rank);
}

PartialShape ctx_rank_at_least(ShapeContext *c, PartialShape s, int rank) {
    if (s.rank < 0 || s.rank >= rank) return s;
    ctx_fail(c, "Shape must be at least rank %d but is rank %d", rank, s.rank);
    return SHAPE_UNKNOWN;
}

PartialShape ctx_rank_at_most(ShapeContext *c, PartialShape s, int rank) {
    if (s.rank <= rank) return s;
    ctx_fail(c, "Shape must be at most rank %d but is rank %d", rank, s.rank);
    return SHAPE_UNKNOWN;
}

PartialShape ctx_in_rank(ShapeContext *c, int i, int rank) {
    return ctx_rank(c, c->in[i], rank);
}

void ctx_want_scalar(ShapeContext *c, int i) {
    ctx_rank(c, c->in[i], 0);
}

PartialShape ctx_merge(ShapeContext *c, PartialShape a, PartialShape b) {
    if (a.rank < 0) return b;
    if (b.rank < 0) return a;
    if (a.rank != b.rank) {
        ctx_fail(c, "Shapes must be equal rank, but are %d and %d", a.rank, b.rank);
        return SHAPE_UNKNOWN;
    }
    PartialShape s = a;
    for (int i = 0; i < a.rank; i++) {
        if (a.dims[i] == b.dims[i] || b.dims[i] < 0) continue;
        if (a.dims[i] >= 0) {
            char *x = shape_str(&a), *y = shape_str(&b);
            ctx_fail(c, "Dimension %d in both shapes must be equal, but are %lld and %lld. Shapes are %s and %s.", i, (long long)a.dims[i],
                     (long long)b.dims[i], x, y);
            free(x);
            free(y);
            return SHAPE_UNKNOWN;
        }
        s.dims[i] = b.dims[i];
    }
    return s;
}

PartialShape ctx_merge_prefix(ShapeContext *c, PartialShape s, PartialShape prefix) {
    if (s.rank < 0 || prefix.rank < 0) return s;
    s = ctx_rank_at_least(c, s, prefix.rank);
    for (int i = 0; i < prefix.rank && i < s.rank; i++) s.dims[i] = ctx_merge_dim(c, s.dims[i], prefix.dims[i]);
    return s;
}

PartialShape ctx_concat(ShapeContext *c, PartialShape a, PartialShape b) {
    (void)c;
    if (a.rank < 0 || b.rank < 0 || a.rank + b.rank > SHAPE_MAX_RANK) return SHAPE_UNKNOWN;
    for (int i = 0; i < b.rank; i++) a.dims[a.rank++] = b.dims[i];
    return a;
}

PartialShape ctx_sub(ShapeContext *c, PartialShape s, int from, int to) {
    if (s.rank < 0) return s;
    int start = from < 0 ? from + s.rank : from, end = to < 0 ? to + s.rank : to;
    if (start > s.rank) start = s.rank;
    if (end > s.rank) end = s.rank;
    if (start < 0 || end < 0 || start > end) {
        ctx_fail(c, "Subshape must have computed start <= end, but is %d and %d (computed from start %d and end %d over shape with rank %d)", start, end, from,
                 to, s.rank);
        return SHAPE_UNKNOWN;
    }
    PartialShape part = {.rank = end - start};
    for (int i = start; i < end; i++) part.dims[i - start] = s.dims[i];
    return part;
}

PartialShape ctx_replace(ShapeContext *c, PartialShape s, int axis, int64_t dim) {
    if (s.rank < 0) return s;
    int at = axis < 0 ? axis + s.rank : axis;
    if (at < 0 || at >= s.rank)
        ctx_fail(c, "Out of range dim_index %d for shape with %d dimensions", axis, s.rank);
    else
        s.dims[at] = dim;
    return s;
}

static int64_t broadcast_dim(ShapeContext *c, int64_t a, int64_t b) {
    if (a >= 0 && b >= 0) return a == 1 ? b : b == 1 ? a : ctx_merge_dim(c, a, b);
    if (a > 1 || b > 1) return a > b ? a : b;
    return DIM_UNKNOWN;
}

PartialShape ctx_broadcast(ShapeContext *c, PartialShape a, PartialShape b) {
    if (a.rank < 0 || b.rank < 0) return SHAPE_UNKNOWN;
    PartialShape s = {.rank = a.rank > b.rank ? a.rank : b.rank};
    for (int i = 0; i < s.rank; i++) {
        int ai = i - (s.rank - a.rank), bi = i - (s.rank - b.rank);
        s.dims[i] = broadcast_dim(c, ai < 0 ? 1 : a.dims[ai], bi < 0 ? 1 : b.dims[bi]);
    }
    return s;
}

int shape_axis(int64_t axis) {
    return (int)(axis < -SHAPE_END ? -SHAPE_END : axis > SHAPE_END ? SHAPE_END : axis);
}

int64_t shape_dim(PartialShape s, int axis) {
    if (s.rank < 0) return DIM_UNKNOWN;
    int at = axis < 0 ? axis + s.rank : axis;
    return at < 0 || at >= s.rank ? DIM_UNKNOWN : s.dims[at];
}

bool shape_is_full(PartialShape s) {
    for (int i = 0; i < s.rank; i++)
        if (s.dims[i] < 0) return false;
    return s.rank >= 0;
}

int64_t shape_elements(PartialShape s) {
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++)
        if (s.dims[i] == 0) return 0;
    if (!shape_is_full(s)) return DIM_UNKNOWN;
    for (int i = 0; i < s.rank; i++)
        if (__builtin_mul_overflow(n, s.dims[i], &n)) return DIM_UNKNOWN;
    return n;
}

/* ---- Dimensions ---- */

int64_t ctx_merge_dim(ShapeContext *c, int64_t a, int64_t b) {
    if (a < 0) return b;
    if (b >= 0 && a != b) ctx_fail(c, "Dimensions must be equal, but are %lld and %lld", (long long)a, (long long)b);
    return a;
}

int64_t ctx_dim_is(ShapeContext *c, int64_t dim, int64_t value) {
    if (dim >= 0 && dim != value) ctx_fail(c, "Dimension must be %lld but is %lld", (long long)value, (long long)dim);
    return value;
}

int64_t ctx_dim_add(ShapeContext *c, int64_t a, int64_t b) {
    int64_t sum = DIM_UNKNOWN;
    if (a < 0 || b < 0) return DIM_UNKNOWN;
    if (__builtin_add_overflow(a, b, &sum)) {
        ctx_fail(c, "Dimension size overflow from adding %lld and %lld", (long long)a, (long long)b);
        return DIM_UNKNOWN;
    }
    return sum;
}

int64_t ctx_dim_sub(ShapeContext *c, int64_t a, int64_t b) {
    if (a < 0 || b < 0) return b == 0 ? a : DIM_UNKNOWN;
    if (a < b) ctx_fail(c, "Negative dimension size caused by subtracting %lld from %lld", (long long)b, (long long)a);
    return a < b ? DIM_UNKNOWN : a - b;
}

int64_t ctx_dim_mul(ShapeContext *c, int64_t a, int64_t b) {
    int64_t product = DIM_UNKNOWN;
    if (a == 0 || b == 0) return 0;
    if (a < 0 || b < 0) return DIM_UNKNOWN;
    if (__builtin_mul_overflow(a, b, &product)) {
        ctx_fail(c, "Negative dimension size caused by overflow when multiplying %lld and %lld", (long long)a, (long long)b);
        return DIM_UNKNOWN;
    }
    return product;
}

int64_t ctx_dim_div(ShapeContext *c, int64_t a, int64_t b, bool must_divide) {
    if (b == 1) return a;
    if (b == 0) ctx_fail(c, "Divisor must be positive but is 0");
    if (a < 0 || b <= 0) return DIM_UNKNOWN;
    if (must_divide && a % b) ctx_fail(c, "Dimension size must be evenly divisible by %lld but is %lld", (long long)b, (long long)a);
    return a / b;
}

/* ---- Inputs and outputs ---- */

void ctx_out(ShapeContext *c, int i, PartialShape s) {
    if (i < c->out_count) c->out[i] = s;
}

void ctx_out_all(ShapeContext *c, PartialShape s) {
    for (int i = 0; i < c->out_count; i++) c->out[i] = s;
}

const Tensor *ctx_value(ShapeContext *c, int i) {
    return shapes_constant(c->info, c->node->inputs[i]);
}

static bool is_index(const Tensor *t) {
    return t && (t->dtype == DT_INT32 || t->dtype == DT_INT64);
}

bool ctx_int(ShapeContext *c, int i, int64_t *out) {
    const Tensor *t = ctx_value(c, i);
    if (!is_index(t) || t->count != 1) return false;
    *out = tensor_index(t, 0);
    return true;
}

int64_t ctx_dim_of(ShapeContext *c, int i) {
    int64_t size;
    const Tensor *t = ctx_value(c, i);
    if (t && t->shape.rank != 0) ctx_fail(c, "Input must be scalar but has rank %d", t->shape.rank);
    if (!t || !ctx_int(c, i, &size)) return DIM_UNKNOWN;
    if (size < 0) ctx_fail(c, "Dimension size, given by scalar input %d, must be non-negative but is %lld", i, (long long)size);
    return size < 0 ? DIM_UNKNOWN : size;
}

static PartialShape shape_from_value(ShapeContext *c, const Tensor *t) {
    if (t->shape.rank != 1) ctx_fail(c, "Input tensor must be rank 1, but was rank %d.", t->shape.rank);
    if (!is_index(t)) ctx_fail(c, "Input tensor must be int32 or int64, but was %s", dtype_name(t->dtype));
    if (c->err || t->count > SHAPE_MAX_RANK) return SHAPE_UNKNOWN;
    PartialShape s = {.rank = (int)t->count};
    for (int i = 0; i < s.rank; i++) {
        s.dims[i] = tensor_index(t, i);
        if (s.dims[i] < -1) ctx_fail(c, "Invalid value in tensor used for shape: %lld", (long long)s.dims[i]);
        if (s.dims[i] < -1) s.dims[i] = DIM_UNKNOWN;
    }
    return s;
}

PartialShape ctx_shape_of(ShapeContext *c, int i) {
    PartialShape vector = ctx_in_rank(c, i, 1), partial;
    const Tensor *t = ctx_value(c, i);
    if (t) return shape_from_value(c, t);
    shapes_constant_as_shape(c->info, c->node->inputs[i], &partial);
    if (partial.rank >= 0) return partial;
    return vector.dims[0] < 0 || vector.dims[0] > SHAPE_MAX_RANK ? SHAPE_UNKNOWN : shape_unknown_dims((int)vector.dims[0]);
}

PartialShape ctx_shape_of_or_scalar(ShapeContext *c, int i) {
    PartialShape s = ctx_rank_at_most(c, c->in[i], 1);
    const Tensor *t = ctx_value(c, i);
    if (s.rank == 0) {
        if (!t) ctx_fail(c, "Shape must be rank 1 but is rank 0");
        else if (is_index(t) && tensor_index(t, 0) != -1)
            ctx_fail(c, "Input tensor must be rank 1, or if its rank 0 it must have value -1 (representing an unknown shape).  Saw value: %lld",
                     (long long)tensor_index(t, 0));
        return SHAPE_UNKNOWN;
    }
    return s.rank < 0 && !t ? SHAPE_UNKNOWN : ctx_shape_of(c, i);
}

/* ---- Attributes ---- */

int ctx_arg_size(ShapeContext *c, const ArgInfo *arg) {
    Str value;
    int64_t n = 1;
    Str attr = arg->type_list_attr.len ? arg->type_list_attr : arg->number_attr;
    if (!attr.len) return 1;
    char *name = str_dup(attr);
    bool found = node_attr(c->node, name, &value);
    free(name);
    if (!found) return 0;
    if (arg->type_list_attr.len) {
        int listed = attr_list_types(value, NULL, 0);
        return listed < 0 ? 0 : listed;
    }
    return attr_int(value, &n) && n > 0 ? (int)n : 0;
}

void ctx_arg(ShapeContext *c, const char *name, int *first, int *count) {
    const OpInfo *op = c->node->info;
    int at = 0;
    *first = *count = 0;
    for (int i = 0; i < op->input_count; i++) {
        int size = ctx_arg_size(c, &op->inputs[i]);
        if (at + size > c->in_count) size = c->in_count - at;
        if (str_is(op->inputs[i].name, name)) {
            *first = at;
            *count = size;
            return;
        }
        at += size;
    }
}

static void keep(ShapeContext *c, Error *err) {
    if (c->err)
        error_free(err);
    else
        c->err = err;
}

int64_t ctx_attr_int(ShapeContext *c, const char *name) {
    int64_t v = 0;
    keep(c, node_attr_int(c->node, name, &v));
    return v;
}

bool ctx_attr_bool(ShapeContext *c, const char *name) {
    bool v = false;
    keep(c, node_attr_bool(c->node, name, &v));
    return v;
}

Str ctx_attr_str(ShapeContext *c, const char *name) {
    Str v = STR("");
    keep(c, node_attr_string(c->node, name, &v));
    return v;
}

DataType ctx_attr_type(ShapeContext *c, const char *name) {
    DataType v = DT_INVALID;
    keep(c, node_attr_type(c->node, name, &v));
    return v;
}

PartialShape ctx_attr_shape(ShapeContext *c, const char *name) {
    PartialShape v = SHAPE_UNKNOWN;
    keep(c, node_attr_shape(c->node, name, &v));
    return v;
}

int ctx_attr_ints(ShapeContext *c, const char *name, int64_t *out, int max) {
    Str value;
    int n = node_attr(c->node, name, &value) ? attr_list_ints(value, out, max) : 0;
    return n < 0 ? 0 : n;
}

int ctx_attr_shapes(ShapeContext *c, const char *name, PartialShape *out, int max) {
    Str value;
    int n = node_attr(c->node, name, &value) ? attr_list_shapes(value, out, max) : 0;
    return n < 0 ? 0 : n;
}

int ctx_axis(ShapeContext *c, int64_t axis, int rank) {
    if (axis >= -rank && axis < rank) return (int)(axis < 0 ? axis + rank : axis);
    ctx_fail(c, "Dimension %lld is not in the interval [%d, %d).", (long long)axis, -rank, rank);
    return 0;
}

/* ---- Rules that many ops share ---- */

void rule_same(ShapeContext *c) {
    ctx_out(c, 0, c->in[0]);
}

void rule_scalar(ShapeContext *c) {
    ctx_out_all(c, SHAPE_SCALAR);
}

void rule_unknown(ShapeContext *c) {
    ctx_out_all(c, SHAPE_UNKNOWN);
}

void rule_broadcast(ShapeContext *c) {
    ctx_out(c, 0, ctx_broadcast(c, c->in[0], c->in[1]));
}

void rule_merge_all(ShapeContext *c) {
    PartialShape s = SHAPE_UNKNOWN;
    for (int i = 0; i < c->in_count; i++) s = ctx_merge(c, s, c->in[i]);
    ctx_out(c, 0, s);
}
