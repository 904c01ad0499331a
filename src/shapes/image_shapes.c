/* image_shapes.c: rules of images: decoded, resized, cropped, coloured, boxed. */
#include "shapes/rule_list.h"

/* A size from a tensor; TensorFlow takes negative ones for unknown here. */
static int64_t known_or_not(int64_t size) {
    return size < 0 ? DIM_UNKNOWN : size;
}

/* A scalar's worth of an image: [?,?,channels]. */
static int64_t channels_attr(ShapeContext *c) {
    int64_t n = ctx_attr_int(c, "channels");
    if (n < 0) ctx_fail(c, "channels must be non-negative, got %lld", (long long)n);
    return n == 0 ? DIM_UNKNOWN : n;
}

static void decode_image(ShapeContext *c) {
    ctx_want_scalar(c, 0);
    ctx_out(c, 0, (PartialShape){3, {DIM_UNKNOWN, DIM_UNKNOWN, channels_attr(c)}});
}

static void decode_webp(ShapeContext *c) {
    ctx_want_scalar(c, 0);
    ctx_out(c, 0, (PartialShape){4, {DIM_UNKNOWN, DIM_UNKNOWN, DIM_UNKNOWN, channels_attr(c)}});
}

static void decode_any_image(ShapeContext *c) {
    ctx_want_scalar(c, 0);
    int64_t channels = channels_attr(c);
    if (!ctx_attr_bool(c, "expand_animations")) ctx_out(c, 0, (PartialShape){3, {DIM_UNKNOWN, DIM_UNKNOWN, channels}});
}

static void decode_and_crop(ShapeContext *c) {
    const Tensor *window = ctx_value(c, 1);
    PartialShape out = {3, {DIM_UNKNOWN, DIM_UNKNOWN, channels_attr(c)}};
    ctx_want_scalar(c, 0);
    ctx_dim_is(c, ctx_in_rank(c, 1, 1).dims[0], 4);
    for (int i = 0; window && i < 2 && !c->err; i++) {
        out.dims[i] = known_or_not(tensor_index(window, i + 2));
    }
    ctx_out(c, 0, out);
}

/* [batch, height, width, channels] with height and width of vector input `size_input`. */
static void sized(ShapeContext *c, int64_t batch, int size_input, int64_t channels) {
    PartialShape size_shape = ctx_in_rank(c, size_input, 1), out = {4, {batch, DIM_UNKNOWN, DIM_UNKNOWN, channels}};
    ctx_dim_is(c, size_shape.dims[0], 2);
    const Tensor *size = ctx_value(c, size_input);
    for (int i = 0; size && i < 2 && !c->err; i++) {
        out.dims[i + 1] = known_or_not(tensor_index(size, i));
    }
    ctx_out(c, 0, out);
}

void rule_resize(ShapeContext *c) {
    PartialShape in = ctx_in_rank(c, 0, 4);
    sized(c, in.dims[0], 1, in.dims[3]);
}

static void resize_grad(ShapeContext *c) {
    ctx_out(c, 0, c->in[1]);
}

static void crop_and_resize(ShapeContext *c) {
    PartialShape image = ctx_in_rank(c, 0, 4), boxes = ctx_in_rank(c, 1, 2), index = ctx_in_rank(c, 2, 1);
    int64_t count = ctx_merge_dim(c, boxes.dims[0], index.dims[0]);
    ctx_dim_is(c, boxes.dims[1], 4);
    sized(c, count, 3, image.dims[3]);
}

static void crop_grad_image(ShapeContext *c) {
    PartialShape out = ctx_shape_of(c, 3);
    ctx_out(c, 0, ctx_rank(c, out, 4));
}

static void glimpse(ShapeContext *c) {
    PartialShape in = ctx_in_rank(c, 0, 4), offsets = ctx_in_rank(c, 2, 2);
    int64_t batch = ctx_merge_dim(c, in.dims[0], offsets.dims[0]);
    ctx_dim_is(c, offsets.dims[1], 2);
    sized(c, batch, 1, in.dims[3]);
}

static void projective_transform(ShapeContext *c) {
    PartialShape in = ctx_in_rank(c, 0, 4);
    sized(c, in.dims[0], 2, in.dims[3]);
}

static void colours(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 1);
    if (s.rank >= 0) s = ctx_replace(c, s, -1, ctx_dim_is(c, shape_dim(s, -1), 3));
    ctx_out(c, 0, s);
}

static void adjust(ShapeContext *c) {
    ctx_out(c, 0, ctx_rank_at_least(c, c->in[0], 3));
}

static void adjust_contrast(ShapeContext *c) {
    for (int i = 1; i < c->in_count; i++) ctx_want_scalar(c, i);
    adjust(c);
}

static void draw_boxes(ShapeContext *c) {
    PartialShape boxes = ctx_in_rank(c, 1, 3), images = ctx_in_rank(c, 0, 4);
    int64_t depth = images.dims[3];
    ctx_dim_is(c, boxes.dims[2], 4);
    if (depth >= 0 && depth != 1 && depth != 3 && depth != 4)
        ctx_fail(c, "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), not %lld", (long long)depth);
    ctx_out(c, 0, c->in[0]);
}

static void draw_boxes_v2(ShapeContext *c) {
    ctx_out(c, 0, ctx_rank_at_least(c, c->in[0], 3));
}

static void crop_grad_boxes(ShapeContext *c) {
    ctx_out(c, 0, c->in[2]);
}

static void sample_box(ShapeContext *c) {
    PartialShape image_size = ctx_in_rank(c, 0, 1), boxes = ctx_in_rank(c, 1, 3);
    ctx_dim_is(c, image_size.dims[0], 3);
    ctx_dim_is(c, boxes.dims[2], 4);
    if (c->in_count > 2) ctx_want_scalar(c, 2);
    if (c->in_count > 3) ctx_dim_is(c, ctx_in_rank(c, 3, 1).dims[0], 2);
    ctx_out(c, 0, shape_vector(3));
    ctx_out(c, 1, shape_vector(3));
    ctx_out(c, 2, (PartialShape){3, {1, 1, 4}});
}

/* The outputs of V4 and V5 may be padded to max_output_size. */
static void nms_padded(ShapeContext *c) {
    int vectors = c->out_count - 1;
    int64_t n = DIM_UNKNOWN;
    if (ctx_attr_bool(c, "pad_to_max_output_size")) n = ctx_dim_of(c, 2);
    for (int i = 0; i < vectors; i++) ctx_out(c, i, shape_vector(n));
    ctx_out(c, vectors, SHAPE_SCALAR);
}

static void combined_nms(ShapeContext *c) {
    PartialShape boxes = ctx_in_rank(c, 0, 4), scores = ctx_in_rank(c, 1, 3);
    ctx_want_scalar(c, 2);
    ctx_want_scalar(c, 3);
    ctx_want_scalar(c, 4);
    ctx_want_scalar(c, 5);
    ctx_merge_dim(c, boxes.dims[0], scores.dims[0]);
    ctx_merge_dim(c, boxes.dims[1], scores.dims[1]);
    ctx_dim_is(c, boxes.dims[3], 4);
    int64_t q = boxes.dims[2], classes = scores.dims[2], per_class, n = DIM_UNKNOWN;
    if (q >= 0 && classes >= 0 && q != 1 && q != classes)
        ctx_fail(c, "third dimension of boxes must be either 1 or equal to the third dimension of scores");
    int64_t total = ctx_dim_of(c, 3);
    ctx_dim_of(c, 2);
    if (ctx_attr_bool(c, "pad_per_class") && ctx_int(c, 2, &per_class) && per_class <= 0)
        ctx_fail(c, "max_output_size_per_class must be > 0 if pad_per_class is set to true");
    if (ctx_value(c, 3) && total <= 0) ctx_fail(c, "max_total_size should be > 0");
    if (total >= 0) {
        n = total;
        if (ctx_attr_bool(c, "pad_per_class")) {
            if (!ctx_int(c, 2, &per_class)) n = DIM_UNKNOWN;
            else if (classes < 0) n = DIM_UNKNOWN;
            else if (ctx_dim_mul(c, per_class, classes) < n) n = per_class * classes;
        }
    }
    int64_t batch = boxes.dims[0];
    ctx_out(c, 0, (PartialShape){3, {batch, n, 4}});
    ctx_out(c, 1, shape_matrix(batch, n));
    ctx_out(c, 2, shape_matrix(batch, n));
    ctx_out(c, 3, shape_vector(batch));
}

static void random_crop(ShapeContext *c) {
    PartialShape image = ctx_in_rank(c, 0, 3), size = ctx_shape_of(c, 1);
    ctx_dim_is(c, ctx_in_rank(c, 1, 1).dims[0], 2);
    if (size.rank != 2) size = shape_unknown_dims(2);
    ctx_out(c, 0, (PartialShape){3, {size.dims[0], size.dims[1], image.dims[2]}});
}

const ShapeRow image_rules[] = {
    {"AdjustContrast", adjust_contrast, 0},
    {"AdjustContrastv2", adjust_contrast, 0},
    {"AdjustHue", adjust, 0},
    {"AdjustSaturation", adjust, 0},
    {"CombinedNonMaxSuppression", combined_nms, 0},
    {"CropAndResize", crop_and_resize, 0},
    {"CropAndResizeGradBoxes", crop_grad_boxes, 0},
    {"CropAndResizeGradImage", crop_grad_image, 0},
    {"DecodeAndCropJpeg", decode_and_crop, 0},
    {"DecodeBmp", decode_image, 0},
    {"DecodeWebP", decode_webp, 0},
    {"DecodeGif", 0, "[] -> [?,?,?,3]"},
    {"DecodeImage", decode_any_image, 0},
    {"DecodeJpeg", decode_image, 0},
    {"DecodePng", decode_image, 0},
    {"DrawBoundingBoxes", draw_boxes, 0},
    {"DrawBoundingBoxesV2", draw_boxes_v2, 0},
    {"EncodeJpeg", 0, "[?,?,?] -> []"},
    {"EncodeJpegVariableQuality", 0, "[?,?,?] * -> []"},
    {"EncodePng", 0, "[S...,?,?,?] -> S"},
    {"ExtractGlimpse", glimpse, 0},
    {"RandomCrop", random_crop, 0},
    {"ExtractGlimpseV2", glimpse, 0},
    {"ExtractJpegShape", 0, "[] -> [3]"},
    {"HSVToRGB", colours, 0},
    {"ImageProjectiveTransformV2", projective_transform, 0},
    {"ImageProjectiveTransformV3", projective_transform, 0},
    {"NonMaxSuppression", 0, "[n,4] [n] [] -> [?]"},
    {"NonMaxSuppressionV2", 0, "[n,4] [n] [] [] -> [?]"},
    {"NonMaxSuppressionV3", 0, "[n,4] [n] [] [] [] -> [?]"},
    {"NonMaxSuppressionV4", nms_padded, "[n,4] [n] [] [] []"},
    {"NonMaxSuppressionV5", nms_padded, "[n,4] [n] [] [] [] []"},
    {"NonMaxSuppressionWithOverlaps", 0, "[n,n] [n] [] [] [] -> [?]"},
    {"RGBToHSV", colours, 0},
    {"ResizeArea", rule_resize, 0},
    {"ResizeBicubic", rule_resize, 0},
    {"ResizeBicubicGrad", resize_grad, 0},
    {"ResizeBilinear", rule_resize, 0},
    {"ResizeBilinearGrad", resize_grad, 0},
    {"ResizeNearestNeighbor", rule_resize, 0},
    {"ResizeNearestNeighborGrad", rule_resize, 0},
    {"SampleDistortedBoundingBox", sample_box, 0},
    {"SampleDistortedBoundingBoxV2", sample_box, 0},
    {"StatelessSampleDistortedBoundingBox", sample_box, 0},
    {"ScaleAndTranslate", rule_resize, 0},
    {"ScaleAndTranslateGrad", resize_grad, 0},
    {0},
};
