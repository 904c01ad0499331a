/* ragged_variant.h: how a ragged tensor in a variant is read from the wire. */
#pragma once
#include "tensor/tensor_proto.h"

extern const VariantDecoder ragged_variant_decoder;
