/* dense_buckets.c: the buckets of a dense table. Only their number and removed keys are kept: where keys lie matters to nobody but an
   export, which places them anew. */
#include "ops/dense_buckets.h"

#include <stdlib.h>

#include "base/memory.h"

static const int64_t MOST_BUCKETS = (int64_t)1 << 40;

static Str key_of(const RemovedBucket *r) {
    return (Str){r->key, r->key_len};
}

static void forget(DenseBuckets *b, size_t i) {
    RemovedBucket *r = &b->removed[i], *last = &b->removed[--b->removed_count];
    if (r->key) strmap_remove(&b->by_key, key_of(r));
    free(r->key);
    tensor_unref(r->value);
    if (r == last) return;
    *r = *last;
    if (r->key) strmap_put(&b->by_key, key_of(r), (void *)(uintptr_t)(i + 1));
}

void dense_buckets_reset(DenseBuckets *b, int64_t count) {
    while (b->removed_count > 0) forget(b, b->removed_count - 1);
    for (b->count = 4; b->count < count;) b->count *= 2;
}

void dense_buckets_clear(DenseBuckets *b) {
    dense_buckets_reset(b, 0);
    strmap_clear(&b->by_key);
    free(b->removed);
    *b = (DenseBuckets){0};
}

Error *dense_buckets_reserve(DenseBuckets *b, int64_t used, int64_t more) {
    int64_t count = b->count;
    while (count <= MOST_BUCKETS && (double)(used + more) > (double)count * b->max_load) count *= 2;
    if (count > MOST_BUCKETS && count > b->count)
        return error_new(CODE_RESOURCE_EXHAUSTED, "A table of %lld keys with max_load_factor %g would need more than %lld buckets", (long long)(used + more),
                         b->max_load, (long long)MOST_BUCKETS);
    if (count != b->count) dense_buckets_reset(b, count);
    return NULL;
}

void dense_buckets_add(DenseBuckets *b, int64_t used, Str key) {
    size_t place = (uintptr_t)strmap_get(&b->by_key, key); /* plus 1 */
    if (place)
        forget(b, place - 1);
    else if (b->removed_count > 0 && used + (int64_t)b->removed_count >= b->count)
        forget(b, 0);
}

int64_t dense_buckets_place(const DenseBuckets *b, uint64_t hash, bool *taken) {
    uint64_t mask = (uint64_t)b->count - 1, at = hash & mask;
    for (uint64_t probes = 1; taken[at]; probes++) at = (at + probes) & mask;
    taken[at] = true;
    return (int64_t)at;
}

void dense_buckets_remove(DenseBuckets *b, Str key, Tensor *take_value) {
    b->removed = vec_reserve(b->removed, &b->capacity, b->removed_count + 1, sizeof *b->removed);
    RemovedBucket *r = &b->removed[b->removed_count++];
    *r = (RemovedBucket){key.ptr ? str_dup(key) : NULL, key.len, take_value};
    if (r->key) strmap_put(&b->by_key, key_of(r), (void *)(uintptr_t)b->removed_count);
}
