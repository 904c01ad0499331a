/* gemm_small.c: b is turned, when it is stored the other way, in memory on the stack. */
#include "kernels/gemm_small.h"

#include "kernels/cpu.h"

enum { SMALL_MOST_PRODUCTS = 8192, SMALL_MOST_B = 2048, SMALL_LEAST_N = 4 };

#define CPU_BODY "kernels/gemm_small.inc"
#include "kernels/each_cpu.inc"

bool gemm_is_small(const Gemm *g) {
    if (g->m < 1 || g->n < SMALL_LEAST_N || g->k < 1) return false;
    if (g->m > SMALL_MOST_PRODUCTS || g->n > SMALL_MOST_B || g->k > SMALL_MOST_B) return false;
    return g->n * g->k <= SMALL_MOST_B && g->m * g->n * g->k <= SMALL_MOST_PRODUCTS;
}

void gemm_small_f32(const Gemm *g) {
    float turned[SMALL_MOST_B];
    const float *b = g->b;
    int64_t stride = g->b_stride ? g->b_stride : g->b_transposed ? g->k : g->n;
    if (g->b_transposed) {
        for (int64_t p = 0; p < g->k; p++)
            for (int64_t j = 0; j < g->n; j++) turned[p * g->n + j] = b[j * stride + p];
        b = turned;
        stride = g->n;
    }
    CPU_PICK(small_rows)(g, b, stride);
    range_call(g->done, 0, g->m * g->n);
}
