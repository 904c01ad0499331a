/* fractional_pool.c: FractionalMaxPool, FractionalAvgPool and their gradients: pooling by a ratio that need not be whole.

   The rows (and columns) of the input are cut where a sequence says: region i is [sequence[i], sequence[i + 1]), with one more when
   regions overlap. The sequence is drawn by chance for each run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "kernels/random.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/random_state.h"

const OpDef fractional_pool_ops[] = {
    {"FractionalMaxPool", "value: T -> output: T, row_pooling_sequence: int64, col_pooling_sequence: int64",
     "pooling_ratio: list(float) >= 4; pseudo_random: bool = false; overlapping: bool = false; deterministic: bool = false; "
     "seed: int = 0; seed2: int = 0; T: {float, double, int32, int64}",
     0},
    {"FractionalMaxPoolGrad",
     "orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: int64, col_pooling_sequence: int64 -> output: T",
     "overlapping: bool = false; T: {float, double, int32, int64}", 0},
    {"FractionalAvgPool", "value: T -> output: T, row_pooling_sequence: int64, col_pooling_sequence: int64",
     "pooling_ratio: list(float) >= 4; pseudo_random: bool = false; overlapping: bool = false; deterministic: bool = false; "
     "seed: int = 0; seed2: int = 0; T: {float, double, int32, int64}",
     0},
    {"FractionalAvgPoolGrad",
     "orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence: int64, col_pooling_sequence: int64 -> output: T",
     "overlapping: bool = false; T: {float, double, int32, int64}", 0},
    {0},
};

/* ---- Regions ---- */

typedef struct Regions {
    const int64_t *rows, *cols; /* one more than there are regions; none is negative, what lies past the input is cut off */
    int64_t row_count, col_count, batch, rows_in, cols_in;
    bool overlapping;
} Regions;

/* Rows count through the whole batch. */
typedef struct Region {
    int64_t out; /* its number */
    int64_t row_from, row_to, col_from, col_to;
} Region;

static Region region_first(const Regions *r) {
    (void)r;
    return (Region){.out = -1};
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static bool region_next(const Regions *r, Region *at) {
    if (++at->out >= r->batch * r->row_count * r->col_count) return false;
    int64_t row = at->out / r->col_count % r->row_count, col = at->out % r->col_count;
    int64_t image = at->out / r->col_count / r->row_count * r->rows_in;
    at->row_from = image + least(r->rows[row], r->rows_in);
    at->row_to = image + least(least(r->rows[row + 1], r->rows_in) + r->overlapping, r->rows_in);
    at->col_from = least(r->cols[col], r->cols_in);
    at->col_to = least(least(r->cols[col + 1], r->cols_in) + r->overlapping, r->cols_in);
    return true;
}

/* Whether a sequence has a region for each of `out`, and none is empty. */
static bool has_regions(const Tensor *t, int64_t in, int64_t out) {
    bool good = t->shape.rank == 1 && t->count == out + 1 && out > 0 && tensor_i64(t)[0] >= 0;
    for (int64_t i = 0; good && i < out; i++) {
        int64_t at = tensor_i64(t)[i];
        good = at < in && tensor_i64(t)[i + 1] > at;
    }
    return good;
}

/* ---- Arithmetic ---- */

typedef struct PoolFns {
    void (*max)(const Regions *r, const Tensor *in, Tensor *out, int64_t *from); /* out, from: may be NULL */
    void (*average)(const Regions *r, const Tensor *in, Tensor *out);
    void (*max_grad)(const Tensor *dy, const int64_t *from, Tensor *dx); /* dx is zero */
    void (*average_grad)(const Regions *r, const Tensor *dy, Tensor *dx, double *sums);
} PoolFns;

static int64_t whole(double x, int64_t low, int64_t high) {
    return x > (double)low ? (x < (double)high ? (int64_t)x : high) : low;
}

#define T float
#define NAME(f) f##_f32
#define PLUS(a, b) ((a) + (b))
#define OF_DOUBLE(x) ((float)(x))
#include "ops/fractional_pool.inc"
#undef T
#undef NAME
#undef OF_DOUBLE
#define T double
#define NAME(f) f##_f64
#define OF_DOUBLE(x) (x)
#include "ops/fractional_pool.inc"
#undef T
#undef NAME
#undef PLUS
#undef OF_DOUBLE
#define T int32_t
#define NAME(f) f##_i32
#define PLUS(a, b) ((int32_t)((uint32_t)(a) + (uint32_t)(b)))
#define OF_DOUBLE(x) ((int32_t)whole(x, INT32_MIN, INT32_MAX))
#include "ops/fractional_pool.inc"
#undef T
#undef NAME
#undef PLUS
#undef OF_DOUBLE
#define T int64_t
#define NAME(f) f##_i64
#define PLUS(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define OF_DOUBLE(x) whole(x, INT64_MIN, INT64_MAX)
#include "ops/fractional_pool.inc"
#undef T
#undef NAME
#undef PLUS
#undef OF_DOUBLE

static const PoolFns *fns_of(DataType type) {
    return type == DT_FLOAT ? &fns_f32 : type == DT_DOUBLE ? &fns_f64 : type == DT_INT32 ? &fns_i32 : &fns_i64;
}

/* ---- Forward ---- */

typedef struct FractionalState {
    RandomState random;
    float ratio[4];
    bool pseudo_random, overlapping, deterministic;
    pthread_mutex_t mutex; /* guards kept */
    bool has_mutex;
    Tensor *kept[2]; /* the sequences of the first run, when all runs share them */
} FractionalState;

static Error *init_pool(const Node *node, void *state) {
    FractionalState *s = state;
    float *ratio = NULL;
    int count = 0;
    Error *err = random_state_init(node, &s->random);
    if (!err) {
        pthread_mutex_init(&s->mutex, NULL);
        s->has_mutex = true;
        err = node_attr_floats(node, "pooling_ratio", &ratio, &count);
    }
    if (!err) err = node_attr_bool(node, "pseudo_random", &s->pseudo_random);
    if (!err) err = node_attr_bool(node, "overlapping", &s->overlapping);
    if (!err) err = node_attr_bool(node, "deterministic", &s->deterministic);
    int64_t seed = 0, seed2 = 0;
    if (!err) err = node_attr_int(node, "seed", &seed);
    if (!err) err = node_attr_int(node, "seed2", &seed2);
    if (!err && !s->deterministic && (seed || seed2))
        err = error_invalid("Both seed and seed2 should be 0 if deterministic is false.");
    if (!err && count != 4) err = error_invalid("pooling_ratio field must specify 4 dimensions");
    for (int i = 0; i < 4 && !err; i++) {
        s->ratio[i] = ratio[i];
        if (!(ratio[i] >= 1)) err = error_invalid("pooling_ratio cannot be smaller than 1, got: %g", (double)ratio[i]);
    }
    if (!err && (s->ratio[0] != 1 || s->ratio[3] != 1))
        err = error_unimplemented("Fractional %s pooling is not yet supported on the batch nor channel dimension.",
                                  str_is(node->op, "FractionalMaxPool") ? "max" : "average");
    free(ratio);
    return err;
}

static void clear_pool(void *state) {
    FractionalState *s = state;
    if (!s->has_mutex) return;
    random_state_clear(&s->random);
    pthread_mutex_destroy(&s->mutex);
    for (int i = 0; i < 2; i++) tensor_unref(s->kept[i]);
}

/* Regions of about in / out pixels, in an order drawn by chance, or by a formula with one random number. */
static void draw_sequence(FractionalState *s, int64_t in, int64_t out, int64_t *to) {
    int64_t least_size = in / out;
    to[0] = 0;
    if (!s->pseudo_random) {
        int64_t *sizes = to + 1;
        for (int64_t i = 0; i < out; i++) sizes[i] = least_size + (i < in % out);
        random_shuffle(random_state_reserve(&s->random, ((uint64_t)out + 3) / 4), sizes, out);
        for (int64_t i = 0; i < out; i++) to[i + 1] += to[i];
        return;
    }
    double alpha = (double)in / (double)out;
    double left = (double)(least_size + 2) / alpha - 1, right = (double)(in + 1 - least_size) / alpha - (double)(out - 1);
    PhiloxStream stream = philox_stream(random_state_reserve(&s->random, 1));
    uint32_t x0 = philox_stream_next(&stream), x1 = philox_stream_next(&stream);
    double u = uniform_double(x0, x1) * fmin(left, right);
    for (int64_t i = 1; i < out; i++) to[i] = (int64_t)ceil(alpha * ((double)i + u)) - 1;
    to[out] = in;
}

static Error *sequence_new(FractionalState *s, int64_t in, int64_t out, Tensor **t) {
    Shape shape = shape_vector(out + 1);
    Error *err = tensor_new(DT_INT64, &shape, t);
    if (!err) draw_sequence(s, in, out, tensor_i64(*t));
    return err;
}

/* Two new sequences, or those of the first run. */
static Error *sequences(FractionalState *s, const Shape *in, const Shape *out, Tensor **found) {
    Error *err = NULL;
    pthread_mutex_lock(&s->mutex);
    for (int i = 0; i < 2; i++) found[i] = s->kept[i] ? tensor_ref(s->kept[i]) : NULL;
    for (int i = 0; i < 2 && !found[1] && !err; i++) err = sequence_new(s, in->dims[1 + i], out->dims[1 + i], &found[i]);
    for (int i = 0; i < 2 && s->deterministic && !err && !s->kept[i]; i++) s->kept[i] = tensor_ref(found[i]);
    pthread_mutex_unlock(&s->mutex);
    for (int i = 0; i < 2 && !err; i++) {
        if (!has_regions(found[i], in->dims[1 + i], out->dims[1 + i])) err = error_invalid("The regions of the first run do not go with an image of shape %s", shape_text(in).text);
    }
    return err;
}

static Regions regions_of(const Tensor *rows, const Tensor *cols, const Shape *in, const Shape *out, bool overlapping) {
    return (Regions){tensor_i64(rows), tensor_i64(cols), out->dims[1], out->dims[2], in->dims[0], in->dims[1], in->dims[2], overlapping};
}

static Error *run_pool(KernelContext *k, bool max) {
    FractionalState *s = k->state;
    const Shape *in = &k->in[0]->shape;
    if (in->rank != 4) return error_invalid("tensor_in must be 4-dimensional");
    Shape shape = {.rank = 4};
    for (int d = 0; d < 4; d++) {
        shape.dims[d] = (int64_t)floorf((float)in->dims[d] / s->ratio[d]);
        if (in->dims[d] < (int64_t)s->ratio[d] || shape.dims[d] <= 0)
            return error_invalid("Pooling ratio is higher than input dimension size for dimension %d. Input dim size: %lld "
                                 "pooling ratio: %g",
                                 d, (long long)in->dims[d], (double)s->ratio[d]);
    }
    Tensor *found[2] = {NULL, NULL};
    Error *err = sequences(s, in, &shape, found);
    Tensor *out = err ? NULL : kernel_output(k, 0, &shape);
    if (out) {
        Regions r = regions_of(found[0], found[1], in, &shape, s->overlapping);
        if (max)
            fns_of(out->dtype)->max(&r, k->in[0], out, NULL);
        else
            fns_of(out->dtype)->average(&r, k->in[0], out);
        for (int i = 0; i < 2; i++) kernel_set_output(k, 1 + i, tensor_ref(found[i]));
    }
    for (int i = 0; i < 2; i++) tensor_unref(found[i]);
    return err;
}

static Error *run_max(KernelContext *k) {
    return run_pool(k, true);
}

static Error *run_average(KernelContext *k) {
    return run_pool(k, false);
}

/* ---- Gradients ---- */

typedef struct GradState {
    bool overlapping;
} GradState;

static Error *init_grad(const Node *node, void *state) {
    return node_attr_bool(node, "overlapping", &((GradState *)state)->overlapping);
}

static Error *run_max_grad(KernelContext *k) {
    static const char *const names[] = {"tensor_in", "tensor_out", "out_backprop", "row_pooling_sequence", "col_pooling_sequence"};
    const Tensor *in = k->in[0], *out = k->in[1], *dy = k->in[2];
    for (int i = 0; i < 5; i++) {
        if (i < 2 && k->in[i]->shape.rank != 4) return error_invalid("%s must be 4-dimensional", names[i]);
        if (i > 2 && k->in[i]->shape.rank != 1)
            return error_invalid("%s must be a vector, received shape %s", names[i], shape_text(&k->in[i]->shape).text);
    }
    if (in->shape.dims[0] != out->shape.dims[0] || in->shape.dims[3] != out->shape.dims[3])
        return error_invalid("Input %s and output %s must have as many batches and channels", shape_text(&in->shape).text, shape_text(&out->shape).text);
    for (int d = 1; d < 3; d++) {
        if (!has_regions(k->in[2 + d], in->shape.dims[d], out->shape.dims[d])) return error_invalid("tensor_out_dup is not the same as tensor_out");
    }
    if (out->count < dy->count)
        return error_invalid("orig_output %s and out_backprop %s must have the same shape", shape_text(&out->shape).text, shape_text(&dy->shape).text);
    Tensor *dx = kernel_output(k, 0, &in->shape);
    if (!dx) return NULL;
    memset(dx->data, 0, tensor_bytes(dx));
    Regions r = regions_of(k->in[3], k->in[4], &in->shape, &out->shape, ((const GradState *)k->state)->overlapping);
    int64_t *from = xmalloc((size_t)(out->count + 1) * sizeof *from);
    fns_of(dx->dtype)->max(&r, in, NULL, from);
    fns_of(dx->dtype)->max_grad(dy, from, dx);
    free(from);
    return NULL;
}

/* A sequence as TensorFlow's error prints it: numbers of one width. */
static char *sequence_text(const Tensor *t) {
    size_t width = 0;
    char number[32];
    for (int64_t i = 0; i < t->count; i++) {
        size_t n = (size_t)snprintf(number, sizeof number, "%lld", (long long)tensor_i64(t)[i]);
        if (n > width) width = n;
    }
    StrBuf text = {0};
    for (int64_t i = 0; i < t->count && i < 1000; i++) strbuf_addf(&text, "%s%*lld", i ? " " : "", (int)width, (long long)tensor_i64(t)[i]);
    return strbuf_detach(&text);
}

/* A sequence for `out` regions, none of which begins or ends before the first pixel of `in`. */
static Error *check_average_sequence(const Tensor *t, int64_t in, int64_t out, bool overlapping, const char *what) {
    for (int64_t i = 0; i < out; i++) {
        if (tensor_i64(t)[i] >= 0 && tensor_i64(t)[i + 1] >= !overlapping && in > 0) continue;
        char *text = sequence_text(t);
        Error *err = error_invalid("%s sequence tensor values must not be negative, got %s", what, text);
        free(text);
        return err;
    }
    return NULL;
}

static Error *check_average(KernelContext *k, const Shape *in, const Shape *out) {
    static const char *const dims[] = {"Batch", "Rows", "Columns", "Depth"}, *const short_names[] = {"row", "col"}, *const names[] = {"Row", "Column"};
    if (out->rank != 4) return error_invalid("out_backprop must be 4-dimensional");
    for (int d = 0; d < 4; d++)
        if (out->dims[d] == 0) return error_invalid("out_backprop must be positive for all dimension, got:0");
    for (int d = 0; d < 4; d++)
        if (in->dims[d] == 0) return error_invalid("%s dimension of input must not be 0", dims[d]);
    if (in->dims[0] < out->dims[0] || in->dims[3] != out->dims[3])
        return error_invalid("Input %s and output %s must have as many batches and channels", shape_text(in).text, shape_text(out).text);
    Error *err = NULL;
    for (int i = 0; i < 2 && !err; i++) {
        const Tensor *t = k->in[2 + i];
        if (t->count <= out->dims[1 + i])
            err = error_invalid("Given out_backprop shape %s, %s_seq_tensor must have at least %lld elements, but got %lld", shape_text(out).text, short_names[i],
                                (long long)out->dims[1 + i] + 1, (long long)t->count);
    }
    bool overlapping = ((const GradState *)k->state)->overlapping;
    for (int i = 0; i < 2 && !err; i++) err = check_average_sequence(k->in[2 + i], in->dims[1 + i], out->dims[1 + i], overlapping, names[i]);
    return err;
}

static Error *run_average_grad(KernelContext *k) {
    const Tensor *dy = k->in[1];
    Shape shape;
    if (k->in[0]->shape.rank != 1 || k->in[0]->count != 4)
        return error_invalid("original input tensor shape must be1-dimensional and 4 elements");
    for (int d = 0; d < 4; d++) {
        int64_t size = tensor_index(k->in[0], d);
        if (size < 0) return error_invalid("Expected a non-negative size, got %lld", (long long)size);
    }
    Error *err = kernel_shape_input(k, 0, &shape);
    if (!err) err = check_average(k, &shape, &dy->shape);
    if (err) return err;
    Tensor *dx = kernel_output(k, 0, &shape);
    Tensor *sums = dx ? kernel_scratch(k, DT_DOUBLE, &shape) : NULL;
    if (!sums) return NULL;
    memset(sums->data, 0, tensor_bytes(sums));
    Regions r = regions_of(k->in[2], k->in[3], &shape, &dy->shape, ((const GradState *)k->state)->overlapping);
    r.batch = dy->shape.dims[0];
    fns_of(dx->dtype)->average_grad(&r, dy, dx, tensor_f64(sums));
    tensor_unref(sums);
    return NULL;
}

const KernelDef fractional_pool_cpu[] = {
    {"FractionalMaxPool", .run = run_max, .state_size = sizeof(FractionalState), .init = init_pool, .clear = clear_pool,
     .flags = KERNEL_PER_SESSION | KERNEL_EXPENSIVE},
    {"FractionalAvgPool", .run = run_average, .state_size = sizeof(FractionalState), .init = init_pool, .clear = clear_pool,
     .flags = KERNEL_PER_SESSION | KERNEL_EXPENSIVE},
    {"FractionalMaxPoolGrad", .run = run_max_grad, .state_size = sizeof(GradState), .init = init_grad, .flags = KERNEL_EXPENSIVE},
    {"FractionalAvgPoolGrad", .run = run_average_grad, .state_size = sizeof(GradState), .init = init_grad, .flags = KERNEL_EXPENSIVE},
    {0},
};
