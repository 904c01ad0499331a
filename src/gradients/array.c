/* array.c: gradients of ops that move values about without computing. */
#include "gradients/rule.h"

static void pass(Builder *b, Rule *r) {
    (void)b;
    Gradient dy = rule_sparse_dy(r, 0);
    rule_set_sparse(r, 0, dy.values, dy.indices, dy.dense_shape);
}

static void pass_all(Builder *b, Rule *r) {
    (void)b;
    for (int i = 0; i < rule_node(r)->input_count; i++)
        if (rule_has_dy(r, i)) rule_set(r, i, rule_dy(r, i));
}

static void check_numerics_grad(Builder *b, Rule *r) {
    Str message = rule_string(b, r, "message");
    Output dy = rule_dy(r, 0);
    b_with(b, "message",
           attr_make_string(
               b->g->arena,
               arena_printf(b->g->arena, "Not a number (NaN) or infinity (Inf) values detected in gradient. %.*s",
                            STR_ARG(message))));
    rule_set(r, 0, b_op1(b, node_is(rule_node(r), "CheckNumericsV2") ? "CheckNumericsV2" : "CheckNumerics", dy));
}

static void prevent_gradient_grad(Builder *b, Rule *r) {
    Str message = rule_string(b, r, "message");
    b_fail(b, error_not_found("Gradient explicitly disabled. Reason: %.*s", STR_ARG(message)));
}

static void reshape_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_reshape(b, rule_dy(r, 0), rule_in_shape(r, 0)));
}

static void fill_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    if (rule_wants(r, 1)) rule_set(r, 1, b_sum(b, dy, b_range(b, b_i32(b, 0), b_rank(b, dy)), false));
}

static void broadcast_to_grad(Builder *b, Rule *r) {
    rule_set_reduced_to(b, r, 0, rule_dy(r, 0), b_cast(b, rule_in(r, 1), DT_INT32));
}

static void transpose_grad(Builder *b, Rule *r) {
    Output back = b_op1(b, "InvertPermutation", rule_in(r, 1)), dy = rule_dy(r, 0);
    rule_set(r, 0,
             node_is(rule_node(r), "ConjugateTranspose") ? b_op2(b, "ConjugateTranspose", dy, back)
                                                         : b_transpose(b, dy, back));
}

/* ---- Joining and splitting ---- */

static void pack_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    Output dy = rule_dy(r, 0);
    b_with_int(b, "num", n->input_count);
    b_with_attrs_of(b, n);
    Node *parts = b_node(b, "Unpack", &dy, 1);
    for (int i = 0; i < n->input_count; i++) rule_set(r, i, output_of(parts, i));
}

/* All gradients of the node's outputs, in the graph's arena. */
static Output *all_dys(Builder *b, Rule *r, int *count) {
    *count = rule_node(r)->output_count;
    Output *dys = arena_calloc(b->g->arena, (size_t)*count + 1, sizeof *dys);
    for (int i = 0; i < *count; i++) dys[i] = rule_dy(r, i);
    return dys;
}

static void unpack_grad(Builder *b, Rule *r) {
    int count;
    Output *dys = all_dys(b, r, &count);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_pack(b, dys, count));
}

static void concat_parts(Builder *b, Rule *r, int axis, int first, int count) {
    Output dy = rule_dy(r, 0);
    if (count == 1) {
        rule_set(r, first, dy);
        return;
    }
    Output *inputs = arena_calloc(b->g->arena, (size_t)count + 1, sizeof *inputs);
    inputs[0] = b_op2(b, "FloorMod", b_cast(b, rule_in(r, axis), DT_INT32), b_rank(b, dy));
    for (int i = 0; i < count; i++) inputs[i + 1] = rule_in_shape(r, first + i);
    Node *offsets = b_node(b, "ConcatOffset", inputs, count + 1);
    for (int i = 0; i < count; i++)
        if (rule_wants(r, first + i)) rule_set(r, first + i, b_slice(b, dy, output_of(offsets, i), inputs[i + 1]));
}

static void concat_grad(Builder *b, Rule *r) {
    concat_parts(b, r, 0, 1, rule_node(r)->input_count - 1);
}

static void concat_v2_grad(Builder *b, Rule *r) {
    concat_parts(b, r, -1, 0, rule_node(r)->input_count - 1);
}

static Output joined(Builder *b, Rule *r, int axis) {
    int count;
    Output *dys = all_dys(b, r, &count);
    if (count == 1) return dys[0];
    dys[count] = rule_in(r, axis);
    return b_op(b, "ConcatV2", dys, count + 1);
}

static void split_grad(Builder *b, Rule *r) {
    rule_set(r, 1, joined(b, r, 0));
}

static void split_v_grad(Builder *b, Rule *r) {
    rule_set(r, 0, joined(b, r, 2));
}

/* ---- Parts and padding ---- */

static Output shape_as(Builder *b, Rule *r, int i, Output type_like) {
    return b_cast(b, rule_in_shape(r, i), output_dtype(type_like));
}

static void slice_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), begin = rule_in(r, 1);
    Output size = b_cast(b, b_shape(b, dy), output_dtype(begin));
    Output behind = b_sub(b, b_sub(b, shape_as(b, r, 0, begin), size), begin);
    Output columns[] = {begin, behind};
    b_with_int(b, "axis", 1);
    Output paddings = b_pack(b, columns, 2);
    rule_set(r, 0, b_op2(b, "Pad", dy, paddings));
}

static void strided_slice_grad(Builder *b, Rule *r) {
    Output begin = rule_in(r, 1), end = rule_in(r, 2), strides = rule_in(r, 3), dy = rule_dy(r, 0),
           shape = shape_as(b, r, 0, begin);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op5(b, "StridedSliceGrad", shape, begin, end, strides, dy));
}

static Output sliced_like(Builder *b, Rule *r, Output x) {
    Output begin = rule_in(r, 1), end = rule_in(r, 2), strides = rule_in(r, 3);
    b_with_attrs_of(b, rule_node(r));
    return b_op4(b, "StridedSlice", x, begin, end, strides);
}

static void strided_slice_grad_grad(Builder *b, Rule *r) {
    rule_set(r, 4, sliced_like(b, r, rule_dy(r, 0)));
}

static void strided_slice_update_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), part = sliced_like(b, r, dy);
    if (rule_wants(r, 0)) {
        Output begin = rule_in(r, 1), end = rule_in(r, 2), strides = rule_in(r, 3), zeros = b_zeros_like(b, part);
        b_with_attrs_of(b, rule_node(r));
        rule_set(r, 0, b_op5(b, "TensorStridedSliceUpdate", dy, begin, end, strides, zeros));
    }
    if (rule_wants(r, 4)) rule_set_reduced_to(b, r, 4, part, b_shape(b, part));
}

static void pad_grad(Builder *b, Rule *r) {
    Output paddings = rule_in(r, 1);
    Output begin = b_gather(b, b_transpose(b, paddings, b_i32s(b, 2, (int[]){1, 0})), b_i32(b, 0));
    rule_set(r, 0, b_slice(b, rule_dy(r, 0), begin, shape_as(b, r, 0, paddings)));
}

static void mirror_pad_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), paddings = rule_in(r, 1);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op2(b, "MirrorPadGrad", dy, paddings));
}

static void mirror_pad_grad_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), paddings = rule_in(r, 1);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op2(b, "MirrorPad", dy, paddings));
}

/* dy with each dimension split in two, copies and size; the copies are added up. */
static void tile_grad(Builder *b, Rule *r) {
    Output copies = b_cast(b, rule_in(r, 1), DT_INT32), columns[] = {copies, rule_in_shape(r, 0)};
    b_with_int(b, "axis", 1);
    Output table = b_pack(b, columns, 2), split = b_flatten(b, table);
    Output axes = b_op3(b, "Range", b_i32(b, 0), b_size(b, split), b_i32(b, 2));
    rule_set(r, 0, b_sum(b, b_reshape(b, rule_dy(r, 0), split), axes, false));
}

/* ---- Other orders ---- */

/* Ops that undo themselves, or each other: the same further inputs and attributes. */
static void by_inverse(Builder *b, Rule *r, const char *inverse) {
    const Node *n = rule_node(r);
    Output inputs[4] = {rule_dy(r, 0)};
    for (int i = 1; i < n->input_count && i < 4; i++) inputs[i] = rule_in(r, i);
    b_with_attrs_of(b, n);
    rule_set(r, 0, b_op(b, inverse, inputs, n->input_count));
}

static void reverse_grad(Builder *b, Rule *r) {
    by_inverse(b, r, "Reverse");
}

static void reverse_v2_grad(Builder *b, Rule *r) {
    by_inverse(b, r, "ReverseV2");
}

static void reverse_sequence_grad(Builder *b, Rule *r) {
    by_inverse(b, r, "ReverseSequence");
}

static void space_to_batch_grad(Builder *b, Rule *r) {
    by_inverse(b, r, "BatchToSpace");
}

static void batch_to_space_grad(Builder *b, Rule *r) {
    by_inverse(b, r, "SpaceToBatch");
}

static void space_to_batch_nd_grad(Builder *b, Rule *r) {
    by_inverse(b, r, "BatchToSpaceND");
}

static void batch_to_space_nd_grad(Builder *b, Rule *r) {
    by_inverse(b, r, "SpaceToBatchND");
}

static void space_to_depth_grad(Builder *b, Rule *r) {
    by_inverse(b, r, "DepthToSpace");
}

static void depth_to_space_grad(Builder *b, Rule *r) {
    by_inverse(b, r, "SpaceToDepth");
}

static void band_part_grad(Builder *b, Rule *r) {
    by_inverse(b, r, "MatrixBandPart");
}

static void roll_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_op3(b, "Roll", rule_dy(r, 0), b_neg(b, rule_in(r, 1)), rule_in(r, 2)));
}

const GradientDef array_gradients[] = {
    {"BatchToSpace", batch_to_space_grad},
    {"BatchToSpaceND", batch_to_space_nd_grad},
    {"BroadcastTo", broadcast_to_grad},
    {"CheckNumerics", check_numerics_grad},
    {"CheckNumericsV2", check_numerics_grad},
    {"Concat", concat_grad},
    {"ConcatV2", concat_v2_grad},
    {"ConjugateTranspose", transpose_grad},
    {"DepthToSpace", depth_to_space_grad},
    {"EnsureShape", pass},
    {"ExpandDims", reshape_grad},
    {"Fill", fill_grad},
    {"DebugGradientIdentity", pass},
    {"DebugGradientRefIdentity", pass},
    {"DebugIdentityV2", pass},
    {"Identity", pass},
    {"XlaSharding", pass},
    {"XlaClusterOutput", pass},
    {"IdentityN", pass_all},
    {"MatrixBandPart", band_part_grad},
    {"MirrorPad", mirror_pad_grad},
    {"MirrorPadGrad", mirror_pad_grad_grad},
    {"Pack", pack_grad},
    {"Pad", pad_grad},
    {"PadV2", pad_grad},
    {"PlaceholderWithDefault", pass},
    {"PreventGradient", prevent_gradient_grad},
    {"Print", pass},
    {"RefIdentity", pass},
    {"Reshape", reshape_grad},
    {"Reverse", reverse_grad},
    {"ReverseSequence", reverse_sequence_grad},
    {"ReverseV2", reverse_v2_grad},
    {"Roll", roll_grad},
    {"Slice", slice_grad},
    {"SpaceToBatch", space_to_batch_grad},
    {"SpaceToBatchND", space_to_batch_nd_grad},
    {"SpaceToDepth", space_to_depth_grad},
    {"Split", split_grad},
    {"SplitV", split_v_grad},
    {"Squeeze", reshape_grad},
    {"StridedSlice", strided_slice_grad},
    {"StridedSliceGrad", strided_slice_grad_grad},
    {"TensorStridedSliceUpdate", strided_slice_update_grad},
    {"Tile", tile_grad},
    {"Transpose", transpose_grad},
    {"Unpack", unpack_grad},
    {0},
};
