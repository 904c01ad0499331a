/* fill.c: Fill, ZerosLike, OnesLike, OneHot, BroadcastTo. */
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/variant_math.h"

const OpDef fill_ops[] = {
    {"Fill", "dims: index_type, value: T -> output: T", "T: type; index_type: {int32, int64} = int32", 0},
    {"ZerosLike", "x: T -> y: T", "T: type", 0},
    {"OnesLike", "x: T -> y: T",
     "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "
     "complex128, bool}",
     0},
    {"OneHot", "indices: TI, depth: int32, on_value: T, off_value: T -> output: T",
     "axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = int64", 0},
    {"BroadcastTo", "input: T, shape: Tidx -> output: T", "T: type; Tidx: {int32, int64} = int32", 0},
    {0},
};

/* A shape given as a vector or a scalar of integers. */
static Error *read_dims(const Tensor *t, const char *what, Shape *out) {
    if (t->shape.rank > 1)
        return error_invalid("%s must represent a vector, got shape %s", what, shape_text(&t->shape).text);
    if (t->count > SHAPE_MAX_RANK) return error_invalid("%s has more than %d elements", what, SHAPE_MAX_RANK);
    out->rank = (int)t->count;
    for (int d = 0; d < out->rank; d++) {
        out->dims[d] = index_at(t, d);
        if (out->dims[d] < 0) return error_invalid("Dimension %lld must be >= 0", (long long)out->dims[d]);
    }
    return shape_check(out);
}

static Error *run_fill(KernelContext *k) {
    Shape shape;
    Error *err = read_dims(k->in[0], "dims", &shape);
    if (err) return err;
    if (k->in[1]->count != 1)
        return error_invalid("value must represent a scalar, got shape %s", shape_text(&k->in[1]->shape).text);
    Tensor *out = kernel_output(k, 0, &shape);
    if (out) copy_fill(k->pool, element_kind(out->dtype), out->data, k->in[1]->data, out->count);
    return NULL;
}

static Error *run_zeros_like(KernelContext *k) {
    const Tensor *in = k->in[0];
    if (in->dtype == DT_RESOURCE || in->dtype == DT_VARIANT) {
        Tensor *zeros = NULL;
        Error *err = tensor_zeros_like(in, &zeros);
        if (!err) kernel_set_output(k, 0, zeros);
        return err;
    }
    Tensor *out = kernel_output(k, 0, &in->shape);
    if (out && dtype_is_plain(out->dtype)) memset(out->data, 0, tensor_bytes(out));
    return NULL;
}

static Error *run_ones_like(KernelContext *k) {
    const RowMath *math = row_math(k->in[0]->dtype);
    if (!math) return kernel_lacks_type(k->node, k->in[0]->dtype);
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    if (out) copy_fill(k->pool, element_kind(out->dtype), out->data, math->one, out->count);
    return NULL;
}

typedef struct OneHotState {
    int64_t axis;
} OneHotState;

static Error *one_hot_init(const Node *node, void *state) {
    return node_attr_int(node, "axis", &((OneHotState *)state)->axis);
}

static Error *run_one_hot(KernelContext *k) {
    const Tensor *indices = k->in[0];
    int64_t axis = ((const OneHotState *)k->state)->axis, depth;
    int rank = indices->shape.rank;
    if (axis != -1 && (axis < 0 || axis > rank))
        return error_invalid("Expected axis to be -1 or between [0, %d).  But received: %lld", rank + 1,
                             (long long)axis);
    if (k->in[1]->shape.rank != 0) return error_invalid("depth must be a scalar, but got: %s", shape_text(&k->in[1]->shape).text);
    depth = index_at(k->in[1], 0);
    if (depth < 0) return error_invalid("depth must be non-negative, got: %lld", (long long)depth);
    for (int i = 2; i < 4; i++) {
        if (k->in[i]->shape.rank != 0)
            return error_invalid("%s must be a scalar, but got: %s", i == 2 ? "on_value" : "off_value", shape_text(&k->in[i]->shape).text);
    }
    if (rank >= SHAPE_MAX_RANK) return error_invalid("Too many dimensions for OneHot");
    if (axis < 0) axis = rank;
    Shape shape = indices->shape;
    shape_insert_dim(&shape, (int)axis, depth);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    ElementKind kind = element_kind(out->dtype);
    copy_fill(k->pool, kind, out->data, k->in[3]->data, out->count);
    int64_t inner = shape_prod(&indices->shape, (int)axis, rank);
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t hot = index_at(indices, i);
        if (hot < 0 || hot >= depth) continue;
        int64_t at = (i / inner * depth + hot) * inner + i % inner;
        copy_elements(kind, (char *)out->data + (size_t)at * kind.size, k->in[2]->data, 1);
    }
    return NULL;
}

static Error *run_broadcast_to(KernelContext *k) {
    const Tensor *in = k->in[0];
    Shape shape;
    if (k->in[1]->shape.rank != 1)
        return error_invalid("shape must be a vector of {int32,int64}, got shape %s", shape_text(&k->in[1]->shape).text);
    Error *err = read_dims(k->in[1], "shape", &shape);
    if (err) return err;
    if (in->shape.rank > shape.rank)
        return error_invalid("Rank of input (%d) must be no greater than rank of output shape (%d).", in->shape.rank,
                             shape.rank);
    int extra = shape.rank - in->shape.rank;
    for (int d = 0; d < in->shape.rank; d++) {
        if (in->shape.dims[d] != 1 && in->shape.dims[d] != shape.dims[d + extra])
            return error_invalid("Incompatible shapes: %s vs. %s", shape_text(&in->shape).text,
                                 shape_text(&shape).text);
    }
    if (shape_eq(&shape, &in->shape)) {
        kernel_set_output(k, 0, tensor_ref(k->in[0]));
        return NULL;
    }
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    int64_t is[SHAPE_MAX_RANK], os[SHAPE_MAX_RANK];
    strides_of(&in->shape, is);
    strides_of(&shape, os);
    StridedCopy c = {0};
    for (int d = 0; d < shape.rank; d++) {
        bool repeat = d < extra || in->shape.dims[d - extra] == 1;
        copy_add_dim(&c, shape.dims[d], os[d], repeat ? 0 : is[d - extra]);
    }
    copy_strided(k->pool, element_kind(in->dtype), &c, out->data, in->data);
    return NULL;
}

const KernelDef fill_cpu[] = {
    {"Fill", .run = run_fill},
    {"ZerosLike", .run = run_zeros_like},
    {"OnesLike", .run = run_ones_like},
    {"OneHot", .run = run_one_hot, .state_size = sizeof(OneHotState), .init = one_hot_init},
    {"BroadcastTo", .run = run_broadcast_to},
    {0},
};
