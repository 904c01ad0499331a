/* linalg_schur.c: Schur's decomposition of complex matrices; eigenvalues, square roots and logarithms by it. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/linalg.h"

/* Columns or rows p and p + 1 are turned by [c s; -conj(s) c]. */
typedef struct Turn {
    double c;
    Complex s;
} Turn;

static Turn turn_of(Complex x, Complex y) {
    double size = hypot(cabs(x), cabs(y));
    if (cabs(y) == 0 || size == 0) return (Turn){1, 0};
    if (cabs(x) == 0) return (Turn){0, conj(y) / cabs(y)};
    return (Turn){cabs(x) / size, x / cabs(x) * conj(y) / size};
}

static void turn_rows(Complex *a, int64_t n, int64_t p, Turn t, int64_t from) {
    Complex *x = a + p * n, *y = x + n;
    for (int64_t j = from; j < n; j++) {
        Complex u = x[j], v = y[j];
        x[j] = t.c * u + t.s * v;
        y[j] = -conj(t.s) * u + t.c * v;
    }
}

static void turn_columns(Complex *a, int64_t n, int64_t p, Turn t, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        Complex u = a[i * n + p], v = a[i * n + p + 1];
        a[i * n + p] = t.c * u + conj(t.s) * v;
        a[i * n + p + 1] = -t.s * u + t.c * v;
    }
}

/* Zero below the first subdiagonal, by turning pairs of rows. */
static void hessenberg(Complex *a, int64_t n, Complex *q) {
    for (int64_t k = 0; k + 2 < n; k++) {
        for (int64_t i = n - 2; i > k; i--) {
            Turn t = turn_of(a[i * n + k], a[(i + 1) * n + k]);
            turn_rows(a, n, i, t, k);
            turn_columns(a, n, i, t, n);
            turn_columns(q, n, i, t, n);
            a[(i + 1) * n + k] = 0;
        }
    }
}

/* The eigenvalue of the last 2 x 2 block that is nearest to its last element. */
static Complex shift_of(const Complex *a, int64_t n, int64_t end, int tries) {
    Complex p = a[(end - 1) * n + end - 1], q = a[(end - 1) * n + end], r = a[end * n + end - 1], s = a[end * n + end];
    if (tries == 10 || tries == 20) return cabs(r) + (end > 1 ? cabs(a[(end - 1) * n + end - 2]) : 0);
    Complex half = (p + s) / 2, root = csqrt((p - s) * (p - s) / 4 + q * r);
    Complex one = half + root, two = half - root;
    return cabs(one - s) < cabs(two - s) ? one : two;
}

bool schur(Complex *a, int64_t n, Complex *q) {
    memset(q, 0, (size_t)(n * n) * sizeof *q);
    for (int64_t i = 0; i < n; i++) q[i * n + i] = 1;
    for (int64_t i = 0; i < n * n; i++)
        if (!isfinite(creal(a[i])) || !isfinite(cimag(a[i]))) return false;
    hessenberg(a, n, q);
    Turn *turns = xmalloc((size_t)(n + 1) * sizeof *turns);
    int tries = 0;
    int64_t end = n - 1;
    while (end > 0 && tries < 60) {
        int64_t start = end;
        for (; start > 0; start--) {
            double around = cabs(a[(start - 1) * n + start - 1]) + cabs(a[start * n + start]);
            if (cabs(a[start * n + start - 1]) <= DBL_EPSILON * around || cabs(a[start * n + start - 1]) < DBL_MIN)
                break;
        }
        if (start > 0) a[start * n + start - 1] = 0;
        if (start == end) {
            end--;
            tries = 0;
            continue;
        }
        Complex shift = shift_of(a, n, end, tries++);
        for (int64_t i = start; i <= end; i++) a[i * n + i] -= shift;
        for (int64_t i = start; i < end; i++) {
            turns[i] = turn_of(a[i * n + i], a[(i + 1) * n + i]);
            turn_rows(a, n, i, turns[i], i);
        }
        for (int64_t i = start; i < end; i++) {
            turn_columns(a, n, i, turns[i], i + 2);
            turn_columns(q, n, i, turns[i], n);
        }
        for (int64_t i = start; i <= end; i++) a[i * n + i] += shift;
    }
    free(turns);
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = 0; j < i; j++) a[i * n + j] = 0;
    return end <= 0;
}

bool eigen(Complex *a, int64_t n, Complex *values, Complex *v) {
    Complex *q = xmalloc((size_t)(n * n + 1) * sizeof *q), *x = xmalloc((size_t)(n + 1) * sizeof *x);
    bool ok = schur(a, n, q);
    double scale = DBL_MIN;
    for (int64_t i = 0; i < n * n; i++) scale = fmax(scale, cabs(a[i]));
    for (int64_t k = 0; ok && k < n; k++) {
        values[k] = a[k * n + k];
        for (int64_t i = k; i >= 0; i--) {
            x[i] = i == k;
            for (int64_t j = i + 1; j <= k && i < k; j++) x[i] -= a[i * n + j] * x[j];
            Complex d = a[i * n + i] - a[k * n + k];
            if (cabs(d) < DBL_EPSILON * scale) d = DBL_EPSILON * scale;
            if (i < k) x[i] /= d;
        }
        double norm = 0;
        for (int64_t i = 0; i < n; i++) {
            Complex sum = 0;
            for (int64_t j = 0; j <= k; j++) sum += q[i * n + j] * x[j];
            v[i * n + k] = sum;
            norm = hypot(norm, cabs(sum));
        }
        for (int64_t i = 0; i < n && norm > 0; i++) v[i * n + k] /= norm;
    }
    free(q);
    free(x);
    return ok;
}

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
    bool ok = schur(a, n, q);
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
    bool ok = schur(a, n, q);
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
