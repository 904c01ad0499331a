/* symbolic_gradient_test.c: SymbolicGradient in graphs, without a client. */
#include "direct_run.h"

static void call_gradient(GraphBuilder *b, const char *node, const char *inputs, int count, const char *function) {
    static const DataType types[] = {DT_FLOAT, DT_FLOAT, DT_FLOAT};
    gb_node(b, node, "SymbolicGradient", inputs);
    gb_types(b, "Tin", types, count);
    gb_types(b, "Tout", types, 1);
    gb_func(b, "f", function);
}

static void the_gradient_of_a_function_is_run(void **state) {
    (void)state;
    GraphBuilder b = {0}, body = {.node_field = 3};
    gb_op(&body, "z", "Square", "x", DT_FLOAT);
    gb_function(&b, "square", "x: float", "y: float", "y=z:y:0", &body);
    gb_f32(&b, "x", 3);
    gb_f32(&b, "dy", 10);
    call_gradient(&b, "dx", "x,dy", 2, "square");
    DirectSession *s = open_session(&b, 1);
    assert_float_equal(run_f32(s, "dx:0"), 60, 0);
    direct_session_free(s);
}

static void a_gradient_of_itself_is_an_error(void **state) {
    (void)state;
    GraphBuilder b = {0}, body = {.node_field = 3};
    call_gradient(&body, "z", "x,x", 2, "self");
    gb_function(&b, "self", "x: float", "y: float", "y=z:output:0", &body);
    gb_f32(&b, "x", 3);
    call_gradient(&b, "dx", "x,x", 2, "self");
    DirectSession *s = NULL;
    ops_register_all();
    expect_error(direct_session_new(gb_graph(&b), 1, &s), CODE_INVALID_ARGUMENT, "more than 16 deep");
    gb_clear(&b);
}

static void a_function_that_is_not_there_is_an_error(void **state) {
    (void)state;
    GraphBuilder b = {0}, body = {.node_field = 3};
    gb_op(&body, "z", "Square", "x", DT_FLOAT);
    gb_function(&b, "other", "x: float", "y: float", "y=z:y:0", &body);
    gb_f32(&b, "x", 3);
    call_gradient(&b, "dx", "x,x", 2, "absent");
    DirectSession *s = open_session(&b, 1);
    expect_error(run_error(s, NULL, "dx", NULL, NULL, 60000, NULL), CODE_NOT_FOUND, "absent");
    direct_session_free(s);
}

static void the_wrong_number_of_arguments_is_an_error(void **state) {
    (void)state;
    GraphBuilder b = {0}, body = {.node_field = 3};
    gb_op(&body, "z", "Square", "x", DT_FLOAT);
    gb_function(&b, "square", "x: float", "y: float", "y=z:y:0", &body);
    gb_f32(&b, "x", 3);
    call_gradient(&b, "dx", "x,x,x", 3, "square");
    DirectSession *s = NULL;
    ops_register_all();
    expect_error(direct_session_new(gb_graph(&b), 1, &s), CODE_INVALID_ARGUMENT, "takes 2 arguments");
    gb_clear(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_of_a_function_is_run),
        cmocka_unit_test(a_gradient_of_itself_is_an_error),
        cmocka_unit_test(a_function_that_is_not_there_is_an_error),
        cmocka_unit_test(the_wrong_number_of_arguments_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
