/* sobol.c: direction numbers of Sobol's sequence, as Joe and Kuo chose them ("Constructing Sobol sequences with better two-dimensional projections").

   scripts/make_sobol.py makes the file and tells its form: for each dimension the coefficients of a primitive polynomial and as many first numbers as its degree.
   All others follow by a recurrence. */
#include "kernels/sobol.h"

#define DATA "src/kernels/sobol_directions.bin" /* from the root of the repository, where the compiler runs */

__asm__(".pushsection .rodata\n"
        ".global sobol_bits\n"
        ".hidden sobol_bits\n"
        "sobol_bits:\n"
        ".incbin \"" DATA "\"\n"
        ".popsection\n");
extern const uint8_t sobol_bits[];

/* How many primitive polynomials there are of each degree. */
static const int16_t polynomials[] = {0, 1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630, 756, 1800, 2048, 7710, 7776};

static uint32_t take_bits(SobolReader *r, int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; i++, r->bit++) value |= (uint32_t)(sobol_bits[r->bit / 8] >> (r->bit % 8) & 1) << i;
    return value;
}

void sobol_next(SobolReader *r, int digits, uint32_t *numbers) {
    if (r->dim++ == 0) {
        for (int k = 0; k < digits; k++) numbers[k] = 1;
        return;
    }
    while (r->left == 0) r->left = polynomials[++r->degree];
    r->left--;
    int degree = r->degree;
    uint32_t inner = take_bits(r, degree - 1);
    for (int k = 0; k < degree; k++) {
        uint32_t number = take_bits(r, k) << 1 | 1;
        if (k < digits) numbers[k] = number;
    }
    for (int k = degree; k < digits; k++) {
        uint32_t number = numbers[k - degree] ^ numbers[k - degree] << degree;
        for (int i = 1; i < degree; i++)
            if (inner >> (degree - 1 - i) & 1) number ^= numbers[k - i] << i;
        numbers[k] = number;
    }
}
