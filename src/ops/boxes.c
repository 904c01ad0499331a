/* boxes.c: DrawBoundingBoxes. */
#include <math.h>
#include <string.h>

#include "ops/as_float.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef boxes_ops[] = {
    {"DrawBoundingBoxes", "images: T, boxes: float -> output: T", "T: {float, half} = float", 0},
    {"DrawBoundingBoxesV2", "images: T, boxes: float, colors: float -> output: T", "T: {float, half} = float", 0},
    {0},
};

static const float COLORS[][4] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},    {1, 0, 0, 1},    {0, 1, 0, 1}, {0.5f, 0, 0.5f, 1},
    {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1}, {0, 1, 1, 1}, {1, 0, 1, 1},
};

typedef struct Canvas {
    Tensor *z;
    int64_t image, height, width, depth;
    float color[4];
} Canvas;

static void draw_line(Canvas *c, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
    for (int64_t y = y0; y <= y1; y++) {
        for (int64_t x = x0; x <= x1; x++) {
            floats_store(c->color, c->z, ((c->image * c->height + y) * c->width + x) * c->depth, c->depth);
        }
    }
}

/* A border of the box in pixels; what is far outside or no number becomes some place outside. */
static int64_t border(float at, int64_t size) {
    float v = at * (float)(size - 1);
    return v > -1e9f && v < 1e9f ? (int64_t)v : v > 0 ? 1000000000 : -1000000000;
}

static void draw_box(Canvas *c, const float *box) {
    int64_t top = border(box[0], c->height), left = border(box[1], c->width);
    int64_t bottom = border(box[2], c->height), right = border(box[3], c->width);
    if (top > bottom || left > right) return;
    if (top >= c->height || bottom < 0 || left >= c->width || right < 0) return;
    int64_t y0 = top > 0 ? top : 0, y1 = bottom < c->height ? bottom : c->height - 1;
    int64_t x0 = left > 0 ? left : 0, x1 = right < c->width ? right : c->width - 1;
    if (top >= 0) draw_line(c, top, top, x0, x1);
    if (bottom < c->height) draw_line(c, bottom, bottom, x0, x1);
    if (left >= 0) draw_line(c, y0, y1, left, left);
    if (right < c->width) draw_line(c, y0, y1, right, right);
}

static Error *draw(KernelContext *k) {
    const Shape *x = &k->in[0]->shape, *boxes = &k->in[1]->shape;
    const Tensor *colors = k->input_count > 2 ? k->in[2] : NULL;
    if (x->rank != 4) return error_invalid("The rank of the images should be 4");
    if (boxes->rank != 3) return error_invalid("The rank of the boxes tensor should be 3");
    if (x->dims[0] != boxes->dims[0]) return error_invalid("The batch sizes should be the same");
    if (boxes->dims[2] != 4)
        return error_invalid("The size of the third dimension of the box must be 4. Received: %lld",
                             (long long)boxes->dims[2]);
    const int64_t depth = x->dims[3];
    if (depth != 1 && depth != 3 && depth != 4)
        return error_invalid("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
    if (colors && colors->shape.rank != 2) return error_invalid("colors must be a 2-D matrix");
    int64_t own = colors && colors->shape.dims[0] > 0 ? colors->shape.dims[0] : 0;
    if (own && colors->shape.dims[1] < depth) {
        return error_invalid("colors must have as many columns as the images have channels");
    }
    Tensor *z = kernel_output(k, 0, x);
    if (!z || z->count == 0) return NULL;
    memcpy(z->data, k->in[0]->data, tensor_bytes(z));
    Canvas c = {z, 0, x->dims[1], x->dims[2], depth, {0}};
    for (int64_t i = 0; i < x->dims[0] * boxes->dims[1]; i++) {
        int64_t box = i % boxes->dims[1];
        c.image = i / boxes->dims[1];
        for (int64_t d = 0; d < depth; d++) {
            c.color[d] = own          ? tensor_f32(colors)[box % own * colors->shape.dims[1] + d]
                         : depth == 1 ? 1
                                      : COLORS[box % 10][d];
        }
        draw_box(&c, tensor_f32(k->in[1]) + 4 * i);
    }
    return NULL;
}

const KernelDef boxes_cpu[] = {
    {"DrawBoundingBoxes", .run = draw},
    {"DrawBoundingBoxesV2", .run = draw},
    {0},
};
