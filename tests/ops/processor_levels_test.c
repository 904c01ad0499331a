/* processor_levels_test.c: element-wise ops, biases, reductions and transposes give the same bits with every instruction set this processor has. */
#include "direct_run.h"
#include "kernels/cpu.h"

enum { ROWS = 37, COLUMNS = 131 }; /* no multiple of a vector */

static Tensor *numbers(DataType type, const Shape *shape, int seed) {
    Tensor *t = NULL;
    expect_ok(tensor_new(type, shape, &t));
    for (int64_t i = 0; i < t->count; i++) {
        int v = (int)((i * 7919 + seed * 131) % 1999);
        if (type == DT_FLOAT) tensor_f32(t)[i] = (float)v / 300 - 3.1f;
        if (type == DT_DOUBLE) tensor_f64(t)[i] = (double)v / 300 - 3.1;
        if (type == DT_INT32) tensor_i32(t)[i] = v == 900 ? -1 : v - 900;
        if (type == DT_BFLOAT16) ((uint16_t *)t->data)[i] = (uint16_t)(0x3e00 + v % 600 + (v % 2 ? 0x8000 : 0));
        if (type == DT_HALF) ((uint16_t *)t->data)[i] = (uint16_t)(0x3000 + v + (v % 3 ? 0x8000 : 0));
    }
    if (type == DT_INT32) { /* with numbers of these seeds: the least one by -1, by 1 and by itself, and what doubles could round */
        static const int edges[][4] = {{0}, {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MAX}, {-1, 1, INT32_MIN, INT32_MAX - 1}, {0}};
        for (int i = 0; i < 4 && edges[seed][i]; i++) tensor_i32(t)[i] = edges[seed][i];
    }
    return t;
}

static const struct {
    const char *op, *inputs; /* of x, y (matrices), row (a vector), axis (of a reduction), perm (of a transpose) */
    bool floats_only;
} cases[] = {
    {"AddV2", "x,y", false},     {"AddV2", "x,row", false},   {"Sub", "row,x", false},    {"Mul", "x,y", false},      {"RealDiv", "x,y", true},
    {"Maximum", "x,y", false},   {"Minimum", "x,row", false}, {"SquaredDifference", "x,y", false}, {"Neg", "x", false}, {"Abs", "x", false},
    {"Square", "x", false},      {"Sqrt", "x", true},         {"Rsqrt", "x", true},         {"Reciprocal", "x", true},  {"Floor", "x", true},       {"Rint", "x", true},
    {"Relu", "x", false},        {"Relu6", "x", false},       {"ReluGrad", "x,y", false}, {"Softsign", "x", true},    {"BiasAdd", "x,row", false},
    {"BiasAddGrad", "x", false}, {"Sum", "x,axis", false},    {"Mean", "x,axis", false},  {"Max", "x,axis", false},   {"Prod", "row,axis", false},
    {"FloorDiv", "x,y", false},  {"FloorMod", "x,y", false},  {"TruncateDiv", "x,y", false}, {"AddN", "x,y", false},  {"AddN", "x,y,x", false}, {"Transpose", "x,perm", false},
};

static Tensor *run(DirectSession *s, Tensor *const *feeds) {
    Str names[] = {STR("x"), STR("y"), STR("row")}, fetch = STR("z");
    RunSignature sig = {.feeds = names, .feed_count = 3, .fetches = &fetch, .fetch_count = 1};
    Tensor *z = NULL;
    expect_ok(direct_session_run(s, &sig, feeds, &z, 60000));
    return z;
}

static void check(int i, DataType type, int axis) {
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", type);
    gb_placeholder(&b, "y", type);
    gb_placeholder(&b, "row", type);
    gb_i32(&b, "axis", axis);
    Shape pair = shape_vector(2);
    Tensor *perm = NULL;
    expect_ok(tensor_new(DT_INT32, &pair, &perm));
    tensor_i32(perm)[0] = 1;
    tensor_i32(perm)[1] = 0;
    gb_const(&b, "perm", perm, "");
    gb_op(&b, "z", cases[i].op, cases[i].inputs, type);
    if (strstr(cases[i].inputs, "axis")) gb_type(&b, "Tidx", DT_INT32);
    if (strstr(cases[i].inputs, "perm")) gb_type(&b, "Tperm", DT_INT32);
    if (strcmp(cases[i].op, "AddN") == 0) gb_int(&b, "N", strlen(cases[i].inputs) > 3 ? 3 : 2);
    DirectSession *s = NULL;
    ops_register_all();
    expect_ok(direct_session_new(gb_graph(&b), 2, &s));
    gb_clear(&b);
    Shape matrix = shape_matrix(ROWS, COLUMNS), vector = shape_vector(COLUMNS);
    Tensor *feeds[] = {numbers(type, &matrix, 1), numbers(type, &matrix, 2), numbers(type, &vector, 3)}, *want = NULL;
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        Tensor *got = run(s, feeds);
        if (want && memcmp(got->data, want->data, tensor_bytes(want)) != 0) fail_msg("%s of %s differs", cases[i].op, dtype_name(type));
        tensor_unref(want);
        want = got;
    }
    cpu_limit(CPU_AVX512);
    tensor_unref(want);
    for (int j = 0; j < 3; j++) tensor_unref(feeds[j]);
    direct_session_free(s);
}

static void levels_do_not_change_a_bit(void **state) {
    (void)state;
    static const DataType types[] = {DT_FLOAT, DT_DOUBLE, DT_BFLOAT16, DT_HALF, DT_INT32};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            if (cases[i].floats_only && types[t] == DT_INT32) continue;
            check((int)i, types[t], 0);
            if (strstr(cases[i].inputs, "x,axis")) check((int)i, types[t], 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(levels_do_not_change_a_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
