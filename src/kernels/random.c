/* random.c: arrays of random numbers, the same for any number of threads.
 *
 * Outputs come in groups: four of up to 32 bits, or two of 64. Group i is made from the generator skipped by i, so
 * every thread can start anywhere. A distribution that may reject skips 256 numbers for every output of a group
 * instead; the first four of a group, most often enough, are made beside those of other groups. */
#include "kernels/random.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/float16.h"
#include "kernels/philox_block.h"
#include "kernels/vector_library.h"

static void normal_pair(uint32_t x0, uint32_t x1, float *a, float *b) {
    float u1 = uniform_float(x0);
    if (u1 < 1.0e-7f) u1 = 1.0e-7f;
    float angle = (float)(2.0 * M_PI * (double)uniform_float(x1));
    float radius = sqrtf(-2.0f * logf(u1));
    sincosf(angle, a, b);
    *a *= radius;
    *b *= radius;
}

static void normal_pair_double(const uint32_t x[4], double *a, double *b) {
    double u1 = uniform_double(x[0], x[1]);
    if (u1 < 1.0e-7) u1 = 1.0e-7;
    double angle = 2.0 * M_PI * uniform_double(x[2], x[3]), radius = sqrt(-2.0 * log(u1));
    sincos(angle, a, b);
    *a *= radius;
    *b *= radius;
}

static uint16_t to_16(RandomType type, float f) {
    return type == RANDOM_HALF ? float_to_half(f) : float_to_bfloat16(f);
}

/* 10 or 7 random bits behind a one, minus one. */
static uint16_t uniform_16(RandomType type, uint32_t x) {
    if (type == RANDOM_HALF) return float_to_half(half_to_float((uint16_t)(15u << 10 | (x & 0x3ffu))) - 1.0f);
    return float_to_bfloat16(bfloat16_to_float((uint16_t)(127u << 7 | (x & 0x7fu))) - 1.0f);
}

typedef union Group {
    uint16_t h[4];
    float f[4];
    double d[2];
    uint32_t u[4];
    uint64_t l[2];
} Group;

static void uniform_group(RandomType type, const uint32_t x[4], Group *out) {
    switch (type) {
        case RANDOM_HALF:
        case RANDOM_BFLOAT16:
            for (int i = 0; i < 4; i++) out->h[i] = uniform_16(type, x[i]);
            break;
        case RANDOM_FLOAT:
            for (int i = 0; i < 4; i++) out->f[i] = uniform_float(x[i]);
            break;
        case RANDOM_DOUBLE:
            for (int i = 0; i < 2; i++) out->d[i] = uniform_double(x[2 * i], x[2 * i + 1]);
            break;
        case RANDOM_INT32:
            memcpy(out->u, x, sizeof out->u);
            break;
        case RANDOM_INT64:
            for (int i = 0; i < 2; i++) out->l[i] = x[2 * i] | (uint64_t)x[2 * i + 1] << 32;
            break;
    }
}

static void normal_group(RandomType type, const uint32_t x[4], Group *out) {
    if (type == RANDOM_DOUBLE) {
        normal_pair_double(x, &out->d[0], &out->d[1]);
        return;
    }
    float f[4];
    normal_pair(x[0], x[1], &f[0], &f[1]);
    normal_pair(x[2], x[3], &f[2], &f[3]);
    for (int i = 0; i < 4; i++) {
        if (type == RANDOM_FLOAT) {
            out->f[i] = f[i];
        } else {
            out->h[i] = to_16(type, f[i]);
        }
    }
}

/* x are the first numbers of p. */
static void truncated_group(RandomType type, Philox p, const uint32_t x[4], Group *out) {
    philox_skip(&p, 1);
    PhiloxStream s = philox_stream(p);
    memcpy(s.group, x, sizeof s.group);
    s.used = 0;
    int wanted = type == RANDOM_DOUBLE ? 2 : 4, n = 0;
    while (n < wanted) {
        double pair[2];
        if (type == RANDOM_DOUBLE) {
            uint32_t drawn[4];
            for (int i = 0; i < 4; i++) drawn[i] = philox_stream_next(&s);
            normal_pair_double(drawn, &pair[0], &pair[1]);
        } else {
            uint32_t x0 = philox_stream_next(&s), x1 = philox_stream_next(&s);
            float a, b;
            normal_pair(x0, x1, &a, &b);
            pair[0] = a;
            pair[1] = b;
        }
        for (int i = 0; i < 2 && n < wanted; i++) {
            if (fabs(pair[i]) >= 2.0) continue;
            if (type == RANDOM_DOUBLE) {
                out->d[n++] = pair[i];
            } else if (type == RANDOM_FLOAT) {
                out->f[n++] = (float)pair[i];
            } else {
                out->h[n++] = to_16(type, (float)pair[i]);
            }
        }
    }
}

static void range_group(const RandomSpec *spec, const uint32_t x[4], Group *out) {
    uniform_group(spec->type, x, out);
    if (spec->type == RANDOM_INT32) {
        for (int i = 0; i < 4; i++) out->u[i] = (uint32_t)spec->low + out->u[i] % (uint32_t)spec->range;
    } else {
        for (int i = 0; i < 2; i++) out->l[i] = spec->low + out->l[i] % spec->range;
    }
}

typedef struct FillJob {
    const RandomSpec *spec;
    Philox start;
    char *to;
    int64_t n;
    int group;
    size_t size;
    uint64_t apart; /* how far the generator is skipped from group to group */
} FillJob;

/* Group i; x are its four numbers. */
static void make_group(const FillJob *job, int64_t i, const uint32_t x[4], Group *g) {
    switch (job->spec->kind) {
        case RANDOM_NORMAL:
            normal_group(job->spec->type, x, g);
            break;
        case RANDOM_RANGE:
            range_group(job->spec, x, g);
            break;
        case RANDOM_UNIFORM:
            uniform_group(job->spec->type, x, g);
            break;
        case RANDOM_TRUNCATED: {
            Philox own = job->start;
            philox_skip(&own, (uint64_t)i * job->apart);
            truncated_group(job->spec->type, own, x, g);
            break;
        }
    }
}

/* Groups [begin, end) of the numbers x, four each. */
static void fill_from(const FillJob *job, const uint32_t *x, int64_t begin, int64_t end) {
    const int64_t first = begin * job->group, left = job->n - first, count = (end - begin) * job->group;
    const bool uniform = job->spec->kind == RANDOM_UNIFORM;
    char *to = job->to + (size_t)first * job->size;
    if (uniform && job->spec->type == RANDOM_FLOAT) {
        uniform_floats(x, (float *)to, count < left ? count : left);
        return;
    }
    if (uniform && job->spec->type == RANDOM_DOUBLE) {
        uniform_doubles(x, (double *)to, count < left ? count : left);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        Group g;
        make_group(job, i, x + (i - begin) * 4, &g);
        int64_t at = i * job->group, n = job->n - at < job->group ? job->n - at : job->group;
        memcpy(job->to + (size_t)at * job->size, &g, (size_t)n * job->size);
    }
}

static void fill_groups(void *arg, int64_t begin, int64_t end) {
    enum { BLOCK = 128 };
    const FillJob *job = arg;
    uint32_t x[BLOCK * 4] = {0};
    Philox p = job->start;
    philox_skip(&p, (uint64_t)begin * job->apart);
    for (int64_t i = begin; i < end; i += BLOCK) {
        int64_t to = end - i < BLOCK ? end : i + BLOCK;
        philox_block(&p, job->apart, x, to - i);
        philox_skip(&p, BLOCK * job->apart);
        fill_from(job, x, i, to);
    }
}

void random_fill(ThreadPool *pool, const RandomSpec *spec, Philox start, void *to, int64_t n) {
    static const size_t sizes[] = {2, 2, 4, 8, 4, 8};
    FillJob job = {.spec = spec, .start = start, .to = to, .n = n, .size = sizes[spec->type]};
    job.group = job.size == 8 ? 2 : 4;
    job.apart = spec->kind == RANDOM_TRUNCATED ? (uint64_t)job.group * 256 / 4 : 1;
    threadpool_parallel_for(pool, (n + job.group - 1) / job.group, 1024, fill_groups, &job);
}

/* Doubles in [0, 1), two from each step of the generator, the second first. */
typedef struct Uniforms {
    Philox *p;
    double pair[2];
    int left;
} Uniforms;

static double next_uniform(Uniforms *u) {
    if (u->left == 0) {
        uint32_t x[4];
        philox_next(u->p, x);
        u->pair[0] = uniform_double(x[0], x[1]);
        u->pair[1] = uniform_double(x[2], x[3]);
        u->left = 2;
    }
    return u->pair[--u->left];
}

/* Marsaglia and Tsang: a transformed normal, accepted against a uniform. */
double random_gamma(Philox p, double alpha) {
    Uniforms u = {.p = &p};
    if (!(alpha >= 0)) return NAN;
    if (alpha == 1.0) return -log1p(-next_uniform(&u));
    bool small = alpha < 1;
    double d = alpha + (small ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d), normals[2];
    int left = 0;
    for (;;) {
        if (left == 0) {
            uint32_t x[4];
            philox_next(&p, x);
            normal_pair_double(x, &normals[0], &normals[1]);
            left = 2;
        }
        double x = normals[--left], v = 1 + c * x;
        if (v <= 0) continue;
        v = v * v * v;
        double accept = next_uniform(&u);
        if (accept < 1 - 0.0331 * (x * x) * (x * x) || log(accept) < 0.5 * x * x + d * (1 - v + log(v)))
            return small ? d * v * pow(next_uniform(&u), 1 / alpha) : d * v;
    }
}

/* Knuth's product of uniforms for small rates (0 for those below 0), Hormann's transformed rejection for others. */
double random_poisson(Philox p, double rate, double most) {
    if (!isfinite(rate)) return NAN;
    if (rate > most) return most;
    Uniforms uniforms = {.p = &p};
    if (rate < 10) {
        double limit = exp(-rate), product = 1, x = 0;
        for (;; x++) {
            product *= next_uniform(&uniforms);
            if (product <= limit && x <= most) return x;
        }
    }
    double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    double inv_alpha = 1.1239 + 1.1328 / (b - 3.4);
    for (;;) {
        double u = next_uniform(&uniforms) - 0.5, v = next_uniform(&uniforms), shifted = 0.5 - fabs(u);
        double k = floor((2 * a / shifted + b) * u + rate + 0.43);
        if (k > most) continue;
        if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
        if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
        double s = log(v * inv_alpha / (a / (shifted * shifted) + b));
        if (s <= -rate + k * log_rate - lgamma(k + 1)) return k;
    }
}

/* What Stirling's formula for log k! leaves out. */
static double stirling_rest(double k) {
    static const double small[] = {0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
                                   0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
    if (k <= 9) return small[k > 0 ? (int)k : 0];
    double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* Gaps between successes until there are more trials than count. */
static double binomial_by_gaps(Uniforms *u, double count, double probability) {
    double trials = 0, successes = 0;
    for (;; successes++) {
        trials += ceil(log(next_uniform(u)) / log1p(-probability));
        if (trials > count) return successes;
    }
}

/* Hormann's transformed rejection. */
double random_binomial(Philox p, double count, double probability, bool large_mean) {
    Uniforms uniforms = {.p = &p};
    if (!large_mean) return binomial_by_gaps(&uniforms, count, probability);
    double deviation = sqrt(count * probability * (1 - probability)), b = 1.15 + 2.53 * deviation;
    double a = -0.0873 + 0.0248 * b + 0.01 * probability, c = count * probability + 0.5, inside = 0.92 - 4.2 / b;
    double odds = probability / (1 - probability), alpha = (2.83 + 5.1 / b) * deviation, m = floor((count + 1) * probability);
    for (;;) {
        double u = next_uniform(&uniforms), v = next_uniform(&uniforms);
        u -= 0.5;
        double shifted = 0.5 - fabs(u), k = floor((2 * a / shifted + b) * u + c);
        if (shifted >= 0.07 && v <= inside) return k;
        if (k < 0 || k > count) continue;
        v = log(v * alpha / (a / (shifted * shifted) + b));
        double limit = (m + 0.5) * log((m + 1) / (odds * (count - m + 1))) + (count + 1) * log((count - m + 1) / (count - k + 1)) +
                       (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) + stirling_rest(m) + stirling_rest(count - m) -
                       stirling_rest(k) - stirling_rest(count - k);
        if (v <= limit) return k;
    }
}

void random_classes(PhiloxStream *s, double *logits, int64_t classes, int64_t samples, int64_t *out) {
    double most = -INFINITY, total = 0, *cdf = logits;
    for (int64_t i = 0; i < classes; i++) {
        if (isfinite(logits[i]) && logits[i] > most) most = logits[i];
    }
    for (int64_t i = 0; i < classes; i++) logits[i] = isfinite(logits[i]) ? logits[i] - most : -INFINITY;
    vector_exp_f64(cdf, logits, classes);
    for (int64_t i = 0; i < classes; i++) {
        total += cdf[i];
        cdf[i] = total;
    }
    for (int64_t i = 0; i < samples; i++) {
        uint32_t x0 = philox_stream_next(s), x1 = philox_stream_next(s);
        double wanted = uniform_double(x0, x1) * total;
        int64_t low = 0;
        for (int64_t left = classes; left > 0;) { /* the first that is above what is wanted, without jumps */
            const int64_t half = left / 2;
            const bool beyond = !(cdf[low + half] > wanted);
            low = beyond ? low + half + 1 : low;
            left = beyond ? left - half - 1 : half;
        }
        out[i] = low;
    }
}

void random_shuffle(Philox p, int64_t *items, int64_t n) {
    PhiloxStream s = philox_stream(p);
    for (int64_t i = 0; i + 1 < n; i++) {
        uint64_t x = philox_stream_next(&s);
        if (n - i > UINT32_MAX) x |= (uint64_t)philox_stream_next(&s) << 32;
        int64_t j = i + (int64_t)(x % (uint64_t)(n - i));
        int64_t t = items[i];
        items[i] = items[j];
        items[j] = t;
    }
}
