/* banded.c: TridiagonalSolve, TridiagonalMatMul, BandedTriangularSolve: matrices given by their diagonals. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "ops/matrix_batch.h"
#include "ops/op_list.h"

const OpDef banded_ops[] = {
    {"TridiagonalSolve", "diagonals: T, rhs: T -> output: T",
     "partial_pivoting: bool = true; perturb_singular: bool = false; T: {double, float, complex64, complex128}", 0},
    {"TridiagonalMatMul", "superdiag: T, maindiag: T, subdiag: T, rhs: T -> output: T",
     "T: {double, float, complex64, complex128}", 0},
    {"BandedTriangularSolve", "matrix: T, rhs: T -> output: T",
     "lower: bool = true; adjoint: bool = false; T: {double, float, half, complex64, complex128}", 0},
    {0},
};

typedef struct BandedState {
    bool pivoting, perturb; /* TridiagonalSolve */
    bool lower, adjoint;    /* BandedTriangularSolve */
} BandedState;

static Error *init_tridiagonal(const Node *node, void *state) {
    BandedState *s = state;
    Error *err = node_attr_bool(node, "partial_pivoting", &s->pivoting);
    if (!err) err = node_attr_bool(node, "perturb_singular", &s->perturb);
    if (!err && s->perturb && !s->pivoting)
        err = error_invalid("Setting perturb_singular requires also setting partial_pivoting.");
    return err;
}

static Error *init_banded(const Node *node, void *state) {
    BandedState *s = state;
    Error *err = node_attr_bool(node, "lower", &s->lower);
    return err ? err : node_attr_bool(node, "adjoint", &s->adjoint);
}

typedef struct BandedJob {
    const BandedState *state;
    int64_t *a_of, *b_of; /* which matrix of each input goes to each output */
} BandedJob;

/* Of the type that TensorFlow computes in. */
typedef struct Precision {
    double epsilon, safe_min;
} Precision;

static Precision precision_of(DataType type) {
    bool wide = type == DT_DOUBLE || type == DT_COMPLEX128;
    return wide ? (Precision){DBL_EPSILON, DBL_MIN} : (Precision){FLT_EPSILON, FLT_MIN};
}

#define T double
#define NAME(f) f##_f64
#define CONJ(x) (x)
#define REAL(x) (x)
#define ABS(x) fabs(x)
#define NOT_SOLVED NAN
#include "ops/banded.inc"
#undef T
#undef NAME
#undef CONJ
#undef REAL
#undef ABS
#undef NOT_SOLVED
#define T Complex
#define NAME(f) f##_c128
#define CONJ(x) conj(x)
#define REAL(x) creal(x)
#define ABS(x) cabs(x)
#define NOT_SOLVED 0 /* as in TensorFlow, whose complex numbers have no NaN of their own */
#include "ops/banded.inc"
#undef T
#undef NAME
#undef CONJ
#undef REAL
#undef ABS
#undef NOT_SOLVED

/* Input i has the outer dimensions of the first. */
static Error *check_outer(const MatrixJob *job, int i) {
    const Shape *s = &job->k->in[i]->shape;
    if (s->rank != job->outer.rank + 2) return error_invalid("All input tensors must have the same rank.");
    Shape outer = shape_of(s->rank - 2, s->dims);
    return shape_eq(&outer, &job->outer) ? NULL
                                         : error_invalid("All input tensors must have the same outer dimensions.");
}

static Error *run_tridiagonal_solve(KernelContext *k) {
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, false, false);
    if (!err) err = check_outer(&job, 1);
    if (err) return err;
    const Shape *b = &k->in[1]->shape;
    if (job.m != 3)
        return error_invalid("Expected diagonals to be provided as a matrix with 3 rows, got %lld rows.", (long long)job.m);
    if (b->dims[b->rank - 2] != job.n)
        return error_invalid("Expected the same number of left-hand sides and right-hand sides, got %lld and %lld.",
                             (long long)job.n, (long long)b->dims[b->rank - 2]);
    job.cols = b->dims[b->rank - 1];
    job.scratch = job.n * (job.cols + 4);
    job.fn_f64 = tridiagonal_one_f64;
    job.fn_c128 = tridiagonal_one_c128;
    return matrix_output(&job, 0, job.n, job.cols) ? matrix_job_run(&job) : NULL;
}

static Error *run_tridiagonal_matmul(KernelContext *k) {
    static const char *const names[] = {"superdiagonal", "main diagonal", "subdiagonal"};
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, false, false);
    for (int i = 1; i < 4 && !err; i++) err = check_outer(&job, i);
    if (err) return err;
    const Shape *b = &k->in[3]->shape;
    int64_t rows = b->dims[b->rank - 2];
    for (int i = 0; i < 3; i++) {
        const Shape *s = &k->in[i]->shape;
        if (s->dims[s->rank - 2] != 1 || s->dims[s->rank - 1] != rows) return error_invalid("Invalid %s shape.", names[i]);
    }
    job.cols = b->dims[b->rank - 1];
    Tensor *out = matrix_output(&job, 0, rows, job.cols);
    if (!out || out->count == 0) return NULL;
    job.scratch = 3 * rows + 2 * rows * job.cols;
    job.fn_f64 = tridiagonal_product_one_f64;
    job.fn_c128 = tridiagonal_product_one_c128;
    return matrix_job_run(&job);
}

/* TensorFlow looks at the first matrix only; in others a zero is divided by. */
static bool first_is_singular(const Tensor *a, const MatrixJob *job, bool lower) {
    for (int64_t i = 0; i < job->n; i++) {
        int64_t at = (lower ? 0 : job->m - 1) * job->n + i;
        Complex c = 0;
        double d = 0;
        if (job->is_complex)
            matrix_load_c128(a, at, 1, &c);
        else
            matrix_load_f64(a, at, 1, &d);
        if (job->is_complex ? c == 0 : d == 0) return true;
    }
    return false;
}

static Error *run_banded(KernelContext *k) {
    const BandedState *s = k->state;
    const Shape *a = &k->in[0]->shape, *b = &k->in[1]->shape;
    MatrixJob job;
    if (a->rank < 2) return error_invalid("In[0] ndims must be >= 2: %d", a->rank);
    Error *err = matrix_job_init(&job, k, false, false);
    if (err) return err;
    if (b->rank < 2) return error_invalid("In[1] ndims must be >= 2: %d", b->rank);
    for (int i = 0; i < 2; i++) {
        const Tensor *t = k->in[i];
        if (t->count == 0)
            return error_invalid("In[%d] must not be an empty tensor: Tensor<type: %s shape: %s values: >", i, dtype_name(t->dtype),
                                 shape_text(&t->shape).text);
    }
    err = matrix_broadcast_outer(a, b, &job.outer);
    if (!err) err = shape_check(&job.outer);
    if (err) return err;
    if (b->dims[b->rank - 2] != job.n)
        return error_invalid("In[0] mismatch In[1] shape: %lld vs. %lld: %s %s %d %d", (long long)job.n,
                             (long long)b->dims[b->rank - 2], shape_text(a).text, shape_text(b).text, s->lower, s->adjoint);
    job.cols = b->dims[b->rank - 1];
    if (!matrix_output(&job, 0, job.n, job.cols)) return NULL;
    if (first_is_singular(k->in[0], &job, s->lower)) return error_invalid("Input matrix is not invertible.");
    job.batch = shape_count(&job.outer);
    BandedJob bands = {s, matrix_broadcast_index(&job.outer, a, job.batch), matrix_broadcast_index(&job.outer, b, job.batch)};
    job.options = &bands;
    job.scratch = job.m * job.n + job.n * job.cols;
    job.fn_f64 = banded_one_f64;
    job.fn_c128 = banded_one_c128;
    err = matrix_job_run(&job);
    free(bands.a_of);
    free(bands.b_of);
    return err;
}

const KernelDef banded_cpu[] = {
    {"TridiagonalSolve", .run = run_tridiagonal_solve, .state_size = sizeof(BandedState), .init = init_tridiagonal,
     .flags = KERNEL_EXPENSIVE},
    {"TridiagonalMatMul", .run = run_tridiagonal_matmul, .flags = KERNEL_EXPENSIVE},
    {"BandedTriangularSolve",
     .by_type = {[DT_FLOAT] = run_banded, [DT_DOUBLE] = run_banded, [DT_COMPLEX64] = run_banded, [DT_COMPLEX128] = run_banded},
     .state_size = sizeof(BandedState), .init = init_banded, .flags = KERNEL_EXPENSIVE},
    {0},
};
