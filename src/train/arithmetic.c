/* arithmetic.c: the everyday ops by a short name. */
#include <stdlib.h>

#include "base/memory.h"
#include "train/graph_internal.h"

RillTensor rill_add(RillGraph *g, RillTensor x, RillTensor y) {
    return rill_binary(g, "AddV2", x, y);
}

RillTensor rill_sub(RillGraph *g, RillTensor x, RillTensor y) {
    return rill_binary(g, "Sub", x, y);
}

RillTensor rill_mul(RillGraph *g, RillTensor x, RillTensor y) {
    return rill_binary(g, "Mul", x, y);
}

static bool is_integer(TF_DataType t) {
    return t == TF_INT8 || t == TF_INT16 || t == TF_INT32 || t == TF_INT64 || t == TF_UINT8 || t == TF_UINT16 || t == TF_UINT32 || t == TF_UINT64;
}

RillTensor rill_div(RillGraph *g, RillTensor x, RillTensor y) {
    return rill_binary(g, is_integer(rill_type(x)) ? "FloorDiv" : "RealDiv", x, y);
}

RillTensor rill_scale(RillGraph *g, RillTensor x, double factor) {
    return rill_mul(g, x, rill_const_as(g, tensor_ok(x) ? rill_type(x) : TF_FLOAT, factor));
}

RillTensor rill_add_n(RillGraph *g, const RillTensor *x, int count) {
    if (count == 1) return x[0];
    return rill_op(g, "AddN", NULL, x, count, NULL, 0);
}

RillTensor rill_matmul(RillGraph *g, RillTensor x, RillTensor y, bool transpose_x, bool transpose_y) {
    return rill_op(g, "MatMul", NULL, (RillTensor[]){x, y}, 2, (RillAttr[]){RILL_BOOL("transpose_a", transpose_x), RILL_BOOL("transpose_b", transpose_y)}, 2);
}

RillTensor rill_cast(RillGraph *g, RillTensor x, TF_DataType type) {
    if (rill_type(x) == type) return x;
    return rill_op(g, "Cast", NULL, &x, 1, (RillAttr[]){RILL_TYPE("DstT", type)}, 1);
}

RillTensor rill_identity(RillGraph *g, RillTensor x, const char *name) {
    return rill_op(g, "Identity", name, &x, 1, NULL, 0);
}

RillTensor rill_reshape(RillGraph *g, RillTensor x, const int64_t *dims, int rank) {
    RillTensor shape = rill_const(g, "shape", TF_INT64, (int64_t[]){rank}, 1, dims);
    return rill_binary(g, "Reshape", x, shape);
}

RillTensor rill_transpose(RillGraph *g, RillTensor x, const int32_t *order, int rank) {
    return rill_binary(g, "Transpose", x, rill_const_i32s(g, order, rank));
}

RillTensor rill_concat(RillGraph *g, const RillTensor *x, int count, int axis) {
    RillTensor *in = xcalloc((size_t)count + 1, sizeof *in);
    for (int i = 0; i < count; i++) in[i] = x[i];
    in[count] = rill_const_i32(g, axis);
    RillTensor out = count == 1 ? x[0] : rill_op(g, "ConcatV2", "concat", in, count + 1, NULL, 0);
    free(in);
    return out;
}

RillTensor rill_stack(RillGraph *g, const RillTensor *x, int count, int axis) {
    return rill_op(g, "Pack", "stack", x, count, (RillAttr[]){RILL_INT("axis", axis)}, 1);
}

/* All axes: a range up to the rank, which may be known only when it runs. */
static RillTensor axes_of(RillGraph *g, RillTensor x, const int32_t *axes, int count) {
    if (count) return rill_const_i32s(g, axes, count);
    RillShape shape = rill_shape(g, x);
    if (shape.rank >= 0) {
        int32_t all[8];
        for (int i = 0; i < shape.rank; i++) all[i] = i;
        return rill_const_i32s(g, all, shape.rank);
    }
    RillTensor in[] = {rill_const_i32(g, 0), rill_unary(g, "Rank", x), rill_const_i32(g, 1)};
    return rill_op(g, "Range", NULL, in, 3, NULL, 0);
}

static RillTensor reduce(RillGraph *g, const char *op, RillTensor x, const int32_t *axes, int count, bool keep_dims) {
    if (rill_graph_failed(g)) return NO_TENSOR;
    RillTensor in[] = {x, axes_of(g, x, axes, count)};
    return rill_op(g, op, NULL, in, 2, (RillAttr[]){RILL_BOOL("keep_dims", keep_dims)}, 1);
}

RillTensor rill_reduce_sum(RillGraph *g, RillTensor x, const int32_t *axes, int count, bool keep_dims) {
    return reduce(g, "Sum", x, axes, count, keep_dims);
}

RillTensor rill_reduce_mean(RillGraph *g, RillTensor x, const int32_t *axes, int count, bool keep_dims) {
    return reduce(g, "Mean", x, axes, count, keep_dims);
}

RillTensor rill_argmax(RillGraph *g, RillTensor x, int axis) {
    return rill_binary(g, "ArgMax", x, rill_const_i32(g, axis));
}

RillTensor rill_equal(RillGraph *g, RillTensor x, RillTensor y) {
    return rill_binary(g, "Equal", x, y);
}

RillTensor rill_one_hot(RillGraph *g, RillTensor indices, int depth) {
    RillTensor in[] = {indices, rill_const_i32(g, depth), rill_const_f32(g, 1), rill_const_f32(g, 0)};
    return rill_op(g, "OneHot", NULL, in, 4, NULL, 0);
}
