/* shape_ops.c: ops about shapes: Shape, ShapeN, Rank, Size, BroadcastArgs, BroadcastGradientArgs. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef shape_ops_ops[] = {
    {"Shape", "input: T -> output: out_type", "T: type; out_type: {int32, int64} = int32", 0},
    {"ShapeN", "input: N * T -> output: N * out_type", "N: int >= 1; T: type; out_type: {int32, int64} = int32", 0},
    {"Rank", "input: T -> output: int32", "T: type", 0},
    {"Size", "input: T -> output: out_type", "T: type; out_type: {int32, int64} = int32", 0},
    {"BroadcastGradientArgs", "s0: T, s1: T -> r0: T, r1: T", "T: {int32, int64} = int32", 0},
    {"BroadcastArgs", "s0: T, s1: T -> r0: T", "T: {int32, int64} = int32", 0},
    {0},
};

static Error *fits(const KernelContext *k, int i, int64_t value) {
    if (kernel_output_type(k, i) == DT_INT64 || value <= INT32_MAX) return NULL;
    return error_invalid("Shape output type is 32-bit but dim is %lld", (long long)value);
}

static Error *run_shape(KernelContext *k) {
    for (int i = 0; i < k->input_count; i++) {
        const Shape *in = &k->in[i]->shape;
        Shape shape = shape_vector(in->rank);
        Tensor *out = kernel_output(k, i, &shape);
        for (int d = 0; out && d < in->rank; d++) {
            Error *err = fits(k, i, in->dims[d]);
            if (err) return err;
            index_put(out, d, in->dims[d]);
        }
    }
    return NULL;
}

static Error *run_rank(KernelContext *k) {
    kernel_set_output(k, 0, tensor_scalar_i32(k->in[0]->shape.rank));
    return NULL;
}

static Error *run_size(KernelContext *k) {
    Error *err = fits(k, 0, k->in[0]->count);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &SHAPE_SCALAR);
    if (out) index_put(out, 0, k->in[0]->count);
    return NULL;
}

/* Two shapes given as vectors, aligned at the end: dimension d of n, 1 where the shape is shorter. */
static int64_t dim_from_end(const Tensor *shape, int64_t d, int64_t n) {
    int64_t at = d - (n - shape->count);
    return at < 0 ? 1 : index_at(shape, at);
}

static Error *shape_mismatch(const Tensor *a, const Tensor *b) {
    StrBuf text = {0};
    for (int side = 0; side < 2; side++) {
        const Tensor *t = side ? b : a;
        strbuf_addf(&text, "%s[", side ? " vs. " : "");
        for (int64_t i = 0; i < t->count; i++) strbuf_addf(&text, "%s%lld", i ? "," : "", (long long)index_at(t, i));
        strbuf_addc(&text, ']');
    }
    Error *err = error_invalid("Incompatible shapes: %s", text.ptr);
    strbuf_clear(&text);
    return err;
}

static Error *check_vectors(KernelContext *k) {
    for (int i = 0; i < 2; i++) {
        if (k->in[i]->shape.rank != 1)
            return error_invalid("In[%d] must be a vector.%s", i, shape_text(&k->in[i]->shape).text);
    }
    return NULL;
}

static Error *run_broadcast_args(KernelContext *k) {
    const Tensor *a = k->in[0], *b = k->in[1];
    Error *err = check_vectors(k);
    if (err) return err;
    int64_t n = a->count > b->count ? a->count : b->count;
    Shape shape = shape_vector(n);
    Tensor *out = kernel_output(k, 0, &shape);
    for (int64_t d = 0; out && d < n; d++) {
        int64_t x = dim_from_end(a, d, n), y = dim_from_end(b, d, n);
        if (x != y && x != 1 && y != 1) return shape_mismatch(a, b);
        index_put(out, d, x == 1 ? y : x);
    }
    return NULL;
}

static void output_axes(KernelContext *k, int i, const int64_t *axes, int64_t count) {
    Shape shape = shape_vector(count);
    Tensor *out = kernel_output(k, i, &shape);
    for (int64_t j = 0; out && j < count; j++) index_put(out, j, axes[j]);
}

/* The axes to sum over, for each side; a dimension that is 1 on both sides counts for both, unless the shapes are
 * equal. */
static Error *run_broadcast_gradient_args(KernelContext *k) {
    const Tensor *a = k->in[0], *b = k->in[1];
    Error *err = check_vectors(k);
    if (err) return err;
    int64_t n = a->count > b->count ? a->count : b->count, count[2] = {0, 0};
    bool equal = a->count == b->count;
    for (int64_t d = 0; equal && d < n; d++) equal = index_at(a, d) == index_at(b, d);
    int64_t *axes = xcalloc((size_t)n * 2 + 1, sizeof *axes);
    for (int64_t d = 0; !equal && d < n; d++) {
        int64_t x = dim_from_end(a, d, n), y = dim_from_end(b, d, n);
        if (x != y && x != 1 && y != 1) {
            free(axes);
            return shape_mismatch(a, b);
        }
        if (x == 1) axes[count[0]++] = d;
        if (y == 1) axes[n + count[1]++] = d;
    }
    output_axes(k, 0, axes, count[0]);
    output_axes(k, 1, axes + n, count[1]);
    free(axes);
    return NULL;
}

const KernelDef shape_ops_cpu[] = {
    {"Shape", .run = run_shape},
    {"ShapeN", .run = run_shape},
    {"Rank", .run = run_rank},
    {"Size", .run = run_size},
    {"BroadcastGradientArgs", .run = run_broadcast_gradient_args},
    {"BroadcastArgs", .run = run_broadcast_args},
    {0},
};
