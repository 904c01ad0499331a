/* reduce_ops.c: Sum, Mean, Prod, Max, Min, All, Any, EuclideanNorm over given dimensions. */
#include <tgmath.h>

#include "base/float16.h"
#include "kernels/reduce.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef reduce_ops_ops[] = {
    {"Sum", "input: T, reduction_indices: Tidx -> output: T",
     "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
     "qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}; Tidx: {int32, int64} = int32",
     0},
    {"Mean", "input: T, reduction_indices: Tidx -> output: T",
     "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
     "qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}; Tidx: {int32, int64} = int32",
     0},
    {"Prod", "input: T, reduction_indices: Tidx -> output: T",
     "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
     "qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}; Tidx: {int32, int64} = int32",
     0},
    {"Max", "input: T, reduction_indices: Tidx -> output: T",
     "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
     "uint64, qint8, quint8, qint32, qint16, quint16}; Tidx: {int32, int64} = int32",
     0},
    {"Min", "input: T, reduction_indices: Tidx -> output: T",
     "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
     "uint64, qint8, quint8, qint32, qint16, quint16}; Tidx: {int32, int64} = int32",
     0},
    {"EuclideanNorm", "input: T, reduction_indices: Tidx -> output: T",
     "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
     "qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}; Tidx: {int32, int64} = int32",
     0},
    {"All", "input: bool, reduction_indices: Tidx -> output: bool",
     "keep_dims: bool = false; Tidx: {int32, int64} = int32", 0},
    {"Any", "input: bool, reduction_indices: Tidx -> output: bool",
     "keep_dims: bool = false; Tidx: {int32, int64} = int32", 0},
    {0},
};

typedef struct ReduceState {
    bool keep_dims;
} ReduceState;

static Error *reduce_init(const Node *node, void *state) {
    ReduceState *st = state;
    return node_attr_bool(node, "keep_dims", &st->keep_dims);
}

/* Marks the dimensions that input 1 lists. */
static Error *read_axes(KernelContext *k, bool *folded) {
    const Tensor *axes = k->in[1];
    int rank = k->in[0]->shape.rank;
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = tensor_index(axes, i);
        if (axis < -rank || axis >= rank) {
            return error_invalid("Invalid reduction dimension (%lld for input with %d dimension(s)", (long long)axis,
                                 rank);
        }
        int d = (int)(axis < 0 ? axis + rank : axis);
        if (folded[d]) {
            return error_invalid("Invalid reduction arguments: Axes contains duplicate dimension: %d", d);
        }
        folded[d] = true;
    }
    return NULL;
}

/* `idle`: with nothing to fold the result is the input. */
static Error *reduce_kernel(KernelContext *k, const Reducer *r, bool idle) {
    const ReduceState *st = k->state;
    const Tensor *x = k->in[0];
    bool folded[SHAPE_MAX_RANK] = {false};
    Error *err = read_axes(k, folded);
    if (err) return err;

    Shape shape = {.rank = 0};
    for (int d = 0; d < x->shape.rank; d++) {
        if (!folded[d] || st->keep_dims) shape.dims[shape.rank++] = folded[d] ? 1 : x->shape.dims[d];
    }
    ReducePlan plan;
    reduce_plan_init(&plan, x->shape.rank, x->shape.dims, folded);
    if (idle && plan.fold_count == 1) {
        kernel_set_output(k, 0, tensor_alias(x, x->dtype, &shape));
        return NULL;
    }
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    Shape room = shape_vector(reduce_acc_count(&plan) * (int64_t)r->acc_size);
    Tensor *acc = kernel_scratch(k, DT_UINT8, &room);
    if (!acc) return NULL;
    reduce_run(&plan, r, z->data, x->data, acc->data, k->pool);
    tensor_unref(acc);
    return NULL;
}

#define FOLD_PARAMS (void *acc, const void *x, int64_t n)
#define FOLD_ARGS (acc, x, n)

#define FOLD_LANES 16
/* Heads the function that joins two accumulators, a and b, and makes the functions of a Reducer from it. */
#define REDUCER(op, first, enter)                                          \
    static inline C NAME(op##_of)(C a, C b);                               \
    static void NAME(op##_start)(void *acc, int64_t n) {                   \
        NAME(start_all)(acc, n, first);                                    \
    }                                                                      \
    CPU_LOOP(NAME(op##_row), FOLD_PARAMS, FOLD_ARGS, NAME(fold_row)(acc, x, n, NAME(op##_of), enter, first, FOLD_LANES)) \
    CPU_LOOP(NAME(op##_rows), FOLD_PARAMS, FOLD_ARGS, NAME(fold_rows)(acc, x, n, NAME(op##_of), enter))      \
    static void NAME(op##_merge)(void *acc, const void *part, int64_t n) { \
        NAME(merge_all)(acc, part, n, NAME(op##_of));                      \
    }                                                                      \
    static inline C NAME(op##_of)(C a, C b)

#define KERNEL(op, by, finish, idle)                                                                              \
    static Error *NAME(op)(KernelContext * k) {                                                                   \
        static const Reducer r = {sizeof(S),        sizeof(C), NAME(by##_start), NAME(by##_row), NAME(by##_rows), \
                                  NAME(by##_merge), finish};                                                      \
        return reduce_kernel(k, &r, idle);                                                                        \
    }

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define MEAN_OF(sum, count) ((sum) / (C)(count))
#define NORM_ENTER(x) ((x) * (x))
#define NORM_LEAVE(a) sqrt(a)
#define IS_NAN(a) ((a) != (a))
#define LOWEST ((C)-INFINITY)
#define HIGHEST ((C)INFINITY)
#define BODY "ops/reduce_order.inc"
#include "kernels/each_float.inc"
#undef NORM_ENTER
#undef BODY

#define NORM_ENTER(x) ((x)*conj(x))
#define BODY "ops/reduce_sum.inc"
#include "kernels/each_complex.inc"
#undef PLUS
#undef TIMES
#undef MEAN_OF
#undef NORM_ENTER
#undef NORM_LEAVE
#undef LOWEST
#undef HIGHEST
#undef BODY

/* Integers wrap around. */
#define PLUS(a, b) (C)((W)(a) + (W)(b))
#define TIMES(a, b) (C)((W)(a) * (W)(b))
#define NORM_ENTER(x) TIMES(x, x)
#define NORM_LEAVE(a) (C) sqrt((double)(a))
#undef IS_NAN
#define IS_NAN(a) false
#define LOWEST NAME(limit)(false)
#define HIGHEST NAME(limit)(true)
#define BODY "ops/reduce_int.inc"
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
#undef BODY

#define BODY "ops/reduce_mean_int.inc"
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
#undef BODY

#define S bool
#define C bool
#define LOAD(s) (s)
#define STORE(c) (c)
#define NAME(f) f##_bool
#include "ops/reduce.inc"
#undef FOLD_LANES
#define FOLD_LANES 64
REDUCER(all, true, itself_bool) {
    return a & b;
}
REDUCER(any, false, itself_bool) {
    return a | b;
}
KERNEL(all, all, finish_plain_bool, true)
KERNEL(any, any, finish_plain_bool, true)

#define KEEP_DIMS .state_size = sizeof(ReduceState), .init = reduce_init

const KernelDef reduce_ops_cpu[] = {
    {"Sum", .by_type = {NUMBER_TYPES(sum)}, KEEP_DIMS},
    {"Mean", .by_type = {NUMBER_TYPES(mean)}, KEEP_DIMS},
    {"Prod", .by_type = {NUMBER_TYPES(prod)}, KEEP_DIMS},
    {"Max", .by_type = {REAL_TYPES(max)}, KEEP_DIMS},
    {"Min", .by_type = {REAL_TYPES(min)}, KEEP_DIMS},
    {"EuclideanNorm", .by_type = {NUMBER_TYPES(norm)}, KEEP_DIMS},
    {"All", .run = all_bool, KEEP_DIMS},
    {"Any", .run = any_bool, KEEP_DIMS},
    {0},
};
