/* accumulate.h: arithmetic between rows of one type: to[i] = to[i] op from[i]. */
#pragma once
#include <stdint.h>

typedef void RowFn(void *to, const void *from, int64_t n);

/* Integers wrap; division by an integer zero gives zero. Members that make no sense for a type are NULL. */
typedef struct RowMath {
    RowFn *add, *sub, *mul, *div, *min, *max;
    RowFn *later_min, *later_max; /* of equal numbers, and where one is NaN, that of `from` */
    void (*add_rows)(void *to, const void *from, int64_t rows, int64_t n); /* rows that lie one behind the other, in this order */
    void (*divide)(void *to, double divisor, int64_t n);                   /* each element by one number */
    const void *zero, *one, *lowest, *highest;           /* one element each; lowest and highest are finite */
} RowMath;

extern const RowMath row_math_float, row_math_double, row_math_half, row_math_bfloat16;
extern const RowMath row_math_int8, row_math_int16, row_math_int32, row_math_int64;
extern const RowMath row_math_uint8, row_math_uint16, row_math_uint32, row_math_uint64;
extern const RowMath row_math_complex64, row_math_complex128;
extern const RowMath row_math_bool; /* add and max are "or", mul and min are "and" */
