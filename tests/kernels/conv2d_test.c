/* conv2d_test.c: convolutions on oneDNN against plain C: all three passes, shared among any number of threads, floats and bfloat16. */
#include "kernels/conv2d.h"

#include <math.h>
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "kernels/cpu.h"
#include "unit_test.h"

static const Conv2dShape shapes[] = {
    {.batch = 1, .in_h = 4, .in_w = 5, .in_c = 1, .out_h = 4, .out_w = 5, .out_c = 1, .k_h = 3, .k_w = 3, .groups = 1,
     .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .pad_top = 1, .pad_left = 1},
    {.batch = 7, .in_h = 9, .in_w = 8, .in_c = 3, .out_h = 4, .out_w = 3, .out_c = 20, .k_h = 3, .k_w = 3, .groups = 1,
     .stride_h = 2, .stride_w = 2, .dilation_h = 1, .dilation_w = 1},
    {.batch = 5, .in_h = 7, .in_w = 7, .in_c = 6, .out_h = 7, .out_w = 7, .out_c = 12, .k_h = 3, .k_w = 3, .groups = 6,
     .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .pad_top = 1, .pad_left = 1},
    {.batch = 3, .in_h = 8, .in_w = 8, .in_c = 16, .out_h = 8, .out_w = 8, .out_c = 16, .k_h = 3, .k_w = 3, .groups = 1,
     .stride_h = 1, .stride_w = 1, .dilation_h = 2, .dilation_w = 2, .pad_top = 2, .pad_left = 2, .channels_first = 1},
    /* Enough for shares of unequal size, and for tails. */
    {.batch = 29, .in_h = 14, .in_w = 14, .in_c = 32, .out_h = 14, .out_w = 14, .out_c = 48, .k_h = 5, .k_w = 5, .groups = 1,
     .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .pad_top = 2, .pad_left = 2},
    /* As many channels as oneDNN has in a block: the filter is in its layout as it is. */
    {.batch = 6, .in_h = 9, .in_w = 7, .in_c = 16, .out_h = 9, .out_w = 7, .out_c = 16, .k_h = 3, .k_w = 3, .groups = 1,
     .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .pad_top = 1, .pad_left = 1},
    {.batch = 6, .in_h = 9, .in_w = 7, .in_c = 64, .out_h = 9, .out_w = 7, .out_c = 64, .k_h = 3, .k_w = 3, .groups = 1,
     .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .pad_top = 1, .pad_left = 1},
    /* A filter that does not stay in the cache. */
    {.batch = 25, .in_h = 4, .in_w = 4, .in_c = 128, .out_h = 4, .out_w = 4, .out_c = 160, .k_h = 3, .k_w = 3, .groups = 1,
     .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .pad_top = 1, .pad_left = 1},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* Image, filter and result: floats, and the same as bfloat16. */
typedef struct Arrays {
    int64_t count[3];
    float *wide[3];
    uint16_t *half[3];
} Arrays;

static Arrays arrays_new(const Conv2dShape *s) {
    Arrays a = {.count = {s->batch * s->in_h * s->in_w * s->in_c, s->k_h * s->k_w * (s->in_c / s->groups) * s->out_c,
                          s->batch * s->out_h * s->out_w * s->out_c}};
    for (int i = 0; i < 3; i++) {
        a.wide[i] = xmalloc((size_t)a.count[i] * sizeof(float));
        a.half[i] = xmalloc((size_t)a.count[i] * sizeof(uint16_t));
        for (int64_t j = 0; j < a.count[i]; j++) {
            a.half[i][j] = float_to_bfloat16((float)((j * 7919 + i * 31) % 2003 - 1000) / 1000);
            a.wide[i][j] = bfloat16_to_float(a.half[i][j]);
        }
    }
    return a;
}

static void arrays_clear(Arrays *a) {
    for (int i = 0; i < 3; i++) {
        free(a->wide[i]);
        free(a->half[i]);
    }
}

static _Atomic int64_t seen;
static void count_elements(void *arg, int64_t begin, int64_t end) {
    (void)arg;
    seen += end - begin;
}

/* Products that make one element of the result. */
static double terms_of(Conv2dKind kind, const Conv2dShape *s) {
    if (kind == CONV2D_BACK_FILTER) return (double)(s->batch * s->out_h * s->out_w);
    return (double)(s->k_h * s->k_w * (kind == CONV2D_FORWARD ? s->in_c : s->out_c) / s->groups);
}

static void check(const Conv2dShape *s, Conv2dKind kind, Conv2dType type, int threads) {
    const int result = kind == CONV2D_FORWARD ? 2 : kind == CONV2D_BACK_INPUT ? 0 : 1;
    Arrays a = arrays_new(s);
    ThreadPool *pool = threads > 1 ? threadpool_new("test", threads) : NULL;
    Conv2dCache *cache = conv2d_cache_new();
    void *data[3];
    for (int i = 0; i < 3; i++) data[i] = type == CONV2D_F32 ? (void *)a.wide[i] : (void *)a.half[i];
    for (int again = 0; again < 2; again++) {
        seen = 0;
        bool ok = conv2d_onednn(cache, kind, type, s, data[0], data[1], data[2], pool, (RangeCall){count_elements, NULL});
        if (type == CONV2D_F32) assert_true(ok);
        if (!ok) goto out; /* no fast way for this shape: the caller computes in float */
        if (kind == CONV2D_FORWARD) assert_int_equal(seen, a.count[2]);
    }
    float *got = xmalloc((size_t)a.count[result] * sizeof(float));
    for (int64_t i = 0; i < a.count[result]; i++) got[i] = type == CONV2D_F32 ? a.wide[result][i] : bfloat16_to_float(a.half[result][i]);
    double *exact[3]; /* sums of floats in plain C would be further off than oneDNN's */
    for (int i = 0; i < 3; i++) {
        exact[i] = xmalloc((size_t)a.count[i] * sizeof(double));
        for (int64_t j = 0; j < a.count[i]; j++) exact[i][j] = (double)a.wide[i][j];
    }
    conv2d_plain_f64(kind, s, exact[0], exact[1], exact[2]);
    double terms = terms_of(kind, s), slack = 3e-7 * (terms + 2);
    for (int64_t i = 0; i < a.count[result]; i++) {
        double want = exact[result][i], own = type == CONV2D_BF16 ? fabs(want) / 200 : 0;
        if (!(fabs((double)got[i] - want) <= slack + own))
            fail_msg("kind %d type %d threads %d: element %lld is %g, not %g", kind, type, threads, (long long)i, (double)got[i], want);
    }
    for (int i = 0; i < 3; i++) free(exact[i]);
    free(got);
out:
    conv2d_cache_free(cache);
    threadpool_free(pool);
    arrays_clear(&a);
}

static void every_pass_agrees_with_plain_c(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++)
        for (int kind = CONV2D_FORWARD; kind <= CONV2D_BACK_FILTER; kind++)
            for (int threads = 1; threads <= 5; threads += 2) check(&shapes[i], (Conv2dKind)kind, CONV2D_F32, threads);
}

static void bfloat16_is_rounded_once(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++)
        for (int kind = CONV2D_FORWARD; kind <= CONV2D_BACK_FILTER; kind++)
            for (int threads = 1; threads <= 5; threads += 2) check(&shapes[i], (Conv2dKind)kind, CONV2D_BF16, threads);
}

static void a_processor_without_bfloat16_is_told(void **state) {
    (void)state;
    Arrays a = arrays_new(&shapes[0]);
    Conv2dCache *cache = conv2d_cache_new();
    cpu_limit(CPU_AVX2);
    assert_false(conv2d_onednn(cache, CONV2D_FORWARD, CONV2D_BF16, &shapes[0], a.half[0], a.half[1], a.half[2], NULL, (RangeCall){0}));
    cpu_limit(CPU_AVX512);
    conv2d_cache_free(cache);
    arrays_clear(&a);
}

/* Doubles: each pass from the same arrays, by patches and in plain C. */
static void doubles_by_patches_agree_with_plain_c(void **state) {
    (void)state;
    ThreadPool *pool = threadpool_new("test", 3);
    for (int i = 0; i < SHAPES - 1; i++) {
        const Conv2dShape *s = &shapes[i];
        Arrays a = arrays_new(s);
        double *data[3], *want = NULL;
        for (int j = 0; j < 3; j++) {
            data[j] = xmalloc((size_t)a.count[j] * sizeof(double));
            for (int64_t n = 0; n < a.count[j]; n++) data[j][n] = (double)a.wide[j][n];
        }
        for (int kind = 0; kind < 3 && s->groups == 1 && !s->channels_first; kind++) {
            const int result = kind == CONV2D_FORWARD ? 2 : kind == CONV2D_BACK_INPUT ? 0 : 1;
            const size_t size = (size_t)a.count[result] * sizeof(double);
            conv2d_plain_f64((Conv2dKind)kind, s, data[0], data[1], data[2]);
            want = memcpy(xmalloc(size), data[result], size);
            memset(data[result], 0xff, size);
            assert_true(conv2d_patches_f64((Conv2dKind)kind, s, data[0], data[1], data[2], kind == i % 3 ? NULL : pool));
            for (int64_t n = 0; n < a.count[result]; n++) assert_true(fabs(data[result][n] - want[n]) <= 1e-12 * (1 + fabs(want[n])) * terms_of((Conv2dKind)kind, s));
            free(want);
        }
        for (int j = 0; j < 3; j++) free(data[j]);
        arrays_clear(&a);
    }
    assert_false(conv2d_patches_f64(CONV2D_FORWARD, &shapes[2], NULL, NULL, NULL, pool)); /* groups */
    threadpool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_agrees_with_plain_c),
        cmocka_unit_test(bfloat16_is_rounded_once),
        cmocka_unit_test(a_processor_without_bfloat16_is_told),
        cmocka_unit_test(doubles_by_patches_agree_with_plain_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
