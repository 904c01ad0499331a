/* constant_value.c: values that are known before a step runs, and vectors of them read as shapes. */
#include <stdlib.h>

#include "base/memory.h"
#include "graph/frames.h"
#include "shapes/fold.h"
#include "shapes/shape_info_internal.h"
#include "tensor/tensor_proto.h"

enum { MAX_DEPTH = 200, MAX_ELEMENTS = 1 << 16 };

/* In the map of constants: an output that is none. */
static Tensor not_constant;

static uint64_t key_of(Output o) {
    return (uint64_t)o.node->id << 24 | (uint64_t)o.index;
}

void shape_info_clear_constants(ShapeInfo *info) {
    size_t at = 0;
    uint64_t key;
    void *value;
    while (intmap_next(&info->constants, &at, &key, &value))
        if (value != &not_constant) tensor_unref(value);
    intmap_clear(&info->constants);
}

void shape_info_forget_unknown_constants(ShapeInfo *info) {
    IntMap kept = {0};
    size_t at = 0;
    uint64_t key;
    void *value;
    while (intmap_next(&info->constants, &at, &key, &value))
        if (value != &not_constant) intmap_put(&kept, key, value);
    intmap_clear(&info->constants);
    info->constants = kept;
}

static Tensor *const_node(ShapeInfo *info, Output o) {
    Str value, proto;
    PartialShape shape;
    Tensor *t = NULL;
    shapes_of(info, o, &shape);
    if (shape.rank >= 0 && shape_elements(shape) > MAX_ELEMENTS) return NULL;
    if (!node_attr(o.node, "value", &value) || !attr_tensor(value, &proto)) return NULL;
    Error *err = tensor_proto_decode(proto, &t);
    error_free(err);
    return err ? NULL : t;
}

static Tensor *integers(DataType dtype, Shape shape, const int64_t *values) {
    Tensor *t = NULL;
    Error *err = tensor_new(dtype, &shape, &t);
    error_free(err);
    for (int64_t i = 0; t && i < t->count; i++) {
        if (dtype == DT_INT64)
            tensor_i64(t)[i] = values[i];
        else
            tensor_i32(t)[i] = (int32_t)values[i];
    }
    return t;
}

/* Shape, ShapeN, Size and Rank of what is known. */
static Tensor *from_shape(ShapeInfo *info, Output o) {
    PartialShape s;
    int input = node_is(o.node, "ShapeN") ? o.index : 0;
    shapes_of(info, o.node->inputs[input], &s);
    DataType dtype = dtype_base(o.node->output_types[o.index]);
    if (dtype != DT_INT32 && dtype != DT_INT64) return NULL;
    if (node_is(o.node, "Rank")) return s.rank < 0 ? NULL : integers(dtype, SHAPE_SCALAR, &(int64_t){s.rank});
    if (!shape_is_full(s)) return NULL;
    int64_t count = shape_elements(s);
    if (node_is(o.node, "Size")) return count < 0 ? NULL : integers(dtype, SHAPE_SCALAR, &count);
    return integers(dtype, shape_vector(s.rank), s.dims);
}

/* shape(x)[i] may be known where the rest of the shape is not. */
static Tensor *dim_of_shape(ShapeInfo *info, const Node *n) {
    int64_t masks = 0, shrink = 0;
    PartialShape s;
    const char *const others[] = {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask"};
    if (!node_is(n->inputs[0].node, "Shape")) return NULL;
    for (int i = 0; i < 4; i++) {
        int64_t mask = 0;
        error_free(node_attr_int(n, others[i], &mask));
        masks |= mask;
    }
    error_free(node_attr_int(n, "shrink_axis_mask", &shrink));
    const Tensor *begin = shapes_constant(info, n->inputs[1]), *stride = shapes_constant(info, n->inputs[3]);
    if (masks || shrink != 1 || !begin || !stride || begin->count != 1 || stride->count != 1 || tensor_index(stride, 0) != 1) return NULL;
    shapes_of(info, n->inputs[0].node->inputs[0], &s);
    int64_t at = tensor_index(begin, 0);
    if (s.rank < 0 || at >= s.rank || at < -s.rank || shape_dim(s, (int)at) < 0) return NULL;
    return integers(dtype_base(n->output_types[0]), SHAPE_SCALAR, &(int64_t){shape_dim(s, (int)at)});
}

static Tensor *folded(ShapeInfo *info, Output o) {
    const Node *n = o.node;
    Tensor *out = NULL;
    if (node_is_stateful(n) || !fold_knows(n->op) || info->constant_depth > MAX_DEPTH) return NULL;
    Tensor **inputs = xcalloc((size_t)n->input_count + 1, sizeof *inputs);
    bool all = true;
    info->constant_depth++;
    for (int i = 0; i < n->input_count && all; i++) {
        inputs[i] = (Tensor *)shapes_constant(info, n->inputs[i]);
        all = inputs[i] != NULL;
    }
    info->constant_depth--;
    if (all) fold_node(n, o.index, inputs, &out);
    free(inputs);
    return out;
}

static Tensor *evaluate(ShapeInfo *info, Output o) {
    const Node *n = o.node;
    int64_t index = 0;
    if (!n->info || o.index >= n->output_count) return NULL;
    if (node_is(n, "Const")) return const_node(info, o);
    if (node_is(n, "Shape") || node_is(n, "ShapeN") || node_is(n, "Size") || node_is(n, "Rank")) return from_shape(info, o);
    if (node_is(n, "_Arg") && info->caller) {
        error_free(node_attr_int(n, "index", &index));
        if (index < 0 || index >= info->caller->in_count) return NULL;
        return tensor_ref((Tensor *)ctx_value(info->caller, (int)index));
    }
    Tensor *dim = node_is(n, "StridedSlice") ? dim_of_shape(info, n) : NULL;
    return dim ? dim : folded(info, o);
}

const Tensor *shapes_constant(ShapeInfo *info, Output o) {
    void *known = intmap_get(&info->constants, key_of(o));
    if (known) return known == &not_constant ? NULL : known;
    Tensor *t = evaluate(info, o);
    intmap_put(&info->constants, key_of(o), t ? t : &not_constant);
    return t;
}

void shape_info_note_constants(ShapeInfo *info, const Node *n) {
    for (int i = 0; i < n->output_count; i++) {
        Tensor *old = intmap_remove(&info->constants, key_of((Output){(Node *)n, i}));
        if (old != &not_constant) tensor_unref(old);
    }
    if (!fold_knows(n->op)) return;
    for (int i = 0; i < n->output_count; i++) {
        DataType t = n->output_types[i];
        if (t == DT_INT32 || t == DT_INT64 || t == DT_BOOL) shapes_constant(info, (Output){(Node *)n, i});
    }
}

/* ---- Vectors as shapes ---- */

static PartialShape as_shape(ShapeInfo *info, Output o, int depth);

/* One dimension from a scalar. */
static int64_t as_dim(ShapeInfo *info, Output o) {
    const Tensor *t = shapes_constant(info, o);
    if (!t || t->count != 1 || (t->dtype != DT_INT32 && t->dtype != DT_INT64)) return DIM_UNKNOWN;
    return tensor_index(t, 0) < 0 ? DIM_UNKNOWN : tensor_index(t, 0);
}

static PartialShape join(ShapeInfo *info, const Node *n, int first, int count, int depth) {
    PartialShape all = SHAPE_SCALAR;
    for (int i = first; i < first + count; i++) {
        PartialShape part = as_shape(info, n->inputs[i], depth + 1);
        if (part.rank < 0 || all.rank + part.rank > SHAPE_MAX_RANK) return SHAPE_UNKNOWN;
        for (int j = 0; j < part.rank; j++) all.dims[all.rank++] = part.dims[j];
    }
    return all;
}

static int64_t attr(const Node *n, const char *name) {
    int64_t v = 0;
    error_free(node_attr_int(n, name, &v));
    return v;
}

/* shape[begin:end:stride] */
static PartialShape sliced(ShapeInfo *info, const Node *n, int depth) {
    PartialShape s = as_shape(info, n->inputs[0], depth + 1), out = SHAPE_SCALAR;
    const Tensor *bounds[3];
    if (s.rank < 0 || attr(n, "ellipsis_mask") || attr(n, "new_axis_mask") || attr(n, "shrink_axis_mask")) return SHAPE_UNKNOWN;
    bool no_begin = attr(n, "begin_mask") == 1, no_end = attr(n, "end_mask") == 1;
    for (int i = 0; i < 3; i++) {
        bounds[i] = shapes_constant(info, n->inputs[i + 1]);
        bool needed = i == 0 ? !no_begin : i == 1 ? !no_end : true;
        if (needed && (!bounds[i] || bounds[i]->count != 1)) return SHAPE_UNKNOWN;
    }
    int64_t stride = tensor_index(bounds[2], 0);
    int64_t begin = no_begin ? (stride < 0 ? s.rank - 1 : 0) : tensor_index(bounds[0], 0);
    int64_t end = no_end ? (stride < 0 ? -1 : s.rank) : tensor_index(bounds[1], 0);
    if (stride == 0 || stride > INT32_MAX || stride < -INT32_MAX) return SHAPE_UNKNOWN;
    if (!no_begin && begin < 0) begin += s.rank;
    if (!no_end && end < 0) end += s.rank;
    int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? s.rank : s.rank - 1;
    begin = begin < low ? low : begin > high ? high : begin;
    end = end < low ? low : end > high ? high : end;
    for (int64_t i = begin; stride > 0 ? i < end : i > end; i += stride) out.dims[out.rank++] = s.dims[i];
    return out;
}

static PartialShape from_values(const Tensor *t) {
    if (t->shape.rank != 1 || t->count > SHAPE_MAX_RANK || (t->dtype != DT_INT32 && t->dtype != DT_INT64)) return SHAPE_UNKNOWN;
    PartialShape s = {.rank = (int)t->count};
    for (int i = 0; i < s.rank; i++) s.dims[i] = tensor_index(t, i) < 0 ? DIM_UNKNOWN : tensor_index(t, i);
    return s;
}

static PartialShape as_shape(ShapeInfo *info, Output o, int depth) {
    const Node *n = o.node;
    PartialShape vector, s = SHAPE_UNKNOWN;
    if (!n->info || depth > MAX_DEPTH) return s;
    shapes_of(info, o, &vector);
    if (vector.rank != 1) return s;
    if (vector.dims[0] == 0) return SHAPE_SCALAR;
    const Tensor *t = shapes_constant(info, o);
    if (t) return from_values(t);
    if (node_is(n, "Cast")) return as_shape(info, n->inputs[0], depth + 1);
    if (node_is(n, "Shape") || node_is(n, "ShapeN")) {
        shapes_of(info, n->inputs[o.index], &s);
        return s;
    }
    if (node_is(n, "VariableShape")) {
        DataType dtype;
        return shapes_handle(info, n->inputs[0], &dtype, &s) ? s : SHAPE_UNKNOWN;
    }
    if (node_is(n, "Pack") && n->input_count <= SHAPE_MAX_RANK) {
        s = (PartialShape){.rank = n->input_count};
        for (int i = 0; i < s.rank; i++) s.dims[i] = as_dim(info, n->inputs[i]);
        return s;
    }
    if (node_is(n, "Concat")) return join(info, n, 1, n->input_count - 1, depth);
    if (node_is(n, "ConcatV2")) return join(info, n, 0, n->input_count - 1, depth);
    if (node_is(n, "StridedSlice")) s = sliced(info, n, depth);
    return s.rank < 0 ? shape_unknown_dims(vector.dims[0] < 0 || vector.dims[0] > SHAPE_MAX_RANK ? -1 : (int)vector.dims[0]) : s;
}

void shapes_constant_as_shape(ShapeInfo *info, Output output, PartialShape *out) {
    *out = as_shape(info, output, 0);
}
