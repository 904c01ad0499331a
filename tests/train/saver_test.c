/* saver_test.c: checkpoints: parts, names, retention, damage; and event files. */
#include "train_test.h"

static RillVariable *counted(RillGraph *g, const char *name, int64_t rows, int partitions) {
    float *data = calloc((size_t)rows * 2, sizeof *data);
    for (int64_t i = 0; i < rows * 2; i++) data[i] = (float)i;
    int64_t dims[] = {rows, 2};
    RillTensor start = rill_const(g, "start", TF_FLOAT, dims, 2, data);
    free(data);
    return rill_variable(g, name, dims, 2, &(RillVariableOptions){.partitions = partitions, .init = {.kind = RILL_INIT_TENSOR, .tensor = start}});
}

static RillTensor total(RillGraph *g, const RillVariable *v) {
    return rill_reduce_sum(g, rill_mul(g, rill_variable_value(v), rill_variable_value(v)), NULL, 0, false);
}

/* Saved in two parts, restored in three, in one, and under another name. */
static void parts_are_restored_in_other_numbers(void **state) {
    (void)state;
    char *folder = temporary_folder(), path[256];
    snprintf(path, sizeof path, "%s/model.ckpt", folder);
    TF_Status *status = TF_NewStatus();
    RillGraph *g = rill_graph_new();
    RillVariable *v = counted(g, "v", 7, 2);
    RillTensor sum = total(g, v);
    RillSaver *saver = rill_saver_new(g, NULL);
    TF_Operation *init = rill_init_op(g);
    RillSession *s = open_local(g);
    run_op(s, init);
    double wants = number_of(s, sum);
    char *prefix = rill_saver_save(saver, s, path, 12, status);
    expect_status(status);
    rill_session_close(s);
    rill_saver_free(saver);
    rill_graph_free(g);
    for (int parts = 1; parts <= 3; parts++) {
        g = rill_graph_new();
        v = rill_variable(g, "other", (int64_t[]){7, 2}, 2, &(RillVariableOptions){.partitions = parts});
        sum = total(g, v);
        RillVariable *const list[] = {v};
        const char *const names[] = {"v"};
        saver = rill_saver_new(g, &(RillSaverOptions){.variables = list, .names = names, .count = 1});
        s = open_local(g);
        char *latest = rill_latest_checkpoint(folder);
        assert_string_equal(latest, prefix);
        rill_saver_restore(saver, s, latest, status);
        expect_status(status);
        assert_float_equal(number_of(s, sum), wants, 0);
        free(latest);
        rill_session_close(s);
        rill_saver_free(saver);
        rill_graph_free(g);
    }
    free(prefix);
    TF_DeleteStatus(status);
    free(folder);
}

static void old_ones_go_and_damaged_ones_are_passed_over(void **state) {
    (void)state;
    char *folder = temporary_folder(), path[256], name[300];
    snprintf(path, sizeof path, "%s/model.ckpt", folder);
    TF_Status *status = TF_NewStatus();
    RillGraph *g = rill_graph_new();
    counted(g, "v", 3, 1);
    RillSaver *saver = rill_saver_new(g, &(RillSaverOptions){.keep = 3});
    TF_Operation *init = rill_init_op(g);
    RillSession *s = open_local(g);
    run_op(s, init);
    for (int64_t step = 1; step <= 5; step++) {
        free(rill_saver_save(saver, s, path, step, status));
        expect_status(status);
    }
    for (int step = 1; step <= 5; step++) {
        snprintf(name, sizeof name, "%s-%d.index", path, step);
        assert_int_equal(access(name, F_OK) == 0, step >= 3);
    }
    snprintf(name, sizeof name, "%s-5.data-00000-of-00001", path);
    assert_int_equal(unlink(name), 0);
    char *latest = rill_latest_checkpoint(folder);
    snprintf(name, sizeof name, "%s-4", path);
    assert_string_equal(latest, name);
    free(latest);
    assert_null(rill_latest_checkpoint("/no/such/folder"));
    rill_saver_restore(saver, s, "/no/such/checkpoint", status);
    assert_int_equal(TF_GetCode(status), TF_NOT_FOUND);
    assert_non_null(strstr(TF_Message(status), "/no/such/checkpoint"));
    assert_null(rill_saver_save(saver, s, "/proc/none/model.ckpt", 1, status));
    assert_int_not_equal(TF_GetCode(status), TF_OK);
    rill_session_close(s);
    rill_saver_free(saver);
    rill_graph_free(g);
    TF_DeleteStatus(status);
    free(folder);
}

static void a_graph_without_variables_has_nothing_to_save(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    assert_null(rill_saver_new(g, NULL));
    expect_mistake(g, TF_FAILED_PRECONDITION, "no variables to save");
    rill_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_restored_in_other_numbers),
        cmocka_unit_test(old_ones_go_and_damaged_ones_are_passed_over),
        cmocka_unit_test(a_graph_without_variables_has_nothing_to_save),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
