/* extract_patches.c: ExtractImagePatches, ExtractVolumePatches: the pixels under a sliding window, put in depth. */
#include "kernels/patches.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/window.h"

const OpDef extract_patches_ops[] = {
    {"ExtractImagePatches", "images: T -> patches: T",
     "ksizes: list(int) >= 4; strides: list(int) >= 4; rates: list(int) >= 4; T: {bfloat16, half, float, double, int8, "
     "int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, bool}; padding: {'SAME', 'VALID'}",
     0},
    {"ExtractVolumePatches", "input: T -> patches: T",
     "ksizes: list(int) >= 5; strides: list(int) >= 5; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
     "uint16, half, uint32, uint64}; padding: {'SAME', 'VALID'}",
     0},
    {0},
};

static Error *extract_init(const Node *node, void *state) {
    Window *w = state;
    Error *err = window_init(w, node);
    if (err) return err;
    static const char *const names[] = {"ksizes", "strides", "rates"};
    const int64_t *const lists[] = {w->ksize, w->strides, w->dilations};
    for (int i = 0; i < 3; i++) {
        if (lists[i][0] != 1 || lists[i][w->rank - 1] != 1) return error_unimplemented("Only support %s across space.", names[i]);
        for (int d = 1; d < w->rank - 1; d++) {
            if (lists[i][d] < 1) return error_new(CODE_OUT_OF_RANGE, "%s is out of range.", names[i]);
        }
    }
    return NULL;
}

typedef struct ExtractJob {
    PatchShape shape;
    size_t size;
    const void *from;
    char *to;
} ExtractJob;

static void extract_range(void *arg, int64_t begin, int64_t end) {
    ExtractJob *job = arg;
    size_t row = job->size * (size_t)patch_length(&job->shape);
    patches_copy(&job->shape, job->size, job->from, begin, end, job->to + (size_t)begin * row);
}

static Error *extract(KernelContext *k) {
    const Window *w = k->state;
    const Tensor *x = k->in[0];
    if (x->shape.rank != w->rank) {
        return error_invalid("input must be %d-dimensional%s", w->rank, shape_text(&x->shape).text);
    }
    Shape shape = x->shape;
    ExtractJob job = {.size = dtype_size(x->dtype), .from = x->data};
    PatchShape *s = &job.shape;
    *s = (PatchShape){.batch = x->shape.dims[0], .channels = x->shape.dims[w->c]};
    for (int i = 0; i < 3; i++) {
        s->in[i] = s->out[i] = s->k[i] = s->stride[i] = s->dilation[i] = 1;
        int d = w->h - 1 + i; /* flat images have no depth */
        if (d < 1) continue;
        Span span;
        Error *err = window_span(w, d, x->shape.dims[d], w->ksize[d], &span);
        if (err) return err;
        s->in[i] = x->shape.dims[d];
        s->out[i] = shape.dims[d] = span.out;
        s->k[i] = w->ksize[d];
        s->stride[i] = w->strides[d];
        s->dilation[i] = w->dilations[d];
        s->pad[i] = span.before;
        if (__builtin_mul_overflow(shape.dims[w->c], s->k[i], &shape.dims[w->c])) {
            return error_invalid("The depth of the patches is too large");
        }
    }
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || z->count == 0) return NULL;
    job.to = z->data;
    threadpool_parallel_for(k->pool, patch_rows(s), 16384 / patch_length(s) + 1, extract_range, &job);
    return NULL;
}

#define STATE .state_size = sizeof(Window), .init = extract_init, .flags = KERNEL_EXPENSIVE

const KernelDef extract_patches_cpu[] = {
    {"ExtractImagePatches", .run = extract, STATE},
    {"ExtractVolumePatches", .run = extract, STATE},
    {0},
};
