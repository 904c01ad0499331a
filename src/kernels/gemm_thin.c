/* gemm_thin.c: b is packed column by column. Rows of a are multiplied with all columns at once (dot products), or, where a is transposed,
 * vectors of rows are added up. */
#include "kernels/gemm_thin.h"

#include <string.h>

#include "base/block_cache.h"
#include "kernels/cpu.h"

enum { LEAST_LENGTH = 64, WORK_PER_TASK = 1 << 18 };

typedef struct ThinJob {
    const Gemm *g;
    float *packed; /* columns of b, `stride` apart; or, where a is transposed, b row by row */
    int64_t stride;
} ThinJob;

#define INLINE static inline __attribute__((always_inline))

#if CPU_HAS_VECTORS
#define LANES 8
#define PAIR 1 /* rows at a time: there are 16 registers */
#define CPU(f) f##_avx2
#define TARGET CPU_TARGET_AVX2
#include "kernels/gemm_thin.inc"
#undef LANES
#undef PAIR
#undef CPU
#undef TARGET
#define LANES 16
#define PAIR 2
#define CPU(f) f##_avx512
#define TARGET CPU_TARGET_AVX512
#include "kernels/gemm_thin.inc"

/* Columns of b one after the other. */
static void pack_columns(const Gemm *g, float *to, int64_t stride) {
    const float *b = g->b;
    for (int64_t j = 0; j < g->n; j++) {
        float *column = to + j * stride;
        if (g->b_transposed) {
            memcpy(column, b + j * g->k, (size_t)g->k * sizeof(float));
        } else {
            for (int64_t p = 0; p < g->k; p++) column[p] = b[p * g->n + j];
        }
    }
}
static void pack_rows(const Gemm *g, float *to) {
    const float *b = g->b;
    for (int64_t p = 0; p < g->k; p++)
        for (int64_t j = 0; j < g->n; j++) to[p * g->n + j] = g->b_transposed ? b[j * g->k + p] : b[p * g->n + j];
}

bool gemm_thin_f32(const Gemm *g, ThreadPool *pool) {
    const CpuLevel level = cpu_level();
    if (level == CPU_PLAIN || g->n > GEMM_THIN_MOST || g->n < 1 || g->m < 1) return false;
    if ((g->a_transposed ? g->m : g->k) < LEAST_LENGTH || g->k < 1) return false;
    ThinJob job = {.g = g, .stride = (g->k + 15) / 16 * 16};
    size_t size = (size_t)(job.stride * g->n) * sizeof(float);
    bool plain = g->a_transposed && !g->b_transposed; /* b is as it is wanted */
    job.packed = plain ? (float *)g->b : block_alloc(size);
    if (!job.packed) return false;
    if (!g->a_transposed) pack_columns(g, job.packed, job.stride);
    if (g->a_transposed && !plain) pack_rows(g, job.packed);
    /* Blocks of rows, so that no vector is cut by the split. */
    int64_t block = g->a_transposed ? 32 : 2, blocks = (g->m + block - 1) / block;
    int64_t threads = pool ? threadpool_size(pool) : 1, work = g->m * g->n * g->k;
    int64_t pieces = work / WORK_PER_TASK < threads ? work / WORK_PER_TASK : threads;
    RangeFn *fn = g->a_transposed ? (level == CPU_AVX512 ? columns_avx512 : columns_avx2) : (level == CPU_AVX512 ? rows_avx512 : rows_avx2);
    threadpool_parallel_for(pool, blocks, pieces > 1 ? (blocks + pieces - 1) / pieces : blocks, fn, &job);
    if (!plain) block_free(job.packed, size);
    return true;
}
#else
bool gemm_thin_f32(const Gemm *g, ThreadPool *pool) {
    (void)g;
    (void)pool;
    return false;
}
#endif
