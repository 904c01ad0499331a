/* gather.c: rows picked by index. */
#include "kernels/gather.h"

#include <string.h>

#include "kernels/indexed_rows.h"

enum { AHEAD = 8 }; /* rows that are fetched from memory beforehand */

typedef struct Job {
    const RowGather *g;
    char *to;
    const char *from;
} Job;

static void gather_range(void *arg, int64_t begin, int64_t end) {
    const Job *job = arg;
    const RowGather *g = job->g;
    size_t row_bytes = (size_t)g->width * g->kind.size;
    int64_t block = begin / g->count, i = begin % g->count;
    for (int64_t at = begin; at < end; at++) {
        int64_t row = g->rows[block / g->blocks_per_list * g->count + i];
        char *to = job->to + (size_t)at * row_bytes;
        const char *from = job->from + (size_t)(block * g->from_rows + row) * row_bytes;
        if (i + AHEAD < g->count) {
            int64_t soon = g->rows[block / g->blocks_per_list * g->count + i + AHEAD];
            row_fetch(job->from + (size_t)(block * g->from_rows + soon) * row_bytes, row_bytes);
        }
        if (g->kind.copy) {
            copy_elements(g->kind, to, from, g->width);
        } else if (row_bytes == 4) {
            memcpy(to, from, 4);
        } else if (row_bytes == 8) {
            memcpy(to, from, 8);
        } else {
            memcpy(to, from, row_bytes);
        }
        if (++i == g->count) {
            i = 0;
            block++;
        }
    }
}

void gather_rows(ThreadPool *pool, const RowGather *g, void *to, const void *from) {
    if (g->count == 0 || g->blocks == 0 || g->width == 0) return;
    Job job = {g, to, from};
    int64_t row_bytes = g->width * (int64_t)g->kind.size;
    threadpool_parallel_for(g->kind.copy ? NULL : pool, g->blocks * g->count, 131072 / (row_bytes + 1) + 1,
                            gather_range, &job);
}
