/* copy.h: copies of elements between strided arrays: slices, concat, pad, tile, transpose. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/threadpool.h"

/* What an element is. Plain ones (copy == NULL) are bytes; others are copied by a function. */
typedef struct ElementKind {
    size_t size;
    int type; /* passed to copy */
    void (*copy)(int type, void *to, const void *from, int64_t n);
} ElementKind;

enum { COPY_MAX_RANK = 40 };

/* One copy: for every index below dims, to[index . to_strides] = from[index . from_strides]. Strides count elements and
 * may be zero (broadcast) or negative (reverse); the pointers are those of index 0. No two indices write one place. */
typedef struct StridedCopy {
    int rank;
    int64_t dims[COPY_MAX_RANK], to_strides[COPY_MAX_RANK], from_strides[COPY_MAX_RANK];
} StridedCopy;

void copy_add_dim(StridedCopy *c, int64_t dim, int64_t to_stride, int64_t from_stride); /* outer first */
void copy_strided(ThreadPool *pool, ElementKind kind, const StridedCopy *c, void *to, const void *from);
void copy_elements(ElementKind kind, void *to, const void *from, int64_t n);                /* contiguous */
void copy_fill(ThreadPool *pool, ElementKind kind, void *to, const void *value, int64_t n); /* n times *value */
void copy_transpose(ThreadPool *pool, ElementKind kind, int rank, const int64_t *from_dims, const int *perm, void *to,
                    const void *from);
