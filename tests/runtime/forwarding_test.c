/* forwarding_test.c: kernels that write into the memory of their inputs: how often they do, and that nobody can tell.

   A value that is also fetched has a second holder, so nobody may write into it: a step that fetches everything is a step without forwarding, and
   gives the same bits as one that fetches only its end. */
#include <stdlib.h>

#include "direct_run.h"
#include "rill/layers.h"
#include "rill/optimizer.h"
#include "runtime/step_stats.h"

/* ---- How often, by model ---- */

static RillTensor pixels(RillGraph *g, const int64_t *dims, int rank) {
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= dims[i];
    float *values = malloc(sizeof *values * (size_t)count);
    for (int64_t i = 0; i < count; i++) values[i] = (float)(i % 17) / 17;
    RillTensor x = rill_const(g, "pixels", TF_FLOAT, dims, rank, values);
    free(values);
    return x;
}

static RillTensor softmax(RillGraph *g) {
    return rill_dense(g, "out", pixels(g, (int64_t[]){4, 8}, 2), &(RillDense){.units = 4});
}

static RillTensor mlp(RillGraph *g) {
    RillTensor x = pixels(g, (int64_t[]){4, 8}, 2);
    for (int i = 0; i < 2; i++) x = rill_dense(g, i ? "second" : "first", x, &(RillDense){.units = 16, .activation = RILL_RELU});
    return rill_dense(g, "out", x, &(RillDense){.units = 4});
}

static RillTensor lenet(RillGraph *g) {
    RillTensor x = pixels(g, (int64_t[]){4, 8, 8, 1}, 4);
    for (int i = 0; i < 2; i++) {
        x = rill_conv2d(g, i ? "conv2" : "conv1", x, &(RillConv){.filters = 4, .size = 3, .activation = RILL_RELU});
        x = rill_max_pool(g, x, 2, 2, false);
    }
    return rill_dense(g, "out", rill_flatten(g, x), &(RillDense){.units = 4});
}

static RillTensor lstm(RillGraph *g) {
    return rill_dense(g, "out", rill_lstm(g, "cells", pixels(g, (int64_t[]){4, 5, 8}, 3), 8, true), &(RillDense){.units = 4});
}

/* Of a training step. */
static int64_t forwarded_by(RillTensor (*model)(RillGraph *g), unsigned disabled_passes) {
    static const int32_t classes[4] = {0, 1, 2, 3};
    RillGraph *g = rill_graph_new();
    RillTensor loss = rill_loss_sparse_softmax(g, model(g), rill_const_i32s(g, classes, 4));
    const char *train = TF_OperationName(rill_minimize(g, &(RillOptimizer){.method = RILL_SGD, .learning_rate = 0.01}, loss));
    const char *init = TF_OperationName(rill_init_op(g));
    assert_string_equal(rill_graph_message(g), "");
    TF_Buffer *def = TF_NewBuffer();
    TF_Status *status = TF_NewStatus();
    TF_GraphToGraphDef(rill_graph_tf(g), def, status);
    assert_int_equal(TF_GetCode(status), TF_OK);
    DirectSession *s = NULL;
    expect_ok(direct_session_new((Str){def->data, def->length}, 1, &s)); /* one thread: who holds what when does not depend on luck */
    direct_session_set_passes(s, &(PassOptions){.disabled = disabled_passes});
    run_target(s, init);
    StepStats *stats = step_stats_new();
    direct_session_trace(s, stats);
    run_target(s, train);
    int64_t count = step_stats_forwarded(stats);
    step_stats_free(stats);
    direct_session_free(s);
    TF_DeleteStatus(status);
    TF_DeleteBuffer(def);
    rill_graph_free(g);
    return count;
}

static void training_steps_use_memory_again(void **state) {
    (void)state;
    static const struct {
        const char *name;
        RillTensor (*model)(RillGraph *g);
        int64_t least, least_plain; /* with all passes; with none, when what would be fused is node by node */
    } rows[] = {{"softmax", softmax, 4, 6}, {"MLP", mlp, 4, 12}, {"LeNet", lenet, 6, 12}, {"LSTM", lstm, 69, 87}};
    ops_register_all();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t all = forwarded_by(rows[i].model, 0), none = forwarded_by(rows[i].model, PASS_ALL);
        print_message("%s: %lld results in the memory of an input, %lld without passes\n", rows[i].name, (long long)all, (long long)none);
        assert_true(all >= rows[i].least);
        assert_true(none >= rows[i].least_plain);
    }
}

/* ---- That nobody can tell ---- */

enum { ELEMENTS = 6, MAX_VALUES = 40, GRAPHS = 200 };

typedef struct Generator {
    uint64_t random;
    GraphBuilder b;
    char values[MAX_VALUES][24];
    int count;
} Generator;

static int below(Generator *g, int n) {
    g->random = g->random * 6364136223846793005u + 1442695040888963407u;
    return (int)((g->random >> 33) % (uint64_t)n);
}

static const char *pick(Generator *g) {
    return g->values[below(g, g->count)];
}

static const char *add(Generator *g, const char *prefix) {
    snprintf(g->values[g->count], sizeof g->values[0], "%s%d", prefix, g->count);
    return g->values[g->count++];
}

static Tensor *vector(float first) {
    Tensor *t = NULL;
    Shape shape = shape_vector(ELEMENTS);
    expect_ok(tensor_new(DT_FLOAT, &shape, &t));
    for (int i = 0; i < ELEMENTS; i++) tensor_f32(t)[i] = first + (float)i / 8;
    return t;
}

/* A variable, read, changed after the reading, and read again: what was read first must not change. */
static void add_variable(Generator *g, const char *name, const char *delta) {
    char inputs[300], text[60];
    snprintf(text, sizeof text, "%s_start", name);
    gb_const(&g->b, text, vector((float)below(g, 5)), "");
    gb_node(&g->b, name, "VarHandleOp", "");
    gb_type(&g->b, "dtype", DT_FLOAT);
    Shape shape = shape_vector(ELEMENTS);
    gb_shape(&g->b, "shape", &shape);
    gb_string(&g->b, "shared_name", name);
    snprintf(inputs, sizeof inputs, "%s,%s", name, text);
    snprintf(text, sizeof text, "%s_init", name);
    gb_node(&g->b, text, "AssignVariableOp", inputs);
    gb_type(&g->b, "dtype", DT_FLOAT);
    const char *before = add(g, "before");
    snprintf(inputs, sizeof inputs, "%s,^%s", name, text);
    gb_node(&g->b, before, "ReadVariableOp", inputs);
    gb_type(&g->b, "dtype", DT_FLOAT);
    snprintf(inputs, sizeof inputs, "%s,%s,^%s", name, delta, before);
    snprintf(text, sizeof text, "%s_change", name);
    gb_node(&g->b, text, "AssignAddVariableOp", inputs);
    gb_type(&g->b, "dtype", DT_FLOAT);
    snprintf(inputs, sizeof inputs, "%s,^%s", name, text);
    gb_node(&g->b, add(g, "after"), "ReadVariableOp", inputs);
    gb_type(&g->b, "dtype", DT_FLOAT);
    snprintf(inputs, sizeof inputs, "%s,^%s", before, text);
    gb_op(&g->b, add(g, "kept"), "Neg", inputs, DT_FLOAT);
}

/* One of two branches, which get the same value. */
static void add_branches(Generator *g, const char *x) {
    char inputs[140], text[5][60];
    int at = g->count;
    static const char *const parts[] = {"which", "switch", "no", "yes", "again"};
    for (int i = 0; i < 5; i++) snprintf(text[i], sizeof text[i], "%s%d", parts[i], at);
    gb_const(&g->b, text[0], tensor_scalar_bool(below(g, 2)), "");
    snprintf(inputs, sizeof inputs, "%s,%s", x, text[0]);
    gb_op(&g->b, text[1], "Switch", inputs, DT_FLOAT);
    gb_op(&g->b, text[2], "Neg", text[1], DT_FLOAT);
    snprintf(inputs, sizeof inputs, "%s:1", text[1]);
    gb_op(&g->b, text[3], "Square", inputs, DT_FLOAT);
    snprintf(inputs, sizeof inputs, "%s,%s", text[2], text[3]);
    gb_op(&g->b, add(g, "merge"), "Merge", inputs, DT_FLOAT);
    gb_int(&g->b, "N", 2);
}

/* x = x * 0.5 + same, five times; `same` enters the loop once and is used by every iteration. */
static void add_loop(Generator *g, const char *x, const char *same) {
    enum { I, LIMIT, X, SAME, MERGE_I, MERGE_X, LESS, COND, SWITCH_I, SWITCH_X, ONE, HALF, NEXT_I, SCALED, SUM, NEXT_X, NEXT_OF_I, PARTS };
    char n[PARTS][40], in[120], frame[24], zero[24], five[24];
    int at = g->count;
    for (int i = 0; i < PARTS; i++) snprintf(n[i], sizeof n[i], "loop%d_%d", at, i);
    snprintf(frame, sizeof frame, "frame%d", at);
    snprintf(zero, sizeof zero, "zero%d", at);
    snprintf(five, sizeof five, "five%d", at);
    gb_i32(&g->b, zero, 0);
    gb_i32(&g->b, five, 5);
    const char *entered[] = {zero, five, x, same};
    for (int i = I; i <= SAME; i++) {
        gb_op(&g->b, n[i], "Enter", entered[i], i < X ? DT_INT32 : DT_FLOAT);
        gb_string(&g->b, "frame_name", frame);
        gb_bool(&g->b, "is_constant", i == LIMIT || i == SAME);
        gb_int(&g->b, "parallel_iterations", 1 + below(g, 4));
    }
    snprintf(in, sizeof in, "%s,%s", n[I], n[NEXT_OF_I]);
    gb_op(&g->b, n[MERGE_I], "Merge", in, DT_INT32);
    gb_int(&g->b, "N", 2);
    snprintf(in, sizeof in, "%s,%s", n[X], n[NEXT_X]);
    gb_op(&g->b, n[MERGE_X], "Merge", in, DT_FLOAT);
    gb_int(&g->b, "N", 2);
    snprintf(in, sizeof in, "%s,%s", n[MERGE_I], n[LIMIT]);
    gb_op(&g->b, n[LESS], "Less", in, DT_INT32);
    gb_node(&g->b, n[COND], "LoopCond", n[LESS]);
    snprintf(in, sizeof in, "%s,%s", n[MERGE_I], n[COND]);
    gb_op(&g->b, n[SWITCH_I], "Switch", in, DT_INT32);
    snprintf(in, sizeof in, "%s,%s", n[MERGE_X], n[COND]);
    gb_op(&g->b, n[SWITCH_X], "Switch", in, DT_FLOAT);
    snprintf(in, sizeof in, "^%s", n[SWITCH_I]);
    gb_const(&g->b, n[ONE], tensor_scalar_i32(1), in);
    gb_const(&g->b, n[HALF], tensor_scalar_f32(0.5f), in);
    snprintf(in, sizeof in, "%s:1,%s", n[SWITCH_I], n[ONE]);
    gb_op(&g->b, n[NEXT_I], "AddV2", in, DT_INT32);
    gb_op(&g->b, n[NEXT_OF_I], "NextIteration", n[NEXT_I], DT_INT32);
    snprintf(in, sizeof in, "%s:1,%s", n[SWITCH_X], n[HALF]);
    gb_op(&g->b, n[SCALED], "Mul", in, DT_FLOAT);
    snprintf(in, sizeof in, "%s,%s", n[SCALED], n[SAME]);
    gb_op(&g->b, n[SUM], "AddV2", in, DT_FLOAT);
    gb_op(&g->b, n[NEXT_X], "NextIteration", n[SUM], DT_FLOAT);
    gb_op(&g->b, add(g, "exit"), "Exit", n[SWITCH_X], DT_FLOAT);
}

static void generate(Generator *g, uint64_t seed) {
    static const char *const unary[] = {"Neg", "Square", "Tanh", "Relu", "Identity", "Snapshot", "Sigmoid"};
    static const char *const binary[] = {"AddV2", "Mul", "Sub", "Maximum"};
    *g = (Generator){.random = seed};
    gb_placeholder(&g->b, add(g, "fed"), DT_FLOAT);
    gb_const(&g->b, add(g, "constant"), vector(1), "");
    if (below(g, 2)) add_variable(g, "v", "constant1");
    int count = g->count + 6 + below(g, 20);
    while (g->count < count) {
        int kind = below(g, 12);
        const char *x = pick(g), *y = pick(g);
        char inputs[100];
        snprintf(inputs, sizeof inputs, "%s,%s", x, y);
        if (kind < 5)
            gb_op(&g->b, add(g, "u"), unary[below(g, 7)], x, DT_FLOAT);
        else if (kind < 10)
            gb_op(&g->b, add(g, "b"), binary[below(g, 4)], inputs, DT_FLOAT);
        else if (kind == 10)
            add_branches(g, x);
        else
            add_loop(g, x, y);
    }
}

static void run(DirectSession *s, const char *const *names, int count, Tensor *fed, Tensor **out) {
    Str fetches[MAX_VALUES], feed = STR("fed0");
    for (int i = 0; i < count; i++) fetches[i] = str_of(names[i]);
    RunSignature sig = {.feeds = &feed, .feed_count = 1, .fetches = fetches, .fetch_count = count};
    expect_ok(direct_session_run(s, &sig, &fed, out, 60000));
}

/* The values of a graph one by one, with forwarding, and all at once, without; two steps, since the first may have written on what stays. */
static void check_seed(uint64_t seed, unsigned disabled_passes) {
    Generator *g = malloc(sizeof *g);
    generate(g, seed);
    const char *names[MAX_VALUES];
    int count = 0;
    for (int i = 1; i < g->count; i++) names[count++] = g->values[i]; /* not the feed */
    DirectSession *s = NULL;
    expect_ok(direct_session_new(gb_graph(&g->b), 2, &s));
    direct_session_set_passes(s, &(PassOptions){.disabled = disabled_passes});
    Tensor *fed = vector(-2), *same = vector(-2), *all[MAX_VALUES] = {0}, *one = NULL;
    run(s, names, count, fed, all);
    for (int i = 0; i < count; i++) {
        for (int step = 0; step < 2; step++) {
            run(s, &names[i], 1, fed, &one);
            bool equal = one->count == ELEMENTS && memcmp(one->data, all[i]->data, ELEMENTS * sizeof(float)) == 0;
            if (!equal) print_message("seed %llu, passes without %u: %s differs\n", (unsigned long long)seed, disabled_passes, names[i]);
            assert_true(equal);
            tensor_unref(one);
        }
    }
    assert_memory_equal(fed->data, same->data, ELEMENTS * sizeof(float));
    for (int i = 0; i < count; i++) tensor_unref(all[i]);
    tensor_unref(fed);
    tensor_unref(same);
    direct_session_free(s);
    gb_clear(&g->b);
    free(g);
}

static void random_graphs_give_the_same_with_forwarding_and_without(void **state) {
    (void)state;
    ops_register_all();
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) check_seed(seed, seed % 2 ? PASS_ALL : 0);
}

static void a_constant_and_a_feed_are_never_written_to(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_const(&b, "c", vector(1), "");
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_op(&b, "a", "Neg", "c", DT_FLOAT);
    gb_op(&b, "b", "Neg", "x", DT_FLOAT);
    gb_op(&b, "sum", "AddV2", "a,b", DT_FLOAT);
    DirectSession *s = open_session(&b, 1);
    direct_session_set_passes(s, &(PassOptions){.disabled = PASS_ALL});
    Tensor *fed = vector(1);
    StepStats *stats = step_stats_new();
    direct_session_trace(s, stats);
    for (int i = 0; i < 3; i++) {
        Tensor *out = NULL;
        expect_ok(run_error(s, "sum", NULL, "x", fed, 60000, &out));
        assert_float_equal(tensor_f32(out)[0], -2, 0);
        assert_float_equal(tensor_f32(fed)[0], 1, 0);
        tensor_unref(out);
    }
    assert_int_equal(step_stats_forwarded(stats), 3); /* the sums: both of their inputs are nobody else's */
    step_stats_free(stats);
    tensor_unref(fed);
    direct_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_steps_use_memory_again),
        cmocka_unit_test(random_graphs_give_the_same_with_forwarding_and_without),
        cmocka_unit_test(a_constant_and_a_feed_are_never_written_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
