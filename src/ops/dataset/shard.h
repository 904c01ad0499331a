/* shard.h: every so many-th element of a dataset. */
#pragma once
#include "ops/dataset/dataset.h"

/* Elements index, index + shards, ...; 0 <= index < shards. non_empty: fewer elements than shards are an error. A new reference. */
Dataset *every_nth_dataset_new(Dataset *input, int64_t shards, int64_t index, bool non_empty);
