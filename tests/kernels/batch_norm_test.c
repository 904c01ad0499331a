/* batch_norm_test.c: every level of processors against sums in double, channels last and first, few and many of them. */
#include "kernels/batch_norm.h"

#include <math.h>
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "kernels/cpu.h"
#include "unit_test.h"

typedef struct Case {
    int64_t outer, channels, inner;
    float mean; /* of x */
} Case;

static const Case cases[] = {{1, 1, 1, 0},     {7, 3, 1, 0},     {1000, 16, 1, 5},  {5000, 64, 1, -3}, {33, 700, 1, 1},
                             {2049, 20, 1, 1000}, {4, 3, 50, 2}, {3, 40, 1000, -1}, {2, 1, 1, 0}};

typedef struct Data {
    BatchNorm b;
    int64_t count;
    float *x, *dy; /* as floats, also of half types */
    void *y;
    float *vectors; /* scale, offset, mean, variance, sum_dy, sum_dy_x */
} Data;

static void store(BatchNormType type, void *to, int64_t i, float v) {
    if (type == BATCH_NORM_F32) ((float *)to)[i] = v;
    if (type == BATCH_NORM_F16) ((uint16_t *)to)[i] = float_to_half(v);
    if (type == BATCH_NORM_BF16) ((uint16_t *)to)[i] = float_to_bfloat16(v);
}
static float load(BatchNormType type, const void *from, int64_t i) {
    if (type == BATCH_NORM_F32) return ((const float *)from)[i];
    return type == BATCH_NORM_F16 ? half_to_float(((const uint16_t *)from)[i]) : bfloat16_to_float(((const uint16_t *)from)[i]);
}

static Data make(const Case *c, BatchNormType type) {
    Data d = {.count = c->outer * c->channels * c->inner};
    d.x = xcalloc((size_t)d.count, sizeof(float));
    d.dy = xcalloc((size_t)d.count, sizeof(float));
    d.y = xcalloc((size_t)d.count, sizeof(float));
    d.vectors = xcalloc((size_t)c->channels * 6, sizeof(float));
    void *x = xcalloc((size_t)d.count, sizeof(float)), *dy = xcalloc((size_t)d.count, sizeof(float));
    srand(7);
    for (int64_t i = 0; i < d.count; i++) {
        store(type, x, i, c->mean + (float)(rand() % 2001 - 1000) / 500);
        store(type, dy, i, (float)(rand() % 2001 - 1000) / 1000);
        d.x[i] = load(type, x, i);
        d.dy[i] = load(type, dy, i);
    }
    float *v = d.vectors;
    for (int64_t i = 0; i < c->channels; i++) {
        v[i] = 1 + (float)(i % 5);
        v[c->channels + i] = (float)(i % 3) - 1;
    }
    int64_t n = c->channels;
    d.b = (BatchNorm){.type = type, .outer = c->outer, .channels = n, .inner = c->inner, .epsilon = 1e-3f, .x = x, .dy = dy, .y = d.y,
                      .scale = v, .offset = v + n, .mean = v + 2 * n, .variance = v + 3 * n, .sum_dy = v + 4 * n, .sum_dy_x = v + 5 * n,
                      .training = true};
    d.b.parts = xcalloc(batch_norm_part_count(&d.b) + 1, sizeof(double));
    return d;
}

static void clear(Data *d) {
    free((void *)d->b.x);
    free((void *)d->b.dy);
    free(d->x);
    free(d->dy);
    free(d->y);
    free(d->vectors);
    free(d->b.parts);
}

static void near(double got, double want, double slack) {
    if (fabs(got - want) <= slack * (1 + fabs(want))) return;
    print_message("got %.9g, want %.9g\n", got, want);
    fail();
}

static void check(const Case *c, BatchNormType type, ThreadPool *pool) {
    Data d = make(c, type);
    BatchNorm *b = &d.b;
    const double pixels = (double)(c->outer * c->inner), rough = type == BATCH_NORM_F32 ? 2e-6 : type == BATCH_NORM_F16 ? 2e-3 : 2e-2;
    batch_norm_moments(b, pool);
    batch_norm_normalize(b, pool);
    for (int64_t ch = 0; ch < c->channels; ch++) {
        double mean = 0, square = 0;
        for (int64_t o = 0; o < c->outer; o++)
            for (int64_t i = 0; i < c->inner; i++) mean += d.x[(o * c->channels + ch) * c->inner + i] / pixels;
        for (int64_t o = 0; o < c->outer; o++)
            for (int64_t i = 0; i < c->inner; i++) square += pow(d.x[(o * c->channels + ch) * c->inner + i] - mean, 2);
        near(b->mean[ch], mean, 1e-6);
        near(b->variance[ch], square / pixels, 2e-5);
        for (int64_t o = 0; o < c->outer; o++) {
            int64_t at = (o * c->channels + ch) * c->inner;
            double want = (d.x[at] - b->mean[ch]) * (b->scale[ch] / sqrt(b->variance[ch] + 1e-3)) + b->offset[ch];
            near(load(type, d.y, at), want, rough);
        }
    }
    batch_norm_sums(b, pool);
    batch_norm_grad(b, pool);
    for (int64_t ch = 0; ch < c->channels; ch++) {
        double sum = 0, sum_x = 0;
        for (int64_t o = 0; o < c->outer; o++) {
            for (int64_t i = 0; i < c->inner; i++) {
                int64_t at = (o * c->channels + ch) * c->inner + i;
                sum += d.dy[at];
                sum_x += (double)d.dy[at] * (d.x[at] - b->mean[ch]);
            }
        }
        near(b->sum_dy[ch], sum, 1e-5);
        near(b->sum_dy_x[ch], sum_x, 1e-4);
        double variance = b->variance[ch] + 1e-3;
        for (int64_t o = 0; o < c->outer; o++) {
            int64_t at = (o * c->channels + ch) * c->inner;
            double want = b->scale[ch] / sqrt(variance) * (d.dy[at] - sum / pixels - (d.x[at] - b->mean[ch]) * sum_x / pixels / variance);
            near(load(type, d.y, at), want, rough * 10);
        }
    }
    clear(&d);
}

static void every_level_agrees_with_double(void **state) {
    (void)state;
    ThreadPool *pool = threadpool_new("test", 3);
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            check(&cases[i], BATCH_NORM_F32, pool);
            if (cases[i].mean > 100) continue; /* more than half types can hold */
            check(&cases[i], BATCH_NORM_F16, NULL);
            check(&cases[i], BATCH_NORM_BF16, pool);
        }
    }
    cpu_limit(CPU_AVX512);
    threadpool_free(pool);
}

/* All results one after the other. */
static float *results(const Case *c, ThreadPool *pool, size_t *count) {
    Data d = make(c, BATCH_NORM_F32);
    batch_norm_moments(&d.b, pool);
    batch_norm_normalize(&d.b, pool);
    *count = (size_t)(2 * d.count + 6 * c->channels);
    float *all = xcalloc(*count, sizeof(float));
    memcpy(all, d.y, (size_t)d.count * sizeof(float));
    batch_norm_sums(&d.b, pool);
    batch_norm_grad(&d.b, pool);
    memcpy(all + d.count, d.y, (size_t)d.count * sizeof(float));
    memcpy(all + 2 * d.count, d.vectors, (size_t)c->channels * 6 * sizeof(float));
    clear(&d);
    return all;
}

static void levels_and_threads_do_not_change_a_bit(void **state) {
    (void)state;
    ThreadPool *pool = threadpool_new("test", 4);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t count;
        cpu_limit(CPU_PLAIN);
        float *want = results(&cases[i], NULL, &count);
        for (int level = 0; level < CPU_LEVELS; level++) {
            cpu_limit((CpuLevel)level);
            float *got = results(&cases[i], pool, &count);
            assert_memory_equal(got, want, count * sizeof(float));
            free(got);
        }
        free(want);
    }
    cpu_limit(CPU_AVX512);
    threadpool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_agrees_with_double),
        cmocka_unit_test(levels_and_threads_do_not_change_a_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
