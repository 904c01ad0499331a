/* prefetcher.h: Prefetcher, a thread that runs ahead of an iterator. */
#pragma once
#include "ops/dataset/dataset.h"

typedef struct Prefetcher Prefetcher;

/* Takes the iterator over. The thread starts with the first call of prefetcher_next. */
Prefetcher *prefetcher_new(DatasetIterator *take, const IteratorContext *c, int64_t capacity);
void prefetcher_free(Prefetcher *p); /* ends the thread; NULL is allowed */
Error *prefetcher_next(Prefetcher *p, IteratorContext *c, Tensor **out, bool *end) MUST_CHECK;
Error *prefetcher_save(Prefetcher *p, IteratorState *s) MUST_CHECK;
Error *prefetcher_restore(Prefetcher *p, IteratorContext *c, IteratorState *s) MUST_CHECK; /* before the first next */
