/* device_query.c: what a program may ask of the device it runs on: SyncDevice, CheckPinned, IsTensorFloat32Enabled, IsResourceHandleRefCounting. */
#include "ops/op_list.h"

const OpDef device_query_ops[] = {
    {"SyncDevice", "->", "", OP_STATEFUL},
    {"CheckPinned", "tensor: T -> output: T", "T: type", 0},
    {"IsTensorFloat32Enabled", "-> enabled: bool", "", OP_STATEFUL},
    {"IsResourceHandleRefCounting", "handle: resource -> result: bool", "", OP_STATEFUL},
    {0},
};

/* A kernel of the CPU has ended when it returns. */
static Error *run_sync(KernelContext *k) {
    (void)k;
    return NULL;
}

static Error *run_pinned(KernelContext *k) {
    (void)k;
    return error_new(CODE_FAILED_PRECONDITION, "to check pinnedness, must be built with `--config=cuda`");
}

static Error *answer(KernelContext *k, bool is) {
    Tensor *out = kernel_output(k, 0, &SHAPE_SCALAR);
    if (out) *tensor_bool(out) = is;
    return NULL;
}

/* TensorFlow's default, which says something of GPUs only. */
static Error *run_tensor_float(KernelContext *k) {
    return answer(k, true);
}

static Error *run_ref_counting(KernelContext *k) {
    if (k->in[0]->count < 1) return error_invalid("There is no handle in an empty tensor");
    const ResourceHandle *h = tensor_handles(k->in[0])[0];
    return answer(k, h && h->direct);
}

const KernelDef device_query_cpu[] = {
    {"SyncDevice", .run = run_sync},
    {"CheckPinned", .run = run_pinned},
    {"IsTensorFloat32Enabled", .run = run_tensor_float},
    {"IsResourceHandleRefCounting", .run = run_ref_counting},
    {0},
};
