/* decimal.h: plain decimal numbers ("-12.5") read exactly, without the care that exponents, hex digits and many digits need. */
#pragma once
#include <stdbool.h>

#include "base/str.h"

/* The number nearest to a whole text, as strtod and strtof give it; false: the text is not of the plain kind, which they may read all the same. */
bool decimal_to_double(Str text, double *value);
bool decimal_to_float(Str text, float *value);
