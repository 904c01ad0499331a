/* control_flow.c: Switch, Merge, Enter, Exit, NextIteration, LoopCond and their forms on references.

   The kernels only choose and forward; iterations, frames and dead values are the step's (runtime/propagate.c). */
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef control_flow_ops[] = {
    {"Switch", "data: T, pred: bool -> output_false: T, output_true: T", "T: type", 0},
    {"RefSwitch", "data: Ref(T), pred: bool -> output_false: Ref(T), output_true: Ref(T)", "T: type", OP_UNINITIALIZED_INPUT},
    {"_SwitchN", "data: T, output_index: int32 -> outputs: num_outs * T", "num_outs: int >= 1; T: type", 0},
    {"RefSelect", "index: int32, inputs: Ref(N * T) -> output: Ref(T)", "T: type; N: int >= 1", 0},
    {"Merge", "inputs: N * T -> output: T, value_index: int32", "T: type; N: int >= 1", 0},
    {"RefMerge", "inputs: Ref(N * T) -> output: Ref(T), value_index: int32", "T: type; N: int >= 1", 0},
    {"Enter", "data: T -> output: T", "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10", 0},
    {"RefEnter", "data: Ref(T) -> output: Ref(T)", "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10", 0},
    {"Exit", "data: T -> output: T", "T: type", 0},
    {"RefExit", "data: Ref(T) -> output: Ref(T)", "T: type", 0},
    {"NextIteration", "data: T -> output: T", "T: type", 0},
    {"RefNextIteration", "data: Ref(T) -> output: Ref(T)", "T: type", 0},
    {"LoopCond", "input: bool -> output: bool", "", 0},
    {"Abort", "->", "error_msg: string = ''; exit_without_error: bool = false", 0},
    {0},
};

static void forward(KernelContext *k, int in, int out) {
    if (k->ref[in])
        kernel_set_output_ref(k, out, k->ref[in]);
    else
        kernel_set_output(k, out, tensor_ref(k->in[in]));
}

static Error *run_forward(KernelContext *k) {
    forward(k, 0, 0);
    return NULL;
}

static Error *run_switch(KernelContext *k) {
    const Tensor *pred = k->in[1];
    if (pred->count != 1 || pred->shape.rank != 0) {
        return error_invalid("The second input must be a scalar, but it has shape %s", shape_text(&pred->shape).text);
    }
    forward(k, 0, tensor_bool(pred)[0] ? 1 : 0);
    return NULL;
}

static Error *run_switch_n(KernelContext *k) {
    const Tensor *index = k->in[1];
    if (index->count != 1) return error_invalid("The second input must be a scalar, but it has shape %s", shape_text(&index->shape).text);
    int at = tensor_i32(index)[0];
    if (at < 0 || at >= k->output_count) at = k->output_count - 1;
    forward(k, 0, at);
    return NULL;
}

static Error *run_ref_select(KernelContext *k) {
    const Tensor *index = k->in[0];
    if (index->shape.rank) return error_invalid("Index must be a scalar, but it has shape %s", shape_text(&index->shape).text);
    int at = tensor_i32(index)[0];
    if (at < 0 || at >= k->input_count - 1) return error_invalid("Index must be in the range [0, %d) but got %d", k->input_count - 1, at);
    forward(k, at + 1, 0);
    return NULL;
}

static Error *run_merge(KernelContext *k) {
    for (int i = 0; i < k->input_count; i++) {
        if (!k->in[i] && !k->ref[i]) continue;
        forward(k, i, 0);
        kernel_set_output(k, 1, tensor_scalar_i32(i));
        return NULL;
    }
    return error_internal("Merge has no live input");
}

static Error *run_abort(KernelContext *k) {
    bool quiet = false;
    Str text = STR("");
    Error *err = node_attr_bool(k->node, "exit_without_error", &quiet);
    if (!err) err = node_attr_string(k->node, "error_msg", &text);
    if (err) return err;
    return error_new(CODE_ABORTED, "Abort op%s: %.*s", quiet ? " (a Rill task does not exit for a client)" : "", STR_ARG(text));
}

const KernelDef control_flow_cpu[] = {
    {"Switch", .run = run_switch, .flags = KERNEL_SKIPS},
    {"RefSwitch", .run = run_switch, .flags = KERNEL_SKIPS | KERNEL_REFS},
    {"_SwitchN", .run = run_switch_n, .flags = KERNEL_SKIPS},
    {"RefSelect", .run = run_ref_select, .flags = KERNEL_REFS},
    {"Merge", .run = run_merge},
    {"RefMerge", .run = run_merge, .flags = KERNEL_REFS},
    {"Enter", .run = run_forward},
    {"RefEnter", .run = run_forward, .flags = KERNEL_REFS},
    {"Exit", .run = run_forward},
    {"RefExit", .run = run_forward, .flags = KERNEL_REFS},
    {"NextIteration", .run = run_forward},
    {"RefNextIteration", .run = run_forward, .flags = KERNEL_REFS},
    {"LoopCond", .run = run_forward},
    {"Abort", .run = run_abort},
    {0},
};
