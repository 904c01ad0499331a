/* fft_ops.c: Fourier transforms of the last one, two or three dimensions, complex and real. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/block_cache.h"
#include "base/memory.h"
#include "kernels/fft.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef fft_ops_ops[] = {
    {"FFT", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", 0},
    {"FFT2D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", 0},
    {"FFT3D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", 0},
    {"IFFT", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", 0},
    {"IFFT2D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", 0},
    {"IFFT3D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", 0},
    {"RFFT", "input: Treal, fft_length: int32 -> output: Tcomplex",
     "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64", 0},
    {"RFFT2D", "input: Treal, fft_length: int32 -> output: Tcomplex",
     "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64", 0},
    {"RFFT3D", "input: Treal, fft_length: int32 -> output: Tcomplex",
     "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64", 0},
    {"IRFFT", "input: Tcomplex, fft_length: int32 -> output: Treal",
     "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64", 0},
    {"IRFFT2D", "input: Tcomplex, fft_length: int32 -> output: Treal",
     "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64", 0},
    {"IRFFT3D", "input: Tcomplex, fft_length: int32 -> output: Treal",
     "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64", 0},
    {0},
};

enum { MAX_AXES = 3 };
/* Fewer lines, and longer ones, are transformed one by one; numbers of a line that are moved together; bytes of a
 * vector. */
enum { FEWEST_LANES = 4, LONGEST_LANES = 8192, LINE_BLOCK = 16, FFT_ALIGN = 64 };

typedef struct FftState {
    int axes;
    bool inverse, real;
    _Atomic(FftPlan *) kept[MAX_AXES]; /* of the last run, for the next of the same length; NULL while one uses it */
} FftState;

/* [I][R]FFT[2D|3D] */
static Error *fft_init(const Node *node, void *state) {
    FftState *s = state;
    s->inverse = node->op.ptr[0] == 'I';
    s->real = node->op.ptr[s->inverse ? 1 : 0] == 'R';
    s->axes = str_ends(node->op, STR("2D")) ? 2 : str_ends(node->op, STR("3D")) ? 3 : 1;
    return NULL;
}

static void fft_clear(void *state) {
    FftState *s = state;
    for (int d = 0; d < MAX_AXES; d++) fft_plan_free(atomic_load(&s->kept[d]));
}

typedef double _Complex Complex;

typedef enum AxisKind {
    AXIS_WHOLE,
    AXIS_REAL,         /* an even number of reals, in pairs, becomes half a spectrum */
    AXIS_REAL_INVERSE, /* and back */
    AXIS_MIRRORED,     /* half a spectrum becomes an odd number of reals */
} AxisKind;

typedef struct FftAxis {
    AxisKind kind;
    FftPlan *plan;
    int64_t length;       /* of the transform */
    int64_t given, taken; /* numbers of a line that are read, and written */
    int64_t pitch, inner; /* numbers that a line has place for; lines beside it: its numbers lie so far apart */
} FftAxis;

typedef struct FftJob {
    const FftState *s;
    const Tensor *in;
    Tensor *out;
    int64_t batch, together;                       /* items; those of a group */
    int64_t length[MAX_AXES];                      /* of the transforms */
    int64_t in_dims[MAX_AXES], out_dims[MAX_AXES]; /* of the tensors */
    int64_t dims[MAX_AXES]; /* of an item in the work array: length, but half a spectrum of even numbers of reals */
    int64_t seen;           /* numbers of the last axis of the input that the transform sees */
    bool halved;            /* the last axis has an even number of reals: half a transform does it */
    FftAxis axes[MAX_AXES];
    int64_t longest, scratch; /* over all axes: numbers of a line, and of a transform's scratch */
    ThreadPool *pool;         /* for the lines of a group; NULL: threads have groups of their own */
    atomic_bool failed;       /* no memory */
} FftJob;

static int64_t product_of(const int64_t *dims, int from, int to) {
    int64_t n = 1;
    for (int d = from; d < to; d++) n *= dims[d];
    return n;
}

/* Numbers that FFT_LANES lines take. */
static int64_t lane_numbers(const FftAxis *a) {
    return 2 * FFT_LANES * (a->length + 1);
}

/* Bytes beside the work array: lines side by side with their scratch, or one in doubles with its. */
static size_t job_memory(const FftJob *job, size_t size) {
    size_t most = (size_t)(job->longest + job->scratch) * sizeof(Complex);
    for (int d = 0; d < job->s->axes; d++) {
        const FftAxis *a = &job->axes[d];
        size_t bytes = a->length > LONGEST_LANES ? 0 : (size_t)(lane_numbers(a) + fft_lanes_scratch(a->plan)) * size;
        if (bytes > most) most = bytes;
    }
    return most + FFT_ALIGN;
}

static void *aligned(void *memory) {
    return (char *)memory + (FFT_ALIGN - (uintptr_t)memory % FFT_ALIGN);
}

#define T float
#define NAME(f) f##_f32
#include "ops/fft_lines.inc"
#undef T
#undef NAME
#define T double
#define NAME(f) f##_f64
#include "ops/fft_lines.inc"
#undef T
#undef NAME

/* Lengths of the transforms and of the output. */
static Error *fft_shape(KernelContext *k, FftJob *job, Shape *out) {
    const FftState *s = job->s;
    const Shape *in = &k->in[0]->shape;
    int axes = s->axes, first = in->rank - axes;
    if (first < 0) return error_invalid("Input must have rank of at least %d but got: %s", axes, shape_text(in).text);
    if (s->real && (k->in[1]->shape.rank != 1 || k->in[1]->count != axes))
        return error_invalid("fft_length must have shape [%d]", axes);
    *out = *in;
    job->batch = shape_prod(in, 0, first);
    for (int d = 0; d < axes; d++) {
        bool last = d == axes - 1;
        int64_t size = in->dims[first + d], n = s->real ? tensor_i32(k->in[1])[d] : size;
        if (n < 0) return error_invalid("fft_length[%d] must >= 0, but got: %lld", d, (long long)n);
        int64_t need = s->real && s->inverse && last ? n / 2 + 1 : n;
        if (size != 0 && size < need)
            return error_invalid("Input dimension %d must have length of at least %lld but got: %lld", first + d,
                                 (long long)need, (long long)size);
        job->length[d] = n;
        if (last) job->halved = s->real && n % 2 == 0;
        job->dims[d] = last && job->halved ? n / 2 + 1 : n;
        if (last) job->seen = need;
        job->in_dims[d] = size;
        job->out_dims[d] = s->real && !s->inverse && last && n != 0 ? n / 2 + 1 : n;
        out->dims[first + d] = job->out_dims[d];
    }
    return NULL;
}

static Error *check_types(const FftState *s, DataType in, DataType out) {
    DataType of_reals = s->inverse ? out : in, of_pairs = s->inverse ? in : out;
    if (!s->real || (of_pairs == DT_COMPLEX64) == (of_reals == DT_FLOAT)) return NULL;
    return error_invalid("Wrong types for %s real FFT: in=%d out=%d", s->inverse ? "backward" : "forward", in, out);
}

/* The plan for an axis, kept or new; NULL: no memory. */
static FftPlan *take_plan(FftState *s, int axis, int64_t length, bool halved) {
    FftPlan *plan = atomic_exchange(&s->kept[axis], NULL);
    if (plan && fft_plan_length(plan) == length) return plan; /* whether it is of reals the length and the axis tell */
    fft_plan_free(plan);
    return halved ? fft_plan_real_new(length) : fft_plan_new(length);
}

static bool plan_axis(FftJob *job, FftState *s, int d) {
    bool last = d == s->axes - 1, halved = last && job->halved;
    int64_t n = job->length[d];
    FftAxis *a = &job->axes[d];
    *a = (FftAxis){.plan = take_plan(s, d, n, halved),
                   .length = n,
                   .given = n,
                   .taken = n,
                   .pitch = job->dims[d],
                   .inner = product_of(job->dims, d + 1, s->axes)};
    if (!a->plan) return false;
    if (halved) {
        a->kind = s->inverse ? AXIS_REAL_INVERSE : AXIS_REAL;
        a->given = s->inverse ? n / 2 + 1 : n / 2;
        a->taken = s->inverse ? n / 2 : n / 2 + 1;
    } else if (last && s->real && s->inverse) {
        a->kind = AXIS_MIRRORED;
        a->given = job->seen;
    }
    if (n + 1 > job->longest) job->longest = n + 1;
    if (fft_plan_scratch(a->plan) > job->scratch) job->scratch = fft_plan_scratch(a->plan);
    return true;
}

/* Items whose lines fill vectors go together; the lines of a single group are shared by all threads. */
static void run_job(FftJob *job, ThreadPool *pool) {
    enum { MOST_NUMBERS = 1 << 18 };
    int64_t numbers = product_of(job->dims, 0, job->s->axes), fewest = numbers;
    for (int d = 0; d < job->s->axes; d++) fewest = numbers / job->dims[d] < fewest ? numbers / job->dims[d] : fewest;
    job->together = fewest > 0 && fewest < FFT_LANES ? (FFT_LANES + fewest - 1) / fewest : 1;
    if (job->together * numbers > MOST_NUMBERS) job->together = MOST_NUMBERS / numbers > 0 ? MOST_NUMBERS / numbers : 1;
    if (job->together > job->batch) job->together = job->batch;
    int64_t groups = (job->batch + job->together - 1) / job->together;
    RangeFn *run = job->in->dtype == DT_DOUBLE || job->in->dtype == DT_COMPLEX128 ? run_groups_f64 : run_groups_f32;
    if (groups == 1) {
        job->pool = pool;
        run(job, 0, 1);
    } else {
        threadpool_parallel_for(pool, groups, 16384 / (numbers * job->together + 1) + 1, run, job);
    }
}

static Error *run_fft(KernelContext *k) {
    FftState *s = k->state;
    FftJob job = {.s = s, .in = k->in[0]};
    Shape shape;
    Error *err = check_types(job.s, job.in->dtype, kernel_output_type(k, 0));
    if (!err) err = fft_shape(k, &job, &shape);
    if (err) return err;
    job.out = kernel_output(k, 0, &shape);
    if (!job.out || job.out->count == 0) return NULL;
    if (job.in->count == 0) {
        memset(job.out->data, 0, tensor_bytes(job.out));
        return NULL;
    }
    bool ok = true;
    for (int d = 0; d < s->axes && ok; d++) ok = plan_axis(&job, s, d);
    if (ok) run_job(&job, k->pool);
    for (int d = 0; d < s->axes; d++) fft_plan_free(atomic_exchange(&s->kept[d], job.axes[d].plan));
    if (!ok || atomic_load(&job.failed))
        return error_new(CODE_RESOURCE_EXHAUSTED, "No memory for a transform of this length");
    return NULL;
}

#define FFT_KERNEL \
    .run = run_fft, .state_size = sizeof(FftState), .init = fft_init, .clear = fft_clear, .flags = KERNEL_EXPENSIVE

const KernelDef fft_ops_cpu[] = {
    {"FFT", FFT_KERNEL},
    {"FFT2D", FFT_KERNEL},
    {"FFT3D", FFT_KERNEL},
    {"IFFT", FFT_KERNEL},
    {"IFFT2D", FFT_KERNEL},
    {"IFFT3D", FFT_KERNEL},
    {"RFFT", FFT_KERNEL},
    {"RFFT2D", FFT_KERNEL},
    {"RFFT3D", FFT_KERNEL},
    {"IRFFT", FFT_KERNEL},
    {"IRFFT2D", FFT_KERNEL},
    {"IRFFT3D", FFT_KERNEL},
    {0},
};
