/* cross_entropy.c: SoftmaxCrossEntropyWithLogits and its form with labels, each with the gradient. */
#include "kernels/softmax.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef cross_entropy_ops[] = {
    {"SoftmaxCrossEntropyWithLogits", "features: T, labels: T -> loss: T, backprop: T",
     "T: {half, bfloat16, float, double}", 0},
    {"SparseSoftmaxCrossEntropyWithLogits", "features: T, labels: Tlabels -> loss: T, backprop: T",
     "T: {half, bfloat16, float, double}; Tlabels: {int32, int64} = int64", 0},
    {0},
};

typedef struct DenseJob {
    void *loss, *grad;
    const void *x, *y;
    int64_t x_row, x_step, y_row, y_step; /* 0 where one row or column serves all */
    int64_t n;
} DenseJob;

typedef struct LabelJob {
    void *loss, *grad;
    const void *x;
    const Tensor *labels;
    int64_t n;
} LabelJob;

enum { ELEMENTS_PER_TASK = 4096 };

/* Logits and labels broadcast to a matrix. */
static Error *dense_run(KernelContext *k, RangeFn *range) {
    Tensor *x = k->in[0], *y = k->in[1];
    BroadcastInput inputs[2] = {{x->shape.rank, x->shape.dims}, {y->shape.rank, y->shape.dims}};
    BroadcastPlan plan;
    if (!broadcast_plan_init(&plan, inputs, 2)) {
        return error_invalid("logits and labels must be broadcastable: logits_size=%s labels_size=%s",
                             shape_text(&x->shape).text, shape_text(&y->shape).text);
    }
    if (plan.out_rank != 2) {
        return error_invalid("logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional");
    }
    int64_t rows = plan.out_dims[0], n = plan.out_dims[1];
    Shape vector = shape_vector(rows), matrix = shape_matrix(rows, n);
    Tensor *loss = kernel_output(k, 0, &vector);
    Tensor *grad = !loss                          ? NULL
                   : shape_eq(&x->shape, &matrix) ? kernel_output_from(k, 1, 0, &matrix)
                                                  : kernel_output(k, 1, &matrix);
    if (!grad) return NULL;
    if (n == 0) {
        memset(loss->data, 0, tensor_bytes(loss));
        return NULL;
    }
    DenseJob job = {.loss = loss->data, .grad = grad->data, .x = x->data, .y = y->data, .n = n};
    int64_t x_cols = x->shape.rank ? x->shape.dims[x->shape.rank - 1] : 1;
    int64_t y_cols = y->shape.rank ? y->shape.dims[y->shape.rank - 1] : 1;
    job.x_step = x_cols > 1;
    job.y_step = y_cols > 1;
    job.x_row = x->shape.rank == 2 && x->shape.dims[0] > 1 ? x_cols : 0;
    job.y_row = y->shape.rank == 2 && y->shape.dims[0] > 1 ? y_cols : 0;
    threadpool_parallel_for(k->pool, rows, ELEMENTS_PER_TASK / n + 1, range, &job);
    return NULL;
}

/* Of labels outside of [0, n) the lowest is named when it is negative, else the highest. */
static Error *check_labels(const Tensor *labels, int64_t n) {
    int64_t low = 0, high = -1;
    for (int64_t i = 0; i < labels->count; i++) {
        int64_t label = tensor_index(labels, i);
        if (label < low) low = label;
        if (label > high) high = label;
    }
    if (low == 0 && high < n) return NULL;
    StrBuf all = {0};
    for (int64_t j = 0; j < labels->count && j < 100; j++) {
        strbuf_addf(&all, "%s%lld", j ? " " : "", (long long)tensor_index(labels, j));
    }
    Error *err = error_invalid("Received a label value of %lld which is outside the valid range of [0, %lld).  Label values: %.*s",
                               (long long)(low < 0 ? low : high), (long long)n, STR_ARG(strbuf_str(&all)));
    strbuf_clear(&all);
    return err;
}

static Error *label_run(KernelContext *k, RangeFn *range) {
    Tensor *x = k->in[0], *labels = k->in[1];
    if (x->shape.rank != 2) return error_invalid("logits must be 2-D, but got shape %s", shape_text(&x->shape).text);
    if (labels->shape.rank != 1) {
        return error_invalid("labels must be 1-D, but got shape %s", shape_text(&labels->shape).text);
    }
    int64_t rows = x->shape.dims[0], n = x->shape.dims[1];
    if (rows != labels->count) {
        return error_invalid(
            "logits and labels must have the same first dimension, got logits shape %s and labels shape %s",
            shape_text(&x->shape).text, shape_text(&labels->shape).text);
    }
    if (n == 0)
        return error_invalid("Must have at least one class, but got logits shape %s", shape_text(&x->shape).text);
    Error *err = check_labels(labels, n);
    if (err) return err;
    Tensor *loss = kernel_output(k, 0, &labels->shape);
    Tensor *grad = loss ? kernel_output_from(k, 1, 0, &x->shape) : NULL;
    if (!grad) return NULL;
    LabelJob job = {loss->data, grad->data, x->data, labels, n};
    threadpool_parallel_for(k->pool, rows, ELEMENTS_PER_TASK / n + 1, range, &job);
    return NULL;
}

#define S uint16_t
#define NAME(f) f##_f16
#include "ops/cross_entropy.inc"
#undef NAME
#define NAME(f) f##_bf16
#include "ops/cross_entropy.inc"
#undef S
#undef NAME
#define S float
#define NAME(f) f##_f32
#include "ops/cross_entropy.inc"
#undef S
#undef NAME
#define S double
#define NAME(f) f##_f64
#include "ops/cross_entropy.inc"

const KernelDef cross_entropy_cpu[] = {
    {"SoftmaxCrossEntropyWithLogits", .by_type = {FLOAT_TYPES(dense)}},
    {"SparseSoftmaxCrossEntropyWithLogits", .by_type = {FLOAT_TYPES(label)}},
    {0},
};
