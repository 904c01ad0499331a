/* variant_int.h: a variant that holds an int, TensorFlow's simplest. */
#pragma once
#include "tensor/tensor_proto.h"

extern const VariantDecoder variant_int_decoder;

/* Whether it is one, and its value. */
bool variant_int_value(const Variant *v, int32_t *value);
