/* linalg.h: factorisations of small dense matrices, row after row in memory, in double precision, real and complex. */
#pragma once
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

typedef double _Complex Complex;

/* Each for double (_f64) and Complex (_c128). Matrices are written in place unless there is an output. */
/* a (n x n, its lower triangle counts) = l * l^H; false when a is not positive definite. The upper triangle is cleared.
 */
bool cholesky_f64(double *a, int64_t n);
bool cholesky_c128(Complex *a, int64_t n);
/* Row i of the product of the factors is row pivots[i] of a. Returns the sign of the permutation; 0: a pivot is zero.
 */
int lu_f64(double *a, int64_t n, int64_t *pivots);
int lu_c128(Complex *a, int64_t n, int64_t *pivots);
/* x (n x cols) = inverse of the factored matrix times b. */
void lu_solve_f64(const double *lu, const int64_t *pivots, int64_t n, const double *b, int64_t cols, double *x);
void lu_solve_c128(const Complex *lu, const int64_t *pivots, int64_t n, const Complex *b, int64_t cols, Complex *x);
/* b (n x cols) = inverse of the triangle of a, or of its adjoint, times b. */
void triangular_solve_f64(const double *a, int64_t n, bool lower, bool adjoint, double *b, int64_t cols);
void triangular_solve_c128(const Complex *a, int64_t n, bool lower, bool adjoint, Complex *b, int64_t cols);
/* a (m x n) becomes R; q (m x q_cols, q_cols >= min(m, n)) the first columns of Q. Signs are those of Householder's
 * method. */
void qr_f64(double *a, int64_t m, int64_t n, double *q, int64_t q_cols);
void qr_c128(Complex *a, int64_t m, int64_t n, Complex *q, int64_t q_cols);
/* a (n x n, self-adjoint by its lower triangle) = v * diag(values) * v^H, values ascending; a is destroyed. False: no
 * convergence. epsilon: what may be neglected, that of the type the numbers came from. */
bool self_adjoint_eigen_f64(double *a, int64_t n, double epsilon, double *values, double *v);
bool self_adjoint_eigen_c128(Complex *a, int64_t n, double epsilon, double *values, Complex *v);
/* a (m x n, m >= n; destroyed) = u * diag(values) * v^H, values descending; u is m x u_cols with u_cols n or m, v is n
 * x n. */
void svd_f64(double *a, int64_t m, int64_t n, double *values, double *u, int64_t u_cols, double *v);
void svd_c128(Complex *a, int64_t m, int64_t n, double *values, Complex *u, int64_t u_cols, Complex *v);

/* a (n x n) = q * t * q^H with t upper triangular, which a becomes. False: no convergence. */
bool schur(Complex *a, int64_t n, Complex *q);
/* Eigenvalues, and eigenvectors as columns of unit length; a is destroyed. */
bool eigen(Complex *a, int64_t n, Complex *values, Complex *v);
/* The principal square root and logarithm, into a. */
bool matrix_sqrt(Complex *a, int64_t n);
bool matrix_log(Complex *a, int64_t n);
