/* isotonic.c: IsotonicRegression: the nearest falling sequence to each row. */
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef isotonic_ops[] = {
    {"IsotonicRegression", "input: T -> output: output_dtype, segments: int32",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; output_dtype: {half, "
     "bfloat16, float, double} = float",
     0},
    {0},
};

/* A number as the output's type would hold it. */
static double rounded(DataType type, double x) {
    switch (type) {
        case DT_HALF:
            return half_to_float(float_to_half((float)x));
        case DT_BFLOAT16:
            return bfloat16_to_float(float_to_bfloat16((float)x));
        case DT_FLOAT:
            return (float)x;
        default:
            return x;
    }
}

static double read_number(const Tensor *t, int64_t i) {
    switch (t->dtype) {
        case DT_HALF:
            return half_to_float(((const uint16_t *)t->data)[i]);
        case DT_BFLOAT16:
            return bfloat16_to_float(((const uint16_t *)t->data)[i]);
        case DT_FLOAT:
            return tensor_f32(t)[i];
        case DT_DOUBLE:
            return tensor_f64(t)[i];
        default:
            return (double)index_at(t, i);
    }
}

static void write_number(Tensor *t, int64_t i, double x) {
    if (t->dtype == DT_HALF)
        ((uint16_t *)t->data)[i] = float_to_half((float)x);
    else if (t->dtype == DT_BFLOAT16)
        ((uint16_t *)t->data)[i] = float_to_bfloat16((float)x);
    else if (t->dtype == DT_FLOAT)
        tensor_f32(t)[i] = (float)x;
    else
        tensor_f64(t)[i] = x;
}

/* Neighbours that share a value: their mean. */
typedef struct Pool {
    int64_t end; /* its last + 1 */
    double sum, mean;
} Pool;

/* Joins the last two while the later is above the earlier. */
static int64_t join(Pool *pools, int64_t count, DataType type) {
    while (count > 1 && pools[count - 1].mean > pools[count - 2].mean) {
        Pool *to = &pools[count - 2], *from = &pools[count - 1];
        int64_t start = count > 2 ? pools[count - 3].end : 0;
        to->end = from->end;
        to->sum = rounded(type, to->sum + from->sum);
        to->mean = rounded(type, to->sum / rounded(type, (double)(to->end - start)));
        count--;
    }
    return count;
}

static Error *run_isotonic(KernelContext *k) {
    const Tensor *in = k->in[0];
    int rank = in->shape.rank;
    int64_t n = rank ? in->shape.dims[rank - 1] : 1, rows = n ? in->count / n : 0;
    Tensor *out = kernel_output(k, 0, &in->shape), *segments = out ? kernel_output(k, 1, &in->shape) : NULL;
    if (!segments) return NULL;
    if (rows >= INT32_MAX || n >= INT32_MAX) return error_invalid("Tensor too large");
    Pool *pools = xmalloc((size_t)(n + 1) * sizeof *pools);
    for (int64_t row = 0; row < rows; row++) {
        int64_t count = 0, at = 0;
        for (int64_t i = 0; i < n; i++) {
            double x = rounded(out->dtype, read_number(in, row * n + i));
            pools[count++] = (Pool){i + 1, x, x};
            count = join(pools, count, out->dtype);
        }
        for (int64_t p = 0; p < count; p++)
            for (; at < pools[p].end; at++) {
                write_number(out, row * n + at, pools[p].mean);
                tensor_i32(segments)[row * n + at] = (int32_t)p;
            }
    }
    free(pools);
    return NULL;
}

const KernelDef isotonic_cpu[] = {
    {"IsotonicRegression", .run = run_isotonic, .flags = KERNEL_EXPENSIVE},
    {0},
};
