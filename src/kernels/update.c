/* update.c: one step of an optimizer on arrays. */
#include "kernels/update.h"

#include <complex.h>
#include <math.h>

#include "base/float16.h"

#define LOAD(x) (x)
#define STORE(x) (x)
#define T float
#define C float
#define SQRT sqrtf
#define POW powf
#define EXP expf
#define ABS fabsf
#define NAME(x) x##_float
#include "kernels/update.inc"

#define T double
#define C double
#define SQRT sqrt
#define POW pow
#define EXP exp
#define ABS fabs
#define NAME(x) x##_double
#include "kernels/update.inc"

#undef LOAD
#undef STORE
#define LOAD(x) half_to_float(x)
#define STORE(x) float_to_half(x)
#define T uint16_t
#define C float
#define SQRT sqrtf
#define POW powf
#define EXP expf
#define ABS fabsf
#define NAME(x) x##_half
#include "kernels/update.inc"

#undef LOAD
#undef STORE
#define LOAD(x) bfloat16_to_float(x)
#define STORE(x) float_to_bfloat16(x)
#define T uint16_t
#define C float
#define SQRT sqrtf
#define POW powf
#define EXP expf
#define ABS fabsf
#define NAME(x) x##_bfloat16
#include "kernels/update.inc"

#undef LOAD
#undef STORE
#define LOAD(x) (x)
#define STORE(x) (x)
#define T float _Complex
#define C float _Complex
#define SQRT csqrtf
#define NAME(x) x##_complex64
#include "kernels/update_complex.inc"

#define T double _Complex
#define C double _Complex
#define SQRT csqrt
#define NAME(x) x##_complex128
#include "kernels/update_complex.inc"
