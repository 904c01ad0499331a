/* gemm_small.c: b is packed on the stack, its rows filled up with zeros. */
#include "kernels/gemm_small.h"

#include <string.h>

#include "kernels/cpu.h"

#define INLINE static inline __attribute__((always_inline))
enum { SMALL_LANES = 8, SMALL_ROWS = 4, SMALL_MOST_PRODUCTS = 8192, SMALL_MOST_B = 2048 };

typedef float Lanes __attribute__((vector_size(SMALL_LANES * sizeof(float))));

#define CPU_BODY "kernels/gemm_small.inc"
#include "kernels/each_cpu.inc"

bool gemm_is_small(const Gemm *g) {
    if (g->m < 1 || g->n < SMALL_LANES / 2 || g->k < 1) return false;
    if (g->m > SMALL_MOST_PRODUCTS || g->n > SMALL_MOST_B || g->k > SMALL_MOST_B) return false;
    return g->n * g->k <= SMALL_MOST_B && g->m * g->n * g->k <= SMALL_MOST_PRODUCTS;
}

void gemm_small_f32(const Gemm *g) {
    float packed[2 * SMALL_MOST_B]; /* rows of at least half of SMALL_LANES become at most twice as long */
    const float *b = g->b;
    const int64_t width = (g->n + SMALL_LANES - 1) / SMALL_LANES * SMALL_LANES;
    const int64_t stride = g->b_stride ? g->b_stride : g->b_transposed ? g->k : g->n;
    const int64_t down = g->b_transposed ? 1 : stride, along = g->b_transposed ? stride : 1;
    for (int64_t p = 0; p < g->k; p++) {
        for (int64_t j = 0; j < g->n; j++) packed[p * width + j] = b[p * down + j * along];
        for (int64_t j = g->n; j < width; j++) packed[p * width + j] = 0;
    }
    CPU_PICK(small_rows)(g, packed, width);
    range_call(g->done, 0, g->m * g->n);
}
