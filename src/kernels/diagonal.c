/* diagonal.c: QR iterations with implicit shifts on two diagonals; what they do to vectors is written down and done later. */
#include "kernels/diagonal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/block_cache.h"
#include "base/memory.h"

enum { SWEEPS_KEPT = 16, STEPS_PER_VALUE = 30, TURNS_PER_TASK = 4096 };

/* ---- Vectors ---- */

static int64_t numbers_of_vector(const TurnedRows *r) {
    return ROW_TURN_BYTES / (r->single ? (int64_t)sizeof(float) : (int64_t)sizeof(double));
}

static int64_t vectors_of_row(const TurnedRows *r) {
    return (r->width + numbers_of_vector(r) - 1) / numbers_of_vector(r);
}

/* One vector more than a row needs, so that rows of a power of two do not fall on each other in the cache. */
void turned_rows_init(TurnedRows *r, bool single, int64_t count, int64_t width, ThreadPool *pool) {
    *r = (TurnedRows){.single = single, .width = width, .capacity = SWEEPS_KEPT * count + 1, .pool = pool};
    r->stride = (vectors_of_row(r) + 1) * numbers_of_vector(r);
    r->bytes = (size_t)(count * (vectors_of_row(r) + 1) + 1) * ROW_TURN_BYTES;
    r->rows = block_zeroed(r->bytes);
    r->turns = xmalloc((size_t)r->capacity * sizeof *r->turns);
}

void turned_rows_clear(TurnedRows *r) {
    block_free(r->rows, r->bytes);
    free(r->turns);
    *r = (TurnedRows){0};
}

static void turn_strips(void *arg, int64_t begin, int64_t end) {
    const TurnedRows *r = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = i * ROW_TURN_VECTORS, rest = vectors_of_row(r) - from;
        rows_turn((char *)r->rows + from * ROW_TURN_BYTES, r->single, r->stride, rest < ROW_TURN_VECTORS ? rest : ROW_TURN_VECTORS, r->turns, r->count);
    }
}

static void apply_turns(TurnedRows *r) {
    int64_t strips = (vectors_of_row(r) + ROW_TURN_VECTORS - 1) / ROW_TURN_VECTORS;
    threadpool_parallel_for(r->pool, strips, r->count > 0 ? TURNS_PER_TASK / r->count + 1 : strips, turn_strips, r);
    r->count = 0;
}

static void add_turn(TurnedRows *r, int64_t row, double c, double s) {
    if (!r) return;
    if (r->count == r->capacity) apply_turns(r);
    r->turns[r->count++] = (RowTurn){row, c, s};
}

/* Makes c * c + s * s one as nearly as doubles can: otherwise thousands of turns stretch vectors and values. 400 x 400 numbers: 4e-15 instead of 6e-14. */
static void refine(double *c, double *s) {
    double large = fabs(*c) > fabs(*s) ? *c : *s, small = fabs(*c) > fabs(*s) ? *s : *c, large2 = large * large, small2 = small * small;
    double missing = (1 - large2) - small2 - fma(large, large, -large2) - fma(small, small, -small2);
    *c += *c * (missing / 2);
    *s += *s * (missing / 2);
}

/* What remains is done; floats, whose turns are not as exact, are made vectors of length one again. */
static void finish_turns(TurnedRows *r, int64_t count) {
    if (!r) return;
    apply_turns(r);
    for (int64_t i = 0; i < count && r->single; i++) {
        float *row = (float *)r->rows + i * r->stride;
        double lanes[8] = {0}, sum = 0;
        int64_t j = 0;
        for (; j + 8 <= r->width; j += 8)
            for (int l = 0; l < 8; l++) lanes[l] += (double)row[j + l] * (double)row[j + l];
        for (; j < r->width; j++) sum += (double)row[j] * (double)row[j];
        for (int l = 0; l < 8; l++) sum += lanes[l];
        double scale = 1 / sqrt(sum);
        for (j = 0; j < r->width; j++) row[j] = (float)((double)row[j] * scale);
    }
}

/* ---- Tridiagonal ---- */

/* d[k], e[k], d[k + 1] turned by the angle of x and z; returns cosine and sine. By products of both, for which nothing waits for the root: the next turn can
 * begin before it is found. As near as floats need; square = x * x + z * z. */
static inline RowTurn turn_early(double *d, double *e, int64_t k, double x, double z, double square) {
    const double inverse = 1 / square, one = sqrt(square) * inverse;
    const double cc = x * x * inverse, ss = z * z * inverse, cs = -(x * z) * inverse, first = d[k], second = d[k + 1], twice = 2 * cs * e[k];
    d[k] = cc * first + ss * second - twice;
    d[k + 1] = ss * first + cc * second + twice;
    e[k] = cs * (first - second) + (cc - ss) * e[k];
    return (RowTurn){k, x * one, -z * one};
}

/* One implicit step with Wilkinson's shift on rows [start, end]. */
static void tridiagonal_step(double *d, double *e, int64_t start, int64_t end, bool exact, TurnedRows *rows) {
    double half = (d[end - 1] - d[end]) * 0.5, last = e[end - 1], mu = d[end];
    if (half == 0) {
        mu -= fabs(last);
    } else if (last != 0) {
        double h = hypot(half, last);
        mu -= last / ((half + (half > 0 ? h : -h)) / last);
    }
    double x = d[start] - mu, z = e[start];
    for (int64_t k = start; k < end && z != 0; k++) {
        double c, s, square = x * x + z * z;
        const bool plain = square > 1e-200 && square < 1e200;
        if (plain && !exact) {
            const RowTurn turn = turn_early(d, e, k, x, z, square);
            c = turn.c;
            s = turn.s;
        } else if (plain) {
            double one = 1 / sqrt(square);
            c = x * one;
            s = -z * one;
        } else if (x == 0) {
            c = 0;
            s = z < 0 ? 1 : -1;
        } else if (fabs(x) > fabs(z)) {
            double t = z / x, u = sqrt(1 + t * t);
            c = 1 / (x < 0 ? -u : u);
            s = -t * c;
        } else {
            double t = x / z, u = sqrt(1 + t * t);
            s = -1 / (z < 0 ? -u : u);
            c = -t * s;
        }
        if (exact) refine(&c, &s);
        if (exact || !plain) {
            double sdk = s * d[k] + c * e[k], next = s * e[k] + c * d[k + 1];
            d[k] = c * (c * d[k] - s * e[k]) - s * (c * e[k] - s * d[k + 1]);
            d[k + 1] = s * sdk + c * next;
            e[k] = c * sdk - s * next;
        }
        if (k > start) e[k - 1] = c * e[k - 1] - s * z;
        x = e[k];
        if (k < end - 1) {
            z = -s * e[k + 1];
            e[k + 1] = c * e[k + 1];
        }
        add_turn(rows, k, c, s);
    }
}

/* The same step for values alone, without roots; e holds squares. */
static void tridiagonal_square_step(double *d, double *e, int64_t start, int64_t end) {
    double half = (d[end - 1] - d[end]) * 0.5, last = sqrt(e[end - 1]), shift = d[end];
    if (half == 0) {
        shift -= last;
    } else {
        double h = hypot(half, last);
        shift -= last / ((half + (half > 0 ? h : -h)) / last);
    }
    double c = 1, s = 0, gamma = d[start] - shift, p = gamma * gamma;
    for (int64_t i = start; i < end; i++) {
        double square = e[i], r = p + square;
        if (i > start) e[i - 1] = s * r;
        double old_c = c, old_gamma = gamma, next = d[i + 1];
        c = p / r;
        s = square / r;
        gamma = c * (next - shift) - s * old_gamma;
        d[i] = old_gamma + (next - gamma);
        p = c != 0 ? gamma * gamma / c : old_c * square;
    }
    e[end - 1] = s * p;
    d[end] = shift + gamma;
}

static bool tridiagonal_solve_squares(double *d, double *e, int64_t n, double epsilon) {
    int64_t end = n - 1, start = 0, steps = 0;
    for (int64_t i = 0; i < n - 1; i++) e[i] *= e[i];
    while (end > 0 && steps <= STEPS_PER_VALUE * n) {
        for (int64_t i = start; i < end; i++)
            if (e[i] < DBL_MIN || e[i] <= epsilon * epsilon * (fabs(d[i]) + fabs(d[i + 1]))) e[i] = 0;
        while (end > 0 && e[end - 1] == 0) end--;
        if (end <= 0) break;
        steps++;
        start = end - 1;
        while (start > 0 && e[start - 1] != 0) start--;
        tridiagonal_square_step(d, e, start, end);
    }
    return end <= 0;
}

bool tridiagonal_solve_values(double *d, double *e, int64_t n, double epsilon, TurnedRows *rows) {
    double one = 1 / epsilon; /* a power of two */
    if (!rows) return tridiagonal_solve_squares(d, e, n, epsilon);
    int64_t end = n - 1, start = 0, steps = 0;
    while (end > 0 && steps <= STEPS_PER_VALUE * n) {
        for (int64_t i = start; i < end; i++) {
            double scaled = e[i] * one;
            if (fabs(e[i]) < DBL_MIN || scaled * scaled <= fabs(d[i]) + fabs(d[i + 1])) e[i] = 0;
        }
        while (end > 0 && e[end - 1] == 0) end--;
        if (end <= 0) break;
        steps++;
        start = end - 1;
        while (start > 0 && e[start - 1] != 0) start--;
        tridiagonal_step(d, e, start, end, epsilon <= DBL_EPSILON, rows);
    }
    finish_turns(rows, n);
    return end <= 0;
}

/* ---- Bidiagonal ---- */

/* [c s; -s c] times [f; g] is [r; 0]. */
typedef struct Turn {
    double c, s, r;
} Turn;

static Turn turn_of(double f, double g, bool exact) {
    if (g == 0) return (Turn){1, 0, f};
    if (f == 0) return (Turn){0, 1, g};
    bool upper = fabs(f) > fabs(g);
    double t = upper ? g / f : f / g, u = sqrt(1 + t * t), one = 1 / u;
    Turn turn = upper ? (Turn){one, t * one, f * u} : (Turn){t * one, one, g * u};
    if (!exact) return turn;
    refine(&turn.c, &turn.s);
    turn.r = turn.c * f + turn.s * g;
    return turn;
}

/* The smaller singular value of [f g; 0 h]. */
static double smaller_value(double f, double g, double h) {
    f = fabs(f), g = fabs(g), h = fabs(h);
    double small = f < h ? f : h, large = f < h ? h : f;
    if (small == 0) return 0;
    double sum = 1 + small / large, difference = (large - small) / large;
    if (g < large) {
        double ratio = g / large;
        return small * (2 / (sqrt(sum * sum + ratio * ratio) + sqrt(difference * difference + ratio * ratio)));
    }
    double ratio = large / g;
    if (ratio == 0) return small * large / g;
    sum *= ratio, difference *= ratio;
    return 2 * (small / (sqrt(1 + sum * sum) + sqrt(1 + difference * difference))) * ratio;
}

static void bidiagonal_step(double *d, double *e, int64_t start, int64_t end, double shift, bool exact, TurnedRows *left, TurnedRows *right) {
    double f = (fabs(d[start]) - shift) * ((d[start] < 0 ? -1 : 1) + shift / d[start]), g = e[start];
    for (int64_t i = start; i < end; i++) {
        Turn r = turn_of(f, g, exact);
        if (i > start) e[i - 1] = r.r;
        f = r.c * d[i] + r.s * e[i];
        e[i] = r.c * e[i] - r.s * d[i];
        g = r.s * d[i + 1];
        d[i + 1] = r.c * d[i + 1];
        Turn l = turn_of(f, g, exact);
        d[i] = l.r;
        f = l.c * e[i] + l.s * d[i + 1];
        d[i + 1] = l.c * d[i + 1] - l.s * e[i];
        if (i < end - 1) {
            g = l.s * e[i + 1];
            e[i + 1] = l.c * e[i + 1];
        }
        add_turn(right, i, r.c, -r.s);
        add_turn(left, i, l.c, -l.s);
    }
    e[end - 1] = f;
}

/* The step without a shift, which keeps small values exact and finds values of zero. */
static void bidiagonal_zero_step(double *d, double *e, int64_t start, int64_t end, bool exact, TurnedRows *left, TurnedRows *right) {
    Turn r = {1, 0, 0}, l = {1, 0, 0};
    for (int64_t i = start; i < end; i++) {
        r = turn_of(d[i] * r.c, e[i], exact);
        if (i > start) e[i - 1] = l.s * r.r;
        l = turn_of(l.c * r.r, d[i + 1] * r.s, exact);
        d[i] = l.r;
        add_turn(right, i, r.c, -r.s);
        add_turn(left, i, l.c, -l.s);
    }
    double h = d[end] * r.c;
    d[end] = h * l.c;
    e[end - 1] = h * l.s;
}

static double shift_of(const double *d, const double *e, int64_t start, int64_t end) {
    for (int64_t i = start; i <= end; i++)
        if (d[i] == 0) return 0;
    double shift = smaller_value(d[end - 1], e[end - 1], d[end]), ratio = shift / fabs(d[start]);
    return ratio * ratio < DBL_EPSILON ? 0 : shift;
}

static void negate_row(TurnedRows *r, int64_t row) {
    for (int64_t j = row * r->stride; j < row * r->stride + r->width; j++) {
        if (r->single) {
            ((float *)r->rows)[j] *= -1;
        } else {
            ((double *)r->rows)[j] *= -1;
        }
    }
}

bool bidiagonal_solve_values(double *d, double *e, int64_t n, double epsilon, TurnedRows *left, TurnedRows *right) {
    double size = 0;
    for (int64_t i = 0; i < n; i++) {
        size = fabs(d[i]) > size ? fabs(d[i]) : size;
        size = i + 1 < n && fabs(e[i]) > size ? fabs(e[i]) : size;
    }
    double least = size * 1e-40 > DBL_MIN ? size * 1e-40 : DBL_MIN;
    bool exact = epsilon <= DBL_EPSILON;
    int64_t end = n - 1, start = 0, steps = 0;
    while (end > 0 && steps <= STEPS_PER_VALUE * n) {
        for (int64_t i = start; i <= end; i++) {
            if (fabs(d[i]) < least) d[i] = 0;
            if (i < end && (fabs(e[i]) < least || fabs(e[i]) <= epsilon * (fabs(d[i]) + fabs(d[i + 1])))) e[i] = 0;
        }
        while (end > 0 && e[end - 1] == 0) end--;
        if (end <= 0) break;
        steps++;
        start = end - 1;
        while (start > 0 && e[start - 1] != 0) start--;
        double shift = shift_of(d, e, start, end);
        if (shift == 0) {
            bidiagonal_zero_step(d, e, start, end, exact, left, right);
        } else {
            bidiagonal_step(d, e, start, end, shift, exact, left, right);
        }
    }
    finish_turns(left, n);
    finish_turns(right, n);
    for (int64_t i = 0; i < n; i++) {
        if (!(d[i] < 0)) continue;
        d[i] = -d[i];
        if (right) negate_row(right, i);
    }
    return end <= 0;
}
