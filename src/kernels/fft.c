/* fft.c: Fourier transforms: mixed radix (Stockham's order), and Bluestein's method for large prime factors. */
#include "kernels/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef double _Complex Complex;

enum { MAX_FACTORS = 64, LARGEST_FACTOR = 50 };

struct FftPlan {
    int64_t n;
    Complex *roots; /* exp(-2 pi i k / n) */
    int factors[MAX_FACTORS], factor_count;
    /* Bluestein: the transform as a convolution of length inner->n. */
    FftPlan *inner;
    Complex *chirp;    /* exp(-pi i k^2 / n) */
    Complex *spectrum; /* of the conjugate chirp, divided by inner->n */
};

static inline Complex complex_of(double real, double imaginary) {
    return __builtin_complex(real, imaginary);
}

/* exp(-2 pi i k / n), exact at the quarters. */
static Complex root_of(int64_t k, int64_t n) {
    int64_t eighth = 8 * k / n; /* k < n */
    double pi = 3.14159265358979323846, c, s;
    switch (eighth) { /* the angle is brought into [0, pi/4] */
        case 0:
        case 7:
            s = sin(2 * pi * (double)(eighth ? k - n : k) / (double)n);
            c = cos(2 * pi * (double)(eighth ? k - n : k) / (double)n);
            break;
        case 1:
        case 2:
            s = cos(2 * pi * ((double)(4 * k - n) / 4) / (double)n);
            c = -sin(2 * pi * ((double)(4 * k - n) / 4) / (double)n);
            break;
        case 3:
        case 4:
            s = -sin(2 * pi * ((double)(2 * k - n) / 2) / (double)n);
            c = -cos(2 * pi * ((double)(2 * k - n) / 2) / (double)n);
            break;
        default:
            s = -cos(2 * pi * ((double)(4 * k - 3 * n) / 4) / (double)n);
            c = sin(2 * pi * ((double)(4 * k - 3 * n) / 4) / (double)n);
            break;
    }
    return complex_of(c, -s);
}

static bool factorise(FftPlan *p) {
    static const int first[] = {4, 2, 3, 5};
    int64_t rest = p->n;
    for (int i = 0; i < 4; i++)
        for (; rest % first[i] == 0; rest /= first[i]) p->factors[p->factor_count++] = first[i];
    for (int f = 7; f <= LARGEST_FACTOR; f += 2)
        for (; rest % f == 0; rest /= f) p->factors[p->factor_count++] = f;
    return rest == 1;
}

static bool plan_bluestein(FftPlan *p) {
    int64_t length = 1;
    while (length < 2 * p->n) length *= 2;
    p->inner = fft_plan_new(length);
    p->chirp = try_alloc((size_t)p->n * sizeof(Complex));
    p->spectrum = try_alloc((size_t)length * sizeof(Complex));
    Complex *scratch = try_alloc((size_t)length * sizeof(Complex));
    bool ok = p->inner && p->chirp && p->spectrum && scratch;
    for (int64_t k = 0; ok && k < p->n; k++) {
        int64_t square = (int64_t)((unsigned __int128)k * (uint64_t)k % (uint64_t)(2 * p->n));
        p->chirp[k] = root_of(square, 2 * p->n);
    }
    if (ok) {
        memset(p->spectrum, 0, (size_t)length * sizeof(Complex));
        for (int64_t k = 0; k < p->n; k++) {
            p->spectrum[k] = conj(p->chirp[k]) / (double)length;
            if (k) p->spectrum[length - k] = p->spectrum[k];
        }
        fft_run(p->inner, false, p->spectrum, scratch);
    }
    free(scratch);
    return ok;
}

FftPlan *fft_plan_new(int64_t n) {
    if (n > ((int64_t)1 << 40)) return NULL;
    FftPlan *p = xcalloc(1, sizeof *p);
    p->n = n;
    bool ok = true;
    if (factorise(p)) {
        p->roots = try_alloc((size_t)n * sizeof(Complex));
        ok = p->roots != NULL;
        for (int64_t k = 0; ok && k < n; k++) p->roots[k] = root_of(k, n);
    } else {
        ok = plan_bluestein(p);
    }
    if (ok) return p;
    fft_plan_free(p);
    return NULL;
}

void fft_plan_free(FftPlan *p) {
    if (!p) return;
    fft_plan_free(p->inner);
    free(p->roots);
    free(p->chirp);
    free(p->spectrum);
    free(p);
}

int64_t fft_plan_scratch(const FftPlan *p) {
    return p->inner ? 2 * p->inner->n : p->n;
}

static inline Complex product(Complex a, Complex b) {
    return complex_of(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* One pass: `before` transforms of lengths already done are joined by `radix` into longer ones.
 * from[(j * m + k) * ...]: Stockham's order keeps the result sorted without a bit reversal. */
static void pass(const FftPlan *p, int radix, int64_t done, const Complex *from, Complex *to) {
    int64_t n = p->n, groups = n / (done * radix), step = n / (done * radix), turn = n / radix;
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t k = 0; k < done; k++) {
            Complex x[LARGEST_FACTOR];
            for (int r = 0; r < radix; r++) {
                Complex v = from[(g + (int64_t)r * groups) * done + k];
                x[r] = r && k ? product(v, p->roots[r * k * step]) : v;
            }
            Complex *out = to + g * done * radix + k;
            if (radix == 2) {
                out[0] = x[0] + x[1];
                out[done] = x[0] - x[1];
            } else if (radix == 4) {
                Complex a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = x[1] - x[3];
                Complex e = complex_of(cimag(d), -creal(d)); /* -i d */
                out[0] = a + c;
                out[done] = b + e;
                out[2 * done] = a - c;
                out[3 * done] = b - e;
            } else {
                for (int q = 0; q < radix; q++) {
                    Complex sum = x[0];
                    for (int r = 1; r < radix; r++) sum += product(x[r], p->roots[(int64_t)(q * r % radix) * turn]);
                    out[q * done] = sum;
                }
            }
        }
    }
}

static void run_factors(const FftPlan *p, Complex *data, Complex *scratch) {
    Complex *from = data, *to = scratch;
    int64_t done = 1;
    for (int i = 0; i < p->factor_count; i++) {
        pass(p, p->factors[i], done, from, to);
        done *= p->factors[i];
        Complex *swap = from;
        from = to;
        to = swap;
    }
    if (from != data) memcpy(data, from, (size_t)p->n * sizeof *data);
}

static void run_bluestein(const FftPlan *p, Complex *data, Complex *scratch) {
    int64_t length = p->inner->n;
    Complex *a = scratch, *rest = scratch + length;
    memset(a, 0, (size_t)length * sizeof *a);
    for (int64_t k = 0; k < p->n; k++) a[k] = product(data[k], p->chirp[k]);
    fft_run(p->inner, false, a, rest);
    for (int64_t k = 0; k < length; k++) a[k] = product(a[k], p->spectrum[k]);
    fft_run(p->inner, true, a, rest);
    for (int64_t k = 0; k < p->n; k++) data[k] = product(a[k], p->chirp[k]);
}

void fft_run(const FftPlan *p, bool inverse, Complex *data, Complex *scratch) {
    if (inverse) /* the inverse is the transform with its arguments conjugated, before and after */
        for (int64_t k = 0; k < p->n; k++) data[k] = conj(data[k]);
    if (p->inner) {
        run_bluestein(p, data, scratch);
    } else {
        run_factors(p, data, scratch);
    }
    if (inverse)
        for (int64_t k = 0; k < p->n; k++) data[k] = conj(data[k]);
}
