/* dense_buckets.h: DenseBuckets, how many buckets TensorFlow's dense table would have, and which keep a removed key: an export shows all of them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hashmap.h"
#include "base/str.h"
#include "tensor/tensor.h"

/* A bucket whose key was removed: it keeps the value until another key takes it or the table grows. */
typedef struct RemovedBucket {
    char *key; /* NULL: imported, the key is not known */
    size_t key_len;
    Tensor *value;
} RemovedBucket;

typedef struct DenseBuckets {
    int64_t count; /* a power of two */
    double max_load;
    RemovedBucket *removed;
    size_t removed_count, capacity;
    StrMap by_key; /* place in `removed` plus 1, of those whose key is known */
} DenseBuckets;

void dense_buckets_clear(DenseBuckets *b);
/* Makes room for `more` keys beside `used`; a table that grows forgets what was removed. */
Error *dense_buckets_reserve(DenseBuckets *b, int64_t used, int64_t more) MUST_CHECK;
/* A key gets a bucket: its old one, or any that is free. */
void dense_buckets_add(DenseBuckets *b, int64_t used, Str key);
void dense_buckets_remove(DenseBuckets *b, Str key, Tensor *take_value);
/* Now there are at least `count` buckets, none with a removed key. */
void dense_buckets_reset(DenseBuckets *b, int64_t count);
/* The bucket in which TensorFlow finds a key of this hash when those marked are taken; marks it. One must be free. */
int64_t dense_buckets_place(const DenseBuckets *b, uint64_t hash, bool *taken);
