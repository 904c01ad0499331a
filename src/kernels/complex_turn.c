/* complex_turn.c: turns of pairs of rows or columns of complex matrices, for each instruction set. */
#include "kernels/complex_turn.h"

#include <stddef.h>

#include "kernels/cpu.h"

enum { WIDE = 4 }; /* vectors of a row that are turned together */

/* Real and imaginary parts of one, two and four numbers. */
typedef double Lanes_plain __attribute__((vector_size(16), may_alias));
typedef double Lanes_avx2 __attribute__((vector_size(32), aligned(16), may_alias));
typedef double Lanes_avx512 __attribute__((vector_size(64), aligned(16), may_alias));

#define SWAPPED_plain(v) __builtin_shufflevector(v, v, 1, 0)
#define SWAPPED_avx2(v) __builtin_shufflevector(v, v, 1, 0, 3, 2)
#define SWAPPED_avx512(v) __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6)
#define TURNED_plain {-1, 1}
#define TURNED_avx2 {-1, 1, -1, 1}
#define TURNED_avx512 {-1, 1, -1, 1, -1, 1, -1, 1}

/* Numbers of one column and consecutive rows, as a vector, and back. */
static inline Lanes_plain column_plain(const Complex *a, int64_t stride) {
    (void)stride;
    return *(const Lanes_plain *)a;
}

static inline void column_store_plain(Complex *a, int64_t stride, Lanes_plain v) {
    (void)stride;
    *(Lanes_plain *)a = v;
}

#if CPU_HAS_VECTORS
CPU_TARGET_AVX2 static inline Lanes_avx2 column_avx2(const Complex *a, int64_t stride) {
    return __builtin_shufflevector(*(const Lanes_plain *)a, *(const Lanes_plain *)(a + stride), 0, 1, 2, 3);
}

CPU_TARGET_AVX2 static inline void column_store_avx2(Complex *a, int64_t stride, Lanes_avx2 v) {
    *(Lanes_plain *)a = __builtin_shufflevector(v, v, 0, 1);
    *(Lanes_plain *)(a + stride) = __builtin_shufflevector(v, v, 2, 3);
}

CPU_TARGET_AVX512 static inline Lanes_avx512 column_avx512(const Complex *a, int64_t stride) {
    Lanes_avx2 x = __builtin_shufflevector(*(const Lanes_plain *)a, *(const Lanes_plain *)(a + stride), 0, 1, 2, 3);
    Lanes_avx2 y = __builtin_shufflevector(*(const Lanes_plain *)(a + 2 * stride), *(const Lanes_plain *)(a + 3 * stride), 0, 1, 2, 3);
    return __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7);
}

CPU_TARGET_AVX512 static inline void column_store_avx512(Complex *a, int64_t stride, Lanes_avx512 v) {
    *(Lanes_plain *)a = __builtin_shufflevector(v, v, 0, 1);
    *(Lanes_plain *)(a + stride) = __builtin_shufflevector(v, v, 2, 3);
    *(Lanes_plain *)(a + 2 * stride) = __builtin_shufflevector(v, v, 4, 5);
    *(Lanes_plain *)(a + 3 * stride) = __builtin_shufflevector(v, v, 6, 7);
}
#endif

#define CPU_BODY "kernels/complex_turn.inc"
#include "kernels/each_cpu.inc"

void complex_turn_rows(Complex *a, int64_t stride, int64_t columns, const ComplexTurn *turns, int64_t count) {
    CPU_PICK(turn_rows)(a, stride, columns, turns, count);
}

void complex_turn_columns(Complex *a, int64_t stride, int64_t rows, const ComplexTurn *turns, int64_t count) {
    CPU_PICK(turn_columns)(a, stride, rows, turns, count);
}
