/* fft_ops.c: Fourier transforms of the last one, two or three dimensions, complex and real. */
#include <stdatomic.h>
#include <stdlib.h>

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

enum { MAX_AXES = 3, COLUMNS = 8 /* copied together, since they lie side by side */ };

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

typedef struct FftJob {
    const FftState *s;
    const Tensor *in;
    Tensor *out;
    int64_t batch;
    int64_t length[MAX_AXES];                      /* of the transforms */
    int64_t in_dims[MAX_AXES], out_dims[MAX_AXES]; /* of the tensors */
    int64_t dims[MAX_AXES]; /* of the work array: length, but half a spectrum of real inverses and of even numbers of reals */
    bool halved;            /* the last axis has an even number of reals: half a transform does it */
    FftPlan *plans[MAX_AXES];
    int64_t scratch;
    atomic_bool failed; /* no memory */
} FftJob;

/* Real numbers of a tensor that lie in a row. */
static void read_reals(const Tensor *t, int64_t first, int64_t count, double *to) {
    if (t->dtype == DT_DOUBLE) memcpy(to, tensor_f64(t) + first, (size_t)count * sizeof *to);
    for (int64_t i = 0; t->dtype == DT_FLOAT && i < count; i++) to[i] = tensor_f32(t)[first + i];
}

static void write_reals(Tensor *t, int64_t first, int64_t count, const double *from, double scale) {
    for (int64_t i = 0; t->dtype == DT_DOUBLE && i < count; i++) tensor_f64(t)[first + i] = from[i] * scale;
    for (int64_t i = 0; t->dtype == DT_FLOAT && i < count; i++) tensor_f32(t)[first + i] = (float)(from[i] * scale);
}

/* Numbers of a tensor that lie in a row. */
static void read_row(const Tensor *t, int64_t first, int64_t count, Complex *to) {
    switch (t->dtype) {
        case DT_FLOAT:
            for (int64_t i = 0; i < count; i++) to[i] = tensor_f32(t)[first + i];
            break;
        case DT_DOUBLE:
            for (int64_t i = 0; i < count; i++) to[i] = tensor_f64(t)[first + i];
            break;
        case DT_COMPLEX64:
            for (int64_t i = 0; i < count; i++) to[i] = ((const float _Complex *)t->data)[first + i];
            break;
        default:
            memcpy(to, (const Complex *)t->data + first, (size_t)count * sizeof *to);
            break;
    }
}

static void write_row(Tensor *t, int64_t first, int64_t count, const Complex *from, double scale) {
    switch (t->dtype) {
        case DT_FLOAT:
            for (int64_t i = 0; i < count; i++) tensor_f32(t)[first + i] = (float)(creal(from[i]) * scale);
            break;
        case DT_DOUBLE:
            for (int64_t i = 0; i < count; i++) tensor_f64(t)[first + i] = creal(from[i]) * scale;
            break;
        case DT_COMPLEX64:
            for (int64_t i = 0; i < count; i++) ((float _Complex *)t->data)[first + i] = (float _Complex)(from[i] * scale);
            break;
        default:
            for (int64_t i = 0; i < count; i++) ((Complex *)t->data)[first + i] = from[i] * scale;
            break;
    }
}

static int64_t product_of(const int64_t *dims, int from, int to) {
    int64_t n = 1;
    for (int d = from; d < to; d++) n *= dims[d];
    return n;
}

/* The part of one item that the transform sees, in the work array. */
static void load_item(const FftJob *job, int64_t item, Complex *work) {
    int last = job->s->axes - 1;
    int64_t n = job->dims[last], lines = product_of(job->dims, 0, last), first = item * product_of(job->in_dims, 0, last + 1);
    for (int64_t l = 0; l < lines; l++) {
        int64_t rest = l, flat = 0, stride = job->in_dims[last];
        for (int d = last - 1; d >= 0; d--) {
            flat += rest % job->dims[d] * stride;
            rest /= job->dims[d];
            stride *= job->in_dims[d];
        }
        if (job->halved && !job->s->inverse)
            read_reals(job->in, first + flat, job->length[last], (double *)(work + l * n));
        else
            read_row(job->in, first + flat, n, work + l * n);
    }
}

/* Transforms along one axis: columns of which each has `inner` beside it. */
static void run_columns(const FftJob *job, int axis, int64_t inner, Complex *at, Complex *lines, Complex *scratch) {
    int64_t n = job->dims[axis];
    for (int64_t i = 0; i < inner; i += COLUMNS) {
        int64_t columns = inner - i < COLUMNS ? inner - i : COLUMNS;
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < columns; j++) lines[j * n + k] = at[k * inner + i + j];
        for (int64_t j = 0; j < columns; j++) fft_run(job->plans[axis], job->s->inverse, lines + j * n, scratch);
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < columns; j++) at[k * inner + i + j] = lines[j * n + k];
    }
}

static void run_axis(const FftJob *job, int axis, Complex *work, Complex *lines, Complex *scratch) {
    int64_t n = job->dims[axis], inner = product_of(job->dims, axis + 1, job->s->axes),
            outer = product_of(job->dims, 0, axis);
    for (int64_t o = 0; o < outer; o++) {
        if (job->halved && axis == job->s->axes - 1)
            fft_run_real(job->plans[axis], work + o * n, scratch);
        else if (inner == 1)
            fft_run(job->plans[axis], job->s->inverse, work + o * n, scratch);
        else
            run_columns(job, axis, inner, work + o * n * inner, lines, scratch);
    }
}

/* The last axis of a real inverse: the other half of the spectrum mirrors the one given. */
static void finish_real(const FftJob *job, int64_t item, const Complex *work, Complex *line, Complex *scratch,
                        double scale) {
    int last = job->s->axes - 1;
    int64_t n = job->length[last], half = job->dims[last], lines = product_of(job->dims, 0, last);
    for (int64_t l = 0; l < lines && job->halved; l++) {
        memcpy(line, work + l * half, (size_t)half * sizeof *line);
        fft_run_real_inverse(job->plans[last], line, scratch);
        write_reals(job->out, (item * lines + l) * n, n, (const double *)line, scale);
    }
    for (int64_t l = 0; l < lines && !job->halved; l++) {
        for (int64_t k = 0; k < n; k++) line[k] = k < half ? work[l * half + k] : conj(work[l * half + n - k]);
        fft_run(job->plans[last], true, line, scratch);
        write_row(job->out, (item * lines + l) * n, n, line, scale);
    }
}

static void store_item(const FftJob *job, int64_t item, const Complex *work, double scale) {
    int last = job->s->axes - 1;
    int64_t lines = product_of(job->dims, 0, last), n = job->out_dims[last];
    for (int64_t l = 0; l < lines; l++) write_row(job->out, (item * lines + l) * n, n, work + l * job->dims[last], scale);
}

static void run_items(void *arg, int64_t begin, int64_t end) {
    FftJob *job = arg;
    int axes = job->s->axes;
    bool real_inverse = job->s->real && job->s->inverse;
    int64_t n = product_of(job->dims, 0, axes), longest = 0;
    for (int d = 0; d < axes; d++) longest = job->length[d] > longest ? job->length[d] : longest;
    longest *= axes > 1 ? COLUMNS : 1;
    Complex *work = try_alloc((size_t)(n + longest + job->scratch + 1) * sizeof *work);
    if (!work) {
        atomic_store(&job->failed, true);
        return;
    }
    Complex *line = work + n, *scratch = line + longest;
    double scale = job->s->inverse ? 1.0 / (double)product_of(job->length, 0, axes) : 1;
    for (int64_t i = begin; i < end; i++) {
        load_item(job, i, work);
        for (int d = axes - 1; d >= 0; d--) {
            if (d < axes - 1 || !real_inverse) run_axis(job, d, work, line, scratch);
        }
        if (real_inverse) {
            finish_real(job, i, work, line, scratch, scale);
        } else {
            store_item(job, i, work, scale);
        }
    }
    free(work);
}

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
        job->dims[d] = last && job->halved ? n / 2 + 1 : need;
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
    for (int d = 0; d < job.s->axes && ok; d++) {
        job.plans[d] = take_plan(s, d, job.length[d], job.halved && d == job.s->axes - 1);
        ok = job.plans[d] != NULL;
        if (ok && fft_plan_scratch(job.plans[d]) > job.scratch) job.scratch = fft_plan_scratch(job.plans[d]);
    }
    if (ok)
        threadpool_parallel_for(k->pool, job.batch, 16384 / (product_of(job.dims, 0, job.s->axes) + 1) + 1, run_items,
                                &job);
    for (int d = 0; d < s->axes; d++) fft_plan_free(atomic_exchange(&s->kept[d], job.plans[d]));
    if (!ok || atomic_load(&job.failed))
        return error_new(CODE_RESOURCE_EXHAUSTED, "No memory for a transform of this length");
    return NULL;
}

#define FFT_KERNEL .run = run_fft, .state_size = sizeof(FftState), .init = fft_init, .clear = fft_clear, .flags = KERNEL_EXPENSIVE

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
