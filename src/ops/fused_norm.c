/* fused_norm.c: _MklLayerNorm and _MklFusedInstanceNorm, which the optimiser of a TensorFlow master with oneDNN makes of the ops they are. */
#include <math.h>
#include <stdlib.h>

#include "ops/as_float.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef fused_norm_ops[] = {
    {"_MklLayerNorm", "x: T, scale: T, offset: T -> y: T", "T: {float, bfloat16, half}; epsilon: float = 0.001000000047", 0},
    {"_MklFusedInstanceNorm", "x: T, gamma: T, beta: T -> y: T",
     "T: {float, bfloat16, half}; fused_ops: list(string) = []; epsilon: float = 9.9999997e-05; leakyrelu_alpha: float = 0.20000000298; "
     "reduction_axes: list(int)",
     0},
    {0},
};

typedef struct FusedNormState {
    float epsilon, negative;    /* what values below zero are multiplied by at the end */
    int first_axis, axis_count; /* of an instance norm: reduced, one after the other */
} FusedNormState;

static Error *layer_init(const Node *node, void *state) {
    FusedNormState *st = state;
    st->negative = 1;
    return node_attr_float(node, "epsilon", &st->epsilon);
}

static Error *read_activation(const Node *node, FusedNormState *st) {
    Str *names = NULL;
    int count = 0;
    Error *err = node_attr_strings(node, "fused_ops", &names, &count);
    st->negative = 1;
    if (!err && count == 1 && str_is(names[0], "Relu")) {
        st->negative = 0;
    } else if (!err && count == 1 && str_is(names[0], "LeakyRelu")) {
        err = node_attr_float(node, "leakyrelu_alpha", &st->negative);
    } else if (!err && count > 0) {
        err = error_unimplemented("Fusion is not implemented: [%.*s]", STR_ARG(names[0]));
    }
    free(names);
    return err;
}

static Error *instance_init(const Node *node, void *state) {
    FusedNormState *st = state;
    int64_t *axes = NULL;
    int count = 0;
    Error *err = node_attr_float(node, "epsilon", &st->epsilon);
    if (!err) err = read_activation(node, st);
    if (!err) err = node_attr_ints(node, "reduction_axes", &axes, &count);
    for (int i = 0; !err && i < count; i++) {
        if ((axes[0] != 1 && axes[0] != 2) || axes[i] != axes[0] + i) err = error_invalid("Failed to infer data format from reduction axes");
    }
    if (!err && count == 0) err = error_invalid("Failed to infer data format from reduction axes");
    if (!err) {
        st->first_axis = (int)axes[0];
        st->axis_count = count;
    }
    free(axes);
    return err;
}

/* x as outer x reduced x inner: each of outer x inner has a mean and a variance of its own. The scale of an element is found by these steps,
 * modulo the channels. */
typedef struct NormJob {
    const FusedNormState *st;
    int64_t outer, reduced, inner, channels;
    int64_t outer_step, reduced_step, inner_step;
    const float *x, *scale, *offset;
    double *moments; /* for each of outer: means, then deviations, of inner */
    float *y;
} NormJob;

static void find_moments(const NormJob *job, const float *x, double *mean, double *deviation) {
    for (int64_t i = 0; i < job->inner; i++) mean[i] = deviation[i] = 0;
    for (int64_t r = 0; r < job->reduced; r++)
        for (int64_t i = 0; i < job->inner; i++) mean[i] += (double)x[r * job->inner + i];
    for (int64_t i = 0; i < job->inner; i++) mean[i] /= (double)job->reduced;
    for (int64_t r = 0; r < job->reduced; r++) {
        for (int64_t i = 0; i < job->inner; i++) {
            double d = (double)x[r * job->inner + i] - mean[i];
            deviation[i] += d * d;
        }
    }
    for (int64_t i = 0; i < job->inner; i++) deviation[i] = sqrt(deviation[i] / (double)job->reduced + (double)job->st->epsilon);
}

static void norm_range(void *arg, int64_t begin, int64_t end) {
    const NormJob *job = arg;
    for (int64_t o = begin; o < end; o++) {
        const float *x = job->x + o * job->reduced * job->inner;
        float *y = job->y + o * job->reduced * job->inner;
        double *mean = job->moments + o * 2 * job->inner, *deviation = mean + job->inner;
        find_moments(job, x, mean, deviation);
        for (int64_t r = 0; r < job->reduced; r++) {
            for (int64_t i = 0; i < job->inner; i++) {
                int64_t at = r * job->inner + i, c = (o * job->outer_step + r * job->reduced_step + i * job->inner_step) % job->channels;
                float v = (float)(((double)x[at] - mean[i]) / deviation[i]) * job->scale[c] + job->offset[c];
                y[at] = v > 0 ? v : v * job->st->negative;
            }
        }
    }
}

/* Sizes and steps are there; runs it on floats. */
static Error *normalise(KernelContext *k, NormJob *job) {
    Tensor *y = kernel_output(k, 0, &k->in[0]->shape), *wide[3] = {NULL, NULL, NULL}, *moments = NULL, *out = NULL;
    if (k->in[1]->count != k->in[2]->count) return error_invalid("Number of elements in scale and shifttensors are not same.");
    if (k->in[1]->count != job->channels)
        return error_invalid("scale must have the same number of elements as the channels of x: %lld vs. %lld", (long long)k->in[1]->count, (long long)job->channels);
    if (!y || y->count == 0) return NULL;
    Shape shape = shape_matrix(job->outer, 2 * job->inner);
    moments = kernel_scratch(k, DT_DOUBLE, &shape);
    for (int i = 0; i < 3 && !k->error; i++) wide[i] = kernel_floats(k, k->in[i]);
    if (!k->error) out = y->dtype == DT_FLOAT ? tensor_ref(y) : kernel_scratch(k, DT_FLOAT, &y->shape);
    if (moments && out) {
        job->x = wide[0]->data;
        job->scale = wide[1]->data;
        job->offset = wide[2]->data;
        job->moments = tensor_f64(moments);
        job->y = out->data;
        threadpool_parallel_for(k->pool, job->outer, 16384 / (job->reduced * job->inner) + 1, norm_range, job);
        if (out != y) floats_store(out->data, y, 0, y->count);
    }
    for (int i = 0; i < 3; i++) tensor_unref(wide[i]);
    tensor_unref(moments);
    tensor_unref(out);
    return NULL;
}

static Error *layer_run(KernelContext *k) {
    const Shape *x = &k->in[0]->shape;
    if (x->rank != 2 && x->rank != 3) return error_invalid("input must be 2D or 3D%s", shape_text(x).text);
    if (k->in[1]->shape.rank != 1) return error_invalid("scale must be 1D tensor%s", shape_text(&k->in[1]->shape).text);
    if (k->in[2]->shape.rank != 1) return error_invalid("offset must be 1D tensor%s", shape_text(&k->in[2]->shape).text);
    if (k->in[0]->count == 0) {
        kernel_output(k, 0, x);
        return NULL;
    }
    int64_t width = x->dims[x->rank - 1];
    NormJob job = {.st = k->state, .outer = shape_prod(x, 0, x->rank - 1), .reduced = width, .inner = 1, .channels = width, .reduced_step = 1};
    return normalise(k, &job);
}

static Error *instance_run(KernelContext *k) {
    const FusedNormState *st = k->state;
    const Shape *x = &k->in[0]->shape;
    if (x->rank != st->axis_count + 2)
        return error_invalid("Unsupported input: %s, %s", shape_text(x).text, st->first_axis == 2 ? "NCHW" : "NHWC");
    if (k->in[0]->count == 0) { /* its other dimensions may be of any size */
        kernel_output(k, 0, x);
        return NULL;
    }
    bool channels_first = st->first_axis == 2;
    int64_t channels = x->dims[channels_first ? 1 : x->rank - 1];
    NormJob job = {.st = st, .channels = channels, .reduced = shape_prod(x, st->first_axis, st->first_axis + st->axis_count)};
    job.outer = channels_first ? x->dims[0] * channels : x->dims[0];
    job.inner = channels_first ? 1 : channels;
    job.outer_step = channels_first;
    job.inner_step = !channels_first;
    return normalise(k, &job);
}

#define TYPES(run) [DT_FLOAT] = run, [DT_BFLOAT16] = run, [DT_HALF] = run

const KernelDef fused_norm_cpu[] = {
    {"_MklLayerNorm", .by_type = {TYPES(layer_run)}, .state_size = sizeof(FusedNormState), .init = layer_init, .flags = KERNEL_EXPENSIVE},
    {"_MklFusedInstanceNorm", .by_type = {TYPES(instance_run)}, .state_size = sizeof(FusedNormState), .init = instance_init, .flags = KERNEL_EXPENSIVE},
    {0},
};
