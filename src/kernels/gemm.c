/* gemm.c: float on oneDNN, rows or columns shared among threads; plain C for the other types. */
#include "kernels/gemm.h"

#include <complex.h>
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "kernels/cpu.h"
#include "kernels/gemm_small.h"
#include "kernels/gemm_thin.h"
#include "kernels/onednn.h"

enum { GEMM_TILE_M = 64, GEMM_TILE_N = 64, GEMM_TILE_K = 128 };
enum { WORK_PER_TASK = 1 << 20, TILE = 16 }; /* products that pay for another thread */

/* Rows that make a task, when each is so many products. */
static int64_t gemm_grain(int64_t products) {
    return WORK_PER_TASK / (products > 0 ? products : 1) + 1;
}

typedef struct FloatJob {
    const Gemm *g;
    bool by_columns;
} FloatJob;

static int64_t b_stride(const Gemm *g) {
    return g->b_stride ? g->b_stride : g->b_transposed ? g->k : g->n;
}

/* oneDNN adds to c once for each block of k; these fit in one at every level of its code. Vectors, which a piece for
 * one thread may be at the edge, it treats otherwise. */
bool gemm_f32_adds(const Gemm *g) {
    int64_t most_k = cpu_level() == CPU_AVX512 ? 256 : 96;
    if (gemm_is_small(g)) return g->n > GEMM_THIN_MOST;
    return g->k > 0 && g->k <= most_k && g->m % TILE != 1 && g->n % TILE != 1 && g->n > GEMM_THIN_MOST;
}

static void float_range(void *arg, int64_t begin, int64_t end) {
    const FloatJob *job = arg;
    const Gemm *g = job->g;
    const float *a = g->a, *b = g->b;
    float *c = g->c;
    int64_t m = g->m, n = g->n, lda = g->a_transposed ? g->m : g->k, ldb = b_stride(g);
    if (job->by_columns) {
        n = end - begin;
        b += g->b_transposed ? begin * ldb : begin;
        c += begin;
    } else {
        m = end - begin;
        a += g->a_transposed ? begin : begin * g->k;
        c += begin * g->n;
    }
    onednn_thread_setup();
    dnnl_sgemm(g->a_transposed ? 'T' : 'N', g->b_transposed ? 'T' : 'N', m, n, g->k, 1.0f, a, lda, b, ldb,
               g->adds ? 1.0f : 0.0f, c, g->n);
    if (!job->by_columns) range_call(g->done, begin * g->n, end * g->n);
    for (int64_t i = 0; job->by_columns && g->done.fn && i < m; i++)
        range_call(g->done, i * g->n + begin, i * g->n + end);
}

void gemm_f32(const Gemm *g, ThreadPool *pool) {
    if (g->m == 0 || g->n == 0) return;
    if (g->k == 0) {
        for (int64_t i = 0; i < g->m * g->n; i++) ((float *)g->c)[i] = 0;
        range_call(g->done, 0, g->m * g->n);
        return;
    }
    if (!g->adds && b_stride(g) == (g->b_transposed ? g->k : g->n) && gemm_thin_f32(g, pool)) return;
    if (gemm_is_small(g)) {
        gemm_small_f32(g);
        return;
    }
    FloatJob job = {g, g->n > g->m};
    int64_t count = job.by_columns ? g->n : g->m, other = job.by_columns ? g->m : g->n;
    /* One piece for each thread, since every piece packs the other matrix anew; whole tiles of the library's. */
    int64_t threads = pool ? threadpool_size(pool) : 1, share = (count + threads - 1) / threads,
            grain = gemm_grain(other * g->k);
    if (share < grain) share = grain;
    threadpool_parallel_for(pool, count, (share + TILE - 1) / TILE * TILE, float_range, &job);
}

/* ---- Plain C ---- */

#define AT_LEVEL(f) CPU(f) /* whose argument may be a macro */
#define BODY "kernels/gemm.inc"
#define CONJ(v) (v)
#define ADD_PRODUCT(acc, x, y) ((acc) + (x) * (y))
#include "kernels/each_float.inc"
#undef CONJ
#define CONJ(v) conj(v)
#include "kernels/each_complex.inc"
#undef CONJ
#undef ADD_PRODUCT
#define CONJ(v) (v)
#define ADD_PRODUCT(acc, x, y) (C)((W)(acc) + (W)(x) * (W)(y))
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
