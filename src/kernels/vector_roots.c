/* vector_roots.c: 1 / sqrt(x) of arrays, for each instruction set. A processor divides and takes roots in one unit, which both would wait for; where it
 * has approximations of quotients they are refined to the bit instead. */
#include "kernels/vector_roots.h"

#include <math.h>

#include "kernels/cpu.h"

#define INLINE static inline __attribute__((always_inline))

INLINE void rsqrt_row(float *z, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) z[i] = 1 / sqrtf(x[i]);
}
INLINE void rsqrt_row_f64(double *z, const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) z[i] = 1 / sqrt(x[i]);
}
static void rsqrt_plain(float *z, const float *x, int64_t n) {
    rsqrt_row(z, x, n);
}
static void rsqrt_f64_plain(double *z, const double *x, int64_t n) {
    rsqrt_row_f64(z, x, n);
}

#if CPU_HAS_VECTORS
#include <immintrin.h>

CPU_TARGET_AVX2 static void rsqrt_avx2(float *z, const float *x, int64_t n) {
    rsqrt_row(z, x, n);
}
CPU_TARGET_AVX2 static void rsqrt_f64_avx2(double *z, const double *x, int64_t n) {
    rsqrt_row_f64(z, x, n);
}
CPU_TARGET_AVX512 static void rsqrt_f64_avx512(double *z, const double *x, int64_t n) {
    rsqrt_row_f64(z, x, n);
}

/* One of Newton's steps makes of 14 bits a number within one unit in the last place of 1 / s, a second one of that the number nearest to 1 / s (Markstein), but
 * for an s whose fraction is all ones: that may end one below, where the last bit is 0. Of 0, infinity and NaN the approximation is the quotient itself,
 * and the rest of the first step is NaN; roots of other numbers are far from where quotients lose bits. */
CPU_TARGET_AVX512 INLINE __m512 rsqrt_vector(__m512 x) {
    const __m512i ones = _mm512_set1_epi32(0x7fffff);
    const __m512 one = _mm512_set1_ps(1), s = _mm512_sqrt_ps(x), about = _mm512_rcp14_ps(s);
    const __m512 rest = _mm512_fnmadd_ps(s, about, one), near = _mm512_fmadd_ps(about, rest, about);
    const __m512 nearest = _mm512_fmadd_ps(near, _mm512_fnmadd_ps(s, near, one), near);
    const __mmask16 below = _mm512_cmpeq_epi32_mask(_mm512_and_si512(_mm512_castps_si512(s), ones), ones);
    const __mmask16 ordinary = _mm512_cmp_ps_mask(rest, rest, _CMP_ORD_Q);
    const __m512i bits = _mm512_castps_si512(nearest);
    return _mm512_mask_mov_ps(about, ordinary, _mm512_castsi512_ps(_mm512_mask_or_epi32(bits, below, bits, _mm512_set1_epi32(1))));
}
CPU_TARGET_AVX512 static void rsqrt_avx512(float *z, const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(z + i, rsqrt_vector(_mm512_loadu_ps(x + i)));
    const __mmask16 left = (__mmask16)((1u << (n - i)) - 1);
    if (left) _mm512_mask_storeu_ps(z + i, left, rsqrt_vector(_mm512_maskz_loadu_ps(left, x + i)));
}
#endif

void vector_rsqrt(float *z, const float *x, int64_t n) {
    CPU_PICK(rsqrt)(z, x, n);
}
void vector_rsqrt_f64(double *z, const double *x, int64_t n) {
    CPU_PICK(rsqrt_f64)(z, x, n);
}
