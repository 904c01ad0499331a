/* conv3d.c: Conv3D and its gradients by input and by filter: oneDNN has those of floats, others are products of matrices. */
#include "ops/conv3d.h"

#include <string.h>

#include "kernels/gemm.h"
#include "kernels/patches.h"
#include "ops/as_float.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/window.h"

const OpDef conv3d_ops[] = {
    {"Conv3D", "input: T, filter: T -> output: T",
     "T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', "
     "'NCDHW'} = 'NDHWC'; dilations: list(int) = [1, 1, 1, 1, 1]",
     0},
    {"Conv3DBackpropInput", "input: T, filter: T, out_backprop: T -> output: T",
     "T: {half, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; dilations: list(int) = [1, 1, 1, "
     "1, 1]",
     0},
    {"Conv3DBackpropFilter", "input: T, filter: T, out_backprop: T -> output: T",
     "T: {half, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; dilations: list(int) = [1, 1, 1, "
     "1, 1]",
     0},
    {"Conv3DBackpropInputV2", "input_sizes: Tshape, filter: T, out_backprop: T -> output: T",
     "T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', "
     "'NCDHW'} = 'NDHWC'; dilations: list(int) = [1, 1, 1, 1, 1]; Tshape: {int32, int64} = int32",
     0},
    {"Conv3DBackpropFilterV2", "input: T, filter_sizes: int32, out_backprop: T -> output: T",
     "T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', "
     "'NCDHW'} = 'NDHWC'; dilations: list(int) = [1, 1, 1, 1, 1]",
     0},
    {0},
};

enum { CHUNK_BYTES = 4 << 20 }; /* of the matrix of patches that is made at a time */

typedef struct Conv3dState {
    Window win;
    Conv2dCache *cache;
} Conv3dState;

static void conv3d_clear(void *state) {
    conv2d_cache_free(((Conv3dState *)state)->cache);
}

static Error *conv3d_init(const Node *node, void *state) {
    Conv3dState *st = state;
    Window *w = &st->win;
    st->cache = conv2d_cache_new();
    Error *err = window_init(w, node);
    if (err) return err;
    if (w->rank != 5) return error_invalid("%.*s: strides must have 5 elements", STR_ARG(node->op));
    if (w->strides[0] != 1 || w->strides[w->c] != 1) {
        return error_invalid("Current implementation does not yet support strides in the batch and depth dimensions.");
    }
    if (w->dilations[0] != 1 || w->dilations[w->c] != 1) {
        return error_invalid(
            "Current implementation does not yet support dilation rates in the batch and depth dimensions.");
    }
    for (int d = w->d; d <= w->w; d++) {
        if (w->strides[d] < 1) return error_invalid("Spatial strides should be larger than 0.");
        if (w->dilations[d] < 1) return error_invalid("Dilated rates should be larger than 0.");
    }
    return NULL;
}

/* Sizes, with images as channels last. */
typedef struct Conv3dShape {
    PatchShape patch;
    int64_t out_c;
} Conv3dShape;

static Error *check_forward(const Window *w, const Shape *in, const Shape *filter) {
    if (in->rank != 5) return error_invalid("input must be 5-dimensional");
    if (filter->rank != 5) return error_invalid("filter must be 5-dimensional");
    int64_t in_c = in->dims[w->c], filter_c = filter->dims[3];
    if (filter_c == 0) return error_invalid("filter_depth must be non-zero");
    if (in_c % filter_c != 0) {
        return error_invalid("Input depth must be evenly divisible by filter depth: %lld vs %lld", (long long)in_c,
                             (long long)filter_c);
    }
    for (int d = 0; d < 5; d++) {
        if (filter->dims[d] == 0)
            return error_invalid("filter must not have zero elements (i.e. all dimensions must be non-zero)");
    }
    if (in_c == filter_c) return NULL;
    return error_invalid("Number of channels in filter (%lld) must match last dimension of input (%lld)",
                         (long long)filter_c, (long long)in_c);
}

static Error *check_backward(const Window *w, const Shape *in, const Shape *filter, const Shape *dz) {
    if (in->rank != 5) return error_invalid("input tensor must have 5 dimensions");
    if (filter->rank != 5) return error_invalid("filter_sizes tensor must have 5 dimensions");
    if (dz->rank != 5) return error_invalid("out_backprop tensor must have 5 dimensions");
    if (in->dims[w->c] != filter->dims[3]) {
        return error_invalid(
            "input and filter_sizes must have the same number of channels. Got %lld for input and %lld for "
            "filter_sizes",
            (long long)in->dims[w->c], (long long)filter->dims[3]);
    }
    if (dz->dims[w->c] == filter->dims[4]) return NULL;
    return error_invalid(
        "out_backprop and filter_sizes must have the same number of channels. Got %lld for out_backprop and %lld for "
        "filter_sizes",
        (long long)dz->dims[w->c], (long long)filter->dims[4]);
}

/* After the checks above. */
static Error *conv3d_shape(const Window *w, const Shape *in, const Shape *filter, Conv3dShape *s) {
    for (int d = 0; d < 5; d++) {
        if (in->dims[d] > INT32_MAX || filter->dims[d] > INT32_MAX) {
            return error_invalid("convolution of %s with %s is too large", shape_text(in).text,
                                 shape_text(filter).text);
        }
    }
    *s = (Conv3dShape){.patch = {.batch = in->dims[0], .channels = in->dims[w->c]}, .out_c = filter->dims[4]};
    for (int i = 0; i < 3; i++) {
        Span span;
        Error *err = window_span(w, w->d + i, in->dims[w->d + i], filter->dims[i], &span);
        if (err) return err;
        s->patch.in[i] = in->dims[w->d + i];
        s->patch.out[i] = span.out;
        s->patch.k[i] = filter->dims[i];
        s->patch.stride[i] = w->strides[w->d + i];
        s->patch.dilation[i] = w->dilations[w->d + i];
        s->patch.pad[i] = span.before;
    }
    return NULL;
}

static Shape volume_shape(const Window *w, int64_t batch, const int64_t *size, int64_t channels) {
    Shape s = {.rank = 5};
    s.dims[0] = batch;
    s.dims[w->c] = channels;
    for (int i = 0; i < 3; i++) s.dims[w->d + i] = size[i];
    return s;
}

/* ---- Products, in float or double, channels last ---- */

typedef struct PatchJob {
    const PatchShape *shape;
    size_t size;
    const void *image;
    char *rows;
    int64_t first;
} PatchJob;
static void patch_range(void *arg, int64_t begin, int64_t end) {
    PatchJob *job = arg;
    size_t row = job->size * (size_t)patch_length(job->shape);
    patches_copy(job->shape, job->size, job->image, job->first + begin, job->first + end,
                 job->rows + (size_t)begin * row);
}

/* The matrix of patches, some rows at a time, times the filter: a matrix of as many rows as a patch is long. */
static void multiply(KernelContext *k, Conv2dKind kind, const Conv3dShape *s, DataType type, Tensor *const *t) {
    const size_t size = dtype_size(type);
    const int64_t rows = patch_rows(&s->patch), length = patch_length(&s->patch), out_c = s->out_c;
    int64_t chunk = CHUNK_BYTES / ((int64_t)size * length) + 1;
    if (chunk > rows) chunk = rows;
    GemmFn *gemm = type == DT_FLOAT ? gemm_f32 : gemm_f64;
    Shape patches = shape_matrix(chunk, length), filter = shape_matrix(length, out_c);
    Tensor *col = kernel_scratch(k, type, &patches);
    Tensor *part = col && kind == CONV2D_BACK_FILTER && chunk < rows ? kernel_scratch(k, type, &filter) : NULL;
    if (kind == CONV2D_BACK_INPUT) memset(t[0]->data, 0, tensor_bytes(t[0]));
    for (int64_t at = 0; at < rows && !k->error; at += chunk) {
        int64_t n = rows - at < chunk ? rows - at : chunk;
        char *out = (char *)t[2]->data + (size_t)(at * out_c) * size;
        PatchJob job = {&s->patch, size, t[0]->data, col->data, at};
        if (kind != CONV2D_BACK_INPUT) threadpool_parallel_for(k->pool, n, 16384 / length + 1, patch_range, &job);
        if (kind == CONV2D_FORWARD) {
            gemm(&(Gemm){.m = n, .n = out_c, .k = length, .a = col->data, .b = t[1]->data, .c = out}, k->pool);
        } else if (kind == CONV2D_BACK_FILTER) {
            void *to = at == 0 ? t[1]->data : part->data;
            gemm(&(Gemm){.m = length, .n = out_c, .k = n, .a_transposed = true, .a = col->data, .b = out, .c = to},
                 k->pool);
            if (at > 0) row_math(type)->add(t[1]->data, to, t[1]->count);
        } else {
            gemm(
                &(Gemm){
                    .m = n, .n = length, .k = out_c, .b_transposed = true, .a = out, .b = t[1]->data, .c = col->data},
                k->pool);
            if (type == DT_FLOAT) {
                patches_add_f32(&s->patch, t[0]->data, at, at + n, col->data);
            } else {
                patches_add_f64(&s->patch, t[0]->data, at, at + n, col->data);
            }
        }
    }
    tensor_unref(col);
    tensor_unref(part);
}

/* ---- Half types are computed in float, channels are put last ---- */

static const int TO_LAST[5] = {0, 2, 3, 4, 1}, TO_FIRST[5] = {0, 4, 1, 2, 3}; /* permutations of the dimensions */

/* The tensor to compute with: float or double, channels last. Its elements are t's when `load`. */
static Tensor *inner_of(KernelContext *k, Tensor *t, bool channels_first, bool load) {
    DataType type = t->dtype == DT_DOUBLE ? DT_DOUBLE : DT_FLOAT;
    if (t->dtype == type && !channels_first) return tensor_ref(t);
    Shape shape = t->shape;
    for (int d = 0; d < 5 && channels_first; d++) shape.dims[d] = t->shape.dims[TO_LAST[d]];
    if (!load) return kernel_scratch(k, type, &shape);
    Tensor *wide = t->dtype == type ? tensor_ref(t) : kernel_floats(k, t);
    if (!wide || !channels_first) return wide;
    Tensor *inner = kernel_scratch(k, type, &shape);
    if (inner) {
        copy_transpose(k->pool, element_kind(type), 5, t->shape.dims, TO_LAST, inner->data, wide->data);
    }
    tensor_unref(wide);
    return inner;
}

/* Puts the result where it belongs. */
static void write_back(KernelContext *k, Tensor *inner, Tensor *t, bool channels_first) {
    if (inner->data == t->data) return;
    Tensor *wide = inner->dtype == t->dtype ? tensor_ref(t) : kernel_scratch(k, inner->dtype, &t->shape);
    if (!wide) return;
    if (channels_first) {
        copy_transpose(k->pool, element_kind(wide->dtype), 5, inner->shape.dims, TO_FIRST, wide->data, inner->data);
    }
    if (wide->dtype != t->dtype) floats_store(channels_first ? wide->data : inner->data, t, 0, t->count);
    tensor_unref(wide);
}

/* Those that oneDNN takes: the sizes fit (conv3d_shape). */
static Conv2dShape shape_for_onednn(const Conv3dShape *s, bool channels_first) {
    const PatchShape *p = &s->patch;
    return (Conv2dShape){.batch = p->batch, .in_d = p->in[0], .in_h = p->in[1], .in_w = p->in[2], .in_c = p->channels,
                         .out_d = p->out[0], .out_h = p->out[1], .out_w = p->out[2], .out_c = s->out_c,
                         .k_d = p->k[0], .k_h = p->k[1], .k_w = p->k[2], .groups = 1,
                         .stride_d = p->stride[0], .stride_h = p->stride[1], .stride_w = p->stride[2],
                         .dilation_d = p->dilation[0], .dilation_h = p->dilation[1], .dilation_w = p->dilation[2],
                         .pad_front = p->pad[0], .pad_top = p->pad[1], .pad_left = p->pad[2], .channels_first = channels_first};
}

/* t[0..2]: volume, filter, result; the one that `kind` computes is written. */
static void convolve(KernelContext *k, Conv2dCache *cache, Conv2dKind kind, const Conv3dShape *s, Tensor *const *t) {
    const Window *w = k->state;
    const int result = kind == CONV2D_FORWARD ? 2 : kind == CONV2D_BACK_INPUT ? 0 : 1;
    if (t[result]->count == 0) return;
    if (t[0]->count == 0 || t[1]->count == 0 || t[2]->count == 0) {
        memset(t[result]->data, 0, tensor_bytes(t[result]));
        return;
    }
    const Conv2dShape given = shape_for_onednn(s, w->channels_first);
    if (t[0]->dtype == DT_FLOAT && conv2d_onednn(cache, kind, CONV2D_F32, &given, t[0]->data, t[1]->data, t[2]->data, k->pool, (RangeCall){0})) return;
    Tensor *inner[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3 && !k->error; i++) inner[i] = inner_of(k, t[i], i != 1 && w->channels_first, i != result);
    const Conv2dShape last = shape_for_onednn(s, false);
    if (!k->error && (inner[0]->dtype != DT_FLOAT || !conv2d_onednn(cache, kind, CONV2D_F32, &last, inner[0]->data, inner[1]->data, inner[2]->data, k->pool, (RangeCall){0})))
        multiply(k, kind, s, inner[0]->dtype, inner);
    if (!k->error) write_back(k, inner[result], t[result], result != 1 && w->channels_first);
    for (int i = 0; i < 3; i++) tensor_unref(inner[i]);
}

/* ---- The ops ---- */

Error *conv3d_forward(KernelContext *k, Conv2dCache *cache) {
    const Window *w = k->state;
    Conv3dShape s;
    Error *err = check_forward(w, &k->in[0]->shape, &k->in[1]->shape);
    if (!err) err = conv3d_shape(w, &k->in[0]->shape, &k->in[1]->shape, &s);
    if (err) return err;
    Shape shape = volume_shape(w, s.patch.batch, s.patch.out, s.out_c);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    RangeCall done = kernel_tail(k, z);
    convolve(k, cache, CONV2D_FORWARD, &s, (Tensor *[]){k->in[0], k->in[1], z});
    if (done.fn && !k->error) threadpool_parallel_for(k->pool, z->count, 16384, done.fn, done.arg);
    return NULL;
}

static Error *forward(KernelContext *k) {
    return conv3d_forward(k, ((const Conv3dState *)k->state)->cache);
}

/* The sizes, and that out_backprop has those that the convolution gives. */
static Error *backward_shape(KernelContext *k, const Shape *in, const Shape *filter, Conv3dShape *s) {
    const Window *w = k->state;
    const Shape *dz = &k->in[2]->shape;
    const char *op = str_starts(k->node->op, STR("Conv3DBackpropInput")) ? "Conv3DBackpropInputOp" : "Conv3DBackpropFilterOp";
    Error *err = check_backward(w, in, filter, dz);
    if (!err) err = conv3d_shape(w, in, filter, s);
    if (err) return err;
    if (dz->dims[0] != in->dims[0]) {
        return error_invalid(
            "%s: input and out_backprop must have the same batch size. Input batch: %lld, outbackprop batch: %lld, "
            "batch_dim: 0",
            op, (long long)in->dims[0], (long long)dz->dims[0]);
    }
    for (int i = 0; i < 3; i++) {
        int d = w->d + i;
        if (dz->dims[d] == s->patch.out[i]) continue;
        return error_invalid(
            "%s: Size of out_backprop doesn't match computed: actual = %lld, computed = %lld spatial_dim: %d input: "
            "%lld filter: %lld output: %lld stride: %lld dilation: %lld",
            op, (long long)dz->dims[d], (long long)s->patch.out[i], d, (long long)in->dims[d],
            (long long)filter->dims[i], (long long)dz->dims[d], (long long)w->strides[d], (long long)w->dilations[d]);
    }
    return NULL;
}

/* The old forms take the tensor itself, the new ones its shape. */
static Error *given_shape(KernelContext *k, int input, Shape *out) {
    if (str_ends(k->node->op, STR("V2"))) {
        int rank = k->in[input]->shape.rank;
        if (rank != 1 && input == 1)
            return error_invalid("%.*s shape must be rank 1 but is rank %d", STR_ARG(k->node->info->inputs[input].name), rank);
        return kernel_shape_input(k, input, out);
    }
    *out = k->in[input]->shape;
    return NULL;
}

static Error *back_input(KernelContext *k) {
    Conv3dShape s;
    Shape in;
    Error *err = given_shape(k, 0, &in);
    if (!err) err = backward_shape(k, &in, &k->in[1]->shape, &s);
    if (err) return err;
    Tensor *dx = kernel_output(k, 0, &in);
    if (dx) convolve(k, ((const Conv3dState *)k->state)->cache, CONV2D_BACK_INPUT, &s, (Tensor *[]){dx, k->in[1], k->in[2]});
    return NULL;
}

static Error *back_filter(KernelContext *k) {
    Conv3dShape s;
    Shape filter;
    Error *err = given_shape(k, 1, &filter);
    if (!err) err = backward_shape(k, &k->in[0]->shape, &filter, &s);
    if (err) return err;
    Tensor *dw = kernel_output(k, 0, &filter);
    if (dw) convolve(k, ((const Conv3dState *)k->state)->cache, CONV2D_BACK_FILTER, &s, (Tensor *[]){k->in[0], dw, k->in[2]});
    return NULL;
}

#define STATE .state_size = sizeof(Conv3dState), .init = conv3d_init, .clear = conv3d_clear

const KernelDef conv3d_cpu[] = {
    {"Conv3D", .run = forward, STATE, .flags = KERNEL_EXPENSIVE | KERNEL_TAIL},
    {"Conv3DBackpropInput", .run = back_input, STATE, .flags = KERNEL_EXPENSIVE},
    {"Conv3DBackpropInputV2", .run = back_input, STATE, .flags = KERNEL_EXPENSIVE},
    {"Conv3DBackpropFilter", .run = back_filter, STATE, .flags = KERNEL_EXPENSIVE},
    {"Conv3DBackpropFilterV2", .run = back_filter, STATE, .flags = KERNEL_EXPENSIVE},
    {0},
};
