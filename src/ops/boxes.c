/* boxes.c: NonMaxSuppression in its five forms, DrawBoundingBoxes. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/as_float.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef boxes_ops[] = {
    {"NonMaxSuppression", "boxes: float, scores: float, max_output_size: int32 -> selected_indices: int32",
     "iou_threshold: float = 0.5", 0},
    {"NonMaxSuppressionV2",
     "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold -> selected_indices: int32",
     "T: {half, float} = float; T_threshold: {half, float} = float", 0},
    {"NonMaxSuppressionV3",
     "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold -> "
     "selected_indices: int32",
     "T: {half, float} = float; T_threshold: {half, float} = float", 0},
    {"NonMaxSuppressionV4",
     "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold -> "
     "selected_indices: int32, valid_outputs: int32",
     "T: {half, float} = float; T_threshold: {half, float} = float; pad_to_max_output_size: bool = false", 0},
    {"NonMaxSuppressionV5",
     "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, soft_nms_sigma: T -> "
     "selected_indices: int32, selected_scores: T, valid_outputs: int32",
     "T: {half, float} = float; pad_to_max_output_size: bool = false", 0},
    {"DrawBoundingBoxes", "images: T, boxes: float -> output: T", "T: {float, half} = float", 0},
    {"DrawBoundingBoxesV2", "images: T, boxes: float, colors: float -> output: T", "T: {float, half} = float", 0},
    {0},
};

/* ---- Non-maximum suppression ---- */

typedef struct SuppressState {
    float iou_threshold; /* of the first form, where it is an attribute */
    bool pad;            /* the result has max_output_size elements, zeros at the end */
} SuppressState;

static Error *suppress_init(const Node *node, void *state) {
    SuppressState *st = state;
    Str value;
    Error *err = NULL;
    if (node_attr(node, "iou_threshold", &value)) err = node_attr_float(node, "iou_threshold", &st->iou_threshold);
    if (!err && node_attr(node, "pad_to_max_output_size", &value)) {
        err = node_attr_bool(node, "pad_to_max_output_size", &st->pad);
    }
    return err;
}

typedef struct Candidate {
    float score;
    int32_t box;
    int compared; /* this many of the selected ones have had their say */
} Candidate;

typedef struct Suppression {
    const float *boxes; /* n x 4: two opposite corners */
    float iou_threshold, score_threshold, soft_scale;
    bool soft; /* overlap lowers the score instead of ruling out */
    Candidate *heap, *selected;
    int64_t waiting, found, most;
} Suppression;

static bool comes_before(const Candidate *a, const Candidate *b) {
    return a->score > b->score || (a->score == b->score && a->box < b->box);
}

static void heap_down(Suppression *s, int64_t i) {
    for (;;) {
        int64_t best = i;
        for (int64_t c = 2 * i + 1; c <= 2 * i + 2 && c < s->waiting; c++) {
            if (comes_before(&s->heap[c], &s->heap[best])) best = c;
        }
        if (best == i) return;
        Candidate t = s->heap[i];
        s->heap[i] = s->heap[best];
        s->heap[best] = t;
        i = best;
    }
}

/* Intersection over union. */
static float overlap_of(const float *a, const float *b) {
    float a_top = fminf(a[0], a[2]), a_bottom = fmaxf(a[0], a[2]), a_left = fminf(a[1], a[3]),
          a_right = fmaxf(a[1], a[3]);
    float b_top = fminf(b[0], b[2]), b_bottom = fmaxf(b[0], b[2]), b_left = fminf(b[1], b[3]),
          b_right = fmaxf(b[1], b[3]);
    float a_area = (a_bottom - a_top) * (a_right - a_left), b_area = (b_bottom - b_top) * (b_right - b_left);
    if (a_area <= 0 || b_area <= 0) return 0;
    float high = fmaxf(fminf(a_bottom, b_bottom) - fmaxf(a_top, b_top), 0);
    float wide = fmaxf(fminf(a_right, b_right) - fmaxf(a_left, b_left), 0);
    return high * wide / (a_area + b_area - high * wide);
}

/* The best candidate, judged by those selected since it was last looked at, is selected, put back or dropped. */
static void suppress_step(Suppression *s) {
    Candidate best = s->heap[0];
    const float before = best.score;
    bool ruled_out = false;
    for (int64_t j = s->found - 1; j >= best.compared && !ruled_out; j--) {
        float overlap = overlap_of(s->boxes + 4 * (int64_t)best.box, s->boxes + 4 * (int64_t)s->selected[j].box);
        best.score *= s->soft || overlap <= s->iou_threshold ? expf(s->soft_scale * overlap * overlap) : 0;
        if (!s->soft && overlap > s->iou_threshold) ruled_out = true;
        if (best.score <= s->score_threshold) break;
    }
    best.compared = (int)s->found;
    if (!ruled_out && best.score != before && best.score > s->score_threshold) {
        s->heap[0] = best;
    } else {
        if (!ruled_out && best.score == before) s->selected[s->found++] = best;
        s->heap[0] = s->heap[--s->waiting];
    }
    heap_down(s, 0);
}

/* The third version says it in more words than the others. */
static Error *suppress_zero_rank(const KernelContext *k, int input, const char *what) {
    const Shape *s = &k->in[input]->shape;
    if (s->rank == 0) return NULL;
    if (k->input_count == 5 && k->output_count == 1 && input < 4)
        return error_invalid("%s must be 0-D, got shape %s (Shape must be rank 0 but is rank %d)", what, shape_text(s).text, s->rank);
    return error_invalid("%s must be 0-D, got shape %s", what, shape_text(s).text);
}

static Error *suppress_scalar(const KernelContext *k, int input, const char *what, float *out) {
    Error *err = suppress_zero_rank(k, input, what);
    if (!err) floats_load(k->in[input], 0, 1, out);
    return err;
}

/* Inputs: boxes, scores, max_output_size, then as the version has them iou_threshold, score_threshold and
 * soft_nms_sigma. */
static Error *suppress_read(KernelContext *k, Suppression *s, int64_t *count, int64_t *limit) {
    const SuppressState *st = k->state;
    const Tensor *boxes = k->in[0], *scores = k->in[1];
    float sigma = 0;
    s->iou_threshold = st->iou_threshold;
    s->score_threshold = -FLT_MAX;
    Error *err = suppress_zero_rank(k, 2, "max_output_size");
    if (err) return err;
    *limit = tensor_i32(k->in[2])[0];
    if (k->input_count > 3) err = suppress_scalar(k, 3, "iou_threshold", &s->iou_threshold);
    if (!err && k->input_count > 4) err = suppress_scalar(k, 4, "score_threshold", &s->score_threshold);
    if (!err && k->input_count > 5) err = suppress_scalar(k, 5, "soft_nms_sigma", &sigma);
    if (err) return err;
    if (!(s->iou_threshold >= 0 && s->iou_threshold <= 1)) return error_invalid("iou_threshold must be in [0, 1]");
    if (!(sigma >= 0)) return error_invalid("soft_nms_sigma_val must be >= 0");
    if (*limit < 0) return error_invalid("output size must be non-negative");
    if (boxes->shape.rank != 2)
        return error_invalid("boxes must be 2-D%s (Shape must be rank 2 but is rank %d)", shape_text(&boxes->shape).text,
                             boxes->shape.rank);
    if (boxes->shape.dims[1] != 4)
        return error_invalid("boxes must have 4 columns (Dimension must be 4 but is %lld)", (long long)boxes->shape.dims[1]);
    if (scores->shape.rank != 1)
        return error_invalid("scores must be 1-D%s (Shape must be rank 1 but is rank %d)", shape_text(&scores->shape).text,
                             scores->shape.rank);
    if (scores->count != boxes->shape.dims[0])
        return error_invalid("scores has incompatible shape (Dimensions must be equal, but are %lld and %lld)",
                             (long long)boxes->shape.dims[0], (long long)scores->count);
    if (scores->count > INT32_MAX) return error_invalid("too many boxes");
    s->soft = sigma > 0;
    s->soft_scale = s->soft ? -0.5f / sigma : 0;
    *count = scores->count;
    return NULL;
}

static void suppress_outputs(KernelContext *k, const Suppression *s, int64_t limit) {
    const SuppressState *st = k->state;
    Shape shape = shape_vector(st->pad ? limit : s->found);
    bool scored = k->output_count == 3;
    Tensor *at = kernel_output(k, 0, &shape), *scores = at && scored ? kernel_output(k, 1, &shape) : NULL;
    if (!at || (scored && !scores)) return;
    if (at->count > 0) memset(at->data, 0, tensor_bytes(at));
    if (scores && scores->count > 0) memset(scores->data, 0, tensor_bytes(scores));
    for (int64_t i = 0; i < s->found; i++) {
        tensor_i32(at)[i] = s->selected[i].box;
        if (scores) floats_store(&s->selected[i].score, scores, i, 1);
    }
    Tensor *valid = k->output_count > 1 ? kernel_output(k, k->output_count - 1, &SHAPE_SCALAR) : NULL;
    if (valid) tensor_i32(valid)[0] = (int32_t)s->found;
}

static Error *suppress(KernelContext *k) {
    Suppression s = {0};
    int64_t count = 0, limit = 0;
    Error *err = suppress_read(k, &s, &count, &limit);
    if (err) return err;
    Tensor *boxes = kernel_floats(k, k->in[0]), *scores = kernel_floats(k, k->in[1]);
    s.most = limit < count ? limit : count;
    s.heap = try_alloc((size_t)(count + 1) * sizeof *s.heap);
    s.selected = try_alloc((size_t)(s.most + 1) * sizeof *s.selected);
    if (!s.heap || !s.selected) {
        err = error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for %lld boxes", (long long)count);
    } else if (boxes && scores) {
        s.boxes = boxes->data;
        for (int64_t i = 0; i < count; i++) {
            float score = tensor_f32(scores)[i];
            if (score > s.score_threshold) s.heap[s.waiting++] = (Candidate){score, (int32_t)i, 0};
        }
        for (int64_t i = s.waiting / 2; i >= 0; i--) heap_down(&s, i);
        while (s.waiting > 0 && s.found < s.most) suppress_step(&s);
        suppress_outputs(k, &s, limit);
    }
    free(s.heap);
    free(s.selected);
    tensor_unref(boxes);
    tensor_unref(scores);
    return err;
}

/* ---- Drawing ---- */

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
    if (colors && colors->shape.rank != 2) 
        return error_invalid("colors must be a 2-D matrix%s", shape_text(&colors->shape).text);
    int64_t own = colors && colors->shape.dims[0] > 0 ? colors->shape.dims[0] : 0;
    if (colors && colors->shape.dims[1] < depth) {
        return error_invalid("colors must have equal or more channels than the image provided: %s", shape_text(&colors->shape).text);
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

#define STATE .state_size = sizeof(SuppressState), .init = suppress_init

const KernelDef boxes_cpu[] = {
    {"NonMaxSuppression", .run = suppress, STATE},
    {"NonMaxSuppressionV2", .run = suppress, STATE},
    {"NonMaxSuppressionV3", .run = suppress, STATE},
    {"NonMaxSuppressionV4", .run = suppress, STATE},
    {"NonMaxSuppressionV5", .run = suppress, STATE},
    {"DrawBoundingBoxes", .run = draw},
    {"DrawBoundingBoxesV2", .run = draw},
    {0},
};
