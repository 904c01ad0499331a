/* linalg.c: factorisations of small dense matrices, once for double and once for Complex. */
#include "kernels/linalg.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Without the search for infinities in what is not a number that C has for it. */
static inline Complex times(Complex x, Complex y) {
    return __builtin_complex(creal(x) * creal(y) - cimag(x) * cimag(y), creal(x) * cimag(y) + cimag(x) * creal(y));
}

#define T double
#define TIMES(x, y) ((x) * (y))
#define NAME(f) f##_f64
#define CONJ(x) (x)
#define REAL(x) (x)
#define IMAG(x) 0.0
#define ABS(x) fabs(x)
#define ABS2(x) ((x) * (x))
#include "kernels/linalg_factor.inc"
#include "kernels/linalg_eigen.inc"
#undef T
#undef TIMES
#undef NAME
#undef CONJ
#undef REAL
#undef IMAG
#undef ABS
#undef ABS2

#define T Complex
#define TIMES(x, y) times(x, y)
#define NAME(f) f##_c128
#define CONJ(x) conj(x)
#define REAL(x) creal(x)
#define IMAG(x) cimag(x)
#define ABS(x) cabs(x)
#define ABS2(x) (creal(x) * creal(x) + cimag(x) * cimag(x))
#include "kernels/linalg_factor.inc"
#include "kernels/linalg_eigen.inc"
