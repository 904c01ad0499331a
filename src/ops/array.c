/* array.c: ops that change the shape or the order of a tensor: Reshape, ExpandDims, Squeeze, Pack, Unpack, Reverse,
 * Roll. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef array_ops[] = {
    {"Reshape", "tensor: T, shape: Tshape -> output: T", "T: type; Tshape: {int32, int64} = int32", 0},
    {"ExpandDims", "input: T, dim: Tdim -> output: T", "T: type; Tdim: {int32, int64} = int32", 0},
    {"Squeeze", "input: T -> output: T", "T: type; squeeze_dims: list(int) >= 0 = []", 0},
    {"Pack", "values: N * T -> output: T", "N: int >= 1; T: type; axis: int = 0", 0},
    {"Unpack", "value: T -> output: num * T", "num: int >= 0; T: type; axis: int = 0", 0},
    {"Reverse", "tensor: T, dims: bool -> output: T",
     "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, complex64, "
     "complex128, string}",
     0},
    {"ReverseV2", "tensor: T, axis: Tidx -> output: T",
     "Tidx: {int32, int64} = int32; T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, "
     "half, float, double, complex64, complex128, string}",
     0},
    {"ReverseSequence", "input: T, seq_lengths: Tlen -> output: T",
     "seq_dim: int; batch_dim: int = 0; T: type; Tlen: {int32, int64} = int64", 0},
    {"Roll", "input: T, shift: Tshift, axis: Taxis -> output: T",
     "T: type; Tshift: {int32, int64}; Taxis: {int32, int64}", 0},
    {"EnsureShape", "input: T -> output: T", "shape: shape; T: type", 0},
    {0},
};

static void set_alias(KernelContext *k, const Shape *shape) {
    kernel_set_output(k, 0, tensor_alias(k->in[0], k->in[0]->dtype, shape));
}

static Error *too_many_elements(const Tensor *sizes) {
    StrBuf text = {0};
    for (int64_t d = 0; d < sizes->count; d++) strbuf_addf(&text, "%s%lld", d ? ", " : "", (long long)index_at(sizes, d));
    Error *err = error_invalid("Shape [%.*s] has too many elements", STR_ARG(strbuf_str(&text)));
    strbuf_clear(&text);
    return err;
}

/* The sizes as given; *unknown is the position of the -1, or -1; *known the product of the others that are not zero. */
static Error *reshape_sizes(const Tensor *sizes, Shape *out, int *unknown, int64_t *known, bool *has_zero) {
    out->rank = (int)sizes->count;
    *unknown = -1;
    *known = 1;
    *has_zero = false;
    for (int d = 0; d < out->rank; d++) {
        int64_t size = index_at(sizes, d);
        out->dims[d] = size;
        if (size == -1) {
            if (*unknown >= 0) return error_invalid("Only one input size may be -1, not both %d and %d", *unknown, d);
            *unknown = d;
        } else if (size < 0) {
            return error_invalid("Size %d must be non-negative, not %lld", d, (long long)size);
        } else if (size == 0) {
            *has_zero = true;
        } else if (__builtin_mul_overflow(*known, size, known)) {
            return too_many_elements(sizes);
        }
    }
    return NULL;
}

Error *kernel_reshape(KernelContext *k) {
    const Tensor *in = k->in[0], *sizes = k->in[1];
    if (sizes->shape.rank > 1) return error_invalid("sizes input must be 1-D, not %s", shape_text(&sizes->shape).text);
    if (sizes->count > SHAPE_MAX_RANK)
        return error_invalid("too many dimensions: must be < %d, but received %lld", SHAPE_MAX_RANK + 1, (long long)sizes->count);
    Shape shape;
    int unknown;
    int64_t known;
    bool has_zero;
    Error *err = reshape_sizes(sizes, &shape, &unknown, &known, &has_zero);
    if (err) return err;
    if (unknown >= 0) {
        /* Zeros on both sides stand against each other; the -1 is worked out from the rest. */
        int64_t values = 1;
        for (int d = 0; d < in->shape.rank; d++) {
            if ((in->shape.dims[d] != 0 || !has_zero) && __builtin_mul_overflow(values, in->shape.dims[d], &values))
                return error_invalid("Reshape cannot infer the missing input size of a tensor of shape %s", shape_text(&in->shape).text);
        }
        int64_t missing = values / known;
        if (missing * known != values)
            return error_invalid(
                "Input to reshape is a tensor with %lld values, but the requested shape requires a multiple of %lld",
                (long long)values, (long long)known);
        shape.dims[unknown] = missing;
        known *= missing;
    }
    if (has_zero) known = 0;
    if (known != in->count)
        return error_invalid("Input to reshape is a tensor with %lld values, but the requested shape has %lld",
                             (long long)in->count, (long long)known);
    set_alias(k, &shape);
    return NULL;
}

static Error *run_expand_dims(KernelContext *k) {
    Shape shape = k->in[0]->shape;
    if (k->in[1]->count != 1)
        return error_invalid("'dim' must be a tensor with a single value");
    int64_t dim = index_at(k->in[1], 0);
    if (dim < -1 - shape.rank || dim > shape.rank)
        return error_invalid("Tried to expand dim index %lld for tensor with %d dimensions.", (long long)dim,
                             shape.rank);
    if (shape.rank >= SHAPE_MAX_RANK) return error_invalid("Too many dimensions for ExpandDims");
    shape_insert_dim(&shape, (int)(dim < 0 ? dim + shape.rank + 1 : dim), 1);
    set_alias(k, &shape);
    return NULL;
}

typedef struct IntsState {
    int64_t *items;
    int count;
} IntsState;

static Error *squeeze_init(const Node *node, void *state) {
    IntsState *s = state;
    return node_attr_ints(node, "squeeze_dims", &s->items, &s->count);
}

static void ints_clear(void *state) {
    free(((IntsState *)state)->items);
}

static Error *run_squeeze(KernelContext *k) {
    const IntsState *s = k->state;
    const Shape *in = &k->in[0]->shape;
    bool drop[SHAPE_MAX_RANK] = {false};
    for (int i = 0; i < s->count; i++) {
        int64_t dim = s->items[i];
        if (dim < -in->rank || dim >= in->rank)
            return error_invalid("Tried to squeeze dim index %lld for tensor with %d dimensions.", (long long)dim,
                                 in->rank);
        drop[dim < 0 ? dim + in->rank : dim] = true;
    }
    Shape shape = {.rank = 0};
    for (int d = 0; d < in->rank; d++) {
        if (drop[d] && in->dims[d] != 1)
            return error_invalid("Can not squeeze dim[%d], expected a dimension of 1, got %lld", d,
                                 (long long)in->dims[d]);
        bool gone = s->count == 0 ? in->dims[d] == 1 : drop[d];
        if (!gone) shape.dims[shape.rank++] = in->dims[d];
    }
    set_alias(k, &shape);
    return NULL;
}

typedef struct AxisState {
    int64_t axis;
} AxisState;

static Error *axis_init(const Node *node, void *state) {
    return node_attr_int(node, "axis", &((AxisState *)state)->axis);
}

static Error *run_pack(KernelContext *k) {
    int64_t axis = ((const AxisState *)k->state)->axis;
    const Tensor *first = k->in[0];
    int rank = first->shape.rank + 1;
    if (axis < -rank || axis >= rank) return error_invalid("axis = %lld not in [%d, %d)", (long long)axis, -rank, rank);
    if (axis < 0) axis += rank;
    if (rank > SHAPE_MAX_RANK) return error_invalid("Too many dimensions for Pack");
    for (int i = 1; i < k->input_count; i++) {
        if (!shape_eq(&k->in[i]->shape, &first->shape))
            return error_invalid("Shapes of all inputs must match: values[0].shape = %s != values[%d].shape = %s",
                                 shape_text(&first->shape).text, i, shape_text(&k->in[i]->shape).text);
    }
    Shape shape = first->shape;
    shape_insert_dim(&shape, (int)axis, k->input_count);
    if (k->input_count == 1) {
        set_alias(k, &shape);
        return NULL;
    }
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    ElementKind kind = element_kind(first->dtype);
    int64_t outer = shape_prod(&shape, 0, (int)axis), inner = shape_prod(&shape, (int)axis + 1, rank);
    for (int i = 0; i < k->input_count; i++) {
        StridedCopy c = {0};
        copy_add_dim(&c, outer, inner * k->input_count, inner);
        copy_add_dim(&c, inner, 1, 1);
        copy_strided(k->pool, kind, &c, (char *)out->data + (size_t)(i * inner) * kind.size, k->in[i]->data);
    }
    return NULL;
}

static Error *run_unpack(KernelContext *k) {
    int64_t axis = ((const AxisState *)k->state)->axis;
    const Tensor *in = k->in[0];
    int rank = in->shape.rank, num = k->output_count;
    if (axis < -rank || axis >= rank) return error_invalid("axis = %lld not in [%d, %d)", (long long)axis, -rank, rank);
    if (axis < 0) axis += rank;
    if (in->shape.dims[axis] != num)
        return error_invalid("Input shape axis %lld must equal %d, got shape %s", (long long)axis, num,
                             shape_text(&in->shape).text);
    Shape shape = in->shape;
    shape_remove_dim(&shape, (int)axis);
    ElementKind kind = element_kind(in->dtype);
    int64_t outer = shape_prod(&in->shape, 0, (int)axis), inner = shape_prod(&in->shape, (int)axis + 1, rank);
    for (int i = 0; i < num; i++) {
        Tensor *out = kernel_output(k, i, &shape);
        if (!out) return NULL;
        StridedCopy c = {0};
        copy_add_dim(&c, outer, inner, inner * num);
        copy_add_dim(&c, inner, 1, 1);
        copy_strided(k->pool, kind, &c, out->data, (const char *)in->data + (size_t)(i * inner) * kind.size);
    }
    return NULL;
}

static Error *reverse_axes(KernelContext *k, const bool *flip) {
    const Tensor *in = k->in[0];
    Tensor *out = kernel_output(k, 0, &in->shape);
    if (!out || in->count == 0) return NULL;
    int64_t strides[SHAPE_MAX_RANK], start = 0;
    strides_of(&in->shape, strides);
    StridedCopy c = {0};
    for (int d = 0; d < in->shape.rank; d++) {
        if (flip[d]) start += (in->shape.dims[d] - 1) * strides[d];
        copy_add_dim(&c, in->shape.dims[d], strides[d], flip[d] ? -strides[d] : strides[d]);
    }
    ElementKind kind = element_kind(in->dtype);
    copy_strided(k->pool, kind, &c, out->data, (const char *)in->data + (size_t)start * kind.size);
    return NULL;
}

/* A scalar has no axis; those that are asked for are not looked at. */
static Error *pass_scalar(KernelContext *k) {
    kernel_set_output(k, 0, tensor_ref(k->in[0]));
    return NULL;
}

static Error *run_reverse(KernelContext *k) {
    const Tensor *dims = k->in[1];
    if (k->in[0]->shape.rank == 0) return pass_scalar(k);
    if (dims->shape.rank != 1) return error_invalid("'dims' must be 1-dimension, not %d", dims->shape.rank);
    if (dims->count != k->in[0]->shape.rank)
        return error_invalid("'dims' must have the same number of values as 'input' has dimensions. 'input' has %d'dims' has %lld values",
                             k->in[0]->shape.rank, (long long)dims->count);
    return reverse_axes(k, tensor_bool(dims));
}

static Error *run_reverse_v2(KernelContext *k) {
    const Tensor *axes = k->in[1];
    int rank = k->in[0]->shape.rank;
    bool flip[SHAPE_MAX_RANK] = {false};
    if (rank == 0) return pass_scalar(k);
    if (axes->shape.rank != 1) return error_invalid("'dims' must be 1-dimension, not %d", axes->shape.rank);
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t given = index_at(axes, i), axis = given < 0 ? given + rank : given;
        if (axis < 0 || axis >= rank)
            return error_invalid("'axis'[%lld] = %lld is out of valid range [0, %d", (long long)i, (long long)given,
                                 rank - 1);
        if (flip[axis]) return error_invalid("axis %lld specified more than once.", (long long)axis);
        flip[axis] = true;
    }
    return reverse_axes(k, flip);
}

typedef struct SequenceState {
    int64_t seq_dim, batch_dim;
} SequenceState;

static Error *sequence_init(const Node *node, void *state) {
    SequenceState *s = state;
    Error *err = node_attr_int(node, "seq_dim", &s->seq_dim);
    return err ? err : node_attr_int(node, "batch_dim", &s->batch_dim);
}

static Error *check_sequence(const SequenceState *s, const Tensor *in, const Tensor *lengths) {
    int rank = in->shape.rank;
    if (lengths->shape.rank != 1) return error_invalid("seq_lengths must be 1-dim, not %d", lengths->shape.rank);
    if (s->batch_dim == s->seq_dim) return error_invalid("batch_dim == seq_dim == %lld", (long long)s->seq_dim);
    if (s->seq_dim < 0) return error_invalid("Invalid seq_dim %lld", (long long)s->seq_dim);
    if (s->batch_dim < 0) return error_invalid("Invalid batch_dim %lld", (long long)s->batch_dim);
    if (s->seq_dim >= rank)
        return error_invalid("seq_dim must be < input rank ( %lld vs. %d)", (long long)s->seq_dim, rank);
    if (s->batch_dim >= rank)
        return error_invalid("batch_dim must be < input rank ( %lld vs. %d)", (long long)s->batch_dim, rank);
    if (lengths->count != in->shape.dims[s->batch_dim])
        return error_invalid("Length of seq_lengths != input.dims(%lld), (%lld vs. %lld)", (long long)s->batch_dim,
                             (long long)lengths->count, (long long)in->shape.dims[s->batch_dim]);
    for (int64_t i = 0; i < lengths->count; i++) {
        int64_t n = index_at(lengths, i);
        if (n < 0) return error_invalid("seq_lens(%lld) < 0", (long long)i);
        if (n > in->shape.dims[s->seq_dim])
            return error_invalid("seq_lens(%lld) > input.dims(%lld)", (long long)i, (long long)s->seq_dim);
    }
    return NULL;
}

/* For each member of the batch: the first n of the sequence backwards, the rest as it is. */
static Error *run_reverse_sequence(KernelContext *k) {
    const SequenceState *s = k->state;
    const Tensor *in = k->in[0], *lengths = k->in[1];
    Error *err = check_sequence(s, in, lengths);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &in->shape);
    if (!out || in->count == 0) return NULL;
    int64_t strides[SHAPE_MAX_RANK];
    strides_of(&in->shape, strides);
    ElementKind kind = element_kind(in->dtype);
    int64_t seq_stride = strides[s->seq_dim], seq_size = in->shape.dims[s->seq_dim];
    for (int64_t b = 0; b < lengths->count; b++) {
        int64_t n = index_at(lengths, b), base = b * strides[s->batch_dim];
        for (int part = 0; part < 2; part++) {
            int64_t count = part == 0 ? n : seq_size - n, to = part == 0 ? 0 : n, from = part == 0 ? n - 1 : n;
            StridedCopy c = {0};
            for (int d = 0; d < in->shape.rank; d++) {
                if (d == s->batch_dim) continue;
                if (d == s->seq_dim) {
                    copy_add_dim(&c, count, seq_stride, part == 0 ? -seq_stride : seq_stride);
                } else {
                    copy_add_dim(&c, in->shape.dims[d], strides[d], strides[d]);
                }
            }
            if (count > 0)
                copy_strided(k->pool, kind, &c, (char *)out->data + (size_t)(base + to * seq_stride) * kind.size,
                             (const char *)in->data + (size_t)(base + from * seq_stride) * kind.size);
        }
    }
    return NULL;
}

/* The shift of each dimension, in [0, size). */
static Error *roll_shifts(KernelContext *k, int64_t *shifts) {
    const Tensor *in = k->in[0], *shift = k->in[1], *axis = k->in[2];
    if (in->shape.rank < 1) return error_invalid("input must be 1-D or higher");
    if (shift->shape.rank > 1)
        return error_invalid("shift must be a scalar or a 1-D vector. Found: %s", shape_text(&shift->shape).text);
    if (axis->shape.rank > 1)
        return error_invalid("axis must be a scalar or a 1-D vector. Found: %s", shape_text(&axis->shape).text);
    if (!shape_eq(&shift->shape, &axis->shape)) return error_invalid("shift and axis must have the same size");
    for (int64_t i = 0; i < axis->count; i++) {
        int64_t a = index_at(axis, i);
        if (a < 0) a += in->shape.rank;
        if (a < 0 || a >= in->shape.rank) return error_invalid("axis %lld is out of range", (long long)a);
        int64_t size = in->shape.dims[a] > 0 ? in->shape.dims[a] : 1;
        shifts[a] = (shifts[a] + (index_at(shift, i) % size + size) % size) % size;
    }
    return NULL;
}

/* Two pieces for each rolled dimension: all combinations of them. */
static Error *run_roll(KernelContext *k) {
    const Tensor *in = k->in[0];
    int64_t shifts[SHAPE_MAX_RANK] = {0}, strides[SHAPE_MAX_RANK];
    Error *err = roll_shifts(k, shifts);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &in->shape);
    if (!out || in->count == 0) return NULL;
    strides_of(&in->shape, strides);
    ElementKind kind = element_kind(in->dtype);
    int rank = in->shape.rank;
    for (unsigned piece = 0; piece < 1u << rank; piece++) {
        StridedCopy c = {0};
        int64_t to = 0, from = 0;
        bool empty = false;
        for (int d = 0; d < rank; d++) {
            int64_t size = in->shape.dims[d];
            bool wrapped = piece >> d & 1;
            int64_t count = wrapped ? shifts[d] : size - shifts[d];
            empty = empty || count == 0;
            to += (wrapped ? 0 : shifts[d]) * strides[d];
            from += (wrapped ? size - shifts[d] : 0) * strides[d];
            copy_add_dim(&c, count, strides[d], strides[d]);
        }
        if (!empty)
            copy_strided(k->pool, kind, &c, (char *)out->data + (size_t)to * kind.size,
                         (const char *)in->data + (size_t)from * kind.size);
    }
    return NULL;
}

typedef struct EnsureState {
    PartialShape shape;
} EnsureState;

static Error *ensure_init(const Node *node, void *state) {
    return node_attr_shape(node, "shape", &((EnsureState *)state)->shape);
}

static Error *run_ensure_shape(KernelContext *k) {
    const PartialShape *wanted = &((const EnsureState *)k->state)->shape;
    const Shape *shape = &k->in[0]->shape;
    if (!partial_shape_matches(wanted, shape)) {
        Str name = k->node->input_count > 0 && k->node->inputs[0].node ? k->node->inputs[0].node->name : k->node->name;
        return error_invalid("Shape of tensor %.*s %s is not compatible with expected shape %s.", STR_ARG(name),
                             shape_text(shape).text, shape_text(wanted).text);
    }
    set_alias(k, shape);
    return NULL;
}

const KernelDef array_cpu[] = {
    {"Reshape", .run = kernel_reshape},
    {"ExpandDims", .run = run_expand_dims},
    {"Squeeze", .run = run_squeeze, .state_size = sizeof(IntsState), .init = squeeze_init, .clear = ints_clear},
    {"Pack", .run = run_pack, .state_size = sizeof(AxisState), .init = axis_init},
    {"Unpack", .run = run_unpack, .state_size = sizeof(AxisState), .init = axis_init},
    {"Reverse", .run = run_reverse},
    {"ReverseV2", .run = run_reverse_v2},
    {"ReverseSequence", .run = run_reverse_sequence, .state_size = sizeof(SequenceState), .init = sequence_init},
    {"Roll", .run = run_roll},
    {"EnsureShape", .run = run_ensure_shape, .state_size = sizeof(EnsureState), .init = ensure_init},
    {0},
};
