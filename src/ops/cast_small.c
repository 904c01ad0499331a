/* cast_small.c: casts from and to 8-bit floats and 4-bit integers, one byte each. */
#include "ops/cast_small.h"

#include "base/float16.h"
#include "base/float8.h"

static const int64_t LANES = INT64_MAX; /* nothing saturates */
#define IMAG(s) 0
#define CAST_LOOP CAST_LOOP_ONCE

#define S uint8_t
#define TO_INT32(v) to_int32((double)(v))
#define TO_INT64(v) to_int64((double)(v))
#define TO_UINT32(v) to_uint32((double)(v))
#define TO_UINT64(v) to_uint64((double)(v))
#define REAL(s) float8_value(s, 2, 5, 15, FLOAT8_IEEE)
#define FROM(to) e5m2_to_##to
#include "ops/cast_from.inc"
#undef REAL
#undef FROM
#define REAL(s) float8_value(s, 3, 4, 7, FLOAT8_FN)
#define FROM(to) e4m3_to_##to
#include "ops/cast_from.inc"
#undef REAL
#undef FROM
#undef TO_INT32
#undef TO_INT64
#undef TO_UINT32
#undef TO_UINT64

INLINE int32_t int4_value(uint8_t byte) {
    return (byte & 15) - ((byte & 8) << 1);
}
#define TO_INT32(v) (v)
#define TO_INT64(v) (v)
#define TO_UINT32(v) (uint32_t)(v)
#define TO_UINT64(v) (uint64_t)(v)
#define REAL(s) int4_value(s)
#define FROM(to) i4_to_##to
#include "ops/cast_from.inc"
#undef REAL
#undef FROM
#define REAL(s) ((s) & 15)
#define FROM(to) u4_to_##to
#include "ops/cast_from.inc"
#undef REAL
#undef FROM

#define TO_FLOAT8(S, from, to, VALUE, ...)                                                \
    static void from##_to_##to(const void *param, void *zs, const void *xs, int64_t n) {  \
        (void)param;                                                                      \
        const S *x = xs;                                                                  \
        uint8_t *z = zs;                                                                  \
        for (int64_t i = 0; i < n; i++) z[i] = float8_from_double(VALUE(x[i]), __VA_ARGS__); \
    }
#define ITSELF(v) (v)
#define E5M2_VALUE(v) float8_value(v, 2, 5, 15, FLOAT8_IEEE)
#define E4M3_VALUE(v) float8_value(v, 3, 4, 7, FLOAT8_FN)
TO_FLOAT8(float, f32, e5m2, ITSELF, 2, 5, 15, FLOAT8_IEEE)
TO_FLOAT8(double, f64, e5m2, ITSELF, 2, 5, 15, FLOAT8_IEEE)
TO_FLOAT8(uint16_t, f16, e5m2, half_to_float, 2, 5, 15, FLOAT8_IEEE)
TO_FLOAT8(uint16_t, bf16, e5m2, bfloat16_to_float, 2, 5, 15, FLOAT8_IEEE)
TO_FLOAT8(uint8_t, e4m3, e5m2, E4M3_VALUE, 2, 5, 15, FLOAT8_IEEE)
TO_FLOAT8(float, f32, e4m3, ITSELF, 3, 4, 7, FLOAT8_FN)
TO_FLOAT8(double, f64, e4m3, ITSELF, 3, 4, 7, FLOAT8_FN)
TO_FLOAT8(uint16_t, f16, e4m3, half_to_float, 3, 4, 7, FLOAT8_FN)
TO_FLOAT8(uint16_t, bf16, e4m3, bfloat16_to_float, 3, 4, 7, FLOAT8_FN)
TO_FLOAT8(uint8_t, e5m2, e4m3, E5M2_VALUE, 3, 4, 7, FLOAT8_FN)

/* Of an integer of any size only the lowest four bits stay: those of its first byte. */
#define TO_NIBBLE(bytes)                                                                         \
    static void nibble_of_##bytes(const void *param, void *zs, const void *xs, int64_t n) {      \
        (void)param;                                                                             \
        const uint8_t *x = xs;                                                                   \
        uint8_t *z = zs;                                                                         \
        for (int64_t i = 0; i < n; i++) z[i] = x[i * bytes] & 15;                                \
    }
TO_NIBBLE(1)
TO_NIBBLE(2)
TO_NIBBLE(4)
TO_NIBBLE(8)

#define TO_INTEGERS(from)                                                                                         \
    [DT_INT8] = from##_to_i8, [DT_INT16] = from##_to_i16, [DT_INT32] = from##_to_i32, [DT_INT64] = from##_to_i64, \
    [DT_UINT8] = from##_to_u8, [DT_UINT16] = from##_to_u16, [DT_UINT32] = from##_to_u32, [DT_UINT64] = from##_to_u64
#define TO_ALL(from)                                                                                  \
    TO_INTEGERS(from), [DT_FLOAT] = from##_to_f32, [DT_DOUBLE] = from##_to_f64, [DT_HALF] = from##_to_f16, \
        [DT_BFLOAT16] = from##_to_bf16, [DT_BOOL] = from##_to_bool, [DT_COMPLEX64] = from##_to_c64,   \
        [DT_COMPLEX128] = from##_to_c128

static UnaryLoop *const from_e5m2[DT_COUNT] = {TO_ALL(e5m2), [DT_FLOAT8_E4M3FN] = e5m2_to_e4m3};
static UnaryLoop *const from_e4m3[DT_COUNT] = {TO_ALL(e4m3), [DT_FLOAT8_E5M2] = e4m3_to_e5m2};
static UnaryLoop *const from_int4[DT_COUNT] = {TO_ALL(i4), [DT_UINT4] = nibble_of_1};
static UnaryLoop *const from_uint4[DT_COUNT] = {TO_ALL(u4), [DT_INT4] = nibble_of_1};
static UnaryLoop *const to_e5m2[DT_COUNT] = {[DT_FLOAT] = f32_to_e5m2, [DT_DOUBLE] = f64_to_e5m2, [DT_HALF] = f16_to_e5m2, [DT_BFLOAT16] = bf16_to_e5m2};
static UnaryLoop *const to_e4m3[DT_COUNT] = {[DT_FLOAT] = f32_to_e4m3, [DT_DOUBLE] = f64_to_e4m3, [DT_HALF] = f16_to_e4m3, [DT_BFLOAT16] = bf16_to_e4m3};
static UnaryLoop *const to_nibble[DT_COUNT] = {
    [DT_INT8] = nibble_of_1, [DT_UINT8] = nibble_of_1, [DT_INT16] = nibble_of_2, [DT_UINT16] = nibble_of_2,
    [DT_INT32] = nibble_of_4, [DT_UINT32] = nibble_of_4, [DT_INT64] = nibble_of_8, [DT_UINT64] = nibble_of_8};

UnaryLoop *cast_small_loop(DataType from, DataType to) {
    if (from >= DT_COUNT || to >= DT_COUNT) return NULL;
    if (from == DT_FLOAT8_E5M2) return from_e5m2[to];
    if (from == DT_FLOAT8_E4M3FN) return from_e4m3[to];
    if (from == DT_INT4) return from_int4[to];
    if (from == DT_UINT4) return from_uint4[to];
    if (to == DT_FLOAT8_E5M2) return to_e5m2[from];
    if (to == DT_FLOAT8_E4M3FN) return to_e4m3[from];
    if (to == DT_INT4 || to == DT_UINT4) return to_nibble[from];
    return NULL;
}
