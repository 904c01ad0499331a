/* linalg_internal.h: what linalg.c makes for linalg_schur.c. */
#pragma once
#include "kernels/linalg.h"

/* a (n x n) = q * h * q^H with h, which a becomes, zero below the first subdiagonal. */
void hessenberg_f64(double *a, int64_t n, double *q, ThreadPool *pool);
void hessenberg_c128(Complex *a, int64_t n, Complex *q, ThreadPool *pool);
