/* graph_test.c: names, devices, control, constants, arithmetic and mistakes of a RillGraph. */
#include "train_test.h"

static void names_nest_and_stay_unique(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    rill_name_push(g, "layer");
    RillTensor a = rill_identity(g, rill_const_f32(g, 1), "x");
    rill_name_pop(g);
    rill_name_push(g, "layer");
    RillTensor b = rill_identity(g, rill_const_f32(g, 1), "x"), c = rill_identity(g, a, "x");
    rill_name_pop(g);
    expect_graph(g);
    assert_string_equal(TF_OperationName(a.oper), "layer/x");
    assert_string_equal(TF_OperationName(b.oper), "layer_1/x");
    assert_string_equal(TF_OperationName(c.oper), "layer_1/x_1");
    rill_graph_free(g);
}

static void devices_merge_from_the_outside_in(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    rill_device_push(g, "/job:worker/task:1");
    rill_device_push(g, "/cpu:0");
    RillTensor a = rill_const_f32(g, 1);
    rill_device_pop(g);
    rill_device_push(g, "/job:ps");
    RillTensor b = rill_const_f32(g, 1);
    rill_device_pop(g);
    rill_device_pop(g);
    RillTensor c = rill_const_f32(g, 1);
    expect_graph(g);
    assert_string_equal(TF_OperationDevice(a.oper), "/job:worker/task:1/device:CPU:0");
    assert_string_equal(TF_OperationDevice(b.oper), "/job:ps/task:1");
    assert_string_equal(TF_OperationDevice(c.oper), "");
    rill_device_push(g, "/no such device");
    expect_mistake(g, TF_INVALID_ARGUMENT, "/no such device");
    rill_graph_free(g);
}

static void a_wrong_shape_names_both_nodes_and_shapes(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    RillTensor x = rill_placeholder(g, "images", TF_FLOAT, (int64_t[]){-1, 64}, 2), w = rill_placeholder(g, "weights", TF_FLOAT, (int64_t[]){32, 10}, 2);
    RillTensor y = rill_matmul(g, x, w, false, false);
    assert_null(y.oper);
    expect_mistake(g, TF_INVALID_ARGUMENT, "MatMul");
    const char *wanted[] = {"images", "weights", "[?,64]", "[32,10]"};
    for (size_t i = 0; i < 4; i++) expect_mistake(g, TF_INVALID_ARGUMENT, wanted[i]);
    /* The first mistake stays, and nothing is built any more. */
    char *first = strdup(rill_graph_message(g));
    assert_null(rill_add(g, y, y).oper);
    assert_null(rill_const_f32(g, 1).oper);
    assert_string_equal(rill_graph_message(g), first);
    TF_Status *status = TF_NewStatus();
    assert_null(rill_session_open(g, NULL, NULL, status));
    assert_int_equal(TF_GetCode(status), TF_INVALID_ARGUMENT);
    assert_string_equal(TF_Message(status), first);
    TF_DeleteStatus(status);
    free(first);
    rill_graph_free(g);
}

static void an_unknown_op_names_the_nearest(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    rill_unary(g, "MatMull", rill_const_f32(g, 1));
    expect_mistake(g, TF_NOT_FOUND, "'MatMull'; the most similar is 'MatMul'");
    rill_graph_free(g);
    g = rill_graph_new();
    rill_operation(g, "AddV2", NULL, (RillTensor[]){rill_const_f32(g, 1)}, 1, NULL, 0);
    expect_mistake(g, TF_INVALID_ARGUMENT, "AddV2 takes another number of inputs than the 1 given");
    rill_graph_free(g);
    g = rill_graph_new();
    rill_add(g, rill_const_f32(g, 1), rill_const_i32(g, 1));
    expect_mistake(g, TF_INVALID_ARGUMENT, "int32");
    rill_graph_free(g);
    g = rill_graph_new();
    rill_name_pop(g);
    expect_mistake(g, TF_FAILED_PRECONDITION, "rill_name_pop");
    rill_graph_free(g);
}

static void arithmetic_gives_numbers(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    float data[] = {1, 2, 3, 4, 5, 6};
    RillTensor m = rill_const(g, "m", TF_FLOAT, (int64_t[]){2, 3}, 2, data), x = rill_const_f32(g, 2.5f), parts[] = {m, m};
    struct {
        RillTensor t;
        double wants;
    } cases[] = {
        {rill_add(g, x, x), 5},
        {rill_sub(g, x, rill_const_as(g, TF_FLOAT, 1)), 1.5},
        {rill_scale(g, x, 4), 10},
        {rill_div(g, rill_const_i32(g, 7), rill_const_i32(g, 2)), 3},
        {rill_div(g, rill_const_i64(g, -7), rill_const_i64(g, 2)), -4},
        {rill_reduce_sum(g, m, NULL, 0, false), 21},
        {rill_reduce_mean(g, m, (int32_t[]){0}, 1, false), 2.5},
        {rill_add_n(g, (RillTensor[]){x, x, x}, 3), 7.5},
        {rill_reduce_sum(g, rill_matmul(g, m, m, false, true), NULL, 0, false), 14 + 32 + 32 + 77},
        {rill_reduce_sum(g, rill_concat(g, parts, 2, 1), NULL, 0, false), 42},
        {rill_cast(g, rill_unary(g, "Size", rill_stack(g, parts, 2, 0)), TF_FLOAT), 12},
        {rill_argmax(g, rill_reshape(g, m, (int64_t[]){-1}, 1), 0), 5},
        {rill_reduce_sum(g, rill_one_hot(g, rill_const_i32s(g, (int32_t[]){1, 2}, 2), 4), NULL, 0, false), 2},
        {rill_reduce_sum(g, rill_transpose(g, m, (int32_t[]){1, 0}, 2), (int32_t[]){0, 1}, 2, false), 21},
    };
    RillSession *s = open_local(g);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) assert_float_equal(number_of(s, cases[i].t), cases[i].wants, 1e-6);
    rill_session_close(s);
    rill_graph_free(g);
}

static void gradients_are_those_of_the_sum(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    RillTensor x = rill_const_f32(g, 3), unused = rill_const_f32(g, 1), ys[] = {rill_mul(g, x, x), rill_scale(g, x, 5)}, xs[] = {x, unused}, d[2];
    rill_gradients(g, ys, 2, xs, 2, d);
    expect_graph(g);
    assert_null(d[1].oper);
    RillSession *s = open_local(g);
    assert_float_equal(number_of(s, d[0]), 11, 1e-6);
    /* The graph may grow while it is run. */
    RillTensor more = rill_scale(g, d[0], 2);
    assert_float_equal(number_of(s, more), 22, 1e-6);
    rill_session_close(s);
    rill_graph_free(g);
}

static void control_orders_operations(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    RillVariable *v = rill_variable(g, "v", NULL, 0, &(RillVariableOptions){.init = {.kind = RILL_INIT_CONSTANT, .a = 2}});
    TF_Operation *changed = rill_assign_add(g, v, rill_const_f32(g, 3));
    rill_control_push(g, &changed, 1);
    RillTensor after = rill_variable_read(g, v);
    rill_control_pop(g);
    TF_Operation *init = rill_init_op(g);
    RillSession *s = open_local(g);
    run_op(s, init);
    assert_float_equal(number_of(s, after), 5, 0);
    assert_float_equal(number_of(s, rill_variable_value(v)), 5, 0);
    rill_session_close(s);
    rill_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_nest_and_stay_unique),
        cmocka_unit_test(devices_merge_from_the_outside_in),
        cmocka_unit_test(a_wrong_shape_names_both_nodes_and_shapes),
        cmocka_unit_test(an_unknown_op_names_the_nearest),
        cmocka_unit_test(arithmetic_gives_numbers),
        cmocka_unit_test(gradients_are_those_of_the_sum),
        cmocka_unit_test(control_orders_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
