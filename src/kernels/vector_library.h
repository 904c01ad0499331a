/* vector_library.h: more functions of arrays, by the C library's vectors: within 4 units in the last place. z may be x or y. */
#pragma once
#include "kernels/vector_math.h"

VectorFn vector_expm1, vector_log1p, vector_tan, vector_asin, vector_acos, vector_atan, vector_sinh, vector_cosh, vector_asinh, vector_acosh, vector_atanh,
    vector_erfc;
void vector_atan2(float *z, const float *x, const float *y, int64_t n);

typedef void DoubleVectorFn(double *z, const double *x, int64_t n);
DoubleVectorFn vector_exp_f64, vector_expm1_f64, vector_log_f64, vector_log1p_f64, vector_sin_f64, vector_cos_f64, vector_tan_f64, vector_asin_f64,
    vector_acos_f64, vector_atan_f64, vector_sinh_f64, vector_cosh_f64, vector_tanh_f64, vector_asinh_f64, vector_acosh_f64, vector_atanh_f64, vector_erf_f64,
    vector_erfc_f64, vector_sigmoid_f64;
void vector_atan2_f64(double *z, const double *x, const double *y, int64_t n);
