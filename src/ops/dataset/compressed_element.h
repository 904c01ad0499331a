/* compressed_element.h: elements of datasets, compressed: variants that TensorFlow reads too. */
#pragma once
#include "tensor/tensor_proto.h"

extern const VariantDecoder compressed_element_decoder;
