/* variant_math.h: zeros like a tensor and the sum of two, where the elements may be variants that know how. */
#pragma once
#include "tensor/tensor.h"

/* A new tensor of zeros (empty strings) of t's type and shape; Unimplemented for resources and for variants that have no zero. */
Error *tensor_zeros_like(const Tensor *t, Tensor **out) MUST_CHECK;
/* a + b of one type and shape, in new memory. */
Error *tensor_sum(const Tensor *a, const Tensor *b, Tensor **out) MUST_CHECK;
