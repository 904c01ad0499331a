/* diagonal.h: real tridiagonal and bidiagonal matrices made diagonal by turning pairs of rows and columns. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/threadpool.h"
#include "kernels/matrix_vector.h"

/* Vectors, one a row of numbers (a complex number is two), that the turns are applied to, many at once while a part of the rows is in the cache. */
typedef struct TurnedRows {
    bool single; /* floats, for results that will be: twice as many in a vector */
    void *rows;
    size_t bytes;          /* of the rows */
    int64_t stride, width; /* in numbers */
    RowTurn *turns;        /* that have not been applied yet */
    int64_t count, capacity;
    ThreadPool *pool;
} TurnedRows;

/* `count` rows of zeros. */
void turned_rows_init(TurnedRows *r, bool single, int64_t count, int64_t width, ThreadPool *pool);
void turned_rows_clear(TurnedRows *r);

/* d, the diagonal, becomes the eigenvalues of the matrix with e beside it, and row i of `rows` (NULL: none) the vector of d[i]. epsilon: what may be
 * neglected. False: no convergence. */
bool tridiagonal_solve_values(double *d, double *e, int64_t n, double epsilon, TurnedRows *rows);
/* The same for singular values of the matrix with e above the diagonal, which are made positive. */
bool bidiagonal_solve_values(double *d, double *e, int64_t n, double epsilon, TurnedRows *left, TurnedRows *right);
