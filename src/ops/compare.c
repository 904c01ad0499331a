/* compare.c: comparisons and logic with broadcasting: Equal, Less, LogicalAnd, ApproximateEqual, ... */
#include <tgmath.h>

#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef compare_ops[] = {
    {"Equal", "x: T, y: T -> z: bool", "T: type; incompatible_shape_error: bool = true", OP_COMMUTATIVE},
    {"NotEqual", "x: T, y: T -> z: bool", "T: type; incompatible_shape_error: bool = true", OP_COMMUTATIVE},
    {"Less", "x: T, y: T -> z: bool",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"LessEqual", "x: T, y: T -> z: bool",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"Greater", "x: T, y: T -> z: bool",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"GreaterEqual", "x: T, y: T -> z: bool",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"LogicalAnd", "x: bool, y: bool -> z: bool", "", OP_COMMUTATIVE},
    {"LogicalOr", "x: bool, y: bool -> z: bool", "", OP_COMMUTATIVE},
    {"ApproximateEqual", "x: T, y: T -> z: bool",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; tolerance: float = 1e-05",
     OP_COMMUTATIVE},
    {0},
};

typedef struct EqualState {
    bool shapes_must_fit;
} EqualState;

static Error *equal_init(const Node *node, void *state) {
    EqualState *st = state;
    return node_attr_bool(node, "incompatible_shape_error", &st->shapes_must_fit);
}

/* Shapes that do not fit are an answer, not an error, when the node says so. */
static Error *equal_or(KernelContext *k, BinaryLoop *loop, bool otherwise) {
    const EqualState *st = k->state;
    if (k->loop) return st->shapes_must_fit ? binary_run(k, loop) : NULL;
    const Shape *x = &k->in[0]->shape, *y = &k->in[1]->shape;
    if (!st->shapes_must_fit && !shape_eq(x, y)) {
        BroadcastPlan plan;
        BroadcastInput inputs[2] = {{x->rank, x->dims}, {y->rank, y->dims}};
        if (!broadcast_plan_init(&plan, inputs, 2)) {
            kernel_set_output(k, 0, tensor_scalar_bool(otherwise));
            return NULL;
        }
    }
    return binary_run(k, loop);
}
static Error *equal_run(KernelContext *k, BinaryLoop *loop) {
    return equal_or(k, loop, false);
}
static Error *not_equal_run(KernelContext *k, BinaryLoop *loop) {
    return equal_or(k, loop, true);
}

/* As BINARY, for results that are bool. */
#define COMPARE(op, run)                                                                                          \
    static inline bool NAME(op##_of)(C x, C y);                                                                   \
    static void NAME(op##_loop)(const void *param, void *z, const void *x, const void *y, int64_t dx, int64_t dy, \
                                int64_t n) {                                                                      \
        (void)param;                                                                                              \
        NAME(zip_test)(z, x, y, dx, dy, n, NAME(op##_of));                                                        \
    }                                                                                                             \
    static Error *NAME(op)(KernelContext * k) {                                                                   \
        return run(k, NAME(op##_loop));                                                                           \
    }                                                                                                             \
    static inline bool NAME(op##_of)(C x, C y)

#define BODY "ops/compare_order.inc"
#include "kernels/each_float.inc"
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
#undef BODY
#define BODY "ops/compare_equal.inc"
#include "kernels/each_complex.inc"

#define S bool
#define C bool
#define LOAD(s) (s)
#define NAME(f) f##_bool
#include "ops/compare_equal.inc"
COMPARE(logical_and, binary_run) {
    return x & y;
}
COMPARE(logical_or, binary_run) {
    return x | y;
}
#undef S
#undef C
#undef LOAD
#undef NAME

#define S TString
#define C Str
#define LOAD(s) tstring_str(&(s))
#define NAME(f) f##_string
INLINE void zip_test_string(bool *z, const TString *x, const TString *y, int64_t dx, int64_t dy, int64_t n,
                            bool (*f)(Str, Str)) {
    for (int64_t i = 0; i < n; i++) z[i] = f(tstring_str(&x[dx * i]), tstring_str(&y[dy * i]));
}
COMPARE(equal, equal_run) {
    return str_eq(x, y);
}
COMPARE(not_equal, not_equal_run) {
    return !str_eq(x, y);
}
#undef S
#undef C
#undef LOAD
#undef NAME

typedef struct ApproximateState {
    float tolerance;
} ApproximateState;

static Error *near_init(const Node *node, void *state) {
    ApproximateState *st = state;
    return node_attr_float(node, "tolerance", &st->tolerance);
}

static Error *near_run(KernelContext *k, BinaryLoop *loop) {
    const Shape *x = &k->in[0]->shape, *y = &k->in[1]->shape;
    if (!shape_eq(x, y)) {
        return error_invalid("x and y must be of the same shape. x shape: %s. y shape: %s", shape_text(x).text,
                             shape_text(y).text);
    }
    return binary_run(k, loop);
}

#undef BODY
#define BODY "ops/compare_near.inc"
#define D C
#define DISTANCE(a, b) fabs((a) - (b))
#include "kernels/each_float.inc"
#undef DISTANCE
#define DISTANCE(a, b) ((a) > (b) ? (W)(a) - (W)(b) : (W)(b) - (W)(a))
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
#undef DISTANCE
#undef D
#define D R
#define DISTANCE(a, b) fabs((a) - (b))
#include "kernels/each_complex.inc"

#define EQUALITY .state_size = sizeof(EqualState), .init = equal_init, .flags = KERNEL_ELEMENTWISE
/* Quantised values are compared as the integers they are. */
#define ALL_TYPES(f)                                                                                                  \
    NUMBER_TYPES(f), [DT_BOOL] = f##_bool, [DT_STRING] = f##_string, [DT_QINT8] = f##_i8, [DT_QUINT8] = f##_u8,        \
                     [DT_QINT16] = f##_i16, [DT_QUINT16] = f##_u16, [DT_QINT32] = f##_i32

const KernelDef compare_cpu[] = {
    {"Equal", .by_type = {ALL_TYPES(equal)}, EQUALITY},
    {"NotEqual", .by_type = {ALL_TYPES(not_equal)}, EQUALITY},
    {"Less", .by_type = {REAL_TYPES(less)}, .flags = KERNEL_ELEMENTWISE},
    {"LessEqual", .by_type = {REAL_TYPES(less_equal)}, .flags = KERNEL_ELEMENTWISE},
    {"Greater", .by_type = {REAL_TYPES(greater)}, .flags = KERNEL_ELEMENTWISE},
    {"GreaterEqual", .by_type = {REAL_TYPES(greater_equal)}, .flags = KERNEL_ELEMENTWISE},
    {"LogicalAnd", .run = logical_and_bool, .flags = KERNEL_ELEMENTWISE},
    {"LogicalOr", .run = logical_or_bool, .flags = KERNEL_ELEMENTWISE},
    {"ApproximateEqual", .by_type = {NUMBER_TYPES(near)}, .state_size = sizeof(ApproximateState), .init = near_init},
    {0},
};
