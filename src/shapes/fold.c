/* fold.c: integer ops done while a graph is built. Anything out of the ordinary is left alone: the value is then not known. */
#include "shapes/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MAX_ELEMENTS = 4096 };

typedef struct Fold {
    const Node *node;
    Tensor *const *in;
    int output;
    Tensor *out; /* NULL: not known */
} Fold;

static bool is_integer(DataType t) {
    return t == DT_INT32 || t == DT_INT64;
}

static int64_t get(const Tensor *t, int64_t i) {
    return tensor_index(t, i);
}

static void put(Tensor *t, int64_t i, int64_t v) {
    if (t->dtype == DT_INT64)
        tensor_i64(t)[i] = v;
    else
        tensor_i32(t)[i] = (int32_t)v;
}

/* A new output; NULL when it is not one that is folded. */
static Tensor *make(Fold *f, DataType dtype, Shape shape) {
    Error *err = shape_check(&shape);
    if (err || !is_integer(dtype) || shape_count(&shape) > MAX_ELEMENTS) {
        error_free(err);
        return NULL;
    }
    err = tensor_new(dtype, &shape, &f->out);
    error_free(err);
    return f->out;
}

static DataType out_type(const Fold *f) {
    return dtype_base(f->node->output_types[f->output]);
}

static void reshape_to(Fold *f, Shape shape) {
    Error *err = shape_check(&shape);
    if (!err && shape_count(&shape) == f->in[0]->count) f->out = tensor_alias(f->in[0], f->in[0]->dtype, &shape);
    error_free(err);
}

/* ---- Element by element ---- */

typedef bool Binary(int64_t a, int64_t b, int64_t *out);

static bool add(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
static bool sub(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_sub_overflow(a, b, out);
}
static bool mul(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static bool truncate_div(int64_t a, int64_t b, int64_t *out) {
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *out = a / b;
    return true;
}
static bool floor_div(int64_t a, int64_t b, int64_t *out) {
    if (!truncate_div(a, b, out)) return false;
    *out -= a % b != 0 && (a < 0) != (b < 0);
    return true;
}
static bool truncate_mod(int64_t a, int64_t b, int64_t *out) {
    if (b == 0 || b == -1) return false;
    *out = a % b;
    return true;
}
static bool floor_mod(int64_t a, int64_t b, int64_t *out) {
    if (!truncate_mod(a, b, out)) return false;
    if (*out && (*out < 0) != (b < 0)) *out += b;
    return true;
}
static bool maximum(int64_t a, int64_t b, int64_t *out) {
    *out = a > b ? a : b;
    return true;
}
static bool minimum(int64_t a, int64_t b, int64_t *out) {
    *out = a < b ? a : b;
    return true;
}

static bool fits(DataType dtype, int64_t v) {
    return dtype == DT_INT64 || (v >= INT32_MIN && v <= INT32_MAX);
}

static void drop(Fold *f) {
    tensor_unref(f->out);
    f->out = NULL;
}

/* Both of one shape, or one of them a single element. */
static void binary(Fold *f, Binary *op) {
    const Tensor *a = f->in[0], *b = f->in[1];
    bool same = shape_eq(&a->shape, &b->shape);
    bool a_one = !same && a->count == 1 && a->shape.rank <= b->shape.rank, b_one = !same && b->count == 1 && b->shape.rank <= a->shape.rank;
    if (!is_integer(a->dtype) || a->dtype != b->dtype || (!same && !a_one && !b_one)) return;
    if (!make(f, a->dtype, a_one ? b->shape : a->shape)) return;
    for (int64_t i = 0; i < f->out->count; i++) {
        int64_t v = 0;
        if (!op(get(a, a_one ? 0 : i), get(b, b_one ? 0 : i), &v) || !fits(a->dtype, v)) {
            drop(f);
            return;
        }
        put(f->out, i, v);
    }
}

static void fold_add(Fold *f) { binary(f, add); }
static void fold_sub(Fold *f) { binary(f, sub); }
static void fold_mul(Fold *f) { binary(f, mul); }
static void fold_truncate_div(Fold *f) { binary(f, truncate_div); }
static void fold_floor_div(Fold *f) { binary(f, floor_div); }
static void fold_truncate_mod(Fold *f) { binary(f, truncate_mod); }
static void fold_floor_mod(Fold *f) { binary(f, floor_mod); }
static void fold_maximum(Fold *f) { binary(f, maximum); }
static void fold_minimum(Fold *f) { binary(f, minimum); }

static void fold_identity(Fold *f) {
    f->out = tensor_ref(f->in[f->output]);
}

static void fold_neg(Fold *f) {
    const Tensor *x = f->in[0];
    if (!is_integer(x->dtype) || !make(f, x->dtype, x->shape)) return;
    for (int64_t i = 0; i < x->count; i++) put(f->out, i, (int64_t)(0 - (uint64_t)get(x, i)));
}

static bool is_real(DataType t) {
    return t == DT_FLOAT || t == DT_DOUBLE;
}

static void cast_to_real(Fold *f, DataType to) {
    const Tensor *x = f->in[0];
    Error *err = x->count > MAX_ELEMENTS ? NULL : tensor_new(to, &x->shape, &f->out);
    error_free(err);
    for (int64_t i = 0; f->out && i < x->count; i++) {
        double v = is_integer(x->dtype) ? (double)get(x, i) : x->dtype == DT_FLOAT ? (double)tensor_f32(x)[i] : tensor_f64(x)[i];
        if (to == DT_FLOAT)
            tensor_f32(f->out)[i] = (float)v;
        else
            tensor_f64(f->out)[i] = v;
    }
}

static void fold_cast(Fold *f) {
    const Tensor *x = f->in[0];
    DataType from = x->dtype, to = out_type(f);
    if (is_real(to) && (is_integer(from) || is_real(from))) cast_to_real(f, to);
    if ((!is_integer(from) && !is_real(from) && from != DT_BOOL) || !make(f, to, x->shape)) return;
    for (int64_t i = 0; i < x->count; i++) {
        double real = from == DT_FLOAT ? (double)tensor_f32(x)[i] : from == DT_DOUBLE ? tensor_f64(x)[i] : 0;
        if (!(real > -2147483648.0 && real < 2147483648.0)) {
            drop(f);
            return;
        }
        put(f->out, i, is_integer(from) ? get(x, i) : from == DT_BOOL ? tensor_bool(x)[i] : (int64_t)real);
    }
}

/* Comparisons of two numbers, which choose between others. */
static void compare(Fold *f, bool below, bool equal, bool above) {
    if (f->in[0]->count != 1 || f->in[1]->count != 1 || f->in[0]->shape.rank || f->in[1]->shape.rank) return;
    int64_t a = get(f->in[0], 0), b = get(f->in[1], 0);
    f->out = tensor_scalar_bool(a < b ? below : a > b ? above : equal);
}

static void fold_less(Fold *f) { compare(f, true, false, false); }
static void fold_less_equal(Fold *f) { compare(f, true, true, false); }
static void fold_greater(Fold *f) { compare(f, false, false, true); }
static void fold_greater_equal(Fold *f) { compare(f, false, true, true); }
static void fold_equal(Fold *f) { compare(f, false, true, false); }
static void fold_not_equal(Fold *f) { compare(f, true, false, true); }

static void fold_select(Fold *f) {
    if (f->in[0]->dtype != DT_BOOL || f->in[0]->shape.rank != 0 || !shape_eq(&f->in[1]->shape, &f->in[2]->shape)) return;
    f->out = tensor_ref(f->in[tensor_bool(f->in[0])[0] ? 1 : 2]);
}

static void fold_like(Fold *f, int64_t value) {
    if (!make(f, f->in[0]->dtype, f->in[0]->shape)) return;
    for (int64_t i = 0; i < f->out->count; i++) put(f->out, i, value);
}

static void fold_zeros_like(Fold *f) { fold_like(f, 0); }
static void fold_ones_like(Fold *f) { fold_like(f, 1); }

/* ---- Making and taking apart ---- */

static void fold_pack(Fold *f) {
    int n = f->node->input_count;
    const Tensor *first = f->in[0];
    int64_t axis = 0;
    Error *err = node_attr_int(f->node, "axis", &axis);
    error_free(err);
    if (axis != 0 || first->shape.rank >= SHAPE_MAX_RANK) return;
    Shape shape = first->shape;
    shape_insert_dim(&shape, 0, n);
    if (!make(f, first->dtype, shape)) return;
    for (int i = 0; i < n; i++) {
        if (!shape_eq(&f->in[i]->shape, &first->shape)) {
            drop(f);
            return;
        }
        elements_copy(first->dtype, (char *)f->out->data + (size_t)i * tensor_bytes(first), f->in[i]->data, first->count);
    }
}

/* Vectors, one after the other. */
static void concat_vectors(Fold *f, int first, int n, const Tensor *axis) {
    int64_t total = 0;
    if (axis->count != 1 || !is_integer(axis->dtype) || (get(axis, 0) != 0 && get(axis, 0) != -1)) return;
    for (int i = first; i < first + n; i++) {
        if (f->in[i]->shape.rank != 1) return;
        total += f->in[i]->count;
    }
    if (!make(f, f->in[first]->dtype, shape_vector(total))) return;
    total = 0;
    for (int i = first; i < first + n; i++)
        for (int64_t j = 0; j < f->in[i]->count; j++) put(f->out, total++, get(f->in[i], j));
}

static void fold_concat(Fold *f) { concat_vectors(f, 1, f->node->input_count - 1, f->in[0]); }
static void fold_concat_v2(Fold *f) { concat_vectors(f, 0, f->node->input_count - 1, f->in[f->node->input_count - 1]); }

static int64_t mask(const Fold *f, const char *name) {
    int64_t v = 0;
    error_free(node_attr_int(f->node, name, &v));
    return v;
}

/* A vector cut by one spec: x[begin:end:stride] or x[begin]. */
static void fold_strided_slice(Fold *f) {
    const Tensor *x = f->in[0];
    for (int i = 1; i < 4; i++)
        if (f->in[i]->count != 1 || f->in[i]->shape.rank != 1) return;
    if (x->shape.rank != 1 || mask(f, "ellipsis_mask") || mask(f, "new_axis_mask")) return;
    int64_t n = x->count, begin = get(f->in[1], 0), end = get(f->in[2], 0), stride = get(f->in[3], 0);
    if (stride == 0 || stride > INT32_MAX || stride < -INT32_MAX) return;
    if (begin < 0) begin += n;
    if (mask(f, "shrink_axis_mask")) {
        if (begin < 0 || begin >= n || !make(f, x->dtype, SHAPE_SCALAR)) return;
        put(f->out, 0, get(x, begin));
        return;
    }
    if (end < 0) end += n;
    int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? n : n - 1;
    begin = mask(f, "begin_mask") ? (stride > 0 ? low : high) : begin < low ? low : begin > high ? high : begin;
    end = mask(f, "end_mask") ? (stride > 0 ? high : low) : end < low ? low : end > high ? high : end;
    int64_t count = stride > 0 ? (end - begin + stride - 1) / stride : (begin - end - stride - 1) / -stride;
    if (!make(f, x->dtype, shape_vector(count < 0 ? 0 : count))) return;
    for (int64_t i = 0; i < f->out->count; i++) put(f->out, i, get(x, begin + i * stride));
}

static void fold_slice(Fold *f) {
    const Tensor *x = f->in[0];
    if (x->shape.rank != 1 || f->in[1]->count != 1 || f->in[2]->count != 1) return;
    int64_t begin = get(f->in[1], 0), size = get(f->in[2], 0);
    if (begin < 0 || begin > x->count) return;
    if (size == -1) size = x->count - begin;
    if (size < 0 || size > x->count - begin || !make(f, x->dtype, shape_vector(size))) return;
    for (int64_t i = 0; i < size; i++) put(f->out, i, get(x, begin + i));
}

static void fold_gather(Fold *f) {
    const Tensor *x = f->in[0], *at = f->in[1];
    if (x->shape.rank != 1 || (f->node->input_count > 2 && (f->in[2]->count != 1 || get(f->in[2], 0) != 0))) return;
    if (!make(f, x->dtype, at->shape)) return;
    for (int64_t i = 0; i < at->count; i++) {
        int64_t from = get(at, i);
        if (from < 0 || from >= x->count) {
            drop(f);
            return;
        }
        put(f->out, i, get(x, from));
    }
}

static void fold_unpack(Fold *f) {
    if (f->in[0]->shape.rank != 1 || f->output >= f->in[0]->count || !make(f, f->in[0]->dtype, SHAPE_SCALAR)) return;
    put(f->out, 0, get(f->in[0], f->output));
}

static void fold_fill(Fold *f) {
    if (f->in[0]->count > SHAPE_MAX_RANK || f->in[1]->count != 1 || !is_integer(f->in[1]->dtype)) return;
    Shape shape = {.rank = (int)f->in[0]->count};
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = get(f->in[0], i);
    if (!make(f, f->in[1]->dtype, shape)) return;
    for (int64_t i = 0; i < f->out->count; i++) put(f->out, i, get(f->in[1], 0));
}

static void fold_range(Fold *f) {
    for (int i = 0; i < 3; i++)
        if (f->in[i]->count != 1 || !is_integer(f->in[i]->dtype)) return;
    int64_t start = get(f->in[0], 0), limit = get(f->in[1], 0), delta = get(f->in[2], 0), span;
    if (delta == 0 || delta < -INT32_MAX || __builtin_sub_overflow(limit, start, &span) || (span != 0 && (span > 0) != (delta > 0)) || span == INT64_MIN) return;
    int64_t count = span / delta + (span % delta != 0);
    if (!make(f, f->in[0]->dtype, shape_vector(count))) return;
    for (int64_t i = 0; i < count; i++) put(f->out, i, start + i * delta);
}

static void fold_expand_dims(Fold *f) {
    Shape shape = f->in[0]->shape;
    int64_t axis = f->in[1]->count == 1 ? get(f->in[1], 0) : SHAPE_MAX_RANK + 1;
    if (axis < 0) axis += shape.rank + 1;
    if (axis < 0 || axis > shape.rank || shape.rank == SHAPE_MAX_RANK) return;
    shape_insert_dim(&shape, (int)axis, 1);
    reshape_to(f, shape);
}

static void fold_squeeze(Fold *f) {
    Shape shape = {.rank = 0};
    if (f->in[0]->count == 1) reshape_to(f, shape);
}

static void fold_reshape(Fold *f) {
    Shape shape = {.rank = (int)f->in[1]->count};
    int free_at = -1;
    int64_t known = 1;
    if (f->in[1]->count > SHAPE_MAX_RANK || f->in[1]->shape.rank != 1) return;
    for (int i = 0; i < shape.rank; i++) {
        shape.dims[i] = get(f->in[1], i);
        if (shape.dims[i] == -1 && free_at < 0)
            free_at = i;
        else if (__builtin_mul_overflow(known, shape.dims[i], &known))
            return;
    }
    if (free_at >= 0 && known <= 0) return;
    if (free_at >= 0) shape.dims[free_at] = f->in[0]->count / known;
    reshape_to(f, shape);
}

/* ---- Vectors to numbers ---- */

static void reduce(Fold *f, Binary *op, int64_t start) {
    const Tensor *x = f->in[0], *axes = f->in[1];
    bool keep = false;
    int64_t v = start;
    error_free(node_attr_bool(f->node, "keep_dims", &keep));
    if (x->shape.rank > 1 || axes->count > 1 || !is_integer(x->dtype)) return;
    if (axes->count == 0 || x->shape.rank == 0) {
        f->out = tensor_ref(f->in[0]);
        return;
    }
    if (get(axes, 0) != 0 && get(axes, 0) != -1) return;
    for (int64_t i = 0; i < x->count; i++)
        if (!op(v, get(x, i), &v) || !fits(x->dtype, v)) return;
    if (make(f, x->dtype, keep ? shape_vector(1) : SHAPE_SCALAR)) put(f->out, 0, v);
}

static void fold_sum(Fold *f) { reduce(f, add, 0); }
static void fold_prod(Fold *f) { reduce(f, mul, 1); }
static void fold_max(Fold *f) { reduce(f, maximum, f->in[0]->dtype == DT_INT64 ? INT64_MIN : INT32_MIN); }
static void fold_min(Fold *f) { reduce(f, minimum, f->in[0]->dtype == DT_INT64 ? INT64_MAX : INT32_MAX); }

/* ---- Shapes of broadcasts ---- */

/* Dimension `i` from the end of the shape that a vector says; 1 before its start. */
static int64_t dim_from_end(const Tensor *t, int64_t i) {
    return i < t->count ? get(t, t->count - 1 - i) : 1;
}

static void fold_broadcast_args(Fold *f) {
    const Tensor *a = f->in[0], *b = f->in[1];
    int64_t rank = a->count > b->count ? a->count : b->count;
    if (!make(f, a->dtype, shape_vector(rank))) return;
    for (int64_t i = 0; i < rank; i++) {
        int64_t x = dim_from_end(a, i), y = dim_from_end(b, i);
        if (x != y && x != 1 && y != 1) {
            drop(f);
            return;
        }
        put(f->out, rank - 1 - i, x == 1 ? y : x);
    }
}

static bool same_values(const Tensor *a, const Tensor *b) {
    return a->count == b->count && memcmp(a->data, b->data, tensor_bytes(a)) == 0;
}

/* The axes along which the gradient of a broadcast is summed, of operand `output`. */
static void fold_broadcast_gradient_args(Fold *f) {
    const Tensor *a = f->in[f->output ? 1 : 0], *b = f->in[f->output ? 0 : 1];
    int64_t rank = a->count > b->count ? a->count : b->count, axes[SHAPE_MAX_RANK], count = 0;
    if (rank > SHAPE_MAX_RANK) return;
    for (int64_t i = rank - 1; i >= 0; i--) {
        int64_t x = dim_from_end(a, i), y = dim_from_end(b, i);
        if (x != y && x != 1 && y != 1) return;
        if (x == 1) axes[count++] = rank - 1 - i;
    }
    if (same_values(a, b)) count = 0;
    if (!make(f, a->dtype, shape_vector(count))) return;
    for (int64_t i = 0; i < count; i++) put(f->out, i, axes[i]);
}

static void fold_invert_permutation(Fold *f) {
    const Tensor *x = f->in[0];
    if (x->shape.rank != 1 || !make(f, x->dtype, x->shape)) return;
    for (int64_t i = 0; i < x->count; i++) put(f->out, i, -1);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t to = get(x, i);
        if (to < 0 || to >= x->count || get(f->out, to) != -1) {
            drop(f);
            return;
        }
        put(f->out, to, i);
    }
}

/* Scalars and vectors of numbers, put where the indices say. */
static void fold_dynamic_stitch(Fold *f) {
    int n = f->node->input_count / 2;
    int64_t last = -1;
    for (int i = 0; i < n; i++) {
        if (!is_integer(f->in[i]->dtype) || !shape_eq(&f->in[i]->shape, &f->in[n + i]->shape)) return;
        for (int64_t j = 0; j < f->in[i]->count; j++) {
            if (get(f->in[i], j) < 0) return;
            if (get(f->in[i], j) > last) last = get(f->in[i], j);
        }
    }
    if (!make(f, f->in[n]->dtype, shape_vector(last + 1))) return;
    memset(f->out->data, 0, tensor_bytes(f->out));
    for (int i = 0; i < n; i++)
        for (int64_t j = 0; j < f->in[i]->count; j++) put(f->out, get(f->in[i], j), get(f->in[n + i], j));
}

typedef struct FoldRow {
    const char *op;
    void (*fold)(Fold *f);
} FoldRow;

static const FoldRow rows[] = {
    {"Add", fold_add},
    {"AddV2", fold_add},
    {"BroadcastArgs", fold_broadcast_args},
    {"BroadcastGradientArgs", fold_broadcast_gradient_args},
    {"Cast", fold_cast},
    {"Concat", fold_concat},
    {"ConcatV2", fold_concat_v2},
    {"Div", fold_truncate_div},
    {"DynamicStitch", fold_dynamic_stitch},
    {"EnsureShape", fold_identity},
    {"Equal", fold_equal},
    {"ExpandDims", fold_expand_dims},
    {"Fill", fold_fill},
    {"FloorDiv", fold_floor_div},
    {"FloorMod", fold_floor_mod},
    {"Gather", fold_gather},
    {"GatherV2", fold_gather},
    {"Greater", fold_greater},
    {"GreaterEqual", fold_greater_equal},
    {"Identity", fold_identity},
    {"IdentityN", fold_identity},
    {"InvertPermutation", fold_invert_permutation},
    {"Less", fold_less},
    {"LessEqual", fold_less_equal},
    {"Max", fold_max},
    {"Maximum", fold_maximum},
    {"Min", fold_min},
    {"Minimum", fold_minimum},
    {"Mod", fold_truncate_mod},
    {"Mul", fold_mul},
    {"Neg", fold_neg},
    {"NotEqual", fold_not_equal},
    {"OnesLike", fold_ones_like},
    {"Pack", fold_pack},
    {"PreventGradient", fold_identity},
    {"Prod", fold_prod},
    {"Range", fold_range},
    {"Reshape", fold_reshape},
    {"Select", fold_select},
    {"SelectV2", fold_select},
    {"Slice", fold_slice},
    {"Snapshot", fold_identity},
    {"Squeeze", fold_squeeze},
    {"StopGradient", fold_identity},
    {"StridedSlice", fold_strided_slice},
    {"Sub", fold_sub},
    {"Sum", fold_sum},
    {"TruncateDiv", fold_truncate_div},
    {"TruncateMod", fold_truncate_mod},
    {"Unpack", fold_unpack},
    {"ZerosLike", fold_zeros_like},
};

static int compare_op(const void *key, const void *row) {
    return str_compare(*(const Str *)key, str_of(((const FoldRow *)row)->op));
}

static const FoldRow *find(Str op) {
    return bsearch(&op, rows, sizeof rows / sizeof *rows, sizeof *rows, compare_op);
}

bool fold_knows(Str op) {
    return find(op) != NULL;
}

/* All but the inputs that may be anything are vectors and numbers of integers. */
static bool inputs_fit(const Node *n, Tensor *const *inputs) {
    if (node_is(n, "Cast") || node_is(n, "Select") || node_is(n, "SelectV2") || node_is(n, "Identity") || node_is(n, "IdentityN") || node_is(n, "StopGradient")) return true;
    for (int i = 0; i < n->input_count; i++)
        if (!is_integer(inputs[i]->dtype)) return false;
    return true;
}

void fold_node(const Node *n, int output, Tensor *const *inputs, Tensor **out) {
    const FoldRow *row = find(n->op);
    Fold f = {.node = n, .in = inputs, .output = output};
    *out = NULL;
    if (!row || !inputs_fit(n, inputs)) return;
    row->fold(&f);
    *out = f.out;
}
