/* bounded_normal.c: ParameterizedTruncatedNormal and StatelessParameterizedTruncatedNormal: normal numbers between two bounds.

   How many numbers of the generator one result takes is not known before, so a stretch of results takes them one after another, and each stretch
   begins where the results before it could not have come to. TensorFlow cuts stretches by its number of threads; up to STRETCH results, where
   it makes one, the values are its own. */
#include <math.h>
#include <stdatomic.h>

#include "base/float16.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/random_state.h"
#include "ops/sampling.h"

const OpDef bounded_normal_ops[] = {
    {"ParameterizedTruncatedNormal", "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype",
     "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: {int32, int64}", OP_STATEFUL},
    {"StatelessParameterizedTruncatedNormal", "shape: S, seed: Tseed, means: dtype, stddevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype",
     "S: {int32, int64}; Tseed: {int32, int64} = int64; dtype: {half, float, double}", 0},
    {0},
};

static const char PARAMETERS[] = "means, stddevs, minvals, maxvals";
enum { MAX_TRIES = 1000, STRETCH = 1000, SAME_BATCH = 100 };

typedef struct BoundedJob BoundedJob;
typedef Error *DrawFn(const BoundedJob *job, const int64_t at[4], Philox *p, int64_t first, int64_t stride, int64_t count);

struct BoundedJob {
    const Tensor *parameters[4]; /* means, deviations, lower and upper bounds */
    Shape batch;                 /* of them, broadcast */
    int64_t batches, samples;    /* samples of each batch */
    bool samples_last;           /* out is batches x samples, else samples x batches */
    int group;                   /* numbers of one group of the generator */
    Philox p;
    Tensor *out;
    DrawFn *draw;
    _Atomic(Error *) failed; /* the first error of any stretch */
};

static Error *gave_up(const char *how) {
    return error_internal("TruncatedNormal %s a sample.", how);
}

#define R(x) (x)
#define LOAD(x) (x)
#define STORE(x) (x)
#define S float
#define T float
#define F(g) g##f
#define GROUP 4
#define TYPE RANDOM_FLOAT
#define NAME(f) f##_f32
#include "ops/bounded_normal.inc"
#define S double
#define T double
#define F(g) g
#define GROUP 2
#define TYPE RANDOM_DOUBLE
#define NAME(f) f##_f64
#include "ops/bounded_normal.inc"
#undef R
#undef LOAD
#undef STORE
#define R(x) half_to_float(float_to_half(x))
#define LOAD half_to_float
#define STORE float_to_half
#define S uint16_t
#define T float
#define F(g) g##f
#define GROUP 4
#define TYPE RANDOM_HALF
#define NAME(f) f##_f16
#include "ops/bounded_normal.inc"

static void fail(BoundedJob *job, Error *err) {
    Error *none = NULL;
    if (err && !atomic_compare_exchange_strong(&job->failed, &none, err)) error_free(err);
}

/* Before memory is taken for the results. The parameters of the job, broadcast to each other, have the shape `own`. */
static Error *check_values(const BoundedJob *job, const Shape *own) {
    for (int64_t b = 0, count = shape_count(own); b < count; b++) {
        double x[4];
        for (int i = 0; i < 4; i++) x[i] = sampling_number(job->parameters[i], sampling_place(&job->parameters[i]->shape, own, b));
        if (!(x[1] > 0 && x[2] < x[3] && (isfinite(x[2]) || isfinite(x[3])))) return error_invalid("Invalid parameters");
    }
    return NULL;
}

static Error *draw_batch(const BoundedJob *job, Philox *p, int64_t batch, int64_t sample, int64_t count) {
    int64_t at[4];
    for (int i = 0; i < 4; i++) at[i] = sampling_place(&job->parameters[i]->shape, &job->batch, job->batch.rank ? batch : 0);
    int64_t first = job->samples_last ? batch * job->samples + sample : sample * job->batches + batch;
    return job->draw(job, at, p, first, job->samples_last ? 1 : job->batches, count);
}

/* Whole batches, each behind the other: the stateful op. */
static void draw_batches(void *arg, int64_t begin, int64_t end) {
    BoundedJob *job = arg;
    Philox p = job->p;
    philox_skip(&p, (uint64_t)begin * 2 * MAX_TRIES * ((uint64_t)job->samples + 3) / 4);
    for (int64_t b = begin; b < end && !atomic_load(&job->failed); b++) {
        int64_t left = job->out->count - b * job->samples;
        fail(job, draw_batch(job, &p, b, 0, left < job->samples ? left : job->samples));
    }
}

/* Results begin to end, counted batch by batch: the stateless op. */
static void draw_results(void *arg, int64_t begin, int64_t end) {
    BoundedJob *job = arg;
    Philox p = job->p;
    philox_skip(&p, ((uint64_t)begin * 2 * MAX_TRIES + (uint64_t)job->group - 1) / (uint64_t)job->group);
    for (int64_t at = begin, count; at < end && !atomic_load(&job->failed); at += count) {
        int64_t sample = at % job->samples;
        count = job->samples - sample < end - at ? job->samples - sample : end - at;
        fail(job, draw_batch(job, &p, at / job->samples, sample, count));
    }
}

typedef struct Stretches {
    BoundedJob *job;
    int64_t units, size; /* batches or results in all, and of one stretch */
    RangeFn *draw;
} Stretches;

static void draw_stretches(void *arg, int64_t begin, int64_t end) {
    const Stretches *s = arg;
    for (int64_t i = begin; i < end; i++) s->draw(s->job, i * s->size, (i + 1) * s->size < s->units ? (i + 1) * s->size : s->units);
}

static Error *draw_all(KernelContext *k, BoundedJob *job, int64_t units, int64_t size, RangeFn *draw) {
    switch (job->out->dtype) {
        case DT_HALF:
            job->draw = draw_f16;
            break;
        case DT_FLOAT:
            job->draw = draw_f32;
            break;
        default:
            job->draw = draw_f64;
            break;
    }
    Stretches stretches = {job, units, size, draw};
    threadpool_parallel_for(k->pool, (units + size - 1) / size, 1, draw_stretches, &stretches);
    return job->failed;
}

/* The vector in input 0. */
static Error *wanted_shape(KernelContext *k, Shape *out) {
    const Shape *s = &k->in[0]->shape;
    if (s->rank != 1) return error_invalid("Input shape should be a vector, got shape: %s", shape_text(s).text);
    return kernel_shape_input(k, 0, out);
}

static Error *run_stateless(KernelContext *k) {
    BoundedJob job = {.parameters = {k->in[2], k->in[3], k->in[4], k->in[5]}, .group = k->in[2]->dtype == DT_DOUBLE ? 2 : 4};
    Shape shape;
    Error *err = sampling_seed(k, 1, &job.p);
    if (!err) err = sampling_batch(job.parameters, 4, PARAMETERS, &job.batch);
    if (!err) err = wanted_shape(k, &shape);
    if (!err) err = sampling_ends_with(&shape, &job.batch);
    if (!err && shape_count(&shape)) err = check_values(&job, &job.batch);
    if (!err) err = sampling_output(k, 0, &job.out);
    if (err || !job.out || job.out->count == 0) return err;
    job.batches = shape_count(&job.batch);
    job.samples = job.out->count / job.batches;
    return draw_all(k, &job, job.out->count, STRETCH, draw_results);
}

/* Scalars, or vectors with a number for each batch: the first dimension. */
static Error *check_parameters(const BoundedJob *job, const Shape *shape, bool *all_same) {
    static const char *const names[] = {"means", "stddevs", "minvals", "maxvals"};
    Shape own;
    *all_same = true;
    for (int i = 0; i < 4; i++) {
        const Shape *s = &job->parameters[i]->shape;
        if (s->rank > 1) return error_invalid("Input %s should be a scalar or vector, got shape: %s", names[i], shape_text(s).text);
        *all_same &= s->rank == 0 || (i < 2 && s->dims[0] == 1);
    }
    for (int i = 0; i < 4 && !*all_same; i++) {
        const Shape *s = &job->parameters[i]->shape;
        if (s->rank && s->dims[0] != 1 && s->dims[0] != shape->dims[0])
            return error_invalid("Input %s should have length 1 or shape[0], got shape: %s", names[i], shape_text(s).text);
    }
    Error *err = sampling_batch(job->parameters, 4, PARAMETERS, &own);
    return err || !shape_count(shape) ? err : check_values(job, &own);
}

static Error *run_stateful(KernelContext *k) {
    BoundedJob job = {.parameters = {k->in[1], k->in[2], k->in[3], k->in[4]}, .samples_last = true};
    Shape shape;
    bool all_same = false;
    Error *err = wanted_shape(k, &shape);
    if (!err && shape.rank == 0) err = error_invalid("Shape tensor must not be empty");
    if (!err) err = check_parameters(&job, &shape, &all_same);
    if (!err) err = sampling_output(k, 0, &job.out);
    if (err || !job.out || job.out->count == 0) return err;
    job.batches = all_same ? (job.out->count + SAME_BATCH - 1) / SAME_BATCH : job.out->shape.dims[0];
    job.samples = all_same ? SAME_BATCH : job.out->count / job.batches;
    if (!all_same) job.batch = (Shape){.rank = 1, .dims = {job.batches}};
    job.p = random_state_reserve(k->state, (uint64_t)job.batches * 2 * MAX_TRIES * ((uint64_t)job.samples + 3) / 4);
    int64_t grain = STRETCH / job.samples;
    return draw_all(k, &job, job.batches, grain > 1 ? grain : 1, draw_batches);
}

const KernelDef bounded_normal_cpu[] = {
    {"ParameterizedTruncatedNormal", .type_attr = "dtype", .by_type = {[DT_HALF] = run_stateful, [DT_FLOAT] = run_stateful, [DT_DOUBLE] = run_stateful},
     .state_size = sizeof(RandomState), .init = random_state_init, .clear = random_state_clear, .flags = KERNEL_PER_SESSION},
    {"StatelessParameterizedTruncatedNormal", .type_attr = "dtype", .by_type = {[DT_HALF] = run_stateless, [DT_FLOAT] = run_stateless, [DT_DOUBLE] = run_stateless}},
    {0},
};
