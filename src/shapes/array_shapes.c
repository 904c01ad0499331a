/* array_shapes.c: rules of ops that say, change or check a shape. */
#include <stdlib.h>

#include "shapes/rule_list.h"

void rule_identity(ShapeContext *c) {
    for (int i = 0; i < c->in_count && i < c->out_count; i++) {
        c->out[i] = c->in[i];
        c->out_handles[i] = c->in_handles[i];
    }
}

static void shape_vector_of_each(ShapeContext *c) {
    for (int i = 0; i < c->out_count; i++) ctx_out(c, i, shape_vector(c->in[i].rank < 0 ? DIM_UNKNOWN : c->in[i].rank));
}

/* The product of what is known, and where the one unknown dimension is: -1 for none, -2 when there are several. */
static int64_t known_elements(ShapeContext *c, PartialShape s, int *unknown_at) {
    int64_t n = 1;
    *unknown_at = -1;
    for (int i = 0; i < s.rank; i++) {
        if (s.dims[i] < 0)
            *unknown_at = *unknown_at == -1 ? i : -2;
        else
            n = ctx_dim_mul(c, n, s.dims[i]);
    }
    if (n == 0) *unknown_at = -1; /* whatever the others are */
    return n;
}

void rule_reshape(ShapeContext *c) {
    PartialShape in = c->in[0], out = ctx_shape_of(c, 1);
    int in_at, out_at;
    if (in.rank >= 0 && out.rank >= 0 && !c->err) {
        int64_t in_known = known_elements(c, in, &in_at), out_known = known_elements(c, out, &out_at);
        if (in_at == -1 && out_at == -1 && in_known != out_known) {
            char *text = shape_str(&out);
            ctx_fail(c, "Cannot reshape a tensor with %lld elements to shape %s (%lld elements)", (long long)in_known, text, (long long)out_known);
            free(text);
        } else if (in_at == -1 && out_at >= 0 && out_known > 0) {
            out.dims[out_at] = ctx_dim_div(c, in_known, out_known, true);
        } else if (in_at >= 0 && out_at == -1 && in_known > 0) {
            ctx_dim_div(c, out_known, in_known, true);
        }
    }
    ctx_out(c, 0, out);
}

static void transpose(ShapeContext *c) {
    PartialShape s = c->in[0], perm_shape = c->in[1];
    const Tensor *perm = ctx_value(c, 1);
    int64_t perm_count = shape_elements(perm_shape);
    if (s.rank < 0 && perm_count < 0 && !perm) return;
    int rank = s.rank >= 0 ? s.rank : (int)(perm_count >= 0 ? perm_count : perm->count);
    if (s.rank < 0 && rank < 2) return;
    if (rank > SHAPE_MAX_RANK) {
        ctx_rank(c, perm_shape, 1);
        return;
    }
    s = ctx_rank(c, s, rank);
    ctx_rank(c, perm_shape, 1);
    ctx_dim_is(c, perm_count, rank);
    PartialShape out = shape_unknown_dims(rank);
    for (int i = 0; perm && i < rank && !c->err; i++) {
        int64_t from = tensor_index(perm, i);
        if (from >= rank || from <= -rank - 1)
            ctx_fail(c, "perm dim %lld is out of range of input rank %d", (long long)from, rank);
        else
            out.dims[i] = shape_dim(s, (int)from);
    }
    ctx_out(c, 0, out);
}

/* Inputs [first, first + n) joined along an axis that may not be known. */
void concat_inputs(ShapeContext *c, int first, int n, int axis_input) {
    int64_t axis;
    ctx_want_scalar(c, axis_input);
    if (!ctx_int(c, axis_input, &axis)) {
        int rank = -1;
        for (int i = first; i < first + n && rank < 0; i++) rank = c->in[i].rank;
        if (rank == 0) ctx_fail(c, "Can't concatenate scalars (use tf.stack instead)");
        for (int i = first; i < first + n && rank > 0; i++) ctx_rank(c, c->in[i], rank);
        ctx_out(c, 0, shape_unknown_dims(rank));
        return;
    }
    int at = shape_axis(axis), least = at < 0 ? -at : at + 1;
    PartialShape before = SHAPE_UNKNOWN, after = SHAPE_UNKNOWN;
    int64_t size = 0;
    for (int i = first; i < first + n; i++) {
        PartialShape s = ctx_rank_at_least(c, c->in[i], least);
        before = ctx_merge(c, before, ctx_sub(c, s, 0, at));
        after = ctx_merge(c, after, at == -1 && s.rank >= 0 ? SHAPE_SCALAR : ctx_sub(c, s, at + 1, SHAPE_END));
        size = ctx_dim_add(c, size, shape_dim(s, at));
    }
    if (at == -1) after = SHAPE_SCALAR;
    ctx_out(c, 0, ctx_concat(c, ctx_concat(c, before, shape_vector(size)), after));
}

static void concat(ShapeContext *c) {
    concat_inputs(c, 1, c->in_count - 1, 0);
}

static void concat_v2(ShapeContext *c) {
    concat_inputs(c, 0, c->in_count - 1, c->in_count - 1);
}

static void concat_offset(ShapeContext *c) {
    for (int i = 1; i < c->in_count; i++) ctx_out(c, i - 1, c->in[i]);
}

static void pack(ShapeContext *c) {
    PartialShape s = c->in[c->in_count - 1];
    for (int i = c->in_count - 2; i >= 0; i--) s = ctx_merge(c, c->in[i], s);
    if (s.rank < 0 || s.rank == SHAPE_MAX_RANK) return;
    int axis = ctx_axis(c, ctx_attr_int(c, "axis"), s.rank + 1);
    if (c->err) return;
    shape_insert_dim(&s, axis, c->in_count);
    ctx_out(c, 0, s);
}

static void parallel_concat(ShapeContext *c) {
    PartialShape passed = ctx_attr_shape(c, "shape");
    if (!shape_is_full(passed)) ctx_fail(c, "shape attr must be fully defined.");
    ctx_dim_is(c, shape_dim(passed, 0), c->in_count);
    PartialShape s = ctx_replace(c, passed, 0, 1);
    for (int i = 0; i < c->in_count; i++) {
        if (!shape_is_full(c->in[i])) ctx_fail(c, "All input shapes must be fully defined.");
        ctx_dim_is(c, shape_dim(c->in[i], 0), 1);
        s = ctx_merge(c, s, c->in[i]);
    }
    ctx_out(c, 0, passed);
}

static void unpack(ShapeContext *c) {
    PartialShape s = c->in[0];
    if (s.rank < 0) return;
    int axis = ctx_axis(c, ctx_attr_int(c, "axis"), s.rank);
    if (c->err) return;
    ctx_dim_is(c, s.dims[axis], c->out_count);
    shape_remove_dim(&s, axis);
    ctx_out_all(c, s);
}

/* The axis that scalar input i says, or -1 when it is not known. */
static int axis_of(ShapeContext *c, int i, int rank) {
    int64_t axis;
    const Tensor *t = ctx_value(c, i);
    if (t && t->shape.rank != 0) ctx_fail(c, "Input must be scalar but has rank %d", t->shape.rank);
    if (!t || !ctx_int(c, i, &axis)) return -1;
    if (rank >= 0) return ctx_axis(c, axis, rank);
    return axis < 0 ? -1 : shape_axis(axis);
}

static void split(ShapeContext *c) {
    PartialShape s = c->in[1];
    int axis = axis_of(c, 0, s.rank);
    if (axis < 0) {
        ctx_out_all(c, shape_unknown_dims(s.rank));
        return;
    }
    s = ctx_rank_at_least(c, s, axis + 1);
    ctx_out_all(c, ctx_replace(c, s, axis, ctx_dim_div(c, shape_dim(s, axis), c->out_count, true)));
}

static void split_v(ShapeContext *c) {
    PartialShape s = c->in[0];
    int axis = axis_of(c, 2, s.rank);
    const Tensor *sizes = ctx_value(c, 1);
    if (s.rank < 0) return;
    if (s.rank == 0) ctx_fail(c, "Can't split scalars");
    if (!sizes) {
        ctx_out_all(c, axis < 0 ? shape_unknown_dims(s.rank) : ctx_replace(c, s, axis, DIM_UNKNOWN));
        return;
    }
    /* An axis that is not known, -1, is the last one for TensorFlow. */
    if (sizes->count != c->out_count) ctx_fail(c, "Length of size_splits should be equal to num_outputs");
    int64_t total = 0, size = shape_dim(s, axis);
    int open = 0;
    for (int64_t i = 0; i < sizes->count && !c->err; i++) {
        int64_t part = tensor_index(sizes, i);
        open += part == -1;
        if (part != -1 && __builtin_add_overflow(total, part, &total)) ctx_fail(c, "size_splits is too large");
    }
    if (open > 1) ctx_fail(c, "size_splits can only have one -1");
    for (int i = 0; i < c->out_count && !c->err; i++) {
        int64_t part = tensor_index(sizes, i);
        if (part == -1 && size >= 0) part = size - total;
        ctx_out(c, i, ctx_replace(c, s, axis, part));
    }
    if (size >= 0 && (open ? total > size : total != size))
        ctx_fail(c, "can't split axis of size %lld into pieces of size %lld in total", (long long)size, (long long)total);
}

static void expand_dims(ShapeContext *c) {
    PartialShape s = c->in[0];
    int64_t axis;
    const Tensor *t = ctx_value(c, 1);
    if (t && t->count != 1) ctx_fail(c, "'dim' input must be a tensor with a single value");
    if (!ctx_int(c, 1, &axis) || s.rank < 0 || s.rank == SHAPE_MAX_RANK) return;
    if (axis < -s.rank - 1 || axis > s.rank) {
        ctx_fail(c, "dim %lld not in the interval [%d, %d].", (long long)axis, -s.rank - 1, s.rank);
        return;
    }
    shape_insert_dim(&s, (int)(axis < 0 ? axis + s.rank + 1 : axis), 1);
    ctx_out(c, 0, s);
}

static void squeeze(ShapeContext *c) {
    PartialShape s = c->in[0], out = SHAPE_SCALAR;
    int64_t dims[SHAPE_MAX_RANK];
    bool listed[SHAPE_MAX_RANK] = {0};
    int count = ctx_attr_ints(c, "squeeze_dims", dims, SHAPE_MAX_RANK);
    if (s.rank < 0) return;
    for (int i = 0; i < count && i < SHAPE_MAX_RANK; i++) {
        if (dims[i] < -s.rank || dims[i] >= s.rank) {
            ctx_fail(c, "squeeze_dims[%d] not in [%d,%d).", i, -s.rank, s.rank);
            return;
        }
        listed[dims[i] < 0 ? dims[i] + s.rank : dims[i]] = true;
    }
    for (int i = 0; i < s.rank; i++) {
        if (listed[i] && s.dims[i] >= 0 && s.dims[i] != 1)
            ctx_fail(c, "Can not squeeze dim[%d], expected a dimension of 1, got %lld", i, (long long)s.dims[i]);
        if (!count && s.dims[i] < 0) return; /* it may be 1 */
        if (!listed[i] && (count || s.dims[i] != 1)) out.dims[out.rank++] = s.dims[i];
    }
    ctx_out(c, 0, out);
}

static void tile(ShapeContext *c) {
    PartialShape s = c->in[0], multiples = ctx_shape_of(c, 1);
    if (s.rank < 0) s = shape_unknown_dims(multiples.rank);
    if (s.rank < 0) return;
    multiples = ctx_rank(c, multiples, s.rank);
    for (int i = 0; i < s.rank; i++) s.dims[i] = ctx_dim_mul(c, s.dims[i], multiples.dims[i]);
    ctx_out(c, 0, s);
}

/* Padding adds to every dimension, its gradient takes away. */
static void pad_by(ShapeContext *c, bool grows) {
    PartialShape paddings = ctx_in_rank(c, 1, 2), s = c->in[0];
    int64_t rank = paddings.dims[0];
    if (!grows && rank < 0) return;
    ctx_dim_is(c, paddings.dims[1], 2);
    if (rank >= 0 && rank <= SHAPE_MAX_RANK)
        s = ctx_rank(c, s, (int)rank);
    else if (s.rank >= 0 && grows)
        rank = s.rank;
    const Tensor *t = ctx_value(c, 1);
    if (!t || rank < 0 || c->err) {
        ctx_out(c, 0, rank < 0 || rank > SHAPE_MAX_RANK ? SHAPE_UNKNOWN : shape_unknown_dims((int)rank));
        return;
    }
    for (int i = 0; i < s.rank; i++) {
        int64_t before = tensor_index(t, 2 * i), after = tensor_index(t, 2 * i + 1);
        if (before < 0 || after < 0) ctx_fail(c, "Paddings must be non-negative: %lld %lld", (long long)before, (long long)after);
        int64_t both = ctx_dim_add(c, before, after);
        s.dims[i] = grows ? ctx_dim_add(c, s.dims[i], both) : ctx_dim_sub(c, s.dims[i], both);
    }
    ctx_out(c, 0, s);
}

static void pad(ShapeContext *c) {
    pad_by(c, true);
}

static void mirror_pad_grad(ShapeContext *c) {
    pad_by(c, false);
}

static void fill(ShapeContext *c) {
    const Tensor *t = ctx_value(c, 0);
    ctx_in_rank(c, 0, 1);
    ctx_want_scalar(c, 1);
    for (int64_t i = 0; t && i < t->count; i++)
        if (tensor_index(t, i) < 0) ctx_fail(c, "Fill dimensions must be >= 0");
    ctx_out(c, 0, ctx_shape_of(c, 0));
}

static void broadcast_to(ShapeContext *c) {
    PartialShape in = c->in[0], out = ctx_shape_of(c, 1);
    if (out.rank >= 0 && in.rank >= 0) {
        in = ctx_rank_at_most(c, in, out.rank);
        for (int i = 0; i < in.rank; i++) {
            int at = out.rank - in.rank + i;
            if (in.dims[i] > 1) out.dims[at] = ctx_merge_dim(c, in.dims[i], out.dims[at]);
        }
    }
    ctx_out(c, 0, out);
}

static void broadcast_args(ShapeContext *c) {
    int64_t a = ctx_in_rank(c, 0, 1).dims[0], b = ctx_in_rank(c, 1, 1).dims[0];
    ctx_out(c, 0, shape_vector(a < 0 || b < 0 ? DIM_UNKNOWN : a > b ? a : b));
}

static void one_hot(ShapeContext *c) {
    int64_t axis = ctx_attr_int(c, "axis"), depth = ctx_dim_of(c, 1);
    PartialShape s = c->in[0];
    if (axis < -1) ctx_fail(c, "axis must be >= -1");
    if (s.rank < 0 || s.rank == SHAPE_MAX_RANK || c->err) return;
    int ranks = s.rank + 1; /* an axis that is too large starts again from 0, as in TensorFlow */
    shape_insert_dim(&s, axis < 0 ? s.rank : (int)(axis % ranks), depth);
    ctx_out(c, 0, s);
}

static void where(ShapeContext *c) {
    ctx_out(c, 0, shape_matrix(DIM_UNKNOWN, c->in[0].rank < 0 ? DIM_UNKNOWN : c->in[0].rank));
}

static void bitcast(ShapeContext *c) {
    PartialShape s = c->in[0];
    size_t from = dtype_size(ctx_attr_type(c, "T")), to = dtype_size(ctx_attr_type(c, "type"));
    if (from == 0 || to == 0) {
        ctx_fail(c, "Cannot bitcast types of no fixed size");
        return;
    }
    if (s.rank >= 0 && from < to) {
        s = ctx_rank_at_least(c, s, 1);
        int64_t ratio = (int64_t)(to / from), last = shape_dim(s, -1);
        if (last >= 0 && last != ratio)
            ctx_fail(c, "Cannot bitcast due to shape. %lld does not match %lld", (long long)last, (long long)ratio);
        s = ctx_sub(c, s, 0, -1);
    } else if (s.rank >= 0 && from > to) {
        s = ctx_concat(c, s, shape_vector((int64_t)(from / to)));
    }
    ctx_out(c, 0, s);
}

static void ensure_shape(ShapeContext *c) {
    PartialShape wanted = ctx_attr_shape(c, "shape");
    if (wanted.rank < 0 && c->in[0].rank >= 0) ctx_fail(c, "Shape must be rank -1 but is rank %d", c->in[0].rank);
    ctx_out(c, 0, ctx_merge(c, c->in[0], wanted));
}

static void diag(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 1);
    ctx_out(c, 0, ctx_concat(c, s, s));
}

static void diag_part(ShapeContext *c) {
    PartialShape s = c->in[0];
    if (s.rank < 0) return;
    if (s.rank % 2 || s.rank <= 0) {
        ctx_fail(c, "Input must have even and non-zero rank, input rank is %d", s.rank);
        return;
    }
    ctx_out(c, 0, ctx_merge(c, ctx_sub(c, s, 0, s.rank / 2), ctx_sub(c, s, s.rank / 2, SHAPE_END)));
}

static void unique(ShapeContext *c) {
    ctx_out(c, 0, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 1, c->in[0]);
    ctx_out(c, 2, shape_vector(DIM_UNKNOWN));
}

static void unique_v2(ShapeContext *c) {
    PartialShape x = c->in[0];
    const Tensor *axis = ctx_value(c, 1);
    int64_t count = DIM_UNKNOWN;
    if (x.rank < 0) axis = NULL;
    if (axis && axis->shape.rank != 1) ctx_fail(c, "axis expects a 1D vector.");
    if (axis && axis->count > 1) ctx_fail(c, "axis does not support input tensors larger than 1 elements.");
    if (axis && !c->err && axis->count == 0) {
        if (x.rank >= 0 && x.rank != 1) ctx_fail(c, "x expects a 1D vector.");
        count = shape_dim(x, 0);
    } else if (axis && !c->err && x.rank >= 0) {
        count = shape_dim(x, ctx_axis(c, tensor_index(axis, 0), x.rank));
    }
    ctx_out(c, 0, shape_unknown_dims(x.rank));
    ctx_out(c, 1, shape_vector(count));
    ctx_out(c, 2, shape_vector(DIM_UNKNOWN));
}

static void reverse_mask(ShapeContext *c) {
    PartialShape s = c->in[0], dims = ctx_in_rank(c, 1, 1);
    if (dims.dims[0] >= 0 && dims.dims[0] <= SHAPE_MAX_RANK) s = ctx_rank(c, s, (int)dims.dims[0]);
    if (s.rank > 8) ctx_fail(c, "reverse does not work on tensors with more than 8 dimensions");
    ctx_out(c, 0, s);
}

static void reverse_axes(ShapeContext *c) {
    PartialShape s = c->in[0], axes = ctx_in_rank(c, 1, 1);
    (void)axes;
    const Tensor *t = ctx_value(c, 1);
    bool seen[SHAPE_MAX_RANK] = {0};
    for (int64_t i = 0; t && s.rank >= 0 && i < t->count && !c->err; i++) {
        int64_t axis = tensor_index(t, i);
        int at = shape_axis(axis < 0 ? axis + s.rank : axis);
        if (at < 0 || at >= s.rank)
            ctx_fail(c, "'axis'[%lld] = %lld is out of valid range [0, %d", (long long)i, (long long)axis, s.rank - 1);
        else if (seen[at])
            ctx_fail(c, "axis %d specified more than once.", at);
        else
            seen[at] = true;
    }
    ctx_out(c, 0, s);
}

static void reverse_sequence(ShapeContext *c) {
    PartialShape s = c->in[0], lengths = ctx_in_rank(c, 1, 1);
    int64_t seq = ctx_attr_int(c, "seq_dim"), batch = ctx_attr_int(c, "batch_dim");
    if (batch < 0 || seq < 0) ctx_fail(c, "batch_dim and seq_dim must be >= 0");
    if (s.rank < 0) return;
    if (batch >= s.rank) ctx_fail(c, "batch_dim must be < input rank: %lld vs. %d", (long long)batch, s.rank);
    if (seq >= s.rank) ctx_fail(c, "seq_dim must be < input rank: %lld vs. %d", (long long)seq, s.rank);
    if (c->err) return;
    ctx_out(c, 0, ctx_replace(c, s, (int)batch, ctx_merge_dim(c, s.dims[batch], lengths.dims[0])));
}

static void roll(ShapeContext *c) {
    ctx_merge(c, ctx_rank_at_most(c, c->in[1], 1), ctx_rank_at_most(c, c->in[2], 1));
    ctx_out(c, 0, ctx_rank_at_least(c, c->in[0], 1));
}

static void accumulate_n(ShapeContext *c) {
    ctx_out(c, 0, ctx_attr_shape(c, "shape"));
}

static void range(ShapeContext *c) {
    const Tensor *t[3];
    double v[3];
    for (int i = 0; i < 3; i++) {
        ctx_want_scalar(c, i);
        t[i] = ctx_value(c, i);
    }
    ctx_out(c, 0, shape_vector(DIM_UNKNOWN));
    if (!t[0] || !t[1] || !t[2] || c->err) return;
    for (int i = 0; i < 3; i++) {
        DataType dtype = t[i]->dtype;
        if (dtype != DT_INT32 && dtype != DT_INT64 && dtype != DT_FLOAT && dtype != DT_DOUBLE) return;
        v[i] = dtype == DT_FLOAT ? (double)tensor_f32(t[i])[0] : dtype == DT_DOUBLE ? tensor_f64(t[i])[0] : (double)tensor_index(t[i], 0);
    }
    if (v[2] == 0)
        ctx_fail(c, "Requires delta != 0");
    else if (v[2] > 0 ? v[0] > v[1] : v[0] < v[1])
        ctx_fail(c, "Requires start %s limit when delta %s 0: %g/%g", v[2] > 0 ? "<=" : ">=", v[2] > 0 ? ">" : "<", v[0], v[1]);
    double steps = c->err ? 0 : (v[1] - v[0]) / v[2];
    if (!(steps < 9e18)) {
        ctx_fail(c, "Requires ((limit - start) / delta) <= %lld", (long long)INT64_MAX);
        return;
    }
    int64_t whole = (int64_t)steps;
    ctx_out(c, 0, shape_vector(whole + ((double)whole < steps)));
}

static void lin_space(ShapeContext *c) {
    int64_t n;
    for (int i = 0; i < 3; i++) ctx_want_scalar(c, i);
    bool known = ctx_int(c, 2, &n);
    if (known && n <= 0) ctx_fail(c, "Requires num > 0: %lld", (long long)n);
    ctx_out(c, 0, shape_vector(known ? n : DIM_UNKNOWN));
}

static void select_where(ShapeContext *c) {
    PartialShape then = c->in[1], cond = c->in[0], data = ctx_merge(c, then, c->in[2]);
    if (cond.rank < 0 || data.rank < 0 || cond.rank == 0 || data.rank == 0) {
        if (cond.rank > 0 && data.rank == 0) ctx_merge(c, data, cond);
        ctx_out(c, 0, data);
        return;
    }
    if (cond.rank == 1 && data.rank > 1)
        ctx_merge_dim(c, data.dims[0], cond.dims[0]);
    else
        data = ctx_merge(c, data, cond);
    ctx_out(c, 0, data);
}

static void select_v2(ShapeContext *c) {
    ctx_out(c, 0, ctx_broadcast(c, c->in[0], ctx_broadcast(c, c->in[1], c->in[2])));
}

static void unravel_index(ShapeContext *c) {
    PartialShape indices = c->in[0], dims = ctx_in_rank(c, 1, 1);
    if (indices.rank == 0)
        ctx_out(c, 0, dims);
    else if (indices.rank > 0)
        ctx_out(c, 0, shape_matrix(dims.dims[0], shape_elements(indices)));
}

static void search(ShapeContext *c) {
    ctx_out(c, 0, c->in[1]);
}

const ShapeRow array_rules[] = {
    {"AccumulateNV2", accumulate_n, 0},
    {"Bitcast", bitcast, 0},
    {"BroadcastArgs", broadcast_args, 0},
    {"BroadcastGradientArgs", 0, "[?] [?] -> [?] [?]"},
    {"BroadcastTo", broadcast_to, 0},
    {"CheckNumerics", rule_same, 0},
    {"CheckNumericsV2", rule_same, 0},
    {"Concat", concat, 0},
    {"ConcatOffset", concat_offset, 0},
    {"ConcatV2", concat_v2, 0},
    {"ConjugateTranspose", transpose, 0},
    {"Copy", rule_same, 0},
    {"CopyHost", rule_same, 0},
    {"DebugIdentity", rule_same, 0},
    {"DebugNanCount", rule_scalar, 0},
    {"DebugNumericSummary", rule_unknown, 0},
    {"DeepCopy", rule_same, 0},
    {"Diag", diag, 0},
    {"DiagPart", diag_part, 0},
    {"EnsureShape", ensure_shape, 0},
    {"ExpandDims", expand_dims, 0},
    {"Fill", fill, 0},
    {"GuaranteeConst", rule_identity, 0},
    {"_ParallelConcatStart", 0, "-> @shape"},
    {"_ParallelConcatUpdate", rule_same, 0},
    {"DebugGradientIdentity", rule_same, 0},
    {"DebugGradientRefIdentity", rule_same, 0},
    {"Identity", rule_identity, 0},
    {"MakeWeakResourceHandle", rule_scalar, 0},
    {"XlaClusterOutput", rule_same, 0},
    {"XlaOptimizationBarrier", rule_identity, 0},
    {"XlaSharding", rule_same, 0},
    {"CheckPinned", rule_same, 0},
    {"IsResourceHandleRefCounting", rule_scalar, 0},
    {"DebugIdentityV2", rule_same, 0},
    {"DebugIdentityV3", rule_same, 0},
    {"DebugNumericSummaryV2", rule_unknown, 0},
    {"IdentityN", rule_identity, 0},
    {"InvertPermutation", 0, "[n] -> [n]"},
    {"LinSpace", lin_space, 0},
    {"ListDiff", 0, "[?] [?] -> [?] [?]"},
    {"LowerBound", search, "[?,?] [?,?]"},
    {"MirrorPad", pad, 0},
    {"MirrorPadGrad", mirror_pad_grad, 0},
    {"OneHot", one_hot, 0},
    {"OnesLike", rule_same, 0},
    {"Pack", pack, 0},
    {"Pad", pad, 0},
    {"PadV2", pad, 0},
    {"ParallelConcat", parallel_concat, 0},
    {"PreventGradient", rule_same, 0},
    {"Range", range, 0},
    {"Rank", rule_scalar, 0},
    {"Reshape", rule_reshape, 0},
    {"Reverse", reverse_mask, 0},
    {"ReverseSequence", reverse_sequence, 0},
    {"ReverseV2", reverse_axes, 0},
    {"Roll", roll, 0},
    {"Select", select_where, 0},
    {"SelectV2", select_v2, 0},
    {"Shape", shape_vector_of_each, 0},
    {"ShapeN", shape_vector_of_each, 0},
    {"Size", rule_scalar, 0},
    {"Snapshot", rule_same, 0},
    {"Split", split, 0},
    {"SplitV", split_v, 0},
    {"Squeeze", squeeze, 0},
    {"StopGradient", rule_same, 0},
    {"Tile", tile, 0},
    {"TileGrad", rule_unknown, 0},
    {"Transpose", transpose, 0},
    {"Unique", unique, "[?]"},
    {"UniqueV2", unique_v2, 0},
    {"UniqueWithCounts", unique, 0},
    {"UniqueWithCountsV2", unique_v2, 0},
    {"Unpack", unpack, 0},
    {"UnravelIndex", unravel_index, 0},
    {"UpperBound", search, "[?,?] [?,?]"},
    {"Where", where, 0},
    {"ZerosLike", rule_same, 0},
    {0},
};
