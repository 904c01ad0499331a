/* linalg_function.c: square roots and logarithms of complex matrices, by Schur's decomposition. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/linalg.h"

/* a = q t q^H, for upper triangular t. */
static void turn_back(Complex *a, const Complex *q, const Complex *t, int64_t n) {
    Complex *half = xcalloc((size_t)(n * n) + 1, sizeof *half);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = k; j < n; j++) half[i * n + j] += q[i * n + k] * t[k * n + j];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            Complex sum = 0;
            for (int64_t k = 0; k < n; k++) sum += half[i * n + k] * conj(q[j * n + k]);
            a[i * n + j] = sum;
        }
    free(half);
}

static void triangular_sqrt(const Complex *t, int64_t n, Complex *r) {
    memset(r, 0, (size_t)(n * n) * sizeof *r);
    for (int64_t j = 0; j < n; j++) {
        r[j * n + j] = csqrt(t[j * n + j]);
        for (int64_t i = j - 1; i >= 0; i--) {
            Complex sum = t[i * n + j], below = r[i * n + i] + r[j * n + j];
            for (int64_t k = i + 1; k < j; k++) sum -= r[i * n + k] * r[k * n + j];
            r[i * n + j] = sum == 0 ? 0 : sum / below;
        }
    }
}

bool matrix_sqrt(Complex *a, int64_t n) {
    Complex *q = xmalloc((size_t)(n * n + 1) * sizeof *q), *r = xmalloc((size_t)(n * n + 1) * sizeof *r);
    bool ok = schur(a, n, q, NULL);
    if (ok) {
        triangular_sqrt(a, n, r);
        turn_back(a, q, r, n);
    }
    free(q);
    free(r);
    return ok;
}

/* log(1 + x) of a small upper triangular x, by Gauss's quadrature of the integral of x / (1 + s x) over s in [0, 1]. */
static void log_near_one(const Complex *x, int64_t n, Complex *out) {
    static const double nodes[4] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363};
    static const double weights[4] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763};
    Complex *m = xmalloc((size_t)(n * n + 1) * sizeof *m), *b = xmalloc((size_t)(n * n + 1) * sizeof *b);
    memset(out, 0, (size_t)(n * n) * sizeof *out);
    for (int k = 0; k < 8; k++) {
        double s = 0.5 + (k < 4 ? 0.5 : -0.5) * nodes[k % 4], w = 0.5 * weights[k % 4];
        for (int64_t i = 0; i < n * n; i++) m[i] = s * x[i] + (i % (n + 1) == 0);
        memcpy(b, x, (size_t)(n * n) * sizeof *b);
        triangular_solve_c128(m, n, false, false, b, n, NULL);
        for (int64_t i = 0; i < n * n; i++) out[i] += w * b[i];
    }
    free(m);
    free(b);
}

bool matrix_log(Complex *a, int64_t n) {
    size_t size = (size_t)(n * n + 1) * sizeof *a;
    Complex *q = xmalloc(size), *r = xmalloc(size), *x = xmalloc(size);
    bool ok = schur(a, n, q, NULL);
    double factor = 1;
    for (int roots = 0; ok && roots < 100; roots++) {
        double norm = 0;
        for (int64_t i = 0; i < n; i++) {
            double row = 0;
            for (int64_t j = i; j < n; j++) row += cabs(a[i * n + j] - (i == j));
            norm = fmax(norm, row);
        }
        if (norm < 0.1) break;
        triangular_sqrt(a, n, r);
        memcpy(a, r, (size_t)(n * n) * sizeof *a);
        factor *= 2;
    }
    if (ok) {
        for (int64_t i = 0; i < n; i++) a[i * n + i] -= 1;
        log_near_one(a, n, x);
        for (int64_t i = 0; i < n * n; i++) x[i] *= factor;
        turn_back(a, q, x, n);
    }
    free(q);
    free(r);
    free(x);
    return ok;
}
