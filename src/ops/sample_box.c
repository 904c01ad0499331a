/* sample_box.c: SampleDistortedBoundingBox: a random part of an image that shows enough of some object. */
#include <math.h>
#include <stdlib.h>

#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/random_state.h"

const OpDef sample_box_ops[] = {
    {"SampleDistortedBoundingBox", "image_size: T, bounding_boxes: float -> begin: T, size: T, bboxes: float",
     "T: {uint8, int8, int16, int32, int64}; seed: int = 0; seed2: int = 0; min_object_covered: float = 0.10000000149; "
     "aspect_ratio_range: list(float) = [0.75, 1.330000043]; area_range: list(float) = [0.050000001, 1.0]; "
     "max_attempts: int = 100; use_image_if_no_bounding_boxes: bool = false",
     OP_STATEFUL},
    {"SampleDistortedBoundingBoxV2",
     "image_size: T, bounding_boxes: float, min_object_covered: float -> begin: T, size: T, bboxes: float",
     "T: {uint8, int8, int16, int32, int64}; seed: int = 0; seed2: int = 0; aspect_ratio_range: list(float) = [0.75, "
     "1.330000043]; area_range: list(float) = [0.050000001, 1.0]; max_attempts: int = 100; "
     "use_image_if_no_bounding_boxes: bool = false",
     OP_STATEFUL},
    {"StatelessSampleDistortedBoundingBox",
     "image_size: T, bounding_boxes: float, min_object_covered: float, seed: Tseed -> begin: T, size: T, bboxes: float",
     "T: {uint8, int8, int16, int32, int64}; Tseed: {int32, int64}; aspect_ratio_range: list(float) = [0.75, "
     "1.330000043]; area_range: list(float) = [0.050000001, 1.0]; max_attempts: int = 100; "
     "use_image_if_no_bounding_boxes: bool = false",
     0},
    {0},
};

enum { MAX_ATTEMPTS = 1 << 20 }; /* a crop not found by then is not there; the attribute may say 2^31 - 1 */

typedef struct SampleState {
    RandomState random; /* first: of the forms with a state */
    bool stateless, has_cover;
    float cover; /* of an object that must be seen; an attribute of the first form */
    float aspect[2], area[2];
    int64_t attempts;
    bool whole_image_counts; /* as an object when there is none */
} SampleState;

static Error *read_pair(const Node *node, const char *name, float *out) {
    float *items = NULL;
    int count = 0;
    Error *err = node_attr_floats(node, name, &items, &count);
    if (!err && count != 2) err = error_invalid("%s must have 2 elements, got %d", name, count);
    for (int i = 0; !err && i < 2; i++) out[i] = items[i];
    free(items);
    return err;
}

static Error *read_attributes(const Node *node, SampleState *st) {
    Str value;
    Error *err = read_pair(node, "aspect_ratio_range", st->aspect);
    if (!err) err = read_pair(node, "area_range", st->area);
    if (!err) err = node_attr_int(node, "max_attempts", &st->attempts);
    if (!err) err = node_attr_bool(node, "use_image_if_no_bounding_boxes", &st->whole_image_counts);
    if (!err && node_attr(node, "min_object_covered", &value)) {
        st->has_cover = true;
        err = node_attr_float(node, "min_object_covered", &st->cover);
    }
    if (err) return err;
    if (!(st->aspect[0] > 0 && st->aspect[1] > 0)) {
        return error_invalid("Aspect ratio range must be non-negative: [%g, %g]", (double)st->aspect[0], (double)st->aspect[1]);
    }
    if (!(st->area[0] > 0 && st->area[1] > 0)) {
        return error_invalid("Area range must be non-negative: [%g, %g]", (double)st->area[0], (double)st->area[1]);
    }
    if (!(st->area[0] <= 1 && st->area[1] <= 1)) {
        return error_invalid("Area range must be less then or equal to 1.0: [%g, %g]", (double)st->area[0],
                             (double)st->area[1]);
    }
    if (st->attempts <= 0 || st->attempts > INT32_MAX) {
        return error_invalid("Max attempts must be non-negative: %lld", (long long)st->attempts);
    }
    return NULL;
}

static Error *sample_init(const Node *node, void *state) {
    SampleState *st = state;
    Error *err = random_state_init(node, &st->random);
    if (err) return err;
    return read_attributes(node, st);
}
static void sample_clear(void *state) {
    random_state_clear(&((SampleState *)state)->random);
}
static Error *stateless_init(const Node *node, void *state) {
    ((SampleState *)state)->stateless = true;
    return read_attributes(node, state);
}

/* ---- Rectangles of pixels ---- */

typedef struct Rectangle {
    int32_t left, top, right, bottom;
} Rectangle;

static float area_of(Rectangle r) {
    return r.right > r.left && r.bottom > r.top ? (float)((int64_t)(r.right - r.left) * (r.bottom - r.top)) : 0;
}

static Rectangle common_part(Rectangle a, Rectangle b) {
    return (Rectangle){a.left > b.left ? a.left : b.left, a.top > b.top ? a.top : b.top,
                       a.right < b.right ? a.right : b.right, a.bottom < b.bottom ? a.bottom : b.bottom};
}

/* One object at least is as much in the crop as it must be. */
static bool shows_enough(Rectangle crop, float cover, const Rectangle *objects, int64_t count) {
    if (area_of(crop) < 1) return false;
    for (int64_t i = 0; i < count; i++) {
        float whole = area_of(objects[i]);
        if (whole >= 1 && area_of(common_part(crop, objects[i])) / whole >= cover) return true;
    }
    return false;
}

/* In [0, n), without the bias of a remainder. */
static uint32_t draw_below(PhiloxStream *s, uint32_t n) {
    if ((n & (n - 1)) == 0) return philox_stream_next(s) & (n - 1);
    uint32_t skip = UINT32_MAX % n + 1, bits = philox_stream_next(s);
    while (bits < skip) bits = philox_stream_next(s);
    return bits % n;
}

/* A rectangle of the given aspect ratio in an image, its size and place at random; false when none fits. */
static bool draw_crop(PhiloxStream *s, int width, int height, const float *area, float aspect, Rectangle *out) {
    if (area[1] <= 0 || aspect <= 0 || width <= 0 || height <= 0 || area[0] > area[1]) return false;
    const float least = area[0] * (float)width * (float)height, most = area[1] * (float)width * (float)height;
    int h = (int)lrintf(sqrtf(least / aspect)), h_most = (int)lrintf(sqrtf(most / aspect));
    if (lrintf((float)h_most * aspect) > width) {
        h_most = (int)(((double)width + 0.5 - 1e-7) / (double)aspect);
        if (lrintf((float)h_most * aspect) > width) h_most--;
    }
    if (h_most > height) h_most = height;
    if (h >= h_most) h = h_most;
    if (h < h_most) h += (int)draw_below(s, (uint32_t)(h_most - h + 1));
    int w = (int)lrintf((float)h * aspect);
    /* Rounding may have left the bounds by a little. */
    if ((float)w * (float)h < least) {
        h++;
        w = (int)lrintf((float)h * aspect);
    }
    if ((float)w * (float)h > most) {
        h--;
        w = (int)lrintf((float)h * aspect);
    }
    const float got = (float)w * (float)h;
    if (got < least || got > most || w > width || h > height || w <= 0 || h <= 0) return false;
    int y = h < height ? (int)draw_below(s, (uint32_t)(height - h)) : 0;
    int x = w < width ? (int)draw_below(s, (uint32_t)(width - w)) : 0;
    *out = (Rectangle){x, y, x + w, y + h};
    return true;
}

/* ---- The ops ---- */

/* A part of a side in pixels. */
static int32_t place_on(float part, int side) {
    float v = part * (float)side;
    return v < (float)side ? (int32_t)v : side;
}

/* The boxes of input 1 in pixels; *out is malloced. */
static Error *read_objects(const KernelContext *k, const SampleState *st, int width, int height, Rectangle **out,
                           int64_t *count) {
    const Tensor *boxes = k->in[1];
    if (boxes->shape.rank != 3) {
        return error_invalid("input boxes must be 3-dimensional [batch, num_boxes, coords]: %s",
                             shape_text(&boxes->shape).text);
    }
    if (boxes->shape.dims[2] != 4) {
        return error_invalid("bounding boxes must have shape [4] or [*, 4], got %s", shape_text(&boxes->shape).text);
    }
    *count = boxes->count / 4;
    if (*count == 0 && !st->whole_image_counts) {
        return error_invalid(
            "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not "
            "provide any bounding boxes.");
    }
    Rectangle *all = malloc((size_t)(*count + 1) * sizeof *all);
    if (!all) return error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for %lld boxes", (long long)*count);
    for (int64_t i = 0; i < *count; i++) {
        const float *b = tensor_f32(boxes) + 4 * i; /* top, left, bottom, right */
        for (int c = 0; c < 4; c++) {
            if (b[c] >= 0 && b[c] <= 1) continue;
            free(all);
            return error_invalid("All bounding box coordinates must be in [0.0, 1.0]: %g", (double)b[c]);
        }
        all[i] = (Rectangle){place_on(b[1], width), place_on(b[0], height), place_on(b[3], width), place_on(b[2], height)};
    }
    if (*count == 0) all[(*count)++] = (Rectangle){0, 0, width, height};
    *out = all;
    return NULL;
}

static Error *read_cover(const KernelContext *k, const SampleState *st, float *out) {
    *out = st->cover;
    if (!st->has_cover) {
        if (k->in[2]->shape.rank != 0) {
            return error_invalid("min_object_covered must be 0-D, got shape %s", shape_text(&k->in[2]->shape).text);
        }
        *out = tensor_f32(k->in[2])[0];
    }
    if (!(*out >= 0)) return error_invalid("Min object covered must be non-negative: %g", (double)*out);
    return NULL;
}

static void put_index(Tensor *t, int i, int64_t v) {
    switch ((int)t->dtype) {
        case DT_INT8:
            ((int8_t *)t->data)[i] = (int8_t)v;
            break;
        case DT_UINT8:
            ((uint8_t *)t->data)[i] = (uint8_t)v;
            break;
        case DT_INT16:
            ((int16_t *)t->data)[i] = (int16_t)v;
            break;
        default:
            index_put(t, i, v);
    }
}

static void put_crop(KernelContext *k, Rectangle r, int width, int height) {
    Shape three = shape_vector(3), box = shape_of(3, (int64_t[]){1, 1, 4});
    Tensor *begin = kernel_output(k, 0, &three), *size = begin ? kernel_output(k, 1, &three) : NULL;
    Tensor *boxes = size ? kernel_output(k, 2, &box) : NULL;
    if (!boxes) return;
    const int64_t from[3] = {r.top, r.left, 0}, extent[3] = {r.bottom - r.top, r.right - r.left, -1};
    for (int i = 0; i < 3; i++) {
        put_index(begin, i, from[i]);
        put_index(size, i, extent[i]);
    }
    float *b = tensor_f32(boxes);
    b[0] = (float)r.top / (float)height;
    b[1] = (float)r.left / (float)width;
    b[2] = (float)r.bottom / (float)height;
    b[3] = (float)r.right / (float)width;
}

static Error *sample_box(KernelContext *k) {
    SampleState *st = k->state;
    const Tensor *size = k->in[0];
    Rectangle *objects = NULL, crop = {0};
    int64_t count = 0;
    float cover = 0;
    if (st->stateless && (k->in[3]->shape.rank != 1 || k->in[3]->count != 2)) {
        return error_invalid("seed must have shape [2], not %s", shape_text(&k->in[3]->shape).text);
    }
    /* A call that fails below has used up its numbers. */
    Philox random = st->stateless
                        ? philox_from_stateless((uint64_t)index_at(k->in[3], 0), (uint64_t)index_at(k->in[3], 1))
                        : random_state_reserve(&st->random, (uint64_t)st->attempts);
    if (size->shape.rank != 1) {
        return error_invalid("image_size must be 1-dimensional%s", shape_text(&size->shape).text);
    }
    if (size->count != 3) return error_invalid("image_size must contain 3 elements%s", shape_text(&size->shape).text);
    const int64_t high = index_at(size, 0), wide = index_at(size, 1);
    if (high < 0 || high >= INT32_MAX) return error_invalid("image height cannot be >= int32 max");
    if (wide < 0 || wide >= INT32_MAX) return error_invalid("image width cannot be >= int32 max");
    const int width = (int)wide, height = (int)high;
    Error *err = read_cover(k, st, &cover);
    if (!err) err = read_objects(k, st, width, height, &objects, &count);
    if (err) return err;
    PhiloxStream stream = philox_stream(random);
    bool found = false;
    for (int64_t i = 0; i < st->attempts && i < MAX_ATTEMPTS && !found; i++) {
        float aspect = uniform_float(philox_stream_next(&stream)) * (st->aspect[1] - st->aspect[0]) + st->aspect[0];
        found = draw_crop(&stream, width, height, st->area, aspect, &crop) && shows_enough(crop, cover, objects, count);
    }
    free(objects);
    put_crop(k, found ? crop : (Rectangle){0, 0, width, height}, width, height);
    return NULL;
}

#define STATE .state_size = sizeof(SampleState), .init = sample_init, .clear = sample_clear

const KernelDef sample_box_cpu[] = {
    {"SampleDistortedBoundingBox", .run = sample_box, STATE},
    {"SampleDistortedBoundingBoxV2", .run = sample_box, STATE},
    {"StatelessSampleDistortedBoundingBox", .run = sample_box, .state_size = sizeof(SampleState),
     .init = stateless_init},
    {0},
};
