/* conv2d_patches.c: convolutions of doubles, for which oneDNN has none, as products of patches of the image with the filter. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/conv2d.h"
#include "kernels/gemm.h"
#include "kernels/patches.h"

enum { CHUNK_NUMBERS = 1 << 15, LEAST_CHUNK = 64, PIECE_PRODUCTS = 1 << 20 }; /* numbers of the patches that are made at once: they stay in the cache */

typedef struct PatchesJob {
    Conv2dKind kind;
    PatchShape patch;
    int64_t out_c, chunk;
    double *in, *filter, *out;
    ThreadPool *pool;    /* of the gradient of the filter, whose patches follow each other */
    _Atomic bool failed; /* there was no memory */
} PatchesJob;

static void forward(const PatchesJob *job, int64_t at, int64_t n, double *rows) {
    patches_copy(&job->patch, sizeof(double), job->in, at, at + n, rows);
    gemm_f64(&(Gemm){.m = n, .n = job->out_c, .k = patch_length(&job->patch), .a = rows, .b = job->filter, .c = job->out + at * job->out_c}, NULL);
}

static void back_input(const PatchesJob *job, int64_t at, int64_t n, double *rows) {
    gemm_f64(&(Gemm){.m = n, .n = patch_length(&job->patch), .k = job->out_c, .b_transposed = true, .a = job->out + at * job->out_c, .b = job->filter, .c = rows}, NULL);
    patches_add_f64(&job->patch, job->in, at, at + n, rows);
}

/* The filter less the gradient, since products can be subtracted. */
static void back_filter(const PatchesJob *job, int64_t at, int64_t n, double *rows) {
    int64_t length = patch_length(&job->patch);
    patches_copy(&job->patch, sizeof(double), job->in, at, at + n, rows);
    gemm_f64(&(Gemm){.m = length, .n = job->out_c, .k = n, .a_transposed = true, .a = rows, .b = job->out + at * job->out_c, .c = job->filter, .subtracts = true}, job->pool);
}

/* Rows of patches [begin, end); of the gradients, images. */
static void patches_range(void *arg, int64_t begin, int64_t end) {
    PatchesJob *job = arg;
    int64_t pixels = patch_rows(&job->patch) / job->patch.batch, length = patch_length(&job->patch);
    double *rows = try_alloc((size_t)(job->chunk * length) * sizeof *rows);
    if (!rows) {
        atomic_store(&job->failed, true);
        return;
    }
    if (job->kind == CONV2D_FORWARD) {
        for (int64_t at = begin; at < end; at += job->chunk) forward(job, at, end - at < job->chunk ? end - at : job->chunk, rows);
    } else {
        for (int64_t at = begin * pixels; at < end * pixels; at += job->chunk) {
            int64_t n = end * pixels - at < job->chunk ? end * pixels - at : job->chunk;
            if (job->kind == CONV2D_BACK_INPUT) {
                back_input(job, at, n, rows);
            } else {
                back_filter(job, at, n, rows);
            }
        }
    }
    free(rows);
}

bool conv2d_patches_f64(Conv2dKind kind, const Conv2dShape *s, double *in, double *filter, double *out, ThreadPool *pool) {
    if (s->groups != 1 || s->channels_first) return false;
    PatchesJob job = {.kind = kind, .out_c = s->out_c, .in = in, .filter = filter, .out = out, .pool = pool};
    job.patch = (PatchShape){.batch = s->batch, .channels = s->in_c, .in = {1, s->in_h, s->in_w}, .out = {1, s->out_h, s->out_w}, .k = {1, s->k_h, s->k_w},
                             .stride = {1, s->stride_h, s->stride_w}, .dilation = {1, s->dilation_h, s->dilation_w}, .pad = {0, s->pad_top, s->pad_left}};
    int64_t length = patch_length(&job.patch), rows = patch_rows(&job.patch), filters = length * s->out_c;
    job.chunk = CHUNK_NUMBERS / length > LEAST_CHUNK ? CHUNK_NUMBERS / length : LEAST_CHUNK;
    if (job.chunk > rows) job.chunk = rows;
    if (kind == CONV2D_FORWARD) {
        threadpool_parallel_for(pool, rows, PIECE_PRODUCTS / filters + LEAST_CHUNK, patches_range, &job);
    } else if (kind == CONV2D_BACK_INPUT) {
        memset(in, 0, (size_t)(s->batch * s->in_h * s->in_w * s->in_c) * sizeof *in);
        threadpool_parallel_for(pool, s->batch, PIECE_PRODUCTS / (filters * (rows / s->batch)) + 1, patches_range, &job);
    } else {
        memset(filter, 0, (size_t)filters * sizeof *filter);
        patches_range(&job, 0, s->batch);
        for (int64_t i = 0; i < filters; i++) filter[i] = -filter[i];
    }
    return !atomic_load(&job.failed);
}
