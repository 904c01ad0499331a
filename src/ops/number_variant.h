/* number_variant.h: single numbers as variants. */
#pragma once
#include "tensor/tensor_proto.h"

enum { NUMBER_VARIANTS = 4 };
extern const VariantDecoder number_variant_decoders[NUMBER_VARIANTS];

/* Whether it is an int, and its value. */
bool number_variant_int(const Variant *v, int32_t *value);
