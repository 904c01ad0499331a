/* batch_norm.c: batch normalisation, pieces of the batch shared among threads. */
#include "kernels/batch_norm.h"

#include <math.h>

#include "base/float16.h"
#include "kernels/cpu.h"

enum {
    PIECE = 16384, /* elements of a piece, about; they stay in the cache for a second look */
    WIDE = 64,     /* pixels with fewer channels are taken several at a time, so that loops are long enough for vectors */
    BLOCK = 512,   /* floats that a function keeps on its stack for each kind */
};

#if defined(__clang__)
#define NO_OVERLAP
#else
#define NO_OVERLAP _Pragma("GCC ivdep")
#endif

/* ---- Pieces ---- */

/* Channels last: pixels. Channels first: one channel of all images. */
static int64_t rows_of(const BatchNorm *b) {
    return b->inner == 1 ? b->outer : b->channels;
}
static int64_t rows_per_piece(const BatchNorm *b) {
    int64_t row = b->inner == 1 ? b->channels : b->outer * b->inner;
    return PIECE / (row > 0 ? row : 1) + 1;
}
static int64_t piece_count(const BatchNorm *b) {
    int64_t rows = rows_per_piece(b);
    return (rows_of(b) + rows - 1) / rows;
}
size_t batch_norm_part_count(const BatchNorm *b) {
    return b->inner == 1 ? (size_t)(2 * piece_count(b) * b->channels) : 0;
}

/* Pixels that are taken together. */
static int64_t repeat_of(const BatchNorm *b) {
    return b->channels >= WIDE ? 1 : WIDE / b->channels;
}

/* What is computed for one piece: rows [begin, end), results to `part` or to the arrays of b. */
typedef void PieceFn(const BatchNorm *b, int64_t begin, int64_t end, double *part);
typedef struct NormLoops {
    PieceFn *moments, *normalize, *sums, *grad;                 /* channels last */
    PieceFn *moments_planes, *normalize_planes, *sums_planes, *grad_planes; /* channels first */
} NormLoops;

#define CPU_BODY "kernels/batch_norm_types.inc"
#include "kernels/each_cpu.inc"

static const NormLoops *loops_of(const BatchNorm *b) {
    return &CPU_PICK(norm_loops)[b->type];
}

typedef struct Job {
    const BatchNorm *b;
    PieceFn *fn;
} Job;

static void run_pieces(void *arg, int64_t begin, int64_t end) {
    const Job *job = arg;
    int64_t rows = rows_per_piece(job->b), all = rows_of(job->b);
    for (int64_t p = begin; p < end; p++) {
        int64_t to = (p + 1) * rows;
        job->fn(job->b, p * rows, to < all ? to : all, job->b->inner == 1 && job->b->parts ? job->b->parts + 2 * p * job->b->channels : NULL);
    }
}

static void over_pieces(const BatchNorm *b, PieceFn *fn, ThreadPool *pool) {
    Job job = {b, fn};
    threadpool_parallel_for(pool, piece_count(b), 2, run_pieces, &job);
}

/* ---- Results of pieces put together, in their order ---- */

/* A part has the mean of each channel and the sum of squared distances from it. */
void batch_norm_moments(BatchNorm *b, ThreadPool *pool) {
    if (b->inner != 1) {
        over_pieces(b, loops_of(b)->moments_planes, pool);
        return;
    }
    over_pieces(b, loops_of(b)->moments, pool);
    int64_t rows = rows_per_piece(b), pieces = piece_count(b);
    for (int64_t c = 0; c < b->channels; c++) {
        double mean = 0, square = 0, pixels = 0;
        for (int64_t p = 0; p < pieces; p++) {
            const double *part = b->parts + 2 * p * b->channels;
            double n = (double)((p + 1) * rows < b->outer ? rows : b->outer - p * rows), all = pixels + n;
            double apart = part[c] - mean;
            mean += apart * n / all;
            square += part[b->channels + c] + apart * apart * pixels * n / all;
            pixels = all;
        }
        b->mean[c] = (float)mean;
        b->variance[c] = (float)(square / pixels);
    }
}

void batch_norm_normalize(BatchNorm *b, ThreadPool *pool) {
    over_pieces(b, b->inner == 1 ? loops_of(b)->normalize : loops_of(b)->normalize_planes, pool);
}

void batch_norm_sums(BatchNorm *b, ThreadPool *pool) {
    if (b->inner != 1) {
        over_pieces(b, loops_of(b)->sums_planes, pool);
        return;
    }
    over_pieces(b, loops_of(b)->sums, pool);
    for (int64_t c = 0; c < b->channels; c++) {
        double sum = 0, sum_x = 0;
        for (int64_t p = 0; p < piece_count(b); p++) {
            sum += b->parts[2 * p * b->channels + c];
            sum_x += b->parts[(2 * p + 1) * b->channels + c];
        }
        b->sum_dy[c] = (float)sum;
        b->sum_dy_x[c] = (float)sum_x;
    }
}

void batch_norm_grad(BatchNorm *b, ThreadPool *pool) {
    over_pieces(b, b->inner == 1 ? loops_of(b)->grad : loops_of(b)->grad_planes, pool);
}
