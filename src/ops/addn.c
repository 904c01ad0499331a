/* addn.c: AddN, AccumulateNV2, L2Loss. */
#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"
#include "ops/variant_math.h"

const OpDef addn_ops[] = {
    {"AddN", "inputs: N * T -> sum: T",
     "N: int >= 1; T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
     "qint16, quint16, uint16, complex128, half, uint32, uint64, variant}",
     OP_COMMUTATIVE | OP_AGGREGATE},
    {"AccumulateNV2", "inputs: N * T -> sum: T",
     "N: int >= 1; T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
     "qint16, quint16, uint16, complex128, half, uint32, uint64}; shape: shape",
     OP_COMMUTATIVE | OP_AGGREGATE},
    {"L2Loss", "t: T -> output: T", "T: {half, bfloat16, float, double}", 0},
    {0},
};

enum { ADD_N_BLOCK = 512, L2_CHUNK = 32768, L2_LANES = 32 };

typedef struct AddNJob {
    void *z;
    Tensor **in;
    int count;
} AddNJob;

static Error *add_n_run(KernelContext *k, RangeFn *range, BinaryLoop *of_two) {
    if (k->loop) {
        if (k->input_count == 2) *k->loop = (ElementLoop){.binary = of_two, .shapes = ELEMENTS_SAME_SHAPE};
        return NULL;
    }
    Tensor *x = k->in[0];
    if (k->input_count == 1) {
        kernel_set_output(k, 0, tensor_ref(x));
        return NULL;
    }
    for (int i = 1; i < k->input_count; i++) {
        if (!shape_eq(&x->shape, &k->in[i]->shape)) return different_shapes(k->node, &x->shape, i, &k->in[i]->shape);
    }
    Tensor *z = kernel_output_from(k, 0, 0, &x->shape);
    if (!z) return NULL;
    AddNJob job = {z->data, k->in, k->input_count};
    threadpool_parallel_for(k->pool, x->count, 16384, range, &job);
    return NULL;
}

/* Lists and other variants add themselves. */
static Error *add_n_variant(KernelContext *k) {
    Tensor *sum = tensor_ref(k->in[0]);
    Error *err = NULL;
    for (int i = 1; !err && i < k->input_count; i++) {
        Tensor *next = NULL;
        err = tensor_sum(sum, k->in[i], &next);
        tensor_unref(sum);
        sum = next;
    }
    if (err)
        tensor_unref(sum);
    else
        kernel_set_output(k, 0, sum);
    return err;
}

typedef struct L2Job {
    const void *x;
    int64_t n;
    double *sums; /* of each chunk */
} L2Job;

static Tensor *l2_run(KernelContext *k, RangeFn *range, double *sum) {
    const Tensor *x = k->in[0];
    Shape scalar = SHAPE_SCALAR, chunks = shape_vector((x->count + L2_CHUNK - 1) / L2_CHUNK);
    Tensor *z = kernel_output(k, 0, &scalar), *sums = z ? kernel_scratch(k, DT_DOUBLE, &chunks) : NULL;
    if (!sums) return NULL;
    L2Job job = {x->data, x->count, tensor_f64(sums)};
    threadpool_parallel_for(k->pool, sums->count, 1, range, &job);
    for (int64_t c = 0; c < sums->count; c++) *sum += job.sums[c];
    tensor_unref(sums);
    return z;
}

#define BODY "ops/addn.inc"
#define PLUS(a, b) ((a) + (b))
#include "kernels/each_float.inc"
#include "kernels/each_complex.inc"
#undef PLUS
#define PLUS(a, b) (C)((W)(a) + (W)(b))
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
#undef BODY
#define BODY "ops/l2_loss.inc"
#include "kernels/each_float.inc"

const KernelDef addn_cpu[] = {
    {"AddN", .by_type = {NUMBER_TYPES(add_n), [DT_VARIANT] = add_n_variant}, .flags = KERNEL_ELEMENTWISE},
    {"AccumulateNV2", .by_type = {NUMBER_TYPES(add_n)}},
    {"L2Loss", .by_type = {FLOAT_TYPES(l2_loss)}},
    {0},
};
