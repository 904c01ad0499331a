/* batch.h: a dataset of batches, for ops that batch among other things. */
#pragma once
#include "ops/dataset/dataset.h"

Dataset *batch_dataset_new(Dataset *input, int64_t size, bool drop_remainder);
/* As MapAndBatch does it: elements must be of one size, whatever their shapes. */
Dataset *fused_batch_dataset_new(Dataset *input, int64_t size, bool drop_remainder);
/* n tensors as one; InvalidArgument when their shapes differ. */
Error *batch_stack(Tensor *const *items, int64_t n, int component, DataType type, Tensor **out) MUST_CHECK;
/* The same batches, not joined with the map below them as they are by default; NULL where nothing is joined. */
Dataset *batch_dataset_apart(const Dataset *d);
