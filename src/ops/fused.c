/* fused.c: bias, batch norm and activation after a product, row by row in float. */
#include "ops/fused.h"

#include <math.h>
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"

static bool activation_named(Str name, Activation *out) {
    static const struct {
        const char *name;
        Activation kind;
    } names[] = {
        {"Relu", ACTIVATION_RELU},
        {"Relu6", ACTIVATION_RELU6},
        {"Elu", ACTIVATION_ELU},
        {"LeakyRelu", ACTIVATION_LEAKY_RELU},
        {"Tanh", ACTIVATION_TANH},
        {"Sigmoid", ACTIVATION_SIGMOID},
        {"GeluApproximate", ACTIVATION_GELU_TANH},
        {"GeluExact", ACTIVATION_GELU_ERF},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_is(name, names[i].name)) {
            *out = names[i].kind;
            return true;
        }
    }
    return false;
}

Error *fused_tail_init(FusedTail *tail, const Node *node) {
    Str *ops = NULL;
    int count = 0;
    Error *err = node_attr_strings(node, "fused_ops", &ops, &count);
    if (!err) err = node_attr_float(node, "epsilon", &tail->epsilon);
    if (!err) err = node_attr_float(node, "leakyrelu_alpha", &tail->leaky_alpha);
    for (int i = 0; !err && i < count; i++) {
        bool known = true;
        if (i == 0 && str_is(ops[0], "BiasAdd")) {
            tail->bias = true;
        } else if (i == 0 && str_is(ops[0], "FusedBatchNorm")) {
            tail->batch_norm = true;
        } else {
            known = tail->activation == ACTIVATION_NONE && activation_named(ops[i], &tail->activation);
        }
        if (!known) {
            err = error_unimplemented("%.*s: fusion with %.*s is not implemented", STR_ARG(node->op), STR_ARG(ops[i]));
        }
    }
    free(ops);
    return err;
}

static int argument_count(const FusedTail *tail) {
    return tail->batch_norm ? 4 : tail->bias ? 1 : 0;
}

Error *fused_tail_check(const FusedTail *tail, const KernelContext *k, int first) {
    if (k->input_count < first + argument_count(tail)) {
        return error_invalid("Fused %.*s must have %d extra arguments, got %d", STR_ARG(k->node->op),
                             argument_count(tail), k->input_count - first);
    }
    return NULL;
}

Error *fused_tail_sizes(const FusedTail *tail, const KernelContext *k, int first, int64_t channels) {
    for (int i = 0; i < argument_count(tail); i++) {
        const Tensor *t = k->in[first + i];
        if (t->dtype != k->in[0]->dtype && t->dtype != DT_FLOAT) {
            return error_unimplemented("fused argument %d of type %s", i, dtype_name(t->dtype));
        }
        if (t->shape.rank != 1 || t->count != channels) {
            char *text = shape_str(&t->shape);
            Error *err =
                error_invalid("Must provide as many biases as the last dimension of the input tensor: %s vs. %lld",
                              text, (long long)channels);
            free(text);
            return err;
        }
    }
    return NULL;
}

typedef struct TailJob {
    const FusedTail *tail;
    float *scale, *shift; /* of each channel; scale NULL: 1 */
    int64_t channels, plane;
    DataType dtype;
    void *z;
} TailJob;

static float activate(const FusedTail *tail, float v) {
    switch (tail->activation) {
        case ACTIVATION_NONE:
            return v;
        case ACTIVATION_RELU:
            return v < 0 ? 0 : v;
        case ACTIVATION_RELU6:
            return v < 0 ? 0 : v > 6 ? 6 : v;
        case ACTIVATION_ELU:
            return v < 0 ? expm1f(v) : v;
        case ACTIVATION_LEAKY_RELU:
            return v < 0 ? v * tail->leaky_alpha : v;
        case ACTIVATION_TANH:
            return tanhf(v);
        case ACTIVATION_SIGMOID:
            return 1 / (1 + expf(-v));
        case ACTIVATION_GELU_TANH:
            return 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
        case ACTIVATION_GELU_ERF:
            return 0.5f * v * erfcf(-v * 0.70710678f);
    }
    return v;
}

static float read_float(const void *p, DataType t, int64_t i) {
    if (t == DT_HALF) return half_to_float(((const uint16_t *)p)[i]);
    if (t == DT_BFLOAT16) return bfloat16_to_float(((const uint16_t *)p)[i]);
    return ((const float *)p)[i];
}
static void write_float(void *p, DataType t, int64_t i, float v) {
    if (t == DT_HALF) {
        ((uint16_t *)p)[i] = float_to_half(v);
    } else if (t == DT_BFLOAT16) {
        ((uint16_t *)p)[i] = float_to_bfloat16(v);
    } else {
        ((float *)p)[i] = v;
    }
}

static void tail_rows(void *arg, int64_t begin, int64_t end) {
    const TailJob *job = arg;
    bool plain = job->dtype == DT_FLOAT && !job->scale && job->tail->activation <= ACTIVATION_RELU;
    float least = job->tail->activation == ACTIVATION_RELU ? 0 : -INFINITY;
    for (int64_t r = begin; r < end; r++) {
        int64_t at = r * job->channels;
        if (plain) {
            float *z = (float *)job->z + at;
            for (int64_t c = 0; c < job->channels; c++) {
                float v = z[c] + job->shift[c];
                z[c] = v < least ? least : v;
            }
            continue;
        }
        for (int64_t c = 0; c < job->channels; c++) {
            float v = read_float(job->z, job->dtype, at + c) * (job->scale ? job->scale[c] : 1) + job->shift[c];
            write_float(job->z, job->dtype, at + c, activate(job->tail, v));
        }
    }
}

static void tail_planes(void *arg, int64_t begin, int64_t end) {
    const TailJob *job = arg;
    for (int64_t p = begin; p < end; p++) {
        float scale = job->scale ? job->scale[p % job->channels] : 1, shift = job->shift[p % job->channels];
        for (int64_t i = p * job->plane; i < (p + 1) * job->plane; i++)
            write_float(job->z, job->dtype, i, activate(job->tail, read_float(job->z, job->dtype, i) * scale + shift));
    }
}

static Error *run_tail(const FusedTail *tail, KernelContext *k, int first, Tensor *z, int64_t channels, int64_t plane, RangeFn *range) {
    if (channels == 0 || z->count == 0) return NULL;
    TailJob job = {tail, NULL, xcalloc((size_t)channels, sizeof(float)), channels, plane, z->dtype, z->data};
    if (tail->bias) {
        for (int64_t c = 0; c < channels; c++) job.shift[c] = read_float(k->in[first]->data, k->in[first]->dtype, c);
    }
    if (tail->batch_norm) {
        job.scale = xcalloc((size_t)channels, sizeof(float));
        for (int64_t c = 0; c < channels; c++) {
            float v[4]; /* scale, offset, mean, variance */
            for (int i = 0; i < 4; i++) v[i] = read_float(k->in[first + i]->data, k->in[first + i]->dtype, c);
            job.scale[c] = v[0] / sqrtf(v[3] + tail->epsilon);
            job.shift[c] = v[1] - v[2] * job.scale[c];
        }
    }
    int64_t each = plane ? plane : channels;
    threadpool_parallel_for(k->pool, z->count / each, 16384 / each + 1, range, &job);
    free(job.scale);
    free(job.shift);
    return NULL;
}

Error *fused_tail_run(const FusedTail *tail, KernelContext *k, int first, Tensor *z, int64_t channels) {
    return run_tail(tail, k, first, z, channels, 0, tail_rows);
}

Error *fused_tail_run_planes(const FusedTail *tail, KernelContext *k, int first, Tensor *z, int64_t channels, int64_t plane) {
    return run_tail(tail, k, first, z, channels, plane, tail_planes);
}
