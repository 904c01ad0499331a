/* special_vectors.h: functions of arrays of doubles that the C library lacks, with the instructions the processor has.
 * z may be x. */
#pragma once
#include "kernels/vector_library.h"

DoubleVectorFn special_ndtri; /* inverse of the standard normal distribution */
DoubleVectorFn special_erfinv;
DoubleVectorFn special_i0, special_i1;   /* modified Bessel functions */
DoubleVectorFn special_i0e, special_i1e; /* those times e^-|x| */
DoubleVectorFn special_digammas, special_lgammas;
DoubleVectorFn special_lgammas_of_floats; /* as exact as a float is */
