/* iterator_variant.h: the saved state of an iterator as a variant, which checkpoints can hold. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "tensor/tensor.h"
#include "tensor/tensor_proto.h"

extern const VariantDecoder iterator_variant_decoder;

void iterator_variant_set(Variant *v, Str state);                     /* a copy of state */
Error *iterator_variant_get(const Variant *v, Str *state) MUST_CHECK; /* borrowed */
