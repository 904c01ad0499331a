/* float8.h: the values of 8- and 4-bit floats, kept as bytes; read and made, never computed with. */
#pragma once
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Sign, exponent and `mantissa_bits` below; `special` says what the largest exponent or the negative zero mean. */
typedef enum Float8Special {
    FLOAT8_IEEE, /* the largest exponent is infinity and NaN */
    FLOAT8_FN,   /* no infinity; all ones are NaN */
    FLOAT8_FNUZ, /* no infinity, no negative zero: its bits are NaN */
    FLOAT8_FINITE,
} Float8Special;

static inline float float8_value(uint8_t bits, int mantissa_bits, int exponent_bits, int bias, Float8Special special) {
    int width = mantissa_bits + exponent_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
    int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1), largest = (1 << exponent_bits) - 1;
    bool negative = (bits >> width) & 1;
    int rest = bits & ((1 << width) - 1);
    if (special == FLOAT8_FNUZ && negative && rest == 0) return NAN;
    if (special == FLOAT8_FN && rest == (1 << width) - 1) return NAN;
    if (special == FLOAT8_IEEE && exponent == largest) return mantissa ? NAN : negative ? -INFINITY : INFINITY;
    float v = exponent ? ldexpf((float)((1 << mantissa_bits) + mantissa), exponent - bias - mantissa_bits)
                       : ldexpf((float)mantissa, 1 - bias - mantissa_bits);
    return negative ? -v : v;
}

/* The nearest float of eight bits, the even one of two; what is too large is infinity, or NaN where there is none. */
static inline uint8_t float8_from_double(double v, int mantissa_bits, int exponent_bits, int bias, Float8Special special) {
    const int width = mantissa_bits + exponent_bits, all = (1 << width) - 1;
    const int infinity = special == FLOAT8_IEEE ? ((1 << exponent_bits) - 1) << mantissa_bits : all;
    const uint8_t sign = signbit(v) ? (uint8_t)(1 << width) : 0;
    if (isnan(v)) return sign | (uint8_t)(special == FLOAT8_IEEE ? infinity | 1 << (mantissa_bits - 1) : all);
    if (isinf(v)) return sign | (uint8_t)infinity;
    if (v == 0) return sign;
    int exponent;
    frexp(v, &exponent); /* v is 0.5 to 1 times two to that */
    if (exponent < 2 - bias) exponent = 2 - bias;
    if (exponent - 1 + bias >= 1 << exponent_bits) return sign | (uint8_t)infinity;
    /* In units of the last place; below the least normal number the exponent stays and the leading one is missing. */
    const long units = lrint(ldexp(fabs(v), mantissa_bits + 1 - exponent));
    const long bits = units + ((long)(exponent + bias - 2) << mantissa_bits);
    return sign | (uint8_t)(bits < infinity ? bits : infinity);
}
