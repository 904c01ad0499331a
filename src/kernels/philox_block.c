/* philox_block.c: many numbers of a Philox generator at once, for each instruction set; base/rng.c is the reference. */
#include "kernels/philox_block.h"

#include <string.h>

#include "kernels/cpu.h"

static void block_plain(const Philox *start, uint64_t apart, uint32_t *out, int64_t groups) {
    Philox p = *start;
    for (int64_t i = 0; i < groups; i++) {
        Philox own = p;
        philox_next(&own, out + i * 4);
        philox_skip(&p, apart);
    }
}

#if CPU_HAS_VECTORS
#include <immintrin.h>

typedef uint64_t Words4 __attribute__((vector_size(32)));
typedef uint64_t Words8 __attribute__((vector_size(64)));

#define V Words4
#define WORDS 4
#define VECTORS 2
#define CPU(f) f##_avx2
#define TARGET CPU_TARGET_AVX2
#define SPLAT(x) ((V)_mm256_set1_epi64x((long long)(x)))
#define LOAD(p) ((V)_mm256_loadu_si256((const void *)(p)))
#define STORE(p, v) _mm256_storeu_si256((void *)(p), (__m256i)(v))
#define MULTIPLY(x, y) ((V)_mm256_mul_epu32((__m256i)(x), (__m256i)(y)))
#include "kernels/philox_block.inc"

#define V Words8
#define WORDS 8
#define VECTORS 4
#define CPU(f) f##_avx512
#define TARGET CPU_TARGET_AVX512
#define SPLAT(x) ((V)_mm512_set1_epi64((long long)(x)))
#define LOAD(p) ((V)_mm512_loadu_si512((const void *)(p)))
#define STORE(p, v) _mm512_storeu_si512((void *)(p), (__m512i)(v))
#define MULTIPLY(x, y) ((V)_mm512_mul_epu32((__m512i)(x), (__m512i)(y)))
#include "kernels/philox_block.inc"
#endif

#define CPU_BODY "kernels/philox_uniform.inc"
#include "kernels/each_cpu.inc"

void philox_block(const Philox *start, uint64_t apart, uint32_t *out, int64_t groups) {
    CPU_PICK(block)(start, apart, out, groups);
}

void uniform_floats(const uint32_t *x, float *out, int64_t n) {
    CPU_PICK(floats)(x, out, n);
}

void uniform_doubles(const uint32_t *x, double *out, int64_t n) {
    CPU_PICK(doubles)(x, out, n);
}
