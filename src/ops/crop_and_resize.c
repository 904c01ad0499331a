/* crop_and_resize.c: CropAndResize: boxes cut out of images and brought to one size; its gradients. */
#include <math.h>
#include <string.h>

#include "ops/as_float.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef crop_and_resize_ops[] = {
    {"CropAndResize", "image: T, boxes: float, box_ind: int32, crop_size: int32 -> crops: float",
     "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; method: {'bilinear', 'nearest'} = "
     "'bilinear'; extrapolation_value: float = 0.0",
     0},
    {"CropAndResizeGradImage", "grads: float, boxes: float, box_ind: int32, image_size: int32 -> output: T",
     "T: {float, half, double}; method: {'bilinear', 'nearest'} = 'bilinear'", 0},
    {"CropAndResizeGradBoxes", "grads: float, image: T, boxes: float, box_ind: int32 -> output: float",
     "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; method: {'bilinear'} = 'bilinear'", 0},
    {0},
};

typedef struct CropState {
    bool nearest;
    float outside;
} CropState;

static Error *crop_init(const Node *node, void *state) {
    CropState *st = state;
    Str method, value;
    Error *err = node_attr_string(node, "method", &method);
    if (!err && node_attr(node, "extrapolation_value", &value)) {
        err = node_attr_float(node, "extrapolation_value", &st->outside);
    }
    if (!err) st->nearest = str_is(method, "nearest");
    return err;
}

typedef struct CropJob {
    const CropState *state;
    int64_t batch, in_h, in_w, channels, boxes, out_h, out_w;
    const float *box; /* boxes x (y1, x1, y2, x2), where 0 and 1 are the borders of the image */
    const int32_t *image_of;
    const float *image, *dz;
    void *to;
} CropJob;

/* Inputs `boxes` and the next. */
static Error *read_boxes(const KernelContext *k, int boxes, CropJob *job) {
    const Tensor *box = k->in[boxes], *image_of = k->in[boxes + 1];
    const bool forward = str_is(k->node->op, "CropAndResize");
    if (box->shape.rank != 2) return error_invalid(forward ? "boxes must be 2-D, got: %s" : "boxes must be 2-D%s", shape_text(&box->shape).text);
    if (box->shape.dims[1] != 4) return error_invalid("boxes must have 4 columns");
    if (image_of->shape.rank != 1) {
        return error_invalid(forward ? "box_indices must be rank 1 but is shape %s" : "box_index must be 1-D%s", shape_text(&image_of->shape).text);
    }
    if (image_of->count != box->shape.dims[0]) return error_invalid("box_index has incompatible shape");
    job->boxes = image_of->count;
    job->box = tensor_f32(box);
    job->image_of = tensor_i32(image_of);
    for (int64_t i = 0; i < box->count; i++)
        if (!isfinite(job->box[i])) return error_invalid("Boxes contains at least one element that is not finite");
    for (int64_t i = 0; i < job->boxes; i++) {
        if (job->image_of[i] < 0 || job->image_of[i] >= job->batch) {
            return error_new(CODE_OUT_OF_RANGE, "box_index has values outside [0, batch_size)");
        }
    }
    return NULL;
}

/* Where along a side of n pixels place i of `out` lies; from and to are the box's ends. */
static float place_of(int64_t i, int64_t out, float from, float to, int64_t n) {
    if (out <= 1) return 0.5f * (from + to) * (float)(n - 1);
    float scale = (to - from) * (float)(n - 1) / (float)(out - 1);
    return from * (float)(n - 1) + (float)i * scale;
}
static bool is_inside(float place, int64_t n) {
    return place >= 0 && place <= (float)(n - 1);
}

/* The two pixels around a place and how far it is from the first. */
typedef struct Between {
    int64_t low, high;
    float part;
} Between;
static Between between(float place) {
    float low = floorf(place);
    return (Between){(int64_t)low, (int64_t)ceilf(place), place - low};
}

/* ---- Forward ---- */

enum { COLUMNS = 256 }; /* of the result that are worked on together */

/* Where they lie in a box, the same for each row. */
typedef struct Columns {
    int64_t first, count;
    Between between[COLUMNS];
    bool is_inside[COLUMNS];
} Columns;

static void find_columns(const CropJob *job, int64_t b, Columns *columns) {
    const float *box = job->box + 4 * b;
    for (int64_t x = 0; x < columns->count; x++) {
        float along = place_of(columns->first + x, job->out_w, box[1], box[3], job->in_w);
        columns->is_inside[x] = is_inside(along, job->in_w);
        if (!columns->is_inside[x]) continue;
        columns->between[x] = between(along);
        if (job->state->nearest) columns->between[x].low = (int64_t)roundf(along);
    }
}

static void crop_row(const CropJob *job, int64_t b, int64_t y, const Columns *columns, float *z) {
    const float *box = job->box + 4 * b;
    const int64_t c = job->channels, row = job->in_w * c;
    const float *image = job->image + job->image_of[b] * job->in_h * row;
    const float down = place_of(y, job->out_h, box[0], box[2], job->in_h);
    const bool row_inside = is_inside(down, job->in_h);
    const Between v = between(row_inside ? down : 0);
    const float *nearest = image + (row_inside ? (int64_t)roundf(down) : 0) * row, *top = image + v.low * row, *bottom = image + v.high * row;
    for (int64_t x = 0; x < columns->count; x++, z += c) {
        const Between h = columns->between[x];
        if (!row_inside || !columns->is_inside[x]) {
            for (int64_t i = 0; i < c; i++) z[i] = job->state->outside;
        } else if (job->state->nearest) {
            memcpy(z, nearest + h.low * c, (size_t)c * sizeof *z);
        } else {
            for (int64_t i = 0; i < c; i++) {
                float upper = top[h.low * c + i] + (top[h.high * c + i] - top[h.low * c + i]) * h.part;
                float lower = bottom[h.low * c + i] + (bottom[h.high * c + i] - bottom[h.low * c + i]) * h.part;
                z[i] = upper + (lower - upper) * v.part;
            }
        }
    }
}

static void crop_range(void *arg, int64_t begin, int64_t end) {
    const CropJob *job = arg;
    Columns columns = {0};
    for (; columns.first < job->out_w; columns.first += COLUMNS) {
        columns.count = job->out_w - columns.first < COLUMNS ? job->out_w - columns.first : COLUMNS;
        for (int64_t row = begin; row < end; row++) {
            const int64_t b = row / job->out_h, y = row % job->out_h;
            if (row == begin || y == 0) find_columns(job, b, &columns);
            crop_row(job, b, y, &columns, (float *)job->to + (row * job->out_w + columns.first) * job->channels);
        }
    }
}

static Error *crop_and_resize(KernelContext *k) {
    const Tensor *size = k->in[3];
    const Shape *x = &k->in[0]->shape;
    if (x->rank != 4) return error_invalid("input image must be 4-D%s", shape_text(x).text);
    if (x->dims[1] <= 0 || x->dims[2] <= 0) return error_invalid("image dimensions must be positive");
    CropJob job = {
        .state = k->state, .batch = x->dims[0], .in_h = x->dims[1], .in_w = x->dims[2], .channels = x->dims[3]};
    Error *err = read_boxes(k, 1, &job);
    if (err) return err;
    if (size->shape.rank != 1) return error_invalid("crop_size must be 1-D%s", shape_text(&size->shape).text);
    if (size->count != 2) return error_invalid("crop_size must have two elements%s", shape_text(&size->shape).text);
    job.out_h = tensor_i32(size)[0];
    job.out_w = tensor_i32(size)[1];
    if (job.out_h <= 0 || job.out_w <= 0) return error_invalid("crop dimensions must be positive");
    Shape shape = shape_of(4, (int64_t[]){job.boxes, job.out_h, job.out_w, job.channels});
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || z->count == 0) return NULL;
    Tensor *image = kernel_floats(k, k->in[0]);
    if (!image) return NULL;
    job.image = image->data;
    job.to = z->data;
    threadpool_parallel_for(k->pool, job.boxes * job.out_h, 8192 / (job.out_w * job.channels) + 1, crop_range, &job);
    tensor_unref(image);
    return NULL;
}

/* ---- Gradients ---- */

static void add_to(double *dx, const float *dz, float weight, int64_t n) {
    for (int64_t i = 0; i < n; i++) dx[i] += (double)(dz[i] * weight);
}

static void grad_image_pixel(const CropJob *job, double *dx, const float *dz, float down, float along) {
    const int64_t c = job->channels, w = job->in_w;
    if (job->state->nearest) {
        add_to(dx + ((int64_t)roundf(down) * w + (int64_t)roundf(along)) * c, dz, 1, c);
        return;
    }
    const Between v = between(down), h = between(along);
    add_to(dx + (v.low * w + h.low) * c, dz, (1 - v.part) * (1 - h.part), c);
    add_to(dx + (v.low * w + h.high) * c, dz, (1 - v.part) * h.part, c);
    add_to(dx + (v.high * w + h.low) * c, dz, v.part * (1 - h.part), c);
    add_to(dx + (v.high * w + h.high) * c, dz, v.part * h.part, c);
}

/* What the gradient dz of one pixel says about the box; change: of y1, x1, y2, x2. */
static void grad_box_pixel(const CropJob *job, int64_t b, int64_t y, int64_t x, const float *dz, float down,
                           float along, float *change) {
    const int64_t c = job->channels, w = job->in_w;
    const float *image = job->image + job->image_of[b] * job->in_h * w * c;
    const Between v = between(down), h = between(along);
    float by_y = 0, by_x = 0;
    for (int64_t i = 0; i < c; i++) {
        float top_left = image[(v.low * w + h.low) * c + i], top_right = image[(v.low * w + h.high) * c + i];
        float low_left = image[(v.high * w + h.low) * c + i], low_right = image[(v.high * w + h.high) * c + i];
        by_y += dz[i] * ((1 - h.part) * (low_left - top_left) + h.part * (low_right - top_right));
        by_x += dz[i] * ((1 - v.part) * (top_right - top_left) + v.part * (low_right - low_left));
    }
    const float high = (float)(job->in_h - 1), wide = (float)(w - 1);
    float y2 = job->out_h > 1 ? (float)y * high / (float)(job->out_h - 1) : 0.5f * high;
    float x2 = job->out_w > 1 ? (float)x * wide / (float)(job->out_w - 1) : 0.5f * wide;
    change[0] += by_y * (high - y2);
    change[1] += by_x * (wide - x2);
    change[2] += by_y * y2;
    change[3] += by_x * x2;
}

static void grad_walk(const CropJob *job, bool of_boxes) {
    const float *dz = job->dz;
    for (int64_t b = 0; b < job->boxes; b++) {
        const float *box = job->box + 4 * b;
        for (int64_t y = 0; y < job->out_h; y++) {
            float down = place_of(y, job->out_h, box[0], box[2], job->in_h);
            for (int64_t x = 0; x < job->out_w; x++, dz += job->channels) {
                float along = place_of(x, job->out_w, box[1], box[3], job->in_w);
                if (!is_inside(down, job->in_h) || !is_inside(along, job->in_w)) continue;
                if (of_boxes) {
                    grad_box_pixel(job, b, y, x, dz, down, along, (float *)job->to + 4 * b);
                } else {
                    int64_t image = job->image_of[b] * job->in_h * job->in_w * job->channels;
                    grad_image_pixel(job, (double *)job->to + image, dz, down, along);
                }
            }
        }
    }
}

static Error *check_grads(const KernelContext *k, CropJob *job) {
    const Shape *dz = &k->in[0]->shape;
    if (dz->rank != 4) return error_invalid("grads image must be 4-D%s", shape_text(dz).text);
    if (dz->dims[1] <= 0 || dz->dims[2] <= 0) return error_invalid("grads dimensions must be positive");
    if (dz->dims[0] != job->boxes) return error_invalid("boxes and grads have incompatible shape");
    if (dz->dims[3] != job->channels) return error_invalid("image, grads depth differ");
    job->out_h = dz->dims[1];
    job->out_w = dz->dims[2];
    job->dz = tensor_f32(k->in[0]);
    return NULL;
}

static Error *grad_image(KernelContext *k) {
    const Tensor *size = k->in[3];
    if (size->shape.rank != 1 || size->count != 4) {
        return error_invalid("image_size must be 1-D of 4 elements, got shape %s", shape_text(&size->shape).text);
    }
    const int32_t *d = tensor_i32(size);
    if (d[1] <= 0 || d[2] <= 0) return error_invalid("image dimensions must be positive");
    if (d[0] < 0 || d[3] < 0) return error_invalid("image_size must not be negative");
    CropJob job = {.state = k->state, .batch = d[0], .in_h = d[1], .in_w = d[2], .channels = d[3]};
    Error *err = read_boxes(k, 1, &job);
    if (!err) err = check_grads(k, &job);
    if (err) return err;
    Shape shape = shape_of(4, (int64_t[]){d[0], d[1], d[2], d[3]});
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || z->count == 0) return NULL;
    Tensor *sum = z->dtype == DT_DOUBLE ? tensor_ref(z) : kernel_scratch(k, DT_DOUBLE, &shape);
    if (!sum) return NULL;
    memset(sum->data, 0, tensor_bytes(sum));
    job.to = sum->data;
    grad_walk(&job, false);
    for (int64_t i = 0; z->dtype != DT_DOUBLE && i < z->count; i++) {
        float v = (float)tensor_f64(sum)[i];
        floats_store(&v, z, i, 1);
    }
    tensor_unref(sum);
    return NULL;
}

static Error *grad_boxes(KernelContext *k) {
    const Shape *x = &k->in[1]->shape;
    if (x->rank != 4) return error_invalid("input image must be 4-D%s", shape_text(x).text);
    if (x->dims[1] <= 0 || x->dims[2] <= 0) return error_invalid("image dimensions must be positive");
    CropJob job = {
        .state = k->state, .batch = x->dims[0], .in_h = x->dims[1], .in_w = x->dims[2], .channels = x->dims[3]};
    Error *err = read_boxes(k, 2, &job);
    if (!err) err = check_grads(k, &job);
    if (err) return err;
    Shape shape = shape_matrix(job.boxes, 4);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || z->count == 0) return NULL;
    memset(z->data, 0, tensor_bytes(z));
    Tensor *image = kernel_floats(k, k->in[1]);
    if (!image) return NULL;
    job.image = image->data;
    job.to = z->data;
    grad_walk(&job, true);
    tensor_unref(image);
    return NULL;
}

#define STATE .state_size = sizeof(CropState), .init = crop_init, .flags = KERNEL_EXPENSIVE

const KernelDef crop_and_resize_cpu[] = {
    {"CropAndResize", .run = crop_and_resize, STATE},
    {"CropAndResizeGradImage", .run = grad_image, STATE},
    {"CropAndResizeGradBoxes", .run = grad_boxes, STATE},
    {0},
};
