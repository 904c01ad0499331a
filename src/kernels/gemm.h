/* gemm.h: products of matrices, row after row in memory. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/threadpool.h"

/* c (m x n) = a (m x k) * b (k x n). a_transposed: a is stored k x m; likewise b. Conjugation is of complex types only.
 */
typedef struct Gemm {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
    bool a_conjugated, b_conjugated;
    const void *a, *b;
    void *c;
    int64_t b_stride; /* of gemm_f32 and those in tiles: elements between two rows of b as it is stored; 0: they have no gap */
    int64_t a_stride, c_stride; /* of those in tiles: likewise */
    bool adds;                  /* of gemm_f32, where gemm_f32_adds: c += a * b */
    bool subtracts;             /* of those in tiles: c -= a * b; then `done` is not called */
    RangeCall done; /* (optional) gets every element of c once, when it is final and still in the cache; from any thread */
} Gemm;

typedef void GemmFn(const Gemm *g, ThreadPool *pool);

/* Whether adding to c what is there gives the bits of a product made first and added then. */
bool gemm_f32_adds(const Gemm *g);
GemmFn gemm_f32, gemm_f16, gemm_bf16; /* oneDNN; sums of half types are floats, rounded once at the end */
GemmFn gemm_tiles_f32, gemm_f64, gemm_c64, gemm_c128; /* tiles in vectors */
GemmFn gemm_u32, gemm_u64;                            /* likewise, of signed numbers, too: modulo 2^32 and 2^64, the bits of the plain ones */
/* Plain C, blocked; for floats the reference that those above are checked against. */
GemmFn gemm_plain_f16, gemm_plain_bf16, gemm_plain_f32, gemm_plain_f64, gemm_plain_c64, gemm_plain_c128;
GemmFn gemm_plain_i8, gemm_plain_i16, gemm_plain_i32, gemm_plain_i64;
GemmFn gemm_plain_u8, gemm_plain_u16, gemm_plain_u32, gemm_plain_u64;
