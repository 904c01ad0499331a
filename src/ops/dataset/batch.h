/* batch.h: a dataset of batches, for ops that batch among other things. */
#pragma once
#include "ops/dataset/dataset.h"

Dataset *batch_dataset_new(Dataset *input, int64_t size, bool drop_remainder);
