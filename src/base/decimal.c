/* decimal.c: digits without their point make a whole number, which a power of ten divides; both are exact as doubles, so the quotient is rounded once. */
#include "base/decimal.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MOST_PLACES = sizeof powers_of_ten / sizeof powers_of_ten[0] - 1, MOST_DIGITS = 19 };

bool decimal_to_double(Str text, double *value) {
    const bool minus = text.len && text.ptr[0] == '-';
    uint64_t number = 0;
    int digits = 0, places = -1; /* places: digits after the point */
    for (size_t i = minus || (text.len && text.ptr[0] == '+'); i < text.len; i++) {
        const unsigned digit = (unsigned)(text.ptr[i] - '0');
        if (digit < 10 && digits < MOST_DIGITS) {
            number = number * 10 + digit;
            digits++;
            places += places >= 0;
        } else if (text.ptr[i] == '.' && places < 0) {
            places = 0;
        } else {
            return false;
        }
    }
    if (digits == 0 || number > 1ull << DBL_MANT_DIG || places > MOST_PLACES) return false;
    const double size = (double)number / powers_of_ten[places > 0 ? places : 0];
    *value = minus ? -size : size;
    return true;
}

/* Rounding twice goes wrong only where the double lies in the middle between two floats. */
bool decimal_to_float(Str text, float *value) {
    enum { DROPPED = DBL_MANT_DIG - FLT_MANT_DIG };
    double number;
    uint64_t bits;
    if (!decimal_to_double(text, &number)) return false;
    memcpy(&bits, &number, sizeof bits);
    const bool in_the_middle = (bits & ((1ull << DROPPED) - 1)) == 1ull << (DROPPED - 1), tiny = number != 0 && number < (double)FLT_MIN && number > -(double)FLT_MIN;
    *value = (float)number;
    return !in_the_middle && !tiny;
}
