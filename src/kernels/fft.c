/* fft.c: Fourier transforms: mixed radix (Stockham's order), and Bluestein's method for large prime factors. */
#include "kernels/fft_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/cpu.h"

typedef double _Complex Complex;

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

static void add_pass(FftPlan *p, int radix) {
    const FftPass *last = p->pass_count ? &p->passes[p->pass_count - 1] : NULL;
    int64_t done = last ? last->done * last->radix : 1;
    p->passes[p->pass_count++] = (FftPass){.radix = radix, .done = done, .stride = p->n / radix};
}

static bool factorise(FftPlan *p) {
    static const int first[] = {4, 2, 3, 5};
    int64_t rest = p->n;
    for (int i = 0; i < 4; i++)
        for (; rest % first[i] == 0; rest /= first[i]) add_pass(p, first[i]);
    for (int f = 7; f <= FFT_LARGEST_FACTOR; f += 2)
        for (; rest % f == 0; rest /= f) add_pass(p, f);
    return rest == 1;
}

static bool plan_passes(FftPlan *p) {
    int64_t count = 1;
    for (int i = 0; i < p->pass_count; i++) count += p->passes[i].radix + p->passes[i].done * (p->passes[i].radix - 1);
    Complex *at = p->roots = try_alloc((size_t)count * sizeof *at);
    if (!at) return false;
    for (int i = 0; i < p->pass_count; i++) {
        FftPass *s = &p->passes[i];
        int64_t step = p->n / (s->done * s->radix), turn = p->n / s->radix;
        s->corners = at;
        for (int k = 0; k < s->radix; k++) *at++ = root_of(k * turn, p->n);
        if (s->done == 1) continue;
        s->roots = at;
        for (int64_t r = 1; r < s->radix; r++)
            for (int64_t k = 0; k < s->done; k++) *at++ = root_of(r * k * step, p->n);
    }
    return true;
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
    if (factorise(p) ? plan_passes(p) : plan_bluestein(p)) return p;
    fft_plan_free(p);
    return NULL;
}

FftPlan *fft_plan_real_new(int64_t n) {
    FftPlan *p = xcalloc(1, sizeof *p);
    p->n = n;
    p->half = fft_plan_new(n / 2);
    p->turns = p->half ? try_alloc((size_t)(n / 4 + 1) * sizeof *p->turns) : NULL;
    for (int64_t k = 0; p->turns && k <= n / 4; k++) p->turns[k] = root_of(k, n);
    if (p->turns) return p;
    fft_plan_free(p);
    return NULL;
}

void fft_plan_free(FftPlan *p) {
    if (!p) return;
    fft_plan_free(p->inner);
    fft_plan_free(p->half);
    free(p->turns);
    free(p->roots);
    free(p->chirp);
    free(p->spectrum);
    free(p);
}

int64_t fft_plan_length(const FftPlan *p) {
    return p->n;
}

int64_t fft_plan_scratch(const FftPlan *p) {
    if (p->half) return fft_plan_scratch(p->half);
    return p->inner ? 2 * p->inner->n : p->n;
}

static inline Complex product(Complex a, Complex b) {
    return complex_of(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* ---- Passes ---- */

#define SHUFFLE(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#define AT(p) (*(Lanes *)(p))
#define TURNED(a) SHUFFLE(a, PAIRS_TURNED)
#define PRODUCT(a, b) ((a)*SHUFFLE(b, EVEN_TWICE) + TURNED(a) * (SHUFFLE(b, ODD_TWICE) * signs))
#define QUARTER(a) (TURNED(a) * -signs)
#define CPU_BODY "kernels/fft_pass.inc"

#define LANES 8
#define EVEN_TWICE 0, 0, 2, 2, 4, 4, 6, 6
#define ODD_TWICE 1, 1, 3, 3, 5, 5, 7, 7
#define PAIRS_TURNED 1, 0, 3, 2, 5, 4, 7, 6
#define MINUS_PLUS -1, 1, -1, 1, -1, 1, -1, 1
#define NAME(f) CPU(f##_wide)
#include "kernels/each_cpu.inc"
#undef LANES
#undef EVEN_TWICE
#undef ODD_TWICE
#undef PAIRS_TURNED
#undef MINUS_PLUS
#undef NAME

#define LANES 2
#define EVEN_TWICE 0, 0
#define ODD_TWICE 1, 1
#define PAIRS_TURNED 1, 0
#define MINUS_PLUS -1, 1
#define NAME(f) CPU(f##_single)
#include "kernels/each_cpu.inc"

#undef CPU_BODY
#define CPU_BODY "kernels/fft_groups.inc"
#include "kernels/each_cpu.inc"

static void run_factors(const FftPlan *p, Complex *data, Complex *scratch) {
    void (*run_pass)(const FftPass *, int64_t, const Complex *, Complex *) = CPU_PICK(run_pass);
    Complex *from = data, *to = scratch;
    for (int i = 0; i < p->pass_count; i++) {
        run_pass(&p->passes[i], p->n, from, to);
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

/* ---- Real numbers ---- */

void fft_run_real(const FftPlan *p, Complex *data, Complex *scratch) {
    const int64_t h = p->n / 2;
    fft_run(p->half, false, data, scratch);
    const Complex first = data[0];
    data[0] = complex_of(creal(first) + cimag(first), 0);
    data[h] = complex_of(creal(first) - cimag(first), 0);
    for (int64_t k = 1; 2 * k <= h; k++) {
        const Complex a = data[k], b = conj(data[h - k]), even = (a + b) * 0.5,
                      odd = product(p->turns[k], (a - b) * 0.5);
        const Complex turned = complex_of(cimag(odd), -creal(odd));
        data[k] = even + turned;
        data[h - k] = conj(even - turned);
    }
}

void fft_run_real_inverse(const FftPlan *p, Complex *data, Complex *scratch) {
    const int64_t h = p->n / 2;
    const double first = creal(data[0]), last = creal(data[h]);
    data[0] = complex_of(first + last, first - last);
    for (int64_t k = 1; 2 * k <= h; k++) {
        const Complex a = data[k], b = conj(data[h - k]), even = a + b, odd = product(conj(p->turns[k]), a - b);
        const Complex turned = complex_of(-cimag(odd), creal(odd));
        data[k] = even + turned;
        data[h - k] = conj(even - turned);
    }
    fft_run(p->half, true, data, scratch);
}
