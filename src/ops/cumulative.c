/* cumulative.c: Cumsum, Cumprod, CumulativeLogsumexp. */
#include <tgmath.h>

#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef cumulative_ops[] = {
    {"Cumsum", "x: T, axis: Tidx -> out: T",
     "exclusive: bool = false; reverse: bool = false; T: {float, double, int32, uint8, int16, int8, complex64, "
     "int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}; Tidx: "
     "{int32, int64} = int32",
     0},
    {"Cumprod", "x: T, axis: Tidx -> out: T",
     "exclusive: bool = false; reverse: bool = false; T: {float, double, int32, uint8, int16, int8, complex64, "
     "int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}; Tidx: "
     "{int32, int64} = int32",
     0},
    {"CumulativeLogsumexp", "x: T, axis: Tidx -> out: T",
     "exclusive: bool = false; reverse: bool = false; T: {bfloat16, half, float, double}; Tidx: {int32, int64} = "
     "int32",
     0},
    {0},
};

typedef struct ScanState {
    bool exclusive, reverse;
} ScanState;

static Error *scan_init(const Node *node, void *state) {
    ScanState *st = state;
    Error *err = node_attr_bool(node, "exclusive", &st->exclusive);
    return err ? err : node_attr_bool(node, "reverse", &st->reverse);
}

enum { SCAN_LINES = 256 };

typedef struct ScanJob {
    void *z;
    const void *x;
    int64_t n, inner;
    bool exclusive, reverse;
} ScanJob;

static Error *scan_run(KernelContext *k, RangeFn *range) {
    const ScanState *st = k->state;
    Tensor *x = k->in[0];
    const Tensor *dim = k->in[1];
    int rank = x->shape.rank;
    if (dim->shape.rank != 0)
        return error_invalid("ScanOp: axis must be a scalar, not %s", shape_text(&dim->shape).text);
    int64_t axis = tensor_index(dim, 0);
    if (axis < -rank || axis >= rank) {
        return error_invalid("ScanOp: Expected scan axis in the range [%d, %d), but got %lld", -rank, rank,
                             (long long)(axis < 0 ? axis + rank : axis));
    }
    if (axis < 0) axis += rank;
    Tensor *z = kernel_output_from(k, 0, 0, &x->shape);
    if (!z || z->count == 0) return NULL;
    ScanJob job = {z->data,       x->data,    x->shape.dims[axis], shape_prod(&x->shape, (int)axis + 1, rank),
                   st->exclusive, st->reverse};
    threadpool_parallel_for(k->pool, x->count / job.n, 8192 / job.n + 1, range, &job);
    return NULL;
}

/* Heads the function that joins the total a and the next element b, and makes the kernel from it. */
#define SCAN(op, start)                                                   \
    static inline C NAME(op##_of)(C a, C b);                              \
    static void NAME(op##_range)(void *arg, int64_t begin, int64_t end) { \
        NAME(scan)(arg, begin, end, NAME(op##_of), start);                \
    }                                                                     \
    static Error *NAME(op)(KernelContext * k) {                           \
        return scan_run(k, NAME(op##_range));                             \
    }                                                                     \
    static inline C NAME(op##_of)(C a, C b)

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define BODY "ops/cumulative_float.inc"
#include "kernels/each_float.inc"
#undef BODY
#define BODY "ops/cumulative.inc"
#include "kernels/each_complex.inc"
#undef PLUS
#undef TIMES
#define PLUS(a, b) (C)((W)(a) + (W)(b))
#define TIMES(a, b) (C)((W)(a) * (W)(b))
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"

#define STATE .state_size = sizeof(ScanState), .init = scan_init

const KernelDef cumulative_cpu[] = {
    {"Cumsum", .by_type = {NUMBER_TYPES(cumsum)}, STATE},
    {"Cumprod", .by_type = {NUMBER_TYPES(cumprod)}, STATE},
    {"CumulativeLogsumexp", .by_type = {FLOAT_TYPES(logsumexp)}, STATE},
    {0},
};
