/* indexed_rows.c: every thread reads all indices and takes the rows that are its own. */
#include "kernels/indexed_rows.h"

enum { AHEAD = 8, BYTES_PER_TASK = 1 << 17 };

typedef struct Job {
    const IndexedRows *r;
    int64_t parts;
} Job;

static int64_t row_at(const IndexedRows *r, int64_t i) {
    return r->wide ? ((const int64_t *)r->indices)[i] : ((const int32_t *)r->indices)[i];
}

static void run_parts(void *arg, int64_t begin, int64_t end) {
    const Job *job = arg;
    const IndexedRows *r = job->r;
    for (int64_t part = begin; part < end; part++) {
        for (int64_t i = 0; i < r->count; i++) {
            if (i + AHEAD < r->count) {
                int64_t soon = row_at(r, i + AHEAD);
                if (job->parts == 1 || soon % job->parts == part) row_fetch((const char *)r->first + (size_t)soon * r->row_bytes, r->row_bytes);
            }
            int64_t row = row_at(r, i);
            if (job->parts == 1 || row % job->parts == part) r->fn(r->arg, row, i);
        }
    }
}

void indexed_rows_run(const IndexedRows *r, ThreadPool *pool) {
    int64_t threads = pool ? threadpool_size(pool) : 1, tasks = r->count * (int64_t)r->row_bytes / BYTES_PER_TASK;
    Job job = {r, tasks < 1 ? 1 : tasks < threads ? tasks : threads};
    threadpool_parallel_for(pool, job.parts, 1, run_parts, &job);
}
