/* sparse_merge.c: the places of two sparse tensors in one order. */
#include "ops/sparse_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define INLINE static inline __attribute__((always_inline))

void sparse_runs_add(SparseRuns *r, SparseRun run) {
    if (run.count == 0) return;
    if (r->count == r->room) {
        r->room = r->room ? 2 * r->room : 64;
        r->runs = xrealloc(r->runs, (size_t)r->room * sizeof *r->runs);
    }
    r->runs[r->count++] = run;
    r->places += run.count;
}

/* sparse_compare; of two indices without jumps, for nobody can guess which way places of unlike tensors go. */
INLINE int compare(const int64_t *a, const int64_t *b, int rank) {
    if (rank != 2) return sparse_compare(a, b, rank);
    const int order = 2 * ((a[0] > b[0]) - (a[0] < b[0])) + (a[1] > b[1]) - (a[1] < b[1]);
    return (order > 0) - (order < 0);
}

INLINE void merge(SparseRuns *r, const SparseView *a, const SparseView *b, int rank) {
    int64_t i = 0, j = 0;
    int order = a->nnz > 0 && b->nnz > 0 ? compare(a->indices, b->indices, rank) : 0;
    while (i < a->nnz && j < b->nnz) {
        SparseRun run = {order <= 0 ? i : -1, order >= 0 ? j : -1, 0};
        const int64_t in_a = order <= 0, in_b = order >= 0;
        int next;
        do {
            const int64_t most = order != 0 ? 1 : a->nnz - i < b->nnz - j ? a->nnz - i : b->nnz - j; /* of the same places many often follow each other */
            int64_t n = 1;
            while (n < most && sparse_compare(a->indices + (i + n) * rank, b->indices + (j + n) * rank, rank) == 0) n++;
            run.count += n;
            i += in_a * n;
            j += in_b * n;
            next = i < a->nnz && j < b->nnz ? compare(a->indices + i * rank, b->indices + j * rank, rank) : 2;
        } while (next == order);
        sparse_runs_add(r, run);
        order = next;
    }
    sparse_runs_add(r, (SparseRun){i, -1, a->nnz - i});
    sparse_runs_add(r, (SparseRun){-1, j, b->nnz - j});
}

SparseRuns sparse_merge(const SparseView *a, const SparseView *b) {
    SparseRuns r = {0};
    if (a->shape.rank == 2)
        merge(&r, a, b, 2);
    else
        merge(&r, a, b, a->shape.rank);
    return r;
}

void sparse_runs_put(const SparseRuns *r, const SparseView *a, const SparseView *b, int64_t *to) {
    const int64_t rank = a->shape.rank;
    for (int64_t i = 0; i < r->count; i++) {
        const SparseRun run = r->runs[i];
        const int64_t *from = run.a >= 0 ? a->indices + run.a * rank : b->indices + run.b * rank;
        if (run.count > 1) memcpy(to, from, (size_t)(run.count * rank) * sizeof *to);
        for (int64_t d = 0; run.count == 1 && d < rank; d++) to[d] = from[d];
        to += run.count * rank;
    }
}
