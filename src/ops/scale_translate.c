/* scale_translate.c: ScaleAndTranslate and its gradient: images resampled with a smoothing kernel, rows first, then columns. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/as_float.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef scale_translate_ops[] = {
    {"ScaleAndTranslate", "images: T, size: int32, scale: float, translation: float -> resized_images: float",
     "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}; kernel_type: string = 'lanczos3'; "
     "antialias: bool = true",
     0},
    {"ScaleAndTranslateGrad", "grads: T, original_image: T, scale: float, translation: float -> output: T",
     "T: {float}; kernel_type: string = 'lanczos3'; antialias: bool = true", 0},
    {0},
};

/* ---- Smoothing kernels: the weight of a pixel at distance x >= 0 ---- */

typedef float WeightFn(float x, float radius);

static float lanczos(float x, float radius) {
    const float pi = 3.14159265359f;
    if (x > radius) return 0;
    if (x <= 1e-3f) return 1;
    return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

static float gaussian(float x, float radius) {
    float sigma = radius / 3;
    return x >= radius ? 0 : (float)exp(-x * x / (2.0 * sigma * sigma));
}

static float box(float x, float radius) {
    (void)radius;
    return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0;
}

static float triangle(float x, float radius) {
    return x < radius ? 1 - x : 0;
}

static float keys_cubic(float x, float radius) {
    if (x >= radius) return 0;
    return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : (1.5f * x - 2.5f) * x * x + 1;
}

static float mitchell_cubic(float x, float radius) {
    if (x >= radius) return 0;
    if (x >= 1) return ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
    return (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}

typedef struct Smoothing {
    const char *name;
    WeightFn *weight;
    float radius;
} Smoothing;

static const Smoothing smoothings[] = {
    {"lanczos1", lanczos, 1}, {"lanczos3", lanczos, 3},         {"lanczos5", lanczos, 5},
    {"gaussian", gaussian, 1.5f}, {"box", box, 1},              {"triangle", triangle, 1},
    {"keyscubic", keys_cubic, 2}, {"mitchellcubic", mitchell_cubic, 2},
};

typedef struct ScaleState {
    const Smoothing *smoothing;
    bool antialias;
} ScaleState;

static Error *init_scale(const Node *node, void *state) {
    ScaleState *s = state;
    Str name = STR("");
    Error *err = node_attr_string(node, "kernel_type", &name);
    if (!err) err = node_attr_bool(node, "antialias", &s->antialias);
    for (size_t i = 0; !err && i < sizeof smoothings / sizeof *smoothings; i++)
        if (str_is(name, smoothings[i].name)) s->smoothing = &smoothings[i];
    if (!err && !s->smoothing) err = error_invalid("Unrecognized kernel type: %.*s", STR_ARG(name));
    return err;
}

/* ---- Spans: which pixels of the input go into each of the output ---- */

typedef struct Spans {
    int64_t count, size; /* outputs; weights of each */
    int64_t *starts;
    float *weights; /* count x size */
} Spans;

static Error *spans_new(int64_t count, int64_t size, Spans *out) {
    *out = (Spans){count, size, NULL, NULL};
    size_t bytes;
    if (!__builtin_mul_overflow((size_t)count, (size_t)size * sizeof(float), &bytes)) {
        out->starts = try_alloc((size_t)count * sizeof(int64_t) + 1);
        out->weights = try_alloc(bytes + 1);
    }
    if (!out->starts || !out->weights) return error_new(CODE_RESOURCE_EXHAUSTED, "No memory to resample %lld pixels", (long long)count);
    memset(out->starts, 0, (size_t)count * sizeof(int64_t));
    memset(out->weights, 0, bytes);
    return NULL;
}

static void spans_clear(Spans *s) {
    free(s->starts);
    free(s->weights);
}

static int64_t clamp(double x, int64_t high) {
    return x > 0 ? (x < (double)high ? (int64_t)x : high) : 0;
}

/* Of an output of `size` pixels, each where the input, scaled and moved, has it. */
static Error *spans_make(const ScaleState *s, int64_t size, int64_t input, float scale, float translation, Spans *out) {
    float inv_scale = (float)(1.0 / (double)scale), inv_translation = -inv_scale * translation;
    float widen = s->antialias && inv_scale > 1 ? inv_scale : 1, reach = s->smoothing->radius * widen, narrow = 1 / widen;
    double most = 2 * ceil((double)reach) + 1;
    Error *err = spans_new(size, most < (double)input ? (int64_t)most : input, out);
    for (int64_t x = 0; x < size && !err; x++) {
        float center = ((float)x + 0.5f) * inv_scale + inv_translation, total = 0;
        if (!(center >= 0 && center <= (float)input)) continue;
        int64_t first = clamp(ceilf(center - reach - 0.5f), input - 1), end = clamp(floorf(center + reach - 0.5f), input - 1) + 1;
        if (end - first > out->size) {
            err = error_internal("Span is too large: %lld vs %lld.", (long long)(end - first), (long long)out->size);
            break;
        }
        float *weights = out->weights + x * out->size;
        for (int64_t i = first; i < end; i++) {
            weights[i - first] = s->smoothing->weight(fabsf(((float)i + 0.5f - center) * narrow), s->smoothing->radius);
            total += weights[i - first];
        }
        float factor = fabsf(total) >= 1000 * FLT_MIN ? 1 / total : 0;
        for (int64_t i = 0; i < end - first; i++) weights[i] = factor != 0 ? weights[i] * factor : 0;
        out->starts[x] = first;
    }
    return err;
}

/* The other way: which outputs each of the `input` pixels went into. */
static Error *spans_turn(const Spans *s, int64_t input, Spans *out) {
    int64_t *first = xmalloc((size_t)(input + 1) * sizeof *first), *last = xmalloc((size_t)(input + 1) * sizeof *last), most = 0;
    for (int64_t i = 0; i < input; i++) first[i] = 0, last[i] = -1;
    for (int pass = 0; pass < 2; pass++) {
        Error *err = pass == 1 ? spans_new(input, most, out) : NULL;
        if (err) {
            free(first);
            free(last);
            return err;
        }
        for (int64_t x = 0; x < s->count; x++)
            for (int64_t j = 0; j < s->size && s->starts[x] + j < input; j++) {
                int64_t i = s->starts[x] + j;
                if (s->weights[x * s->size + j] == 0) continue;
                if (pass == 1) {
                    out->starts[i] = first[i];
                    out->weights[i * most + x - first[i]] += s->weights[x * s->size + j];
                    continue;
                }
                if (last[i] < 0) first[i] = x;
                last[i] = x;
                most = x - first[i] + 1 > most ? x - first[i] + 1 : most;
            }
    }
    free(first);
    free(last);
    return NULL;
}

/* ---- Resampling ---- */

/* `outer` times: rows of `width` numbers, `in_rows` of them, into spans->count. */
typedef struct Resample {
    const Spans *spans;
    const float *in;
    float *out;
    int64_t in_rows, width;
} Resample;

static void resample_range(void *arg, int64_t begin, int64_t end) {
    const Resample *r = arg;
    const Spans *s = r->spans;
    for (int64_t at = begin; at < end; at++) {
        int64_t block = at / s->count, row = at % s->count;
        const float *in = r->in + (block * r->in_rows + s->starts[row]) * r->width, *weights = s->weights + row * s->size;
        float *out = r->out + at * r->width;
        memset(out, 0, (size_t)r->width * sizeof *out);
        for (int64_t j = 0; j < s->size && s->starts[row] + j < r->in_rows; j++)
            for (int64_t i = 0; i < r->width; i++) out[i] += weights[j] * in[j * r->width + i];
    }
}

static void resample(ThreadPool *pool, Resample r, int64_t blocks) {
    int64_t work = r.width * (r.spans->size + 1);
    threadpool_parallel_for(pool, blocks * r.spans->count, work > 16384 ? 1 : 16384 / (work + 1) + 1, resample_range, &r);
}

static Error *pair_of(KernelContext *k, int i, const float **out) {
    if (k->in[i]->shape.rank != 1) return error_invalid("t must be 1-dimensional%s", shape_text(&k->in[i]->shape).text);
    if (k->in[i]->count != 2) return error_invalid("t must have two elements%s", shape_text(&k->in[i]->shape).text);
    *out = tensor_f32(k->in[i]);
    return NULL;
}

/* in -> k's output 0 by way of rows; in is [batch, rows, cols, channels]. */
static Error *resample_image(KernelContext *k, const Tensor *in, const Shape *shape, const Spans *rows, const Spans *cols) {
    Shape middle = *shape;
    middle.dims[2] = in->shape.dims[2];
    Tensor *out = kernel_output(k, 0, shape);
    if (!out || out->count == 0) return NULL;
    Tensor *between = kernel_scratch(k, DT_FLOAT, &middle);
    if (!between) return NULL;
    int64_t channels = in->shape.dims[3];
    resample(k->pool, (Resample){rows, tensor_f32(in), tensor_f32(between), in->shape.dims[1], in->shape.dims[2] * channels}, in->shape.dims[0]);
    resample(k->pool, (Resample){cols, tensor_f32(between), tensor_f32(out), in->shape.dims[2], channels}, in->shape.dims[0] * shape->dims[1]);
    tensor_unref(between);
    return NULL;
}

static Error *check_scale(const float *scale, const float *translation) {
    for (int i = 0; i < 2; i++)
        if (!(scale[i] > 0) || !isfinite(scale[i])) return error_invalid("Scale must be greater than zero.");
    return isfinite(translation[0]) && isfinite(translation[1]) ? NULL : error_invalid("Translation must be finite.");
}

static Error *run_scale(KernelContext *k) {
    const Shape *in = &k->in[0]->shape;
    const float *scale = NULL, *move = NULL;
    if (in->rank != 4) return error_invalid("input must be 4-dimensional%s", shape_text(in).text);
    if (k->in[1]->shape.rank != 1) return error_invalid("output_shape_t must be 1-dimensional%s", shape_text(&k->in[1]->shape).text);
    if (k->in[1]->count != 2)
        return error_invalid("output_shape_t must be a vector of two elements, not %s", shape_text(&k->in[1]->shape).text);
    int64_t height = tensor_i32(k->in[1])[0], width = tensor_i32(k->in[1])[1];
    if (height <= 0 || width <= 0) return error_invalid("output dimensions must be positive");
    if (in->dims[3] <= 0) return error_invalid("image must have at least one channel");
    if (in->dims[1] <= 0 || in->dims[2] <= 0) return error_invalid("input image must be of non-zero size");
    if (in->dims[1] >= INT32_MAX || in->dims[2] >= INT32_MAX) return error_invalid("input sizes must be between 0 and max int32");
    Error *err = pair_of(k, 2, &scale);
    if (!err) err = pair_of(k, 3, &move);
    if (!err) err = check_scale(scale, move);
    Spans rows = {0}, cols = {0};
    Shape shape = shape_of(4, (int64_t[]){in->dims[0], height, width, in->dims[3]});
    if (!err) err = shape_check(&shape);
    if (!err) err = spans_make(k->state, height, in->dims[1], scale[0], move[0], &rows);
    if (!err) err = spans_make(k->state, width, in->dims[2], scale[1], move[1], &cols);
    Tensor *floats = err ? NULL : kernel_floats(k, k->in[0]);
    if (floats) err = resample_image(k, floats, &shape, &rows, &cols);
    tensor_unref(floats);
    spans_clear(&rows);
    spans_clear(&cols);
    return err;
}

/* The spans of one dimension of the forward op, turned round. */
static Error *grad_spans(const ScaleState *s, int64_t forward_out, int64_t forward_in, float scale, float translation, Spans *out) {
    Spans forward = {0};
    Error *err = spans_make(s, forward_out, forward_in, scale, translation, &forward);
    if (!err) err = spans_turn(&forward, forward_in, out);
    spans_clear(&forward);
    return err;
}

static Error *run_scale_grad(KernelContext *k) {
    const Shape *dy = &k->in[0]->shape, *in = &k->in[1]->shape;
    const float *scale = NULL, *move = NULL;
    if (dy->rank != 4) return error_invalid("input_grad must be 4-dimensional%s", shape_text(dy).text);
    if (in->rank != 4) return error_invalid("original_image must be 4-dimensional%s", shape_text(in).text);
    for (int d = 1; d < 3; d++)
        if (in->dims[d] <= 0 || in->dims[d] >= INT32_MAX || dy->dims[d] >= INT32_MAX)
            return error_invalid("original sizes must be between 0 and max int32");
    if (dy->dims[0] != in->dims[0] || dy->dims[3] != in->dims[3])
        return error_invalid("Gradients and images must have as many batches and channels: %s vs. %s", shape_text(dy).text, shape_text(in).text);
    Error *err = pair_of(k, 2, &scale);
    if (!err) err = pair_of(k, 3, &move);
    if (!err) err = check_scale(scale, move);
    Spans rows = {0}, cols = {0};
    if (!err) err = grad_spans(k->state, dy->dims[1], in->dims[1], scale[0], move[0], &rows);
    if (!err) err = grad_spans(k->state, dy->dims[2], in->dims[2], scale[1], move[1], &cols);
    if (!err) err = resample_image(k, k->in[0], in, &rows, &cols);
    spans_clear(&rows);
    spans_clear(&cols);
    return err;
}

const KernelDef scale_translate_cpu[] = {
    {"ScaleAndTranslate", .run = run_scale, .state_size = sizeof(ScaleState), .init = init_scale, .flags = KERNEL_EXPENSIVE},
    {"ScaleAndTranslateGrad", .run = run_scale_grad, .state_size = sizeof(ScaleState), .init = init_scale, .flags = KERNEL_EXPENSIVE},
    {0},
};
