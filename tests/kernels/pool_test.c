/* pool_test.c: channels last, at every level of processors, against channels first, which goes pixel by pixel. */
#include "kernels/pool.h"

#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "kernels/cpu.h"
#include "unit_test.h"

static const PoolShape shapes[] = {
    {.batch = 2, .channels = 3, .in = {1, 5, 7}, .out = {1, 3, 4}, .k = {1, 2, 2}, .stride = {1, 2, 2}},
    {.batch = 1, .channels = 70, .in = {1, 6, 6}, .out = {1, 6, 6}, .k = {1, 3, 3}, .stride = {1, 1, 1}, .pad = {0, 1, 1}},
    {.batch = 3, .channels = 16, .in = {4, 4, 4}, .out = {2, 2, 2}, .k = {2, 2, 2}, .stride = {2, 2, 2}},
    {.batch = 1, .channels = 32, .in = {1, 9, 9}, .out = {1, 4, 4}, .k = {1, 3, 3}, .stride = {1, 2, 2}},
    {.batch = 2, .channels = 48, .in = {1, 5, 23}, .out = {1, 5, 23}, .k = {1, 3, 3}, .stride = {1, 1, 1}, .pad = {0, 1, 1}},
    {.batch = 1, .channels = 16, .in = {2, 5, 21}, .out = {2, 3, 11}, .k = {2, 3, 3}, .stride = {1, 2, 2}, .pad = {0, 1, 1}},
    {.batch = 1, .channels = 32, .in = {1, 4, 14}, .out = {1, 4, 15}, .k = {1, 2, 5}, .stride = {1, 1, 1}, .pad = {0, 1, 3}},
    {.batch = 1, .channels = 1, .in = {1, 1, 1}, .out = {1, 1, 1}, .k = {1, 1, 1}, .stride = {1, 1, 1}},
};

static int64_t area(const int64_t *d) {
    return d[0] * d[1] * d[2];
}

/* Between batch x pixels x channels and batch x channels x pixels. */
static float *turned(const float *from, int64_t batch, int64_t rows, int64_t columns) {
    float *to = xcalloc((size_t)(batch * rows * columns), sizeof *to);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++) to[(b * columns + c) * rows + r] = from[(b * rows + r) * columns + c];
    return to;
}

static float *numbers(int64_t n, int different) {
    float *x = xcalloc((size_t)n, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(rand() % different) - (float)different / 2;
    return x;
}

static void expect_turned(const float *last, const float *first, int64_t batch, int64_t pixels, int64_t channels) {
    float *want = turned(first, batch, channels, pixels);
    assert_memory_equal(last, want, (size_t)(batch * pixels * channels) * sizeof(float));
    free(want);
}

static void check(const PoolShape *last) {
    PoolShape first = *last;
    first.channels_first = true;
    int64_t b = last->batch, c = last->channels, in = area(last->in), out = area(last->out);
    float *x = numbers(b * in * c, 6), *dz = numbers(b * out * c, 100); /* few values: many maxima are equal */
    float *x_first = turned(x, b, in, c), *dz_first = turned(dz, b, out, c);
    float *z = xcalloc((size_t)(b * out * c), sizeof *z), *z_first = xcalloc((size_t)(b * out * c), sizeof *z);
    float *dx = xcalloc((size_t)(b * in * c), sizeof *dx), *dx_first = xcalloc((size_t)(b * in * c), sizeof *dx);
    pool_max_f32(last, 0, b, z, x, NULL);
    pool_max_f32(&first, 0, b, z_first, x_first, NULL);
    expect_turned(z, z_first, b, out, c);
    pool_max_grad_f32(last, 0, b, dx, x, dz);
    pool_max_grad_f32(&first, 0, b, dx_first, x_first, dz_first);
    expect_turned(dx, dx_first, b, in, c);
    pool_avg_f32(last, 0, b, z, x);
    pool_avg_f32(&first, 0, b, z_first, x_first);
    expect_turned(z, z_first, b, out, c);
    pool_avg_grad_f32(last, 0, b, dx, dz);
    pool_avg_grad_f32(&first, 0, b, dx_first, dz_first);
    expect_turned(dx, dx_first, b, in, c);
    float *all[] = {x, dz, x_first, dz_first, z, z_first, dx, dx_first};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

static void every_level_agrees_with_single_elements(void **state) {
    (void)state;
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check(&shapes[i]);
    }
    cpu_limit(CPU_AVX512);
}

static void half_types_round_each_sum(void **state) {
    (void)state;
    const PoolShape s = {.batch = 1, .channels = 2, .in = {1, 1, 2}, .out = {1, 1, 2}, .k = {1, 1, 2}, .stride = {1, 1, 1}};
    /* Both windows have their maximum at the second pixel. */
    const uint16_t x[4] = {float_to_bfloat16(1), float_to_bfloat16(1), float_to_bfloat16(2), float_to_bfloat16(3)};
    const uint16_t dz[4] = {float_to_bfloat16(256), float_to_bfloat16(1), float_to_bfloat16(1), float_to_bfloat16(2)};
    for (int level = 0; level < CPU_LEVELS; level++) {
        uint16_t dx[4];
        cpu_limit((CpuLevel)level);
        pool_max_grad_bf16(&s, 0, 1, dx, x, dz);
        assert_int_equal(dx[0], 0);
        assert_int_equal(dx[1], 0);
        assert_int_equal(dx[2], float_to_bfloat16(256)); /* 257 has more digits than there are */
        assert_int_equal(dx[3], float_to_bfloat16(3));
    }
    cpu_limit(CPU_AVX512);
}

static void gradient_of_an_empty_pool_is_zero(void **state) {
    (void)state;
    const PoolShape s = {.batch = 1, .channels = 2, .in = {1, 1, 2}, .out = {1, 1, 0}, .k = {1, 1, 3}, .stride = {1, 1, 1}};
    const float x[4] = {1, 2, 3, 4}, dz[1] = {0};
    for (int level = 0; level < CPU_LEVELS; level++) {
        float max[4] = {7, 7, 7, 7}, avg[4] = {7, 7, 7, 7};
        cpu_limit((CpuLevel)level);
        pool_max_grad_f32(&s, 0, 1, max, x, dz);
        pool_avg_grad_f32(&s, 0, 1, avg, dz);
        for (int i = 0; i < 4; i++) assert_true(max[i] == 0 && avg[i] == 0);
    }
    cpu_limit(CPU_AVX512);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_agrees_with_single_elements),
        cmocka_unit_test(half_types_round_each_sum),
        cmocka_unit_test(gradient_of_an_empty_pool_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
