/* dense_buckets.c: the buckets of a dense table. Only their number and removed keys are kept: where keys lie matters to nobody but an
   export, which places them anew. */
#include "ops/dense_buckets.h"

#include <stdlib.h>

#include "base/memory.h"

static void forget(DenseBuckets *b, size_t i) {
    free(b->removed[i].key);
    tensor_unref(b->removed[i].value);
    b->removed[i] = b->removed[--b->removed_count];
}

void dense_buckets_reset(DenseBuckets *b, int64_t count) {
    while (b->removed_count > 0) forget(b, b->removed_count - 1);
    for (b->count = 4; b->count < count;) b->count *= 2;
}

void dense_buckets_clear(DenseBuckets *b) {
    dense_buckets_reset(b, 0);
    free(b->removed);
    *b = (DenseBuckets){0};
}

void dense_buckets_reserve(DenseBuckets *b, int64_t used, int64_t more) {
    int64_t count = b->count;
    while ((double)(used + more) > (double)count * b->max_load) count *= 2;
    if (count != b->count) dense_buckets_reset(b, count);
}

void dense_buckets_add(DenseBuckets *b, int64_t used, Str key) {
    for (size_t i = 0; i < b->removed_count; i++) {
        if (b->removed[i].key && str_eq(key, (Str){b->removed[i].key, b->removed[i].key_len})) {
            forget(b, i);
            return;
        }
    }
    if (b->removed_count > 0 && used + (int64_t)b->removed_count >= b->count) forget(b, 0);
}

int64_t dense_buckets_place(const DenseBuckets *b, uint64_t hash, bool *taken) {
    uint64_t mask = (uint64_t)b->count - 1, at = hash & mask;
    for (uint64_t probes = 1; taken[at]; probes++) at = (at + probes) & mask;
    taken[at] = true;
    return (int64_t)at;
}

void dense_buckets_remove(DenseBuckets *b, Str key, Tensor *take_value) {
    b->removed = vec_reserve(b->removed, &b->capacity, b->removed_count + 1, sizeof *b->removed);
    b->removed[b->removed_count++] = (RemovedBucket){key.ptr ? str_dup(key) : NULL, key.len, take_value};
}
