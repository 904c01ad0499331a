/* linalg_schur.c: Schur's decomposition of complex matrices, and eigenvalues and -vectors by it. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/block_cache.h"
#include "base/memory.h"
#include "kernels/complex_turn.h"
#include "kernels/gemm.h"
#include "kernels/linalg_internal.h"

enum { SWEEPS_KEPT = 16, TRIES = 60, STRIP = 16 /* columns that one thread turns at least */, VECTOR_COLUMNS = 64 };

/* Steps of QR with shifts on t, n x n, among zeros: COMPLEX_TURN_STEP columns on either side and as many rows below. The columns behind those that a step works on
 * and z, whose rows are the conjugated columns of q, are turned later, many turns at once. */
typedef struct Schur {
    int64_t n, stride, z_stride, count, capacity, done; /* turns: done to columns behind */
    size_t bytes;
    Complex *memory, *t, *z;
    ComplexTurn *turns;
    ThreadPool *pool;
} Schur;

static int64_t whole_steps(int64_t n) {
    return (n + COMPLEX_TURN_STEP - 1) / COMPLEX_TURN_STEP * COMPLEX_TURN_STEP;
}

static void schur_init(Schur *s, int64_t n, ThreadPool *pool) {
    *s = (Schur){.n = n, .stride = whole_steps(n) + 2 * COMPLEX_TURN_STEP, .z_stride = whole_steps(n) + COMPLEX_TURN_STEP, .capacity = SWEEPS_KEPT * n, .pool = pool};
    s->bytes = (size_t)((n + COMPLEX_TURN_STEP + 1) * s->stride + n * s->z_stride) * sizeof *s->memory;
    s->memory = block_zeroed(s->bytes);
    s->t = s->memory + COMPLEX_TURN_STEP;
    s->z = s->memory + (n + COMPLEX_TURN_STEP + 1) * s->stride;
    s->turns = xmalloc((size_t)(s->capacity + 1) * sizeof *s->turns);
}

static void schur_clear(Schur *s) {
    block_free(s->memory, s->bytes);
    free(s->turns);
}

/* t and z of a, whose numbers are real more often than not. */
static void schur_begin(Schur *s, Complex *a) {
    int64_t n = s->n;
    bool real = true;
    for (int64_t i = 0; i < n * n; i++) real &= cimag(a[i]) == 0;
    size_t size = (size_t)(n * n + 1) * sizeof(Complex);
    Complex *q = block_new(size);
    double *h = (double *)a, *real_q = (double *)q;
    if (real) {
        for (int64_t i = 0; i < n * n; i++) h[i] = creal(a[i]);
        hessenberg_f64(h, n, real_q, s->pool);
    } else {
        hessenberg_c128(a, n, q, s->pool);
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            s->t[i * s->stride + j] = real ? h[i * n + j] : a[i * n + j];
            s->z[j * s->z_stride + i] = real ? real_q[i * n + j] : conj(q[i * n + j]);
        }
    }
    block_free(q, size);
}

static void turn_z(void *arg, int64_t begin, int64_t end) {
    const Schur *s = arg;
    int64_t from = begin * STRIP, to = end * STRIP < s->z_stride ? end * STRIP : s->z_stride;
    complex_turn_rows(s->z + from, s->z_stride, to - from, s->turns, s->count);
}

/* Turns the columns behind `end`. */
static void turn_behind(Schur *s, int64_t end) {
    complex_turn_rows(s->t + end + 1, s->stride, whole_steps(s->n - end - 1), s->turns + s->done, s->count - s->done);
    s->done = s->count;
}

static void turn_all(Schur *s, int64_t end) {
    turn_behind(s, end);
    int64_t strips = (s->z_stride + STRIP - 1) / STRIP, threads = s->pool ? threadpool_size(s->pool) : 1;
    threadpool_parallel_for(s->n < 4 * STRIP ? NULL : s->pool, strips, (strips + threads - 1) / threads, turn_z, s);
    s->count = s->done = 0;
}

static double norm1(Complex x) {
    return fabs(creal(x)) + fabs(cimag(x));
}

static double norm2(Complex x) {
    return creal(x) * creal(x) + cimag(x) * cimag(x);
}

/* The turn that takes [x; y] to [r; 0]. */
static ComplexTurn turn_of(Complex x, Complex y, int64_t row, Complex *r) {
    double x2 = norm2(x), y2 = norm2(y), sum = x2 + y2;
    if (x2 > 1e-140 && y2 > 1e-140 && sum < 1e140) {
        double scale = 1 / sqrt(x2 * sum);
        *r = x * (sum * scale);
        return (ComplexTurn){row, x2 * scale, __builtin_complex(creal(x) * creal(y) + cimag(x) * cimag(y), cimag(x) * creal(y) - creal(x) * cimag(y)) * scale};
    }
    double x1 = cabs(x), y1 = cabs(y), size = hypot(x1, y1);
    *r = x1 == 0 ? size : x / x1 * size;
    if (y1 == 0) return (ComplexTurn){row, 1, 0};
    if (x1 == 0) return (ComplexTurn){row, 0, conj(y) / y1};
    return (ComplexTurn){row, x1 / size, x / x1 * conj(y) / size};
}

/* The eigenvalue of the last 2 x 2 block that is nearest to its last element. */
static Complex shift_of(const Complex *a, int64_t n, int64_t end, int tries) {
    Complex p = a[(end - 1) * n + end - 1], q = a[(end - 1) * n + end], r = a[end * n + end - 1], s = a[end * n + end];
    if (tries == 10 || tries == 20) return cabs(r) + (end > 1 ? cabs(a[(end - 1) * n + end - 2]) : 0);
    Complex half = (p + s) / 2, root = csqrt((p - s) * (p - s) / 4 + q * r);
    Complex one = half + root, two = half - root;
    return cabs(one - s) < cabs(two - s) ? one : two;
}

/* One step on rows and columns [start, end]; the rows above are of it too. Left of the diagonal are zeros, with which rows are filled up to whole vectors. */
static void schur_step(Schur *s, int64_t start, int64_t end, Complex shift) {
    if (s->count + end - start > s->capacity) turn_all(s, end);
    ComplexTurn *turns = s->turns + s->count;
    for (int64_t i = start; i <= end; i++) s->t[i * s->stride + i] -= shift;
    for (int64_t i = start; i < end; i++) {
        Complex *row = s->t + i * s->stride, *next = row + s->stride, r;
        int64_t columns = whole_steps(end - i);
        turns[i - start] = turn_of(row[i], next[i], i, &r);
        complex_turn_rows(s->t + end + 1 - columns, s->stride, columns, turns + i - start, 1);
        row[i] = r;
        next[i] = 0;
    }
    for (int64_t i = 0; i <= end; i += COMPLEX_TURN_STEP) {
        int64_t first = i > start + 1 ? i - 1 : start;
        complex_turn_columns(s->t + i * s->stride, s->stride, COMPLEX_TURN_STEP, turns + first - start, end - first);
    }
    for (int64_t i = start; i <= end; i++) s->t[i * s->stride + i] += shift;
    s->count += end - start;
}

/* Where the block that ends at `end` starts: behind a number below the diagonal that may be neglected. */
static int64_t block_start(const Schur *s, int64_t end) {
    int64_t start = end;
    for (; start > 0; start--) {
        const Complex *row = s->t + start * s->stride + start;
        double below = norm1(row[-1]);
        if (below <= DBL_EPSILON * (norm1(row[-s->stride - 1]) + norm1(row[0])) || below < DBL_MIN) break;
    }
    return start;
}

static bool schur_solve(Schur *s) {
    int tries = 0;
    int64_t end = s->n - 1;
    while (end > 0 && tries < TRIES) {
        int64_t start = block_start(s, end);
        if (start > 0) s->t[start * s->stride + start - 1] = 0;
        if (start == end) {
            turn_behind(s, end--);
            tries = 0;
            continue;
        }
        schur_step(s, start, end, shift_of(s->t, s->stride, end, tries++));
    }
    turn_all(s, end > 0 ? end : 0);
    return end <= 0;
}

/* A power of two that makes the largest number of a about one; 0: not all are finite. */
static double scale_of(const Complex *a, int64_t n) {
    double most = 0;
    bool finite = true;
    for (int64_t i = 0; i < n * n; i++) {
        double size = fabs(creal(a[i])) > fabs(cimag(a[i])) ? fabs(creal(a[i])) : fabs(cimag(a[i]));
        most = size > most ? size : most;
        finite &= isfinite(creal(a[i])) && isfinite(cimag(a[i]));
    }
    int exponent = 0;
    frexp(most, &exponent);
    return finite ? ldexp(1, exponent > 1000 ? -1000 : exponent < -1000 ? 1000 : -exponent) : 0;
}

/* The decomposition of a (destroyed), multiplied by `scale`. */
static bool schur_run(Schur *s, Complex *a, int64_t n, double scale, ThreadPool *pool) {
    schur_init(s, n, pool);
    for (int64_t i = 0; i < n * n; i++) a[i] = __builtin_complex(creal(a[i]) * scale, cimag(a[i]) * scale);
    if (scale != 0) schur_begin(s, a);
    return scale != 0 && schur_solve(s);
}

bool schur(Complex *a, int64_t n, Complex *q, ThreadPool *pool) {
    Schur s;
    double scale = scale_of(a, n);
    bool ok = schur_run(&s, a, n, scale, pool);
    for (int64_t i = 0; i < n && ok; i++) {
        for (int64_t j = 0; j < n; j++) {
            Complex x = j < i ? 0 : s.t[i * s.stride + j];
            a[i * n + j] = __builtin_complex(creal(x) / scale, cimag(x) / scale);
            q[i * n + j] = conj(s.z[j * s.z_stride + i]);
        }
    }
    schur_clear(&s);
    return ok;
}

/* x (n x n): the eigenvectors of t as columns, up to the diagonal; row by row from below. */
static void triangle_vectors(const Schur *s, Complex *x) {
    int64_t n = s->n;
    double scale = DBL_MIN;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) scale = fmax(scale, norm2(s->t[i * s->stride + j]));
    scale = sqrt(scale) * DBL_EPSILON;
    memset(x, 0, (size_t)(n * n) * sizeof *x);
    for (int64_t i = n - 1; i >= 0; i--) {
        Complex *row = x + i * n;
        const Complex *t = s->t + i * s->stride;
        row[i] = 1;
        for (int64_t j = i + 1; j < n; j++) vector_add_c128(row + j, -t[j], x + j * n + j, n - j);
        for (int64_t k = i + 1; k < n; k++) {
            Complex d = t[i] - s->t[k * s->stride + k];
            if (cabs(d) < scale) d = scale;
            row[k] /= d;
        }
    }
}

/* Columns of v become of unit length. */
static void normalize_columns(Complex *v, int64_t n) {
    double *sizes = xcalloc((size_t)n + 1, sizeof *sizes);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++) sizes[k] += norm2(v[i * n + k]);
    for (int64_t k = 0; k < n; k++) {
        if (sizes[k] > 1e-250 && sizes[k] < 1e300) {
            sizes[k] = 1 / sqrt(sizes[k]);
            continue;
        }
        double size = 0;
        for (int64_t i = 0; i < n; i++) size = hypot(size, cabs(v[i * n + k]));
        sizes[k] = size > 0 ? 1 / size : 1;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++) v[i * n + k] *= sizes[k];
    free(sizes);
}

bool eigen(Complex *a, int64_t n, Complex *values, Complex *v, ThreadPool *pool) {
    Schur s;
    double scale = scale_of(a, n);
    bool ok = schur_run(&s, a, n, scale, pool);
    for (int64_t k = 0; k < n && ok; k++) {
        Complex x = s.t[k * s.stride + k];
        values[k] = __builtin_complex(creal(x) / scale, cimag(x) / scale);
    }
    if (ok && v) {
        triangle_vectors(&s, a);
        for (int64_t k = 0; k < n; k += VECTOR_COLUMNS) { /* q times x, whose numbers below the diagonal are zeros */
            int64_t columns = n - k < VECTOR_COLUMNS ? n - k : VECTOR_COLUMNS;
            Gemm g = {.m = n, .n = columns, .k = k + columns, .a_transposed = true, .a_conjugated = true, .a = s.z, .b = a + k, .c = v + k,
                      .a_stride = s.z_stride, .b_stride = n, .c_stride = n};
            gemm_c128(&g, pool);
        }
        normalize_columns(v, n);
    }
    schur_clear(&s);
    return ok;
}
