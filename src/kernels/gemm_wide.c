/* gemm_wide.c: products of doubles, of complex numbers and of integers, for which oneDNN has none, and of floats within other matrices. */
#include <complex.h>
#include <string.h>

#include "base/block_cache.h"
#include "kernels/cpu.h"
#include "kernels/gemm.h"

enum { TILE_ROWS = 8, BLOCK_ROWS = 64, BLOCK_DEPTH = 128, BLOCK_BYTES = 1 << 18 }; /* a block of b stays in the second cache, a panel of it in the first */
enum { GEMM_WORK = 1 << 20, GEMM_SMALL = 1 << 12, FEW_COLUMNS = 64 };             /* products that pay for another thread; for tiles */

typedef enum TileUse { TILE_SET, TILE_ADDS, TILE_SUBTRACTS } TileUse; /* what becomes of a tile of c */

/* Rows that one loop sums, in two vectors each: as many as there are registers. */
enum { rows_at_once_plain = 4, rows_at_once_avx2 = 4, rows_at_once_avx512 = TILE_ROWS };
enum { vector_bytes_plain = 16, vector_bytes_avx2 = 32, vector_bytes_avx512 = 64 };

/* Rows or columns begin to end of the product go to one thread. */
static void gemm_share(const Gemm *g, ThreadPool *pool, RangeFn *rows, RangeFn *columns) {
    bool by_columns = g->n > g->m;
    int64_t count = by_columns ? g->n : g->m, products = (by_columns ? g->m : g->n) * g->k;
    /* One piece for each thread, since every piece unpacks the other matrix anew; whole tiles. */
    int64_t threads = pool ? threadpool_size(pool) : 1, share = (count + threads - 1) / threads;
    int64_t grain = GEMM_WORK / (products > 0 ? products : 1) + 1;
    if (share < grain) share = grain;
    threadpool_parallel_for(pool, count, (share + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS, by_columns ? columns : rows, (void *)g);
}

#define AT_LEVEL(f) CPU(f) /* whose argument may be a macro */
enum { WIDTH_BYTES = 128 };
#define gemm_plain_tiles_f32 gemm_plain_f32
#define WIDTH (WIDTH_BYTES / (int64_t)sizeof(T)) /* of a panel of b */
#define CPU_BODY "kernels/gemm_wide.inc"

#define PARTS 1
#define REAL(v) (v)
#define IMAG(v) 0
#define MAKE(re, im) (re)

#define S float
#define T float
#define NAME(f) f##_tiles_f32
#include "kernels/gemm_wide_pick.inc"
#undef S
#undef T
#undef NAME

#define S double
#define T double
#define NAME(f) f##_f64
#include "kernels/gemm_wide_pick.inc"
#undef S
#undef T
#undef NAME

#define S uint32_t
#define T uint32_t
#define NAME(f) f##_u32
#include "kernels/gemm_wide_pick.inc"
#undef S
#undef T
#undef NAME

#define S uint64_t
#define T uint64_t
#define NAME(f) f##_u64
#include "kernels/gemm_wide_pick.inc"
#undef S
#undef T
#undef NAME

#undef PARTS
#undef REAL
#undef IMAG
#undef MAKE
#define PARTS 2
#define MAKE(re, im) __builtin_complex(re, im)

#define REAL(v) creal(v)
#define IMAG(v) cimag(v)
#define S double _Complex
#define T double
#define NAME(f) f##_c128
#include "kernels/gemm_wide_pick.inc"
#undef REAL
#undef IMAG
#undef S
#undef T
#undef NAME

#define REAL(v) crealf(v)
#define IMAG(v) cimagf(v)
#define S float _Complex
#define T float
#define NAME(f) f##_c64
#include "kernels/gemm_wide_pick.inc"
