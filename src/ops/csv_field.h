/* csv_field.h: the text of one field of a CSV record as a number or a string, or the default of its column. */
#pragma once
#include "base/str.h"
#include "tensor/tensor.h"

/* Reads a number into element i of an integer or floating tensor; false when the field is none, or too large for the type. */
bool csv_field_number(Str field, Tensor *t, int64_t i);
