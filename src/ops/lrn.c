/* lrn.c: LRN, local response normalisation over neighbouring channels, and its gradient. */
#include <math.h>
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "kernels/vector_roots.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef lrn_ops[] = {
    {"LRN", "input: T -> output: T",
     "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; T: {half, bfloat16, float} = "
     "float",
     0},
    {"LRNGrad", "input_grads: T, input_image: T, output_image: T -> output: T",
     "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; T: {half, bfloat16, float} = "
     "float",
     0},
    {0},
};

typedef struct LrnState {
    int64_t radius;
    float bias, alpha, beta;
} LrnState;

static Error *lrn_init(const Node *node, void *state) {
    LrnState *st = state;
    Error *err = node_attr_int(node, "depth_radius", &st->radius);
    if (!err) err = node_attr_float(node, "bias", &st->bias);
    if (!err) err = node_attr_float(node, "alpha", &st->alpha);
    if (!err) err = node_attr_float(node, "beta", &st->beta);
    if (!err && (st->radius < 0 || st->radius > INT32_MAX)) {
        err = error_invalid("depth_radius = %lld out of range", (long long)st->radius);
    }
    return err;
}

typedef struct LrnJob {
    const LrnState *st;
    DataType dtype;
    int64_t channels;
    void *z;
    const void *x, *y, *dy; /* y, dy: of the gradient */
} LrnJob;

static float get(const LrnJob *job, const void *p, int64_t i) {
    if (job->dtype == DT_HALF) return half_to_float(((const uint16_t *)p)[i]);
    if (job->dtype == DT_BFLOAT16) return bfloat16_to_float(((const uint16_t *)p)[i]);
    return ((const float *)p)[i];
}
static void put(const LrnJob *job, int64_t i, float v) {
    if (job->dtype == DT_HALF) {
        ((uint16_t *)job->z)[i] = float_to_half(v);
    } else if (job->dtype == DT_BFLOAT16) {
        ((uint16_t *)job->z)[i] = float_to_bfloat16(v);
    } else {
        ((float *)job->z)[i] = v;
    }
}

/* ---- Some pixels at once: rows of channels with `radius` zeros between them, so that a window is a few shifted sums ---- */

enum { ROOM = 1024 }; /* numbers of such rows that are worked on together */

typedef struct LrnRoom {
    int64_t radius, width, pixels; /* zeros before each row and behind the last; of a row and those behind it; that fit in at once */
    float *x, *square, *pair, *norm, *scale, *ratio, *sum;
} LrnRoom;

static LrnRoom room_of(const LrnJob *job) {
    LrnRoom r = {.radius = job->st->radius < job->channels ? job->st->radius : job->channels - 1};
    r.width = job->channels + r.radius;
    r.pixels = r.width < ROOM ? ROOM / r.width : 1;
    int64_t each = r.pixels * r.width + 2 * r.radius;
    r.x = xcalloc((size_t)(7 * each), sizeof *r.x);
    r.square = r.x + each;
    r.pair = r.square + each;
    r.norm = r.pair + each;
    r.scale = r.norm + each;
    r.ratio = r.scale + each;
    r.sum = r.ratio + each;
    return r;
}

/* Rows of n numbers, one after the other in x, and their squares, `width` apart. */
INLINE void spread_rows(float *z, float *square, const float *x, int64_t rows, int64_t width, int64_t n) {
    for (int64_t r = 0; r < rows; r++, z += width, square += width, x += n) {
        NO_OVERLAP for (int64_t i = 0; i < n; i++) {
            z[i] = x[i];
            square[i] = x[i] * x[i];
        }
    }
}
/* Back, multiplied with y. */
INLINE void multiply_rows(float *z, const float *x, const float *y, int64_t rows, int64_t width, int64_t n) {
    for (int64_t r = 0; r < rows; r++, z += n, x += width, y += width) {
        NO_OVERLAP for (int64_t i = 0; i < n; i++) z[i] = x[i] * y[i];
    }
}
/* z[i] = x[i] + x[i + 1] */
INLINE void pair_row(float *z, const float *x, int64_t n) {
    NO_OVERLAP for (int64_t i = 0; i < n; i++) z[i] = x[i] + x[i + 1];
}
/* z[i] = add + factor * the sum of x[i - radius] to x[i + radius]; pair[i] = x[i] + x[i + 1]. */
INLINE void sum_window(float *z, const float *x, const float *pair, int64_t n, int64_t radius, float factor, float add) {
    enum { BLOCK = 64 }; /* sums that stay in registers */
    int64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        float sum[BLOCK];
        for (int j = 0; j < BLOCK; j++) sum[j] = x[i + j + radius];
        for (int64_t d = -radius; d < radius; d += 2)
            for (int j = 0; j < BLOCK; j++) sum[j] += pair[i + j + d];
        for (int j = 0; j < BLOCK; j++) z[i + j] = add + factor * sum[j];
    }
    for (; i < n; i++) {
        float sum = x[i + radius];
        for (int64_t d = -radius; d < radius; d += 2) sum += pair[i + d];
        z[i] = add + factor * sum;
    }
}
INLINE void invert_row(float *z, const float *x, int64_t n) {
    NO_OVERLAP for (int64_t i = 0; i < n; i++) z[i] = 1 / x[i];
}
CPU_LOOP(spread, (float *z, float *square, const float *x, int64_t rows, int64_t width, int64_t n), (z, square, x, rows, width, n),
         spread_rows(z, square, x, rows, width, n))
CPU_LOOP(products, (float *z, const float *x, const float *y, int64_t rows, int64_t width, int64_t n), (z, x, y, rows, width, n),
         multiply_rows(z, x, y, rows, width, n))
CPU_LOOP(pairs, (float *z, const float *x, int64_t n), (z, x, n), pair_row(z, x, n))
CPU_LOOP(window_sums, (float *z, const float *x, const float *pair, int64_t n, int64_t radius, float factor, float add), (z, x, pair, n, radius, factor, add),
         sum_window(z, x, pair, n, radius, factor, add))
CPU_LOOP(inverses, (float *z, const float *x, int64_t n), (z, x, n), invert_row(z, x, n))

/* `count` pixels from number `at` on, and their squares; the zeros stay. */
static void load_pixels(const LrnJob *job, LrnRoom *r, int64_t at, int64_t count) {
    const int64_t n = job->channels;
    float *row = r->x + r->radius, *square = r->square + r->radius;
    if (job->dtype == DT_FLOAT) {
        spread(row, square, (const float *)job->x + at * n, count, r->width, n);
        return;
    }
    for (int64_t p = 0; p < count; p++, row += r->width, square += r->width) {
        for (int64_t c = 0; c < n; c++) {
            row[c] = get(job, job->x, (at + p) * n + c);
            square[c] = row[c] * row[c];
        }
    }
}

/* z = add + factor * the sum around each channel of x, in all rows. */
static void add_windows(LrnRoom *r, float *z, const float *x, int64_t count, float factor, float add) {
    const int64_t n = count * r->width;
    pairs(r->pair, x, n + 2 * r->radius - 1);
    window_sums(z + r->radius, x + r->radius, r->pair + r->radius, n, r->radius, factor, add);
}

/* norm = bias + alpha * the sum of squares around each channel of x, scale = norm^-beta. */
static void find_norms(const LrnJob *job, LrnRoom *r, int64_t count) {
    const LrnState *st = job->st;
    int64_t n = count * r->width;
    add_windows(r, r->norm, r->square, count, st->alpha, st->bias);
    const float *norm = r->norm + r->radius;
    float *scale = r->scale + r->radius;
    if (st->beta == 0.5f) {
        vector_rsqrt(scale, norm, n);
    } else if (st->beta == 1) {
        inverses(scale, norm, n);
    } else {
        for (int64_t i = 0; i < n; i++) scale[i] = powf(norm[i], -st->beta);
    }
}

static void lrn_pixels(void *arg, int64_t begin, int64_t end) {
    const LrnJob *job = arg;
    LrnRoom r = room_of(job);
    for (int64_t p = begin; p < end; p += r.pixels) {
        const int64_t count = end - p < r.pixels ? end - p : r.pixels, at = p * job->channels;
        load_pixels(job, &r, p, count);
        find_norms(job, &r, count);
        const float *x = r.x + r.radius, *scale = r.scale + r.radius;
        if (job->dtype == DT_FLOAT) {
            products((float *)job->z + at, x, scale, count, r.width, job->channels);
            continue;
        }
        for (int64_t i = 0; i < count; i++, x += r.width, scale += r.width)
            for (int64_t c = 0; c < job->channels; c++) put(job, at + i * job->channels + c, x[c] * scale[c]);
    }
    free(r.x);
}

/* Channel j passes dy to every neighbour k: dy * (norm^-beta [j = k] - 2 alpha beta x_k y_j / norm). */
static void lrn_grad_pixels(void *arg, int64_t begin, int64_t end) {
    const LrnJob *job = arg;
    const float factor = -2 * job->st->alpha * job->st->beta;
    LrnRoom r = room_of(job);
    for (int64_t p = begin; p < end; p += r.pixels) {
        int64_t count = end - p < r.pixels ? end - p : r.pixels;
        load_pixels(job, &r, p, count);
        find_norms(job, &r, count);
        for (int64_t i = 0; i < count; i++) { /* dy y / norm */
            int64_t row = r.radius + i * r.width, at = (p + i) * job->channels;
            for (int64_t c = 0; c < job->channels; c++) r.ratio[row + c] = get(job, job->dy, at + c) * get(job, job->y, at + c) / r.norm[row + c];
        }
        add_windows(&r, r.sum, r.ratio, count, 1, 0);
        for (int64_t i = 0; i < count; i++) {
            int64_t row = r.radius + i * r.width, at = (p + i) * job->channels;
            for (int64_t c = 0; c < job->channels; c++)
                put(job, at + c, get(job, job->dy, at + c) * r.scale[row + c] + factor * r.x[row + c] * r.sum[row + c]);
        }
    }
    free(r.x);
}

static void run_pixels(KernelContext *k, LrnJob *job, const Tensor *z, RangeFn *fn) {
    if (z->count == 0) return;
    int64_t work = job->channels * (2 * job->st->radius + 1);
    threadpool_parallel_for(k->pool, z->count / job->channels, 8192 / work + 1, fn, job);
}

static Error *lrn_run(KernelContext *k) {
    const Tensor *x = k->in[0];
    if (x->shape.rank != 4) return error_invalid("in must be 4-dimensional");
    Tensor *z = kernel_output(k, 0, &x->shape);
    if (!z) return NULL;
    LrnJob job = {k->state, x->dtype, x->shape.dims[3], z->data, x->data, NULL, NULL};
    run_pixels(k, &job, z, lrn_pixels);
    return NULL;
}

static Error *lrn_grad_run(KernelContext *k) {
    const Tensor *dy = k->in[0], *x = k->in[1], *y = k->in[2];
    if (dy->shape.rank != 4 || x->shape.rank != 4) return error_invalid("inputs must be 4-dimensional");
    if (!shape_eq(&dy->shape, &x->shape) || !shape_eq(&y->shape, &x->shape)) {
        return error_invalid("input_grads, input_image, and out_image should have the same shape");
    }
    Tensor *z = kernel_output(k, 0, &x->shape);
    if (!z) return NULL;
    LrnJob job = {k->state, x->dtype, x->shape.dims[3], z->data, x->data, y->data, dy->data};
    run_pixels(k, &job, z, lrn_grad_pixels);
    return NULL;
}

#define TYPES(run) [DT_FLOAT] = run, [DT_HALF] = run, [DT_BFLOAT16] = run
#define STATE .state_size = sizeof(LrnState), .init = lrn_init

const KernelDef lrn_cpu[] = {
    {"LRN", .by_type = {TYPES(lrn_run)}, STATE},
    {"LRNGrad", .by_type = {TYPES(lrn_grad_run)}, STATE},
    {0},
};
