/* vector_math.c: exp, log, tanh, sigmoid, sin, cos and erf without branches or calls, so that compilers make vector code of the loops;
 * compiled for each instruction set, the best one chosen when first used. */
#include "kernels/vector_math.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/float16.h"

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define NO_OVERLAP
#else
#define NO_OVERLAP _Pragma("GCC ivdep")
#endif

/* ---- One element ---- */

/* ln 2 in two parts; the first has few bits, so that its multiples are exact. */
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f

/* e^x = 2^n * e^r with |r| <= ln 2 / 2. Adding ROUNDER leaves n in the low bits. */
typedef struct Power {
    float of_rest; /* e^r */
    float rest, beyond; /* r, e^r - 1 - r */
    int32_t of_two;
} Power;
INLINE Power power_of(float x) {
    const float ROUNDER = 12582912.0f; /* 1.5 * 2^23 */
    float shifted = x * 1.44269504f + ROUNDER, n = shifted - ROUNDER;
    float r = x - n * LN2_HIGH - n * LN2_LOW;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r);
    return (Power){p + r + 1, r, p, (int32_t)(float_bits(shifted) - float_bits(ROUNDER))};
}

INLINE float exp_of(float x) {
    x = x > 89 ? 89 : x; /* infinite and 0 from there on; NaN stays */
    x = x < -104 ? -104 : x;
    const Power power = power_of(x);
    const int32_t half = power.of_two >> 1; /* 2^n in two factors: n may be beyond what one exponent can hold */
    return power.of_rest * float_from_bits((uint32_t)(half + 127) << 23) * float_from_bits((uint32_t)(power.of_two - half + 127) << 23);
}

/* x = 2^e * m with m between the roots of 1/2 and 2. */
INLINE float log_of(float x) {
    const uint32_t root = 0x3f3504f3u;              /* of 1/2 */
    uint32_t shift = -(uint32_t)(x < FLT_MIN) & 25; /* subnormal, 0 or negative: 25 powers of two more */
    uint32_t bits = float_bits(x * float_from_bits((127 + shift) << 23));
    int32_t e = (int32_t)(bits - root) >> 23;
    float m = float_from_bits(bits - ((uint32_t)e << 23)) - 1, power = (float)(e - (int32_t)shift), square = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = p * m * square + power * LN2_LOW - 0.5f * square;
    float z = m + y + power * LN2_HIGH;
    float special = sqrtf(x) - 1 / fabsf(x); /* infinity stays, 0 gives minus infinity, below is NaN */
    uint32_t ordinary = -(uint32_t)((x > 0) & (x <= FLT_MAX)); /* all bits or none */
    return float_from_bits((float_bits(z) & ordinary) | (float_bits(special) & ~ordinary));
}

INLINE float tanh_of(float x) {
    float a = fabsf(x), square = x * x;
    const Power power = power_of(a > 10 ? 20 : 2 * a); /* from there on it is 1; NaN stays */
    float far = 1 - 2 / (power.of_rest * float_from_bits((uint32_t)(power.of_two + 127) << 23) + 1);
    float p = -5.70498872745e-3f;
    p = p * square + 2.06390887954e-2f;
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    float near = p * square * x + x;
    return a < 0.625f ? near : copysignf(far, x);
}

INLINE float sigmoid_of(float x) {
    float e = exp_of(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e); /* for x < 0 e^x keeps small results */
}

/* sin and cos in double, which makes up for what is lost when multiples of a quarter turn are taken away: exact to 2^20 of them. The first part of pi / 2 has
   33 bits. Polynomials for |r| <= pi / 4. `ahead` quarters are added. */
#define TURNS_MOST 1e6f
INLINE float sine_of(float x, int64_t ahead) {
    const double ROUNDER = 6755399441055744.0; /* 1.5 * 2^52 */
    union {
        double value;
        int64_t bits;
    } shifted = {(double)x * 0.63661977236758134308 + ROUNDER};
    const double n = shifted.value - ROUNDER, r = ((double)x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11, square = r * r;
    double sine = 2.7183114939898219064e-6;
    sine = sine * square - 1.98393348360966317347e-4;
    sine = sine * square + 8.3333293858894631756e-3;
    sine = sine * square - 1.66666666416265235595e-1;
    sine = r * (sine * square + 1); /* of -0 it is -0 */
    double cosine = 2.43904487962774090654e-5;
    cosine = cosine * square - 1.38867637746099294692e-3;
    cosine = cosine * square + 4.16666233237390631894e-2;
    cosine = cosine * square - 4.99999997251031003120e-1;
    cosine = cosine * square + 1;
    const int64_t quarter = shifted.bits + ahead;
    const double value = quarter & 1 ? cosine : sine;
    return (float)(quarter & 2 ? -value : value);
}

/* A quotient of polynomials, in double: 1.1 units in the last place without products that are added unrounded. */
INLINE float erf_by_quotient(float x) {
    double a = (double)x > 4 ? 4 : (double)x;
    a = a < -4 ? -4 : a;
    const double square = a * a;
    double p = -2.72614225801306e-10, q = -1.45660718464996e-05;
    p = p * square + 2.77068142495902e-08;
    p = p * square - 2.10102402082508e-06;
    p = p * square - 5.69250639462346e-05;
    p = p * square - 7.34990630326855e-04;
    p = p * square - 2.95459980854025e-03;
    p = p * square - 1.60960333262415e-02;
    q = q * square - 2.13374055278905e-04;
    q = q * square - 1.68282697438203e-03;
    q = q * square - 7.37332916720468e-03;
    q = q * square - 1.42647390514189e-02;
    return (float)(a * p / q);
}

/* With such products, in float: 1 - e^y, where y is x times a polynomial. What e^y is more than its power of two is kept apart, so that nothing is lost
 * where e^y is near 1. */
INLINE float erf_by_power(float x) {
    float a = fabsf(x);
    a = a > 4 ? 4 : a; /* 1 from there on; NaN stays */
    float p = 9.2563177e-6f;
    p = p * a - 1.17641706e-4f;
    p = p * a + 6.3283829e-4f;
    p = p * a - 1.66702981e-3f;
    p = p * a + 1.60398108e-4f;
    p = p * a + 1.91530623e-2f;
    p = p * a - 1.02777831e-1f;
    p = p * a - 6.36619389e-1f;
    p = p * a - 1.28379166e-1f;
    const float y = p * a - a, lost = p * a - (y + a); /* by rounding y */
    const Power power = power_of(y);
    const float two = float_from_bits((uint32_t)(power.of_two + 127) << 23), less = power.beyond + lost + power.rest;
    return copysignf(1 - two - two * less, x);
}

/* ---- Loops, for each instruction set ---- */

#define NAME(f) f##_plain
#define TARGET
#define LOOP
#define ERF erf_by_quotient
#include "kernels/vector_math.inc"
#undef NAME
#undef TARGET
#undef LOOP
#undef ERF

#define LOOP static
#define ERF erf_by_power
#if defined(__x86_64__)
#define NAME(f) f##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#include "kernels/vector_math.inc"
#undef NAME
#undef TARGET

#define NAME(f) f##_avx512
#if defined(__clang__)
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
#else
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512")))
#endif
#include "kernels/vector_math.inc"
#undef NAME
#undef TARGET

enum { LEVEL_PLAIN, LEVEL_AVX2, LEVEL_AVX512 };
static int level(void) {
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return avx2 && avx512 ? LEVEL_AVX512 : avx2 ? LEVEL_AVX2 : LEVEL_PLAIN;
}
#define BEST(f) (level() == LEVEL_AVX512 ? f##_avx512 : level() == LEVEL_AVX2 ? f##_avx2 : f##_plain)
#else
#define BEST(f) f##_plain
#endif

void vector_exp(float *z, const float *x, int64_t n) {
    BEST(vector_exp)(z, x, n);
}
void vector_log(float *z, const float *x, int64_t n) {
    BEST(vector_log)(z, x, n);
}
void vector_tanh(float *z, const float *x, int64_t n) {
    BEST(vector_tanh)(z, x, n);
}
void vector_sigmoid(float *z, const float *x, int64_t n) {
    BEST(vector_sigmoid)(z, x, n);
}
void vector_erf(float *z, const float *x, int64_t n) {
    BEST(vector_erf)(z, x, n);
}

/* Angles beyond what is exact, infinities among them, are left to the C library. */
static void waves(VectorFn *loop, float (*far)(float), float *z, const float *x, int64_t n) {
    enum { BLOCK = 256 };
    float block[BLOCK]; /* z may be x */
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t count = n - start < BLOCK ? n - start : BLOCK;
        loop(block, x + start, count);
        int beyond = 0;
        for (int64_t i = 0; i < count; i++) beyond |= fabsf(x[start + i]) > TURNS_MOST;
        for (int64_t i = 0; beyond && i < count; i++)
            if (fabsf(x[start + i]) > TURNS_MOST) block[i] = far(x[start + i]);
        memcpy(z + start, block, (size_t)count * sizeof *z);
    }
}
void vector_sin(float *z, const float *x, int64_t n) {
    waves(BEST(near_sin), sinf, z, x, n);
}
void vector_cos(float *z, const float *x, int64_t n) {
    waves(BEST(near_cos), cosf, z, x, n);
}
