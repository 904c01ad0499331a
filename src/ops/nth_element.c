/* nth_element.c: NthElement, the n-th smallest or largest number of every row. */
#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef nth_element_ops[] = {
    {"NthElement", "input: T, n: int32 -> values: T",
     "reverse: bool = false; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
     "uint64}",
     0},
    {0},
};

typedef struct NthJob {
    void *rows, *out;
    int64_t count, n;
} NthJob;

static Error *init_nth(const Node *node, void *state) {
    return node_attr_bool(node, "reverse", state);
}

static Error *run_nth(KernelContext *k, RangeFn *range) {
    const Tensor *in = k->in[0];
    int64_t n;
    if (k->in[1]->shape.rank != 0) return error_invalid("N must be scalar but has rank %d", k->in[1]->shape.rank);
    Error *err = element_scalar_int(k, 1, "n", &n);
    if (err) return err;
    if (n < 0) return error_invalid("n must be non-negative but is %lld", (long long)n);
    if (in->shape.rank < 1) return error_invalid("Input must be at least rank 1 but is rank 0");
    Shape shape = in->shape;
    int64_t count = shape.dims[--shape.rank];
    if (n >= count) return error_invalid("Input must have last dimension > n = %lld", (long long)n);
    Tensor *out = kernel_output(k, 0, &shape), *rows = NULL;
    if (!out) return NULL;
    err = tensor_copy(in, &rows);
    if (err) return err;
    NthJob job = {rows->data, out->data, count, *(bool *)k->state ? count - 1 - n : n};
    threadpool_parallel_for(k->pool, out->count, 1 + 16384 / (count + 1), range, &job);
    tensor_unref(rows);
    return NULL;
}

#define BODY "ops/nth_element.inc"
#include "kernels/each_float.inc"
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
#undef BODY

const KernelDef nth_element_cpu[] = {
    {"NthElement", .by_type = {REAL_TYPES(run_nth)}, .state_size = sizeof(bool), .init = init_nth},
    {0},
};
