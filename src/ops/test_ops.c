/* test_ops.c: the ops that TensorFlow's package registers for its own tests and that have kernels there: labels of kernels, stub resources, where a node
 * was placed. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/op_list.h"
#include "runtime/device.h"

const OpDef test_ops_ops[] = {
    {"KernelLabel", "-> result: string", "", 0},
    {"KernelLabelRequired", "input: int32 -> result: string", "", 0},
    {"Old", "->", "", 0},
    {"DevicePlacementOp", "-> device: string", "", OP_STATEFUL},
    {"DtypeWithDefaultOp", "in: T -> dtype: string", "T: type = uint8", OP_STATEFUL},
    {"TestAttr", "-> out: T", "T: {float, double}", OP_STATEFUL},
    {"StubResourceHandleOp", "-> resource: resource", "container: string = ''; shared_name: string = ''", OP_STATEFUL},
    {"ResourceInitializedOp", "resource: resource -> initialized: bool", "", OP_STATEFUL},
    {"ResourceCreateOp", "resource: resource ->", "", OP_STATEFUL},
    {"ResourceUsingOp", "resource: resource ->", "", OP_STATEFUL},
    {0},
};

/* ---- Labels: the attribute _kernel chooses among kernels of one op ---- */

typedef struct LabelState {
    const char *label;
} LabelState;

static const char *const labels[] = {"overload_1", "overload_2"};

static Error *label_init(const Node *node, void *state) {
    LabelState *s = state;
    Str given = {0};
    Str value;
    if (node_attr(node, "_kernel", &value)) {
        Error *err = node_attr_string(node, "_kernel", &given);
        if (err) return err;
    }
    if (given.len == 0 && node_is(node, "KernelLabel")) s->label = "default";
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (str_is(given, labels[i])) s->label = labels[i];
    if (s->label) return NULL;
    return error_invalid("No OpKernel was registered to support Op '%.*s' used by {{node %.*s}} with the label '%.*s'", STR_ARG(node->op), STR_ARG(node->name), STR_ARG(given));
}

static Error *run_label(KernelContext *k) {
    const LabelState *s = k->state;
    char text[64];
    int len = snprintf(text, sizeof text, "My label is: %s", s->label);
    kernel_set_output(k, 0, tensor_scalar_str((Str){text, (size_t)len}));
    return NULL;
}

/* ---- What a node is and where ---- */

static Error *run_nothing(KernelContext *k) {
    (void)k;
    return NULL;
}

static Error *run_device(KernelContext *k) {
    kernel_set_output(k, 0, tensor_scalar_str(str_of(k->device->name)));
    return NULL;
}

static Error *run_dtype(KernelContext *k) {
    kernel_set_output(k, 0, tensor_scalar_str(str_of(dtype_name(k->in[0]->dtype))));
    return NULL;
}

static Error *run_attr(KernelContext *k) {
    Tensor *out = kernel_output(k, 0, &SHAPE_SCALAR);
    if (out) *tensor_f32(out) = 1;
    return NULL;
}

/* ---- A resource that is only there or not ---- */

static void stub_destroy(Resource *r) {
    free(r);
}

static const ResourceType stub_type = {.type_name = "N10tensorflow12StubResourceE", .what = "stub", .destroy = stub_destroy};

typedef struct HandleState {
    Str container, name;
} HandleState;

static Error *handle_init(const Node *node, void *state) {
    HandleState *s = state;
    Error *err = node_attr_string(node, "container", &s->container);
    if (!err) err = node_attr_string(node, "shared_name", &s->name);
    if (!err && s->name.len == 0) s->name = node->name;
    return err;
}

static Error *run_handle(KernelContext *k) {
    const HandleState *s = k->state;
    kernel_set_handle(k, s->container, s->name, &stub_type);
    return NULL;
}

static Error *run_initialized(KernelContext *k) {
    Resource *r = NULL;
    error_free(kernel_resource(k, 0, &stub_type, &r));
    kernel_set_output(k, 0, tensor_scalar_bool(r != NULL));
    resource_unref(r);
    return NULL;
}

static Error *run_create(KernelContext *k) {
    Resource *there = NULL;
    Error *err = kernel_resource(k, 0, &stub_type, &there);
    resource_unref(there);
    if (err && err->code != CODE_NOT_FOUND) return err;
    error_free(err);
    const ResourceHandle *h = tensor_handles(k->in[0])[0];
    Resource *stub = xcalloc(1, sizeof *stub);
    resource_init(stub, &stub_type);
    err = resource_add(kernel_resources(k), str_of(h->container), str_of(h->name), stub);
    resource_unref(stub);
    return err;
}

static Error *run_using(KernelContext *k) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, 0, &stub_type, &r);
    resource_unref(r);
    return err;
}

const KernelDef test_ops_cpu[] = {
    {"KernelLabel", .run = run_label, .state_size = sizeof(LabelState), .init = label_init},
    {"KernelLabelRequired", .run = run_label, .state_size = sizeof(LabelState), .init = label_init},
    {"Old", .run = run_nothing},
    {"DevicePlacementOp", .run = run_device},
    {"DtypeWithDefaultOp", .run = run_dtype},
    {"TestAttr", .by_type = {[DT_FLOAT] = run_attr}},
    {"StubResourceHandleOp", .run = run_handle, .state_size = sizeof(HandleState), .init = handle_init},
    {"ResourceInitializedOp", .run = run_initialized},
    {"ResourceCreateOp", .run = run_create},
    {"ResourceUsingOp", .run = run_using},
    {0},
};
