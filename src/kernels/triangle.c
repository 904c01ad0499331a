/* triangle.c: the small steps of solving triangles and of LU on doubles. */
#include "kernels/triangle.h"

#include <math.h>

#include "kernels/cpu.h"

enum { ROWS = 8, WIDTH = 16 }; /* what is solved together */

typedef double Lanes_plain __attribute__((vector_size(16), aligned(8), may_alias));
typedef double Lanes_avx2 __attribute__((vector_size(32), aligned(8), may_alias));
typedef double Lanes_avx512 __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t Bits_plain __attribute__((vector_size(16), aligned(8), may_alias));
typedef int64_t Bits_avx2 __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t Bits_avx512 __attribute__((vector_size(64), aligned(8), may_alias));

#define CPU_BODY "kernels/triangle.inc"
#include "kernels/each_cpu.inc"

void triangle_solve(const double *l, const double *d, int64_t size, double *b, int64_t step, int64_t cols) {
    CPU_PICK(solve)(l, d, size, b, step, cols);
}

int64_t lu_columns_stride(int64_t rows) {
    return (rows + 7) / 8 * 8 + 8; /* whole vectors from any row on */
}

void lu_columns(double *x, int64_t stride, int64_t rows, int64_t count, int64_t *swaps) {
    CPU_PICK(lu)(x, stride, rows, count, swaps);
}
