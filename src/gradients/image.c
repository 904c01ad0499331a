/* image.c: gradients of resizing, cropping, warping and colours of images, and of patches cut from them. */
#include "gradients/rule.h"

static void resize_by(Builder *b, Rule *r, const char *op) {
    Output dy = rule_dy(r, 0), x = rule_in(r, 0);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op2(b, op, dy, x));
}

static void resize_bilinear_grad(Builder *b, Rule *r) {
    resize_by(b, r, "ResizeBilinearGrad");
}

static void resize_bicubic_grad(Builder *b, Rule *r) {
    resize_by(b, r, "ResizeBicubicGrad");
}

static void scale_and_translate_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), x = rule_in(r, 0), scale = rule_in(r, 2), translation = rule_in(r, 3);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op4(b, "ScaleAndTranslateGrad", dy, x, scale, translation));
}

static void resize_nearest_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), size = b_items(b, rule_in_shape(r, 0), 1, 3);
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op2(b, "ResizeNearestNeighborGrad", dy, size));
}

static void crop_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), boxes = rule_in(r, 1), which = rule_in(r, 2);
    if (rule_wants(r, 0)) {
        Output shape = rule_in_shape(r, 0);
        b_with_type(b, "T", rule_type(b, r, "T"));
        b_with(b, "method", attr_make_string(b->g->arena, rule_string(b, r, "method")));
        rule_set(r, 0, b_op4(b, "CropAndResizeGradImage", dy, boxes, which, shape));
    }
    if (rule_wants(r, 1)) rule_set(r, 1, b_op4(b, "CropAndResizeGradBoxes", dy, rule_in(r, 0), boxes, which));
}

/* The transforms, eight numbers each, as matrices, inverted, and back. */
static Output inverted(Builder *b, Output transforms) {
    Output rows = b_items(b, b_shape(b, transforms), 0, 1);
    Output last = b_fill(b, b_concat2(b, rows, b_i32s(b, 1, (int[]){1}), 0), b_scalar(b, DT_FLOAT, 1));
    Output matrices = b_reshape(b, b_concat2(b, transforms, last, 1), b_i32s(b, 3, (int[]){-1, 3, 3}));
    Output flat = b_reshape(b, b_op1(b, "MatrixInverse", matrices), b_i32s(b, 2, (int[]){-1, 9}));
    Output scale = b_slice(b, flat, b_i32s(b, 2, (int[]){0, 8}), b_i32s(b, 2, (int[]){-1, 1}));
    return b_slice(b, b_div(b, flat, scale), b_i32s(b, 2, (int[]){0, 0}), b_i32s(b, 2, (int[]){-1, 8}));
}

static void warp_grad(Builder *b, Rule *r) {
    bool v3 = node_is(rule_node(r), "ImageProjectiveTransformV3");
    Output inputs[] = {rule_dy(r, 0), inverted(b, rule_in(r, 1)), b_items(b, rule_in_shape(r, 0), 1, 3),
                       v3 ? b_scalar(b, DT_FLOAT, 0) : NO_OUTPUT};
    b_with_attrs_of(b, rule_node(r));
    rule_set(r, 0, b_op(b, v3 ? "ImageProjectiveTransformV3" : "ImageProjectiveTransformV2", inputs, v3 ? 4 : 3));
}

/* ---- Colours ---- */

static Output one_hot(Builder *b, Output index, DataType type) {
    Output depth = b_i32(b, 3), on = b_scalar(b, type, 1), off = b_scalar(b, type, 0);
    b_with_int(b, "axis", -1);
    return b_op4(b, "OneHot", index, depth, on, off);
}

static Output channel_sum(Builder *b, Output x) {
    return b_sum(b, x, b_i32s(b, 1, (int[]){-1}), true);
}

static Output turned(Builder *b, Output x, int by) {
    return b_op3(b, "Roll", x, b_i32(b, by), b_i32(b, -1));
}

static Output channel(Builder *b, Output x, int i) {
    return b_expand(b, b_op3(b, "GatherV2", x, b_i32(b, i), b_i32(b, -1)), -1);
}

/* With the largest channel M, the smallest m and d = M - m: value is M, saturation d / M, and hue a sixth of (the
 * channel after the largest - the one before) / d. Of equal channels the first is the largest and the last the
 * smallest. */
static void rgb_to_hsv_grad(Builder *b, Rule *r) {
    Output x = rule_in(r, 0), dy = rule_dy(r, 0), last = b_i32(b, -1);
    DataType type = output_dtype(x);
    b_with_type(b, "output_type", DT_INT32);
    Output largest = one_hot(b, b_op2(b, "ArgMax", x, last), type),
           back = b_op2(b, "ReverseV2", x, b_i32s(b, 1, (int[]){-1}));
    b_with_type(b, "output_type", DT_INT32);
    Output from_end = b_op2(b, "ArgMin", back, last);
    Output smallest = one_hot(b, b_from(b, 2, from_end), type);
    Output high = channel_sum(b, b_mul(b, largest, x)), low = channel_sum(b, b_mul(b, smallest, x)),
           d = b_sub(b, high, low);
    Output sides = b_sub(b, turned(b, largest, 1), turned(b, largest, 2)),
           difference = channel_sum(b, b_mul(b, sides, x));
    Output bent = b_mul(b, b_op2(b, "DivNoNan", difference, b_square(b, d)), b_sub(b, largest, smallest));
    Output dhue = b_scale(b, b_sub(b, b_op2(b, "DivNoNan", sides, d), bent), 1.0 / 6);
    Output dsaturation =
        b_sub(b, b_mul(b, largest, b_op2(b, "DivNoNan", low, b_square(b, high))), b_op2(b, "DivNoNan", smallest, high));
    Output sum = b_add(b, b_mul(b, channel(b, dy, 0), dhue), b_mul(b, channel(b, dy, 1), dsaturation));
    rule_set(r, 0, b_add(b, sum, b_mul(b, channel(b, dy, 2), largest)));
}

/* ---- Patches ---- */

/* Patches of the positions 1, 2, ... of one image tell where each element of a patch came from; 0 is padding. The
 * gradient is added up at these positions. */
static void patches_grad(Builder *b, Rule *r) {
    bool volume = node_is(rule_node(r), "ExtractVolumePatches");
    int space = volume ? 3 : 2;
    Output shape = rule_in_shape(r, 0), batch = b_items(b, shape, 0, 1), depth = b_items(b, shape, -1, 0),
           inner = b_items(b, shape, 1, -1);
    Output one = b_i32s(b, 1, (int[]){1}), minus = b_i32s(b, 1, (int[]){-1}), count = b_prod(b, inner, b_i32(b, 0));
    Output positions =
        b_reshape(b, b_range(b, b_i32(b, 1), b_shift(b, count, 1)), b_concat(b, (Output[]){one, inner, one}, 3, 0));
    b_with_attrs_of(b, rule_node(r));
    b_with_type(b, "T", DT_INT32);
    Output from = b_op1(b, volume ? "ExtractVolumePatches" : "ExtractImagePatches", positions);
    /* [batch, patches, positions of a patch, depth] -> [patches, positions, batch, depth] */
    Output places = b_shape(b, from), outside = b_items(b, places, 1, 1 + space),
           patches = b_expand(b, b_prod(b, outside, b_i32(b, 0)), 0), size = b_items(b, places, -1, 0);
    Output dy = b_reshape(b, rule_dy(r, 0), b_concat(b, (Output[]){batch, patches, size, depth}, 4, 0));
    Output rows = b_reshape(b, b_transpose(b, dy, b_i32s(b, 4, (int[]){1, 2, 0, 3})),
                            b_concat2(b, minus, b_mul(b, batch, depth), 0));
    Output sums = b_op3(b, "UnsortedSegmentSum", rows, b_shift(b, b_flatten(b, from), -1), count);
    Output apart = b_reshape(b, sums, b_concat(b, (Output[]){b_expand(b, count, 0), batch, depth}, 3, 0));
    rule_set(r, 0, b_reshape(b, b_transpose(b, apart, b_i32s(b, 3, (int[]){1, 0, 2})), shape));
}

const GradientDef image_gradients[] = {
    {"CropAndResize", crop_grad},
    {"ExtractImagePatches", patches_grad},
    {"ExtractVolumePatches", patches_grad},
    {"ImageProjectiveTransformV2", warp_grad},
    {"ImageProjectiveTransformV3", warp_grad},
    {"RGBToHSV", rgb_to_hsv_grad},
    {"ResizeBicubic", resize_bicubic_grad},
    {"ResizeBilinear", resize_bilinear_grad},
    {"ScaleAndTranslate", scale_and_translate_grad},
    {"ResizeNearestNeighbor", resize_nearest_grad},
    {0},
};
