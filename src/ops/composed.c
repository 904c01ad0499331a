/* composed.c: fused ops of a TensorFlow master's optimiser, made of the parts they stand for: _FusedMatMul, _FusedConv2D and their like, _UnaryOpsComposition. Those with Mkl in their
   name are made by a master that uses oneDNN, as it does unless told otherwise.

   A part is a node of its own, with the attributes of the fused one; so parts have the bits of the ops they are named after, and are fused as Rill's own are. */
#include <stdlib.h>
#include <tgmath.h>

#include "base/float16.h"
#include "base/memory.h"
#include "ops/elementwise.h"
#include "ops/elements.h"
#include "ops/fused_byte_conv.h"
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

/* FusedBatchNorm of doubles, which is no op: x, scale, offset, mean, variance. */
static Error *norm_run(KernelContext *k) {
    const Tensor *x = k->in[0];
    const int64_t channels = x->shape.rank > 0 ? x->shape.dims[x->shape.rank - 1] : 0;
    float epsilon;
    Error *err = node_attr_float(k->node, "epsilon", &epsilon);
    if (err) return err;
    for (int i = 1; i < 5; i++) {
        if (k->in[i]->shape.rank != 1 || k->in[i]->count != channels)
            return error_invalid("Argument %d of a fused batch norm must have %lld elements, got %s", i, (long long)channels, shape_text(&k->in[i]->shape).text);
    }
    Tensor *y = kernel_output_from(k, 0, 0, &x->shape);
    if (!y) return NULL;
    const double *scale = tensor_f64(k->in[1]), *offset = tensor_f64(k->in[2]), *mean = tensor_f64(k->in[3]), *variance = tensor_f64(k->in[4]);
    for (int64_t at = 0; at < y->count; at += channels) {
        for (int64_t c = 0; c < channels; c++)
            tensor_f64(y)[at + c] = (tensor_f64(x)[at + c] - mean[c]) * (1 / sqrt(variance[c] + (double)epsilon) * scale[c]) + offset[c];
    }
    return NULL;
}

static const KernelDef own_kernels[] = {
    {"FusedBatchNorm", .by_type = {[DT_DOUBLE] = norm_run}},
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
        bool wide = c->fused->output_types[0] == DT_DOUBLE;
        Part *part = add_part(c, wide ? op : STR("FusedBatchNormV3"), 4);
        if (wide) return NULL;
        add_attr(part, "is_training", (Str){no, sizeof no});
        part->node.output_count = MAX_PART_OUTPUTS;
        for (int i = 1; i < MAX_PART_OUTPUTS; i++) part->types[i] = DT_FLOAT;
    } else if (str_is(op, "LeakyRelu") && node_attr(c->fused, "leakyrelu_alpha", &alpha)) {
        add_attr(add_part(c, op, 0), "alpha", alpha);
    } else {
        int i = 0;
        while (unary[i] && !str_is(op, unary[i])) i++;
        if (!unary[i]) return error_unimplemented("Fusion with %.*s", STR_ARG(op));
        add_part(c, op, 0);
    }
    return NULL;
}

/* Instead of err, which is freed: that these cannot be fused. */
static Error *not_implemented(Error *err, const Str *ops, int count) {
    StrBuf text = {0};
    for (int i = 0; i < count; i++) strbuf_addf(&text, "%s%.*s", i ? "," : "", STR_ARG(ops[i]));
    error_free(err);
    err = error_unimplemented("Fusion is not implemented: [%.*s]", STR_ARG(strbuf_str(&text)));
    strbuf_clear(&text);
    return err;
}

/* The parts take as many inputs as the node has arguments. */
static Error *check_arguments(const Composition *c, const char *head, Str first) {
    const Node *node = c->fused;
    int64_t given = 0;
    Error *err = node_attr_int(node, "num_args", &given);
    if (err || (given == c->next_input - 2 && c->next_input <= node->input_count)) return err;
    if (str_is(first, "FusedBatchNorm"))
        return error_invalid("Fused %s with FusedBatchNorm must have four extra arguments: scale, offset, mean, variance.", head);
    if (str_is(first, "BiasAdd") && c->next_input == 3)
        return error_invalid("Fused %s with BiasAdd must have one extra argument: bias or 4 extra arguments: bias, side_input, conv_input_scale and side_input_scale.", head);
    return error_invalid("Fused %s must have %d extra arguments, got %lld", head, c->next_input - 2, (long long)given);
}

/* Makes the parts: the head, unless it is NULL, then those that `attr` names, each as `add` says. */
static Error *compose(FusedState *st, const Node *node, const char *head, const char *attr, Error *(*add)(Composition *c, Str op)) {
    Str *ops = NULL;
    int count = 0;
    Error *err = node_attr_strings(node, attr, &ops, &count);
    if (!err && count < 1 && head) err = error_invalid("Fused %s must have at least one fused op.", head);
    if (!err && (count < 1 || count >= TILE_MAX_PIECES)) err = error_invalid("A composition of %d ops", count);
    if (err) goto out;
    size_t parts = (size_t)count + 1, attrs = parts * ((size_t)node->attr_count + MAX_ADDED_ATTRS);
    st->own = xcalloc(1, parts * sizeof(Part) + attrs * sizeof(Attr));
    Composition c = {.fused = node, .parts = st->own, .attrs = (Attr *)((Part *)st->own + parts)};
    if (head) add_part(&c, str_of(head), 2);
    for (int i = 0; !err && i < count; i++) err = add(&c, ops[i]);
    if (err && head) err = not_implemented(err, ops, count);
    if (!err && head) err = check_arguments(&c, head, ops[0]);
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

/* Of floats, or of bytes. */
typedef struct FusedConv {
    FusedState fused;
    ByteConv bytes;
} FusedConv;

static Error *fused_conv2d_init(const Node *node, void *state) {
    DataType type = dtype_base(node->output_types[0]);
    if (type == DT_INT8 || type == DT_QINT8) return byte_conv_init(node, &((FusedConv *)state)->bytes);
    return compose(state, node, "Conv2D", "fused_ops", add_fused);
}
static Error *fused_depthwise_init(const Node *node, void *state) {
    return compose(state, node, "DepthwiseConv2dNative", "fused_ops", add_fused);
}
static Error *fused_conv3d_init(const Node *node, void *state) {
    return compose(state, node, "Conv3D", "fused_ops", add_fused);
}
static Error *fused_batch_matmul_init(const Node *node, void *state) {
    return compose(state, node, "BatchMatMulV2", "fused_ops", add_fused);
}

/* A bias is a vector, whatever the head makes of the rest. */
static Error *composed_run(KernelContext *k) {
    const FusedState *st = k->state;
    if (st->pieces.count > 1 && str_is(st->pieces.pieces[1].node->op, "BiasAdd") && k->in[2]->shape.rank != 1)
        return error_invalid("bias must be 1-dimensional%s", shape_text(&k->in[2]->shape).text);
    return fused_run(k);
}

/* The first takes the input, each other the result of the one before it. */
static Error *add_unary(Composition *c, Str op) {
    if (!op_find(op)) return error_invalid("Do not have a compute function registered for op: %.*s", STR_ARG(op));
    add_part(c, op, c->count == 0);
    return NULL;
}
static Error *composition_init(const Node *node, void *state) {
    return compose(state, node, NULL, "op_names", add_unary);
}

static Error *bytes_run(KernelContext *k) {
    return byte_conv_run(k, &((FusedConv *)k->state)->bytes);
}

#define STATE(init_of) .state_size = sizeof(FusedState), .init = init_of, .clear = fused_clear
#define THREE_TYPES {[DT_FLOAT] = composed_run, [DT_HALF] = composed_run, [DT_BFLOAT16] = composed_run}

const KernelDef composed_cpu[] = {
    {"_FusedMatMul", .by_type = THREE_TYPES, STATE(fused_matmul_init), .flags = KERNEL_EXPENSIVE},
    {"_FusedConv2D", .by_type = {[DT_FLOAT] = composed_run, [DT_HALF] = composed_run, [DT_DOUBLE] = composed_run, [DT_INT8] = bytes_run, [DT_QINT8] = bytes_run},
     .state_size = sizeof(FusedConv), .init = fused_conv2d_init, .clear = fused_clear, .flags = KERNEL_EXPENSIVE},
    {"_FusedDepthwiseConv2dNative", .by_type = THREE_TYPES, STATE(fused_depthwise_init), .flags = KERNEL_EXPENSIVE},
    {"_FusedConv3D", .by_type = THREE_TYPES, STATE(fused_conv3d_init), .flags = KERNEL_EXPENSIVE},
    {"_MklFusedBatchMatMulV2", .by_type = THREE_TYPES, STATE(fused_batch_matmul_init), .flags = KERNEL_EXPENSIVE},
    {"_MklSwish", .by_type = {FLOAT_TYPES(swish)}, .flags = KERNEL_ELEMENTWISE},
    {"_MklFusedMish", .by_type = {FLOAT_TYPES(mish)}, .flags = KERNEL_ELEMENTWISE},
    {"_UnaryOpsComposition", .run = fused_run, STATE(composition_init)},
    {0},
};
