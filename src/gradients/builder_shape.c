/* builder_shape.c: the ops of builder.h that ask for shapes and change them. */
#include "gradients/builder.h"

Output b_shape(Builder *b, Output x) {
    return b_op1(b, output_dtype(x) == DT_RESOURCE ? "VariableShape" : "Shape", x);
}

Output b_rank(Builder *b, Output x) {
    return b_op1(b, "Rank", x);
}

Output b_size(Builder *b, Output x) {
    return b_op1(b, "Size", x);
}

Output b_reshape(Builder *b, Output x, Output shape) {
    return b_op2(b, "Reshape", x, shape);
}

Output b_reshape_like(Builder *b, Output x, Output like) {
    return b_reshape(b, x, b_shape(b, like));
}

Output b_flatten(Builder *b, Output x) {
    return b_reshape(b, x, b_i32s(b, 1, (int[]){-1}));
}

Output b_expand(Builder *b, Output x, int axis) {
    return b_op2(b, "ExpandDims", x, b_i32(b, axis));
}

Output b_squeeze(Builder *b, Output x, int axis) {
    Output shape = b_shape(b, x), before = b_items(b, shape, 0, axis);
    Output after = axis == -1 ? b_i32s(b, 0, NULL) : b_items(b, shape, axis + 1, 0);
    return b_reshape(b, x, b_concat2(b, before, after, 0));
}

Output b_zeros_like(Builder *b, Output x) {
    return b_op1(b, "ZerosLike", x);
}

Output b_ones_like(Builder *b, Output x) {
    return b_op1(b, "OnesLike", x);
}

Output b_fill(Builder *b, Output shape, Output value) {
    return b_op2(b, "Fill", shape, value);
}

Output b_broadcast(Builder *b, Output x, Output shape) {
    return b_op2(b, "BroadcastTo", x, shape);
}

Output b_concat(Builder *b, const Output *parts, int count, int axis) {
    if (count == 1) return parts[0];
    if (b->error) return NO_OUTPUT;
    Output *inputs = arena_calloc(b->g->arena, (size_t)count + 1, sizeof *inputs);
    for (int i = 0; i < count; i++) inputs[i] = parts[i];
    inputs[count] = b_i32(b, axis);
    return b_op(b, "ConcatV2", inputs, count + 1);
}

Output b_concat2(Builder *b, Output x, Output y, int axis) {
    return b_op3(b, "ConcatV2", x, y, b_i32(b, axis));
}

Output b_range(Builder *b, Output from, Output to) {
    return b_op3(b, "Range", from, to, b_i32(b, 1));
}

Output b_gather(Builder *b, Output x, Output indices) {
    return b_op3(b, "GatherV2", x, indices, b_i32(b, 0));
}

Output b_slice(Builder *b, Output x, Output begin, Output size) {
    return b_op3(b, "Slice", x, begin, size);
}

Output b_item(Builder *b, Output vector, int i) {
    Output begin = b_i32s(b, 1, &i), end = b_i32s(b, 1, (int[]){i + 1}), one = b_i32s(b, 1, (int[]){1});
    b_with_int(b, "shrink_axis_mask", 1);
    if (i == -1) b_with_int(b, "end_mask", 1);
    return b_op4(b, "StridedSlice", vector, begin, end, one);
}

Output b_items(Builder *b, Output vector, int from, int to) {
    Output begin = b_i32s(b, 1, &from), end = b_i32s(b, 1, &to), one = b_i32s(b, 1, (int[]){1});
    if (to == 0 && from != 0) b_with_int(b, "end_mask", 1);
    return b_op4(b, "StridedSlice", vector, begin, end, one);
}

Output b_pack(Builder *b, const Output *parts, int count) {
    return b_op(b, "Pack", parts, count);
}

Output b_transpose(Builder *b, Output x, Output perm) {
    return b_op2(b, "Transpose", x, perm);
}

Output b_swap_last(Builder *b, Output x, bool conjugate) {
    Output rank = b_rank(b, x);
    Output front = b_range(b, b_i32(b, 0), b_sub(b, rank, b_i32(b, 2)));
    Output last = b_add(b, b_i32s(b, 2, (int[]){-1, -2}), rank);
    Output perm = b_concat2(b, front, last, 0);
    return conjugate && dtype_is_complex(output_dtype(x)) ? b_op2(b, "ConjugateTranspose", x, perm)
                                                          : b_transpose(b, x, perm);
}

Output b_matmul(Builder *b, Output x, Output y, bool transpose_x, bool transpose_y) {
    b_with_bool(b, "transpose_a", transpose_x);
    b_with_bool(b, "transpose_b", transpose_y);
    return b_op2(b, "MatMul", x, y);
}

Output b_batch_matmul(Builder *b, Output x, Output y, bool adjoint_x, bool adjoint_y) {
    b_with_bool(b, "adj_x", adjoint_x);
    b_with_bool(b, "adj_y", adjoint_y);
    return b_op2(b, "BatchMatMulV2", x, y);
}
