/* linalg.c: Cholesky, LU, QR, SVD, eigenvalues, solvers and functions of the matrices of a batch. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/matrix_batch.h"
#include "ops/op_list.h"

const OpDef linalg_ops[] = {
    {"Cholesky", "input: T -> output: T", "T: {double, float, half, complex64, complex128}", 0},
    {"CholeskyGrad", "l: T, grad: T -> output: T", "T: {half, float, double}", 0},
    {"MatrixDeterminant", "input: T -> output: T", "T: {half, float, double, complex64, complex128}", 0},
    {"LogMatrixDeterminant", "input: T -> sign: T, log_abs_determinant: T",
     "T: {half, float, double, complex64, complex128}", 0},
    {"MatrixInverse", "input: T -> output: T", "adjoint: bool = false; T: {double, float, half, complex64, complex128}",
     0},
    {"MatrixSolve", "matrix: T, rhs: T -> output: T",
     "adjoint: bool = false; T: {double, float, half, complex64, complex128}", 0},
    {"MatrixTriangularSolve", "matrix: T, rhs: T -> output: T",
     "lower: bool = true; adjoint: bool = false; T: {bfloat16, double, float, half, complex64, complex128}", 0},
    {"MatrixSolveLs", "matrix: T, rhs: T, l2_regularizer: double -> output: T",
     "T: {double, float, half, complex64, complex128}; fast: bool = true", 0},
    {"Qr", "input: T -> q: T, r: T", "full_matrices: bool = false; T: {double, float, half, complex64, complex128}", 0},
    {"Svd", "input: T -> s: T, u: T, v: T",
     "compute_uv: bool = true; full_matrices: bool = false; T: {double, float, half, complex64, complex128}", 0},
    {"SelfAdjointEig", "input: T -> output: T", "T: {double, float, half}", 0},
    {"SelfAdjointEigV2", "input: T -> e: T, v: T",
     "compute_v: bool = true; T: {double, float, half, complex64, complex128}", 0},
    {"Eig", "input: T -> e: Tout, v: Tout",
     "compute_v: bool = true; T: {float, double, complex64, complex128}; Tout: {complex64, complex128}", 0},
    {"Lu", "input: T -> lu: T, p: output_idx_type",
     "T: {double, float, half, complex64, complex128}; output_idx_type: {int32, int64} = int32", 0},
    {"MatrixLogarithm", "input: T -> output: T", "T: {complex64, complex128}", 0},
    {"MatrixSquareRoot", "input: T -> output: T", "T: {double, float, half, complex64, complex128}", 0},
    {"BatchCholesky", "input: T -> output: T", "T: {double, float}", 0},
    {"BatchCholeskyGrad", "l: T, grad: T -> output: T", "T: {float, double}", 0},
    {"BatchMatrixDeterminant", "input: T -> output: T", "T: {float, double, complex64, complex128}", 0},
    {"BatchMatrixInverse", "input: T -> output: T", "adjoint: bool = false; T: {double, float}", 0},
    {"BatchMatrixSolve", "matrix: T, rhs: T -> output: T", "adjoint: bool = false; T: {double, float}", 0},
    {"BatchMatrixTriangularSolve", "matrix: T, rhs: T -> output: T",
     "lower: bool = true; adjoint: bool = false; T: {double, float}", 0},
    {"BatchMatrixSolveLs", "matrix: T, rhs: T, l2_regularizer: double -> output: T",
     "T: {double, float}; fast: bool = true", 0},
    {"BatchSvd", "input: T -> s: T, u: T, v: T",
     "compute_uv: bool = true; full_matrices: bool = false; T: {double, float, complex64, complex128}", 0},
    {"BatchSelfAdjointEig", "input: T -> output: T", "T: {double, float}", 0},
    {"BatchSelfAdjointEigV2", "input: T -> e: T, v: T", "compute_v: bool = true; T: {double, float}", 0},
    {0},
};

typedef struct LinalgOptions {
    bool adjoint, lower, full, vectors, fast;
    bool old_form; /* SelfAdjointEig: values and vectors in one output */
} LinalgOptions;

static Error *options_init(const Node *node, void *state) {
    LinalgOptions *o = state;
    Str value;
    if (node_attr(node, "adjoint", &value)) attr_bool(value, &o->adjoint);
    if (node_attr(node, "lower", &value)) attr_bool(value, &o->lower);
    if (node_attr(node, "full_matrices", &value)) attr_bool(value, &o->full);
    if (node_attr(node, "compute_uv", &value)) attr_bool(value, &o->vectors);
    if (node_attr(node, "compute_v", &value)) attr_bool(value, &o->vectors);
    if (node_attr(node, "fast", &value)) attr_bool(value, &o->fast);
    o->old_form = node_is(node, "SelfAdjointEig") || node_is(node, "BatchSelfAdjointEig");
    return NULL;
}

typedef struct TriangularJob {
    const LinalgOptions *options;
    int64_t *a_of, *b_of; /* which matrix of each input goes to each output */
} TriangularJob;

#define T double
#define NAME(f) f##_f64
#define CONJ(x) (x)
#define ABS(x) fabs(x)
#include "ops/linalg_ops.inc"
#undef T
#undef NAME
#undef CONJ
#undef ABS
#define T Complex
#define NAME(f) f##_c128
#define CONJ(x) conj(x)
#define ABS(x) cabs(x)
#include "ops/linalg_ops.inc"
#undef T
#undef NAME
#undef CONJ
#undef ABS

static Error *run_cholesky(KernelContext *k) {
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, true, false);
    if (err) return err;
    job.scratch = job.n * job.n;
    job.fn_f64 = cholesky_one_f64;
    job.fn_c128 = cholesky_one_c128;
    return matrix_output(&job, 0, job.n, job.n) ? matrix_job_run(&job) : NULL;
}

/* With p the lower half of l^T grad, its diagonal halved: the symmetric part of l^-T p l^-1. */
static Error *cholesky_grad_one(const MatrixJob *job, int64_t at, void *scratch) {
    int64_t n = job->n;
    double *l = scratch, *g = l + n * n, *p = g + n * n, *t = p + n * n;
    matrix_load_f64(job->k->in[0], at * n * n, n * n, l);
    matrix_load_f64(job->k->in[1], at * n * n, n * n, g);
    memset(p, 0, (size_t)(n * n) * sizeof *p);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t r = i; r < n; r++) sum += l[r * n + i] * g[r * n + j];
            p[i * n + j] = i == j ? sum / 2 : sum;
        }
    triangular_solve_f64(l, n, true, true, p, n, job->k->pool);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) t[i * n + j] = p[j * n + i];
    triangular_solve_f64(l, n, true, true, t, n, job->k->pool); /* the transpose of p l^-1 */
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) g[i * n + j] = (t[i * n + j] + t[j * n + i]) / 2;
    matrix_store_f64(job->k->out[0], at * n * n, n * n, g);
    return NULL;
}

static Error *run_cholesky_grad(KernelContext *k) {
    const Shape *l = &k->in[0]->shape, *g = &k->in[1]->shape;
    MatrixJob job;
    if (l->rank >= 2 && l->rank == g->rank) {
        if (l->dims[l->rank - 1] != l->dims[l->rank - 2]) return error_invalid("Inputs must be a square matrices.");
        if (l->dims[l->rank - 1] != g->dims[g->rank - 1] || l->dims[l->rank - 2] != g->dims[g->rank - 2]) return error_invalid("Inputs (L and grad) must have the same shape.");
    }
    Error *err = matrix_job_init(&job, k, true, true);
    if (err) return err;
    job.scratch = 4 * job.n * job.n;
    job.fn_f64 = cholesky_grad_one;
    return matrix_output(&job, 0, job.n, job.n) ? matrix_job_run(&job) : NULL;
}

static Error *run_determinant(KernelContext *k) {
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, true, false);
    if (err) return err;
    job.scratch = job.n * job.n;
    job.fn_f64 = determinant_one_f64;
    job.fn_c128 = determinant_one_c128;
    return matrix_output(&job, 0, -1, -1) ? matrix_job_run(&job) : NULL;
}

static Error *run_log_determinant(KernelContext *k) {
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, true, false);
    if (err) return err;
    job.scratch = job.n * job.n;
    job.fn_f64 = log_determinant_one_f64;
    job.fn_c128 = log_determinant_one_c128;
    return matrix_output(&job, 0, -1, -1) && matrix_output(&job, 1, -1, -1) ? matrix_job_run(&job) : NULL;
}

/* MatrixInverse is MatrixSolve with the identity. */
static Error *run_solve(KernelContext *k) {
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, true, k->input_count > 1);
    if (err) return err;
    if (k->input_count == 1) job.cols = job.n;
    job.scratch = job.n * job.n + job.n * job.cols + job.n * (job.n > job.cols ? job.n : job.cols);
    job.fn_f64 = solve_one_f64;
    job.fn_c128 = solve_one_c128;
    return matrix_output(&job, 0, job.n, job.cols) ? matrix_job_run(&job) : NULL;
}

static Error *run_lu(KernelContext *k) {
    MatrixJob job;
    if (k->in[0]->shape.rank < 2) return error_invalid("Input tensor must have rank >= 2, got %d", k->in[0]->shape.rank);
    Error *err = matrix_job_init(&job, k, true, false);
    if (err) return err;
    job.scratch = job.n * job.n;
    job.fn_f64 = lu_one_f64;
    job.fn_c128 = lu_one_c128;
    return matrix_output(&job, 0, job.n, job.n) && matrix_output(&job, 1, job.n, -1) ? matrix_job_run(&job) : NULL;
}

/* Floats where they lie: TensorFlow does not solve for them in double precision either. */
static Error *triangular_one_f32(const MatrixJob *job, int64_t at, void *scratch) {
    const TriangularJob *o = job->options;
    int64_t n = job->n, cols = job->cols;
    float *x = tensor_f32(job->k->out[0]) + at * n * cols;
    (void)scratch;
    memcpy(x, tensor_f32(job->k->in[1]) + o->b_of[at] * n * cols, (size_t)(n * cols) * sizeof *x);
    triangular_solve_f32(tensor_f32(job->k->in[0]) + o->a_of[at] * n * n, n, o->options->lower, o->options->adjoint, x, cols, job->k->pool);
    return NULL;
}

static Error *run_triangular(KernelContext *k) {
    const Shape *a = &k->in[0]->shape, *b = &k->in[1]->shape;
    MatrixJob job;
    if (a->rank < 2) return error_invalid("In[0] ndims must be >= 2: %d", a->rank);
    Error *err = matrix_job_init(&job, k, false, false);
    if (err) return err;
    if (b->rank < 2) return error_invalid("In[1] ndims must be >= 2: %d", b->rank);
    if (job.n != job.m) return error_invalid("In[0] matrices in the last dimensions must be square (%lld =/= %lld)", (long long)job.n, (long long)job.m);
    if (b->dims[b->rank - 2] != job.n)
        return error_invalid("In[0] mismatch In[1] shape: %lld vs. %lld: %s %s %d %d", (long long)job.n,
                             (long long)b->dims[b->rank - 2], shape_text(a).text, shape_text(b).text,
                             ((const LinalgOptions *)k->state)->lower, ((const LinalgOptions *)k->state)->adjoint);
    job.cols = b->dims[b->rank - 1];
    err = matrix_broadcast_outer(a, b, &job.outer);
    if (!err) err = shape_check(&job.outer);
    if (err || !matrix_output(&job, 0, job.n, job.cols)) return err;
    job.batch = shape_count(&job.outer);
    TriangularJob t = {k->state, matrix_broadcast_index(&job.outer, a, job.batch), matrix_broadcast_index(&job.outer, b, job.batch)};
    job.options = &t;
    bool single = k->in[0]->dtype == DT_FLOAT;
    job.scratch = single ? 0 : job.n * job.n + job.n * job.cols;
    job.fn_f64 = single ? triangular_one_f32 : triangular_one_f64;
    job.fn_c128 = triangular_one_c128;
    err = matrix_job_run(&job);
    free(t.a_of);
    free(t.b_of);
    return err;
}

static Error *run_least_squares(KernelContext *k) {
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, false, true);
    if (err) return err;
    if (k->in[2]->shape.rank != 0)
        return error_invalid("l2_regularizer must be scalar, got shape %s", shape_text(&k->in[2]->shape).text);
    if (!(*tensor_f64(k->in[2]) >= 0)) return error_invalid("l2_regularizer must be >= 0.");
    int64_t m = job.m, n = job.n, few = m < n ? m : n, large = m > n ? m : n;
    job.scratch = 2 * m * n + m * job.cols + few * few + n * job.cols + large * few + few * few + job.cols;
    job.fn_f64 = least_squares_one_f64;
    job.fn_c128 = least_squares_one_c128;
    Tensor *out = matrix_output(&job, 0, n, job.cols);
    if (!out) return NULL;
    if (m == 0 || n == 0) {
        memset(out->data, 0, tensor_bytes(out));
        return NULL;
    }
    return matrix_job_run(&job);
}

static Error *run_qr(KernelContext *k) {
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, false, false);
    if (err) return err;
    int64_t m = job.m, n = job.n, q_cols = ((const LinalgOptions *)k->state)->full || m < n ? m : n;
    job.scratch = m * n + m * q_cols;
    job.fn_f64 = qr_one_f64;
    job.fn_c128 = qr_one_c128;
    return matrix_output(&job, 0, m, q_cols) && matrix_output(&job, 1, q_cols, n) ? matrix_job_run(&job) : NULL;
}

static Error *run_svd(KernelContext *k) {
    const LinalgOptions *o = k->state;
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, false, false);
    if (err) return err;
    int64_t m = job.m, n = job.n, few = m < n ? m : n, large = m > n ? m : n;
    job.scratch = 2 * m * n + large * (o->full ? large : few) + few * few + few;
    job.fn_f64 = svd_one_f64;
    job.fn_c128 = svd_one_c128;
    bool made = matrix_output(&job, 0, few, -1);
    if (o->vectors) {
        made = made && matrix_output(&job, 1, m, o->full ? m : few) && matrix_output(&job, 2, n, o->full ? n : few);
    } else {
        made = made && matrix_output(&job, 1, 0, -1) && matrix_output(&job, 2, 0, -1);
    }
    return made ? matrix_job_run(&job) : NULL;
}

static Error *run_self_adjoint(KernelContext *k) {
    const LinalgOptions *o = k->state;
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, true, false);
    if (err) return err;
    int64_t n = job.n;
    job.scratch = 2 * n * n + n;
    job.fn_f64 = self_adjoint_one_f64;
    job.fn_c128 = self_adjoint_one_c128;
    bool made = o->old_form ? matrix_output(&job, 0, n + 1, n) != NULL : matrix_output(&job, 0, n, -1) != NULL;
    if (!o->old_form) made = made && matrix_output(&job, 1, o->vectors ? n : 0, o->vectors ? n : -1);
    return made ? matrix_job_run(&job) : NULL;
}

static Error *eigen_one(const MatrixJob *job, int64_t at, void *scratch) {
    int64_t n = job->n;
    Complex *a = scratch, *v = a + n * n, *e = v + n * n;
    matrix_load_c128(job->k->in[0], at * n * n, n * n, a);
    bool vectors = ((const LinalgOptions *)job->options)->vectors;
    if (!eigen(a, n, e, vectors ? v : NULL, job->k->pool))
        return error_invalid("Eigen decomposition was not successful. The input might not be valid.");
    matrix_store_c128(job->k->out[0], at * n, n, e);
    if (vectors) matrix_store_c128(job->k->out[1], at * n * n, n * n, v);
    return NULL;
}

static Error *run_eigen(KernelContext *k) {
    DataType in = k->in[0]->dtype, out = kernel_output_type(k, 0);
    bool single = in == DT_FLOAT || in == DT_COMPLEX64;
    if (single != (out == DT_COMPLEX64)) return error_invalid("Invalid output dtype %d vs %d", out, single ? DT_COMPLEX64 : DT_COMPLEX128);
    bool vectors = ((const LinalgOptions *)k->state)->vectors;
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, true, false);
    if (err) return err;
    job.scratch = 2 * job.n * job.n + job.n;
    job.is_complex = true;
    job.fn_c128 = eigen_one;
    bool made = matrix_output(&job, 0, job.n, -1) && matrix_output(&job, 1, vectors ? job.n : 0, vectors ? job.n : -1);
    return made ? matrix_job_run(&job) : NULL;
}

/* ---- Functions of matrices ---- */

static Error *function_one(const MatrixJob *job, int64_t at, Complex *a, bool (*fn)(Complex *, int64_t),
                           const char *what) {
    int64_t n = job->n;
    Tensor *out = job->k->out[0];
    matrix_load_c128(job->k->in[0], at * n * n, n * n, a);
    if (!fn(a, n)) return error_invalid("The %s of the matrix could not be computed.", what);
    if (out->dtype == DT_COMPLEX64 || out->dtype == DT_COMPLEX128) {
        matrix_store_c128(out, at * n * n, n * n, a);
    } else {
        for (int64_t i = 0; i < n * n; i++) {
            double real = creal(a[i]);
            matrix_store_f64(out, at * n * n + i, 1, &real);
        }
    }
    return NULL;
}

static Error *sqrt_one(const MatrixJob *job, int64_t at, void *scratch) {
    return function_one(job, at, scratch, matrix_sqrt, "square root");
}
static Error *log_one(const MatrixJob *job, int64_t at, void *scratch) {
    return function_one(job, at, scratch, matrix_log, "logarithm");
}

static Error *run_function(KernelContext *k, MatrixFn *fn) {
    MatrixJob job;
    Error *err = matrix_job_init(&job, k, true, false);
    if (err) return err;
    job.scratch = job.n * job.n;
    job.is_complex = true;
    job.fn_c128 = fn;
    return matrix_output(&job, 0, job.n, job.n) ? matrix_job_run(&job) : NULL;
}

static Error *run_sqrt(KernelContext *k) {
    return run_function(k, sqrt_one);
}
static Error *run_log(KernelContext *k) {
    return run_function(k, log_one);
}

#define LINALG(run_fn) \
    .run = run_fn, .state_size = sizeof(LinalgOptions), .init = options_init, .flags = KERNEL_EXPENSIVE

const KernelDef linalg_cpu[] = {
    {"Cholesky", LINALG(run_cholesky)},
    {"CholeskyGrad", LINALG(run_cholesky_grad)},
    {"MatrixDeterminant", LINALG(run_determinant)},
    {"LogMatrixDeterminant", LINALG(run_log_determinant)},
    {"MatrixInverse", LINALG(run_solve)},
    {"MatrixSolve", LINALG(run_solve)},
    {"MatrixTriangularSolve", LINALG(run_triangular)},
    {"MatrixSolveLs", LINALG(run_least_squares)},
    {"Qr", LINALG(run_qr)},
    {"Svd", LINALG(run_svd)},
    {"SelfAdjointEig", LINALG(run_self_adjoint)},
    {"SelfAdjointEigV2", LINALG(run_self_adjoint)},
    {"Eig", LINALG(run_eigen)},
    {"Lu", LINALG(run_lu)},
    {"MatrixLogarithm", LINALG(run_log)},
    {"MatrixSquareRoot", LINALG(run_sqrt)},
    {"BatchCholesky", LINALG(run_cholesky)},
    {"BatchCholeskyGrad", LINALG(run_cholesky_grad)},
    {"BatchMatrixDeterminant", LINALG(run_determinant)},
    {"BatchMatrixInverse", LINALG(run_solve)},
    {"BatchMatrixSolve", LINALG(run_solve)},
    {"BatchMatrixTriangularSolve", LINALG(run_triangular)},
    {"BatchMatrixSolveLs", LINALG(run_least_squares)},
    {"BatchSvd", LINALG(run_svd)},
    {"BatchSelfAdjointEig", LINALG(run_self_adjoint)},
    {"BatchSelfAdjointEigV2", LINALG(run_self_adjoint)},
    {0},
};
