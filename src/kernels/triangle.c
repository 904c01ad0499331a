/* triangle.c: the small steps of solving triangles of floats and doubles, and of LU of doubles. */
#include "kernels/triangle.h"

#include <math.h>

#include "kernels/cpu.h"

enum { ROWS = 8 }; /* that are solved together */
enum { vector_bytes_plain = 16, vector_bytes_avx2 = 32, vector_bytes_avx512 = 64 };

#define CPU_BODY "kernels/triangle.inc"
#define T float
#define FN(f) CPU(f##_f32)
#include "kernels/each_cpu.inc"
#undef T
#undef FN
#define T double
#define FN(f) CPU(f##_f64)
#include "kernels/each_cpu.inc"
#undef CPU_BODY

#define CPU_BODY "kernels/triangle_lu.inc"
#include "kernels/each_cpu.inc"

void triangle_solve_f32(const float *l, const float *d, int64_t size, float *b, int64_t step, int64_t cols) {
    CPU_PICK(solve_f32)(l, d, size, b, step, cols);
}

void triangle_solve_f64(const double *l, const double *d, int64_t size, double *b, int64_t step, int64_t cols) {
    CPU_PICK(solve_f64)(l, d, size, b, step, cols);
}

int64_t lu_columns_stride(int64_t rows) {
    return (rows + 7) / 8 * 8 + 8; /* whole vectors from any row on */
}

void lu_columns(double *x, int64_t stride, int64_t rows, int64_t count, int64_t *swaps) {
    CPU_PICK(lu)(x, stride, rows, count, swaps);
}
