/* vector_library.c: functions of arrays by the C library's functions of vectors (libmvec); elsewhere by those of one number. */
#include "kernels/vector_library.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu.h"

#define INLINE static inline __attribute__((always_inline))
#define FLOAT_FUNCTIONS \
    ONE(expm1) ONE(log1p) ONE(tan) ONE(asin) ONE(acos) ONE(atan) ONE(sinh) ONE(cosh) ONE(asinh) ONE(acosh) ONE(atanh) ONE(erfc) TWO(atan2)
#define DOUBLE_FUNCTIONS FLOAT_FUNCTIONS ONE(exp) ONE(log) ONE(sin) ONE(cos) ONE(tanh) ONE(erf)

/* ---- One number at a time: the reference ---- */

#define ONE(op)                                                              \
    static void op##_f32_plain(float *z, const float *x, int64_t n) {        \
        for (int64_t i = 0; i < n; i++) z[i] = op##f(x[i]);                  \
    }
#define TWO(op)                                                                          \
    static void op##_f32_plain(float *z, const float *x, const float *y, int64_t n) {    \
        for (int64_t i = 0; i < n; i++) z[i] = op##f(x[i], y[i]);                        \
    }
FLOAT_FUNCTIONS
#undef ONE
#undef TWO
#define ONE(op)                                                         \
    static void op##_f64_plain(double *z, const double *x, int64_t n) { \
        for (int64_t i = 0; i < n; i++) z[i] = op(x[i]);                \
    }
#define TWO(op)                                                                            \
    static void op##_f64_plain(double *z, const double *x, const double *y, int64_t n) {   \
        for (int64_t i = 0; i < n; i++) z[i] = op(x[i], y[i]);                             \
    }
DOUBLE_FUNCTIONS
#undef ONE
#undef TWO

/* ---- Vectors ---- */

#if CPU_HAS_VECTORS && defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35)
#define PICK(f) CPU_PICK(f)
typedef float Floats8 __attribute__((vector_size(32)));
typedef float Floats16 __attribute__((vector_size(64)));
typedef double Doubles4 __attribute__((vector_size(32)));
typedef double Doubles8 __attribute__((vector_size(64)));

#define T float
#define FUNCTIONS FLOAT_FUNCTIONS
#define NAME(op) op##_f32_avx2
#define TARGET CPU_TARGET_AVX2
#define VECTOR Floats8
#define LANES 8
#define FUNCTION(v, op) _ZGVdN8##v##_##op##f
#include "kernels/vector_library.inc"
#undef NAME
#undef TARGET
#undef VECTOR
#undef LANES
#undef FUNCTION
#define NAME(op) op##_f32_avx512
#define TARGET CPU_TARGET_AVX512
#define VECTOR Floats16
#define LANES 16
#define FUNCTION(v, op) _ZGVeN16##v##_##op##f
#include "kernels/vector_library.inc"
#undef T
#undef FUNCTIONS
#undef NAME
#undef TARGET
#undef VECTOR
#undef LANES
#undef FUNCTION

#define T double
#define FUNCTIONS DOUBLE_FUNCTIONS
#define NAME(op) op##_f64_avx2
#define TARGET CPU_TARGET_AVX2
#define VECTOR Doubles4
#define LANES 4
#define FUNCTION(v, op) _ZGVdN4##v##_##op
#include "kernels/vector_library.inc"
#undef NAME
#undef TARGET
#undef VECTOR
#undef LANES
#undef FUNCTION
#define NAME(op) op##_f64_avx512
#define TARGET CPU_TARGET_AVX512
#define VECTOR Doubles8
#define LANES 8
#define FUNCTION(v, op) _ZGVeN8##v##_##op
#include "kernels/vector_library.inc"
#undef T
#undef FUNCTIONS
#undef NAME
#undef TARGET
#undef VECTOR
#undef LANES
#undef FUNCTION
#else
#define PICK(f) f##_plain
#endif

#define ONE(op)                                                \
    void vector_##op(float *z, const float *x, int64_t n) {    \
        PICK(op##_f32)(z, x, n);                               \
    }
#define TWO(op)                                                                \
    void vector_##op(float *z, const float *x, const float *y, int64_t n) {    \
        PICK(op##_f32)(z, x, y, n);                                            \
    }
FLOAT_FUNCTIONS
#undef ONE
#undef TWO
#define ONE(op)                                                     \
    void vector_##op##_f64(double *z, const double *x, int64_t n) { \
        PICK(op##_f64)(z, x, n);                                    \
    }
#define TWO(op)                                                                        \
    void vector_##op##_f64(double *z, const double *x, const double *y, int64_t n) {   \
        PICK(op##_f64)(z, x, y, n);                                                    \
    }
DOUBLE_FUNCTIONS

void vector_sigmoid_f64(double *z, const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) z[i] = -x[i];
    vector_exp_f64(z, z, n);
    for (int64_t i = 0; i < n; i++) z[i] = 1 / (1 + z[i]);
}
