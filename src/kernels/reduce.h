/* reduce.h: folds an array over some of its dimensions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/threadpool.h"

enum { REDUCE_MAX_RANK = 16 };

/* Dimensions of size 1 are gone and neighbours of one kind are joined: kept and folded ones take turns. */
typedef struct ReducePlan {
    int rank;
    int64_t dims[REDUCE_MAX_RANK];
    int64_t strides[REDUCE_MAX_RANK];     /* in elements of the input */
    int64_t out_strides[REDUCE_MAX_RANK]; /* 0 for folded dimensions */
    bool folded[REDUCE_MAX_RANK];
    int64_t out_count, fold_count; /* elements of the result; elements that make one of them */
} ReducePlan;

void reduce_plan_init(ReducePlan *p, int rank, const int64_t *dims, const bool *folded);

/* How elements of one type are folded; accumulators may be of another type than the elements. */
typedef struct Reducer {
    size_t size, acc_size;
    void (*start)(void *acc, int64_t n);
    void (*fold_row)(void *acc, const void *x, int64_t n);  /* x[0..n) into acc[0] */
    void (*fold_rows)(void *acc, const void *x, int64_t n); /* x[i] into acc[i] */
    void (*merge)(void *acc, const void *part, int64_t n);  /* accumulators into accumulators */
    void (*finish)(void *z, const void *acc, int64_t n, int64_t fold_count);
} Reducer;

/* acc has room for reduce_acc_count accumulators. The result does not depend on the number of threads. */
int64_t reduce_acc_count(const ReducePlan *p);
void reduce_run(const ReducePlan *p, const Reducer *r, void *z, const void *x, void *acc, ThreadPool *pool);
