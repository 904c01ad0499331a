/* gemm_int8.h: products of matrices of eight-bit integers, summed in 32 bits; every way gives the same bits. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/threadpool.h"

/* c (m x n) = (a - a_offset) (m x k) * (b - b_offset) (k x n), modulo 2^32. a_transposed: a is stored k x m; likewise b. Elements are
 * int8_t where signed, else uint8_t. */
typedef struct Int8Gemm {
    int64_t m, n, k;
    bool a_transposed, b_transposed, a_signed, b_signed;
    int32_t a_offset, b_offset;
    const void *a, *b;
    int32_t *c;
} Int8Gemm;

/* oneDNN where the processor multiplies bytes without saturating sums of two products, else plain C. */
void gemm_int8(const Int8Gemm *g, ThreadPool *pool);
/* The reference. */
void gemm_int8_plain(const Int8Gemm *g);
