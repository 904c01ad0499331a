/* slice_shapes.c: rules of slices, gathers and scatters. */
#include "shapes/rule_list.h"

static void slice(ShapeContext *c) {
    PartialShape s = c->in[0], begin_shape = ctx_merge(c, ctx_in_rank(c, 1, 1), ctx_in_rank(c, 2, 1));
    int64_t rank = begin_shape.dims[0];
    if (rank >= 0 && rank <= SHAPE_MAX_RANK) s = ctx_rank(c, s, (int)rank);
    if (c->err) return;
    const Tensor *sizes = ctx_value(c, 2);
    PartialShape begin = ctx_shape_of(c, 1);
    if (!sizes) {
        PartialShape partial = ctx_shape_of(c, 2);
        ctx_out(c, 0, partial.rank >= 0 ? partial : shape_unknown_dims(s.rank));
        return;
    }
    begin = ctx_rank(c, begin, (int)sizes->count);
    PartialShape out = shape_unknown_dims((int)sizes->count);
    for (int i = 0; i < out.rank && !c->err; i++) {
        int64_t size = tensor_index(sizes, i);
        if (size < -1)
            ctx_fail(c, "Out of bounds slicing on dimension %d of length %lld: sizes vector cannot be < -1, but was %lld", i, (long long)shape_dim(s, i),
                     (long long)size);
        out.dims[i] = size == -1 ? ctx_dim_sub(c, shape_dim(s, i), begin.dims[i]) : size;
    }
    ctx_out(c, 0, out);
}

static void gather(ShapeContext *c) {
    PartialShape params = ctx_rank_at_least(c, c->in[0], 1);
    ctx_out(c, 0, ctx_concat(c, c->in[1], ctx_sub(c, params, 1, SHAPE_END)));
}

static void gather_v2(ShapeContext *c) {
    PartialShape params = ctx_rank_at_least(c, c->in[0], 1), indices = c->in[1];
    int64_t axis;
    int batch_dims = shape_axis(ctx_attr_int(c, "batch_dims"));
    ctx_want_scalar(c, 2);
    if (!ctx_int(c, 2, &axis)) {
        ctx_out(c, 0, params.rank >= 0 && indices.rank >= 0 ? shape_unknown_dims(params.rank + indices.rank - 1 - batch_dims) : SHAPE_UNKNOWN);
        return;
    }
    int at = shape_axis(axis);
    params = ctx_rank_at_least(c, params, at < 0 ? -at : at + 1);
    indices = ctx_rank_at_least(c, indices, batch_dims < 0 ? -batch_dims : batch_dims);
    if (batch_dims < 0 && indices.rank >= 0) batch_dims += indices.rank;
    params = ctx_rank_at_least(c, params, batch_dims + 1);
    PartialShape out = ctx_concat(c, ctx_sub(c, params, 0, at), ctx_sub(c, indices, batch_dims, SHAPE_END));
    if (at != -1) out = ctx_concat(c, out, ctx_sub(c, params, at + 1, SHAPE_END));
    ctx_out(c, 0, out);
}

static void gather_nd_of(ShapeContext *c, PartialShape params) {
    PartialShape indices = ctx_rank_at_least(c, c->in[1], 1);
    int64_t depth = shape_dim(indices, -1);
    if (params.rank < 0 || depth < 0) return;
    if (depth > params.rank) {
        ctx_fail(c, "indices.shape[-1] must be <= params.rank, but saw indices.shape[-1] = %lld and params.rank = %d", (long long)depth, params.rank);
        return;
    }
    ctx_out(c, 0, ctx_concat(c, ctx_sub(c, indices, 0, -1), ctx_sub(c, params, (int)depth, SHAPE_END)));
}

static void gather_nd(ShapeContext *c) {
    gather_nd_of(c, c->in[0]);
}

static PartialShape handle_shape(ShapeContext *c, int i) {
    return c->in_handles[i].is_known ? c->in_handles[i].shape : SHAPE_UNKNOWN;
}

/* The variable's type must be the op's. */
static void check_handle_type(ShapeContext *c) {
    DataType dtype = ctx_attr_type(c, "dtype");
    if (c->in_handles[0].is_known && c->in_handles[0].dtype != dtype)
        ctx_fail(c, "Trying to use a variable of type %s as one of %s", dtype_name(c->in_handles[0].dtype), dtype_name(dtype));
}

static void resource_gather(ShapeContext *c) {
    check_handle_type(c);
    PartialShape params = ctx_rank_at_least(c, handle_shape(c, 0), 1), indices = c->in[1];
    int batch_dims = shape_axis(ctx_attr_int(c, "batch_dims"));
    if (batch_dims < 0) ctx_fail(c, "batch_dims is negative (%d)", batch_dims);
    params = ctx_rank_at_least(c, params, batch_dims + 1);
    indices = ctx_rank_at_least(c, indices, batch_dims);
    if (c->err) return;
    PartialShape out = batch_dims ? ctx_concat(c, ctx_sub(c, params, 0, batch_dims), ctx_sub(c, indices, batch_dims, SHAPE_END)) : indices;
    ctx_out(c, 0, ctx_concat(c, out, ctx_sub(c, params, batch_dims + 1, SHAPE_END)));
}

static void resource_gather_nd(ShapeContext *c) {
    check_handle_type(c);
    gather_nd_of(c, c->in_handles[0].is_known ? c->in_handles[0].shape : c->in[0]);
}

/* Updates go to rows of `ref`: indices' shape, then the rows' shape; or they are scalars. */
static void check_scatter(ShapeContext *c, PartialShape ref) {
    PartialShape updates = c->in[2], rows;
    if (updates.rank == 0) return;
    rows = ctx_sub(c, ref, 1, SHAPE_END);
    ctx_merge(c, updates, ctx_concat(c, c->in[1], rows));
}

static void scatter(ShapeContext *c) {
    check_scatter(c, c->in[0]);
    ctx_out(c, 0, c->in[0]);
}

static void resource_scatter(ShapeContext *c) {
    check_handle_type(c);
    check_scatter(c, handle_shape(c, 0));
}

/* indices [S..., depth], updates [S..., dims of `ref` from depth on]. */
static void check_scatter_nd(ShapeContext *c, PartialShape indices, PartialShape updates, PartialShape ref) {
    if (ref.rank >= 0 && shape_elements(ref) == 0 && (shape_elements(indices) > 0 || shape_elements(updates) > 0))
        ctx_fail(c, "Indices and updates specified for empty output shape");
    if (indices.rank < 0 || updates.rank < 0) return;
    int outer = indices.rank - 1;
    int64_t depth = shape_dim(indices, -1);
    if (indices.rank < 1 || depth < 0) return;
    PartialShape a = ctx_sub(c, updates, 0, outer), b = ctx_sub(c, indices, 0, outer);
    ctx_merge(c, a, b);
    if (ref.rank < 0) return;
    ctx_merge(c, ctx_sub(c, ref, depth > ref.rank ? ref.rank : (int)depth, SHAPE_END), ctx_sub(c, updates, outer, SHAPE_END));
}

static void scatter_nd(ShapeContext *c) {
    PartialShape out = ctx_shape_of_or_scalar(c, 2);
    PartialShape indices = ctx_rank_at_least(c, c->in[0], 1), updates = ctx_rank_at_least(c, c->in[1], 1);
    check_scatter_nd(c, indices, updates, out);
    ctx_out(c, 0, out);
}

static void scatter_nd_update(ShapeContext *c) {
    PartialShape ref = c->in_handles[0].is_known ? c->in_handles[0].shape : c->in[0];
    PartialShape indices = ctx_rank_at_least(c, c->in[1], 1), updates = ctx_rank_at_least(c, c->in[2], 1);
    check_scatter_nd(c, indices, updates, ref);
    ctx_out(c, 0, ref);
}

static void tensor_scatter(ShapeContext *c) {
    PartialShape ref = ctx_rank_at_least(c, c->in[0], 1), indices = ctx_rank_at_least(c, c->in[1], 1);
    if (c->in[2].rank != 0) check_scatter_nd(c, indices, c->in[2], ref);
    ctx_out(c, 0, ref);
}

const ShapeRow slice_rules[] = {
    {"Gather", gather, 0},
    {"GatherNd", gather_nd, 0},
    {"GatherV2", gather_v2, 0},
    {"ResourceGather", resource_gather, 0},
    {"ResourceGatherNd", resource_gather_nd, 0},
    {"ResourceScatterAdd", resource_scatter, 0},
    {"ResourceScatterDiv", resource_scatter, 0},
    {"ResourceScatterMax", resource_scatter, 0},
    {"ResourceScatterMin", resource_scatter, 0},
    {"ResourceScatterMul", resource_scatter, 0},
    {"ResourceScatterNdAdd", scatter_nd_update, 0},
    {"ResourceScatterNdMax", scatter_nd_update, 0},
    {"ResourceScatterNdMin", scatter_nd_update, 0},
    {"ResourceScatterNdSub", scatter_nd_update, 0},
    {"ResourceScatterNdUpdate", scatter_nd_update, 0},
    {"ResourceScatterSub", resource_scatter, 0},
    {"ResourceScatterUpdate", resource_scatter, 0},
    {"ScatterAdd", scatter, 0},
    {"ScatterDiv", scatter, 0},
    {"ScatterMax", scatter, 0},
    {"ScatterMin", scatter, 0},
    {"ScatterMul", scatter, 0},
    {"ScatterNd", scatter_nd, 0},
    {"ScatterNdAdd", scatter_nd_update, 0},
    {"ScatterNdMax", scatter_nd_update, 0},
    {"ScatterNdMin", scatter_nd_update, 0},
    {"ScatterNdNonAliasingAdd", tensor_scatter, 0},
    {"ScatterNdSub", scatter_nd_update, 0},
    {"ScatterNdUpdate", scatter_nd_update, 0},
    {"ScatterSub", scatter, 0},
    {"ScatterUpdate", scatter, 0},
    {"Slice", slice, 0},
    {"TensorScatterAdd", tensor_scatter, 0},
    {"TensorScatterMax", tensor_scatter, 0},
    {"TensorScatterMin", tensor_scatter, 0},
    {"TensorScatterSub", tensor_scatter, 0},
    {"TensorScatterUpdate", tensor_scatter, 0},
    {0},
};
