/* pad.c: Pad, MirrorPad and its gradient, Tile. */
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef pad_ops[] = {
    {"Pad", "input: T, paddings: Tpaddings -> output: T", "T: type; Tpaddings: {int32, int64} = int32", 0},
    {"PadV2", "input: T, paddings: Tpaddings, constant_values: T -> output: T",
     "T: type; Tpaddings: {int32, int64} = int32", 0},
    {"MirrorPad", "input: T, paddings: Tpaddings -> output: T",
     "T: type; Tpaddings: {int32, int64} = int32; mode: {'REFLECT', 'SYMMETRIC'}", 0},
    {"MirrorPadGrad", "input: T, paddings: Tpaddings -> output: T",
     "T: type; Tpaddings: {int32, int64} = int32; mode: {'REFLECT', 'SYMMETRIC'}", 0},
    {"Tile", "input: T, multiples: Tmultiples -> output: T", "T: type; Tmultiples: {int32, int64} = int32", 0},
    {"TileGrad", "input: T, multiples: int32 -> output: T", "T: type", 0},
    {0},
};

typedef struct Padding {
    int64_t before[SHAPE_MAX_RANK], after[SHAPE_MAX_RANK];
} Padding;

/* The words of TensorFlow differ a little from op to op. */
static Error *read_paddings(KernelContext *k, Padding *p) {
    const Shape *in = &k->in[0]->shape, *shape = &k->in[1]->shape;
    bool mirror = str_is(k->node->op, "MirrorPad"), grad = str_is(k->node->op, "MirrorPadGrad");
    const char *negative = mirror ? "paddings must be non-negative: %lld %lld"
                           : grad ? "Paddings must be non-negative: %lld, %lld"
                                  : "Paddings must be non-negative: %lld %lld";
    if (shape->rank != 2 || shape->dims[1] != 2)
        return error_invalid("paddings must be a matrix with 2 columns: %s", shape_text(shape).text);
    if (shape->dims[0] != in->rank)
        return error_invalid("The first dimension of paddings must be the rank of inputs%s%s %s", shape_text(shape).text,
                             mirror && !grad ? "," : "", shape_text(in).text);
    for (int d = 0; d < in->rank; d++) {
        p->before[d] = index_at(k->in[1], d * 2);
        p->after[d] = index_at(k->in[1], d * 2 + 1);
        if (p->before[d] < 0 || p->after[d] < 0)
            return error_invalid(negative, (long long)p->before[d], (long long)p->after[d]);
    }
    return NULL;
}

static Error *padded_shape(const Shape *in, const Padding *p, Shape *out) {
    *out = *in;
    for (int d = 0; d < in->rank; d++) {
        if (__builtin_add_overflow(in->dims[d], p->before[d], &out->dims[d]) ||
            __builtin_add_overflow(out->dims[d], p->after[d], &out->dims[d]))
            return error_invalid("Padding of dimension %d is too large", d);
    }
    return shape_check_grown(out);
}

/* Copies between a small array and the inside of the padded one. */
static void copy_inside(KernelContext *k, DataType dtype, const Shape *small, const Shape *large, const Padding *p,
                        void *to, const void *from, bool into_large) {
    if (shape_count(small) == 0) return;
    int64_t ls[SHAPE_MAX_RANK], ss[SHAPE_MAX_RANK], start = 0;
    strides_of(large, ls);
    strides_of(small, ss);
    StridedCopy c = {0};
    for (int d = 0; d < small->rank; d++) {
        start += p->before[d] * ls[d];
        copy_add_dim(&c, small->dims[d], into_large ? ls[d] : ss[d], into_large ? ss[d] : ls[d]);
    }
    ElementKind kind = element_kind(dtype);
    size_t offset = (size_t)start * kind.size;
    copy_strided(k->pool, kind, &c, (char *)to + (into_large ? offset : 0),
                 (const char *)from + (into_large ? 0 : offset));
}

static Error *pad(KernelContext *k, const void *value) {
    const Tensor *in = k->in[0];
    Padding p;
    Shape shape;
    Error *err = read_paddings(k, &p);
    if (!err) err = padded_shape(&in->shape, &p, &shape);
    if (err) return err;
    if (shape_eq(&shape, &in->shape)) {
        kernel_set_output(k, 0, tensor_ref(k->in[0]));
        return NULL;
    }
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    copy_fill(k->pool, element_kind(out->dtype), out->data, value, out->count);
    copy_inside(k, in->dtype, &in->shape, &shape, &p, out->data, in->data, true);
    return NULL;
}

static Error *run_pad(KernelContext *k) {
    return pad(k, element_zero(k->in[0]->dtype));
}

static Error *run_pad_v2(KernelContext *k) {
    if (k->in[2]->shape.rank != 0)
        return error_invalid("constant_values must be a scalar. Found: %s", shape_text(&k->in[2]->shape).text);
    return pad(k, k->in[2]->data);
}

typedef struct MirrorState {
    int offset; /* 1: the edge itself is not repeated */
} MirrorState;

static Error *mirror_init(const Node *node, void *state) {
    Str mode;
    Error *err = node_attr_string(node, "mode", &mode);
    if (!err) ((MirrorState *)state)->offset = str_is(mode, "REFLECT") ? 1 : 0;
    return err;
}

static Error *check_mirror(const Padding *p, const Shape *small, int offset, const char *what) {
    for (int d = 0; d < small->rank; d++) {
        int64_t limit = small->dims[d] - offset;
        if (p->before[d] <= limit && p->after[d] <= limit) continue;
        return error_invalid(offset
                                 ? "paddings must be less than the %s size: %lld, %lld not less than %lld"
                                 : "paddings must be no greater than the %s size: %lld, %lld greater than %lld",
                             what, (long long)p->before[d], (long long)p->after[d], (long long)small->dims[d]);
    }
    return NULL;
}

/* The rim of dimension d, at one end: for every index of the inside of the dimensions before d, and for each of the
 * `count` rows, from outside and from inside the edge; rows are the contiguous rest. */
typedef struct Rim {
    int64_t count, outside, inside; /* rows of the edge, stepping away from it */
} Rim;

static Rim rim_of(const Padding *p, const Shape *small, int d, int end, int offset) {
    if (end == 0) return (Rim){p->before[d], p->before[d] - 1, p->before[d] + offset};
    int64_t last = p->before[d] + small->dims[d];
    return (Rim){p->after[d], last, last - 1 - offset};
}

/* Mirrors dimension d of the padded array: outside = inside. */
static void mirror_dim(KernelContext *k, ElementKind kind, char *data, const Shape *small, const Shape *large,
                       const Padding *p, int d, int offset) {
    int64_t strides[SHAPE_MAX_RANK];
    strides_of(large, strides);
    for (int end = 0; end < 2; end++) {
        Rim rim = rim_of(p, small, d, end, offset);
        if (rim.count == 0) continue;
        int64_t out_step = end == 0 ? -1 : 1, base = 0;
        StridedCopy c = {0};
        for (int e = 0; e < d; e++) {
            base += p->before[e] * strides[e];
            copy_add_dim(&c, small->dims[e], strides[e], strides[e]);
        }
        copy_add_dim(&c, rim.count, out_step * strides[d], -out_step * strides[d]);
        copy_add_dim(&c, strides[d], 1, 1);
        copy_strided(k->pool, kind, &c, data + (size_t)(base + rim.outside * strides[d]) * kind.size,
                     data + (size_t)(base + rim.inside * strides[d]) * kind.size);
    }
}

static Error *run_mirror_pad(KernelContext *k) {
    const Tensor *in = k->in[0];
    int offset = ((const MirrorState *)k->state)->offset;
    Padding p;
    Shape shape;
    Error *err = read_paddings(k, &p);
    if (!err) err = check_mirror(&p, &in->shape, offset, "dimension");
    if (!err) err = padded_shape(&in->shape, &p, &shape);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    copy_inside(k, in->dtype, &in->shape, &shape, &p, out->data, in->data, true);
    for (int d = shape.rank - 1; d >= 0; d--)
        mirror_dim(k, element_kind(in->dtype), out->data, &in->shape, &shape, &p, d, offset);
    return NULL;
}

/* Adds the rims of dimension d to what they mirror. Counts through the dimensions before d by hand. */
static void fold_dim(const RowMath *math, size_t size, char *data, const Shape *small, const Shape *large,
                     const Padding *p, int d, int offset) {
    int64_t strides[SHAPE_MAX_RANK], outer = shape_prod(small, 0, d);
    strides_of(large, strides);
    for (int64_t at = 0; at < outer; at++) {
        int64_t base = 0, rest = at;
        for (int e = d - 1; e >= 0; e--) {
            base += (p->before[e] + rest % small->dims[e]) * strides[e];
            rest /= small->dims[e];
        }
        for (int end = 0; end < 2; end++) {
            Rim rim = rim_of(p, small, d, end, offset);
            int64_t step = end == 0 ? 1 : -1;
            for (int64_t i = 0; i < rim.count; i++)
                math->add(data + (size_t)(base + (rim.inside + step * i) * strides[d]) * size,
                          data + (size_t)(base + (rim.outside - step * i) * strides[d]) * size, strides[d]);
        }
    }
}

static Error *run_mirror_pad_grad(KernelContext *k) {
    const Tensor *in = k->in[0];
    int offset = ((const MirrorState *)k->state)->offset;
    const RowMath *math = row_math(in->dtype);
    if (!math) return kernel_lacks_type(k->node, in->dtype);
    Padding p;
    Error *err = read_paddings(k, &p);
    if (err) return err;
    Shape small = in->shape;
    for (int d = 0; d < small.rank; d++) {
        int64_t total = 0;
        if (__builtin_add_overflow(p.before[d], p.after[d], &total) || total >= small.dims[d])
            return error_invalid("Total paddings must be less than the input dimension size: %lld was not less than %lld", (long long)total,
                                 (long long)small.dims[d]);
        small.dims[d] -= p.before[d] + p.after[d];
    }
    err = check_mirror(&p, &small, offset, "output dimension");
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &small);
    Tensor *sums = out ? kernel_scratch(k, in->dtype, &in->shape) : NULL;
    if (!sums) return NULL;
    elements_copy(in->dtype, sums->data, in->data, in->count);
    for (int d = 0; d < small.rank && out->count > 0; d++)
        fold_dim(math, dtype_size(in->dtype), sums->data, &small, &in->shape, &p, d, offset);
    copy_inside(k, in->dtype, &small, &in->shape, &p, out->data, sums->data, false);
    tensor_unref(sums);
    return NULL;
}

static Error *read_multiples(KernelContext *k, int64_t *multiples) {
    const Tensor *in = k->in[0], *m = k->in[1];
    if (m->shape.rank != 1)
        return error_invalid("Expected multiples to be 1-D, but got shape %s", shape_text(&m->shape).text);
    if (m->count != in->shape.rank)
        return error_invalid("Expected multiples argument to be a vector of length %d but got length %lld",
                             in->shape.rank, (long long)m->count);
    for (int d = 0; d < in->shape.rank; d++) {
        multiples[d] = index_at(m, d);
        if (multiples[d] < 0)
            return error_invalid("Expected multiples[%d] >= 0, but got %lld", d, (long long)multiples[d]);
    }
    return NULL;
}

static Error *run_tile(KernelContext *k) {
    const Tensor *in = k->in[0];
    int64_t multiples[SHAPE_MAX_RANK], is[SHAPE_MAX_RANK], os[SHAPE_MAX_RANK];
    Error *err = read_multiples(k, multiples);
    if (err) return err;
    Shape shape = in->shape;
    for (int d = 0; d < shape.rank; d++) {
        if (__builtin_mul_overflow(shape.dims[d], multiples[d], &shape.dims[d]))
            return error_invalid("Expected a non-negative size, got %lld", (long long)shape.dims[d]);
    }
    err = shape_check_grown(&shape);
    if (err) return err;
    if (shape_eq(&shape, &in->shape)) {
        kernel_set_output(k, 0, tensor_ref(k->in[0]));
        return NULL;
    }
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    strides_of(&in->shape, is);
    strides_of(&shape, os);
    StridedCopy c = {0};
    for (int d = 0; d < shape.rank; d++) {
        copy_add_dim(&c, multiples[d], os[d] * in->shape.dims[d], 0);
        copy_add_dim(&c, in->shape.dims[d], os[d], is[d]);
    }
    copy_strided(k->pool, element_kind(in->dtype), &c, out->data, in->data);
    return NULL;
}

/* Sums the copies that a Tile made. */
static Error *run_tile_grad(KernelContext *k) {
    const Tensor *in = k->in[0];
    const RowMath *math = row_math(in->dtype);
    if (!math) return kernel_lacks_type(k->node, in->dtype);
    int64_t multiples[SHAPE_MAX_RANK], is[SHAPE_MAX_RANK], os[SHAPE_MAX_RANK];
    Error *err = read_multiples(k, multiples);
    if (err) return err;
    Shape shape = in->shape;
    for (int d = 0; d < shape.rank; d++) {
        if (multiples[d] == 0 || shape.dims[d] % multiples[d] != 0)
            return error_invalid("Expected input_dim %d to be divisible by multiples[%d]", d, d);
        shape.dims[d] /= multiples[d];
    }
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    copy_fill(k->pool, element_kind(out->dtype), out->data, math->zero, out->count);
    strides_of(&in->shape, is);
    strides_of(&shape, os);
    size_t size = dtype_size(in->dtype);
    for (int64_t i = 0; i < in->count; i++) {
        int64_t at = 0, rest = i;
        for (int d = shape.rank - 1; d >= 0; d--) {
            at += rest % in->shape.dims[d] % shape.dims[d] * os[d];
            rest /= in->shape.dims[d];
        }
        math->add((char *)out->data + (size_t)at * size, (const char *)in->data + (size_t)i * size, 1);
    }
    return NULL;
}

const KernelDef pad_cpu[] = {
    {"Pad", .run = run_pad},
    {"PadV2", .run = run_pad_v2},
    {"MirrorPad", .run = run_mirror_pad, .state_size = sizeof(MirrorState), .init = mirror_init},
    {"MirrorPadGrad", .run = run_mirror_pad_grad, .state_size = sizeof(MirrorState), .init = mirror_init},
    {"Tile", .run = run_tile},
    {"TileGrad", .run = run_tile_grad},
    {0},
};
