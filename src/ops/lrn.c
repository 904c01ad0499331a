/* lrn.c: LRN, local response normalisation over neighbouring channels, and its gradient. */
#include <math.h>

#include "base/float16.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef lrn_ops[] = {
    {"LRN", "input: T -> output: T",
     "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; T: {half, bfloat16, float} = "
     "float",
     0},
    {"LRNGrad", "input_grads: T, input_image: T, output_image: T -> output: T",
     "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; T: {half, bfloat16, float} = "
     "float",
     0},
    {0},
};

typedef struct LrnState {
    int64_t radius;
    float bias, alpha, beta;
} LrnState;

static Error *lrn_init(const Node *node, void *state) {
    LrnState *st = state;
    Error *err = node_attr_int(node, "depth_radius", &st->radius);
    if (!err) err = node_attr_float(node, "bias", &st->bias);
    if (!err) err = node_attr_float(node, "alpha", &st->alpha);
    if (!err) err = node_attr_float(node, "beta", &st->beta);
    if (!err && (st->radius < 0 || st->radius > INT32_MAX)) {
        err = error_invalid("depth_radius = %lld out of range", (long long)st->radius);
    }
    return err;
}

typedef struct LrnJob {
    const LrnState *st;
    DataType dtype;
    int64_t channels;
    void *z;
    const void *x, *y, *dy; /* y, dy: of the gradient */
} LrnJob;

static float get(const LrnJob *job, const void *p, int64_t i) {
    if (job->dtype == DT_HALF) return half_to_float(((const uint16_t *)p)[i]);
    if (job->dtype == DT_BFLOAT16) return bfloat16_to_float(((const uint16_t *)p)[i]);
    return ((const float *)p)[i];
}
static void put(const LrnJob *job, int64_t i, float v) {
    if (job->dtype == DT_HALF) {
        ((uint16_t *)job->z)[i] = float_to_half(v);
    } else if (job->dtype == DT_BFLOAT16) {
        ((uint16_t *)job->z)[i] = float_to_bfloat16(v);
    } else {
        ((float *)job->z)[i] = v;
    }
}

static int64_t window_from(const LrnJob *job, int64_t c) {
    return c > job->st->radius ? c - job->st->radius : 0;
}
static int64_t window_to(const LrnJob *job, int64_t c) {
    return c + job->st->radius + 1 < job->channels ? c + job->st->radius + 1 : job->channels;
}

/* bias + alpha * the sum of squares around channel c of the pixel that begins at `at`. */
static float norm_at(const LrnJob *job, int64_t at, int64_t c) {
    float sum = 0;
    for (int64_t i = window_from(job, c); i < window_to(job, c); i++) {
        float v = get(job, job->x, at + i);
        sum += v * v;
    }
    return job->st->bias + job->st->alpha * sum;
}

static void lrn_pixels(void *arg, int64_t begin, int64_t end) {
    const LrnJob *job = arg;
    for (int64_t p = begin; p < end; p++) {
        int64_t at = p * job->channels;
        for (int64_t c = 0; c < job->channels; c++) {
            put(job, at + c, get(job, job->x, at + c) * powf(norm_at(job, at, c), -job->st->beta));
        }
    }
}

/* Channel j passes dy to every neighbour k: dy * (norm^-beta [j = k] - 2 alpha beta x_k y_j / norm). */
static void lrn_grad_pixels(void *arg, int64_t begin, int64_t end) {
    const LrnJob *job = arg;
    const LrnState *st = job->st;
    for (int64_t p = begin; p < end; p++) {
        int64_t at = p * job->channels;
        for (int64_t c = 0; c < job->channels; c++) {
            float sum = 0;
            for (int64_t j = window_from(job, c); j < window_to(job, c); j++) {
                float norm = norm_at(job, at, j),
                      part = -2 * st->alpha * st->beta * get(job, job->x, at + c) * get(job, job->y, at + j) / norm;
                if (j == c) part += powf(norm, -st->beta);
                sum += part * get(job, job->dy, at + j);
            }
            put(job, at + c, sum);
        }
    }
}

static void run_pixels(KernelContext *k, LrnJob *job, const Tensor *z, RangeFn *fn) {
    if (z->count == 0) return;
    int64_t work = job->channels * (2 * job->st->radius + 1);
    threadpool_parallel_for(k->pool, z->count / job->channels, 8192 / work + 1, fn, job);
}

static Error *lrn_run(KernelContext *k) {
    const Tensor *x = k->in[0];
    if (x->shape.rank != 4) return error_invalid("in must be 4-dimensional");
    Tensor *z = kernel_output(k, 0, &x->shape);
    if (!z) return NULL;
    LrnJob job = {k->state, x->dtype, x->shape.dims[3], z->data, x->data, NULL, NULL};
    run_pixels(k, &job, z, lrn_pixels);
    return NULL;
}

static Error *lrn_grad_run(KernelContext *k) {
    const Tensor *dy = k->in[0], *x = k->in[1], *y = k->in[2];
    if (dy->shape.rank != 4 || x->shape.rank != 4) return error_invalid("inputs must be 4-dimensional");
    if (!shape_eq(&dy->shape, &x->shape) || !shape_eq(&y->shape, &x->shape)) {
        return error_invalid("input_grads, input_image, and out_image should have the same shape");
    }
    Tensor *z = kernel_output(k, 0, &x->shape);
    if (!z) return NULL;
    LrnJob job = {k->state, x->dtype, x->shape.dims[3], z->data, x->data, y->data, dy->data};
    run_pixels(k, &job, z, lrn_grad_pixels);
    return NULL;
}

#define TYPES(run) [DT_FLOAT] = run, [DT_HALF] = run, [DT_BFLOAT16] = run
#define STATE .state_size = sizeof(LrnState), .init = lrn_init

const KernelDef lrn_cpu[] = {
    {"LRN", .by_type = {TYPES(lrn_run)}, STATE},
    {"LRNGrad", .by_type = {TYPES(lrn_grad_run)}, STATE},
    {0},
};
