/* const.c: Const, Placeholder and NoOp, with their kin. */
#include <stdlib.h>

#include "ops/op_list.h"
#include "runtime/device.h"
#include "tensor/tensor_proto.h"

const OpDef const_ops[] = {
    {"Const", "-> output: dtype", "value: tensor; dtype: type", 0},
    {"HostConst", "-> output: dtype", "value: tensor; dtype: type", 0},
    {"Placeholder", "-> output: dtype", "dtype: type; shape: shape = ?", 0},
    {"PlaceholderV2", "-> output: dtype", "dtype: type; shape: shape", 0},
    {"PlaceholderWithDefault", "input: dtype -> output: dtype", "dtype: type; shape: shape", 0},
    {"DeviceIndex", "-> index: int32", "device_names: list(string)", OP_STATEFUL},
    {"NoOp", "->", "", 0},
    {"ControlTrigger", "->", "", 0},
    {"ImmutableConst", "-> tensor: dtype", "dtype: type; shape: shape; memory_region_name: string", 0},
    {0},
};

/* The plan decodes the value of a Const once and hands it out itself; only HostConst comes here. */
static Error *host_const_init(const Node *node, void *state) {
    Str value, proto;
    if (!node_attr(node, "value", &value) || !attr_tensor(value, &proto)) return error_invalid("HostConst has no value");
    return tensor_proto_decode(proto, state);
}

static void host_const_clear(void *state) {
    tensor_unref(*(Tensor **)state);
}

static Error *run_const(KernelContext *k) {
    kernel_set_output(k, 0, tensor_ref(*(Tensor **)k->state));
    return NULL;
}

static Error *run_placeholder(KernelContext *k) {
    PartialShape shape = {.rank = -1};
    error_free(node_attr_shape(k->node, "shape", &shape));
    char *text = shape_str(&shape);
    Error *err = shape.rank > 0
                     ? error_invalid("You must feed a value for placeholder tensor '%.*s' with dtype %s and shape %s", STR_ARG(k->node->name),
                                     dtype_name(kernel_output_type(k, 0)), text)
                     : error_invalid("You must feed a value for placeholder tensor '%.*s' with dtype %s", STR_ARG(k->node->name),
                                     dtype_name(kernel_output_type(k, 0)));
    free(text);
    return err;
}

static Error *run_default(KernelContext *k) {
    kernel_set_output(k, 0, tensor_ref(k->in[0]));
    return NULL;
}

/* Which of the types the device is of; none of them: how many there are. */
static Error *run_device_index(KernelContext *k) {
    Str *names = NULL;
    int count = 0, found = 0;
    Error *err = node_attr_strings(k->node, "device_names", &names, &count);
    if (err) return err;
    while (found < count && !str_is(names[found], k->device->kind->type)) found++;
    free(names);
    kernel_set_output(k, 0, tensor_scalar_i32(found));
    return NULL;
}

static Error *run_nothing(KernelContext *k) {
    (void)k;
    return NULL;
}

static Error *run_immutable_const(KernelContext *k) {
    (void)k;
    return error_new(CODE_PERMISSION_DENIED, "ImmutableConst maps files into memory, which a Rill task does not do");
}

const KernelDef const_cpu[] = {
    {"Const", .run = run_const},
    {"HostConst", .run = run_const, .state_size = sizeof(Tensor *), .init = host_const_init, .clear = host_const_clear},
    {"Placeholder", .run = run_placeholder},
    {"PlaceholderV2", .run = run_placeholder},
    {"PlaceholderWithDefault", .run = run_default},
    {"DeviceIndex", .run = run_device_index},
    {"NoOp", .run = run_nothing},
    {"ControlTrigger", .run = run_nothing},
    {"ImmutableConst", .run = run_immutable_const},
    {0},
};
