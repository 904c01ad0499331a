/* gather.h: rows picked by index. */
#pragma once
#include "kernels/copy.h"

/* For each of `blocks` blocks of from_rows rows: the `count` rows that `rows` names, in order. Blocks b share the list
 * rows + b / blocks_per_list * count. A row has `width` elements; indices have been checked. */
typedef struct RowGather {
    ElementKind kind;
    int64_t blocks, blocks_per_list, from_rows, count, width;
    const int64_t *rows;
} RowGather;

void gather_rows(ThreadPool *pool, const RowGather *g, void *to, const void *from);
