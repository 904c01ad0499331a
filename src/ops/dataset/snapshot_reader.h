/* snapshot_reader.h: datasets of what snapshot files hold. */
#pragma once
#include "ops/dataset/dataset.h"

/* Of the elements of one shard, from number `first` on. */
Dataset *shard_dataset_new(const char *shard_dir, const char *compression, int64_t version, const DataType *types,
                           int count, int64_t first);
/* Begins to read a run: a dataset of its shards' datasets goes through reader_func, and what that returns is walked. */
Error *snapshot_read_run(const char *run_dir, const char *compression, int64_t version, const DataType *types, int count,
                         Closure *reader_func, IteratorContext *c, DatasetIterator **out) MUST_CHECK;
/* Elements that an earlier walk has given. */
Error *iterator_skip(DatasetIterator *it, IteratorContext *c, int64_t count) MUST_CHECK;
