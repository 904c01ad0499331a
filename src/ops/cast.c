/* cast.c: Cast between numbers, Bitcast. */
#include <math.h>
#include <string.h>

#include "base/float16.h"
#include "ops/cast_small.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef cast_ops[] = {
    {"Cast", "x: SrcT -> y: DstT", "SrcT: type; DstT: type; Truncate: bool = false", 0},
    {"_HostCast", "x: SrcT -> y: DstT", "SrcT: type; DstT: type; Truncate: bool = false", 0},
    {"Bitcast", "input: T -> output: type",
     "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, "
     "complex128, qint8, quint8, qint16, quint16, qint32}; type: {bfloat16, half, float, double, int64, int32, "
     "uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
     0},
    {0},
};

typedef struct CastState {
    DataType from, to;
    bool truncate;
    UnaryLoop *loop; /* NULL: the value stays */
} CastState;

/* A float too large for an int8 or int16 is undefined in TensorFlow: its vector code, which takes LANES elements at a
 * time, saturates, and what remains at the end of a tensor wraps around. So it is here. */
enum { LANES_F32 = 32, LANES_F64 = 16, LANES_F16 = 16, LANES_BF16 = 8 };
static const int64_t LANES_NEVER = INT64_MAX;

#define IMAG(s) 0

#define TO_INT32(v) _Generic((v), double: to_int32, float: float_to_int32)(v)
#define TO_INT64(v) to_int64((double)(v))
#define TO_UINT32(v) to_uint32((double)(v))
#define TO_UINT64(v) to_uint64((double)(v))
#define CAST_LOOP CAST_LOOP_EACH
#define S float
#define REAL(s) (s)
#define LANES LANES_F32
#define FROM(to) f32_to_##to
#include "ops/cast_from.inc"
#undef LANES
#undef S
#undef REAL
#undef FROM
#define S double
#define REAL(s) (s)
#define LANES LANES_F64
#define FROM(to) f64_to_##to
#include "ops/cast_from.inc"
#undef LANES
#undef S
#undef REAL
#undef FROM
#undef CAST_LOOP
#define CAST_LOOP CAST_LOOP_ONCE
#define S uint16_t
#define REAL(s) half_to_float(s)
#define LANES LANES_F16
#define FROM(to) f16_to_##to
#define HALVES
#include "ops/cast_from.inc"
#undef HALVES
#undef LANES
#undef S
#undef REAL
#undef FROM
#define S uint16_t
#define REAL(s) bfloat16_to_float(s)
#define LANES LANES_BF16
#define FROM(to) bf16_to_##to
#include "ops/cast_from.inc"
#undef LANES
#define LANES LANES_NEVER
#undef S
#undef REAL
#undef FROM
#undef IMAG
#define IMAG(s) __imag__(s)
#define S float _Complex
#define REAL(s) __real__(s)
#define FROM(to) c64_to_##to
#include "ops/cast_from.inc"
#undef S
#undef REAL
#undef FROM
#define S double _Complex
#define REAL(s) __real__(s)
#define FROM(to) c128_to_##to
#include "ops/cast_from.inc"
#undef S
#undef REAL
#undef FROM
#undef IMAG
#undef TO_INT32
#undef TO_INT64
#undef TO_UINT32
#undef TO_UINT64

/* Integers that do not fit lose their upper bits. */
#define IMAG(s) 0
#define TO_INT32(v) (int32_t)(v)
#define TO_INT64(v) (int64_t)(v)
#define TO_UINT32(v) (uint32_t)(v)
#define TO_UINT64(v) (uint64_t)(v)
#define S int8_t
#define REAL(s) (s)
#define FROM(to) i8_to_##to
#include "ops/cast_from.inc"
#undef S
#undef REAL
#undef FROM
#define S int16_t
#define REAL(s) (s)
#define FROM(to) i16_to_##to
#include "ops/cast_from.inc"
#undef S
#undef REAL
#undef FROM
#define S int32_t
#define REAL(s) (s)
#define FROM(to) i32_to_##to
#include "ops/cast_from.inc"
#undef S
#undef REAL
#undef FROM
#define S int64_t
#define REAL(s) (s)
#define FROM(to) i64_to_##to
#include "ops/cast_from.inc"
#undef S
#undef REAL
#undef FROM
#define S uint8_t
#define REAL(s) (s)
#define FROM(to) u8_to_##to
#include "ops/cast_from.inc"
#undef S
#undef REAL
#undef FROM
#define S uint16_t
#define REAL(s) (s)
#define FROM(to) u16_to_##to
#include "ops/cast_from.inc"
#undef S
#undef REAL
#undef FROM
#define S uint32_t
#define REAL(s) (s)
#define FROM(to) u32_to_##to
#include "ops/cast_from.inc"
#undef S
#undef REAL
#undef FROM
#define S uint64_t
#define REAL(s) (s)
#define FROM(to) u64_to_##to
#include "ops/cast_from.inc"
#undef S
#undef REAL
#undef FROM
#define S bool
#define REAL(s) (s)
#define FROM(to) bool_to_##to
#include "ops/cast_from.inc"
#undef S
#undef REAL
#undef FROM

#define TO_ALL(from)                                                                                                  \
    [DT_FLOAT] = from##_to_f32, [DT_DOUBLE] = from##_to_f64, [DT_HALF] = from##_to_f16,                               \
    [DT_BFLOAT16] = from##_to_bf16, [DT_INT8] = from##_to_i8, [DT_INT16] = from##_to_i16, [DT_INT32] = from##_to_i32, \
    [DT_INT64] = from##_to_i64, [DT_UINT8] = from##_to_u8, [DT_UINT16] = from##_to_u16, [DT_UINT32] = from##_to_u32,  \
    [DT_UINT64] = from##_to_u64, [DT_BOOL] = from##_to_bool, [DT_COMPLEX64] = from##_to_c64,                          \
    [DT_COMPLEX128] = from##_to_c128

static UnaryLoop *const loops[DT_COUNT][DT_COUNT] = {
    [DT_FLOAT] = {TO_ALL(f32)},     [DT_DOUBLE] = {TO_ALL(f64)},    [DT_HALF] = {TO_ALL(f16)},
    [DT_BFLOAT16] = {TO_ALL(bf16)}, [DT_INT8] = {TO_ALL(i8)},       [DT_INT16] = {TO_ALL(i16)},
    [DT_INT32] = {TO_ALL(i32)},     [DT_INT64] = {TO_ALL(i64)},     [DT_UINT8] = {TO_ALL(u8)},
    [DT_UINT16] = {TO_ALL(u16)},    [DT_UINT32] = {TO_ALL(u32)},    [DT_UINT64] = {TO_ALL(u64)},
    [DT_BOOL] = {TO_ALL(bool)},     [DT_COMPLEX64] = {TO_ALL(c64)}, [DT_COMPLEX128] = {TO_ALL(c128)},
};

/* Quantised types are cast as the integers they hold. */
static DataType held_type(DataType type) {
    static const DataType held[DT_COUNT] = {[DT_QINT8] = DT_INT8, [DT_QUINT8] = DT_UINT8, [DT_QINT16] = DT_INT16, [DT_QUINT16] = DT_UINT16, [DT_QINT32] = DT_INT32};
    return type < DT_COUNT && held[type] ? held[type] : type;
}

static Error *cast_init(const Node *node, void *state) {
    CastState *st = state;
    Error *err = node_attr_type(node, "SrcT", &st->from);
    if (!err) err = node_attr_type(node, "DstT", &st->to);
    if (!err) err = node_attr_bool(node, "Truncate", &st->truncate);
    if (err || st->from == st->to) return err;
    const DataType from = held_type(st->from), to = held_type(st->to);
    st->loop = from < DT_COUNT && to < DT_COUNT ? loops[from][to] : NULL;
    if (!st->loop) st->loop = cast_small_loop(from, to);
    if (!st->loop)
        return error_unimplemented("Cast %s to %s is not supported", dtype_name(st->from), dtype_name(st->to));
    return NULL;
}

static int fraction_bits(DataType t) {
    return t == DT_DOUBLE ? 52 : t == DT_FLOAT ? 23 : t == DT_HALF ? 10 : t == DT_BFLOAT16 ? 7 : -1;
}

/* Truncate: clears the bits of the fraction that the target lacks, so that nothing is left to round. */
static Tensor *clear_fraction(KernelContext *k, const Tensor *x, int bits) {
    Tensor *t = kernel_scratch(k, x->dtype, &x->shape);
    if (!t) return NULL;
    if (x->dtype == DT_FLOAT) {
        const uint32_t keep = ~((1u << bits) - 1);
        const float *from = tensor_f32(x);
        float *to = tensor_f32(t);
        for (int64_t i = 0; i < x->count; i++)
            to[i] = isfinite(from[i]) ? float_from_bits(float_bits(from[i]) & keep) : from[i];
    } else {
        const uint64_t keep = ~((1ull << bits) - 1), *from = x->data;
        uint64_t *to = t->data;
        for (int64_t i = 0; i < x->count; i++) to[i] = isfinite(tensor_f64(x)[i]) ? from[i] & keep : from[i];
    }
    return t;
}

/* Elements a thread takes at a time: a multiple of all LANES, so that only the end of the tensor is left over. */
enum { CAST_BLOCK = 4096 };

typedef struct CastJob {
    UnaryLoop *loop;
    const Tensor *x;
    Tensor *z;
} CastJob;
static void cast_range(void *arg, int64_t begin, int64_t end) {
    const CastJob *job = arg;
    int64_t first = begin * CAST_BLOCK, last = end * CAST_BLOCK < job->x->count ? end * CAST_BLOCK : job->x->count;
    job->loop(NULL, (char *)job->z->data + (size_t)first * dtype_size(job->z->dtype),
              (const char *)job->x->data + (size_t)first * dtype_size(job->x->dtype), last - first);
}
static Error *cast_elements(KernelContext *k, UnaryLoop *loop) {
    CastJob job = {loop, k->in[0], kernel_output_from(k, 0, 0, &k->in[0]->shape)};
    if (!job.z) return NULL;
    threadpool_parallel_for(k->pool, (job.x->count + CAST_BLOCK - 1) / CAST_BLOCK, 8, cast_range, &job);
    return NULL;
}

/* LANES: an element is converted otherwise at the end of a tensor. */
static bool depends_on_place(const CastState *st) {
    bool small = st->to == DT_INT8 || st->to == DT_INT16 || st->to == DT_UINT8 || st->to == DT_UINT16;
    return small && fraction_bits(st->from) >= 0;
}

static Error *cast_run(KernelContext *k) {
    const CastState *st = k->state;
    if (k->loop) {
        if (!depends_on_place(st) && !st->truncate) k->loop->unary = st->loop;
        return NULL;
    }
    Tensor *x = k->in[0];
    if (!st->loop) {
        kernel_set_output(k, 0, tensor_ref(x));
        return NULL;
    }
    int drop = fraction_bits(st->from) - fraction_bits(st->to);
    bool shorten =
        st->truncate && drop > 0 && fraction_bits(st->to) > 0 && (x->dtype == DT_FLOAT || x->dtype == DT_DOUBLE);
    if (!shorten) return cast_elements(k, st->loop);
    Tensor *shorter = clear_fraction(k, x, drop);
    if (!shorter) return NULL;
    k->in[0] = shorter;
    Error *err = cast_elements(k, st->loop);
    k->in[0] = x;
    tensor_unref(shorter);
    return err;
}

/* ---- Bitcast ---- */

/* The last dimension goes or comes when the sizes of the types differ. */
static Error *bitcast(KernelContext *k) {
    Tensor *x = k->in[0];
    DataType to = kernel_output_type(k, 0);
    int64_t from_size = (int64_t)dtype_size(x->dtype), to_size = (int64_t)dtype_size(to);
    Shape shape = x->shape;
    if (from_size > to_size) {
        if (shape.rank == SHAPE_MAX_RANK)
            return error_invalid("Cannot bitcast a tensor of rank %d to smaller elements", shape.rank);
        shape_insert_dim(&shape, shape.rank, from_size / to_size);
    } else if (from_size < to_size) {
        if (shape.rank == 0 || shape.dims[shape.rank - 1] != to_size / from_size) {
            return error_invalid("Cannot bitcast from %d to %d", x->dtype, to);
        }
        shape_remove_dim(&shape, shape.rank - 1);
    }
    if (from_size == to_size) {
        kernel_set_output(k, 0, tensor_alias(x, to, &shape));
        return NULL;
    }
    Tensor *z = kernel_output(k, 0, &shape);
    if (z && tensor_bytes(z) > 0) memcpy(z->data, x->data, tensor_bytes(z));
    return NULL;
}

const KernelDef cast_cpu[] = {
    {"Cast", .run = cast_run, .state_size = sizeof(CastState), .init = cast_init, .flags = KERNEL_ELEMENTWISE},
    {"_HostCast", .run = cast_run, .state_size = sizeof(CastState), .init = cast_init, .flags = KERNEL_ELEMENTWISE},
    {"Bitcast", .run = bitcast},
    {0},
};
