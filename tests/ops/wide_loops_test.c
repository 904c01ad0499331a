/* wide_loops_test.c: loops compiled for each level of processors give, at each of them and at the edges of blocks, what the same done one by one gives. */
#include <complex.h>
#include <math.h>

#include "direct_run.h"
#include "kernels/cpu.h"

enum { MOST_FEEDS = 6 };
static const char *const FEEDS[MOST_FEEDS] = {"x", "y", "p", "q", "r", "s"};

static void placeholders(GraphBuilder *b, Tensor *const *feeds, int n) {
    for (int i = 0; i < n; i++) gb_placeholder(b, FEEDS[i], feeds[i]->dtype);
}

static Tensor *run(DirectSession *s, const char *fetch, Tensor *const *feeds, int n) {
    Str names[MOST_FEEDS], fetches[] = {str_of(fetch)};
    for (int i = 0; i < n; i++) names[i] = str_of(FEEDS[i]);
    RunSignature sig = {.feeds = names, .feed_count = n, .fetches = fetches, .fetch_count = 1};
    Tensor *z = NULL;
    expect_ok(direct_session_run(s, &sig, feeds, &z, 60000));
    return z;
}

static Tensor *new_tensor(DataType type, const Shape *shape) {
    Tensor *t = NULL;
    expect_ok(tensor_new(type, shape, &t));
    return t;
}
static Tensor *new_vector(DataType type, int64_t n) {
    const Shape shape = shape_vector(n);
    return new_tensor(type, &shape);
}

static const float EDGES[] = {0.0f,      -0.0f,         0.4f,          -0.6f,          1e-30f,   INFINITY,       -INFINITY,      NAN,           127.5f,         -128.7f,
                              254.5f,    255.5f,        65535.5f,      -32769.0f,      0x1p31f,  -0x1p31f,       0x1.fffffep30f, 0x1p32f,       0x1.fffffep31f, -0x1.000002p31f,
                              0x1p63f,   -0x1p63f,      0x1.fffffep62f, 0x1p64f,       3e38f,    -3e38f,         16777217.0f,    -16777215.0f};
enum { EDGE_COUNT = sizeof EDGES / sizeof EDGES[0], N = 1003 };
static float edge(int64_t i) {
    return i % 3 ? (float)(i * 7919 % 2003) / 7 - 140 : EDGES[i / 3 % EDGE_COUNT];
}

/* What is fetched is the same at each level; returned, of the last one. */
static Tensor *same_at_all_levels(GraphBuilder *b, const char *fetch, Tensor *const *feeds, int n) {
    DirectSession *s = open_session(b, 2);
    Tensor *want = NULL;
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        Tensor *got = run(s, fetch, feeds, n);
        if (want) assert_int_equal(got->count, want->count);
        if (want) assert_memory_equal(got->data, want->data, tensor_bytes(want));
        tensor_unref(want);
        want = got;
    }
    cpu_limit(CPU_AVX512);
    direct_session_free(s);
    return want;
}

static Tensor *cast_to(Tensor *x, DataType to) {
    GraphBuilder b = {0};
    placeholders(&b, &x, 1);
    gb_node(&b, "z", "Cast", "x");
    gb_type(&b, "SrcT", x->dtype);
    gb_type(&b, "DstT", to);
    return same_at_all_levels(&b, "z", &x, 1);
}

/* As x86 converts: what does not fit is the least number. */
static int32_t int32_of(double v) {
    return v > -2147483649.0 && v < 2147483648.0 ? (int32_t)v : INT32_MIN;
}

static void floats_become_integers(void **state) {
    (void)state;
    static const DataType to[] = {DT_INT32, DT_INT64, DT_UINT32, DT_UINT64, DT_INT8, DT_UINT8, DT_INT16, DT_UINT16, DT_BOOL, DT_DOUBLE, DT_COMPLEX64};
    Tensor *x = new_vector(DT_FLOAT, N), *wide = new_vector(DT_DOUBLE, N), *brain = new_vector(DT_BFLOAT16, N);
    for (int i = 0; i < N; i++) {
        tensor_f32(x)[i] = edge(i);
        tensor_f64(wide)[i] = (double)edge(i) + (i % 5 ? 0.25 : 0);
        ((uint16_t *)brain->data)[i] = (uint16_t)(i * 65);
    }
    for (size_t t = 0; t < sizeof to / sizeof to[0]; t++) {
        Tensor *z = cast_to(x, to[t]), *of_wide = to[t] == DT_DOUBLE ? NULL : cast_to(wide, to[t]), *of_brain = cast_to(brain, to[t]);
        for (int i = 0; i < N && to[t] == DT_INT32; i++) {
            assert_int_equal(tensor_i32(z)[i], int32_of((double)tensor_f32(x)[i]));
            assert_int_equal(tensor_i32(of_wide)[i], int32_of(tensor_f64(wide)[i]));
        }
        tensor_unref(z);
        tensor_unref(of_wide);
        tensor_unref(of_brain);
    }
    tensor_unref(x);
    tensor_unref(wide);
    tensor_unref(brain);
}

static float _Complex complex_of(float real, float imag) {
    float _Complex z;
    __real__ z = real;
    __imag__ z = imag;
    return z;
}

/* Products of infinities, which are more than their four products say, in some blocks; a single number on either side too. */
static void complex_numbers_are_multiplied(void **state) {
    (void)state;
    for (int fixed = 0; fixed < 3; fixed++) {
        Tensor *feeds[] = {new_vector(DT_COMPLEX64, fixed == 1 ? 1 : 3 * N), new_vector(DT_COMPLEX64, fixed == 2 ? 1 : 3 * N)};
        float _Complex *x = feeds[0]->data, *y = feeds[1]->data;
        for (int64_t i = 0; i < feeds[0]->count; i++) x[i] = i < N ? complex_of(edge(i), edge(i + 31)) : complex_of((float)i / 3, -2);
        for (int64_t i = 0; i < feeds[1]->count; i++) y[i] = i < N ? complex_of(edge(i / 7 + 2), edge(3 * i)) : complex_of(7, (float)i / 9);
        GraphBuilder b = {0};
        placeholders(&b, feeds, 2);
        gb_op(&b, "z", "Mul", "x,y", DT_COMPLEX64);
        Tensor *z = same_at_all_levels(&b, "z", feeds, 2);
        const float _Complex *got = z->data;
        for (int64_t i = 0; i < z->count; i++) {
            const float _Complex want = x[fixed == 1 ? 0 : i] * y[fixed == 2 ? 0 : i];
            assert_true(isnan(crealf(want)) ? isnan(crealf(got[i])) : crealf(want) == crealf(got[i]));
            assert_true(isnan(cimagf(want)) ? isnan(cimagf(got[i])) : cimagf(want) == cimagf(got[i]));
        }
        tensor_unref(z);
        for (int i = 0; i < 2; i++) tensor_unref(feeds[i]);
    }
}

/* Where compilers see sums and differences in turns. */
static void complex_doubles_do_not_depend_on_the_processor(void **state) {
    (void)state;
    static const char *const ops[] = {"Mul", "MulNoNan", "Xlogy", "SquaredDifference", "SigmoidGrad", "RsqrtGrad", "TanhGrad", "InvGrad"};
    Tensor *feeds[] = {new_vector(DT_COMPLEX128, N), new_vector(DT_COMPLEX128, N)};
    for (int i = 0; i < 2 * N; i++) {
        ((double *)feeds[0]->data)[i] = cos(i) * 1.3;
        ((double *)feeds[1]->data)[i] = sin(3 * i + 1) * 1.7;
    }
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        GraphBuilder b = {0};
        placeholders(&b, feeds, 2);
        gb_op(&b, "z", ops[i], "x,y", DT_COMPLEX128);
        tensor_unref(same_at_all_levels(&b, "z", feeds, 2));
    }
    for (int i = 0; i < 2; i++) tensor_unref(feeds[i]);
}

static void parts_become_complex_numbers(void **state) {
    (void)state;
    for (int fixed = 0; fixed < 2; fixed++) {
        Tensor *feeds[] = {new_vector(DT_FLOAT, N), new_vector(DT_FLOAT, fixed ? 1 : N)};
        for (int i = 0; i < N; i++) tensor_f32(feeds[0])[i] = edge(i);
        for (int i = 0; i < feeds[1]->count; i++) tensor_f32(feeds[1])[i] = edge(i + 2);
        GraphBuilder b = {0};
        placeholders(&b, feeds, 2);
        gb_op(&b, "z", "Complex", "x,y", DT_FLOAT);
        gb_type(&b, "Tout", DT_COMPLEX64);
        Tensor *z = same_at_all_levels(&b, "z", feeds, 2);
        for (int i = 0; i < N; i++) {
            assert_memory_equal((float *)z->data + 2 * i, tensor_f32(feeds[0]) + i, sizeof(float));
            assert_memory_equal((float *)z->data + 2 * i + 1, tensor_f32(feeds[1]) + (fixed ? 0 : i), sizeof(float));
        }
        tensor_unref(z);
        for (int i = 0; i < 2; i++) tensor_unref(feeds[i]);
    }
}

/* Halves away from zero, as MIN_COMBINED rounds signed numbers. */
static double away(float v) {
    return (double)truncf(v + copysignf(0x1.fffffep-2f, v));
}

static void numbers_are_quantized(void **state) {
    (void)state;
    static const struct {
        const char *mode, *round;
    } how[] = {{"MIN_COMBINED", "HALF_AWAY_FROM_ZERO"}, {"MIN_FIRST", "HALF_AWAY_FROM_ZERO"}, {"SCALED", "HALF_AWAY_FROM_ZERO"}, {"SCALED", "HALF_TO_EVEN"}};
    static const DataType to[] = {DT_QUINT8, DT_QINT8, DT_QUINT16, DT_QINT16, DT_QINT32};
    Tensor *feeds[] = {new_vector(DT_FLOAT, N), tensor_scalar_f32(-100), tensor_scalar_f32(90)};
    for (int i = 0; i < N; i++) tensor_f32(feeds[0])[i] = edge(i);
    for (size_t h = 0; h < sizeof how / sizeof how[0]; h++) {
        for (size_t t = 0; t < sizeof to / sizeof to[0]; t++) {
            GraphBuilder b = {0};
            placeholders(&b, feeds, 3);
            gb_op(&b, "z", "QuantizeV2", "x,y,p", to[t]);
            gb_string(&b, "mode", how[h].mode);
            gb_string(&b, "round_mode", how[h].round);
            Tensor *z = same_at_all_levels(&b, "z", feeds, 3);
            for (int i = 0; i < N && h == 0 && to[t] == DT_QINT8; i++) {
                const float v = fminf(isnan(edge(i)) ? 90 : edge(i), 90), scale = (float)(255.0 / (90.0 + 100.0));
                assert_int_equal(((int8_t *)z->data)[i], (int)fmin(127, fmax(-128, away((fmaxf(v, -100) + 100) * scale - 128))));
            }
            tensor_unref(z);
        }
    }
    for (int i = 0; i < 3; i++) tensor_unref(feeds[i]);
}

/* More rows than are added up at once; whole blocks of columns, narrow ones and single ones. */
static void gradients_of_biases_add_up_in_order(void **state) {
    (void)state;
    enum { ROWS = 601, COLUMNS = 64 + 16 + 3 };
    const Shape shape = shape_matrix(ROWS, COLUMNS);
    Tensor *x = new_tensor(DT_FLOAT, &shape);
    for (int i = 0; i < ROWS * COLUMNS; i++) tensor_f32(x)[i] = (float)(i * 7919 % 2003) / 7 - 140;
    GraphBuilder b = {0};
    placeholders(&b, &x, 1);
    gb_op(&b, "z", "BiasAddGrad", "x", DT_FLOAT);
    Tensor *z = same_at_all_levels(&b, "z", &x, 1);
    for (int c = 0; c < COLUMNS; c++) {
        float sum = 0;
        for (int r = 0; r < ROWS; r++) sum += tensor_f32(x)[r * COLUMNS + c];
        assert_true(tensor_f32(z)[c] == sum);
    }
    tensor_unref(z);
    tensor_unref(x);
}

/* Any radius, that of no neighbours and one beyond the channels among them. */
static void responses_are_normalised(void **state) {
    (void)state;
    enum { PIXELS = 77 };
    for (int channels = 1; channels < 40; channels += 6) {
        for (int radius = 0; radius < 8; radius++) {
            const Shape shape = {.rank = 4, .dims = {1, 1, PIXELS, channels}};
            Tensor *x = new_tensor(DT_FLOAT, &shape);
            for (int i = 0; i < PIXELS * channels; i++) tensor_f32(x)[i] = (float)(i * 7919 % 2003) / 1000 - 1;
            GraphBuilder b = {0};
            placeholders(&b, &x, 1);
            gb_op(&b, "z", "LRN", "x", DT_FLOAT);
            gb_int(&b, "depth_radius", radius);
            Tensor *z = same_at_all_levels(&b, "z", &x, 1);
            for (int i = 0; i < PIXELS * channels; i++) {
                const int c = i % channels;
                double sum = 0;
                for (int d = -radius; d <= radius; d++)
                    if (c + d >= 0 && c + d < channels) sum += pow((double)tensor_f32(x)[i + d], 2);
                const double want = (double)tensor_f32(x)[i] / sqrt(1 + sum);
                assert_true(fabs((double)tensor_f32(z)[i] - want) <= 1e-6 * fabs(want));
            }
            tensor_unref(z);
            tensor_unref(x);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_become_integers),           cmocka_unit_test(complex_numbers_are_multiplied), cmocka_unit_test(parts_become_complex_numbers), cmocka_unit_test(numbers_are_quantized),
        cmocka_unit_test(complex_doubles_do_not_depend_on_the_processor),
        cmocka_unit_test(gradients_of_biases_add_up_in_order), cmocka_unit_test(responses_are_normalised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
