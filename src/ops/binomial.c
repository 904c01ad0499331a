/* binomial.c: StatelessRandomBinomial and StatefulRandomBinomial: how many of `count` trials succeed. */
#include <math.h>

#include "base/float16.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/rng_state.h"
#include "ops/sampling.h"

const OpDef binomial_ops[] = {
    {"StatelessRandomBinomial", "shape: S, seed: Tseed, counts: T, probs: T -> output: dtype",
     "S: {int32, int64}; Tseed: {int32, int64} = int64; T: {half, float, double, int32, int64} = double; dtype: {half, float, "
     "double, int32, int64} = int64",
     0},
    {"StatefulRandomBinomial", "resource: resource, algorithm: int64, shape: S, counts: T, probs: T -> output: dtype",
     "S: {int32, int64}; T: {half, float, double, int32, int64} = double; dtype: {half, float, double, int32, int64} = int64",
     OP_STATEFUL},
    {0},
};

typedef struct BinomialJob {
    const Tensor *counts, *probs;
    Shape batch;              /* both broadcast */
    int64_t batches, samples; /* samples of each of the batches; out is samples x batches */
    Philox p;
    Tensor *out;
} BinomialJob;

/* As the type of the parameters would hold it; the choice of method depends on it. */
static double rounded(DataType type, double x) {
    return type == DT_DOUBLE ? x : type == DT_FLOAT ? (float)x : half_to_float(float_to_half((float)x));
}

static double draw(const BinomialJob *job, int64_t at, double count, double prob) {
    DataType type = job->probs->dtype;
    if (count <= 0 || prob <= 0) return 0;
    if (prob >= 1) return count;
    if (isnan(prob) || isnan(count)) return NAN;
    bool high = prob > 0.5;
    double rare = high ? rounded(type, 1 - prob) : prob;
    bool large = rounded(type, count * rare) >= 10;
    Philox own = job->p;
    philox_skip(&own, (uint64_t)at * (large ? 256 : 42));
    double x = random_binomial(own, count, rare, large);
    return high ? count - x : x;
}

static void draw_range(void *arg, int64_t begin, int64_t end) {
    const BinomialJob *job = arg;
    for (int64_t at = begin; at < end; at++) {
        int64_t batch = at / job->samples, sample = at % job->samples;
        double count = sampling_number(job->counts, sampling_place(&job->counts->shape, &job->batch, batch));
        double prob = sampling_number(job->probs, sampling_place(&job->probs->shape, &job->batch, batch));
        double x = draw(job, at, count, prob);
        sampling_put(job->out, sample * job->batches + batch, isnan(x) ? x : fmax(fmin(x, 0x1p62), -0x1p62));
    }
}

static Error *job_init(KernelContext *k, int shape_input, BinomialJob *job) {
    *job = (BinomialJob){.counts = k->in[shape_input == 0 ? 2 : 3], .probs = k->in[shape_input == 0 ? 3 : 4]};
    Shape shape;
    if (k->in[shape_input]->shape.rank != 1)
        return error_invalid("Input shape should be a vector, got shape: %s", shape_text(&k->in[shape_input]->shape).text);
    Error *err = kernel_shape_input(k, shape_input, &shape);
    if (!err) err = sampling_batch((const Tensor *[]){job->counts, job->probs}, 2, "counts and probs", &job->batch);
    if (!err) err = sampling_ends_with(&shape, &job->batch);
    if (!err) err = sampling_output(k, shape_input, &job->out);
    if (err || !job->out) return err;
    job->batches = shape_count(&job->batch);
    job->samples = job->batches ? job->out->count / job->batches : 0;
    return NULL;
}

static void job_run(KernelContext *k, BinomialJob *job) {
    if (job->out->count) threadpool_parallel_for(k->pool, job->out->count, 128, draw_range, job);
}

static Error *run_stateless(KernelContext *k) {
    BinomialJob job;
    Philox p;
    Error *err = sampling_seed(k, 1, &p);
    if (!err) err = job_init(k, 0, &job);
    if (err || !job.out) return err;
    job.p = p;
    job_run(k, &job);
    return NULL;
}

static Error *run_stateful(KernelContext *k) {
    BinomialJob job;
    int64_t algorithm = 0;
    Error *err = element_scalar_int(k, 1, "algorithm", &algorithm);
    if (!err) err = job_init(k, 2, &job);
    if (err || !job.out) return err;
    if (algorithm != 1) return error_invalid("Unsupported algorithm id: %lld", (long long)algorithm); /* only Philox */
    err = rng_state_take(k, 0, algorithm, (uint64_t)job.batches * 2 * 100 * ((uint64_t)job.samples + 3) / 4, &job.p);
    if (!err) job_run(k, &job);
    return err;
}

const KernelDef binomial_cpu[] = {
    {"StatelessRandomBinomial", .by_type = {[DT_HALF] = run_stateless, [DT_FLOAT] = run_stateless, [DT_DOUBLE] = run_stateless}},
    {"StatefulRandomBinomial", .by_type = {[DT_HALF] = run_stateful, [DT_FLOAT] = run_stateful, [DT_DOUBLE] = run_stateful}},
    {0},
};
