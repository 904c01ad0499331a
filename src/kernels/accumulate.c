/* accumulate.c: arithmetic between rows of one type. */
#include "kernels/accumulate.h"

#include <complex.h>
#include <float.h>
#include <stdbool.h>

#include "base/float16.h"

/* ---- Integers: T wraps, so it is computed in the unsigned type U. */
#define LOAD(x) (x)
#define STORE(x) ((T)(x))
#define ADD(a, b) ((U)(a) + (U)(b))
#define SUB(a, b) ((U)(a) - (U)(b))
#define MUL(a, b) ((U)(a) * (U)(b))
#define DIV(a, b) ((b) == 0 ? (U)0 : (U)(b) == (U)-1 ? (U)0 - (U)(a) : (U)((a) / (b)))
#define FROM_DOUBLE(d) ((T)(int64_t)(d))
#define ONE 1

#define T int8_t
#define U uint32_t
#define NAME(x) x##_int8
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#include "kernels/accumulate.inc"
#define T int16_t
#define U uint32_t
#define NAME(x) x##_int16
#define LOWEST INT16_MIN
#define HIGHEST INT16_MAX
#include "kernels/accumulate.inc"
#define T int32_t
#define U uint32_t
#define NAME(x) x##_int32
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "kernels/accumulate.inc"
#define T int64_t
#define U uint64_t
#define NAME(x) x##_int64
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "kernels/accumulate.inc"
#undef DIV
#define DIV(a, b) ((b) == 0 ? (U)0 : (U)((a) / (b)))
#define T uint8_t
#define U uint32_t
#define NAME(x) x##_uint8
#define LOWEST 0
#define HIGHEST UINT8_MAX
#include "kernels/accumulate.inc"
#define T uint16_t
#define U uint32_t
#define NAME(x) x##_uint16
#define LOWEST 0
#define HIGHEST UINT16_MAX
#include "kernels/accumulate.inc"
#define T uint32_t
#define U uint32_t
#define NAME(x) x##_uint32
#define LOWEST 0
#define HIGHEST UINT32_MAX
#include "kernels/accumulate.inc"
#define T uint64_t
#define U uint64_t
#define NAME(x) x##_uint64
#define LOWEST 0
#define HIGHEST UINT64_MAX
#include "kernels/accumulate.inc"

/* ---- Floating point. */
#undef ADD
#undef SUB
#undef MUL
#undef DIV
#undef STORE
#undef FROM_DOUBLE
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define STORE(x) (x)
#define FROM_DOUBLE(d) ((U)(d))

#define T float
#define U float
#define NAME(x) x##_float
#define LOWEST (-FLT_MAX)
#define HIGHEST FLT_MAX
#include "kernels/accumulate.inc"
#define T double
#define U double
#define NAME(x) x##_double
#define LOWEST (-DBL_MAX)
#define HIGHEST DBL_MAX
#include "kernels/accumulate.inc"

#define T float complex
#define U float complex
#define NAME(x) x##_complex64
#define UNORDERED
#include "kernels/accumulate.inc"
#define T double complex
#define U double complex
#define NAME(x) x##_complex128
#define UNORDERED
#include "kernels/accumulate.inc"

/* ---- 16-bit floats, computed in float and rounded. */
#undef LOAD
#undef STORE
#undef ONE
#define T uint16_t
#define U float
#define LOAD(x) half_to_float(x)
#define STORE(x) float_to_half(x)
#define NAME(x) x##_half
#define ONE 0x3c00
#define LOWEST 0xfbff
#define HIGHEST 0x7bff
#include "kernels/accumulate.inc"
#undef LOAD
#undef STORE
#undef ONE
#define T uint16_t
#define U float
#define LOAD(x) bfloat16_to_float(x)
#define STORE(x) float_to_bfloat16(x)
#define NAME(x) x##_bfloat16
#define ONE 0x3f80
#define LOWEST 0xff7f
#define HIGHEST 0x7f7f
#include "kernels/accumulate.inc"

/* ---- Booleans. */
static void or_bool(void *to_data, const void *from_data, int64_t n) {
    bool *to = to_data;
    const bool *from = from_data;
    for (int64_t i = 0; i < n; i++) to[i] = to[i] || from[i];
}

static void and_bool(void *to_data, const void *from_data, int64_t n) {
    bool *to = to_data;
    const bool *from = from_data;
    for (int64_t i = 0; i < n; i++) to[i] = to[i] && from[i];
}

static const bool bool_false = false, bool_true = true;
const RowMath row_math_bool = {.add = or_bool,
                               .mul = and_bool,
                               .min = and_bool,
                               .max = or_bool,
                               .zero = &bool_false,
                               .one = &bool_true,
                               .lowest = &bool_false,
                               .highest = &bool_true};
