/* broadcast.h: BroadcastPlan, how arrays of different shapes are walked together. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BROADCAST_MAX_RANK = 16, BROADCAST_MAX_INPUTS = 3 };

/* Dimensions that every input walks in the same way are joined: `dims` and `strides` have as few as possible, the
 * innermost last. A stride of 0 repeats the element. Strides of the innermost dimension are 0 or 1. */
typedef struct BroadcastPlan {
    int input_count;
    int out_rank; /* of the result, as the caller sees it */
    int64_t out_dims[BROADCAST_MAX_RANK];
    int64_t count; /* elements of the result */
    int rank;      /* at least 1 */
    int64_t dims[BROADCAST_MAX_RANK];
    int64_t strides[BROADCAST_MAX_INPUTS][BROADCAST_MAX_RANK]; /* in elements */
} BroadcastPlan;

typedef struct BroadcastInput {
    int rank;
    const int64_t *dims;
} BroadcastInput;

/* False when the shapes do not fit together. A count of INT64_MAX means that the result is too large: do not walk it.
 */
bool broadcast_plan_init(BroadcastPlan *p, const BroadcastInput *inputs, int input_count);

/* One row of the result: n elements, input i advances by step[i] (0 or 1) elements. */
typedef void BroadcastRow(void *arg, int64_t out_at, const int64_t *in_at, const int64_t *step, int64_t n);

/* Calls row for the pieces of elements [begin, end) of the result, in order. */
void broadcast_walk(const BroadcastPlan *p, int64_t begin, int64_t end, BroadcastRow *row, void *arg);
