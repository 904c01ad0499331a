/* triangle.h: the small steps of solving triangles of floats and doubles and of LU of doubles, between which is work for products; for each instruction set. */
#pragma once
#include <stdint.h>

enum { TRIANGLE_SIDE = 32, LU_COLUMNS = 8 }; /* at most */

/* b (size x cols, its rows `step` numbers apart) = inverse of the lower triangle times b. Its rows are TRIANGLE_SIDE numbers of l, without the diagonal, which is d. */
void triangle_solve_f32(const float *l, const float *d, int64_t size, float *b, int64_t step, int64_t cols);
void triangle_solve_f64(const double *l, const double *d, int64_t size, double *b, int64_t step, int64_t cols);
/* LU of a matrix of `rows` and `count` columns, which lie one after the other, `stride` numbers apart: as many as lu_columns_stride says. Row swaps[k] changes places
 * with row k; -1: its pivot is 0. */
void lu_columns(double *x, int64_t stride, int64_t rows, int64_t count, int64_t *swaps);
int64_t lu_columns_stride(int64_t rows);
