/* product_test.c: products and convolutions that take the element-wise nodes after them along, and those that must not. */
#include "passes/optimized_graph.h"
#include "passes/same_bits.h"

static const DataType F = DT_FLOAT;

static void expect_product(const Optimized *o, const char *name, const char *ops) {
    const Node *n = node_named(o, name);
    StrBuf got = {0};
    assert_non_null(n);
    expect_str(n->op, "_FusedProduct");
    for (int i = 0; i < n->part_count; i++) strbuf_addf(&got, "%s%.*s", i ? " " : "", STR_ARG(n->parts[i]->op));
    expect_str(strbuf_str(&got), ops);
    strbuf_clear(&got);
}

static void add_layer(GraphBuilder *b) {
    gb_placeholder(b, "x", F);
    gb_placeholder(b, "w", F);
    gb_placeholder(b, "bias", F);
    gb_op(b, "product", "MatMul", "x,w", F);
    gb_op(b, "sum", "BiasAdd", "product,bias", F);
    gb_op(b, "y", "Relu", "sum", F);
}

static void bias_and_activation_join_the_product(void **state) {
    (void)state;
    GraphBuilder b = {0};
    add_layer(&b);
    Optimized o = optimized(&b, 0);
    expect_product(&o, "y", "MatMul BiasAdd Relu");
    assert_int_equal(o.graph->node_count, 4);
    optimized_clear(&o);
}

static void what_comes_before_a_product_stays_outside(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", F);
    gb_op(&b, "before", "Tanh", "x", F);
    gb_op(&b, "scale", "Square", "x", F); /* taken by what follows the product: part of the group, after the head */
    gb_op(&b, "product", "MatMul", "before,x", F);
    gb_op(&b, "y", "Mul", "scale,product", F);
    Optimized o = optimized(&b, 0);
    expect_product(&o, "y", "MatMul Square Mul");
    expect_op(&o, "before", "Tanh");
    optimized_clear(&o);
}

static void a_product_that_others_see_stays(void **state) {
    (void)state;
    static const char *const seen_by[][3] = {{"other", "Neg", "product"}, {"other", "Shape", "product"}, {"other", "NoOp", "^product"}};
    for (int i = 0; i < 3; i++) {
        GraphBuilder b = {0};
        add_layer(&b);
        if (i < 2)
            gb_op(&b, seen_by[i][0], seen_by[i][1], seen_by[i][2], F);
        else
            gb_node(&b, seen_by[i][0], seen_by[i][1], seen_by[i][2]);
        Optimized o = optimized(&b, 0);
        expect_op(&o, "product", "MatMul");
        expect_op(&o, "y", "_FusedElementwise");
        optimized_clear(&o);
    }
}

static void of_two_products_one_is_the_head(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", F);
    gb_op(&b, "p", "MatMul", "x,x", F);
    gb_op(&b, "t", "Tanh", "x", F);
    gb_op(&b, "q", "MatMul", "t,x", F);
    gb_op(&b, "y", "AddV2", "p,q", F);
    Optimized o = optimized(&b, 0);
    expect_product(&o, "y", "MatMul AddV2");
    assert_int_equal(node_named(&o, "y")->input_count, 3);
    expect_op(&o, "p", "MatMul"); /* the one that is made first stays */
    optimized_clear(&o);
}

static void a_product_does_not_wait_for_what_comes_late(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", F);
    gb_op(&b, "early", "MatMul", "x,x", F);
    gb_op(&b, "a", "Softmax", "x", F);
    gb_op(&b, "late", "Softmax", "a", F);
    gb_op(&b, "later", "Softmax", "late", F);
    gb_op(&b, "y", "AddV2", "early,later", F);
    Optimized o = optimized(&b, 0);
    expect_op(&o, "y", "AddV2");
    expect_op(&o, "early", "MatMul");
    optimized_clear(&o);
}

static void remapping_switches_it_off(void **state) {
    (void)state;
    GraphBuilder b = {0};
    add_layer(&b);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_op(&o, "product", "MatMul");
    expect_op(&o, "y", "Relu");
    optimized_clear(&o);
}

/* ---- Running: the same bits as the nodes alone ---- */

static Tensor *numbers(DataType type, const Shape *shape, int seed) {
    Tensor *t = NULL;
    expect_ok(tensor_new(type, shape, &t));
    for (int64_t i = 0; i < t->count; i++) {
        int v = (int)((i * 7919 + seed * 131) % 977);
        if (type == DT_FLOAT) tensor_f32(t)[i] = (float)v / 300 - 1.5f;
        else if (type == DT_DOUBLE) tensor_f64(t)[i] = (double)v / 300 - 1.5;
        else if (type == DT_BFLOAT16) ((uint16_t *)t->data)[i] = (uint16_t)(0x3f00 + v % 200 + (v % 2 ? 0x8000 : 0));
        else ((uint16_t *)t->data)[i] = (uint16_t)(0x3400 + v % 2000 + (v % 3 ? 0x8000 : 0));
    }
    return t;
}

static void products_of_every_type_and_form(void **state) {
    (void)state;
    static const DataType types[] = {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16};
    static const int sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {200, 130, 33}, {4, 3000, 64}, {700, 9, 300}, {0, 4, 3}, {4, 3, 0}, {64, 64, 1}};
    static const char *const activations[] = {"Relu", "Relu6", "Elu", "Tanh", "Sigmoid", "Softplus"};
    for (int t = 0; t < 4; t++) {
        for (int i = 0; i < 8; i++) {
            GraphBuilder b = {0};
            placeholders(&b, types[t], 3);
            gb_op(&b, "product", "MatMul", "in0,in1", types[t]);
            gb_bool(&b, "transpose_b", i % 2);
            gb_op(&b, "sum", i % 3 ? "BiasAdd" : "AddV2", "product,in2", types[t]);
            gb_op(&b, "active", activations[(i + t) % 6], "sum", types[t]);
            gb_op(&b, "y", "Mul", "active,sum", types[t]); /* a value inside is used twice */
            int m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            Shape x = shape_matrix(m, k), w = i % 2 ? shape_matrix(n, k) : shape_matrix(k, n), bias = shape_vector(n);
            expect_same_bits(&b, (Tensor *[]){numbers(types[t], &x, 1), numbers(types[t], &w, 2), numbers(types[t], &bias, 3)}, 3);
        }
    }
}

static void results_of_another_type_or_shape_than_the_product(void **state) {
    (void)state;
    static const int others[][2] = {{1, 40}, {30, 1}, {30, 40}, {1, 1}};
    for (int i = 0; i < 8; i++) {
        GraphBuilder b = {0};
        placeholders(&b, F, 3);
        gb_op(&b, "product", "MatMul", "in0,in1", F);
        gb_op(&b, "sum", "AddV2", "in2,product", F); /* the product is a column in every second case: it is broadcast */
        gb_node(&b, "y", "Cast", "sum");
        gb_type(&b, "SrcT", F);
        gb_type(&b, "DstT", i < 4 ? DT_DOUBLE : DT_BOOL);
        Shape x = shape_matrix(30, 8), w = shape_matrix(8, i % 2 ? 1 : 40), other = shape_matrix(others[i / 2][0], others[i / 2][1]);
        expect_same_bits(&b, (Tensor *[]){numbers(F, &x, 1), numbers(F, &w, 2), numbers(F, &other, 3)}, 3);
    }
}

static void batches_of_products(void **state) {
    (void)state;
    static const int batches[] = {1, 3, 40};
    for (int i = 0; i < 3; i++) {
        GraphBuilder b = {0};
        placeholders(&b, F, 3);
        gb_op(&b, "product", "BatchMatMulV2", "in0,in1", F);
        gb_op(&b, "scaled", "Mul", "product,in2", F);
        gb_op(&b, "y", "Tanh", "scaled", F);
        Shape x = {.rank = 3, .dims = {batches[i], 70, 90}}, w = {.rank = 3, .dims = {1, 90, 150}}, scale = SHAPE_SCALAR;
        expect_same_bits(&b, (Tensor *[]){numbers(F, &x, 1), numbers(F, &w, 2), numbers(F, &scale, 3)}, 3);
    }
}

static void convolutions_in_both_layouts(void **state) {
    (void)state;
    static const struct {
        const char *op, *format;
        DataType type;
    } rows[] = {{"Conv2D", "NHWC", DT_FLOAT},  {"Conv2D", "NCHW", DT_FLOAT},  {"Conv2D", "NHWC", DT_DOUBLE},
                {"Conv2D", "NHWC", DT_HALF},   {"Conv2D", "NHWC", DT_BFLOAT16}, {"DepthwiseConv2dNative", "NHWC", DT_FLOAT}};
    static const char strides[] = "\x0a\x06\x1a\x04\x01\x01\x01\x01"; /* AttrValue {list {i: [1, 1, 1, 1]}} */
    for (int i = 0; i < 6; i++) {
        bool first = str_is(str_of(rows[i].format), "NCHW"), depthwise = i == 5;
        DataType t = rows[i].type;
        GraphBuilder b = {0};
        placeholders(&b, t, 3);
        gb_op(&b, "conv", rows[i].op, "in0,in1", t);
        gb_attr(&b, "strides", (Str){strides, sizeof strides - 1});
        gb_string(&b, "padding", "SAME");
        gb_string(&b, "data_format", rows[i].format);
        gb_op(&b, "sum", "BiasAdd", "conv,in2", t);
        gb_string(&b, "data_format", rows[i].format);
        gb_op(&b, "y", "Elu", "sum", t);
        Shape x = {.rank = 4, .dims = {5, first ? 8 : 19, first ? 19 : 17, first ? 17 : 8}}, w = {.rank = 4, .dims = {3, 3, 8, depthwise ? 2 : 24}}, bias = shape_vector(depthwise ? 16 : 24);
        expect_same_bits(&b, (Tensor *[]){numbers(t, &x, 1), numbers(t, &w, 2), numbers(t, &bias, 3)}, 3);
    }
}

static void errors_name_the_node_at_fault(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        GraphBuilder b = {0};
        add_layer(&b);
        DirectSession *s = open_session(&b, 1);
        Shape x = shape_matrix(2, 3), w = shape_matrix(i ? 3 : 4, 5), bias = shape_vector(i ? 6 : 5);
        Tensor *in[] = {numbers(F, &x, 1), numbers(F, &w, 2), numbers(F, &bias, 3)}, *out = NULL;
        Str feeds[] = {STR("x"), STR("w"), STR("bias")}, fetches[] = {STR("y")};
        RunSignature sig = {.feeds = feeds, .feed_count = 3, .fetches = fetches, .fetch_count = 1};
        expect_error(direct_session_run(s, &sig, in, &out, 60000), CODE_INVALID_ARGUMENT,
                     i ? "Must provide as many biases as the last dimension of the input tensor: [6] vs. [2,5]\n\t [[{{node sum}}]]"
                       : "Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5]\n\t [[{{node product}}]]");
        for (int j = 0; j < 3; j++) tensor_unref(in[j]);
        direct_session_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bias_and_activation_join_the_product),
        cmocka_unit_test(what_comes_before_a_product_stays_outside),
        cmocka_unit_test(a_product_that_others_see_stays),
        cmocka_unit_test(of_two_products_one_is_the_head),
        cmocka_unit_test(a_product_does_not_wait_for_what_comes_late),
        cmocka_unit_test(remapping_switches_it_off),
        cmocka_unit_test(products_of_every_type_and_form),
        cmocka_unit_test(results_of_another_type_or_shape_than_the_product),
        cmocka_unit_test(batches_of_products),
        cmocka_unit_test(convolutions_in_both_layouts),
        cmocka_unit_test(errors_name_the_node_at_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
