/* identity.c: ops whose output is their input: Identity, IdentityN, StopGradient, Snapshot and kin. */
#include "ops/op_list.h"

const OpDef identity_ops[] = {
    {"Identity", "input: T -> output: T", "T: type", 0},
    {"IdentityN", "input: T -> output: T", "T: list(type) >= 1", 0},
    {"RefIdentity", "input: Ref(T) -> output: Ref(T)", "T: type", OP_UNINITIALIZED_INPUT},
    {"StopGradient", "input: T -> output: T", "T: type", 0},
    {"PreventGradient", "input: T -> output: T", "T: type; message: string = ''", 0},
    {"Snapshot", "input: T -> output: T", "T: type", 0},
    {"DeepCopy", "x: T -> y: T", "T: type", OP_STATEFUL},
    {"GuaranteeConst", "input: T -> output: T", "T: type", OP_STATEFUL},
    {"XlaClusterOutput", "input: T -> outputs: T", "T: type", 0},
    {"MakeWeakResourceHandle", "handle: resource -> dup: resource", "", OP_STATEFUL},
    {"XlaSharding", "input: T -> output: T", "T: type; sharding: string = ''; unspecified_dims: list(int) = []", 0},
    {"XlaOptimizationBarrier", "input: T -> output: T", "T: list(type) >= 0", 0},
    {"_EagerConst", "input: T -> output: T", "T: type", 0},
    {"DebugGradientIdentity", "input: T -> output: T", "T: type", OP_UNINITIALIZED_INPUT},
    {"DebugGradientRefIdentity", "input: Ref(T) -> output: Ref(T)", "T: type", OP_UNINITIALIZED_INPUT},
    {0},
};

static Error *run_forward(KernelContext *k) {
    for (int i = 0; i < k->input_count; i++) {
        if (k->ref[i])
            kernel_set_output_ref(k, i, k->ref[i]);
        else
            kernel_set_output(k, i, tensor_ref(k->in[i]));
    }
    return NULL;
}

static Error *run_guarantee_const(KernelContext *k) {
    if (k->in[0]->dtype == DT_RESOURCE) return error_invalid("Input tensor cannot be a resource variable handle.");
    return run_forward(k);
}

static Error *run_copy(KernelContext *k) {
    Tensor *copy = NULL;
    Error *err = tensor_copy(k->in[0], &copy);
    if (!err) kernel_set_output(k, 0, copy);
    return err;
}

const KernelDef identity_cpu[] = {
    {"Identity", .run = run_forward},
    {"IdentityN", .run = run_forward},
    {"RefIdentity", .run = run_forward, .flags = KERNEL_REFS},
    {"StopGradient", .run = run_forward},
    {"PreventGradient", .run = run_forward},
    {"Snapshot", .run = run_copy},
    {"DeepCopy", .run = run_copy},
    {"GuaranteeConst", .run = run_guarantee_const},
    {"XlaClusterOutput", .run = run_forward},       /* nothing is compiled here: the cluster is the nodes themselves */
    {"MakeWeakResourceHandle", .run = run_forward}, /* what a step holds stays until its end in either case */
    {"XlaSharding", .run = run_forward},
    {"XlaOptimizationBarrier", .run = run_forward},
    {"_EagerConst", .run = run_forward},
    {"DebugGradientIdentity", .run = run_forward},
    {"DebugGradientRefIdentity", .run = run_forward, .flags = KERNEL_REFS},
    {0},
};
