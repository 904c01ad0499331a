/* pass_test.c: what each pass does to small graphs, and what it must leave alone. */
#include "passes/optimized_graph.h"

static Tensor *vector_i32(const int *values, int count) {
    Shape shape = shape_vector(count);
    Tensor *t = NULL;
    expect_ok(tensor_new(DT_INT32, &shape, &t));
    for (int i = 0; i < count; i++) tensor_i32(t)[i] = values[i];
    return t;
}

static void gb_double(GraphBuilder *b, const char *name, double v) {
    Tensor *t = NULL;
    expect_ok(tensor_new(DT_DOUBLE, &SHAPE_SCALAR, &t));
    tensor_f64(t)[0] = v;
    gb_const(b, name, t, "");
}

/* ---- Identities ---- */

static void identities_are_bypassed(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_op(&b, "i", "Identity", "x", DT_FLOAT);
    gb_op(&b, "s", "StopGradient", "i", DT_FLOAT);
    gb_op(&b, "y", "Exp", "s", DT_FLOAT);
    gb_node(&b, "late", "NoOp", "^s");
    Optimized o = optimized(&b, PASS_FUSE | PASS_CONTROLS);
    expect_gone(&o, "i");
    expect_gone(&o, "s");
    expect_input(&o, "y", 0, "x");
    expect_str(node_named(&o, "late")->controls[0]->name, "x");
    optimized_clear(&o);
}

static void identities_that_do_something_stay(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_variable(&b, "v", 1); /* v/read takes a reference */
    gb_op(&b, "y", "Exp", "v/read", DT_FLOAT);
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_op(&b, "waits", "Identity", "x,^v/init", DT_FLOAT);
    gb_op(&b, "z", "Exp", "waits", DT_FLOAT);
    b.device = "/job:other";
    gb_op(&b, "moves", "Identity", "x", DT_FLOAT);
    b.device = NULL;
    gb_op(&b, "w", "Exp", "moves", DT_FLOAT);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_input(&o, "y", 0, "v/read");
    expect_input(&o, "z", 0, "waits");
    expect_input(&o, "w", 0, "moves");
    optimized_clear(&o);
}

static void a_control_edge_from_an_identity_of_a_switch_stays(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_placeholder(&b, "p", DT_BOOL);
    gb_op(&b, "switch", "Switch", "x,p", DT_FLOAT);
    gb_op(&b, "taken", "Identity", "switch:1", DT_FLOAT);
    gb_const(&b, "c", tensor_scalar_f32(3), "^taken");
    gb_op(&b, "y", "AddV2", "taken,c", DT_FLOAT);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_input(&o, "y", 0, "switch");
    expect_op(&o, "taken", "Identity");
    expect_str(node_named(&o, "c")->controls[0]->name, "taken");
    optimized_clear(&o);
}

static void a_target_that_is_an_identity_stays(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_op(&b, "target", "Identity", "x", DT_FLOAT);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_op(&o, "target", "Identity");
    optimized_clear(&o);
}

/* ---- Constants ---- */

static void constants_are_folded_under_the_name_of_the_last(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_f32(&b, "two", 2);
    gb_f32(&b, "three", 3);
    gb_op(&b, "six", "Mul", "two,three", DT_FLOAT);
    gb_op(&b, "seven", "AddV2", "six,one", DT_FLOAT);
    gb_f32(&b, "one", 1);
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_op(&b, "y", "Mul", "x,seven", DT_FLOAT);
    Optimized o = optimized(&b, PASS_FUSE);
    assert_int_equal(o.graph->node_count, 3);
    expect_op(&o, "seven", "Const");
    Str value, proto;
    Tensor *t = NULL;
    assert_true(node_attr(node_named(&o, "seven"), "value", &value) && attr_tensor(value, &proto));
    expect_ok(tensor_proto_decode(proto, &t));
    assert_true(tensor_f32(t)[0] == 7);
    tensor_unref(t);
    optimized_clear(&o);
}

static void every_output_of_a_folded_node_is_a_constant(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_const(&b, "a", vector_i32((int[]){2, 3}, 2), "");
    gb_const(&b, "b", vector_i32((int[]){3}, 1), "");
    gb_op(&b, "args", "BroadcastGradientArgs", "a,b", DT_INT32);
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_op(&b, "s", "Sum", "x,args:1", DT_FLOAT);
    gb_type(&b, "Tidx", DT_INT32);
    gb_bool(&b, "keep_dims", false);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_gone(&o, "args");
    expect_op(&o, "args/folded_1", "Const");
    expect_input(&o, "s", 1, "args/folded_1");
    optimized_clear(&o);
}

static void a_folded_node_waits_for_what_its_inputs_waited_for(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_placeholder(&b, "p", DT_BOOL);
    gb_op(&b, "switch", "Switch", "x,p", DT_FLOAT);
    gb_op(&b, "pivot", "Identity", "switch:1", DT_FLOAT);
    gb_const(&b, "one", tensor_scalar_f32(1), "^pivot");
    gb_const(&b, "two", tensor_scalar_f32(2), "^pivot");
    gb_op(&b, "three", "AddV2", "one,two", DT_FLOAT);
    gb_op(&b, "y", "Mul", "pivot,three", DT_FLOAT);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_op(&o, "three", "Const");
    assert_int_equal(node_named(&o, "three")->control_count, 1);
    expect_str(node_named(&o, "three")->controls[0]->name, "pivot");
    optimized_clear(&o);
}

static void what_fails_is_left_to_fail_in_the_step(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_const(&b, "a", vector_i32((int[]){1, 2}, 2), "");
    gb_const(&b, "b", vector_i32((int[]){1, 2, 3}, 3), "");
    gb_op(&b, "misfit", "AddV2", "a,b", DT_INT32);
    gb_op(&b, "y", "Neg", "misfit", DT_INT32);
    DirectSession *s = open_session(&b, 1);
    Tensor *t = NULL;
    expect_error(run_error(s, "y:0", NULL, NULL, NULL, 60000, &t), CODE_INVALID_ARGUMENT, "[[{{node misfit}}]]");
    direct_session_free(s);
}

static void large_constants_and_random_numbers_are_not_folded(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_const(&b, "dims", vector_i32((int[]){1000, 1000}, 2), "");
    gb_f32(&b, "zero", 0);
    gb_op(&b, "fill", "Fill", "dims,zero", DT_FLOAT);
    gb_type(&b, "index_type", DT_INT32);
    gb_const(&b, "few", vector_i32((int[]){2}, 1), "");
    gb_node(&b, "random", "RandomUniform", "few");
    gb_type(&b, "T", DT_INT32);
    gb_type(&b, "dtype", DT_FLOAT);
    gb_op(&b, "y", "Exp", "fill", DT_FLOAT);
    gb_op(&b, "z", "Exp", "random", DT_FLOAT);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_op(&o, "fill", "Fill");
    expect_op(&o, "random", "RandomUniform");
    optimized_clear(&o);
}

static void files_are_read_in_the_step(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_const(&b, "name", tensor_scalar_str(STR("/dev/null")), "");
    gb_node(&b, "content", "ReadFile", "name");
    Optimized o = optimized(&b, PASS_FUSE);
    expect_op(&o, "content", "ReadFile");
    optimized_clear(&o);
}

/* ---- Arithmetic ---- */

static void arithmetic_that_changes_no_bit_is_dropped(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_DOUBLE);
    gb_double(&b, "one", 1);
    gb_double(&b, "zero", 0);
    gb_double(&b, "minus_zero", -0.0);
    gb_op(&b, "a", "Mul", "one,x", DT_DOUBLE);
    gb_op(&b, "b", "RealDiv", "a,one", DT_DOUBLE);
    gb_op(&b, "c", "Sub", "b,zero", DT_DOUBLE);
    gb_op(&b, "d", "AddV2", "minus_zero,c", DT_DOUBLE);
    gb_op(&b, "e", "Neg", "d", DT_DOUBLE);
    gb_op(&b, "f", "Neg", "e", DT_DOUBLE);
    gb_op(&b, "y", "Exp", "f", DT_DOUBLE);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_input(&o, "y", 0, "x");
    assert_int_equal(o.graph->node_count, 2);
    optimized_clear(&o);
}

static void arithmetic_that_might_change_a_bit_or_a_shape_stays(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_f32(&b, "zero", 0);
    Tensor *row = NULL;
    expect_ok(tensor_new(DT_FLOAT, &(Shape){.rank = 1, .dims = {1}}, &row));
    tensor_f32(row)[0] = 1;
    gb_const(&b, "row", row, "");
    gb_op(&b, "sum", "AddV2", "x,zero", DT_FLOAT);     /* -0 */
    gb_op(&b, "rank", "Mul", "x,row", DT_FLOAT);       /* a scalar becomes a vector */
    gb_op(&b, "wrong", "Sub", "zero,x", DT_FLOAT);
    gb_op(&b, "turned", "RealDiv", "row,x", DT_FLOAT);
    gb_op(&b, "y", "AddN", "sum,rank,wrong,turned", DT_FLOAT);
    gb_int(&b, "N", 4);
    Optimized o = optimized(&b, PASS_FUSE);
    for (int i = 0; i < 4; i++) expect_input(&o, "y", i, (const char *[]){"sum", "rank", "wrong", "turned"}[i]);
    optimized_clear(&o);
}

static void casts_there_and_back_are_dropped_when_nothing_is_lost(void **state) {
    (void)state;
    GraphBuilder b = {0};
    const struct {
        const char *name, *from;
        DataType source, target;
    } casts[] = {{"wide", "x", DT_INT32, DT_INT64}, {"same", "wide", DT_INT64, DT_INT32}, {"float", "x", DT_INT32, DT_FLOAT}, {"lost", "float", DT_FLOAT, DT_INT32},
                 {"none", "same", DT_INT32, DT_INT32}};
    gb_placeholder(&b, "x", DT_INT32);
    for (int i = 0; i < 5; i++) {
        gb_node(&b, casts[i].name, "Cast", casts[i].from);
        gb_type(&b, "SrcT", casts[i].source);
        gb_type(&b, "DstT", casts[i].target);
    }
    gb_op(&b, "y", "AddV2", "none,lost", DT_INT32);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_input(&o, "y", 0, "x");
    expect_input(&o, "y", 1, "lost");
    optimized_clear(&o);
}

static void transpositions_in_a_row_are_one(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_const(&b, "p", vector_i32((int[]){0, 3, 1, 2}, 4), "");
    gb_const(&b, "q", vector_i32((int[]){0, 2, 3, 1}, 4), "");
    gb_op(&b, "there", "Transpose", "x,p", DT_FLOAT);
    gb_op(&b, "back", "Transpose", "there,q", DT_FLOAT);
    gb_op(&b, "y", "Exp", "back", DT_FLOAT);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_input(&o, "y", 0, "there");
    expect_gone(&o, "back");
    expect_gone(&o, "p");
    optimized_clear(&o);
}

static void the_first_of_two_transpositions_still_reports_a_wrong_rank(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_const(&b, "p", vector_i32((int[]){1, 0}, 2), "");
    gb_op(&b, "there", "Transpose", "x,p", DT_FLOAT);
    gb_op(&b, "back", "Transpose", "there,p", DT_FLOAT);
    gb_op(&b, "y", "Exp", "back", DT_FLOAT);
    DirectSession *s = open_session(&b, 1);
    Tensor *t = NULL, *x = tensor_scalar_f32(1);
    expect_error(run_error(s, "y:0", NULL, "x:0", x, 60000, &t), CODE_INVALID_ARGUMENT, "[[{{node there}}]]");
    tensor_unref(x);
    direct_session_free(s);
}

static void reshapes_that_change_nothing_are_dropped(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_op(&b, "shape", "Shape", "x", DT_FLOAT);
    gb_op(&b, "same", "Reshape", "x,shape", DT_FLOAT);
    gb_const(&b, "flat", vector_i32((int[]){-1}, 1), "");
    gb_const(&b, "rows", vector_i32((int[]){2, -1}, 2), "");
    gb_op(&b, "a", "Reshape", "same,flat", DT_FLOAT);
    gb_op(&b, "b", "Reshape", "a,rows", DT_FLOAT);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_input(&o, "b", 0, "x");
    assert_int_equal(o.graph->node_count, 3);
    optimized_clear(&o);
}

/* Even when the first shape does not fit. */
static void reshapes_that_are_flattened_again_are_dropped(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_placeholder(&b, "shape", DT_INT32);
    gb_const(&b, "flat", vector_i32((int[]){-1}, 1), "");
    gb_op(&b, "a", "Reshape", "x,shape", DT_FLOAT);
    gb_op(&b, "b", "Reshape", "a,flat", DT_FLOAT);
    Optimized o = optimized(&b, PASS_FUSE);
    expect_input(&o, "b", 0, "x");
    optimized_clear(&o);
}

/* ---- Equal nodes ---- */

static void equal_nodes_are_computed_once(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_f32(&b, "c1", 5);
    gb_f32(&b, "c2", 5);
    gb_op(&b, "a1", "Mul", "x,c1", DT_FLOAT);
    gb_op(&b, "a2", "Mul", "x,c2", DT_FLOAT);
    gb_op(&b, "b1", "Exp", "a1", DT_FLOAT);
    gb_op(&b, "b2", "Exp", "a2", DT_FLOAT);
    gb_op(&b, "y", "AddV2", "b1,b2", DT_FLOAT);
    Optimized o = optimized(&b, PASS_FUSE);
    assert_int_equal(o.graph->node_count, 5);
    const Node *y = node_named(&o, "y");
    assert_ptr_equal(y->inputs[0].node, y->inputs[1].node);
    optimized_clear(&o);
}

static void nodes_that_differ_in_anything_stay_apart(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_placeholder(&b, "z", DT_FLOAT);
    gb_op(&b, "a", "Exp", "x", DT_FLOAT);
    gb_op(&b, "waits", "Exp", "x,^z", DT_FLOAT);
    b.device = "/job:other";
    gb_op(&b, "far", "Exp", "x", DT_FLOAT);
    b.device = NULL;
    for (int i = 0; i < 2; i++) {
        gb_op(&b, i ? "leaky1" : "leaky2", "LeakyRelu", "x", DT_FLOAT);
        StrBuf alpha = {0};
        wire_put_float(&alpha, 4, i ? 0.1f : 0.3f);
        gb_attr(&b, "alpha", strbuf_str(&alpha));
        strbuf_clear(&alpha);
    }
    gb_const(&b, "few", vector_i32((int[]){2}, 1), "");
    for (int i = 0; i < 2; i++) {
        gb_node(&b, i ? "random1" : "random2", "RandomUniform", "few");
        gb_type(&b, "T", DT_INT32);
        gb_type(&b, "dtype", DT_FLOAT);
    }
    gb_op(&b, "y", "AddN", "a,waits,far,leaky1,leaky2,random1,random2", DT_FLOAT);
    gb_int(&b, "N", 7);
    Optimized o = optimized(&b, PASS_FUSE);
    const Node *y = node_named(&o, "y");
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < i; j++) assert_ptr_not_equal(y->inputs[i].node, y->inputs[j].node);
    optimized_clear(&o);
}

/* ---- Control edges, switches ---- */

static void control_edges_that_say_nothing_are_dropped(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_f32(&b, "c", 1);
    gb_node(&b, "after_x", "NoOp", "^x");
    gb_op(&b, "y", "Exp", "x,^x,^c,^after_x", DT_FLOAT);
    gb_placeholder(&b, "z", DT_FLOAT);
    gb_op(&b, "w", "Exp", "x,^z", DT_FLOAT);
    Optimized o = optimized(&b, PASS_FUSE);
    assert_int_equal(node_named(&o, "y")->control_count, 0);
    assert_int_equal(node_named(&o, "w")->control_count, 1);
    expect_gone(&o, "after_x");
    optimized_clear(&o);
}

static void a_pass_that_is_off_does_nothing(void **state) {
    (void)state;
    static const unsigned bits[] = {PASS_BYPASS, PASS_FOLD, PASS_SIMPLIFY, PASS_SHARE, PASS_CONTROLS, PASS_ALL};
    for (int i = 0; i < 6; i++) {
        GraphBuilder b = {0};
        gb_placeholder(&b, "x", DT_FLOAT);
        gb_f32(&b, "one", 1);
        gb_op(&b, "identity", "Identity", "x", DT_FLOAT);
        gb_op(&b, "two", "AddV2", "one,one", DT_FLOAT);
        gb_op(&b, "once", "Mul", "x,one", DT_FLOAT);
        gb_op(&b, "e1", "Exp", "x", DT_FLOAT);
        gb_op(&b, "e2", "Exp", "x", DT_FLOAT);
        gb_node(&b, "noop", "NoOp", "^x");
        gb_op(&b, "y", "AddN", "identity,two,once,e1,e2,^noop", DT_FLOAT);
        gb_int(&b, "N", 5);
        Optimized o = optimized(&b, PASS_FUSE | bits[i]);
        assert_int_equal(node_named(&o, "identity") != NULL, (bits[i] & PASS_BYPASS) != 0);
        assert_int_equal(node_is(node_named(&o, "two"), "AddV2"), (bits[i] & PASS_FOLD) != 0);
        assert_int_equal(node_named(&o, "once") != NULL, (bits[i] & PASS_SIMPLIFY) != 0);
        assert_int_equal(node_named(&o, "e1") && node_named(&o, "e2"), (bits[i] & PASS_SHARE) != 0);
        assert_int_equal(node_named(&o, "noop") != NULL, (bits[i] & PASS_CONTROLS) != 0);
        optimized_clear(&o);
    }
}

static void a_loop_gives_the_same_with_its_constants_folded(void **state) {
    (void)state;
    for (int off = 0; off < 2; off++) {
        GraphBuilder b = {0};
        DirectSession *s = NULL;
        gb_i32(&b, "ten", 10);
        gb_op(&b, "twenty", "AddV2", "ten,ten", DT_INT32);
        gb_count_loop(&b, "loop", "twenty", 4, NULL);
        gb_op(&b, "result", "AddV2", "loop/exit,ten", DT_INT32);
        ops_register_all();
        expect_ok(direct_session_new(gb_graph(&b), 2, &s));
        direct_session_set_passes(s, &(PassOptions){.disabled = off ? PASS_ALL : 0});
        gb_clear(&b);
        assert_int_equal(run_i32(s, "result:0"), 30);
        direct_session_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identities_are_bypassed),
        cmocka_unit_test(identities_that_do_something_stay),
        cmocka_unit_test(a_control_edge_from_an_identity_of_a_switch_stays),
        cmocka_unit_test(a_target_that_is_an_identity_stays),
        cmocka_unit_test(constants_are_folded_under_the_name_of_the_last),
        cmocka_unit_test(every_output_of_a_folded_node_is_a_constant),
        cmocka_unit_test(a_folded_node_waits_for_what_its_inputs_waited_for),
        cmocka_unit_test(what_fails_is_left_to_fail_in_the_step),
        cmocka_unit_test(large_constants_and_random_numbers_are_not_folded),
        cmocka_unit_test(files_are_read_in_the_step),
        cmocka_unit_test(arithmetic_that_changes_no_bit_is_dropped),
        cmocka_unit_test(arithmetic_that_might_change_a_bit_or_a_shape_stays),
        cmocka_unit_test(casts_there_and_back_are_dropped_when_nothing_is_lost),
        cmocka_unit_test(transpositions_in_a_row_are_one),
        cmocka_unit_test(the_first_of_two_transpositions_still_reports_a_wrong_rank),
        cmocka_unit_test(reshapes_that_change_nothing_are_dropped),
        cmocka_unit_test(reshapes_that_are_flattened_again_are_dropped),
        cmocka_unit_test(equal_nodes_are_computed_once),
        cmocka_unit_test(nodes_that_differ_in_anything_stay_apart),
        cmocka_unit_test(control_edges_that_say_nothing_are_dropped),
        cmocka_unit_test(a_pass_that_is_off_does_nothing),
        cmocka_unit_test(a_loop_gives_the_same_with_its_constants_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
