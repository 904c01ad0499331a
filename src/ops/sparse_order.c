/* sparse_order.c: the rows of indices in row-major order. Many rows are sorted by the digits of a number that stands for each, few by merging. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/sparse_tensor.h"

typedef struct RowOrder {
    const int64_t *indices;
    int rank, column_count;
    const int *columns; /* NULL: all */
} RowOrder;

static int column_at(const RowOrder *o, int c) {
    return o->columns ? o->columns[c] : c;
}

static bool comes_after(const RowOrder *o, int64_t a, int64_t b) {
    const int64_t *x = o->indices + a * o->rank, *y = o->indices + b * o->rank;
    for (int c = 0; c < o->column_count; c++) {
        int d = column_at(o, c);
        if (x[d] != y[d]) return x[d] > y[d];
    }
    return false;
}

/* ---- By merging, bottom up ---- */

static int64_t *merged(const RowOrder *o, int64_t *at, int64_t nnz) {
    int64_t *to = xmalloc((size_t)nnz * sizeof *to);
    for (int64_t width = 1; width < nnz; width *= 2) {
        for (int64_t from = 0; from < nnz; from += 2 * width) {
            int64_t mid = from + width < nnz ? from + width : nnz, end = mid + width < nnz ? mid + width : nnz;
            for (int64_t i = from, j = mid, n = from; n < end; n++) {
                bool second = i == mid || (j < end && comes_after(o, at[i], at[j]));
                to[n] = second ? at[j++] : at[i++];
            }
        }
        int64_t *swap = at;
        at = to;
        to = swap;
    }
    free(to);
    return at;
}

/* ---- By digits ---- */

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, FEW = 128 };

typedef struct KeyedRow {
    uint64_t key;
    int64_t at;
} KeyedRow;

/* The smallest index of a column and how many numbers there are from it to the largest; false: more than can be counted. */
static bool column_range(const RowOrder *o, int d, int64_t nnz, int64_t *least, uint64_t *range) {
    int64_t low = o->indices[d], high = low;
    for (int64_t i = 1; i < nnz; i++) {
        const int64_t v = o->indices[i * o->rank + d];
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    *least = low;
    *range = (uint64_t)high - (uint64_t)low + 1;
    return *range != 0;
}

/* A number for each row, in the order of the rows; *most is above all of them. false: 64 bits do not do. */
static bool find_keys(const RowOrder *o, int64_t nnz, KeyedRow *rows, uint64_t *most) {
    *most = 1;
    for (int64_t i = 0; i < nnz; i++) rows[i] = (KeyedRow){0, i};
    for (int c = 0; c < o->column_count; c++) {
        const int d = column_at(o, c);
        int64_t least;
        uint64_t range;
        if (!column_range(o, d, nnz, &least, &range) || __builtin_mul_overflow(*most, range, most)) return false;
        for (int64_t i = 0; i < nnz; i++) rows[i].key = rows[i].key * range + ((uint64_t)o->indices[i * o->rank + d] - (uint64_t)least);
    }
    return true;
}

/* Stable; rows and room change places. */
static void sort_by_digit(KeyedRow **rows, KeyedRow **room, int64_t nnz, int shift) {
    int64_t first[DIGITS] = {0};
    const KeyedRow *from = *rows;
    for (int64_t i = 0; i < nnz; i++) first[from[i].key >> shift & (DIGITS - 1)]++;
    for (int64_t d = 0, sum = 0; d < DIGITS; d++) {
        const int64_t count = first[d];
        first[d] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < nnz; i++) (*room)[first[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    KeyedRow *swap = *rows;
    *rows = *room;
    *room = swap;
}

static bool sort_by_keys(const RowOrder *o, int64_t *at, int64_t nnz) {
    KeyedRow *rows = xmalloc((size_t)nnz * sizeof *rows), *room = xmalloc((size_t)nnz * sizeof *room);
    uint64_t most;
    const bool fits = find_keys(o, nnz, rows, &most);
    for (int shift = 0; fits && shift < 64 && (most - 1) >> shift != 0; shift += DIGIT_BITS) sort_by_digit(&rows, &room, nnz, shift);
    for (int64_t i = 0; fits && i < nnz; i++) at[i] = rows[i].at;
    free(rows);
    free(room);
    return fits;
}

int64_t *sparse_order(const int64_t *indices, int64_t nnz, int rank, const int *columns, int column_count) {
    RowOrder o = {indices, rank, columns ? column_count : rank, columns};
    int64_t *at = xmalloc((size_t)(nnz + 1) * sizeof *at);
    bool sorted = true;
    for (int64_t i = 0; i < nnz; i++) {
        at[i] = i;
        sorted = sorted && (i == 0 || !comes_after(&o, i - 1, i));
    }
    if (sorted || (nnz > FEW && sort_by_keys(&o, at, nnz))) return at;
    return merged(&o, at, nnz);
}
