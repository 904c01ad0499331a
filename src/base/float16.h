/* float16.h: half and bfloat16, kept as uint16_t and computed in float; rounding is to nearest, ties to even. */
#pragma once
#include <stdint.h>
#include <string.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

static inline uint32_t float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline float float_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float half_to_float(uint16_t h) {
#if defined(__F16C__)
    return _cvtsh_ss(h);
#else
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t rest = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t exponent = rest & 0x0f800000u;
    if (exponent == 0x0f800000u) return float_from_bits(sign | 0x70000000u | rest); /* infinity and NaN */
    if (exponent != 0) return float_from_bits(sign | (rest + 0x38000000u));
    /* Subnormal: 2^-14 in front of the fraction, then taken off again. */
    float small = float_from_bits(0x38800000u + rest) - float_from_bits(0x38800000u);
    return float_from_bits(sign | float_bits(small));
#endif
}

static inline uint16_t float_to_half(float f) {
#if defined(__F16C__)
    return _cvtss_sh(f, 0);
#else
    uint32_t u = float_bits(f), sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((u >> 13) & 0x3ffu));
    if (u >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
    if (u < 0x38800000u) {
        /* The result is subnormal: adding 1/2 lets the float adder do the rounding. */
        float aligned = float_from_bits(u) + 0.5f;
        return (uint16_t)(sign | (float_bits(aligned) - 0x3f000000u));
    }
    u += 0xc8000fffu + ((u >> 13) & 1u);
    return (uint16_t)(sign | (u >> 13));
#endif
}

static inline float bfloat16_to_float(uint16_t b) {
    return float_from_bits((uint32_t)b << 16);
}

static inline uint16_t float_to_bfloat16(float f) {
    uint32_t u = float_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 31) ? 0xffc0u : 0x7fc0u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
