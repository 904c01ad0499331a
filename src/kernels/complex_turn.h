/* complex_turn.h: turns of pairs of rows or columns of complex matrices, for each instruction set. */
#pragma once
#include <complex.h>
#include <stdint.h>

typedef double _Complex Complex;

/* Rows `row` and `row` + 1, x and y, become c x + s y and c y - conj(s) x; columns, which are turned back, c x + conj(s) y and c y - s x. */
typedef struct ComplexTurn {
    int64_t row;
    double c;
    Complex s;
} ComplexTurn;

enum { COMPLEX_TURN_STEP = 4 };

/* Turns pairs of rows of `columns` numbers each, a multiple of COMPLEX_TURN_STEP, in this order. Rows are `stride` numbers apart. */
void complex_turn_rows(Complex *a, int64_t stride, int64_t columns, const ComplexTurn *turns, int64_t count);
/* Turns pairs of columns of `rows` rows, a multiple of COMPLEX_TURN_STEP; each turn begins at the column where the one before it ended. */
void complex_turn_columns(Complex *a, int64_t stride, int64_t rows, const ComplexTurn *turns, int64_t count);
