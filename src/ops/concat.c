/* concat.c: ConcatV2, its old form, ParallelConcat, and ConcatOffset for its gradient. */
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef concat_ops[] = {
    {"Concat", "concat_dim: int32, values: N * T -> output: T", "N: int >= 2; T: type", 0},
    {"ConcatV2", "values: N * T, axis: Tidx -> output: T", "N: int >= 2; T: type; Tidx: {int32, int64} = int32", 0},
    {"ConcatOffset", "concat_dim: int32, shape: N * shape_type -> offset: N * shape_type",
     "N: int >= 2; shape_type: {int32, int64} = int32", 0},
    {"ParallelConcat", "values: N * T -> output: T", "N: int >= 1; T: type; shape: shape", 0},
    {"_ParallelConcatStart", "-> output: dtype", "shape: shape; dtype: type", OP_STATEFUL},
    {"_ParallelConcatUpdate", "value: T, update: T -> output: T", "T: type; loc: int", 0},
    {0},
};

static Error *concat_shape(Tensor *const *values, int n, int axis, Shape *out) {
    *out = values[0]->shape;
    for (int i = 1; i < n; i++) {
        const Shape *shape = &values[i]->shape;
        if (shape->rank == 0) return error_invalid("ConcatOp : Can't concatenate scalars (use tf.stack instead)");
        if (shape->rank != out->rank)
            return error_invalid("ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. shape[%d] = %s",
                                 shape_text(&values[0]->shape).text, i, shape_text(shape).text);
        for (int d = 0; d < out->rank; d++) {
            if (d != axis && shape->dims[d] != out->dims[d])
                return error_invalid(
                    "ConcatOp : Dimension %d in both shapes must be equal: shape[0] = %s vs. shape[%d] = %s", d,
                    shape_text(&values[0]->shape).text, i, shape_text(shape).text);
        }
        if (__builtin_add_overflow(out->dims[axis], shape->dims[axis], &out->dims[axis]))
            return error_invalid("ConcatOp : The result is too large");
    }
    return NULL;
}

static Error *concat(KernelContext *k, Tensor *const *values, int n, const Tensor *axis_tensor) {
    if (axis_tensor->count != 1)
        return error_invalid("Concat dim tensor should be a scalar, but got shape %s",
                             shape_text(&axis_tensor->shape).text);
    int64_t given = index_at(axis_tensor, 0);
    int rank = values[0]->shape.rank;
    if (rank == 0) return error_invalid("ConcatOp : Can't concatenate scalars (use tf.stack instead)");
    if (given < -rank || given >= rank)
        return error_invalid("ConcatOp : Expected concatenating dimensions in the range [%d, %d), but got %lld", -rank,
                             rank, (long long)given);
    int axis = (int)(given < 0 ? given + rank : given);
    Shape shape;
    Error *err = concat_shape(values, n, axis, &shape);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    ElementKind kind = element_kind(out->dtype);
    int64_t outer = shape_prod(&shape, 0, axis), row = shape_prod(&shape, axis, rank), start = 0;
    for (int i = 0; i < n; i++) {
        int64_t part = shape_prod(&values[i]->shape, axis, rank);
        StridedCopy c = {0};
        copy_add_dim(&c, outer, row, part);
        copy_add_dim(&c, part, 1, 1);
        if (part > 0) copy_strided(k->pool, kind, &c, (char *)out->data + (size_t)start * kind.size, values[i]->data);
        start += part;
    }
    return NULL;
}

static Error *run_concat(KernelContext *k) {
    return concat(k, k->in + 1, k->input_count - 1, k->in[0]);
}

static Error *run_concat_v2(KernelContext *k) {
    return concat(k, k->in, k->input_count - 1, k->in[k->input_count - 1]);
}

static Error *run_parallel_concat(KernelContext *k) {
    Shape shape;
    Error *err = k->in[0]->shape.rank < 1 ? error_invalid("ParallelConcat needs at least one dimension")
                                          : concat_shape(k->in, k->input_count, 0, &shape);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &shape);
    int64_t start = 0;
    for (int i = 0; out && i < k->input_count; i++) {
        elements_copy(out->dtype, (char *)out->data + (size_t)start * dtype_size(out->dtype), k->in[i]->data,
                      k->in[i]->count);
        start += k->in[i]->count;
    }
    return NULL;
}

static Error *offset_mismatch(const Tensor *first, const Tensor *other, int i, int64_t axis) {
    StrBuf a = {0}, b = {0};
    for (int64_t d = 0; d < first->count; d++) strbuf_addf(&a, "%s%lld", d ? " " : "", (long long)index_at(first, d));
    for (int64_t d = 0; d < other->count; d++) strbuf_addf(&b, "%s%lld", d ? " " : "", (long long)index_at(other, d));
    Error *err = error_invalid(
        "All dimensions except %lld must match. Input %d has shape [%s] and doesn't match input 0 with "
        "shape [%s].",
        (long long)axis, i, strbuf_str(&b).ptr, strbuf_str(&a).ptr);
    strbuf_clear(&a);
    strbuf_clear(&b);
    return err;
}

static Error *run_concat_offset(KernelContext *k) {
    int64_t axis;
    if (k->in[0]->shape.rank != 0) return error_invalid("Concat dim tensor should be a scalar integer, but got shape %s", shape_text(&k->in[0]->shape).text);
    for (int i = 1; i < k->input_count; i++) {
        if (k->in[i]->shape.rank != 1) return error_invalid("input %d should be a vector, but got shape %s", i, shape_text(&k->in[i]->shape).text);
    }
    Error *err = element_scalar_int(k, 0, "Concat dim tensor", &axis);
    if (err) return err;
    const Tensor *first = k->in[1];
    int64_t rank = first->count, sum = 0;
    if (axis < -rank || axis >= rank)
        return error_invalid("Concat dim is out of range: %lld vs. %lld", (long long)axis, (long long)rank);
    if (axis < 0) axis += rank;
    for (int i = 1; i < k->input_count; i++) {
        const Tensor *in = k->in[i];
        if (in->count != rank)
            return error_invalid("input %d should contain %lld elements, but got %lld", i - 1, (long long)rank,
                                 (long long)in->count);
        Tensor *out = kernel_output(k, i - 1, &in->shape);
        if (!out) return NULL;
        for (int64_t d = 0; d < rank; d++) {
            if (d != axis && index_at(in, d) != index_at(first, d)) return offset_mismatch(first, in, i - 1, axis);
            index_put(out, d, d == axis ? sum : 0);
        }
        if (__builtin_add_overflow(sum, index_at(in, axis), &sum)) return error_invalid("ConcatOffset is too large");
    }
    return NULL;
}

/* ---- ParallelConcat as a TensorFlow master hands it out: an empty result, and for each input a node that fills a row of it ---- */

typedef struct ConcatRow {
    Shape shape; /* of the result */
    int64_t row;
    bool in_place; /* the result comes straight from a _ParallelConcatStart, so that only such nodes write on it, each its own row */
} ConcatRow;

static Error *concat_start_init(const Node *node, void *state) {
    ConcatRow *s = state;
    Error *err = node_attr_shape(node, "shape", &s->shape);
    if (!err && s->shape.rank < 1) err = error_invalid("_ParallelConcatStart needs a shape of at least one dimension");
    return err ? err : shape_check(&s->shape);
}
static Error *run_concat_start(KernelContext *k) {
    const ConcatRow *s = k->state;
    Tensor *out = kernel_output(k, 0, &s->shape);
    if (out && dtype_is_plain(out->dtype)) memset(out->data, 0, tensor_bytes(out));
    return NULL;
}

static Error *concat_update_init(const Node *node, void *state) {
    ConcatRow *s = state;
    const Node *from = node->input_count ? node->inputs[0].node : NULL;
    s->in_place = from && node_is(from, "_ParallelConcatStart");
    return node_attr_int(node, "loc", &s->row);
}
static Error *run_concat_update(KernelContext *k) {
    const ConcatRow *s = k->state;
    Tensor *value = k->in[0], *update = k->in[1];
    if (value->shape.rank != update->shape.rank || value->shape.rank < 1) {
        return error_invalid("value and update shape doesn't match: %s vs. %s", shape_text(&value->shape).text, shape_text(&update->shape).text);
    }
    for (int d = 1; d < value->shape.rank; d++) {
        if (value->shape.dims[d] == update->shape.dims[d]) continue;
        return error_invalid("value and update shape doesn't match %s vs. %s", shape_text(&value->shape).text, shape_text(&update->shape).text);
    }
    if (update->shape.dims[0] != 1) return error_invalid("update shape doesn't match: %s", shape_text(&update->shape).text);
    if (s->row < -1 || s->row >= value->shape.dims[0]) return error_invalid("loc %lld is not a row of %s", (long long)s->row, shape_text(&value->shape).text);
    Tensor *out = tensor_ref(value);
    if (!s->in_place) {
        tensor_unref(out);
        Error *err = tensor_copy(value, &out);
        if (err) return err;
    }
    ElementKind kind = element_kind(value->dtype);
    int64_t row = s->row < 0 ? value->shape.dims[0] - 1 : s->row;
    if (update->count) copy_elements(kind, (char *)out->data + (size_t)(row * update->count) * kind.size, update->data, update->count);
    kernel_set_output(k, 0, out);
    return NULL;
}

const KernelDef concat_cpu[] = {
    {"Concat", .run = run_concat},
    {"ConcatV2", .run = run_concat_v2},
    {"ConcatOffset", .run = run_concat_offset},
    {"ParallelConcat", .run = run_parallel_concat},
    {"_ParallelConcatStart", .run = run_concat_start, .state_size = sizeof(ConcatRow), .init = concat_start_init},
    {"_ParallelConcatUpdate", .run = run_concat_update, .state_size = sizeof(ConcatRow), .init = concat_update_init},
    {0},
};
