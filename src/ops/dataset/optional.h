/* optional.h: Optional, an element or nothing, as a variant. */
#pragma once
#include "runtime/kernel.h"
#include "tensor/tensor_proto.h"

extern const VariantDecoder dataset_optional_decoder;

/* Sets output o to an Optional; takes over the references in `element` and NULLs them. element NULL: nothing. */
void kernel_set_optional(KernelContext *k, int o, Tensor **element, int count);
