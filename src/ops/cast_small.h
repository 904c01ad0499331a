/* cast_small.h: casts from and to 8-bit floats and 4-bit integers; and how a float becomes an integer. */
#pragma once
#include <stdint.h>

#include "ops/elementwise.h"

/* NULL when TensorFlow has no such cast either. */
UnaryLoop *cast_small_loop(DataType from, DataType to);

/* A float that does not fit becomes what an x86 processor makes of it: the least number of the type it is converted in,
 * int32 for small types. */
INLINE int32_t to_int32(double v) {
    return v > -2147483649.0 && v < 2147483648.0 ? (int32_t)v : INT32_MIN;
}
INLINE int64_t to_int64(double v) {
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}
INLINE uint32_t to_uint32(double v) {
    return v > -2147483649.0 && v < 4294967296.0 ? (uint32_t)(int64_t)v : 0x80000000u;
}
INLINE uint64_t to_uint64(double v) {
    if (v >= 0x1p63 && v < 0x1p64) return (uint64_t)v;
    return (uint64_t)to_int64(v);
}

/* The same of a float: the limits are floats, and no rounding lies between. */
INLINE int32_t float_to_int32(float v) {
    return v >= -0x1p31f && v < 0x1p31f ? (int32_t)v : INT32_MIN;
}

/* CAST_LOOP of cast_from.inc: compiled once, or for each level of processors. */
#define CAST_LOOP_ONCE(name, row) \
    static void name UNARY_PARAMS { (void)param; row(z, x, n); }
#define CAST_LOOP_EACH(name, row) CPU_LOOP(name, UNARY_PARAMS, UNARY_ARGS, (void)param; row(z, x, n))

INLINE int32_t clamp(int32_t v, int32_t low, int32_t high) {
    return v < low ? low : v > high ? high : v;
}
