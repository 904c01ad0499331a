/* elementwise.h: runs loops over elements, alone or broadcast; lists of types for tables of kernels. */
#pragma once
#include <stdint.h>

#include "kernels/broadcast.h"
#include "kernels/cpu.h"
#include "kernels/half_rows.h"
#include "kernels/vector_library.h"
#include "ops/elements.h"
#include "runtime/kernel.h"

/* The functions f_f32, f_i8, ... that the files kernels/each_*.inc make, for KernelDef.by_type. */
#define FLOAT_TYPES(f) [DT_HALF] = f##_f16, [DT_BFLOAT16] = f##_bf16, [DT_FLOAT] = f##_f32, [DT_DOUBLE] = f##_f64
#define SIGNED_TYPES(f) [DT_INT8] = f##_i8, [DT_INT16] = f##_i16, [DT_INT32] = f##_i32, [DT_INT64] = f##_i64
#define UNSIGNED_TYPES(f) [DT_UINT8] = f##_u8, [DT_UINT16] = f##_u16, [DT_UINT32] = f##_u32, [DT_UINT64] = f##_u64
#define INT_TYPES(f) SIGNED_TYPES(f), UNSIGNED_TYPES(f)
#define COMPLEX_TYPES(f) [DT_COMPLEX64] = f##_c64, [DT_COMPLEX128] = f##_c128
#define REAL_TYPES(f) FLOAT_TYPES(f), INT_TYPES(f)
#define NUMBER_TYPES(f) REAL_TYPES(f), COMPLEX_TYPES(f)

/* Before a loop whose output is one of its inputs or overlaps none; clang checks that when it runs. */
#if defined(__clang__)
#define NO_OVERLAP
#else
#define NO_OVERLAP _Pragma("GCC ivdep")
#endif
#define INLINE static inline __attribute__((always_inline))

/* Output 0 has the shape of input 0. */
Error *unary_run(KernelContext *k, UnaryLoop *loop);
/* Output 0 has the broadcast shape of inputs 0 and 1; InvalidArgument "Incompatible shapes: [3] vs. [2]". */
Error *binary_run(KernelContext *k, BinaryLoop *loop);
/* The same for inputs that must have equal shapes, or at least equally many elements. */
Error *binary_same_shape_run(KernelContext *k, BinaryLoop *loop);
Error *binary_same_count_run(KernelContext *k, BinaryLoop *loop);

/* "Inputs to operation x of type AddN must have the same size and shape.  Input 0: [3] != input 1: [2]" */
Error *different_shapes(const Node *node, const Shape *first, int input, const Shape *other);
Error *incompatible_shapes(const Shape *x, const Shape *y);

/* A loop compiled for each level of processors (kernels/cpu.h), and the function that takes the best of them; `body` is a call. */
#define LOOP_NAME(name, level) name##level
#if CPU_HAS_VECTORS
#define CPU_LOOP(name, params, args, body)                            \
    static void LOOP_NAME(name, _plain) params { body; }              \
    CPU_TARGET_AVX2 static void LOOP_NAME(name, _avx2) params { body; }     \
    CPU_TARGET_AVX512 static void LOOP_NAME(name, _avx512) params { body; } \
    static void name params { CPU_PICK(name) args; }
#else
#define CPU_LOOP(name, params, args, body) \
    static void name params { body; }
#endif
#define UNARY_PARAMS (const void *param, void *z, const void *x, int64_t n)
#define UNARY_ARGS (param, z, x, n)
#define BINARY_PARAMS (const void *param, void *z, const void *x, const void *y, int64_t dx, int64_t dy, int64_t n)
#define BINARY_ARGS (param, z, x, y, dx, dy, n)
#define TERNARY_PARAMS (const void *param, void *z, const void *const *from, const int64_t *step, int64_t n)
#define TERNARY_ARGS (param, z, from, step, n)

enum { ELEMENT_BLOCK = 512 }; /* elements that are converted, or given to a function of arrays, at a time */

/* A function of kernels/vector_math.h or vector_library.h over an array of each floating type. */
static inline void by_vectors_f32(VectorFn *f, DoubleVectorFn *wide, float *z, const float *x, int64_t n) {
    (void)wide;
    f(z, x, n);
}
static inline void by_vectors_f64(VectorFn *f, DoubleVectorFn *wide, double *z, const double *x, int64_t n) {
    (void)f;
    wide(z, x, n);
}
static inline void by_vectors_f16(VectorFn *f, DoubleVectorFn *wide, uint16_t *z, const uint16_t *x, int64_t n) {
    (void)wide;
    half_map(f, z, x, n);
}
static inline void by_vectors_bf16(VectorFn *f, DoubleVectorFn *wide, uint16_t *z, const uint16_t *x, int64_t n) {
    (void)wide;
    bfloat16_map(f, z, x, n);
}

/* In a file included for each type: heads the function of one element, whose body follows, and makes its loop and its
 * kernel, all named after op and type. Needs ops/map.inc. */
#define UNARY(op)                                                                                            \
    static inline C NAME(op##_of)(C x);                                                                      \
    CPU_LOOP(NAME(op##_loop), UNARY_PARAMS, UNARY_ARGS, (void)param; NAME(map)(z, x, n, NAME(op##_of)))      \
    static Error *NAME(op)(KernelContext * k) {                                                              \
        return unary_run(k, NAME(op##_loop));                                                                \
    }                                                                                                        \
    static inline C NAME(op##_of)(C x)

/* The same for a function of arrays of doubles (DoubleVectorFn), whatever the type. */
#define UNARY_WIDE(op, f)                                                                                    \
    CPU_LOOP(NAME(op##_loop), UNARY_PARAMS, UNARY_ARGS, (void)param; NAME(map_wide)(z, x, n, f))             \
    static Error *NAME(op)(KernelContext * k) {                                                              \
        return unary_run(k, NAME(op##_loop));                                                                \
    }

/* The same with two arguments, x and y; `run` is one of the functions above. Needs ops/zip.inc. */
#define BINARY(op, run)                                                                                                 \
    static inline C NAME(op##_of)(C x, C y);                                                                            \
    CPU_LOOP(NAME(op##_loop), BINARY_PARAMS, BINARY_ARGS, (void)param; NAME(zip)(z, x, y, dx, dy, n, NAME(op##_of)))    \
    static Error *NAME(op)(KernelContext * k) {                                                                         \
        return run(k, NAME(op##_loop));                                                                                 \
    }                                                                                                                   \
    static inline C NAME(op##_of)(C x, C y)

/* The same for functions of arrays, NAME(op##_block), which stand before. Need ops/blocks.inc. VECTORS(op) is vector_op for numbers of type C. */
#define VECTORS(op) _Generic((C)0, float : vector_##op, double : vector_##op##_f64)
#define UNARY_BLOCKS(op)                                                                                             \
    CPU_LOOP(NAME(op##_loop), UNARY_PARAMS, UNARY_ARGS, (void)param; NAME(map_blocks)(z, x, n, NAME(op##_block)))    \
    static Error *NAME(op)(KernelContext * k) {                                                                      \
        return unary_run(k, NAME(op##_loop));                                                                        \
    }
#define BINARY_BLOCKS(op, run)                                                                                                  \
    CPU_LOOP(NAME(op##_loop), BINARY_PARAMS, BINARY_ARGS, (void)param; NAME(zip_blocks)(z, x, y, dx, dy, n, NAME(op##_block)))  \
    static Error *NAME(op)(KernelContext * k) {                                                                                 \
        return run(k, NAME(op##_loop));                                                                                         \
    }
