/* variable_test.c: variables: sharing, parts, devices, initial values, who has none. */
#include "train_test.h"

static void names_are_shared_and_checked(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    int64_t dims[] = {2, 3}, other[] = {3, 2};
    rill_name_push(g, "model");
    RillVariable *a = rill_variable(g, "w", dims, 2, NULL);
    rill_name_pop(g);
    rill_name_push(g, "model");
    assert_ptr_equal(rill_variable(g, "w", dims, 2, NULL), a);
    expect_graph(g);
    assert_string_equal(rill_variable_name(a), "model/w");
    assert_null(rill_variable(g, "w", other, 2, NULL));
    expect_mistake(g, TF_INVALID_ARGUMENT, "Variable model/w exists with shape [2,3]");
    expect_mistake(g, TF_INVALID_ARGUMENT, "[3,2]");
    rill_graph_free(g);
    g = rill_graph_new();
    rill_variable(g, "w", (int64_t[]){-1}, 1, NULL);
    expect_mistake(g, TF_INVALID_ARGUMENT, "Dimension 0 of variable w is -1");
    rill_graph_free(g);
}

static void task_of(const RillVariable *v, int part, const char *wants) {
    assert_string_equal(TF_OperationDevice(rill_variable_part(v, part, NULL, NULL).oper), wants);
}

static void the_setter_balances_bytes_or_goes_round(void **state) {
    (void)state;
    int64_t big = 1000, small = 10;
    RillGraph *g = rill_graph_new();
    rill_device_setter_push(g, &(RillDeviceSetter){.ps_tasks = 2, .worker_device = "/job:worker/task:3"});
    RillVariable *a = rill_variable(g, "a", &big, 1, NULL), *b = rill_variable(g, "b", &small, 1, NULL), *c = rill_variable(g, "c", &small, 1, NULL);
    RillTensor y = rill_add(g, rill_variable_value(b), rill_variable_value(c));
    RillVariable *local = rill_variable(g, "l", &small, 1, &(RillVariableOptions){.local = true});
    expect_graph(g);
    task_of(a, 0, "/job:ps/task:0");
    task_of(b, 0, "/job:ps/task:1");
    task_of(c, 0, "/job:ps/task:1");
    task_of(local, 0, "/job:worker/task:3");
    assert_string_equal(TF_OperationDevice(y.oper), "/job:worker/task:3");
    assert_string_equal(TF_OperationDevice(rill_variable_initializer(a)), "/job:ps/task:0");
    rill_graph_free(g);
    g = rill_graph_new();
    rill_device_setter_push(g, &(RillDeviceSetter){.ps_tasks = 2, .round_robin = true});
    a = rill_variable(g, "a", &big, 1, NULL);
    b = rill_variable(g, "b", &small, 1, NULL);
    c = rill_variable(g, "c", &small, 1, NULL);
    task_of(a, 0, "/job:ps/task:0");
    task_of(b, 0, "/job:ps/task:1");
    task_of(c, 0, "/job:ps/task:0");
    rill_graph_free(g);
}

static void big_variables_are_split_over_the_ps_tasks(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    rill_device_setter_push(g, &(RillDeviceSetter){.ps_tasks = 3, .max_part_bytes = 400});
    RillVariable *v = rill_variable(g, "v", (int64_t[]){100, 4}, 2, NULL); /* 1,600 bytes */
    expect_graph(g);
    assert_int_equal(rill_variable_parts(v), 4);
    int64_t first, rows, next = 0;
    for (int i = 0; i < 4; i++) {
        RillTensor handle = rill_variable_part(v, i, &first, &rows);
        char name[32];
        snprintf(name, sizeof name, "v/part_%d", i);
        assert_string_equal(TF_OperationName(handle.oper), name);
        assert_int_equal(first, next);
        assert_int_equal(rows, 25);
        next += rows;
    }
    task_of(v, 0, "/job:ps/task:0");
    task_of(v, 1, "/job:ps/task:1");
    task_of(v, 2, "/job:ps/task:2");
    RillShape s = rill_shape(g, rill_variable_value(v));
    assert_int_equal(s.rank, 2);
    assert_int_equal(s.dims[0], 100);
    rill_graph_free(g);
}

static void parts_read_and_write_as_one(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    float data[10];
    for (int i = 0; i < 10; i++) data[i] = (float)i;
    RillTensor start = rill_const(g, "start", TF_FLOAT, (int64_t[]){5, 2}, 2, data);
    RillVariable *v = rill_variable(g, "v", (int64_t[]){5, 2}, 2, &(RillVariableOptions){.partitions = 2, .init = {.kind = RILL_INIT_TENSOR, .tensor = start}});
    TF_Operation *twice = rill_assign_add(g, v, start), *init = rill_init_op(g);
    RillTensor same = rill_reduce_sum(g, rill_unary(g, "Abs", rill_sub(g, rill_variable_value(v), rill_scale(g, start, 2))), NULL, 0, false);
    RillTensor sum = rill_reduce_sum(g, rill_variable_value(v), NULL, 0, false);
    RillSession *s = open_local(g);
    run_op(s, init);
    assert_float_equal(number_of(s, sum), 45, 0);
    run_op(s, twice);
    assert_float_equal(number_of(s, same), 0, 0);
    rill_session_close(s);
    rill_graph_free(g);
}

static void initial_values_have_their_spread(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    rill_graph_seed(g, 3);
    const struct {
        RillInit init;
        double mean, deviation, limit;
    } cases[] = {
        {{.kind = RILL_INIT_ZEROS}, 0, 0, 0},
        {{.kind = RILL_INIT_ONES}, 1, 0, 1},
        {{.kind = RILL_INIT_CONSTANT, .a = 7}, 7, 0, 7},
        {{.kind = RILL_INIT_UNIFORM, .a = -1, .b = 3}, 1, 4 / sqrt(12), 3},
        {{.kind = RILL_INIT_NORMAL, .a = 2, .b = 0.5}, 2, 0.5, 6},
        {{.kind = RILL_INIT_TRUNCATED_NORMAL, .a = 0, .b = 1}, 0, 0.8796, 2},
        {{.kind = RILL_INIT_GLOROT_UNIFORM}, 0, sqrt(2.0 / 300), sqrt(6.0 / 300)},
        {{.kind = RILL_INIT_GLOROT_NORMAL}, 0, sqrt(2.0 / 300), 1},
        {{.kind = RILL_INIT_HE_NORMAL}, 0, sqrt(2.0 / 100), 1},
        {{.kind = RILL_INIT_HE_UNIFORM}, 0, sqrt(2.0 / 100), sqrt(6.0 / 100)},
    };
    enum { N = sizeof cases / sizeof cases[0] };
    RillTensor mean[N], deviation[N], limit[N];
    for (int i = 0; i < N; i++) {
        RillTensor x = rill_initial(g, &cases[i].init, TF_FLOAT, (int64_t[]){100, 200}, 2);
        x = rill_identity(g, x, "drawn");
        mean[i] = rill_reduce_mean(g, x, NULL, 0, false);
        deviation[i] = rill_unary(g, "Sqrt", rill_reduce_mean(g, rill_binary(g, "SquaredDifference", x, rill_const_f32(g, (float)cases[i].mean)), NULL, 0, false));
        limit[i] = rill_op(g, "Max", NULL, (RillTensor[]){rill_unary(g, "Abs", x), rill_const_i32s(g, (int32_t[]){0, 1}, 2)}, 2, NULL, 0);
    }
    RillSession *s = open_local(g);
    for (int i = 0; i < N; i++) {
        assert_float_equal(number_of(s, mean[i]), cases[i].mean, 0.05);
        assert_float_equal(number_of(s, deviation[i]), cases[i].deviation, 0.03 * cases[i].deviation + 1e-6);
        assert_true(number_of(s, limit[i]) <= cases[i].limit + 1e-5);
    }
    rill_session_close(s);
    rill_graph_free(g);
}

static void the_report_names_what_has_no_value(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    RillVariable *a = rill_variable(g, "a", NULL, 0, NULL);
    rill_variable(g, "b", (int64_t[]){4}, 1, &(RillVariableOptions){.partitions = 2});
    rill_variable(g, "local", NULL, 0, &(RillVariableOptions){.local = true});
    RillTensor report = rill_report_uninitialized(g);
    TF_Operation *init = rill_init_op(g);
    RillSession *s = open_local(g);
    TF_Status *status = TF_NewStatus();
    TF_Tensor *names = NULL;
    run_op(s, rill_variable_initializer(a));
    rill_session_run(s, &(RillStep){.fetches = &report, .values = &names, .fetch_count = 1}, status);
    expect_status(status);
    assert_int_equal(TF_TensorElementCount(names), 2);
    char *first = rill_value_text(names, 0);
    assert_string_equal(first, "b/part_0");
    free(first);
    TF_DeleteTensor(names);
    run_op(s, init);
    rill_session_run(s, &(RillStep){.fetches = &report, .values = &names, .fetch_count = 1}, status);
    assert_int_equal(TF_TensorElementCount(names), 0);
    TF_DeleteTensor(names);
    TF_DeleteStatus(status);
    rill_session_close(s);
    rill_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_shared_and_checked),
        cmocka_unit_test(the_setter_balances_bytes_or_goes_round),
        cmocka_unit_test(big_variables_are_split_over_the_ps_tasks),
        cmocka_unit_test(parts_read_and_write_as_one),
        cmocka_unit_test(initial_values_have_their_spread),
        cmocka_unit_test(the_report_names_what_has_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
