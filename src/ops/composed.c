/* composed.c: fused ops of a TensorFlow master's optimiser, made of the parts they stand for: _FusedMatMul, _FusedConv2D and their like, _UnaryOpsComposition. Those with Mkl in their
   name are made by a master that uses oneDNN, as it does unless told otherwise.

   A part is a node of its own, with the attributes of the fused one; so parts have the bits of the ops they are named after, and are fused as Rill's own are. */
#include <stdlib.h>
#include <tgmath.h>

#include "base/float16.h"
#include "base/memory.h"
#include "ops/elementwise.h"
#include "ops/fused_elementwise.h"
#include "ops/op_list.h"

#define FUSION "fused_ops: list(string) = []; epsilon: float = 9.9999997e-05; leakyrelu_alpha: float = 0.20000000298"

const OpDef composed_ops[] = {
    {"_FusedMatMul", "a: T, b: T, args: num_args * T -> product: T",
     "transpose_a: bool = false; transpose_b: bool = false; T: {bfloat16, half, float}; num_args: int >= 0; " FUSION, 0},
    {"_FusedConv2D", "input: T, filter: T, args: TArgs, host_args: num_host_args * float -> output: T",
     "T: {half, float, double, int8, qint8}; TArgs: list(type) >= 1; num_args: int >= 0; num_host_args: int >= 0 = "
     "0; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; data_format: "
     "{'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'; filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'; dilations: "
     "list(int) = [1, 1, 1, 1]; use_cudnn_on_gpu: bool = true; " FUSION, 0},
    {"_FusedDepthwiseConv2dNative", "input: T, filter: T, args: num_args * T -> output: T",
     "T: {half, bfloat16, float, double}; num_args: int >= 0; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
     "dilations: list(int) = [1, 1, 1, 1]; " FUSION, 0},
    {"_FusedConv3D", "input: T, filter: T, args: num_args * T -> output: T",
     "T: {half, bfloat16, float, double}; num_args: int >= 0; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; "
     "dilations: list(int) = [1, 1, 1, 1, 1]; padding_list: list(int) = []; " FUSION, 0},
    {"_MklFusedBatchMatMulV2", "x: T, y: T, args: num_args * T -> output: T",
     "T: {bfloat16, half, float}; adj_x: bool = false; adj_y: bool = false; num_args: int >= 0; " FUSION, 0},
    {"_MklSwish", "features: T -> activations: T", "T: {float, bfloat16, half} = float", 0},
    {"_MklFusedMish", "features: T -> activations: T", "T: {float, bfloat16, half}", 0},
    {"_UnaryOpsComposition", "x: T -> y: T", "T: {float, half, double}; op_names: list(string)", 0},
    {0},
};

/* ---- Activations that are no ops of their own ---- */

#define BODY "ops/composed_activation.inc"
#include "kernels/each_float.inc"

static const KernelDef own_kernels[] = {
    {"GeluApproximate", .by_type = {FLOAT_TYPES(gelu_tanh)}, .flags = KERNEL_ELEMENTWISE},
    {"GeluExact", .by_type = {FLOAT_TYPES(gelu_erf)}, .flags = KERNEL_ELEMENTWISE},
    {"_MklSwish", .by_type = {FLOAT_TYPES(swish)}, .flags = KERNEL_ELEMENTWISE},
    {"_FusedHardSwish", .by_type = {FLOAT_TYPES(hard_swish)}, .flags = KERNEL_ELEMENTWISE},
    {"Mish", .by_type = {FLOAT_TYPES(mish)}, .flags = KERNEL_ELEMENTWISE},
    {0},
};

/* ---- Parts ---- */

enum { MAX_ADDED_ATTRS = 2, MAX_PART_INPUTS = 5, MAX_PART_OUTPUTS = 6 };

typedef struct Part {
    Node node;
    Output inputs[MAX_PART_INPUTS];
    DataType types[MAX_PART_OUTPUTS];
    Attr *attrs;
} Part;

typedef struct Composition {
    const Node *fused;
    Part *parts;
    Attr *attrs; /* room for those of all parts */
    int count, next_input;
} Composition;

/* A part that takes the result of the one before it, and so many inputs of the fused node. */
static Part *add_part(Composition *c, Str op, int inputs) {
    Part *part = &c->parts[c->count];
    const Node *fused = c->fused;
    int from_before = c->count > 0;
    part->node = (Node){.id = c->count, .name = fused->name, .op = op, .device = fused->device, .placed = fused->placed, .info = op_find(op),
                        .inputs = part->inputs, .input_count = from_before + inputs, .output_types = part->types, .output_count = 1};
    part->node.attrs = c->attrs + (size_t)c->count * (size_t)(fused->attr_count + MAX_ADDED_ATTRS);
    for (int i = 0; i < fused->attr_count; i++) part->node.attrs[part->node.attr_count++] = fused->attrs[i];
    part->types[0] = fused->output_types[0];
    if (from_before) part->inputs[0] = (Output){.node = &c->parts[c->count - 1].node};
    for (int i = 0; i < inputs; i++) part->inputs[from_before + i] = (Output){.index = c->next_input++};
    c->count++;
    return part;
}

static void add_attr(Part *part, const char *name, Str value) {
    part->node.attrs[part->node.attr_count++] = (Attr){str_of(name), value};
}

/* One of fused_ops. */
static Error *add_fused(Composition *c, Str op) {
    static const char *const unary[] = {"Relu", "Relu6", "Elu", "Tanh", "Sigmoid", "GeluApproximate", "GeluExact", "_MklSwish", "_FusedHardSwish", "Mish", NULL};
    Str alpha;
    if (str_is(op, "BiasAdd") || str_is(op, "Mul")) {
        add_part(c, op, 1);
    } else if (str_is(op, "Add")) {
        add_part(c, STR("AddV2"), 1);
    } else if (str_is(op, "FusedBatchNorm")) {
        static const char no[] = {0x28, 0}; /* AttrValue {b: false} */
        Part *part = add_part(c, STR("FusedBatchNormV3"), 4);
        add_attr(part, "is_training", (Str){no, sizeof no});
        part->node.output_count = MAX_PART_OUTPUTS;
        for (int i = 1; i < MAX_PART_OUTPUTS; i++) part->types[i] = DT_FLOAT;
    } else if (str_is(op, "LeakyRelu") && node_attr(c->fused, "leakyrelu_alpha", &alpha)) {
        add_attr(add_part(c, op, 0), "alpha", alpha);
    } else {
        int i = 0;
        while (unary[i] && !str_is(op, unary[i])) i++;
        if (!unary[i]) return error_unimplemented("%.*s: fusion with %.*s is not implemented", STR_ARG(c->fused->op), STR_ARG(op));
        add_part(c, op, 0);
    }
    return NULL;
}

/* Makes the parts: the head, unless it is NULL, then those that `attr` names, each as `add` says. */
static Error *compose(FusedState *st, const Node *node, const char *head, const char *attr, Error *(*add)(Composition *c, Str op)) {
    Str *ops = NULL;
    int count = 0;
    Error *err = node_attr_strings(node, attr, &ops, &count);
    if (!err && (count + (head != NULL) < 1 || count >= TILE_MAX_PIECES)) err = error_invalid("A composition of %d ops", count);
    if (err) goto out;
    size_t parts = (size_t)count + 1, attrs = parts * ((size_t)node->attr_count + MAX_ADDED_ATTRS);
    st->own = xcalloc(1, parts * sizeof(Part) + attrs * sizeof(Attr));
    Composition c = {.fused = node, .parts = st->own, .attrs = (Attr *)((Part *)st->own + parts)};
    if (head) add_part(&c, str_of(head), 2);
    for (int i = 0; !err && i < count; i++) err = add(&c, ops[i]);
    if (!err && c.next_input > node->input_count)
        err = error_invalid("Fused %.*s must have %d extra arguments, got %d", STR_ARG(node->op), c.next_input - 2, node->input_count - 2);
    if (err) goto out;
    Node *list[TILE_MAX_PIECES + 1], fused = *node;
    for (int i = 0; i < c.count; i++) list[i] = &c.parts[i].node;
    fused.parts = list;
    fused.part_count = c.count;
    err = fused_init_parts(st, &fused, own_kernels, head != NULL);
out:
    free(ops);
    return err;
}

static Error *fused_matmul_init(const Node *node, void *state) {
    return compose(state, node, "MatMul", "fused_ops", add_fused);
}
static Error *fused_conv2d_init(const Node *node, void *state) {
    return compose(state, node, "Conv2D", "fused_ops", add_fused);
}
static Error *fused_depthwise_init(const Node *node, void *state) {
    return compose(state, node, "DepthwiseConv2dNative", "fused_ops", add_fused);
}
static Error *fused_conv3d_init(const Node *node, void *state) {
    int64_t *padding = NULL;
    int count = 0;
    Error *err = node_attr_ints(node, "padding_list", &padding, &count);
    free(padding);
    if (!err && count) err = error_unimplemented("_FusedConv3D with a padding_list");
    return err ? err : compose(state, node, "Conv3D", "fused_ops", add_fused);
}
static Error *fused_batch_matmul_init(const Node *node, void *state) {
    return compose(state, node, "BatchMatMulV2", "fused_ops", add_fused);
}

/* The first takes the input, each other the result of the one before it. */
static Error *add_unary(Composition *c, Str op) {
    add_part(c, op, c->count == 0);
    return NULL;
}
static Error *composition_init(const Node *node, void *state) {
    return compose(state, node, NULL, "op_names", add_unary);
}

#define STATE(init_of) .state_size = sizeof(FusedState), .init = init_of, .clear = fused_clear
#define THREE_TYPES {[DT_FLOAT] = fused_run, [DT_HALF] = fused_run, [DT_BFLOAT16] = fused_run}

const KernelDef composed_cpu[] = {
    {"_FusedMatMul", .by_type = THREE_TYPES, STATE(fused_matmul_init), .flags = KERNEL_EXPENSIVE},
    {"_FusedConv2D", .by_type = {[DT_FLOAT] = fused_run, [DT_HALF] = fused_run, [DT_DOUBLE] = fused_run}, STATE(fused_conv2d_init), .flags = KERNEL_EXPENSIVE},
    {"_FusedDepthwiseConv2dNative", .by_type = THREE_TYPES, STATE(fused_depthwise_init), .flags = KERNEL_EXPENSIVE},
    {"_FusedConv3D", .by_type = THREE_TYPES, STATE(fused_conv3d_init), .flags = KERNEL_EXPENSIVE},
    {"_MklFusedBatchMatMulV2", .by_type = THREE_TYPES, STATE(fused_batch_matmul_init), .flags = KERNEL_EXPENSIVE},
    {"_MklSwish", .by_type = {FLOAT_TYPES(swish)}, .flags = KERNEL_ELEMENTWISE},
    {"_MklFusedMish", .by_type = {FLOAT_TYPES(mish)}, .flags = KERNEL_ELEMENTWISE},
    {"_UnaryOpsComposition", .run = fused_run, STATE(composition_init)},
    {0},
};
