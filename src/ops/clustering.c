/* clustering.c: first centers for k-means, and the centers nearest to points. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "kernels/gemm.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef clustering_ops[] = {
    {"KMC2ChainInitialization", "distances: float, seed: int64 -> index: int64", "", 0},
    {"KmeansPlusPlusInitialization", "points: float, num_to_sample: int64, seed: int64, num_retries_per_sample: int64 -> samples: float", "", 0},
    {"NearestNeighbors", "points: float, centers: float, k: int64 -> nearest_center_indices: int64, nearest_center_distances: float", "", 0},
    {0},
};

static Error *want_rank(KernelContext *k, int i, int rank, const char *name) {
    static const char *const kinds[] = {"scalar", "vector", "matrix"};
    return k->in[i]->shape.rank == rank ? NULL : error_invalid("Input %s should be a %s.", name, kinds[rank]);
}

static float half_squared_norm(const float *x, int64_t n) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return 0.5f * sum;
}

/* ---- k-MC2: one Markov chain over the candidates ---- */

static Error *run_kmc2(KernelContext *k) {
    Error *err = want_rank(k, 0, 1, "distances");
    if (!err) err = want_rank(k, 1, 0, "seed");
    if (err) return err;
    int64_t count = k->in[0]->count, chosen = 0;
    if (count == 0) return error_invalid("Expected distances_tensor.size() > 0.");
    PhiloxStream random = philox_stream(philox_from_seeds((uint64_t)tensor_i64(k->in[1])[0], 0));
    const float *distances = tensor_f32(k->in[0]);
    for (int64_t i = 1; i < count; i++)
        if (distances[i] > uniform_float(philox_stream_next(&random)) * distances[chosen]) chosen = i;
    kernel_set_output(k, 0, tensor_scalar_i64(chosen));
    return NULL;
}

/* ---- k-means++: points drawn by their squared distance from those drawn before ---- */

enum { MAX_VAIN_DRAWS = 10000 };

typedef struct Drawing {
    const float *points;
    int64_t count, dims;
    float *half_norms;
    float *nearest; /* half the squared distance to the nearest point drawn */
    float *sums;    /* of nearest, up to and with each point */
    bool *drawn;
    bool any;
    PhiloxStream random;
} Drawing;

static int64_t draw_evenly(Drawing *d) {
    uint64_t n = (uint64_t)d->count, rest = (n & (n - 1)) ? UINT64_MAX % n + 1 : 0, x;
    do {
        uint64_t low = philox_stream_next(&d->random);
        x = low | (uint64_t)philox_stream_next(&d->random) << 32;
    } while (x < rest); /* what would favour small numbers */
    return (int64_t)(x % n);
}

/* The first point whose sum is above v. */
static int64_t first_above(const Drawing *d, float v) {
    int64_t from = 0, to = d->count;
    while (from < to) {
        int64_t middle = from + (to - from) / 2;
        if (v < d->sums[middle])
            to = middle;
        else
            from = middle + 1;
    }
    return from < d->count ? from : d->count - 1;
}

/* A point not drawn yet. When all that is left lies on drawn points, or distances are no numbers, every point is as likely. */
static int64_t draw_one(Drawing *d) {
    if (!d->any) return draw_evenly(d);
    float total = d->sums[d->count - 1];
    for (int64_t tries = 0;; tries++) {
        bool evenly = !(total > 0) || tries >= MAX_VAIN_DRAWS;
        int64_t i = evenly ? draw_evenly(d) : first_above(d, uniform_float(philox_stream_next(&d->random)) * total);
        if (!d->drawn[i]) return i;
    }
}

/* What `nearest` would be with this point too; its sum. */
static float nearest_with(const Drawing *d, int64_t chosen, float *nearest) {
    const float *y = d->points + chosen * d->dims;
    float sum = 0;
    for (int64_t i = 0; i < d->count; i++) {
        const float *x = d->points + i * d->dims;
        float product = 0;
        for (int64_t j = 0; j < d->dims; j++) product += x[j] * y[j];
        float distance = d->half_norms[i] - product + d->half_norms[chosen];
        nearest[i] = distance < d->nearest[i] ? distance : d->nearest[i];
        sum += nearest[i];
    }
    return sum;
}

/* Draws `tries` points and takes the one that leaves the least to the others; room holds two rows of numbers. */
static int64_t draw_best(Drawing *d, int tries, float *room) {
    float best_sum = INFINITY, *best = room, *now = room + d->count;
    int64_t chosen = 0;
    memcpy(best, d->nearest, (size_t)d->count * sizeof *best);
    for (; tries > 0; tries--) {
        int64_t i = draw_one(d);
        float sum = nearest_with(d, i, now);
        if (!(sum < best_sum)) continue;
        best_sum = sum;
        chosen = i;
        float *other = best;
        best = now;
        now = other;
    }
    memcpy(d->nearest, best, (size_t)d->count * sizeof *best);
    return chosen;
}

static Error *run_kmeans(KernelContext *k) {
    Error *err = want_rank(k, 0, 2, "points");
    if (!err) err = want_rank(k, 1, 0, "num_to_sample");
    if (!err) err = want_rank(k, 2, 0, "seed");
    if (!err) err = want_rank(k, 3, 0, "num_retries_per_sample");
    if (err) return err;
    Drawing d = {.points = tensor_f32(k->in[0]), .count = k->in[0]->shape.dims[0], .dims = k->in[0]->shape.dims[1]};
    int64_t wanted = tensor_i64(k->in[1])[0], retries = tensor_i64(k->in[3])[0];
    if (d.count == 0) return error_invalid("Expected points.rows() > 0.");
    if (wanted <= 0) return error_invalid("Expected num_to_sample > 0.");
    if (wanted > d.count) return error_invalid("Expected num_to_sample <= points.rows(). %lld vs %lld.", (long long)wanted, (long long)d.count);
    if (retries < 0) retries = 2 + (int64_t)log((double)wanted);
    Shape shape = shape_matrix(wanted, d.dims);
    Tensor *out = kernel_output(k, 0, &shape);
    Shape rows = shape_matrix(5, d.count);
    Tensor *scratch = out ? kernel_scratch(k, DT_FLOAT, &rows) : NULL;
    if (!scratch) return NULL;
    d.half_norms = tensor_f32(scratch);
    d.nearest = d.half_norms + d.count;
    d.sums = d.nearest + d.count;
    d.drawn = xcalloc((size_t)d.count, sizeof *d.drawn);
    d.random = philox_stream(philox_from_seeds((uint64_t)tensor_i64(k->in[2])[0], 0));
    for (int64_t i = 0; i < d.count; i++) {
        d.half_norms[i] = half_squared_norm(d.points + i * d.dims, d.dims);
        d.nearest[i] = INFINITY;
    }
    int tries = (int)(1 + (uint64_t)retries); /* as TensorFlow counts them */
    for (int64_t i = 0; i < wanted; i++) {
        for (int64_t j = 0; d.any && j < d.count; j++) d.sums[j] = j ? d.sums[j - 1] + d.nearest[j] : d.nearest[j];
        int64_t next = draw_best(&d, tries, d.sums + d.count);
        d.any = d.drawn[next] = true;
        memcpy(tensor_f32(out) + i * d.dims, d.points + next * d.dims, (size_t)d.dims * sizeof(float));
    }
    free(d.drawn);
    tensor_unref(scratch);
    return NULL;
}

/* ---- Nearest centers ---- */

enum { PRODUCTS_AT_ONCE = 1 << 18 };

typedef struct Center {
    float distance; /* half the squared one, without what all centers of a point share */
    int64_t index;
} Center;

typedef struct Nearest {
    const float *points, *half_norms; /* of centers */
    const float *products;            /* of points from `first` on with all centers */
    int64_t first, dims, centers, wanted;
    int64_t *indices;
    float *distances;
} Nearest;

static int compare_centers(const void *a, const void *b) {
    const Center *x = a, *y = b;
    if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void nearest_of_points(void *arg, int64_t from, int64_t to) {
    const Nearest *n = arg;
    Center *all = n->wanted > 1 ? xmalloc((size_t)n->centers * sizeof *all) : NULL;
    for (int64_t row = from; row < to; row++) {
        int64_t point = n->first + row;
        const float *products = n->products + row * n->centers;
        float half_norm = half_squared_norm(n->points + point * n->dims, n->dims);
        Center least = {n->half_norms[0] - products[0], 0};
        for (int64_t j = 0; j < n->centers; j++) {
            Center c = {n->half_norms[j] - products[j], j};
            if (all) all[j] = c;
            if (c.distance < least.distance) least = c;
        }
        if (all) qsort(all, (size_t)n->centers, sizeof *all, compare_centers);
        for (int64_t j = 0; j < n->wanted; j++) {
            Center c = all ? all[j] : least;
            n->indices[point * n->wanted + j] = c.index;
            n->distances[point * n->wanted + j] = 2 * (half_norm + c.distance);
        }
    }
    free(all);
}

static Error *run_nearest(KernelContext *k) {
    Error *err = want_rank(k, 0, 2, "points");
    if (!err) err = want_rank(k, 1, 2, "centers");
    if (!err) err = want_rank(k, 2, 0, "k");
    if (err) return err;
    const Shape *points = &k->in[0]->shape, *centers = &k->in[1]->shape;
    int64_t count = points->dims[0], dims = points->dims[1], wanted = tensor_i64(k->in[2])[0];
    if (count == 0) return error_invalid("Expected points.rows() > 0.");
    if (dims != centers->dims[1])
        return error_invalid("Expected point_dimensions == center_dimensions: %lld vs %lld.", (long long)dims, (long long)centers->dims[1]);
    if (wanted < 0) return error_invalid("Expected k >= 0.");
    if (wanted > centers->dims[0]) wanted = centers->dims[0];
    Shape shape = shape_matrix(count, wanted);
    Tensor *indices = kernel_output(k, 0, &shape), *distances = indices ? kernel_output(k, 1, &shape) : NULL;
    if (!distances || wanted == 0) return NULL;
    int64_t at_once = PRODUCTS_AT_ONCE / centers->dims[0] + 1;
    if (at_once > count) at_once = count;
    Shape room = shape_vector((at_once + 1) * centers->dims[0]);
    Tensor *scratch = kernel_scratch(k, DT_FLOAT, &room);
    if (!scratch) return NULL;
    float *products = tensor_f32(scratch), *half_norms = products + at_once * centers->dims[0];
    for (int64_t j = 0; j < centers->dims[0]; j++) half_norms[j] = half_squared_norm(tensor_f32(k->in[1]) + j * dims, dims);
    Nearest n = {tensor_f32(k->in[0]), half_norms, products, 0, dims, centers->dims[0], wanted, tensor_i64(indices), tensor_f32(distances)};
    for (; n.first < count; n.first += at_once) {
        int64_t rows = count - n.first < at_once ? count - n.first : at_once;
        if (dims == 0)
            memset(products, 0, (size_t)(rows * n.centers) * sizeof *products);
        else
            gemm_f32(&(Gemm){.m = rows, .n = n.centers, .k = dims, .b_transposed = true, .a = n.points + n.first * dims, .b = k->in[1]->data, .c = products}, k->pool);
        threadpool_parallel_for(k->pool, rows, 1 + PRODUCTS_AT_ONCE / 16 / n.centers, nearest_of_points, &n);
    }
    tensor_unref(scratch);
    return NULL;
}

const KernelDef clustering_cpu[] = {
    {"KMC2ChainInitialization", .run = run_kmc2},
    {"KmeansPlusPlusInitialization", .run = run_kmeans, .flags = KERNEL_EXPENSIVE},
    {"NearestNeighbors", .run = run_nearest, .flags = KERNEL_EXPENSIVE},
    {0},
};
