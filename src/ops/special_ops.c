/* special_ops.c: incomplete gamma and beta functions, zeta, polygamma. */
#include "base/float16.h"
#include "kernels/special_gamma.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef special_ops_ops[] = {
    {"Igamma", "a: T, x: T -> z: T", "T: {bfloat16, half, float, double}", 0},
    {"Igammac", "a: T, x: T -> z: T", "T: {bfloat16, half, float, double}", 0},
    {"IgammaGradA", "a: T, x: T -> z: T", "T: {float, double}", 0},
    {"Polygamma", "a: T, x: T -> z: T", "T: {float, double}", 0},
    {"Zeta", "x: T, q: T -> z: T", "T: {float, double}", 0},
    {"Betainc", "a: T, b: T, x: T -> z: T", "T: {float, double}", 0},
    {"RandomGammaGrad", "alpha: T, sample: T -> output: T", "T: {float, double}", 0},
    {0},
};

#define BODY "ops/special_binary.inc"
#include "kernels/each_float.inc"
#undef BODY

/* All of one shape, or scalars. */
static Error *betainc_shape(KernelContext *k, Shape *out) {
    static const char *const names[] = {"a", "b", "x"};
    int first = -1;
    *out = SHAPE_SCALAR;
    for (int i = 0; i < 3; i++) {
        const Shape *s = &k->in[i]->shape;
        if (s->rank == 0) continue;
        if (first >= 0 && !shape_eq(s, out))
            return error_invalid("Shapes of %s and %s are inconsistent: %s vs. %s", names[first], names[i],
                                 shape_text(out).text, shape_text(s).text);
        if (first < 0) first = i;
        *out = *s;
    }
    return NULL;
}

typedef struct BetaincJob {
    const Tensor *in[3];
    Tensor *out;
} BetaincJob;

static double number_of(const Tensor *t, int64_t i) {
    int64_t at = t->shape.rank ? i : 0;
    return t->dtype == DT_DOUBLE ? tensor_f64(t)[at] : (double)tensor_f32(t)[at];
}

static void betainc_range(void *arg, int64_t begin, int64_t end) {
    const BetaincJob *job = arg;
    for (int64_t i = begin; i < end; i++) {
        double v = special_betainc(number_of(job->in[0], i), number_of(job->in[1], i), number_of(job->in[2], i));
        if (job->out->dtype == DT_DOUBLE) {
            tensor_f64(job->out)[i] = v;
        } else {
            tensor_f32(job->out)[i] = (float)v;
        }
    }
}

static Error *run_betainc(KernelContext *k) {
    Shape shape;
    Error *err = betainc_shape(k, &shape);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    BetaincJob job = {{k->in[0], k->in[1], k->in[2]}, out};
    threadpool_parallel_for(k->pool, out->count, 1024, betainc_range, &job);
    return NULL;
}

const KernelDef special_ops_cpu[] = {
    {"Igamma", .by_type = {FLOAT_TYPES(igamma)}},
    {"Igammac", .by_type = {FLOAT_TYPES(igammac)}},
    {"IgammaGradA", .by_type = {FLOAT_TYPES(igamma_grad_a)}},
    {"Polygamma", .by_type = {FLOAT_TYPES(polygamma)}},
    {"Zeta", .by_type = {FLOAT_TYPES(zeta)}},
    {"RandomGammaGrad", .by_type = {FLOAT_TYPES(gamma_sample_grad)}},
    {"Betainc", .run = run_betainc},
    {0},
};
