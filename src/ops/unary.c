/* unary.c: ops of one argument, element by element: Neg, Exp, Tanh, IsNan, Real, ... */
#include <tgmath.h>

#include "base/float16.h"
#include "kernels/special.h"
#include "kernels/special_vectors.h"
#include "kernels/vector_roots.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef unary_ops[] = {
    {"Neg", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}", 0},
    {"Abs", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64}", 0},
    {"Sign", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}", 0},
    {"Square", "x: T -> y: T",
     "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
     "complex128}",
     0},
    {"Reciprocal", "x: T -> y: T",
     "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}", 0},
    {"Inv", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}", 0},
    {"Round", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
     0},
    {"Invert", "x: T -> y: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", 0},
    {"PopulationCount", "x: T -> y: uint8", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", 0},
    {"LogicalNot", "x: bool -> y: bool", "", 0},
    {"IsNan", "x: T -> y: bool", "T: {bfloat16, half, float, double}", 0},
    {"IsInf", "x: T -> y: bool", "T: {bfloat16, half, float, double}", 0},
    {"IsFinite", "x: T -> y: bool", "T: {bfloat16, half, float, double}", 0},
    {"Conj", "input: T -> output: T", "T: {complex64, complex128, variant} = complex64", 0},
    {"Real", "input: T -> output: Tout", "T: {complex64, complex128} = complex64; Tout: {float, double} = float", 0},
    {"Imag", "input: T -> output: Tout", "T: {complex64, complex128} = complex64; Tout: {float, double} = float", 0},
    {"ComplexAbs", "x: T -> y: Tout", "T: {complex64, complex128} = complex64; Tout: {float, double} = float", 0},
    {"Angle", "input: T -> output: Tout", "T: {complex64, complex128} = complex64; Tout: {float, double} = float", 0},
    {"Exp", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Expm1", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Log", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Log1p", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Sqrt", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Rsqrt", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Sin", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Cos", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Tan", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Asin", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Acos", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Atan", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Sinh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Cosh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Tanh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Asinh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Acosh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Atanh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Sigmoid", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Erf", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"Erfc", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"Erfinv", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"Ndtri", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"Lgamma", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"Digamma", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"Floor", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"Ceil", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"Rint", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"BesselI0e", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {"BesselI1e", "x: T -> y: T", "T: {bfloat16, half, float, double}", 0},
    {0},
};

/* As UNARY, for the functions that vectors have. */
#define UNARY_VECTOR(op)                                                                \
    static void NAME(op##_loop)(const void *param, void *z, const void *x, int64_t n) { \
        (void)param;                                                                    \
        NAME(by_vectors)(vector_##op, vector_##op##_f64, z, x, n);                      \
    }                                                                                   \
    static Error *NAME(op)(KernelContext * k) {                                         \
        return unary_run(k, NAME(op##_loop));                                           \
    }

/* As UNARY, for results that are bool or of the type of a complex number's parts. */
#define TEST(op)                                                                        \
    static inline bool NAME(op##_of)(C x);                                              \
    static void NAME(op##_loop)(const void *param, void *z, const void *x, int64_t n) { \
        (void)param;                                                                    \
        NAME(map_test)(z, x, n, NAME(op##_of));                                         \
    }                                                                                   \
    static Error *NAME(op)(KernelContext * k) {                                         \
        return unary_run(k, NAME(op##_loop));                                           \
    }                                                                                   \
    static inline bool NAME(op##_of)(C x)

#define PART(op)                                                                        \
    static inline R NAME(op##_of)(C x);                                                 \
    static void NAME(op##_loop)(const void *param, void *z, const void *x, int64_t n) { \
        (void)param;                                                                    \
        NAME(map_part)(z, x, n, NAME(op##_of));                                         \
    }                                                                                   \
    static Error *NAME(op)(KernelContext * k) {                                         \
        return part_run(k, NAME(op##_loop));                                            \
    }                                                                                   \
    static inline R NAME(op##_of)(C x)

/* Real and friends: T and Tout must be of the same precision. */
static Error *part_run(KernelContext *k, UnaryLoop *loop) {
    if (2 * dtype_size(kernel_output_type(k, 0)) != dtype_size(k->in[0]->dtype)) {
        const char *in = dtype_name(k->in[0]->dtype);
        return error_invalid("Signature mismatch, have: %s->%s expected: %s->%s", in, dtype_name(kernel_output_type(k, 0)), in,
                             dtype_name(k->in[0]->dtype == DT_COMPLEX64 ? DT_FLOAT : DT_DOUBLE));
    }
    return unary_run(k, loop);
}

#define BODY "ops/unary_float.inc"
#include "kernels/each_float.inc"
#undef BODY
#define BODY "ops/unary_signed.inc"
#include "kernels/each_signed.inc"
#undef BODY
#define BODY "ops/unary_int.inc"
#include "kernels/each_unsigned.inc"
#undef BODY
#define BODY "ops/unary_complex.inc"
#include "kernels/each_complex.inc"

static void logical_not_loop(const void *param, void *zs, const void *xs, int64_t n) {
    (void)param;
    const bool *x = xs;
    bool *z = zs;
    NO_OVERLAP for (int64_t i = 0; i < n; i++) z[i] = !x[i];
}
static Error *logical_not(KernelContext *k) {
    return unary_run(k, logical_not_loop);
}

/* Variants that say how; others stay as they are. */
static Error *conj_variant(KernelContext *k) {
    const Tensor *x = k->in[0];
    Tensor *z = kernel_output(k, 0, &x->shape);
    Error *err = NULL;
    for (int64_t i = 0; z && !err && i < x->count; i++) {
        const Variant *v = &tensor_variants(x)[i];
        if (v->type && v->type->conjugate)
            err = v->type->conjugate(v->object, &tensor_variants(z)[i]);
        else
            variant_set(&tensor_variants(z)[i], *v);
    }
    return err;
}

const KernelDef unary_cpu[] = {
    {"Neg", .by_type = {FLOAT_TYPES(neg), SIGNED_TYPES(neg), COMPLEX_TYPES(neg)}, .flags = KERNEL_ELEMENTWISE},
    {"Abs", .by_type = {FLOAT_TYPES(abs), SIGNED_TYPES(abs)}, .flags = KERNEL_ELEMENTWISE},
    {"Sign", .by_type = {FLOAT_TYPES(sign), SIGNED_TYPES(sign), COMPLEX_TYPES(sign)}, .flags = KERNEL_ELEMENTWISE},
    {"Square", .by_type = {NUMBER_TYPES(square)}, .flags = KERNEL_ELEMENTWISE},
    {"Reciprocal", .by_type = {FLOAT_TYPES(reciprocal), SIGNED_TYPES(reciprocal), COMPLEX_TYPES(reciprocal)}, .flags = KERNEL_ELEMENTWISE},
    {"Inv", .by_type = {FLOAT_TYPES(reciprocal), SIGNED_TYPES(reciprocal), COMPLEX_TYPES(reciprocal)}, .flags = KERNEL_ELEMENTWISE},
    {"Round", .by_type = {FLOAT_TYPES(round), SIGNED_TYPES(round), COMPLEX_TYPES(round)}, .flags = KERNEL_ELEMENTWISE},
    {"Invert", .by_type = {INT_TYPES(invert)}, .flags = KERNEL_ELEMENTWISE},
    {"PopulationCount", .by_type = {INT_TYPES(population_count)}},
    {"LogicalNot", .run = logical_not, .flags = KERNEL_ELEMENTWISE},
    {"IsNan", .by_type = {FLOAT_TYPES(is_nan)}, .flags = KERNEL_ELEMENTWISE},
    {"IsInf", .by_type = {FLOAT_TYPES(is_inf)}, .flags = KERNEL_ELEMENTWISE},
    {"IsFinite", .by_type = {FLOAT_TYPES(is_finite)}, .flags = KERNEL_ELEMENTWISE},
    {"Conj", .by_type = {COMPLEX_TYPES(conj), [DT_VARIANT] = conj_variant}},
    {"Real", .by_type = {COMPLEX_TYPES(real)}},
    {"Imag", .by_type = {COMPLEX_TYPES(imag)}},
    {"ComplexAbs", .by_type = {COMPLEX_TYPES(complex_abs)}},
    {"Angle", .by_type = {COMPLEX_TYPES(angle)}},
    {"Exp", .by_type = {FLOAT_TYPES(exp), COMPLEX_TYPES(exp)}, .flags = KERNEL_ELEMENTWISE},
    {"Expm1", .by_type = {FLOAT_TYPES(expm1), COMPLEX_TYPES(expm1)}, .flags = KERNEL_ELEMENTWISE},
    {"Log", .by_type = {FLOAT_TYPES(log), COMPLEX_TYPES(log)}, .flags = KERNEL_ELEMENTWISE},
    {"Log1p", .by_type = {FLOAT_TYPES(log1p), COMPLEX_TYPES(log1p)}, .flags = KERNEL_ELEMENTWISE},
    {"Sqrt", .by_type = {FLOAT_TYPES(sqrt), COMPLEX_TYPES(sqrt)}, .flags = KERNEL_ELEMENTWISE},
    {"Rsqrt", .by_type = {FLOAT_TYPES(rsqrt), COMPLEX_TYPES(rsqrt)}, .flags = KERNEL_ELEMENTWISE},
    {"Sin", .by_type = {FLOAT_TYPES(sin), COMPLEX_TYPES(sin)}, .flags = KERNEL_ELEMENTWISE},
    {"Cos", .by_type = {FLOAT_TYPES(cos), COMPLEX_TYPES(cos)}, .flags = KERNEL_ELEMENTWISE},
    {"Tan", .by_type = {FLOAT_TYPES(tan), COMPLEX_TYPES(tan)}, .flags = KERNEL_ELEMENTWISE},
    {"Asin", .by_type = {FLOAT_TYPES(asin), COMPLEX_TYPES(asin)}, .flags = KERNEL_ELEMENTWISE},
    {"Acos", .by_type = {FLOAT_TYPES(acos), COMPLEX_TYPES(acos)}, .flags = KERNEL_ELEMENTWISE},
    {"Atan", .by_type = {FLOAT_TYPES(atan), COMPLEX_TYPES(atan)}, .flags = KERNEL_ELEMENTWISE},
    {"Sinh", .by_type = {FLOAT_TYPES(sinh), COMPLEX_TYPES(sinh)}, .flags = KERNEL_ELEMENTWISE},
    {"Cosh", .by_type = {FLOAT_TYPES(cosh), COMPLEX_TYPES(cosh)}, .flags = KERNEL_ELEMENTWISE},
    {"Tanh", .by_type = {FLOAT_TYPES(tanh), COMPLEX_TYPES(tanh)}, .flags = KERNEL_ELEMENTWISE},
    {"Asinh", .by_type = {FLOAT_TYPES(asinh), COMPLEX_TYPES(asinh)}, .flags = KERNEL_ELEMENTWISE},
    {"Acosh", .by_type = {FLOAT_TYPES(acosh), COMPLEX_TYPES(acosh)}, .flags = KERNEL_ELEMENTWISE},
    {"Atanh", .by_type = {FLOAT_TYPES(atanh), COMPLEX_TYPES(atanh)}, .flags = KERNEL_ELEMENTWISE},
    {"Sigmoid", .by_type = {FLOAT_TYPES(sigmoid), COMPLEX_TYPES(sigmoid)}, .flags = KERNEL_ELEMENTWISE},
    {"Erf", .by_type = {FLOAT_TYPES(erf)}, .flags = KERNEL_ELEMENTWISE},
    {"Erfc", .by_type = {FLOAT_TYPES(erfc)}, .flags = KERNEL_ELEMENTWISE},
    {"Erfinv", .by_type = {FLOAT_TYPES(erfinv)}, .flags = KERNEL_ELEMENTWISE},
    {"Ndtri", .by_type = {FLOAT_TYPES(ndtri)}, .flags = KERNEL_ELEMENTWISE},
    {"Lgamma", .by_type = {FLOAT_TYPES(lgamma)}, .flags = KERNEL_ELEMENTWISE},
    {"Digamma", .by_type = {FLOAT_TYPES(digamma)}, .flags = KERNEL_ELEMENTWISE},
    {"Floor", .by_type = {FLOAT_TYPES(floor)}, .flags = KERNEL_ELEMENTWISE},
    {"Ceil", .by_type = {FLOAT_TYPES(ceil)}, .flags = KERNEL_ELEMENTWISE},
    {"Rint", .by_type = {FLOAT_TYPES(rint)}, .flags = KERNEL_ELEMENTWISE},
    {"BesselI0e", .by_type = {FLOAT_TYPES(i0e)}, .flags = KERNEL_ELEMENTWISE},
    {"BesselI1e", .by_type = {FLOAT_TYPES(i1e)}, .flags = KERNEL_ELEMENTWISE},
    {0},
};
