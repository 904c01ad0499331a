/* shard_writers.h: ShardWriters, the files of a snapshot that is being written, one for each shard. */
#pragma once
#include "ops/dataset/dataset.h"

typedef struct ShardWriters ShardWriters;

/* Writes below the folder of a run, which it makes. */
Error *shard_writers_new(const char *run_dir, const char *compression, int64_t version, ShardWriters **out) MUST_CHECK;
void shard_writers_free(ShardWriters *w); /* NULL is allowed; what is not finished stays as it is */
Error *shard_writers_add(ShardWriters *w, int64_t shard, Tensor *const *element, int count) MUST_CHECK;
/* All to the disk; a later element of a shard begins a new file. */
Error *shard_writers_finish(ShardWriters *w) MUST_CHECK;

/* After a finish: which files there are. Restoring forgets all others, which were begun after the state was saved. */
void shard_writers_save(const ShardWriters *w, IteratorState *s);
Error *shard_writers_restore(ShardWriters *w, IteratorState *s) MUST_CHECK;

/* The shard that a function names for an element; without a function, 0. */
Error *shard_of_element(Closure *shard_func, IteratorContext *c, Tensor *const *element, int count,
                        int64_t *out) MUST_CHECK;
