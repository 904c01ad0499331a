/* unary_grad.c: gradients that are given the result of the op: TanhGrad, SigmoidGrad, SqrtGrad, ... */
#include <tgmath.h>

#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef unary_grad_ops[] = {
    {"TanhGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"SigmoidGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"SqrtGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"RsqrtGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"ReciprocalGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"InvGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {0},
};

#define BODY "ops/unary_grad.inc"
#define CONJ(z) (z)
#include "kernels/each_float.inc"
#undef CONJ
#define CONJ(z) conj(z)
#include "kernels/each_complex.inc"

const KernelDef unary_grad_cpu[] = {
    {"TanhGrad", .by_type = {FLOAT_TYPES(tanh_grad), COMPLEX_TYPES(tanh_grad)}, .flags = KERNEL_ELEMENTWISE},
    {"SigmoidGrad", .by_type = {FLOAT_TYPES(sigmoid_grad), COMPLEX_TYPES(sigmoid_grad)}, .flags = KERNEL_ELEMENTWISE},
    {"SqrtGrad", .by_type = {FLOAT_TYPES(sqrt_grad), COMPLEX_TYPES(sqrt_grad)}, .flags = KERNEL_ELEMENTWISE},
    {"RsqrtGrad", .by_type = {FLOAT_TYPES(rsqrt_grad), COMPLEX_TYPES(rsqrt_grad)}, .flags = KERNEL_ELEMENTWISE},
    {"ReciprocalGrad", .by_type = {FLOAT_TYPES(reciprocal_grad), COMPLEX_TYPES(reciprocal_grad)}, .flags = KERNEL_ELEMENTWISE},
    {"InvGrad", .by_type = {FLOAT_TYPES(reciprocal_grad), COMPLEX_TYPES(reciprocal_grad)}, .flags = KERNEL_ELEMENTWISE},
    {0},
};
