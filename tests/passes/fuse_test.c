/* fuse_test.c: element-wise nodes that become one, and those that must not. */
#include "passes/optimized_graph.h"

static const DataType F = DT_FLOAT;

static Tensor *matrix(int rows, int columns) {
    Shape shape = shape_matrix(rows, columns);
    Tensor *t = NULL;
    expect_ok(tensor_new(F, &shape, &t));
    for (int64_t i = 0; i < t->count; i++) tensor_f32(t)[i] = (float)(i % 97) / 16 - 3;
    return t;
}

static void expect_parts(const Optimized *o, const char *name, const char *ops) {
    const Node *n = node_named(o, name);
    StrBuf got = {0};
    assert_non_null(n);
    expect_str(n->op, "_FusedElementwise");
    for (int i = 0; i < n->part_count; i++) strbuf_addf(&got, "%s%.*s", i ? " " : "", STR_ARG(n->parts[i]->op));
    expect_str(strbuf_str(&got), ops);
    strbuf_clear(&got);
}

static void a_chain_becomes_one_node_named_after_its_end(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", F);
    gb_placeholder(&b, "z", F);
    gb_op(&b, "a", "Mul", "x,z", F);
    gb_op(&b, "b", "Tanh", "a", F);
    gb_op(&b, "c", "AddV2", "b,x", F);
    gb_op(&b, "y", "MatMul", "c,c", F);
    Optimized o = optimized(&b, 0);
    expect_parts(&o, "c", "Mul Tanh AddV2");
    assert_int_equal(node_named(&o, "c")->input_count, 2);
    expect_gone(&o, "a");
    expect_gone(&o, "b");
    expect_input(&o, "y", 0, "c");
    optimized_clear(&o);
}

static void values_used_twice_inside_stay_inside(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", F);
    gb_op(&b, "e", "Exp", "x", F);
    gb_op(&b, "s", "Square", "e", F);
    gb_op(&b, "y", "AddV2", "e,s", F);
    Optimized o = optimized(&b, 0);
    expect_parts(&o, "y", "Exp Square AddV2");
    optimized_clear(&o);
}

static void values_that_others_see_end_a_group(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", F);
    gb_op(&b, "a", "Exp", "x", F);
    gb_op(&b, "b", "Square", "a", F);      /* taken by the product */
    gb_op(&b, "c", "Neg", "b", F);
    gb_op(&b, "d", "Tanh", "c", F);        /* waited for */
    gb_op(&b, "e", "Sqrt", "d", F);
    gb_op(&b, "product", "MatMul", "b,x", F);
    gb_node(&b, "late", "NoOp", "^d");
    Optimized o = optimized(&b, 0);
    expect_parts(&o, "b", "Exp Square");
    expect_parts(&o, "d", "Neg Tanh");
    expect_op(&o, "e", "Sqrt");
    optimized_clear(&o);
}

static void gb_cast(GraphBuilder *b, const char *name, const char *input, DataType from, DataType to) {
    gb_node(b, name, "Cast", input);
    gb_type(b, "SrcT", from);
    gb_type(b, "DstT", to);
}

static void types_may_differ_within_a_group(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", F);
    gb_placeholder(&b, "i", DT_INT32);
    gb_cast(&b, "f", "i", DT_INT32, F);
    gb_op(&b, "less", "Less", "x,f", F);
    gb_op(&b, "nan", "IsNan", "x", F);
    gb_node(&b, "either", "LogicalOr", "less,nan");
    gb_op(&b, "chosen", "SelectV2", "either,f,x", F);
    gb_f32(&b, "one", 1);
    gb_op(&b, "y", "ClipByValue", "chosen,one,x", F);
    Optimized o = optimized(&b, 0);
    expect_parts(&o, "y", "Cast Less IsNan LogicalOr SelectV2 ClipByValue");
    assert_int_equal(node_named(&o, "y")->input_count, 3);
    optimized_clear(&o);
}

static void devices_and_other_ops_end_a_group(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", F);
    b.device = "/job:other";
    gb_op(&b, "far", "Exp", "x", F);
    b.device = NULL;
    gb_op(&b, "near", "Neg", "far", F);
    gb_placeholder(&b, "i", DT_INT32);
    gb_op(&b, "i1", "Neg", "i", DT_INT32);
    gb_op(&b, "i2", "FloorDiv", "i1,i", DT_INT32); /* looks at all divisors first */
    gb_cast(&b, "u", "x", F, DT_UINT8);            /* saturates by groups of elements */
    gb_op(&b, "u1", "Abs", "x", F);
    gb_cast(&b, "u2", "u1", F, DT_INT8);
    gb_op(&b, "m", "BiasAdd", "x,x", F);
    gb_string(&b, "data_format", "NCHW");
    gb_op(&b, "n", "Relu", "m", F);
    Optimized o = optimized(&b, 0);
    for (int i = 0; i < o.graph->node_count; i++) assert_int_equal(o.graph->nodes[i]->part_count, 0);
    optimized_clear(&o);
}

static void a_fused_node_waits_for_what_its_parts_waited_for(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", F);
    gb_placeholder(&b, "first", F);
    gb_op(&b, "a", "Exp", "x,^first", F);
    gb_op(&b, "y", "Neg", "a", F);
    Optimized o = optimized(&b, 0);
    expect_parts(&o, "y", "Exp Neg");
    assert_int_equal(node_named(&o, "y")->control_count, 1);
    expect_str(node_named(&o, "y")->controls[0]->name, "first");
    optimized_clear(&o);
}

static void a_long_chain_becomes_several_nodes(void **state) {
    (void)state;
    GraphBuilder b = {0};
    char name[16], before[16] = "x";
    gb_placeholder(&b, "x", F);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "n%d", i);
        gb_op(&b, name, i % 2 ? "Neg" : "Tanh", before, F);
        memcpy(before, name, sizeof before);
    }
    Optimized o = optimized(&b, 0);
    assert_int_equal(o.graph->node_count, 1 + 4);
    expect_op(&o, "n99", "_FusedElementwise");
    optimized_clear(&o);
}

/* ---- Running ---- */

static void add_network(GraphBuilder *b) {
    gb_placeholder(b, "x", F);
    gb_placeholder(b, "y", F);
    gb_op(b, "sum", "AddV2", "x,y", F);
    gb_op(b, "square", "Square", "sum", F);
    gb_op(b, "result", "Sqrt", "square", F);
}

static Error *run_two(DirectSession *s, Tensor *x, Tensor *y, Tensor **out) {
    Str feeds[] = {STR("x"), STR("y")}, fetches[] = {STR("result")};
    RunSignature sig = {.feeds = feeds, .feed_count = 2, .fetches = fetches, .fetch_count = 1};
    return direct_session_run(s, &sig, (Tensor *[]){x, y}, out, 60000);
}

static void shapes_that_do_not_fit_are_reported_by_the_node_itself(void **state) {
    (void)state;
    GraphBuilder b = {0};
    add_network(&b);
    DirectSession *s = open_session(&b, 1);
    Tensor *x = matrix(2, 3), *y = matrix(2, 4), *out = NULL;
    expect_error(run_two(s, x, y, &out), CODE_INVALID_ARGUMENT, "Incompatible shapes: [2,3] vs. [2,4]\n\t [[{{node sum}}]]");
    tensor_unref(x);
    tensor_unref(y);
    direct_session_free(s);
}

/* Same values as the nodes alone, whatever is broadcast, in a row of steps; the fed tensors stay as they are. */
static void every_way_to_broadcast_gives_the_same(void **state) {
    (void)state;
    static const int shapes[][2] = {{1, 1}, {1, 5}, {7, 1}, {7, 5}, {1, 300}, {300, 1}, {300, 300}, {1, 4000}, {3, 4000}, {0, 5}};
    GraphBuilder b = {0};
    add_network(&b);
    DirectSession *s[2];
    Str def = gb_graph(&b);
    ops_register_all();
    for (int i = 0; i < 2; i++) {
        expect_ok(direct_session_new(def, 2, &s[i]));
        direct_session_set_passes(s[i], &(PassOptions){.disabled = i ? PASS_ALL : 0});
    }
    gb_clear(&b);
    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < 10; j++) {
            Tensor *x = matrix(shapes[i][0], shapes[i][1]), *y = matrix(shapes[j][0], shapes[j][1]), *kept = NULL, *got = NULL, *want = NULL;
            expect_ok(tensor_copy(x, &kept));
            Error *err = run_two(s[1], x, y, &want);
            if (err) {
                expect_error(run_two(s[0], x, y, &got), err->code, err->message);
                error_free(err);
            } else {
                expect_ok(run_two(s[0], x, y, &got));
                assert_true(shape_eq(&got->shape, &want->shape));
                assert_memory_equal(got->data, want->data, tensor_bytes(want));
                tensor_unref(got);
                tensor_unref(want);
            }
            assert_memory_equal(x->data, kept->data, tensor_bytes(kept));
            tensor_unref(kept);
            tensor_unref(x);
            tensor_unref(y);
        }
    }
    direct_session_free(s[0]);
    direct_session_free(s[1]);
}

static void a_client_cannot_send_a_fused_node(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", F);
    gb_op(&b, "y", "_FusedElementwise", "x", F);
    gb_types(&b, "Targs", &F, 1);
    DirectSession *s = open_session(&b, 1);
    Tensor *x = matrix(1, 1), *out = NULL;
    expect_error(run_error(s, "y:0", NULL, "x:0", x, 60000, &out), CODE_INVALID_ARGUMENT, "made by Rill");
    tensor_unref(x);
    direct_session_free(s);
}

static void compositions_of_a_tensorflow_master_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *ops[2], *error;
    } cases[] = {{{"Square", "Sqrt"}, NULL}, {{"Square", "MatMul"}, "Fusion of MatMul"}, {{"AddV2", "Sqrt"}, "Fusion of AddV2"}, {{"Square", "Nothing"}, "Nothing"}};
    for (int i = 0; i < 4; i++) {
        GraphBuilder b = {0};
        StrBuf list = {0};
        gb_placeholder(&b, "x", F);
        gb_op(&b, "y", "_UnaryOpsComposition", "x", F);
        for (int j = 0; j < 2; j++) wire_put_bytes(&list, 2, str_of(cases[i].ops[j]));
        gb_attr_bytes(&b, "op_names", 1, strbuf_str(&list));
        strbuf_clear(&list);
        DirectSession *s = open_session(&b, 1);
        Tensor *x = tensor_scalar_f32(-3), *out = NULL;
        Error *err = run_error(s, "y:0", NULL, "x:0", x, 60000, &out);
        if (cases[i].error) {
            assert_non_null(err);
            assert_non_null(strstr(err->message, cases[i].error));
            error_free(err);
        } else {
            expect_ok(err);
            assert_true(tensor_f32(out)[0] == 3);
            tensor_unref(out);
        }
        tensor_unref(x);
        direct_session_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_becomes_one_node_named_after_its_end),
        cmocka_unit_test(values_used_twice_inside_stay_inside),
        cmocka_unit_test(values_that_others_see_end_a_group),
        cmocka_unit_test(devices_and_other_ops_end_a_group),
        cmocka_unit_test(types_may_differ_within_a_group),
        cmocka_unit_test(a_fused_node_waits_for_what_its_parts_waited_for),
        cmocka_unit_test(a_long_chain_becomes_several_nodes),
        cmocka_unit_test(shapes_that_do_not_fit_are_reported_by_the_node_itself),
        cmocka_unit_test(every_way_to_broadcast_gives_the_same),
        cmocka_unit_test(a_client_cannot_send_a_fused_node),
        cmocka_unit_test(compositions_of_a_tensorflow_master_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
