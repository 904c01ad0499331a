/* random_graph_test.c: random graphs give the same bits with passes and without.

   usage: random_graph_test [FIRST-SEED COUNT]. Values include NaN, infinities, -0 and denormal numbers. */
#include <stdlib.h>

#include "direct_run.h"

enum { MAX_NODES = 60, MAX_FEEDS = 6, MAX_FETCHES = 5, GRAPHS = 150 };

typedef struct Random {
    uint64_t state;
} Random;

static uint32_t next(Random *r) {
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = r->state;
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    return (uint32_t)(x >> 32);
}

static int below(Random *r, int n) {
    return (int)(next(r) % (uint32_t)n);
}

/* A value of the graph under construction. Every shape is one of rows x columns or broadcasts with it. */
typedef struct Made {
    char name[24];
    Shape shape;
} Made;

typedef struct Generator {
    Random random;
    GraphBuilder b;
    DataType type;
    int rows, columns;
    Made made[MAX_NODES];
    int count, constants;
    Tensor *feeds[MAX_FEEDS];
    Str feed_names[MAX_FEEDS];
    int feed_count;
} Generator;

static const DataType types[] = {DT_FLOAT, DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_INT32};

static void fill(Generator *g, Tensor *t) {
    static const float special[] = {0, -0.0f, 1, -1, 2, 0.5f, 1e30f, -1e-40f, 3.25f, -7};
    for (int64_t i = 0; i < t->count; i++) {
        double v = below(&g->random, 3) ? special[below(&g->random, 10)] : (double)below(&g->random, 1000) / 64 - 7;
        int odd = below(&g->random, 24);
        if (odd == 0) v = (double)__builtin_nanf("");
        if (odd == 1) v = (double)__builtin_inff();
        if (t->dtype == DT_FLOAT) tensor_f32(t)[i] = (float)v;
        else if (t->dtype == DT_DOUBLE) tensor_f64(t)[i] = v;
        else if (t->dtype == DT_INT32) tensor_i32(t)[i] = below(&g->random, 7) - 3;
        else ((uint16_t *)t->data)[i] = (uint16_t)next(&g->random); /* any bits are a half or a bfloat16 */
    }
}

static Shape random_shape(Generator *g) {
    switch (below(&g->random, 6)) {
        case 0: return SHAPE_SCALAR;
        case 1: return shape_vector(g->columns);
        case 2: return shape_vector(1);
        case 3: return (Shape){.rank = 2, .dims = {g->rows, 1}};
        default: return (Shape){.rank = 2, .dims = {g->rows, g->columns}};
    }
}

static Made *add(Generator *g, const char *prefix, const Shape *shape) {
    Made *m = &g->made[g->count];
    snprintf(m->name, sizeof m->name, "%s%d", prefix, g->count++);
    m->shape = *shape;
    return m;
}

static Tensor *random_tensor(Generator *g, const Shape *shape) {
    Tensor *t = NULL;
    expect_ok(tensor_new(g->type, shape, &t));
    fill(g, t);
    return t;
}

static void add_leaf(Generator *g, bool fed) {
    Shape shape = random_shape(g);
    Made *m = add(g, fed ? "feed" : "const", &shape);
    Tensor *t = random_tensor(g, &shape);
    if (!fed) {
        if (below(&g->random, 3) == 0 && shape.rank == 0 && g->type == DT_FLOAT) tensor_f32(t)[0] = below(&g->random, 2) ? 1 : -0.0f;
        gb_const(&g->b, m->name, t, "");
        return;
    }
    gb_placeholder(&g->b, m->name, g->type);
    g->feeds[g->feed_count] = t;
    g->feed_names[g->feed_count++] = str_of(m->name);
}

static Shape broadcast(const Shape *a, const Shape *b) {
    Shape out = a->rank > b->rank ? *a : *b;
    for (int d = 1; d <= out.rank; d++) {
        int64_t x = d <= a->rank ? a->dims[a->rank - d] : 1, y = d <= b->rank ? b->dims[b->rank - d] : 1;
        out.dims[out.rank - d] = x == 1 ? y : x;
    }
    return out;
}

static const Made *pick(Generator *g) {
    int from = g->count > 12 && below(&g->random, 3) ? g->count - 12 : 0; /* mostly recent ones: chains */
    return &g->made[from + below(&g->random, g->count - from)];
}

static void add_constant(Generator *g, char *name, size_t size, const Shape *shape) {
    snprintf(name, size, "own%d", g->constants++);
    gb_const(&g->b, name, random_tensor(g, shape), "");
}

static void add_cast(Generator *g, const char *name, const char *input, DataType from, DataType to) {
    gb_node(&g->b, name, "Cast", input);
    gb_type(&g->b, "SrcT", from);
    gb_type(&g->b, "DstT", to);
}

/* Nodes of other types in between, and products. */
static void add_mixed(Generator *g, int kind, const Made *x, const Made *y) {
    static const char *const tests[] = {"Less", "GreaterEqual", "NotEqual", "Greater"};
    static const DataType between[] = {DT_DOUBLE, DT_FLOAT, DT_INT32, DT_INT64, DT_BOOL};
    char inputs[100], own[2][24];
    Shape scalar = SHAPE_SCALAR, both = broadcast(&x->shape, &y->shape), square = shape_matrix(g->columns, g->columns), row = shape_vector(g->columns);
    snprintf(own[0], sizeof own[0], "own%d", g->constants++);
    snprintf(inputs, sizeof inputs, "%s,%s", x->name, y->name);
    if (kind == 10) {
        Made *m = add(g, "s", &both);
        gb_op(&g->b, own[0], tests[below(&g->random, 4)], inputs, g->type);
        snprintf(inputs, sizeof inputs, "%s,%s,%s", own[0], x->name, y->name);
        gb_op(&g->b, m->name, "SelectV2", inputs, g->type);
    } else if (kind == 11) {
        Made *m = add(g, "c", &x->shape);
        DataType to = between[below(&g->random, 5)];
        if (to == g->type) to = DT_INT64;
        add_cast(g, own[0], x->name, g->type, to);
        add_cast(g, m->name, own[0], to, g->type);
    } else if (kind == 12) {
        Made *m = add(g, "l", &x->shape);
        for (int i = 0; i < 2; i++) add_constant(g, own[i], sizeof own[i], &scalar);
        snprintf(inputs, sizeof inputs, "%s,%s,%s", x->name, own[0], own[1]);
        gb_op(&g->b, m->name, "ClipByValue", inputs, g->type);
    } else if (x->shape.rank == 2 && x->shape.dims[0] == g->rows && x->shape.dims[1] == g->columns) {
        Made *m = add(g, "p", &x->shape);
        for (int i = 0; i < 2; i++) add_constant(g, own[i], sizeof own[i], i ? &row : &square);
        char product[24];
        snprintf(product, sizeof product, "own%d", g->constants++);
        snprintf(inputs, sizeof inputs, "%s,%s", x->name, own[0]);
        gb_op(&g->b, product, "MatMul", inputs, g->type);
        snprintf(inputs, sizeof inputs, "%s,%s", product, own[1]);
        gb_op(&g->b, m->name, below(&g->random, 2) ? "BiasAdd" : "AddV2", inputs, g->type);
    }
}

static void add_node(Generator *g) {
    static const char *const unary[] = {"Neg", "Square", "Identity", "Relu", "Abs", "StopGradient", "Exp", "Tanh", "Sigmoid", "Sqrt", "Softplus", "Floor", "Reciprocal", "Rsqrt", "Elu", "Log"};
    static const char *const binary[] = {"AddV2", "Mul", "Sub", "Maximum", "Minimum", "SquaredDifference", "RealDiv", "DivNoNan"};
    bool is_int = g->type == DT_INT32;
    const Made *x = pick(g), *y = pick(g);
    char inputs[100];
    int kind = below(&g->random, 14);
    if (kind >= 10) {
        add_mixed(g, kind, x, y);
    } else if (kind < 4) {
        Made *m = add(g, "u", &x->shape);
        gb_op(&g->b, m->name, unary[below(&g->random, is_int ? 6 : 16)], x->name, g->type);
    } else if (kind < 8) {
        Shape shape = broadcast(&x->shape, &y->shape);
        snprintf(inputs, sizeof inputs, "%s,%s", x->name, y->name);
        Made *m = add(g, "b", &shape);
        gb_op(&g->b, m->name, binary[below(&g->random, is_int ? 6 : 8)], inputs, g->type);
    } else if (kind == 8 && !is_int && shape_eq(&x->shape, &y->shape)) {
        snprintf(inputs, sizeof inputs, "%s,%s", x->name, y->name);
        Made *m = add(g, "g", &x->shape);
        gb_op(&g->b, m->name, below(&g->random, 2) ? "TanhGrad" : "ReluGrad", inputs, g->type);
    } else {
        snprintf(inputs, sizeof inputs, "%s,^%s", x->name, y->name);
        Made *m = add(g, "i", &x->shape);
        gb_op(&g->b, m->name, "Identity", inputs, g->type);
    }
}

static void generate(Generator *g, uint64_t seed) {
    *g = (Generator){.random = {seed}};
    g->type = types[below(&g->random, 6)];
    bool large = below(&g->random, 8) == 0;
    g->rows = large ? 300 : 1 + below(&g->random, 4);
    g->columns = large ? 257 : 1 + below(&g->random, 5);
    for (int i = 0; i < 3; i++) add_leaf(g, false);
    for (int i = 0; i < 3; i++) add_leaf(g, true);
    int nodes = 10 + below(&g->random, MAX_NODES - 20);
    while (g->count < nodes) add_node(g);
}

static Error *run(Generator *g, Str def, unsigned disabled, const Str *fetches, int fetch_count, Tensor **results) {
    DirectSession *s = NULL;
    RunSignature sig = {.feeds = g->feed_names, .feed_count = g->feed_count, .fetches = fetches, .fetch_count = fetch_count};
    expect_ok(direct_session_new(def, 2, &s));
    direct_session_set_passes(s, &(PassOptions){.disabled = disabled});
    Error *err = NULL;
    for (int i = 0; !err && i < 2; i++) { /* a second step sees whether the first one wrote on something it keeps */
        for (int j = 0; j < fetch_count; j++) {
            tensor_unref(results[j]);
            results[j] = NULL;
        }
        err = direct_session_run(s, &sig, g->feeds, results, 60000);
    }
    direct_session_free(s);
    return err;
}

static bool is_nan(DataType type, uint64_t bits) {
    switch (type) {
        case DT_FLOAT: return (bits & 0x7fffffff) > 0x7f800000;
        case DT_DOUBLE: return (bits & INT64_MAX) > 0x7ff0000000000000;
        case DT_HALF: return (bits & 0x7fff) > 0x7c00;
        case DT_BFLOAT16: return (bits & 0x7fff) > 0x7f80;
        default: return false;
    }
}

static uint64_t bits_at(const Tensor *t, int64_t i) {
    uint64_t bits = 0;
    memcpy(&bits, (const char *)t->data + (size_t)i * dtype_size(t->dtype), dtype_size(t->dtype));
    return bits;
}

/* Where two NaNs meet, which of them comes out is the compiler's choice, in the middle of a loop another than at its end; so a node that is cut otherwise may
   give the other one (any_nan). */
static bool same_bits(const Tensor *got, const Tensor *want, bool any_nan) {
    if (got->dtype != want->dtype || !shape_eq(&got->shape, &want->shape)) return false;
    for (int64_t i = 0; i < want->count; i++) {
        uint64_t g = bits_at(got, i), w = bits_at(want, i);
        if (g == w || (any_nan && is_nan(got->dtype, g) && is_nan(got->dtype, w))) continue;
        print_message("element %lld of %lld: %llx, want %llx\n", (long long)i, (long long)want->count, (unsigned long long)g, (unsigned long long)w);
        return false;
    }
    return true;
}

static void check_seed(uint64_t seed) {
    static const unsigned disabled[] = {0, PASS_FUSE, PASS_ALL & ~PASS_FUSE};
    Generator *g = malloc(sizeof *g);
    generate(g, seed);
    Str fetches[MAX_FETCHES], def = gb_graph(&g->b);
    int fetch_count = 1 + below(&g->random, MAX_FETCHES);
    for (int i = 0; i < fetch_count; i++) {
        const Made *m = i ? pick(g) : &g->made[g->count - 1];
        while (strncmp(m->name, "feed", 4) == 0) m = &g->made[g->count - 1 - below(&g->random, 3)];
        fetches[i] = str_of(m->name);
        for (int j = 0; j < i; j++)
            if (str_eq(fetches[j], fetches[i])) fetch_count = i; /* each once */
    }
    Tensor *want[MAX_FETCHES] = {0};
    expect_ok(run(g, def, PASS_ALL, fetches, fetch_count, want));
    for (int k = 0; k < 3; k++) {
        Tensor *got[MAX_FETCHES] = {0};
        expect_ok(run(g, def, disabled[k], fetches, fetch_count, got));
        for (int i = 0; i < fetch_count; i++) {
            if (!same_bits(got[i], want[i], !(disabled[k] & PASS_FUSE))) {
                print_message("seed %llu, passes without %u: %.*s (%s) differs\n", (unsigned long long)seed, disabled[k], STR_ARG(fetches[i]), dtype_name(g->type));
                assert_true(false);
            }
            tensor_unref(got[i]);
        }
    }
    for (int i = 0; i < fetch_count; i++) tensor_unref(want[i]);
    for (int i = 0; i < g->feed_count; i++) tensor_unref(g->feeds[i]);
    gb_clear(&g->b);
    free(g);
}

static uint64_t first_seed = 1;
static int seeds = GRAPHS;

static void random_graphs_give_the_same_bits(void **state) {
    (void)state;
    ops_register_all();
    for (int i = 0; i < seeds; i++) check_seed(first_seed + (uint64_t)i);
}

int main(int argc, char **argv) {
    if (argc > 2) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = atoi(argv[2]);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs_give_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
