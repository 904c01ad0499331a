/* fused_image_conv.c: FusedPadConv2D and FusedResizeAndPadConv2D, a convolution of a padded, perhaps resized image: made of the ops they stand for. */
#include <stdlib.h>

#include "base/memory.h"
#include "graph/attr.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/pieces.h"

const OpDef fused_image_conv_ops[] = {
    {"FusedPadConv2D", "input: T, paddings: int32, filter: T -> output: T",
     "T: {half, bfloat16, float, double}; mode: {'REFLECT', 'SYMMETRIC'}; strides: list(int); padding: {'SAME', 'VALID'}", 0},
    {"FusedResizeAndPadConv2D", "input: T, size: int32, paddings: int32, filter: T -> output: T",
     "T: {half, float, double}; resize_align_corners: bool = false; mode: {'REFLECT', 'SYMMETRIC'}; strides: list(int); "
     "padding: {'SAME', 'VALID'}",
     0},
    {0},
};

enum { MAX_PARTS = 4, MAX_ATTRS = 8 };

/* A part has the attributes of the fused node, and some of its own before them. */
typedef struct ImagePart {
    Node node;
    Output inputs[2];
    DataType type;
    Attr attrs[MAX_ATTRS];
} ImagePart;

typedef struct ImageConv {
    Pieces pieces;
    ImagePart parts[MAX_PARTS];
    Node *list[MAX_PARTS];
    int count;
    char types[2][2]; /* AttrValues of types: what is given, float */
} ImageConv;

static ImagePart *add_part(ImageConv *c, const Node *fused, Str op, DataType type, int input) {
    ImagePart *part = &c->parts[c->count];
    part->type = type;
    part->node = (Node){.id = c->count, .name = fused->name, .op = op, .device = fused->device, .placed = fused->placed, .info = op_find(op),
                        .inputs = part->inputs, .attrs = part->attrs, .output_types = &part->type, .output_count = 1};
    part->inputs[part->node.input_count++] = c->count ? (Output){.node = &c->parts[c->count - 1].node} : (Output){.index = 0};
    if (input) part->inputs[part->node.input_count++] = (Output){.index = input};
    for (int i = 0; i < fused->attr_count && i < MAX_ATTRS - 2; i++) part->attrs[part->node.attr_count++] = fused->attrs[i];
    c->list[c->count++] = &part->node;
    return part;
}
static void add_attr(ImagePart *part, const char *name, Str value) {
    part->attrs[part->node.attr_count++] = (Attr){str_of(name), value};
}

static Error *image_conv_init(const Node *node, void *state) {
    ImageConv *c = state;
    DataType type = node->output_types[0];
    bool resizes = node_is(node, "FusedResizeAndPadConv2D");
    Node fused = *node;
    Str corners;
    if (resizes && node_attr(node, "resize_align_corners", &corners)) {
        for (int i = 0; i < 2; i++) c->types[i][0] = 0x30; /* AttrValue {type: ...} */
        c->types[0][1] = (char)type;
        c->types[1][1] = DT_FLOAT;
        add_attr(add_part(c, node, STR("ResizeBilinear"), DT_FLOAT, 1), "align_corners", corners);
        if (type != DT_FLOAT) {
            ImagePart *cast = add_part(c, node, STR("Cast"), type, 0);
            add_attr(cast, "SrcT", (Str){c->types[1], 2});
            add_attr(cast, "DstT", (Str){c->types[0], 2});
        }
    }
    add_part(c, node, STR("MirrorPad"), type, 1 + resizes);
    add_part(c, node, STR("Conv2D"), type, 2 + resizes);
    fused.parts = c->list;
    fused.part_count = c->count;
    return pieces_init(&c->pieces, &fused, NULL);
}

static void image_conv_clear(void *state) {
    pieces_clear(&((ImageConv *)state)->pieces);
}

static Error *image_conv_run(KernelContext *k) {
    const ImageConv *c = k->state;
    const Tensor *image = k->in[0], *paddings = k->in[k->input_count - 2];
    Tensor *values[MAX_PARTS] = {NULL};
    if (image->count == 0) return error_invalid("Input tensor can't be empty");
    if (image->shape.rank != 4) return error_invalid("input must be 4-dimensional%s", shape_text(&image->shape).text);
    if (paddings->shape.rank != 2 || paddings->shape.dims[1] != 2) {
        return error_invalid("paddings must be a matrix with 2 columns: %s", shape_text(&paddings->shape).text);
    }
    if (paddings->shape.dims[0] != 4) {
        return error_invalid("The first dimension of paddings must be the rank of inputs: 4 %s", shape_text(&paddings->shape).text);
    }
    for (int d = 0; d < 4; d += 3) {
        if (!tensor_i32(paddings)[2 * d] && !tensor_i32(paddings)[2 * d + 1]) continue;
        return error_invalid("Fused mirror padding only support spatial padding, not %s", d ? "channels" : "batches");
    }
    const Node *self = k->node;
    Error *err = pieces_run(k, &c->pieces, 0, values);
    k->node = self;
    for (int i = 0; i < MAX_PARTS; i++) tensor_unref(values[i]);
    return err;
}

#define STATE .state_size = sizeof(ImageConv), .init = image_conv_init, .clear = image_conv_clear, .flags = KERNEL_EXPENSIVE

const KernelDef fused_image_conv_cpu[] = {
    {"FusedPadConv2D",
     .by_type = {[DT_FLOAT] = image_conv_run, [DT_HALF] = image_conv_run, [DT_BFLOAT16] = image_conv_run, [DT_DOUBLE] = image_conv_run}, STATE},
    {"FusedResizeAndPadConv2D", .by_type = {[DT_FLOAT] = image_conv_run, [DT_HALF] = image_conv_run, [DT_DOUBLE] = image_conv_run}, STATE},
    {0},
};
