/* indexed_rows.h: changes of the rows that a list of indices names, some perhaps several times. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/threadpool.h"

typedef void IndexedRowFn(void *arg, int64_t row, int64_t i);

/* fn is called once for each i of [0, count) with the row that indices[i] names. Changes of one row come in the order of i; those of
 * different rows may come at once, in several threads. Indices have been checked. */
typedef struct IndexedRows {
    const void *indices;
    bool wide; /* indices are int64, else int32 */
    int64_t count;
    const void *first; /* memory of row 0, to be fetched ahead: tables are larger than caches */
    size_t row_bytes;
    IndexedRowFn *fn;
    void *arg;
} IndexedRows;

void indexed_rows_run(const IndexedRows *r, ThreadPool *pool);

/* Asks for the first lines of memory that is wanted soon. */
static inline void row_fetch(const char *row, size_t bytes) {
    enum { LINE = 64, MOST = 8 };
    for (size_t at = 0; at < bytes && at < LINE * MOST; at += LINE) __builtin_prefetch(row + at, 1);
}
