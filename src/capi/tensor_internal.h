/* tensor_internal.h: between TF_Tensor and the runtime's Tensor. */
#pragma once
#include "base/error.h"
#include "tensor/tensor.h"
#include "tensorflow/c/tf_tensor.h"

/* The value of a TF_Tensor; plain elements are shared, strings copied. The caller's reference. */
Error *capi_tensor_get(const TF_Tensor *t, Tensor **out) MUST_CHECK;
/* A TF_Tensor of a value; plain elements are shared, strings copied. */
Error *capi_tensor_new(Tensor *value, TF_Tensor **out) MUST_CHECK;

/* dims as the C API gives them; num_dims -1 is an unknown rank. InvalidArgument when there are too many. */
Error *capi_shape(const int64_t *dims, int num_dims, PartialShape *out) MUST_CHECK;
