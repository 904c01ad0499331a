/* ctc.c: connectionist temporal classification: the forward-backward algorithm on all places of a sequence together, and prefix beam search. */
#include "kernels/ctc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/vector_library.h"

enum { PART = 64 }; /* numbers that go through a function together */

static double log_add(double a, double b) {
    if (a == -INFINITY) return b;
    if (b == -INFINITY) return a;
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

void ctc_log_softmax(const double *from, int64_t classes, double *to) {
    double top = -INFINITY, sum = 0, part[PART];
    for (int64_t c = 0; c < classes; c++) top = from[c] > top ? from[c] : top;
    for (int64_t first = 0; first < classes; first += PART) {
        int64_t n = classes - first < PART ? classes - first : PART;
        for (int64_t c = 0; c < n; c++) to[first + c] = from[first + c] - top;
        vector_exp_f64(part, to + first, n);
        for (int64_t c = 0; c < n; c++) sum += part[c];
    }
    sum = log(sum);
    for (int64_t c = 0; c < classes; c++) to[c] -= sum;
}

/* ---- Loss ---- */

/* The sequence with blanks between and around: at each place its label, and whether a path may stay there and come from two places before, without a blank between.
 * Rows of numbers, one at each place, for what is being added. */
typedef struct Lattice {
    int64_t places;
    int *labels;
    bool *stays, *skips;
    double *one, *two, *spare;
} Lattice;

static bool lattice_init(Lattice *l, const CtcInput *in, const int32_t *labels, int64_t label_count, bool merge) {
    int64_t n = l->places = 2 * label_count + 1;
    l->one = try_alloc((size_t)(n + 2) * (3 * sizeof *l->one + sizeof *l->labels + 2 * sizeof *l->stays));
    if (!l->one) return false;
    l->two = l->one + n + 2;
    l->spare = l->two + n + 2;
    l->labels = (int *)(l->spare + n + 2);
    l->stays = (bool *)(l->labels + n + 2);
    l->skips = l->stays + n + 2;
    for (int64_t u = 0; u < n; u++) l->labels[u] = u % 2 ? labels[u / 2] : in->blank;
    for (int64_t u = 0; u < n; u++) {
        l->stays[u] = merge || l->labels[u] == in->blank;
        l->skips[u] = u >= 2 && l->labels[u] != in->blank && (!merge || l->labels[u] != l->labels[u - 2]);
    }
    return true;
}

/* log_add of each two numbers. */
static void log_add_rows(double *sum, const double *x, const double *y, double *spare, int64_t n) {
    for (int64_t i = 0; i < n; i++) spare[i] = x[i] > y[i] ? y[i] - x[i] : x[i] - y[i];
    vector_exp_f64(spare, spare, n);
    vector_log1p_f64(spare, spare, n);
    for (int64_t i = 0; i < n; i++) {
        double more = (x[i] > y[i] ? x[i] : y[i]) + spare[i];
        sum[i] = x[i] == -INFINITY ? y[i] : y[i] == -INFINITY ? x[i] : more;
    }
}

static void forward(const CtcInput *in, const Lattice *l, double *alpha) {
    int64_t n = l->places;
    for (int64_t t = 0; t < in->time; t++) {
        const double *y = in->scores + t * in->classes, *before = alpha + (t - 1) * n;
        double *now = alpha + t * n;
        for (int64_t u = 0; u < n && t == 0; u++) now[u] = u < 2 ? 0 : -INFINITY;
        if (t > 0) {
            for (int64_t u = 0; u < n; u++) {
                l->one[u] = l->stays[u] ? before[u] : -INFINITY;
                l->two[u] = u > 0 ? before[u - 1] : -INFINITY;
            }
            log_add_rows(now, l->one, l->two, l->spare, n);
            for (int64_t u = 0; u < n; u++) l->two[u] = l->skips[u] ? before[u - 2] : -INFINITY;
            log_add_rows(now, now, l->two, l->spare, n);
        }
        for (int64_t u = 0; u < n; u++) now[u] += y[l->labels[u]];
    }
}

/* Like alpha, but of what comes after time t. */
static void backward(const CtcInput *in, const Lattice *l, double *beta) {
    int64_t n = l->places;
    for (int64_t u = 0; u < n && in->time > 0; u++) beta[(in->time - 1) * n + u] = u >= n - 2 ? 0 : -INFINITY;
    for (int64_t t = in->time - 2; t >= 0; t--) {
        const double *y = in->scores + (t + 1) * in->classes, *after = beta + (t + 1) * n;
        double *now = beta + t * n, *next = l->two;
        for (int64_t u = 0; u < n; u++) next[u] = after[u] + y[l->labels[u]];
        next[n] = -INFINITY;
        for (int64_t u = 0; u < n; u++) l->one[u] = l->stays[u] ? next[u] : -INFINITY;
        log_add_rows(now, l->one, next + 1, l->spare, n);
        for (int64_t u = 0; u < n; u++) l->one[u] = u + 2 < n && l->skips[u + 2] ? next[u + 2] : -INFINITY;
        log_add_rows(now, now, l->one, l->spare, n);
    }
}

bool ctc_loss(const CtcInput *in, const int32_t *labels, int64_t label_count, bool merge, double *loss,
              double *gradient) {
    Lattice l = {0};
    int64_t places = 2 * label_count + 1;
    double *alpha = try_alloc((size_t)(in->time * places + 1) * sizeof *alpha),
           *beta = try_alloc((size_t)(in->time * places + 1) * sizeof *beta);
    bool ok = lattice_init(&l, in, labels, label_count, merge) && alpha && beta;
    double total = -INFINITY;
    if (!ok) goto out;
    forward(in, &l, alpha);
    backward(in, &l, beta);
    for (int64_t u = 0; u < places; u++) total = log_add(total, alpha[u] + beta[u]);
    *loss = -total;
    for (int64_t t = 0; t < in->time; t++) {
        double *row = gradient + t * in->classes;
        vector_exp_f64(row, in->scores + t * in->classes, in->classes);
        if (total == -INFINITY) continue;
        for (int64_t u = 0; u < places; u++) l.one[u] = alpha[t * places + u] + beta[t * places + u] - total;
        vector_exp_f64(l.one, l.one, places);
        for (int64_t u = 0; u < places; u++) row[l.labels[u]] -= l.one[u];
    }
out:
    free(alpha);
    free(beta);
    free(l.one);
    return ok;
}

/* ---- Beam search ---- */

typedef struct Chance {
    double total, blank,
        label; /* logarithms: of the prefix, of it with a blank at the end, with its label at the end */
} Chance;

static const Chance no_chance = {-INFINITY, -INFINITY, -INFINITY};

/* A prefix: its parent and one more label. */
typedef struct Prefix {
    struct Prefix *parent, *children, *sibling, *all_next;
    int32_t label; /* -1: the empty prefix */
    Chance old, now;
} Prefix;

typedef struct Beam {
    Prefix **leaves; /* the best `width`, in no order */
    int count, width;
    Prefix *all; /* to be freed */
} Beam;

static Prefix *prefix_new(Beam *b, Prefix *parent, int32_t label) {
    Prefix *p = xcalloc(1, sizeof *p);
    p->parent = parent;
    p->label = label;
    p->old = p->now = no_chance;
    p->all_next = b->all;
    b->all = p;
    if (parent) {
        p->sibling = parent->children;
        parent->children = p;
    }
    return p;
}

static int worst_leaf(const Beam *b) {
    int worst = 0;
    for (int i = 1; i < b->count; i++)
        if (b->leaves[i]->now.total < b->leaves[worst]->now.total) worst = i;
    return worst;
}

static int by_old(const void *a, const void *b) {
    double x = (*(Prefix *const *)a)->old.total, y = (*(Prefix *const *)b)->old.total;
    return (x < y) - (x > y);
}
static int by_now(const void *a, const void *b) {
    double x = (*(Prefix *const *)a)->now.total, y = (*(Prefix *const *)b)->now.total;
    return (x < y) - (x > y);
}

/* Prefixes of the beam that get no new label now. */
static void keep(Prefix *p, const double *y, int blank) {
    if (p->parent) {
        if (p->parent->now.total != -INFINITY) { /* it is still in the beam */
            double before = p->label == p->parent->label ? p->parent->old.blank : p->parent->old.total;
            p->now.label = log_add(p->now.label, before);
        }
        p->now.label += y[p->label];
    }
    p->now.blank = p->old.total + y[blank];
    p->now.total = log_add(p->now.blank, p->now.label);
}

static void grow(Beam *b, Prefix *p, const double *y, int64_t classes, Prefix **child_of) {
    int worst = worst_leaf(b);
    for (int64_t c = 0; c + 1 < classes; c++) child_of[c] = NULL;
    for (Prefix *child = p->children; child; child = child->sibling) child_of[child->label] = child;
    for (int64_t c = 0; c + 1 < classes; c++) {
        Prefix *child = child_of[c];
        if (child && child->now.total != -INFINITY) continue; /* it is in the beam */
        double chance = y[c] + (c == p->label ? p->old.blank : p->old.total);
        bool wanted = chance > -INFINITY && (b->count < b->width || chance > b->leaves[worst]->now.total);
        if (!wanted) {
            if (child) child->old = no_chance;
            continue;
        }
        if (!child) child = prefix_new(b, p, (int32_t)c);
        child->now = (Chance){chance, -INFINITY, chance};
        if (b->count < b->width) {
            b->leaves[b->count++] = child;
        } else {
            b->leaves[worst]->now = no_chance;
            b->leaves[worst] = child;
        }
        worst = worst_leaf(b);
    }
}

static void beam_step(Beam *b, Prefix **branches, const double *y, const CtcInput *in, Prefix **child_of) {
    int n = b->count;
    memcpy(branches, b->leaves, (size_t)n * sizeof *branches);
    for (int i = 0; i < n; i++) branches[i]->old = branches[i]->now;
    for (int i = 0; i < n; i++) keep(branches[i], y, in->blank);
    qsort(branches, (size_t)n, sizeof *branches, by_old);
    for (int i = 0; i < n; i++) {
        double chance = branches[i]->old.total;
        if (chance > -INFINITY && (b->count < b->width || chance > b->leaves[worst_leaf(b)]->now.total))
            grow(b, branches[i], y, in->classes, child_of);
    }
}

static void read_path(const Prefix *p, bool merge_repeated, CtcPath *out) {
    int64_t n = 0;
    int32_t last = -1;
    for (const Prefix *q = p; q->parent; q = q->parent) n++;
    out->labels = xmalloc((size_t)(n + 1) * sizeof *out->labels);
    out->log_probability = p->now.total;
    out->count = 0;
    for (const Prefix *q = p; q->parent; q = q->parent) {
        if (!merge_repeated || q->label != last) out->labels[out->count++] = q->label;
        last = q->label;
    }
    for (int64_t i = 0; i < out->count / 2; i++) {
        int32_t swap = out->labels[i];
        out->labels[i] = out->labels[out->count - 1 - i];
        out->labels[out->count - 1 - i] = swap;
    }
}

int ctc_beam_search(const CtcInput *in, int width, bool merge_repeated, CtcPath *paths, int max) {
    Beam b = {.width = width};
    b.leaves = xcalloc((size_t)width + 1, sizeof *b.leaves);
    Prefix **branches = xcalloc((size_t)width + 1, sizeof *branches),
           **child_of = xcalloc((size_t)in->classes + 1, sizeof *child_of);
    b.leaves[b.count++] = prefix_new(&b, NULL, -1);
    b.leaves[0]->now = (Chance){0, 0, -INFINITY};
    for (int64_t t = 0; t < in->time; t++) beam_step(&b, branches, in->scores + t * in->classes, in, child_of);
    qsort(b.leaves, (size_t)b.count, sizeof *b.leaves, by_now);
    int n = b.count < max ? b.count : max;
    for (int i = 0; i < n; i++) read_path(b.leaves[i], merge_repeated, &paths[i]);
    while (b.all) {
        Prefix *next = b.all->all_next;
        free(b.all);
        b.all = next;
    }
    free(b.leaves);
    free(branches);
    free(child_of);
    return n;
}
