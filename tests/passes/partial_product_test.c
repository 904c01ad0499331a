/* partial_product_test.c: products of which some columns are taken, and products that are summed. */
#include "passes/optimized_graph.h"
#include "passes/same_bits.h"

static const DataType F = DT_FLOAT;

/* Whole numbers: sums of their products are exact in any order. */
static Tensor *whole_numbers(int64_t rows, int64_t columns, int seed) {
    Shape shape = shape_matrix(rows, columns);
    Tensor *t = NULL;
    expect_ok(tensor_new(F, &shape, &t));
    for (int64_t i = 0; i < t->count; i++) tensor_f32(t)[i] = (float)((i * 7919 + seed * 131) % 17 - 8);
    return t;
}
static Tensor *fractions(int64_t rows, int64_t columns, int seed) {
    Tensor *t = whole_numbers(rows, columns, seed);
    for (int64_t i = 0; i < t->count; i++) tensor_f32(t)[i] = (float)((i * 7919 + seed * 131) % 977) / 300 - 1.5f;
    return t;
}

static void add_pair(GraphBuilder *b, const char *name, int first, int second) {
    Shape two = shape_vector(2);
    Tensor *t = NULL;
    expect_ok(tensor_new(DT_INT32, &two, &t));
    tensor_i32(t)[0] = first;
    tensor_i32(t)[1] = second;
    gb_const(b, name, t, "");
}

static void add_slice(GraphBuilder *b, const char *name, const char *inputs) {
    gb_op(b, name, "Slice", inputs, F);
    gb_type(b, "Index", DT_INT32);
}

static void add_sum(GraphBuilder *b, const char *name, const char *inputs, int count) {
    gb_op(b, name, "AddN", inputs, F);
    gb_int(b, "N", count);
}

/* ---- Graphs ---- */

static void only_the_columns_taken_are_computed(void **state) {
    (void)state;
    GraphBuilder b = {0};
    placeholders(&b, F, 2);
    add_pair(&b, "begin", 0, 4);
    add_pair(&b, "size", 2, 4);
    gb_op(&b, "product", "MatMul", "in0,in1", F);
    add_slice(&b, "y", "product,begin,size");
    Optimized o = optimized(&b, 0);
    expect_op(&o, "product", "_ProductSlice");
    expect_op(&o, "y", "Identity");
    assert_int_equal(node_named(&o, "product")->input_count, 4);
    optimized_clear(&o);
}

static void a_product_with_another_taker_stays_whole(void **state) {
    (void)state;
    GraphBuilder b = {0};
    placeholders(&b, F, 2);
    add_pair(&b, "begin", 0, 4);
    add_pair(&b, "size", 2, 4);
    gb_op(&b, "product", "MatMul", "in0,in1", F);
    add_slice(&b, "y", "product,begin,size");
    gb_op(&b, "other", "BiasAddGrad", "product", F);
    Optimized o = optimized(&b, 0);
    expect_op(&o, "product", "MatMul");
    expect_op(&o, "y", "Slice");
    optimized_clear(&o);
}

/* As gradients wait for each other: each product goes on when a node that waits for it and for another is through. */
static void add_tied(GraphBuilder *b) {
    placeholders(b, F, 2);
    gb_op(b, "p0", "MatMul", "in0,in1", F);
    gb_node(b, "group0", "NoOp", "^p0");
    gb_op(b, "held0", "Identity", "p0,^group0", F);
    gb_op(b, "next", "Square", "in0,^group0", F);
    gb_op(b, "p1", "MatMul", "next,in1", F);
    gb_op(b, "after", "Square", "next,^p1", F);
    gb_op(b, "p2", "MatMul", "after,in1", F);
}

static void products_are_added_as_they_are_made(void **state) {
    (void)state;
    GraphBuilder b = {0};
    add_tied(&b);
    add_sum(&b, "y", "held0,p1,p2", 3);
    Optimized o = optimized(&b, 0);
    expect_op(&o, "p0", "MatMul");
    expect_op(&o, "p1", "_ProductAdd");
    expect_op(&o, "p2", "_ProductAdd");
    expect_op(&o, "y", "Identity");
    expect_input(&o, "p1", 0, "held0");
    expect_input(&o, "p2", 0, "p1");
    optimized_clear(&o);
}

static void a_product_does_not_wait_for_a_later_one(void **state) {
    (void)state;
    GraphBuilder b = {0};
    add_tied(&b);
    add_sum(&b, "y", "p2,p1,held0", 3);
    Optimized o = optimized(&b, 0);
    expect_op(&o, "p1", "MatMul");
    expect_op(&o, "y", "AddN");
    optimized_clear(&o);
}

static void products_that_wait_for_each_other_stay(void **state) {
    (void)state;
    GraphBuilder b = {0};
    placeholders(&b, F, 2);
    gb_op(&b, "p0", "MatMul", "in0,in1", F);
    gb_op(&b, "p1", "MatMul", "in1,in0", F);
    gb_op(&b, "p2", "MatMul", "in1,in1", F);
    gb_node(&b, "group", "NoOp", "^p0,^p1,^p2");
    gb_op(&b, "h0", "Identity", "p0,^group", F);
    gb_op(&b, "h1", "Identity", "p1,^group", F);
    gb_op(&b, "h2", "Identity", "p2,^group", F);
    add_sum(&b, "y", "h0,h1,h2", 3);
    Optimized o = optimized(&b, 0);
    expect_op(&o, "y", "AddN");
    optimized_clear(&o);
}

static void add_switch(GraphBuilder *b) {
    placeholders(b, F, 1);
    gb_placeholder(b, "taken", DT_BOOL);
    gb_op(b, "way", "Switch", "in0,taken", F);
    gb_op(b, "inside", "MatMul", "way:1,way:1", F);
    gb_op(b, "outside", "MatMul", "in0,in0", F);
    gb_op(b, "last", "MatMul", "in0,in0,^inside", F);
    gb_node(b, "waits", "NoOp", "^outside");
    add_sum(b, "y", "inside,outside,last", 3);
}

/* Whoever waits for the product outside must see it although the sum is in a branch that is not taken. */
static void products_of_a_branch_do_not_hold_up_others(void **state) {
    (void)state;
    GraphBuilder b = {0};
    add_switch(&b);
    Optimized o = optimized(&b, 0);
    expect_op(&o, "outside", "MatMul");
    expect_op(&o, "y", "AddN");
    optimized_clear(&o);
}

static void remapping_switches_it_off(void **state) {
    (void)state;
    GraphBuilder b = {0};
    add_tied(&b);
    add_sum(&b, "y", "held0,p1,p2", 3);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_op(&o, "y", "AddN");
    optimized_clear(&o);
}

/* ---- Running ---- */

static void sums_have_the_bits_of_products_added_one_by_one(void **state) {
    (void)state;
    static const int sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {200, 130, 33}, {512, 1024, 64}, {64, 100, 300}, {700, 9, 64}, {17, 33, 64}, {16, 40, 96}, {0, 4, 3}, {4, 3, 0}, {2, 300, 2000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            int m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            GraphBuilder b = {0};
            placeholders(&b, F, 3);
            static const char *const factors[] = {"in0,in1", "p0_in,in1", "p1_in,in1"};
            static const char *const names[] = {"p0", "p1", "p2"};
            gb_op(&b, "p0_in", "Neg", "in0", F);
            gb_op(&b, "p1_in", "Square", "p0_in", F);
            for (int j = 0; j < 3; j++) {
                gb_op(&b, names[j], "MatMul", factors[j], F);
                gb_bool(&b, "transpose_a", transposed);
            }
            add_sum(&b, "y", "in2,p0,p1,p2", 4); /* in2 is the caller's: it stays as it is */
            expect_same_bits(&b, (Tensor *[]){transposed ? fractions(k, m, 1) : fractions(m, k, 1), fractions(k, n, 2), fractions(m, n, 3)}, 3);
        }
    }
}

static void columns_are_those_of_the_whole_product(void **state) {
    (void)state;
    static const int cases[][6] = {/* m, n, k, first row, first column, columns */
                                   {64, 512, 1024, 0, 256, 256}, {64, 512, 100, 0, 0, 300}, {30, 700, 40, 0, 100, -1}, {30, 700, 40, 5, 100, 400},
                                   {30, 70, 40, 0, 10, 20},      {30, 70, 40, 0, 70, -1},   {30, 70, 0, 0, 1, 5},      {8, 600, 4, 0, 0, 600}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int form = 0; form < 4; form++) {
            bool ta = form & 1, tb = form & 2;
            const int *c = cases[i];
            GraphBuilder b = {0};
            placeholders(&b, F, 2);
            gb_op(&b, "product", "MatMul", "in0,in1", F);
            gb_bool(&b, "transpose_a", ta);
            gb_bool(&b, "transpose_b", tb);
            add_pair(&b, "begin", c[3], c[4]);
            add_pair(&b, "size", -1, c[5]);
            add_slice(&b, "y", "product,begin,size");
            expect_same_bits(&b, (Tensor *[]){ta ? whole_numbers(c[2], c[0], 1) : whole_numbers(c[0], c[2], 1), tb ? whole_numbers(c[1], c[2], 2) : whole_numbers(c[2], c[1], 2)}, 2);
        }
    }
}

static void expect_failure(GraphBuilder *b, Tensor **in, const char *message) {
    DirectSession *s = open_session(b, 1);
    Tensor *out = NULL;
    Str feeds[] = {STR("in0"), STR("in1"), STR("in2")}, fetches[] = {STR("y")};
    RunSignature sig = {.feeds = feeds, .feed_count = 3, .fetches = fetches, .fetch_count = 1};
    expect_error(direct_session_run(s, &sig, in, &out, 60000), CODE_INVALID_ARGUMENT, message);
    for (int j = 0; j < 3; j++) tensor_unref(in[j]);
    direct_session_free(s);
}

static void errors_are_those_of_the_nodes_alone(void **state) {
    (void)state;
    static const char *const of_sums[] = {
        "Inputs to operation y of type AddN must have the same size and shape.  Input 0: [2,4] != input 2: [3,4]\n\t [[{{node y}}]]",
        "Matrix size-incompatible: In[0]: [3,5], In[1]: [3,4]\n\t [[{{node p2}}]]"};
    for (int i = 0; i < 2; i++) {
        GraphBuilder b = {0};
        placeholders(&b, F, 3);
        gb_op(&b, "p0", "MatMul", "in0,in1", F);
        gb_op(&b, "p1", "MatMul", "in0,in1", F);
        gb_op(&b, "p2", "MatMul", "in2,in1", F);
        add_sum(&b, "y", "p0,p1,p2", 3);
        expect_failure(&b, (Tensor *[]){whole_numbers(2, 3, 1), whole_numbers(3, 4, 2), whole_numbers(3, i ? 5 : 3, 3)}, of_sums[i]);
    }
    GraphBuilder b = {0};
    placeholders(&b, F, 3);
    gb_op(&b, "product", "MatMul", "in0,in1", F);
    add_pair(&b, "begin", 0, 3);
    add_pair(&b, "size", 2, 4);
    add_slice(&b, "part", "product,begin,size");
    gb_op(&b, "y", "AddV2", "part,in2", F);
    expect_failure(&b, (Tensor *[]){whole_numbers(2, 3, 1), whole_numbers(3, 4, 2), whole_numbers(1, 1, 3)}, "Expected size[1] in [0, 1], but got 4\n\t [[{{node part}}]]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_columns_taken_are_computed),
        cmocka_unit_test(a_product_with_another_taker_stays_whole),
        cmocka_unit_test(products_are_added_as_they_are_made),
        cmocka_unit_test(a_product_does_not_wait_for_a_later_one),
        cmocka_unit_test(products_that_wait_for_each_other_stay),
        cmocka_unit_test(products_of_a_branch_do_not_hold_up_others),
        cmocka_unit_test(remapping_switches_it_off),
        cmocka_unit_test(sums_have_the_bits_of_products_added_one_by_one),
        cmocka_unit_test(columns_are_those_of_the_whole_product),
        cmocka_unit_test(errors_are_those_of_the_nodes_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
