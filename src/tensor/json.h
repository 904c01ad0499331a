/* json.h: values of tensors as JSON text and back, for every dtype.
 *
 * Nested lists as deep as the rank. Numbers have as many digits as they need to be read back; integers of 64 bits are
 * written whole. What JSON has no number for is a string: "NaN", "Infinity", "-Infinity", complex "1.5-2j". Strings
 * that are UTF-8 are JSON strings, others {"b64": "..."} as TensorFlow Serving writes them. Handles and variants are
 * their names. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "tensor/tensor.h"

void json_print_tensor(StrBuf *out, const Tensor *t);
void json_print_element(StrBuf *out, const Tensor *t, int64_t i);
void json_print_str(StrBuf *out, Str s);   /* a JSON string; bytes that are not UTF-8 become U+FFFD */
void json_print_bytes(StrBuf *out, Str s); /* a JSON string, or {"b64": ...} */
void json_print_double(StrBuf *out, double v);

/* Text as a value of the given dtype: a number, a string, or nested lists of them. As JSON above, and laxer: nan, inf,
 * hex integers, true for 1; a string needs no quotes when it begins with none of ["{. */
Error *json_parse_tensor(Str text, DataType dtype, Tensor **out) MUST_CHECK;
