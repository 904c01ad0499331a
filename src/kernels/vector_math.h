/* vector_math.h: functions of float arrays, several elements at a time with the instructions the processor has. Within 1.1
 * units in the last place, erf within 1.4, sigmoid within 2.5. z may be x. */
#pragma once
#include <stdint.h>

typedef void VectorFn(float *z, const float *x, int64_t n);
VectorFn vector_exp, vector_log, vector_tanh, vector_sigmoid, vector_sin, vector_cos, vector_erf;

/* The same loops without such instructions: the reference. */
VectorFn vector_exp_plain, vector_log_plain, vector_tanh_plain, vector_sigmoid_plain, vector_erf_plain;
