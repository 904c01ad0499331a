/* float8.h: the values of 8- and 4-bit floats, kept as bytes; only read, never computed with. */
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
