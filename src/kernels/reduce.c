/* reduce.c: walks an array row by row and folds the rows. */
#include "kernels/reduce.h"

/* Elements of one partial result when everything, or all rows of a narrow matrix, are folded into one; elements that rows of such a
 * matrix are taken together to have at least. 4M elements in rows of 16: 2 ms instead of 21. */
enum { CHUNK = 65536, WIDE = 1024 };

/* May wrap on the way to 0 where another dimension is empty. */
static int64_t times(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

void reduce_plan_init(ReducePlan *p, int rank, const int64_t *dims, const bool *folded) {
    p->rank = 0;
    p->out_count = p->fold_count = 1;
    for (int d = 0; d < rank; d++) {
        if (folded[d]) {
            p->fold_count = times(p->fold_count, dims[d]);
        } else {
            p->out_count = times(p->out_count, dims[d]);
        }
        if (dims[d] == 1) continue;
        if (p->rank > 0 && p->folded[p->rank - 1] == folded[d]) {
            p->dims[p->rank - 1] = times(p->dims[p->rank - 1], dims[d]);
            continue;
        }
        p->dims[p->rank] = dims[d];
        p->folded[p->rank++] = folded[d];
    }
    if (p->rank == 0) {
        p->dims[0] = 1;
        p->folded[0] = false;
        p->rank = 1;
    }
    int64_t stride = 1, out_stride = 1;
    for (int d = p->rank - 1; d >= 0; d--) {
        p->strides[d] = stride;
        p->out_strides[d] = p->folded[d] ? 0 : out_stride;
        stride = times(stride, p->dims[d]);
        if (!p->folded[d]) out_stride = times(out_stride, p->dims[d]);
    }
}

typedef struct ReduceJob {
    const ReducePlan *plan;
    const Reducer *r;
    char *z, *acc;
    const char *x;
} ReduceJob;

static bool folds_all(const ReducePlan *p) {
    return p->rank == 1 && p->folded[0];
}

/* A matrix of many short rows, to be folded into one row. */
static bool folds_short_rows(const ReducePlan *p) {
    return p->rank == 2 && p->folded[0] && p->dims[1] > 0 && p->dims[1] <= WIDE / 2 && p->dims[0] > CHUNK / 4 / p->dims[1];
}

/* Rows that are folded together. */
static int64_t rows_together(const ReducePlan *p) {
    return WIDE / p->dims[1];
}

static int64_t rows_of_chunk(const ReducePlan *p) {
    return CHUNK / WIDE * rows_together(p);
}

int64_t reduce_acc_count(const ReducePlan *p) {
    if (folds_short_rows(p)) return (1 + p->dims[0] / rows_of_chunk(p)) * rows_together(p) * p->dims[1];
    return folds_all(p) ? 1 + p->dims[0] / CHUNK : p->out_count;
}

/* Indices [begin, end) of the dimension `split`, all of the others. */
static void walk(const ReduceJob *job, int d, int split, int64_t begin, int64_t end, int64_t x_at, int64_t out_at) {
    const ReducePlan *p = job->plan;
    const Reducer *r = job->r;
    int64_t from = d == split ? begin : 0, to = d == split ? end : p->dims[d];
    if (d == p->rank - 1) {
        char *acc = job->acc + (size_t)(out_at + (p->folded[d] ? 0 : from)) * r->acc_size;
        (p->folded[d] ? r->fold_row : r->fold_rows)(acc, job->x + (size_t)(x_at + from) * r->size, to - from);
        return;
    }
    for (int64_t i = from; i < to; i++) {
        walk(job, d + 1, split, begin, end, x_at + i * p->strides[d], out_at + i * p->out_strides[d]);
    }
}

static void reduce_range(void *arg, int64_t begin, int64_t end) {
    const ReduceJob *job = arg;
    const ReducePlan *p = job->plan;
    const Reducer *r = job->r;
    int split = p->folded[0] ? 1 : 0;
    size_t first = (size_t)(begin * p->out_strides[split]);
    int64_t n = (end - begin) * p->out_strides[split];
    r->start(job->acc + first * r->acc_size, n);
    walk(job, 0, split, begin, end, 0, 0);
    r->finish(job->z + first * r->size, job->acc + first * r->acc_size, n, p->fold_count);
}

static void fold_chunks(void *arg, int64_t begin, int64_t end) {
    const ReduceJob *job = arg;
    const Reducer *r = job->r;
    for (int64_t c = begin; c < end; c++) {
        int64_t from = c * CHUNK, left = job->plan->dims[0] - from;
        char *acc = job->acc + (size_t)c * r->acc_size;
        r->start(acc, 1);
        r->fold_row(acc, job->x + (size_t)from * r->size, left < CHUNK ? left : CHUNK);
    }
}

static void fold_short_rows(void *arg, int64_t begin, int64_t end) {
    const ReduceJob *job = arg;
    const Reducer *r = job->r;
    const int64_t n = job->plan->dims[1], together = rows_together(job->plan), wide = together * n, rows = rows_of_chunk(job->plan);
    for (int64_t c = begin; c < end; c++) {
        char *acc = job->acc + (size_t)(c * wide) * r->acc_size;
        int64_t at = c * rows, last = at + rows < job->plan->dims[0] ? at + rows : job->plan->dims[0];
        r->start(acc, wide);
        for (; at < last; at += together) {
            r->fold_rows(acc, job->x + (size_t)(at * n) * r->size, (last - at < together ? last - at : together) * n);
        }
        for (int64_t i = 1; i < together; i++) r->merge(acc, acc + (size_t)(i * n) * r->acc_size, n);
    }
}

/* The sum of parts, which are `apart` accumulators from each other. */
static void merge_parts(const ReduceJob *job, int64_t parts, int64_t apart, int64_t n) {
    const Reducer *r = job->r;
    for (int64_t c = 1; c < parts; c++) r->merge(job->acc, job->acc + (size_t)(c * apart) * r->acc_size, n);
    r->finish(job->z, job->acc, n, job->plan->fold_count);
}

void reduce_run(const ReducePlan *p, const Reducer *r, void *z, const void *x, void *acc, ThreadPool *pool) {
    ReduceJob job = {p, r, z, acc, x};
    if (p->out_count == 0) return;
    if (p->fold_count == 0) {
        r->start(acc, p->out_count);
        r->finish(z, acc, p->out_count, 0);
        return;
    }
    if (folds_all(p)) {
        int64_t chunks = reduce_acc_count(p);
        threadpool_parallel_for(pool, chunks, 1, fold_chunks, &job);
        merge_parts(&job, chunks, 1, 1);
        return;
    }
    if (folds_short_rows(p)) {
        int64_t wide = rows_together(p) * p->dims[1], chunks = reduce_acc_count(p) / wide;
        threadpool_parallel_for(pool, chunks, 1, fold_short_rows, &job);
        merge_parts(&job, chunks, wide, p->dims[1]);
        return;
    }
    int64_t n = p->dims[p->folded[0] ? 1 : 0];
    int64_t each = p->out_count / n * p->fold_count; /* elements behind one index */
    int64_t grain = 32768 / (each > 0 ? each : 1) + 1;
    threadpool_parallel_for(pool, n, grain, reduce_range, &job);
}
