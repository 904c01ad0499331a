/* matrix_batch.h: runs an op on every matrix of a batch, in double precision whatever the tensors hold. */
#pragma once
#include <stdatomic.h>

#include "kernels/linalg.h"
#include "ops/elements.h"

typedef struct MatrixJob MatrixJob;
/* One matrix of the batch; scratch has job->scratch numbers (double or Complex). */
typedef Error *MatrixFn(const MatrixJob *job, int64_t i, void *scratch);

struct MatrixJob {
    KernelContext *k;
    const void *options; /* of the op */
    int64_t batch;
    Shape outer;     /* dimensions of the batch */
    int64_t m, n;    /* of input 0 */
    int64_t cols;    /* of input 1, when there is one */
    int64_t scratch; /* numbers that fn wants */
    MatrixFn *fn_f64, *fn_c128;
    bool is_complex;
    _Atomic(Error *) error;
};

/* Reads the shape of input 0, and of input 1 when `two`, whose outer dimensions must be the same. */
Error *matrix_job_init(MatrixJob *job, KernelContext *k, bool square, bool two) MUST_CHECK;
/* An output of the batch: rows x cols matrices; cols -1: vectors of `rows`; rows -1 too: one number each. */
Tensor *matrix_output(MatrixJob *job, int output, int64_t rows, int64_t cols);
Error *matrix_job_run(MatrixJob *job) MUST_CHECK;

/* `count` numbers from element `at` on, as double or Complex. */
void matrix_load_f64(const Tensor *t, int64_t at, int64_t count, double *to);
void matrix_load_c128(const Tensor *t, int64_t at, int64_t count, Complex *to);
void matrix_store_f64(Tensor *t, int64_t at, int64_t count, const double *from);
void matrix_store_c128(Tensor *t, int64_t at, int64_t count, const Complex *from);

/* The outer dimensions of two inputs, broadcast against each other. */
Error *matrix_broadcast_outer(const Shape *a, const Shape *b, Shape *out) MUST_CHECK;
/* Which matrix of `in` goes to each of the `batch` matrices of outer dimensions `outer`; malloced. */
int64_t *matrix_broadcast_index(const Shape *outer, const Shape *in, int64_t batch);
