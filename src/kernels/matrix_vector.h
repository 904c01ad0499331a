/* matrix_vector.h: products of matrices with vectors and turns of pairs of rows, for each instruction set; what factorisations do one vector at a time. */
#pragma once
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

typedef double _Complex Complex;

/* Each for double (_f64) and Complex (_c128). Rows of a matrix are `stride` elements apart. */
/* The sum of conj(x[i]) * y[i]. */
double vector_dot_f64(const double *x, const double *y, int64_t n);
Complex vector_dot_c128(const Complex *x, const Complex *y, int64_t n);
/* y += factor * x. */
void vector_add_f64(double *y, double factor, const double *x, int64_t n);
void vector_add_c128(Complex *y, Complex factor, const Complex *x, int64_t n);
/* y = a (rows x n) * x. */
void matrix_times_vector_f64(const double *a, int64_t stride, int64_t rows, int64_t n, const double *x, double *y);
void matrix_times_vector_c128(const Complex *a, int64_t stride, int64_t rows, int64_t n, const Complex *x, Complex *y);
/* y = a^H (n x rows) * x. */
void adjoint_times_vector_f64(const double *a, int64_t stride, int64_t rows, int64_t n, const double *x, double *y);
void adjoint_times_vector_c128(const Complex *a, int64_t stride, int64_t rows, int64_t n, const Complex *x, Complex *y);
/* y = a (n x n, self-adjoint by its lower triangle) * x. */
void self_adjoint_times_vector_f64(const double *a, int64_t stride, int64_t n, const double *x, double *y);
void self_adjoint_times_vector_c128(const Complex *a, int64_t stride, int64_t n, const Complex *x, Complex *y);

/* Rows `row` and `row` + 1 become c, -s and s, c times them. */
typedef struct RowTurn {
    int64_t row;
    double c, s;
} RowTurn;

enum { ROW_TURN_BYTES = 64, ROW_TURN_VECTORS = 4 }; /* a vector; how many of a row are turned together */
/* Turns the first `vectors`, ROW_TURN_VECTORS at most, of the rows of doubles (single: floats), in this order. The stride is in numbers. */
void rows_turn(void *rows, bool single, int64_t stride, int64_t vectors, const RowTurn *turns, int64_t count);
