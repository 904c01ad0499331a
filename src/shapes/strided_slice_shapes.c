/* strided_slice_shapes.c: rules of StridedSlice and its family.

   The spec x[a:b:c, ..., newaxis, i] comes as vectors and bit masks. It is first spread over all dimensions of x; then each is cut. */
#include "shapes/rule_list.h"

enum { NEW_AXIS = -1, SHRUNK = -2 };

typedef struct DenseSpec {
    int64_t begin[SHAPE_MAX_RANK], end[SHAPE_MAX_RANK], stride[SHAPE_MAX_RANK];
    bool begin_open[SHAPE_MAX_RANK], end_open[SHAPE_MAX_RANK], shrinks[SHAPE_MAX_RANK];
    int from[2 * SHAPE_MAX_RANK + 1]; /* where each dimension of the result comes from */
    int from_count;
    bool has_bounds; /* begin and end are known */
} DenseSpec;

static bool bit(int64_t mask, int i) {
    return i < 63 && mask >> i & 1;
}

/* Spreads the spec over `rank` dimensions; false after an error or when it is too long. */
static bool spread(ShapeContext *c, int rank, DenseSpec *d) {
    const Tensor *begin = ctx_value(c, 1), *end = ctx_value(c, 2), *strides = ctx_value(c, 3);
    int64_t begin_mask = ctx_attr_int(c, "begin_mask"), end_mask = ctx_attr_int(c, "end_mask"), ellipsis = ctx_attr_int(c, "ellipsis_mask");
    int64_t new_axis = ctx_attr_int(c, "new_axis_mask"), shrink = ctx_attr_int(c, "shrink_axis_mask");
    int count = (int)strides->count, added_after = 0, at = 0;
    bool seen = false;
    if (count > SHAPE_MAX_RANK) return false;
    if (__builtin_popcountll((unsigned long long)ellipsis) > 1) {
        ctx_fail(c, "Multiple ellipses in slice spec not allowed");
        return false;
    }
    for (int i = 0; i < count; i++) {
        added_after += seen && bit(new_axis, i);
        seen |= bit(ellipsis, i);
    }
    int all = seen ? count : count + 1;
    d->has_bounds = begin && end;
    for (int i = 0; i < all; i++) {
        if (bit(ellipsis, i) || i == count) {
            int next = rank - (all - i) + 1 + added_after;
            if (next > rank) next = rank;
            for (; at < next; at++) {
                d->stride[at] = 1;
                d->begin_open[at] = d->end_open[at] = true;
                d->from[d->from_count++] = at;
            }
        } else if (bit(new_axis, i)) {
            d->from[d->from_count++] = NEW_AXIS;
        } else if (at == rank) {
            ctx_fail(c, "Index out of range using input dim %d; input has only %d dims", at, rank);
            return false;
        } else {
            d->begin[at] = begin ? tensor_index(begin, i) : 0;
            d->end[at] = end ? tensor_index(end, i) : 0;
            d->stride[at] = tensor_index(strides, i);
            d->begin_open[at] = bit(begin_mask, i);
            d->end_open[at] = bit(end_mask, i);
            d->shrinks[at] = bit(shrink, i);
            d->from[d->from_count++] = d->shrinks[at] ? SHRUNK : at;
            at++;
        }
    }
    return true;
}

static int64_t clamp(int64_t x, int64_t dim, int64_t low, int64_t high) {
    if (x < 0) x += dim;
    return x < low ? low : x > high ? high : x;
}

/* The size of dimension `at` after its cut. */
static int64_t cut(ShapeContext *c, const DenseSpec *d, int at, int64_t dim) {
    int64_t stride = d->stride[at], length = 0;
    if (stride == 0) {
        ctx_fail(c, "strides[%d] must be non-zero", at);
        return DIM_UNKNOWN;
    }
    if (dim < 0) return d->shrinks[at] ? 1 : DIM_UNKNOWN;
    if (d->shrinks[at] && stride <= 0) ctx_fail(c, "only stride 1 allowed on non-range indexing.");
    int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? dim : dim - 1;
    if (d->has_bounds && d->shrinks[at]) {
        int64_t i = d->begin[at] < 0 ? d->begin[at] + dim : d->begin[at];
        if (i < 0 || i >= dim) ctx_fail(c, "slice index %lld of dimension %d out of bounds.", (long long)d->begin[at], at);
        return 1;
    }
    if (d->has_bounds) {
        int64_t begin = d->begin_open[at] ? (stride > 0 ? low : high) : clamp(d->begin[at], dim, low, high);
        int64_t end = d->end_open[at] ? (stride > 0 ? high : low) : clamp(d->end[at], dim, low, high);
        length = end - begin;
    } else if (d->shrinks[at]) {
        return 1;
    } else if (d->begin_open[at] && d->end_open[at]) {
        length = stride > 0 ? dim : -dim;
    } else {
        return DIM_UNKNOWN;
    }
    if (length == 0 || (length < 0) != (stride < 0)) return 0;
    return length / stride + (length % stride != 0);
}

static void strided_slice(ShapeContext *c) {
    PartialShape s = c->in[0], bounds = ctx_merge(c, ctx_merge(c, ctx_in_rank(c, 1, 1), ctx_in_rank(c, 2, 1)), ctx_in_rank(c, 3, 1));
    DenseSpec d = {.from_count = 0};
    if (c->err || s.rank < 0 || bounds.dims[0] < 0 || !ctx_value(c, 3)) return;
    if (!spread(c, s.rank, &d)) return;
    int64_t cuts[SHAPE_MAX_RANK];
    for (int i = 0; i < s.rank; i++) cuts[i] = cut(c, &d, i, s.dims[i]);
    PartialShape out = SHAPE_SCALAR;
    for (int i = 0; i < d.from_count; i++) {
        if (d.from[i] == SHRUNK) continue;
        if (out.rank == SHAPE_MAX_RANK) return;
        out.dims[out.rank++] = d.from[i] == NEW_AXIS ? 1 : cuts[d.from[i]];
    }
    ctx_out(c, 0, out);
    c->out_handles[0] = c->in_handles[0];
}

static void strided_slice_grad(ShapeContext *c) {
    ctx_out(c, 0, ctx_shape_of(c, 0));
}

const ShapeRow strided_slice_rules[] = {
    {"ResourceStridedSliceAssign", rule_unknown, 0},
    {"StridedSlice", strided_slice, 0},
    {"StridedSliceAssign", rule_same, 0},
    {"StridedSliceGrad", strided_slice_grad, 0},
    {"TensorStridedSliceUpdate", rule_same, 0},
    {0},
};
