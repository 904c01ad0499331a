/* half_rows.c: conversions of half and bfloat16, for each instruction set. */
#include "kernels/half_rows.h"

#include "base/float16.h"
#include "kernels/cpu.h"
#if CPU_HAS_VECTORS
#include <immintrin.h>
#endif

static void half_widen_plain(float *z, const uint16_t *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) z[i] = half_to_float(x[i]);
}
static void half_narrow_plain(uint16_t *z, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) z[i] = float_to_half(x[i]);
}
static inline __attribute__((always_inline)) void narrow_bfloat16(uint16_t *z, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) z[i] = float_to_bfloat16(x[i]);
}
static void bfloat16_narrow_plain(uint16_t *z, const float *x, int64_t n) {
    narrow_bfloat16(z, x, n);
}

#if CPU_HAS_VECTORS
/* Every processor with AVX2 has these conversions. */
#define TARGET_AVX2 __attribute__((target("avx2,f16c")))
TARGET_AVX2 static void half_widen_avx2(float *z, const uint16_t *x, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(z + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    half_widen_plain(z + i, x + i, n - i);
}
TARGET_AVX2 static void half_narrow_avx2(uint16_t *z, const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(z + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    half_narrow_plain(z + i, x + i, n - i);
}
CPU_TARGET_AVX2 static void bfloat16_narrow_avx2(uint16_t *z, const float *x, int64_t n) {
    narrow_bfloat16(z, x, n);
}
CPU_TARGET_AVX512 static void bfloat16_narrow_avx512(uint16_t *z, const float *x, int64_t n) {
    narrow_bfloat16(z, x, n);
}
CPU_TARGET_AVX512 static void half_widen_avx512(float *z, const uint16_t *x, int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(z + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
    half_widen_plain(z + i, x + i, n - i);
}
CPU_TARGET_AVX512 static void half_narrow_avx512(uint16_t *z, const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(z + i), _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    half_narrow_plain(z + i, x + i, n - i);
}
#endif

void half_widen(float *z, const uint16_t *x, int64_t n) {
    CPU_PICK(half_widen)(z, x, n);
}
void half_narrow(uint16_t *z, const float *x, int64_t n) {
    CPU_PICK(half_narrow)(z, x, n);
}
void bfloat16_widen(float *z, const uint16_t *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) z[i] = bfloat16_to_float(x[i]);
}
void bfloat16_narrow(uint16_t *z, const float *x, int64_t n) {
    CPU_PICK(bfloat16_narrow)(z, x, n);
}

static void map(VectorFn *f, WidenFn *widen, NarrowFn *narrow, uint16_t *z, const uint16_t *x, int64_t n) {
    enum { BLOCK = 512 };
    float block[BLOCK];
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t count = n - start < BLOCK ? n - start : BLOCK;
        widen(block, x + start, count);
        f(block, block, count);
        narrow(z + start, block, count);
    }
}
void half_map(VectorFn *f, uint16_t *z, const uint16_t *x, int64_t n) {
    map(f, half_widen, half_narrow, z, x, n);
}
void bfloat16_map(VectorFn *f, uint16_t *z, const uint16_t *x, int64_t n) {
    map(f, bfloat16_widen, bfloat16_narrow, z, x, n);
}
