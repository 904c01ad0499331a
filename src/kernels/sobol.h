/* sobol.h: direction numbers of Sobol's sequence. */
#pragma once
#include <stdint.h>

enum { SOBOL_MAX_DIM = 21200, SOBOL_MAX_DIGITS = 31 };

/* Where the numbers of a dimension stand; start with {0} and take all dimensions in order. */
typedef struct SobolReader {
    int dim, degree;
    int64_t left; /* dimensions of this degree still to come */
    int64_t bit;
} SobolReader;

/* The numbers of the next dimension, one for each binary digit: the k-th is odd and below 2^(k+1). */
void sobol_next(SobolReader *r, int digits, uint32_t *numbers);
