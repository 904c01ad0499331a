/* linalg.h: factorisations of dense matrices, row after row in memory, in double precision, real and complex; triangles of floats, too. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/threadpool.h"
#include "kernels/matrix_vector.h"

/* Each for double (_f64) and Complex (_c128). Matrices are written in place unless there is an output. Threads of the pool (NULL: none) share the work on
 * large ones; the results do not depend on them. */
/* a (n x n, its lower triangle counts) = l * l^H; false when a is not positive definite. The upper triangle is cleared.
 */
bool cholesky_f64(double *a, int64_t n, ThreadPool *pool);
bool cholesky_c128(Complex *a, int64_t n, ThreadPool *pool);
/* Row i of the product of the factors is row pivots[i] of a. Returns the sign of the permutation; 0: a pivot is zero.
 */
int lu_f64(double *a, int64_t n, int64_t *pivots, ThreadPool *pool);
int lu_c128(Complex *a, int64_t n, int64_t *pivots, ThreadPool *pool);
/* x (n x cols) = inverse of the factored matrix times b. */
void lu_solve_f64(const double *lu, const int64_t *pivots, int64_t n, const double *b, int64_t cols, double *x, ThreadPool *pool);
void lu_solve_c128(const Complex *lu, const int64_t *pivots, int64_t n, const Complex *b, int64_t cols, Complex *x, ThreadPool *pool);
/* x = inverse of the factored matrix. */
void lu_inverse_f64(const double *lu, const int64_t *pivots, int64_t n, double *x, ThreadPool *pool);
void lu_inverse_c128(const Complex *lu, const int64_t *pivots, int64_t n, Complex *x, ThreadPool *pool);
/* b (n x cols) = inverse of the triangle of a, or of its adjoint, times b. */
void triangular_solve_f32(const float *a, int64_t n, bool lower, bool adjoint, float *b, int64_t cols, ThreadPool *pool);
void triangular_solve_f64(const double *a, int64_t n, bool lower, bool adjoint, double *b, int64_t cols, ThreadPool *pool);
void triangular_solve_c128(const Complex *a, int64_t n, bool lower, bool adjoint, Complex *b, int64_t cols, ThreadPool *pool);
/* a (m x n) becomes R; q (m x q_cols, q_cols >= min(m, n); NULL: not wanted) the first columns of Q. Signs are those of Householder's
 * method. */
void qr_f64(double *a, int64_t m, int64_t n, double *q, int64_t q_cols, ThreadPool *pool);
void qr_c128(Complex *a, int64_t m, int64_t n, Complex *q, int64_t q_cols, ThreadPool *pool);
/* a (n x n, self-adjoint by its lower triangle) = v * diag(values) * v^H, values ascending; a is destroyed. v NULL: not wanted. False: no
 * convergence, or a number that is not finite. epsilon: what may be neglected, that of the type the numbers came from. */
bool self_adjoint_eigen_f64(double *a, int64_t n, double epsilon, double *values, double *v, ThreadPool *pool);
bool self_adjoint_eigen_c128(Complex *a, int64_t n, double epsilon, double *values, Complex *v, ThreadPool *pool);
/* a (m x n, m >= n; destroyed) = u * diag(values) * v^H, values descending; u is m x u_cols with u_cols n or m, v is n
 * x n; u NULL: neither is wanted. All numbers are finite. */
void svd_f64(double *a, int64_t m, int64_t n, double epsilon, double *values, double *u, int64_t u_cols, double *v, ThreadPool *pool);
void svd_c128(Complex *a, int64_t m, int64_t n, double epsilon, double *values, Complex *u, int64_t u_cols, Complex *v, ThreadPool *pool);

/* a (n x n) = q * t * q^H with t upper triangular, which a becomes. False: no convergence, or a number that is not finite. */
bool schur(Complex *a, int64_t n, Complex *q, ThreadPool *pool);
/* Eigenvalues, and eigenvectors (NULL: not wanted) as columns of unit length; a is destroyed. */
bool eigen(Complex *a, int64_t n, Complex *values, Complex *v, ThreadPool *pool);
/* The principal square root and logarithm, into a. */
bool matrix_sqrt(Complex *a, int64_t n);
bool matrix_log(Complex *a, int64_t n);
