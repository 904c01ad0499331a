/* special_unary.c: Bessel functions, Dawson's and Fresnel's integrals, Expint, Spence. */
#include <math.h>

#include "base/float16.h"
#include "kernels/special.h"
#include "kernels/special_integrals.h"
#include "kernels/special_vectors.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef special_unary_ops[] = {
    {"BesselI0", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"BesselI1", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"BesselJ0", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"BesselJ1", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"BesselK0", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"BesselK0e", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"BesselK1", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"BesselK1e", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"BesselY0", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"BesselY1", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"Dawsn", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"Expint", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"FresnelCos", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"FresnelSin", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"Spence", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {0},
};

#define BODY "ops/special_unary.inc"
#include "kernels/each_float.inc"
#undef BODY

const KernelDef special_unary_cpu[] = {
    {"BesselI0", .by_type = {FLOAT_TYPES(i0)}},
    {"BesselI1", .by_type = {FLOAT_TYPES(i1)}},
    {"BesselJ0", .by_type = {FLOAT_TYPES(bessel_j0)}},
    {"BesselJ1", .by_type = {FLOAT_TYPES(bessel_j1)}},
    {"BesselK0", .by_type = {FLOAT_TYPES(k0)}},
    {"BesselK0e", .by_type = {FLOAT_TYPES(k0e)}},
    {"BesselK1", .by_type = {FLOAT_TYPES(k1)}},
    {"BesselK1e", .by_type = {FLOAT_TYPES(k1e)}},
    {"BesselY0", .by_type = {FLOAT_TYPES(bessel_y0)}},
    {"BesselY1", .by_type = {FLOAT_TYPES(bessel_y1)}},
    {"Dawsn", .by_type = {FLOAT_TYPES(dawson)}},
    {"Expint", .by_type = {FLOAT_TYPES(expint)}},
    {"FresnelCos", .by_type = {FLOAT_TYPES(fresnel_cos)}},
    {"FresnelSin", .by_type = {FLOAT_TYPES(fresnel_sin)}},
    {"Spence", .by_type = {FLOAT_TYPES(spence)}},
    {0},
};
