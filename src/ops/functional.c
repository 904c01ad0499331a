/* functional.c: ops that run functions: PartitionedCall, If, Case, While, For; and _Arg, _Retval inside the functions.

   These kernels run what the master did not lower to Switch and Merge (placement/lower.c). Each defers, runs bodies as steps of their own and
   completes with their results. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/function.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "runtime/function_runtime.h"
#include "runtime/step.h"
#include "runtime/step_context.h"

#define CALL_ATTRS \
    "Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = ''; config_proto: string = ''; executor_type: string = ''"
#define IF_ATTRS \
    "Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; then_branch: func; else_branch: func; output_shapes: list(shape) = []"
#define CASE_ATTRS "Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1; output_shapes: list(shape) = []"
#define WHILE_ATTRS "T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = []; parallel_iterations: int = 10"

const OpDef functional_ops[] = {
    {"_Arg", "-> output: T", "T: type; index: int >= 0", OP_STATEFUL},
    {"_Retval", "input: T ->", "T: type; index: int >= 0", OP_STATEFUL},
    {"PartitionedCall", "args: Tin -> output: Tout", CALL_ATTRS, 0},
    {"StatefulPartitionedCall", "args: Tin -> output: Tout", CALL_ATTRS, OP_STATEFUL},
    {"SymbolicGradient", "input: Tin -> output: Tout", "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func", 0},
    {"RemoteCall", "target: string, args: Tin -> output: Tout", "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func", OP_STATEFUL},
    {"If", "cond: Tcond, input: Tin -> output: Tout", IF_ATTRS, OP_STATEFUL},
    {"StatelessIf", "cond: Tcond, input: Tin -> output: Tout", IF_ATTRS, 0},
    {"Case", "branch_index: int32, input: Tin -> output: Tout", CASE_ATTRS, OP_STATEFUL},
    {"StatelessCase", "branch_index: int32, input: Tin -> output: Tout", CASE_ATTRS, 0},
    {"While", "input: T -> output: T", WHILE_ATTRS, OP_STATEFUL},
    {"StatelessWhile", "input: T -> output: T", WHILE_ATTRS, 0},
    {"For", "start: int32, limit: int32, delta: int32, input: T -> output: T", "T: list(type) >= 0; body: func", 0},
    {"ToBool", "input: T -> output: bool", "T: type", 0},
    {"FakeParam", "-> output: dtype", "dtype: type; shape: shape", 0},
    {"_ListToArray", "input: Tin -> output: N * T", "Tin: list(type) >= 1; T: type; N: int >= 1", 0},
    {"_ArrayToList", "input: N * T -> output: out_types", "T: type; N: int >= 1; out_types: list(type) >= 1", 0},
    {0},
};

/* The functions a node names; they live in the node. */
typedef struct Functions {
    Str *items;
    int count;
    Arena *arena; /* of a reference made here */
} Functions;

static Error *functions_init(const Node *node, void *state) {
    static const char *const names[] = {"f", "then_branch", "else_branch", "cond", "body"};
    Functions *f = state;
    Str value;
    int listed = node_attr(node, "branches", &value) ? attr_list_funcs(value, NULL, 0) : 0;
    f->items = xcalloc((size_t)(listed > 0 ? listed : 0) + 5, sizeof *f->items);
    if (listed > 0) f->count = attr_list_funcs(value, f->items, listed);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (node_attr(node, names[i], &value) && attr_func(value, &f->items[f->count])) f->count++;
    if (f->count) return NULL;
    return error_invalid("Node %.*s names no function", STR_ARG(node->name));
}

static void functions_clear(void *state) {
    Functions *f = state;
    free(f->items);
    arena_free(f->arena);
}

/* ---- Arguments and results ---- */

static Error *index_init(const Node *node, void *state) {
    return node_attr_int(node, "index", state);
}

static Error *run_arg(KernelContext *k) {
    const StepIo *io = kernel_step_io(k);
    int64_t i = *(int64_t *)k->state;
    if (i < 0 || i >= io->arg_count || !io->args[i]) return error_invalid("Argument %lld of the function is missing", (long long)i);
    if (io->args[i]->dtype != kernel_output_type(k, 0))
        return error_invalid("Expects arg[%lld] to be %s but %s is provided", (long long)i, dtype_name(kernel_output_type(k, 0)), dtype_name(io->args[i]->dtype));
    kernel_set_output(k, 0, tensor_ref(io->args[i]));
    return NULL;
}

static Error *run_retval(KernelContext *k) {
    const StepIo *io = kernel_step_io(k);
    int64_t i = *(int64_t *)k->state;
    if (i < 0 || i >= io->ret_count) return error_invalid("Result %lld of the function does not exist", (long long)i);
    tensor_unref(io->rets[i]);
    io->rets[i] = tensor_ref(k->in[0]);
    return NULL;
}

/* ---- Calls ---- */

static bool of_branches(const KernelContext *k) {
    return node_is(k->node, "If") || node_is(k->node, "StatelessIf") || node_is(k->node, "Case") || node_is(k->node, "StatelessCase");
}

static void take_results(KernelContext *k, Tensor **rets, int ret_count, Error **err) {
    if (!*err && ret_count != k->output_count && node_is(k->node, "SymbolicGradient"))
        *err = error_invalid("SymGrad expects to return %d tensor(s), but get %d tensor(s) instead.", k->output_count, ret_count);
    else if (!*err && ret_count != k->output_count)
        *err = of_branches(k) ? error_internal("Expect to produce %d tensors, but only get %d", k->output_count, ret_count)
                              : error_internal("Missing %d-th output from {{node %.*s}}", ret_count < k->output_count ? ret_count : k->output_count, STR_ARG(k->node->name));
    for (int i = 0; !*err && i < ret_count; i++) {
        const char *got = dtype_name(rets[i]->dtype), *expected = dtype_name(kernel_output_type(k, i));
        if (rets[i]->dtype == kernel_output_type(k, i)) continue;
        *err = of_branches(k) ? error_internal("Expect %d-th output is of type %s but get %s", i, expected, got)
                              : error_internal("Output %d of type %s does not match declared output type %s for node {{node %.*s}}", i, got, expected, STR_ARG(k->node->name));
    }
    for (int i = 0; !*err && i < ret_count; i++) {
        kernel_set_output(k, i, rets[i]);
        rets[i] = NULL;
    }
}

static void call_done(void *arg, Error *err, Tensor **rets, int ret_count) {
    KernelContext *k = arg;
    take_results(k, rets, ret_count, &err);
    kernel_done(k, err);
}

static Error *call(KernelContext *k, Str function, int skip) {
    KernelContext *waiting = kernel_defer(k);
    function_run(waiting, function, waiting->in + skip, waiting->input_count - skip, call_done, waiting);
    return NULL;
}

static Error *run_call(KernelContext *k) {
    const Functions *f = k->state;
    return call(k, f->items[0], 0);
}

static Error *run_remote_call(KernelContext *k) {
    const Functions *f = k->state;
    if (k->in[0]->count != 1) return error_invalid("The target of a RemoteCall is one device");
    Error *err = function_check_device(k, tstring_str(&tensor_str(k->in[0])[0]));
    return err ? err : call(k, f->items[0], 1);
}

/* A node whose op is a function's name: the function with the node's attributes. SymbolicGradient too names itself, and its attribute what it differentiates. */
static Error *named_init(const Node *node, void *state) {
    Functions *f = state;
    f->arena = arena_new();
    f->items = xcalloc(1, sizeof *f->items);
    f->items[0] = function_reference(f->arena, node);
    f->count = 1;
    return NULL;
}

/* True as Python means it: a scalar is not zero, a string or any other tensor is not empty. */
static Error *truth(const Tensor *t, bool *out) {
    if (t->shape.rank > 0) {
        *out = t->count > 0;
        return NULL;
    }
    switch (t->dtype) {
        case DT_BOOL: *out = tensor_bool(t)[0]; return NULL;
        case DT_FLOAT: *out = tensor_f32(t)[0] != 0; return NULL;
        case DT_DOUBLE: *out = tensor_f64(t)[0] != 0; return NULL;
        case DT_INT32: *out = tensor_i32(t)[0] != 0; return NULL;
        case DT_INT64: *out = tensor_i64(t)[0] != 0; return NULL;
        case DT_UINT8:
        case DT_INT8: *out = tensor_u8(t)[0] != 0; return NULL;
        case DT_INT16:
        case DT_UINT16: *out = ((int16_t *)t->data)[0] != 0; return NULL;
        case DT_STRING: *out = tstring_str(tensor_str(t)).len != 0; return NULL;
        default: return error_invalid("%s cannot be converted to a boolean", dtype_name(t->dtype));
    }
}

static Error *run_if(KernelContext *k) {
    const Functions *f = k->state;
    bool yes = false;
    Error *err = truth(k->in[0], &yes);
    return err ? err : call(k, f->items[yes ? 0 : 1], 1);
}

static Error *run_case(KernelContext *k) {
    const Functions *f = k->state;
    if (k->in[0]->shape.rank != 0) return error_invalid("branch_index must be scalar");
    int i = tensor_i32(k->in[0])[0];
    return call(k, f->items[i >= 0 && i < f->count ? i : f->count - 1], 1);
}

/* ---- While and For: one struct, advanced by each body or condition that ends ---- */

typedef struct Loop {
    KernelContext *k;
    Str cond, body;
    Tensor **vars;
    int count;
    bool counting; /* For: no condition, vars[0] is the index */
    int64_t at, limit, delta;
} Loop;

static void loop_advance(Loop *loop);

static void loop_end(Loop *loop, Error *err) {
    KernelContext *k = loop->k;
    int skip = loop->counting ? 1 : 0;
    for (int i = 0; i < loop->count; i++) {
        if (!err && i >= skip)
            kernel_set_output(k, i - skip, loop->vars[i]);
        else
            tensor_unref(loop->vars[i]);
    }
    free(loop->vars);
    free(loop);
    kernel_done(k, err);
}

static void body_done(void *arg, Error *err, Tensor **rets, int ret_count) {
    Loop *loop = arg;
    int skip = loop->counting ? 1 : 0;
    if (!err && ret_count != loop->count - skip)
        err = error_invalid("%s loop body returned %d arguments. Expected: %d", loop->counting ? "For" : "While", ret_count, loop->count - skip);
    for (int i = 0; !err && i < ret_count; i++) {
        if (rets[i]->dtype != loop->vars[i + skip]->dtype) {
            err = error_invalid("Expected type %s for return value %d but got %s.", dtype_name(loop->vars[i + skip]->dtype), i, dtype_name(rets[i]->dtype));
            break;
        }
        tensor_unref(loop->vars[i + skip]);
        loop->vars[i + skip] = rets[i];
        rets[i] = NULL;
    }
    if (err) {
        loop_end(loop, err);
        return;
    }
    loop->at += loop->delta;
    loop_advance(loop);
}

static void cond_done(void *arg, Error *err, Tensor **rets, int ret_count) {
    Loop *loop = arg;
    bool yes = false;
    if (!err && ret_count != 1) err = error_invalid("Expected a single scalar return value from WhileOp cond, got %d tensors.", ret_count);
    if (!err) err = truth(rets[0], &yes);
    if (err || !yes)
        loop_end(loop, err);
    else
        function_run(loop->k, loop->body, loop->vars, loop->count, body_done, loop);
}

static void loop_advance(Loop *loop) {
    Error *err = cancel_reason(kernel_cancel(loop->k));
    if (err) {
        loop_end(loop, err);
    } else if (!loop->counting) {
        function_run(loop->k, loop->cond, loop->vars, loop->count, cond_done, loop);
    } else if (loop->delta > 0 ? loop->at < loop->limit : loop->at > loop->limit) {
        tensor_unref(loop->vars[0]);
        loop->vars[0] = tensor_scalar_i32((int32_t)loop->at);
        function_run(loop->k, loop->body, loop->vars, loop->count, body_done, loop);
    } else {
        loop_end(loop, NULL);
    }
}

static Error *run_while(KernelContext *k) {
    const Functions *f = k->state;
    if (f->count != 2) return error_invalid("While needs a condition and a body");
    Loop *loop = xcalloc(1, sizeof *loop);
    loop->count = k->input_count;
    loop->cond = f->items[0];
    loop->body = f->items[1];
    loop->vars = xcalloc((size_t)loop->count, sizeof(Tensor *));
    for (int i = 0; i < loop->count; i++) loop->vars[i] = tensor_ref(k->in[i]);
    loop->k = kernel_defer(k);
    loop_advance(loop);
    return NULL;
}

static Error *run_for(KernelContext *k) {
    static const char *const names[] = {"start", "limit", "delta"};
    const Functions *f = k->state;
    int64_t start, limit, delta;
    Error *err = NULL;
    for (int i = 0; !err && i < 3; i++) {
        if (k->in[i]->shape.rank) err = error_invalid("%s must be a scalar, but %s", names[i], shape_text(&k->in[i]->shape).text);
    }
    if (!err) err = kernel_scalar_int(k, 0, &start);
    if (!err) err = kernel_scalar_int(k, 1, &limit);
    if (!err) err = kernel_scalar_int(k, 2, &delta);
    if (!err && !((delta > 0 && start <= limit) || (delta < 0 && start >= limit) || (delta == 0 && start == limit)))
        err = error_invalid("Invalid start/limit/delta: %lld %lld %lld", (long long)start, (long long)limit, (long long)delta);
    if (err) return err;
    Loop *loop = xcalloc(1, sizeof *loop);
    *loop = (Loop){.body = f->items[0], .counting = true, .at = start, .limit = limit, .delta = delta, .count = k->input_count - 2};
    loop->vars = xcalloc((size_t)loop->count, sizeof(Tensor *));
    loop->vars[0] = tensor_scalar_i32((int32_t)start);
    for (int i = 1; i < loop->count; i++) loop->vars[i] = tensor_ref(k->in[i + 2]);
    loop->k = kernel_defer(k);
    loop_advance(loop);
    return NULL;
}

/* ---- Small ones ---- */

static Error *run_to_bool(KernelContext *k) {
    bool yes = false;
    Error *err = truth(k->in[0], &yes);
    if (!err) kernel_set_output(k, 0, tensor_scalar_bool(yes));
    return err;
}

/* A value that no one reads, for results that a branch does not have: unknown dimensions are 0, of an unknown rank it is a scalar. */
static Error *run_fake_param(KernelContext *k) {
    PartialShape shape;
    Error *err = node_attr_shape(k->node, "shape", &shape);
    if (err) return err;
    if (shape.rank < 0) shape.rank = 0;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) shape.dims[i] = 0;
    Tensor *out = kernel_output(k, 0, &shape);
    if (out && dtype_is_plain(out->dtype)) memset(out->data, 0, tensor_bytes(out));
    return NULL;
}

static Error *run_list_forward(KernelContext *k) {
    if (k->input_count != k->output_count) return error_invalid("%d inputs for %d outputs", k->input_count, k->output_count);
    for (int i = 0; i < k->input_count; i++)
        if (k->in[i]->dtype != kernel_output_type(k, i))
            return error_invalid("Input %d is %s, output %d is %s", i, dtype_name(k->in[i]->dtype), i, dtype_name(kernel_output_type(k, i)));
    for (int i = 0; i < k->input_count; i++) kernel_set_output(k, i, tensor_ref(k->in[i]));
    return NULL;
}

#define RUNS_FUNCTIONS .state_size = sizeof(Functions), .init = functions_init, .clear = functions_clear, .flags = KERNEL_DEFERS

const KernelDef functional_cpu[] = {
    {"_Arg", .run = run_arg, .state_size = sizeof(int64_t), .init = index_init},
    {"_Retval", .run = run_retval, .state_size = sizeof(int64_t), .init = index_init},
    {"PartitionedCall", .run = run_call, RUNS_FUNCTIONS},
    {"StatefulPartitionedCall", .run = run_call, RUNS_FUNCTIONS},
    {"_FunctionCall", .run = run_call, .state_size = sizeof(Functions), .init = named_init, .clear = functions_clear, .flags = KERNEL_DEFERS},
    {"SymbolicGradient", .run = run_call, .state_size = sizeof(Functions), .init = named_init, .clear = functions_clear, .flags = KERNEL_DEFERS},
    {"RemoteCall", .run = run_remote_call, RUNS_FUNCTIONS},
    {"If", .run = run_if, RUNS_FUNCTIONS},
    {"StatelessIf", .run = run_if, RUNS_FUNCTIONS},
    {"Case", .run = run_case, RUNS_FUNCTIONS},
    {"StatelessCase", .run = run_case, RUNS_FUNCTIONS},
    {"While", .run = run_while, RUNS_FUNCTIONS},
    {"StatelessWhile", .run = run_while, RUNS_FUNCTIONS},
    {"For", .run = run_for, RUNS_FUNCTIONS},
    {"ToBool", .run = run_to_bool},
    {"FakeParam", .run = run_fake_param},
    {"_ListToArray", .run = run_list_forward},
    {"_ArrayToList", .run = run_list_forward},
    {0},
};
