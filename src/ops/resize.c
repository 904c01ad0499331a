/* resize.c: ResizeNearestNeighbor, ResizeBilinear, ResizeBicubic, ResizeArea and their gradients. */
#include "kernels/resize.h"

#include "ops/as_float.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef resize_ops[] = {
    {"ResizeBilinear", "images: T, size: int32 -> resized_images: float",
     "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}; align_corners: bool = "
     "false; half_pixel_centers: bool = false",
     0},
    {"ResizeBilinearGrad", "grads: float, original_image: T -> output: T",
     "T: {float, bfloat16, half, double}; align_corners: bool = false; half_pixel_centers: bool = false", 0},
    {"ResizeNearestNeighbor", "images: T, size: int32 -> resized_images: T",
     "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; align_corners: bool = false; "
     "half_pixel_centers: bool = false",
     0},
    {"ResizeNearestNeighborGrad", "grads: T, size: int32 -> output: T",
     "T: {uint8, int8, int32, half, float, double, bfloat16}; align_corners: bool = false; half_pixel_centers: bool = "
     "false",
     0},
    {"ResizeBicubic", "images: T, size: int32 -> resized_images: float",
     "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; align_corners: bool = false; "
     "half_pixel_centers: bool = false",
     0},
    {"ResizeBicubicGrad", "grads: float, original_image: T -> output: T",
     "T: {float, double}; align_corners: bool = false; half_pixel_centers: bool = false", 0},
    {"ResizeArea", "images: T, size: int32 -> resized_images: float",
     "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; align_corners: bool = false", 0},
    {0},
};

typedef enum Method { NEAREST, BILINEAR, BICUBIC, AREA } Method;

typedef struct ResizeState {
    Method method;
    ResizeMap map;
} ResizeState;

static Error *resize_init(const Node *node, void *state) {
    ResizeState *st = state;
    Str value;
    st->method = str_starts(node->op, STR("ResizeBil"))   ? BILINEAR
                 : str_starts(node->op, STR("ResizeBic")) ? BICUBIC
                 : str_starts(node->op, STR("ResizeN"))   ? NEAREST
                                                          : AREA;
    Error *err = node_attr_bool(node, "align_corners", &st->map.align_corners);
    if (!err && node_attr(node, "half_pixel_centers", &value)) {
        err = node_attr_bool(node, "half_pixel_centers", &st->map.half_pixel);
    }
    if (!err && st->map.align_corners && st->map.half_pixel) {
        err = error_invalid("If half_pixel_centers is True, align_corners must be False.");
    }
    return err;
}

typedef struct ResizeJob {
    const ResizeState *state;
    ResizeShape shape;
    ResizeTaps taps;
    size_t size; /* of an element */
    DataType type;
    void *to;
    const void *from;
} ResizeJob;

/* Taps of both sides, in scratch memory that *scratch holds. */
static bool make_taps(KernelContext *k, ResizeJob *job, Tensor **scratch) {
    static void (*const makers[])(ResizeTap *, int64_t, int64_t, ResizeMap) = {
        [NEAREST] = resize_nearest_taps, [BILINEAR] = resize_bilinear_taps, [BICUBIC] = resize_bicubic_taps};
    const ResizeShape *s = &job->shape;
    *scratch = NULL;
    if (job->state->method == AREA) return true;
    Shape size = shape_matrix(s->out_h + s->out_w, (int64_t)sizeof(ResizeTap));
    *scratch = kernel_scratch(k, DT_UINT8, &size);
    if (!*scratch) return false;
    ResizeTap *y = (*scratch)->data, *x = y + s->out_h;
    makers[job->state->method](y, s->in_h, s->out_h, job->state->map);
    makers[job->state->method](x, s->in_w, s->out_w, job->state->map);
    job->taps = (ResizeTaps){y, x};
    return true;
}

static Error *check_sides(const ResizeShape *s) {
    if (s->in_h > INT32_MAX || s->in_w > INT32_MAX || s->out_h > INT32_MAX || s->out_w > INT32_MAX) {
        return error_invalid("image sizes must be between 0 and max int32");
    }
    if (s->out_h <= 0 || s->out_w <= 0) return error_invalid("output dimensions must be positive");
    if (s->channels <= 0) return error_invalid("image must have at least one channel");
    if (s->in_h <= 0 || s->in_w <= 0) return error_invalid("input image must be of non-zero size");
    return NULL;
}

static Error *read_size(const KernelContext *k, int64_t *h, int64_t *w) {
    const Tensor *size = k->in[1];
    if (size->shape.rank != 1) return error_invalid("shape_t must be 1-dimensional%s", shape_text(&size->shape).text);
    if (size->count != 2) return error_invalid("shape_t must have two elements%s", shape_text(&size->shape).text);
    *h = tensor_i32(size)[0];
    *w = tensor_i32(size)[1];
    return NULL;
}

/* ---- Forward ---- */

static void resize_range(void *arg, int64_t begin, int64_t end) {
    const ResizeJob *job = arg;
    switch (job->state->method) {
        case NEAREST:
            resize_copy(&job->shape, job->taps, job->size, begin, end, job->to, job->from);
            break;
        case BILINEAR:
            resize_bilinear(&job->shape, job->taps, begin, end, job->to, job->from);
            break;
        case BICUBIC:
            resize_bicubic(&job->shape, job->taps, begin, end, job->to, job->from);
            break;
        case AREA:
            resize_area(&job->shape, job->state->map.align_corners, begin, end, job->to, job->from);
            break;
    }
}

static Error *resize(KernelContext *k) {
    Tensor *x = k->in[0], *scratch = NULL, *image = NULL;
    ResizeJob job = {.state = k->state, .size = dtype_size(x->dtype)};
    if (x->shape.rank != 4) return error_invalid("input must be 4-dimensional%s", shape_text(&x->shape).text);
    const int64_t *d = x->shape.dims;
    job.shape = (ResizeShape){.batch = d[0], .in_h = d[1], .in_w = d[2], .channels = d[3]};
    Error *err = read_size(k, &job.shape.out_h, &job.shape.out_w);
    if (!err) err = check_sides(&job.shape);
    if (err) return err;
    Shape shape = shape_of(4, (int64_t[]){d[0], job.shape.out_h, job.shape.out_w, d[3]});
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || z->count == 0) return NULL;
    image = job.state->method == NEAREST ? tensor_ref(x) : kernel_floats(k, x);
    if (image && make_taps(k, &job, &scratch)) {
        job.to = z->data;
        job.from = image->data;
        int64_t row = job.shape.out_w * job.shape.channels;
        threadpool_parallel_for(k->pool, d[0] * job.shape.out_h, 8192 / row + 1, resize_range, &job);
    }
    tensor_unref(image);
    tensor_unref(scratch);
    return NULL;
}

/* ---- Gradients ---- */

static void grad_range(void *arg, int64_t begin, int64_t end) {
    const ResizeJob *job = arg;
    int count = job->state->method == NEAREST ? 1 : job->state->method == BILINEAR ? 2 : 4;
    if (job->type == DT_DOUBLE) {
        resize_grad_f64(&job->shape, job->taps, count, begin, end, job->to, job->from);
    } else {
        resize_grad_f32(&job->shape, job->taps, count, begin, end, job->to, job->from);
    }
}

/* job->shape and z (of the image's shape) are there; dz is float or, for other types, converted. */
static void grad_fill(KernelContext *k, ResizeJob *job, Tensor *z) {
    Tensor *scratch = NULL, *dz = kernel_floats(k, k->in[0]);
    bool own = z->dtype == DT_FLOAT || z->dtype == DT_DOUBLE;
    Tensor *wide = own ? tensor_ref(z) : kernel_scratch(k, DT_FLOAT, &z->shape);
    if (dz && wide && make_taps(k, job, &scratch)) {
        job->to = wide->data;
        job->from = dz->data;
        job->type = wide->dtype;
        threadpool_parallel_for(k->pool, job->shape.batch, 1, grad_range, job);
        if (!own) floats_store(wide->data, z, 0, z->count);
    }
    tensor_unref(dz);
    tensor_unref(wide);
    tensor_unref(scratch);
}

static Error *resize_grad(KernelContext *k) {
    const Shape *dz = &k->in[0]->shape, *x = &k->in[1]->shape;
    ResizeJob job = {.state = k->state};
    if (dz->rank != 4) return error_invalid("input_grad must be 4-dimensional%s", shape_text(dz).text);
    if (x->rank != 4) return error_invalid("original_image must be 4-dimensional%s", shape_text(x).text);
    job.shape = (ResizeShape){.batch = dz->dims[0],
                              .in_h = x->dims[1],
                              .in_w = x->dims[2],
                              .out_h = dz->dims[1],
                              .out_w = dz->dims[2],
                              .channels = dz->dims[3]};
    Error *err = check_sides(&job.shape);
    if (err) return err;
    Shape shape = shape_of(4, (int64_t[]){dz->dims[0], x->dims[1], x->dims[2], dz->dims[3]});
    Tensor *z = kernel_output(k, 0, &shape);
    if (z && z->count > 0) grad_fill(k, &job, z);
    return NULL;
}

static Error *nearest_grad(KernelContext *k) {
    const Shape *dz = &k->in[0]->shape;
    ResizeJob job = {.state = k->state};
    if (dz->rank != 4) return error_invalid("input must be 4-dimensional%s", shape_text(dz).text);
    job.shape =
        (ResizeShape){.batch = dz->dims[0], .out_h = dz->dims[1], .out_w = dz->dims[2], .channels = dz->dims[3]};
    Error *err = read_size(k, &job.shape.in_h, &job.shape.in_w);
    if (!err && (job.shape.in_h <= 0 || job.shape.in_w <= 0)) err = error_invalid("size must be positive");
    if (!err) err = check_sides(&job.shape);
    if (err) return err;
    Shape shape = shape_of(4, (int64_t[]){dz->dims[0], job.shape.in_h, job.shape.in_w, dz->dims[3]});
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || z->count == 0) return NULL;
    const RowMath *math = row_math(z->dtype);
    Tensor *scratch = NULL;
    if (!math) return error_unimplemented("ResizeNearestNeighborGrad of %s", dtype_name(z->dtype));
    if (!make_taps(k, &job, &scratch)) return NULL;
    size_t pixel = dtype_size(z->dtype) * (size_t)dz->dims[3];
    copy_fill(k->pool, element_kind(z->dtype), z->data, element_zero(z->dtype), z->count);
    const char *from = k->in[0]->data;
    for (int64_t row = 0; row < dz->dims[0] * dz->dims[1]; row++) {
        int64_t first = (row / dz->dims[1] * job.shape.in_h + job.taps.y[row % dz->dims[1]].at[0]) * job.shape.in_w;
        for (int64_t i = 0; i < dz->dims[2]; i++, from += pixel) {
            math->add((char *)z->data + (size_t)(first + job.taps.x[i].at[0]) * pixel, from, dz->dims[3]);
        }
    }
    tensor_unref(scratch);
    return NULL;
}

#define STATE .state_size = sizeof(ResizeState), .init = resize_init, .flags = KERNEL_EXPENSIVE

const KernelDef resize_cpu[] = {
    {"ResizeNearestNeighbor", .run = resize, STATE},
    {"ResizeBilinear", .run = resize, STATE},
    {"ResizeBicubic", .run = resize, STATE},
    {"ResizeArea", .run = resize, STATE},
    {"ResizeNearestNeighborGrad", .run = nearest_grad, STATE},
    {"ResizeBilinearGrad", .run = resize_grad, STATE},
    {"ResizeBicubicGrad", .run = resize_grad, STATE},
    {0},
};
