/* composite_tensor.h: how a composite tensor in a variant is read from the wire. */
#pragma once
#include "tensor/tensor_proto.h"

extern const VariantDecoder composite_tensor_decoder;
