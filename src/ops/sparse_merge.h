/* sparse_merge.h: the places of two sparse tensors in one order. */
#pragma once
#include "ops/sparse_tensor.h"

/* Places after each other that are in a, from its row `a` on, in b, or in both; -1: not in that one. */
typedef struct SparseRun {
    int64_t a, b, count;
} SparseRun;

typedef struct SparseRuns {
    SparseRun *runs; /* malloced */
    int64_t count, room;
    int64_t places; /* of all runs */
} SparseRuns;

/* Both in row-major order. */
SparseRuns sparse_merge(const SparseView *a, const SparseView *b);
void sparse_runs_add(SparseRuns *r, SparseRun run);
/* The indices of all places, `places` rows. */
void sparse_runs_put(const SparseRuns *r, const SparseView *a, const SparseView *b, int64_t *to);
