/* slice.c: Slice, StridedSlice, Split, their gradients, and assignment to slices. */
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/strided.h"

const OpDef slice_ops[] = {
    {"Slice", "input: T, begin: Index, size: Index -> output: T", "T: type; Index: {int32, int64}", 0},
    {"StridedSlice", "input: T, begin: Index, end: Index, strides: Index -> output: T",
     "T: type; Index: {int16, int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
     "new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     0},
    {"StridedSliceGrad", "shape: Index, begin: Index, end: Index, strides: Index, dy: T -> output: T",
     "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; new_axis_mask: "
     "int = 0; shrink_axis_mask: int = 0",
     0},
    {"StridedSliceAssign", "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T -> output_ref: Ref(T)",
     "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; new_axis_mask: "
     "int = 0; shrink_axis_mask: int = 0",
     0},
    {"ResourceStridedSliceAssign", "ref: resource, begin: Index, end: Index, strides: Index, value: T ->",
     "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; new_axis_mask: "
     "int = 0; shrink_axis_mask: int = 0",
     OP_STATEFUL},
    {"TensorStridedSliceUpdate", "input: T, begin: Index, end: Index, strides: Index, value: T -> output: T",
     "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; new_axis_mask: "
     "int = 0; shrink_axis_mask: int = 0",
     0},
    {"Split", "split_dim: int32, value: T -> output: num_split * T", "num_split: int >= 1; T: type", 0},
    {"SplitV", "value: T, size_splits: Tlen, split_dim: int32 -> output: num_split * T",
     "num_split: int >= 1; T: type; Tlen: {int8, int32, int64} = int64", 0},
    {0},
};

static Error *slice_bounds(KernelContext *k, int64_t *begin, Shape *shape) {
    const Tensor *in = k->in[0], *b = k->in[1], *s = k->in[2];
    int rank = in->shape.rank;
    if (b->shape.rank != 1 || s->shape.rank != 1 || b->count != rank || s->count != rank)
        return error_invalid(
            "Expected begin and size arguments to be 1-D tensors of size %d, but got shapes %s and %s instead.", rank,
            shape_text(&b->shape).text, shape_text(&s->shape).text);
    shape->rank = rank;
    for (int d = 0; d < rank; d++) {
        int64_t dim = in->shape.dims[d], size = index_at(s, d);
        begin[d] = index_at(b, d);
        if (dim == 0 && (begin[d] != 0 || (size != 0 && size != -1)))
            return error_invalid("Expected begin[%d] == 0 (got %lld) and size[%d] == 0 (got %lld) when input.dim_size(%d) == 0", d, (long long)begin[d], d, (long long)size, d);
        if (begin[d] < 0 || begin[d] > dim)
            return error_invalid("Expected begin[%d] in [0, %lld], but got %lld", d, (long long)dim,
                                 (long long)begin[d]);
        if (size == -1) size = dim - begin[d];
        if (size < 0 || size > dim - begin[d])
            return error_invalid("Expected size[%d] in [0, %lld], but got %lld", d, (long long)(dim - begin[d]),
                                 (long long)size);
        shape->dims[d] = size;
    }
    return NULL;
}

static Error *run_slice(KernelContext *k) {
    const Tensor *in = k->in[0];
    int64_t begin[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK], start = 0;
    Shape shape;
    Error *err = slice_bounds(k, begin, &shape);
    if (err) return err;
    if (shape_eq(&shape, &in->shape)) {
        kernel_set_output(k, 0, tensor_ref(k->in[0]));
        return NULL;
    }
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    strides_of(&in->shape, strides);
    StridedCopy c = {0};
    int64_t out_strides[SHAPE_MAX_RANK];
    strides_of(&shape, out_strides);
    for (int d = 0; d < shape.rank; d++) {
        start += begin[d] * strides[d];
        copy_add_dim(&c, shape.dims[d], out_strides[d], strides[d]);
    }
    ElementKind kind = element_kind(in->dtype);
    copy_strided(k->pool, kind, &c, out->data, (const char *)in->data + (size_t)start * kind.size);
    return NULL;
}

/* Between `whole`, of the shape the spec is for, and `part`, whose element of index i lies at i . part_strides. */
static void move_slice(KernelContext *k, const SliceSpec *spec, DataType dtype, void *whole, void *part,
                       const int64_t *part_strides, bool into_whole) {
    if (shape_count(&spec->picked) == 0) return;
    int64_t strides[SHAPE_MAX_RANK], start = 0;
    strides_of(&spec->source, strides);
    StridedCopy c = {0};
    for (int d = 0; d < spec->source.rank; d++) {
        int64_t step = spec->stride[d] * strides[d];
        start += spec->start[d] * strides[d];
        copy_add_dim(&c, spec->picked.dims[d], into_whole ? step : part_strides[d],
                     into_whole ? part_strides[d] : step);
    }
    ElementKind kind = element_kind(dtype);
    char *at = (char *)whole + (size_t)start * kind.size;
    copy_strided(k->pool, kind, &c, into_whole ? at : part, into_whole ? part : at);
}

static bool takes_whole_rows(const SliceSpec *spec) {
    if (spec->source.rank < 1 || spec->stride[0] > 1 || spec->stride[0] < 0) return false;
    for (int d = 1; d < spec->source.rank; d++) {
        if (spec->picked.dims[d] != spec->source.dims[d] || spec->stride[d] < 0) return false;
    }
    return spec->picked.dims[0] > 0;
}

static Error *run_strided_slice(KernelContext *k) {
    Tensor *in = k->in[0];
    SliceSpec spec;
    Error *err = slice_spec_init(&spec, &in->shape, k->in[1], k->in[2], k->in[3], k->state);
    if (err) return err;
    if (takes_whole_rows(&spec)) {
        Tensor *rows = NULL;
        err = rows_of(in, spec.start[0], spec.start[0] + spec.picked.dims[0], &rows);
        if (err) return err;
        kernel_set_output(k, 0, tensor_alias(rows, rows->dtype, &spec.final));
        tensor_unref(rows);
        return NULL;
    }
    Tensor *out = kernel_output(k, 0, &spec.final);
    if (!out) return NULL;
    int64_t strides[SHAPE_MAX_RANK];
    strides_of(&spec.picked, strides);
    move_slice(k, &spec, in->dtype, in->data, out->data, strides, false);
    return NULL;
}

static Error *run_strided_slice_grad(KernelContext *k) {
    Tensor *dy = k->in[4];
    Shape shape;
    if (k->in[0]->shape.rank != 1) return error_invalid("shape must be 1-D, got shape.shape = %s", shape_text(&k->in[0]->shape).text);
    Error *err = kernel_shape_input(k, 0, &shape);
    if (err) return err;
    SliceSpec spec;
    err = slice_spec_init(&spec, &shape, k->in[1], k->in[2], k->in[3], k->state);
    if (err) return err;
    if (!shape_eq(&spec.final, &dy->shape))
        return error_invalid("shape of dy was %s instead of %s", shape_text(&dy->shape).text,
                             shape_text(&spec.final).text);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    if (dtype_is_plain(out->dtype)) memset(out->data, 0, tensor_bytes(out));
    int64_t strides[SHAPE_MAX_RANK];
    strides_of(&spec.picked, strides);
    move_slice(k, &spec, dy->dtype, out->data, dy->data, strides, true);
    return NULL;
}

/* Strides that make `value` look like the picked dimensions, repeating where it has one. */
static Error *broadcast_strides(const SliceSpec *spec, const Shape *value, int64_t *strides) {
    int64_t final_strides[SHAPE_MAX_RANK] = {0}, value_strides[SHAPE_MAX_RANK];
    strides_of(value, value_strides);
    int extra = spec->final.rank - value->rank;
    bool ok = true;
    for (int d = 0; d < value->rank; d++) {
        if (d + extra < 0) {
            ok = ok && value->dims[d] == 1;
            continue;
        }
        ok = ok && (value->dims[d] == 1 || value->dims[d] == spec->final.dims[d + extra]);
        final_strides[d + extra] = value->dims[d] == 1 ? 0 : value_strides[d];
    }
    if (!ok)
        return error_invalid("Cannot broadcast input shape %s into final shape %s", shape_text(value).text,
                             shape_text(&spec->final).text);
    /* Both lists have the same dimensions above 1, in the same order. */
    int f = 0;
    for (int d = 0; d < spec->picked.rank; d++) {
        strides[d] = 0;
        if (spec->picked.dims[d] == 1) continue;
        while (f < spec->final.rank && spec->final.dims[f] == 1) f++;
        strides[d] = f < spec->final.rank ? final_strides[f++] : 0;
    }
    return NULL;
}

static Error *assign_slice(KernelContext *k, Tensor *whole) {
    Tensor *value = k->in[4];
    SliceSpec spec;
    int64_t strides[SHAPE_MAX_RANK];
    Error *err = slice_spec_init(&spec, &whole->shape, k->in[1], k->in[2], k->in[3], k->state);
    if (!err && shape_prod(&spec.picked, 0, spec.picked.rank) == 0) return NULL; /* any value fits where nothing is picked */
    if (!err) err = broadcast_strides(&spec, &value->shape, strides);
    if (!err) move_slice(k, &spec, whole->dtype, whole->data, value->data, strides, true);
    return err;
}

static Error *run_strided_slice_assign(KernelContext *k) {
    Variable *v = NULL;
    Error *err = kernel_variable(k, 0, &v);
    if (err) return err;
    pthread_mutex_lock(&v->mutex);
    err = variable_write_locked(k, 0, v, k->in[4]->dtype);
    if (!err) err = assign_slice(k, v->value);
    pthread_mutex_unlock(&v->mutex);
    if (!err) kernel_pass_ref(k, 0);
    resource_unref(&v->base);
    return err;
}

static Error *run_strided_slice_update(KernelContext *k) {
    Tensor *out = kernel_output_from(k, 0, 0, &k->in[0]->shape);
    if (!out) return NULL;
    if (out->data != k->in[0]->data) elements_copy(out->dtype, out->data, k->in[0]->data, out->count);
    return assign_slice(k, out);
}

/* Outputs [begin, begin + sizes[i]) of the axis, one after the other. */
static Error *split_at(KernelContext *k, const Tensor *in, int axis, const int64_t *sizes) {
    ElementKind kind = element_kind(in->dtype);
    int64_t outer = shape_prod(&in->shape, 0, axis), inner = shape_prod(&in->shape, axis + 1, in->shape.rank);
    int64_t row = in->shape.dims[axis] * inner, begin = 0;
    for (int i = 0; i < k->output_count; i++) {
        if (axis == 0) {
            Tensor *rows = NULL;
            Error *err = rows_of(in, begin, begin + sizes[i], &rows);
            if (err) return err;
            kernel_set_output(k, i, rows);
        } else {
            Shape shape = in->shape;
            shape.dims[axis] = sizes[i];
            Tensor *out = kernel_output(k, i, &shape);
            if (!out) return NULL;
            StridedCopy c = {0};
            copy_add_dim(&c, outer, sizes[i] * inner, row);
            copy_add_dim(&c, sizes[i] * inner, 1, 1);
            if (out->count > 0)
                copy_strided(k->pool, kind, &c, out->data,
                             (const char *)in->data + (size_t)(begin * inner) * kind.size);
        }
        begin += sizes[i];
    }
    return NULL;
}

static Error *split_axis(KernelContext *k, int input, const Tensor *value, int *axis) {
    bool vector_ok = input != 0; /* SplitV takes a vector of one element too */
    if (k->in[input]->count != 1 || (k->in[input]->shape.rank > 0 && !vector_ok))
        return vector_ok ? error_invalid("split_dim_tensor must have exactly one element.")
                         : error_invalid("split_dim must be a scalar but has rank %d", k->in[input]->shape.rank);
    int64_t given = index_at(k->in[input], 0);
    int rank = value->shape.rank;
    if (given < -rank || given >= rank)
        return error_invalid("-input rank(-%d) <= split_dim < input rank (%d), but got %lld", rank, rank,
                             (long long)given);
    *axis = (int)(given < 0 ? given + rank : given);
    return NULL;
}

static Error *run_split(KernelContext *k) {
    const Tensor *in = k->in[1];
    int axis = 0, n = k->output_count;
    Error *err = split_axis(k, 0, in, &axis);
    if (err) return err;
    int64_t size = in->shape.dims[axis];
    if (n < 1 || size % n != 0)
        return error_invalid(
            "Number of ways to split should evenly divide the split dimension, but got split_dim %d (size = "
            "%lld) and num_split %d",
            axis, (long long)size, n);
    Shape shape = shape_vector(n);
    Tensor *sizes = kernel_scratch(k, DT_INT64, &shape);
    if (!sizes) return NULL;
    for (int i = 0; i < n; i++) tensor_i64(sizes)[i] = size / n;
    err = split_at(k, in, axis, tensor_i64(sizes));
    tensor_unref(sizes);
    return err;
}

/* Copies the sizes, the one that is -1 worked out. */
static Error *split_sizes(const Tensor *given, int64_t size, int64_t *sizes) {
    int64_t unknown = -1, sum = 0;
    for (int64_t i = 0; i < given->count; i++) {
        sizes[i] = index_at(given, i);
        if (sizes[i] == -1) {
            if (unknown >= 0) return error_invalid("There can only be one -1 in the input.");
            unknown = i;
        } else if (__builtin_add_overflow(sum, sizes[i], &sum)) {
            return error_invalid("Split sizes are too large");
        }
    }
    if (unknown < 0 ? sum != size : sum > size)
        return error_invalid(
            "Determined shape must either match input shape along split_dim exactly if fully specified, or be "
            "less than the size of the input along split_dim if not fully specified.  Got: %lld",
            (long long)sum);
    if (unknown >= 0) sizes[unknown] = size - sum;
    for (int64_t i = 0; i < given->count; i++) {
        if (sizes[i] < 0) return error_invalid("Split size at index %lld must be >= 0. Got: %lld", (long long)i, (long long)sizes[i]);
    }
    return NULL;
}

static Error *run_split_v(KernelContext *k) {
    const Tensor *in = k->in[0], *given = k->in[1];
    int axis = 0;
    Error *err = split_axis(k, 2, in, &axis);
    if (err) return err;
    if (given->shape.rank != 1 || given->count != k->output_count)
        return error_invalid("size of the split_tensor must be 1-D and have the same elements as outputs got %d -D and %lld elements",
                             given->shape.rank, (long long)given->count);
    if (given->count == 1 && index_at(given, 0) != in->shape.dims[axis])
        return error_invalid("If there is only one output, it must have the same size as the input. Input size: %lld output size: %lld", (long long)in->shape.dims[axis],
                             (long long)index_at(given, 0));
    Tensor *sizes = kernel_scratch(k, DT_INT64, &given->shape);
    if (!sizes) return NULL;
    err = split_sizes(given, in->shape.dims[axis], tensor_i64(sizes));
    if (!err) err = split_at(k, in, axis, tensor_i64(sizes));
    tensor_unref(sizes);
    return err;
}

const KernelDef slice_cpu[] = {
    {"Slice", .run = run_slice},
    {"StridedSlice", .run = run_strided_slice, .state_size = sizeof(SliceMasks), .init = slice_masks_init},
    {"StridedSliceGrad", .run = run_strided_slice_grad, .state_size = sizeof(SliceMasks), .init = slice_masks_init},
    {"StridedSliceAssign", .run = run_strided_slice_assign, .state_size = sizeof(SliceMasks), .init = slice_masks_init,
     .flags = KERNEL_REFS},
    {"ResourceStridedSliceAssign", .run = run_strided_slice_assign, .state_size = sizeof(SliceMasks),
     .init = slice_masks_init},
    {"TensorStridedSliceUpdate", .run = run_strided_slice_update, .state_size = sizeof(SliceMasks),
     .init = slice_masks_init},
    {"Split", .run = run_split},
    {"SplitV", .run = run_split_v},
    {0},
};
