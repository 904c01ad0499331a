/* print.h: values as text, the way TensorFlow prints them. */
#pragma once
#include "base/str.h"
#include "tensor/tensor.h"

/* Numbers with as few digits as read back to the same value, of 6 or 9 (float), 15 or 17 (double). */
void print_float(StrBuf *out, float v);
void print_double(StrBuf *out, double v);

/* As in a C literal; bytes of UTF-8 sequences stay. */
void print_escaped(StrBuf *out, Str s);

/* TensorFlow does not print complex numbers and a few other types: a mark stands for each element, "? ? ?...". False, and nothing is
 * printed, when it does; then one of the two below. */
bool print_marks(StrBuf *out, const Tensor *t, int64_t max_entries);

/* At most max_entries elements (< 0: all), then "...": "1 2 3...", "[1 2][3 4]". Used by Assert and Print. */
void print_values(StrBuf *out, const Tensor *t, int64_t max_entries);
/* With brackets around all, quotes around strings, `ends` elements at both ends of every dimension (< 0: all): "[1 2
 * ... 8 9]". */
void print_nested(StrBuf *out, const Tensor *t, int64_t ends);
