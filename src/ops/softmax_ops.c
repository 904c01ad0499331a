/* softmax_ops.c: Softmax, LogSoftmax over the last dimension. */
#include "kernels/softmax.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef softmax_ops_ops[] = {
    {"Softmax", "logits: T -> softmax: T", "T: {half, bfloat16, float, double}", 0},
    {"LogSoftmax", "logits: T -> logsoftmax: T", "T: {half, bfloat16, float, double}", 0},
    {0},
};

typedef struct RowsJob {
    void *z;
    const void *x;
    int64_t n;
} RowsJob;

static Error *rows_run(KernelContext *k, RangeFn *range) {
    Tensor *x = k->in[0];
    if (x->shape.rank < 1) return error_invalid("logits must have >= 1 dimension, got %s", shape_text(&x->shape).text);
    Tensor *z = kernel_output_from(k, 0, 0, &x->shape);
    if (!z || z->count == 0) return NULL;
    RowsJob job = {z->data, x->data, x->shape.dims[x->shape.rank - 1]};
    threadpool_parallel_for(k->pool, x->count / job.n, 4096 / job.n + 1, range, &job);
    return NULL;
}

#define S uint16_t
#define NAME(f) f##_f16
#include "ops/softmax_rows.inc"
#undef NAME
#define NAME(f) f##_bf16
#include "ops/softmax_rows.inc"
#undef S
#undef NAME
#define S float
#define NAME(f) f##_f32
#include "ops/softmax_rows.inc"
#undef S
#undef NAME
#define S double
#define NAME(f) f##_f64
#include "ops/softmax_rows.inc"

const KernelDef softmax_ops_cpu[] = {
    {"Softmax", .by_type = {FLOAT_TYPES(softmax)}},
    {"LogSoftmax", .by_type = {FLOAT_TYPES(log_softmax)}},
    {0},
};
