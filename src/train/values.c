/* values.c: constants, placeholders, and what is known of a tensor. */
#include <stdlib.h>
#include <string.h>

#include "base/float16.h"
#include "base/memory.h"
#include "train/graph_internal.h"

TF_Tensor *tensor_of(TF_DataType type, const int64_t *dims, int rank, const void *data) {
    size_t bytes = TF_DataTypeSize(type);
    for (int i = 0; i < rank; i++) bytes *= (size_t)dims[i];
    TF_Tensor *t = TF_AllocateTensor(type, dims, rank, bytes);
    if (t && bytes) memcpy(TF_TensorData(t), data, bytes);
    return t;
}

static void release_strings(void *data, size_t len, void *arg) {
    (void)arg;
    TF_TString *s = data;
    for (size_t i = 0; i < len / sizeof *s; i++) TF_StringDealloc(&s[i]);
    free(data);
}

TF_Tensor *tensor_of_strings(const char *const *v, int count, int rank) {
    int64_t dims[] = {count};
    TF_TString *s = xcalloc((size_t)count + 1, sizeof *s);
    for (int i = 0; i < count; i++) {
        TF_StringInit(&s[i]);
        TF_StringCopy(&s[i], v[i], strlen(v[i]));
    }
    return TF_NewTensor(TF_STRING, dims, rank, s, (size_t)count * sizeof *s, release_strings, NULL);
}

/* Takes the tensor. */
static RillTensor const_of(RillGraph *g, const char *name, TF_Tensor *value) {
    if (rill_graph_failed(g) || !value) {
        if (value)
            TF_DeleteTensor(value);
        else
            rill_graph_fail(g, TF_INVALID_ARGUMENT, "Constant %s cannot be made: its type or shape is not one", name ? name : "");
        return NO_TENSOR;
    }
    char *full = graph_op_name(g, name ? name : "Const"), *device = graph_op_device(g);
    TF_OperationDescription *d = TF_NewOperation(g->tf, "Const", full);
    if (*device) TF_SetDevice(d, device);
    for (int i = g->control_base; i < g->control_count; i++)
        for (int j = 0; j < g->controls[i].count; j++) TF_AddControlInput(d, g->controls[i].ops[j]);
    TF_SetAttrType(d, "dtype", TF_TensorType(value));
    TF_SetAttrTensor(d, "value", value, g->status);
    if (TF_GetCode(g->status) != TF_OK) graph_take_status(g, full);
    TF_Operation *made = TF_FinishOperation(d, g->status);
    if (TF_GetCode(g->status) != TF_OK) graph_take_status(g, full);
    TF_DeleteTensor(value);
    free(full);
    free(device);
    return rill_graph_failed(g) ? NO_TENSOR : (RillTensor){made, 0};
}

RillTensor rill_const(RillGraph *g, const char *name, TF_DataType type, const int64_t *dims, int rank, const void *data) {
    if (!TF_DataTypeSize(type)) {
        rill_graph_fail(g, TF_INVALID_ARGUMENT, "rill_const makes no constants of type %d", (int)type);
        return NO_TENSOR;
    }
    return const_of(g, name, tensor_of(type, dims, rank, data));
}

RillTensor rill_const_f32(RillGraph *g, float v) {
    return rill_const(g, NULL, TF_FLOAT, NULL, 0, &v);
}

RillTensor rill_const_i32(RillGraph *g, int32_t v) {
    return rill_const(g, NULL, TF_INT32, NULL, 0, &v);
}

RillTensor rill_const_i64(RillGraph *g, int64_t v) {
    return rill_const(g, NULL, TF_INT64, NULL, 0, &v);
}

RillTensor rill_const_bool(RillGraph *g, bool v) {
    return rill_const(g, NULL, TF_BOOL, NULL, 0, &v);
}

RillTensor rill_const_i32s(RillGraph *g, const int32_t *v, int count) {
    return rill_const(g, NULL, TF_INT32, (int64_t[]){count}, 1, v);
}

RillTensor rill_const_string(RillGraph *g, const char *v) {
    return const_of(g, NULL, tensor_of_strings(&v, 1, 0));
}

RillTensor rill_const_strings(RillGraph *g, const char *const *v, int count) {
    return const_of(g, NULL, tensor_of_strings(v, count, 1));
}

RillTensor rill_const_as(RillGraph *g, TF_DataType type, double x) {
    union {
        float f;
        double d;
        uint16_t h;
        int64_t i64;
        int32_t i32;
        int16_t i16;
        int8_t i8;
    } v = {0};
    switch (type) {
    case TF_FLOAT: v.f = (float)x; break;
    case TF_DOUBLE: v.d = x; break;
    case TF_HALF: v.h = float_to_half((float)x); break;
    case TF_BFLOAT16: v.h = float_to_bfloat16((float)x); break;
    case TF_INT64: case TF_UINT64: v.i64 = (int64_t)x; break;
    case TF_INT32: case TF_UINT32: v.i32 = (int32_t)(int64_t)x; break;
    case TF_INT16: case TF_UINT16: v.i16 = (int16_t)x; break;
    case TF_INT8: case TF_UINT8: v.i8 = (int8_t)(int)x; break;
    default: rill_graph_fail(g, TF_INVALID_ARGUMENT, "%g cannot be a constant of type %d", x, (int)type); return NO_TENSOR;
    }
    return rill_const(g, NULL, type, NULL, 0, &v);
}

RillTensor rill_placeholder(RillGraph *g, const char *name, TF_DataType type, const int64_t *dims, int rank) {
    return rill_op(g, "Placeholder", name, NULL, 0, (RillAttr[]){RILL_TYPE("dtype", type), RILL_DIMS("shape", dims, rank)}, 2);
}

TF_DataType rill_type(RillTensor t) {
    return tensor_ok(t) ? TF_OperationOutputType(t) : (TF_DataType)0;
}

RillShape rill_shape(RillGraph *g, RillTensor t) {
    RillShape s = {.rank = -1};
    if (!tensor_ok(t)) return s;
    int rank = TF_GraphGetTensorNumDims(g->tf, t, g->status);
    if (TF_GetCode(g->status) != TF_OK || rank < 0 || rank > 8) return s;
    TF_GraphGetTensorShape(g->tf, t, s.dims, rank, g->status);
    if (TF_GetCode(g->status) == TF_OK) s.rank = rank;
    return s;
}
