/* vector_roots.h: 1 / sqrt(x) of arrays, the root and the quotient each rounded as IEEE wants it, whatever the processor. z may be x. */
#pragma once
#include "kernels/vector_library.h"

VectorFn vector_rsqrt;
DoubleVectorFn vector_rsqrt_f64;
