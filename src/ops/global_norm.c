/* global_norm.c: BatchNormWithGlobalNormalization, normalisation of images with given mean and variance, and its gradient. */
#include <math.h>

#include "base/float16.h"
#include "ops/elements.h"
#include "ops/op_list.h"

#define NUMBERS                                                                                                          \
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, " \
    "uint16, complex128, half, uint32, uint64}; variance_epsilon: float; scale_after_normalization: bool"

const OpDef global_norm_ops[] = {
    {"BatchNormWithGlobalNormalization", "t: T, m: T, v: T, beta: T, gamma: T -> result: T", NUMBERS, 0},
    {"BatchNormWithGlobalNormalizationGrad",
     "t: T, m: T, v: T, gamma: T, backprop: T -> dx: T, dm: T, dv: T, db: T, dg: T", NUMBERS, 0},
    {0},
};

typedef struct GlobalNormState {
    float epsilon;
    bool scales;
} GlobalNormState;

static Error *global_norm_init(const Node *node, void *state) {
    GlobalNormState *st = state;
    Error *err = node_attr_float(node, "variance_epsilon", &st->epsilon);
    return err ? err : node_attr_bool(node, "scale_after_normalization", &st->scales);
}

typedef struct GlobalNorm {
    int64_t rows, depth;
    float epsilon;
    bool scales;
    const void *t, *mean, *variance, *gamma, *beta, *factor;
    void *to;
} GlobalNorm;

/* Checks the inputs and makes the outputs. gamma: the number of that input; beta, when there is one, stands before it. */
static Error *global_norm_open(KernelContext *k, GlobalNorm *g, int gamma) {
    static const char *const names[2][5] = {{"input", "mean", "var", "gamma", "out_backprop"},
                                            {"input", "mean", "var", "beta", "gamma"}};
    const GlobalNormState *st = k->state;
    Tensor **in = k->in;
    bool forward = gamma == 4;
    if (in[0]->shape.rank != 4) return error_invalid("input must be 4-dimensional%s", shape_text(&in[0]->shape).text);
    int64_t depth = in[0]->shape.dims[3];
    for (int i = 1; i < 5; i++) {
        const char *name = names[forward][i];
        if (!forward && i == 4) {
            if (!shape_eq(&in[4]->shape, &in[0]->shape)) {
                return error_invalid("%s must have the shape of input, got %s", name, shape_text(&in[4]->shape).text);
            }
        } else if (in[i]->shape.rank != 1) {
            return error_invalid("%s must be 1-dimensional%s", name, shape_text(&in[i]->shape).text);
        } else if (in[i]->count != depth) {
            return error_invalid("%s must have as many elements as input has channels, got %lld vs %lld", name,
                                 (long long)in[i]->count, (long long)depth);
        }
    }
    *g = (GlobalNorm){depth ? in[0]->count / depth : 0, depth, st->epsilon, st->scales, in[0]->data, in[1]->data,
                      in[2]->data, in[gamma]->data, NULL, NULL, NULL};
    for (int i = 0; i < k->output_count && !k->error; i++) kernel_output(k, i, i ? &in[1]->shape : &in[0]->shape);
    return NULL;
}

#define BODY "ops/global_norm.inc"
#include "kernels/each_float.inc"

#define STATE .state_size = sizeof(GlobalNormState), .init = global_norm_init
#define TYPES(run) .by_type = {[DT_FLOAT] = run##_f32, [DT_HALF] = run##_f16, [DT_BFLOAT16] = run##_bf16, [DT_DOUBLE] = run##_f64}

const KernelDef global_norm_cpu[] = {
    {"BatchNormWithGlobalNormalization", TYPES(norm), STATE},
    {"BatchNormWithGlobalNormalizationGrad", TYPES(norm_grad), STATE},
    {0},
};
