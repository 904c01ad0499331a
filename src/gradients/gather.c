/* gather.c: gradients of reading and writing at indices. */
#include "gradients/rule.h"

/* Rows of dy behind each other, to be added at the indices. */
static void set_rows(Builder *b, Rule *r, Output shape) {
    Output indices = b_flatten(b, rule_in(r, 1));
    Output values = b_reshape(b, rule_dy(r, 0), b_concat2(b, b_shape(b, indices), b_items(b, shape, 1, 0), 0));
    rule_set_sparse(r, 0, values, indices, shape);
}

static Output product(Builder *b, Output shape, Output from, Output to) {
    Output part = b_slice(b, shape, b_expand(b, from, 0), b_expand(b, b_sub(b, to, from), 0));
    return b_expand(b, b_prod(b, part, b_i32(b, 0)), 0);
}

/* As tensors [batch, outer, rows, inner], params of `rows`, indices of [batch, k]: brought to [batch * rows, outer *
 * inner], added up there, and brought back. */
static void gather_anywhere(Builder *b, Rule *r, Output shape, Output axis, int64_t batch_dims) {
    Output indices = rule_in(r, 1), index_shape = rule_in_shape(r, 1), zero = b_i32(b, 0), rank = b_size(b, shape);
    axis = b_op2(b, "FloorMod", b_cast(b, axis, DT_INT32), rank);
    Output dims = b_i32(b, (int)batch_dims);
    if (batch_dims < 0) dims = b_add(b, dims, b_size(b, index_shape));
    Output next = b_shift(b, axis, 1);
    Output batch = product(b, shape, zero, dims), outer = product(b, shape, dims, axis),
           inner = product(b, shape, next, rank);
    Output rows = product(b, shape, axis, next), k = product(b, index_shape, dims, b_size(b, index_shape));
    Output perm = b_i32s(b, 4, (int[]){0, 2, 1, 3});
    Output dy = b_reshape(b, rule_dy(r, 0), b_concat(b, (Output[]){batch, outer, k, inner}, 4, 0));
    Output flat = b_reshape(b, b_transpose(b, dy, perm), b_concat2(b, b_mul(b, batch, k), b_mul(b, outer, inner), 0));
    Output table = b_cast(b, b_reshape(b, indices, b_concat2(b, batch, k, 0)), DT_INT32);
    Output starts = b_expand(b, b_mul(b, b_range(b, zero, b_item(b, batch, 0)), rows), 1);
    Output sums = b_op3(b, "UnsortedSegmentSum", flat, b_flatten(b, b_add(b, table, starts)),
                        b_item(b, b_mul(b, batch, rows), 0));
    Output apart = b_reshape(b, sums, b_concat(b, (Output[]){batch, rows, outer, inner}, 4, 0));
    rule_set(r, 0, b_reshape(b, b_transpose(b, apart, perm), shape));
}

static void gather_grad(Builder *b, Rule *r) {
    set_rows(b, r, rule_in_shape(r, 0));
}

static void gather_v2_grad(Builder *b, Rule *r) {
    int64_t axis, batch_dims = rule_int(b, r, "batch_dims");
    if (batch_dims == 0 && rule_const_int(r, 2, &axis) && axis == 0)
        set_rows(b, r, rule_in_shape(r, 0));
    else
        gather_anywhere(b, r, rule_in_shape(r, 0), rule_in(r, 2), batch_dims);
}

static void resource_gather_grad(Builder *b, Rule *r) {
    int64_t batch_dims = rule_int(b, r, "batch_dims");
    if (batch_dims == 0)
        set_rows(b, r, rule_in_shape(r, 0));
    else
        gather_anywhere(b, r, rule_in_shape(r, 0), b_i32(b, (int)batch_dims), batch_dims);
}

static void gather_nd_grad(Builder *b, Rule *r) {
    Output indices = rule_in(r, 1), shape = b_cast(b, rule_in_shape(r, 0), output_dtype(indices));
    rule_set(r, 0, b_op3(b, "ScatterNd", indices, rule_dy(r, 0), shape));
}

static void scatter_nd_grad(Builder *b, Rule *r) {
    rule_set(r, 1, b_op2(b, "GatherNd", rule_dy(r, 0), rule_in(r, 0)));
}

static void scatter_nd_add_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    if (rule_wants(r, 0)) rule_set(r, 0, dy);
    if (rule_wants(r, 2)) rule_set(r, 2, b_op2(b, "GatherNd", dy, rule_in(r, 1)));
}

static void tensor_scatter_sub_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    if (rule_wants(r, 0)) rule_set(r, 0, dy);
    if (rule_wants(r, 2)) rule_set(r, 2, b_neg(b, b_op2(b, "GatherNd", dy, rule_in(r, 1))));
}

static void tensor_scatter_update_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), indices = rule_in(r, 1), updates = b_op2(b, "GatherNd", dy, indices);
    if (rule_wants(r, 0)) rule_set(r, 0, b_op3(b, "TensorScatterUpdate", dy, indices, b_zeros_like(b, updates)));
    if (rule_wants(r, 2)) rule_set(r, 2, updates);
}

/* Equal extremes, old and new, share the gradient. */
static void tensor_scatter_extreme_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), x = rule_in(r, 0), indices = rule_in(r, 1), updates = rule_in(r, 2), y = rule_out(r, 0);
    DataType type = output_dtype(x);
    Output kept = b_cast(b, b_op2(b, "Equal", x, y), type);
    Output taken = b_cast(b, b_op2(b, "Equal", updates, b_op2(b, "GatherNd", y, indices)), type);
    Output winners =
        b_add(b, kept, b_op3(b, "ScatterNd", indices, taken, b_cast(b, b_shape(b, x), output_dtype(indices))));
    Output share = b_div(b, dy, b_op2(b, "Maximum", winners, b_ones_like(b, winners)));
    if (rule_wants(r, 0)) rule_set(r, 0, b_mul(b, kept, share));
    if (rule_wants(r, 2)) rule_set(r, 2, b_mul(b, taken, b_op2(b, "GatherNd", share, indices)));
}

/* ---- By partitions ---- */

/* Where each element went, then everything fetched from there. */
static void dynamic_partition_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    int count = n->output_count;
    Output partitions = rule_in(r, 1), shape = rule_in_shape(r, 1);
    Output numbers = b_reshape(b, b_range(b, b_i32(b, 0), b_prod(b, shape, b_i32(b, 0))), shape);
    Output split[] = {numbers, partitions};
    b_with_int(b, "num_partitions", count);
    Node *places = b_node(b, "DynamicPartition", split, 2);
    Output *inputs = arena_calloc(b->g->arena, (size_t)count * 2, sizeof *inputs);
    for (int i = 0; i < count; i++) {
        inputs[i] = output_of(places, i);
        inputs[count + i] = rule_dy(r, i);
    }
    b_with_int(b, "N", count);
    Output joined = b_op(b, "DynamicStitch", inputs, count * 2);
    rule_set(r, 0, b_reshape(b, joined, rule_in_shape(r, 0)));
}

static void dynamic_stitch_grad(Builder *b, Rule *r) {
    int count = rule_node(r)->input_count / 2;
    Output dy = rule_dy(r, 0);
    for (int i = 0; i < count; i++)
        if (rule_wants(r, count + i)) rule_set(r, count + i, b_gather(b, dy, rule_in(r, i)));
}

const GradientDef gather_gradients[] = {
    {"DynamicPartition", dynamic_partition_grad},
    {"DynamicStitch", dynamic_stitch_grad},
    {"Gather", gather_grad},
    {"GatherNd", gather_nd_grad},
    {"GatherV2", gather_v2_grad},
    {"ParallelDynamicStitch", dynamic_stitch_grad},
    {"ResourceGather", resource_gather_grad},
    {"ResourceGatherNd", gather_nd_grad},
    {"ScatterNd", scatter_nd_grad},
    {"ScatterNdNonAliasingAdd", scatter_nd_add_grad},
    {"TensorScatterAdd", scatter_nd_add_grad},
    {"TensorScatterMax", tensor_scatter_extreme_grad},
    {"TensorScatterMin", tensor_scatter_extreme_grad},
    {"TensorScatterSub", tensor_scatter_sub_grad},
    {"TensorScatterUpdate", tensor_scatter_update_grad},
    {0},
};
