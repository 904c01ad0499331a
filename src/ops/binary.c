/* binary.c: ops of two arguments with broadcasting: Add, Sub, RealDiv, FloorMod, Pow, Maximum, shifts, ... */
#include <stdlib.h>
#include <tgmath.h>

#include "base/float16.h"
#include "base/memory.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef binary_ops[] = {
    {"Add", "x: T, y: T -> z: T",
     "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}", 0},
    {"AddV2", "x: T, y: T -> z: T",
     "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, "
     "complex128}",
     OP_COMMUTATIVE | OP_AGGREGATE},
    {"Sub", "x: T, y: T -> z: T",
     "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, uint32, "
     "uint64}",
     0},
    {"Mul", "x: T, y: T -> z: T",
     "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
     "complex128}",
     OP_COMMUTATIVE},
    {"Div", "x: T, y: T -> z: T",
     "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
     "complex128}",
     0},
    {"RealDiv", "x: T, y: T -> z: T",
     "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
     "complex128}",
     0},
    {"FloorDiv", "x: T, y: T -> z: T",
     "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
     "complex128}",
     0},
    {"TruncateDiv", "x: T, y: T -> z: T",
     "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
     "complex128}",
     0},
    {"FloorMod", "x: T, y: T -> z: T",
     "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}", 0},
    {"Mod", "x: T, y: T -> z: T", "T: {int32, int64, half, half, bfloat16, float, double}", 0},
    {"TruncateMod", "x: T, y: T -> z: T", "T: {int32, int64, bfloat16, half, float, double}", 0},
    {"Pow", "x: T, y: T -> z: T",
     "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}", 0},
    {"Maximum", "x: T, y: T -> z: T",
     "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}", 0},
    {"Minimum", "x: T, y: T -> z: T",
     "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}", 0},
    {"SquaredDifference", "x: T, y: T -> z: T",
     "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}", OP_COMMUTATIVE},
    {"DivNoNan", "x: T, y: T -> z: T", "T: {half, float, bfloat16, double, complex64, complex128}", 0},
    {"MulNoNan", "x: T, y: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", 0},
    {"Xdivy", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}", 0},
    {"Xlogy", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}", 0},
    {"Xlog1py", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}", 0},
    {"Atan2", "y: T, x: T -> z: T", "T: {bfloat16, half, float, double}", 0},
    {"NextAfter", "x1: T, x2: T -> output: T", "T: {double, float} = float", 0},
    {"BitwiseAnd", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
     OP_COMMUTATIVE},
    {"BitwiseOr", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
     OP_COMMUTATIVE},
    {"BitwiseXor", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
     OP_COMMUTATIVE},
    {"LeftShift", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", 0},
    {"RightShift", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", 0},
    {"Complex", "real: T, imag: T -> out: Tout",
     "T: {float, double} = float; Tout: {complex64, complex128} = complex64", 0},
    {0},
};

/* TensorFlow has another code for TruncateDiv and TruncateMod than for Div, Mod, FloorDiv and FloorMod. */
static Error *divided_by_zero(const KernelContext *k) {
    bool truncates = str_starts(k->node->op, STR("Truncate"));
    return truncates ? error_internal("Unexpected error in binary operator (only integer div and mod should have errors)") : error_invalid("Integer division by zero");
}

#define BODY "ops/binary_float.inc"
#include "kernels/each_float.inc"
#undef BODY
#define BODY "ops/binary_signed.inc"
#include "kernels/each_signed.inc"
#undef BODY
#define BODY "ops/binary_int.inc"
#include "kernels/each_unsigned.inc"
#undef BODY
#define BODY "ops/binary_complex.inc"
#include "kernels/each_complex.inc"

static void join_loop(const void *param, void *zs, const void *xs, const void *ys, int64_t dx, int64_t dy, int64_t n) {
    (void)param;
    const TString *x = xs, *y = ys;
    TString *z = zs;
    for (int64_t i = 0; i < n; i++) {
        const Str a = tstring_str(&x[dx * i]), b = tstring_str(&y[dy * i]);
        TString both = {0};
        char *text = tstring_room(&both, a.len + b.len);
        memcpy(text, a.ptr, a.len);
        memcpy(text + a.len, b.ptr, b.len);
        tstring_move(&z[i], &both);
    }
}
static Error *add_string(KernelContext *k) {
    return binary_run(k, join_loop);
}

/* Complex: T and Tout must be of the same precision. */
static Error *complex_run(KernelContext *k) {
    DataType to = kernel_output_type(k, 0);
    if (2 * dtype_size(k->in[0]->dtype) != dtype_size(to)) {
        return error_invalid("Complex of %s cannot be %s", dtype_name(k->in[0]->dtype), dtype_name(to));
    }
    return binary_run(k, to == DT_COMPLEX64 ? complex_loop_c64 : complex_loop_c128);
}

const KernelDef binary_cpu[] = {
    {"Add", .by_type = {NUMBER_TYPES(add), [DT_STRING] = add_string}, .flags = KERNEL_ELEMENTWISE},
    {"AddV2", .by_type = {NUMBER_TYPES(add)}, .flags = KERNEL_ELEMENTWISE},
    {"Sub", .by_type = {NUMBER_TYPES(sub)}, .flags = KERNEL_ELEMENTWISE},
    {"Mul", .by_type = {NUMBER_TYPES(mul)}, .flags = KERNEL_ELEMENTWISE},
    {"Div", .by_type = {FLOAT_TYPES(div), INT_TYPES(truncate_div), COMPLEX_TYPES(div)}, .flags = KERNEL_ELEMENTWISE},
    {"RealDiv", .by_type = {FLOAT_TYPES(div), COMPLEX_TYPES(div)}, .flags = KERNEL_ELEMENTWISE},
    {"FloorDiv", .by_type = {REAL_TYPES(floor_div)}, .flags = KERNEL_ELEMENTWISE},
    {"TruncateDiv", .by_type = {REAL_TYPES(truncate_div)}},
    {"FloorMod", .by_type = {REAL_TYPES(floor_mod)}, .flags = KERNEL_ELEMENTWISE},
    {"Mod", .by_type = {FLOAT_TYPES(truncate_mod), INT_TYPES(truncate_mod)}, .flags = KERNEL_ELEMENTWISE},
    {"TruncateMod", .by_type = {FLOAT_TYPES(truncate_mod), INT_TYPES(truncate_mod)}, .flags = KERNEL_ELEMENTWISE},
    {"Pow", .by_type = {FLOAT_TYPES(pow), SIGNED_TYPES(pow), COMPLEX_TYPES(pow)}, .flags = KERNEL_ELEMENTWISE},
    {"Maximum", .by_type = {REAL_TYPES(maximum)}, .flags = KERNEL_ELEMENTWISE},
    {"Minimum", .by_type = {REAL_TYPES(minimum)}, .flags = KERNEL_ELEMENTWISE},
    {"SquaredDifference", .by_type = {NUMBER_TYPES(squared_difference)}, .flags = KERNEL_ELEMENTWISE},
    {"DivNoNan", .by_type = {FLOAT_TYPES(div_no_nan), COMPLEX_TYPES(div_no_nan)}, .flags = KERNEL_ELEMENTWISE},
    {"MulNoNan", .by_type = {FLOAT_TYPES(mul_no_nan), COMPLEX_TYPES(mul_no_nan)}, .flags = KERNEL_ELEMENTWISE},
    {"Xdivy", .by_type = {FLOAT_TYPES(xdivy), COMPLEX_TYPES(xdivy)}, .flags = KERNEL_ELEMENTWISE},
    {"Xlogy", .by_type = {FLOAT_TYPES(xlogy), COMPLEX_TYPES(xlogy)}, .flags = KERNEL_ELEMENTWISE},
    {"Xlog1py", .by_type = {FLOAT_TYPES(xlog1py), COMPLEX_TYPES(xlog1py)}, .flags = KERNEL_ELEMENTWISE},
    {"Atan2", .by_type = {FLOAT_TYPES(atan2)}, .flags = KERNEL_ELEMENTWISE},
    {"NextAfter", .by_type = {FLOAT_TYPES(next_after)}, .flags = KERNEL_ELEMENTWISE},
    {"BitwiseAnd", .by_type = {INT_TYPES(bitwise_and)}, .flags = KERNEL_ELEMENTWISE},
    {"BitwiseOr", .by_type = {INT_TYPES(bitwise_or)}, .flags = KERNEL_ELEMENTWISE},
    {"BitwiseXor", .by_type = {INT_TYPES(bitwise_xor)}, .flags = KERNEL_ELEMENTWISE},
    {"LeftShift", .by_type = {INT_TYPES(left_shift)}, .flags = KERNEL_ELEMENTWISE},
    {"RightShift", .by_type = {INT_TYPES(right_shift)}, .flags = KERNEL_ELEMENTWISE},
    {"Complex", .run = complex_run},
    {0},
};
