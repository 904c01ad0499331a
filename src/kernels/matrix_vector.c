/* matrix_vector.c: the loops of matrix_vector.inc for double and Complex, and the turns, at every level of kernels/cpu.h. */
#include "kernels/matrix_vector.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/cpu.h"

/* Always eight numbers, so that sums have the same order on every processor. */
typedef double Lanes __attribute__((vector_size(8 * sizeof(double)), aligned(sizeof(double)), may_alias));

#define AT(p) (*(const Lanes *)(p))
#define SWAPPED(v) __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6)

/* ---- double ---- */

#define T double
#define STEP 8 /* numbers of T in Lanes */
#define NAME(f) f##_f64
#define FN(f) CPU(f##_f64)
#define CONJ(x) (x)
#define TIMES(x, y) ((x) * (y))
#define ADD(sum, factor, v) ((sum) += (factor) * (v))      /* factor times v */
#define ADD_CONJ(sum, factor, v) ((sum) += (factor) * (v)) /* factor times the conjugate of v */
#define ADD_DOT(sum, crossed, x, y) ((sum) += (x) * (y))
static double lanes_sum_f64(const Lanes *sum, const Lanes *crossed, bool conjugated) {
    const double *s = (const double *)sum;
    (void)crossed, (void)conjugated;
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}
#define CPU_BODY "kernels/matrix_vector.inc"
#include "kernels/each_cpu.inc"
#include "kernels/matrix_vector_pick.inc"
#undef T
#undef STEP
#undef NAME
#undef FN
#undef CONJ
#undef TIMES
#undef ADD
#undef ADD_CONJ
#undef ADD_DOT

/* ---- Complex: the real and the imaginary part of four numbers ---- */

static const Lanes TURNED = {-1, 1, -1, 1, -1, 1, -1, 1}, CONJUGATED = {1, -1, 1, -1, 1, -1, 1, -1};

#define T Complex
#define STEP 4
#define NAME(f) f##_c128
#define FN(f) CPU(f##_c128)
#define CONJ(x) conj(x)
#define TIMES(x, y) times(x, y)
#define ADD(sum, factor, v) ((sum) += creal(factor) * (v) + cimag(factor) * (TURNED * SWAPPED(v)))
#define ADD_CONJ(sum, factor, v) ((sum) += creal(factor) * (CONJUGATED * (v)) + cimag(factor) * SWAPPED(v))
#define ADD_DOT(sum, crossed, x, y) ((sum) += (x) * (y), (crossed) += (x) * SWAPPED(y))
static inline Complex times(Complex x, Complex y) {
    return __builtin_complex(creal(x) * creal(y) - cimag(x) * cimag(y), creal(x) * cimag(y) + cimag(x) * creal(y));
}
static Complex lanes_sum_c128(const Lanes *sum, const Lanes *crossed, bool conjugated) {
    const double *s = (const double *)sum, *x = (const double *)crossed;
    double even = (s[0] + s[4]) + (s[2] + s[6]), odd = (s[1] + s[5]) + (s[3] + s[7]);
    double even_x = (x[0] + x[4]) + (x[2] + x[6]), odd_x = (x[1] + x[5]) + (x[3] + x[7]);
    return conjugated ? __builtin_complex(even + odd, even_x - odd_x) : __builtin_complex(even - odd, even_x + odd_x);
}
#include "kernels/each_cpu.inc"
#include "kernels/matrix_vector_pick.inc"

/* ---- Turns ---- */

#undef T
#undef FN
#undef CPU_BODY
#define CPU_BODY "kernels/matrix_vector_turn.inc"
#define T double
#define TurnLanes Lanes
#define FN(f) CPU(f##_f64)
#include "kernels/each_cpu.inc"
#undef T
#undef TurnLanes
#undef FN
typedef float ShortLanes __attribute__((vector_size(16 * sizeof(float)), aligned(sizeof(float)), may_alias));
#define T float
#define TurnLanes ShortLanes
#define FN(f) CPU(f##_f32)
#include "kernels/each_cpu.inc"

void rows_turn(void *rows, bool single, int64_t stride, int64_t vectors, const RowTurn *turns, int64_t count) {
    if (vectors == ROW_TURN_VECTORS && single) {
        CPU_PICK(turn_wide_f32)(rows, stride, turns, count);
    } else if (vectors == ROW_TURN_VECTORS) {
        CPU_PICK(turn_wide_f64)(rows, stride, turns, count);
    }
    for (int64_t i = 0; i < vectors && vectors < ROW_TURN_VECTORS; i++) {
        if (single) {
            CPU_PICK(turn_narrow_f32)((float *)rows + i * 16, stride, turns, count);
        } else {
            CPU_PICK(turn_narrow_f64)((double *)rows + i * 8, stride, turns, count);
        }
    }
}
