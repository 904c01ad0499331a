/* dilation.c: Dilation2D, the largest sum of pixel and filter under a sliding window, and its two gradients. */
#include <float.h>
#include <string.h>

#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"
#include "ops/window.h"

const OpDef dilation_ops[] = {
    {"Dilation2D", "input: T, filter: T -> output: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; strides: list(int) "
     ">= 4; rates: list(int) >= 4; padding: {'SAME', 'VALID'}",
     0},
    {"Dilation2DBackpropInput", "input: T, filter: T, out_backprop: T -> in_backprop: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; strides: list(int) "
     ">= 4; rates: list(int) >= 4; padding: {'SAME', 'VALID'}",
     0},
    {"Dilation2DBackpropFilter", "input: T, filter: T, out_backprop: T -> filter_backprop: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; strides: list(int) "
     ">= 4; rates: list(int) >= 4; padding: {'SAME', 'VALID'}",
     0},
    {0},
};

static Error *dilation_init(const Node *node, void *state) {
    Window *w = state;
    Error *err = window_init(w, node);
    if (err) return err;
    if (w->rank != 4 || w->strides[0] != 1 || w->strides[3] != 1) {
        return error_unimplemented("Stride is only supported across spatial dimensions.");
    }
    if (w->dilations[0] != 1 || w->dilations[3] != 1) {
        return error_unimplemented("Rate is only supported across spatial dimensions.");
    }
    if (w->strides[1] < 1 || w->strides[2] < 1) return error_invalid("strides must be positive");
    return NULL;
}

enum { DILATION_CHANNELS = 64 }; /* that are looked at together */

typedef struct DilationJob {
    int64_t batch, in_h, in_w, channels, out_h, out_w, k_h, k_w, pad_h, pad_w;
    const Window *win;
    const void *x, *filter, *dz;
    void *z;
} DilationJob;

static Error *dilation_job(KernelContext *k, DilationJob *job, Shape *out) {
    const Window *w = k->state;
    const Shape *x = &k->in[0]->shape, *filter = &k->in[1]->shape;
    if (x->rank != 4) return error_invalid("input must be 4-dimensional%s", shape_text(x).text);
    if (filter->rank != 3) return error_invalid("filter must be 3-dimensional: %s", shape_text(filter).text);
    if (x->dims[3] != filter->dims[2]) {
        return error_invalid("input and filter must have the same depth: %lld vs %lld", (long long)x->dims[3],
                             (long long)filter->dims[2]);
    }
    Span h, v;
    Error *err = window_span(w, 1, x->dims[1], filter->dims[0], &h);
    if (!err) err = window_span(w, 2, x->dims[2], filter->dims[1], &v);
    if (err) return err;
    *job = (DilationJob){.batch = x->dims[0],
                         .in_h = x->dims[1],
                         .in_w = x->dims[2],
                         .channels = x->dims[3],
                         .out_h = h.out,
                         .out_w = v.out,
                         .k_h = filter->dims[0],
                         .k_w = filter->dims[1],
                         .pad_h = h.before,
                         .pad_w = v.before,
                         .win = w,
                         .x = k->in[0]->data,
                         .filter = k->in[1]->data};
    *out = shape_of(4, (int64_t[]){x->dims[0], h.out, v.out, x->dims[3]});
    return NULL;
}

static Error *dilation_run(KernelContext *k, RangeFn *range) {
    DilationJob job;
    Shape out;
    Error *err = dilation_job(k, &job, &out);
    if (err) return err;
    Tensor *z = kernel_output(k, 0, &out);
    if (!z || z->count == 0) return NULL;
    job.z = z->data;
    threadpool_parallel_for(k->pool, job.batch * job.out_h, 8192 / (job.out_w * job.channels * job.k_h * job.k_w + 1) + 1, range, &job);
    return NULL;
}

/* Output 0 is the gradient of input `of`. */
static Error *dilation_grad_run(KernelContext *k, int of, void (*loop)(const DilationJob *)) {
    DilationJob job;
    Shape out;
    Error *err = dilation_job(k, &job, &out);
    if (err) return err;
    const Shape *dz = &k->in[2]->shape;
    if (dz->rank != 4) return error_invalid("out_backprop must be 4-dimensional%s", shape_text(dz).text);
    if (!shape_eq(&out, dz)) return error_invalid("out_backprop has incompatible size.");
    Tensor *z = kernel_output(k, 0, &k->in[of]->shape);
    if (!z || z->count == 0) return NULL;
    memset(z->data, 0, tensor_bytes(z));
    job.z = z->data;
    job.dz = k->in[2]->data;
    if (k->in[0]->count > 0 && k->in[1]->count > 0) loop(&job);
    return NULL;
}

#define PLUS(a, b) ((a) + (b))
#define LOWEST ((C)-FLT_MAX)
#define BODY "ops/dilation.inc"
#include "kernels/each_float.inc"
#undef PLUS
#undef LOWEST
#define PLUS(a, b) ((C)((W)(a) + (W)(b)))
#define LOWEST ((C)((W)1 << (8 * sizeof(C) - 1)))
#include "kernels/each_signed.inc"
#undef LOWEST
#define LOWEST ((C)0)
#include "kernels/each_unsigned.inc"

#define STATE .state_size = sizeof(Window), .init = dilation_init, .flags = KERNEL_EXPENSIVE

const KernelDef dilation_cpu[] = {
    {"Dilation2D", .by_type = {REAL_TYPES(dilation)}, STATE},
    {"Dilation2DBackpropInput", .by_type = {REAL_TYPES(dilation_back_input)}, STATE},
    {"Dilation2DBackpropFilter", .by_type = {REAL_TYPES(dilation_back_filter)}, STATE},
    {0},
};
