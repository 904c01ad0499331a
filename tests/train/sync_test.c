/* sync_test.c: clusters in this process: bounded staleness, synchronous averages, backups, and what a task knows of itself. */
#include <stdatomic.h>

#include "train_test.h"

enum { STEPS = 40, STALENESS = 3 };

typedef struct Shared {
    _Atomic int done[4];  /* steps by worker */
    _Atomic int furthest; /* the most that one was ahead of the slowest */
    _Atomic int failures;
    double final;
} Shared;

static void note_step(Shared *s, int own, int workers) {
    int mine = atomic_fetch_add(&s->done[own], 1) + 1, least = mine;
    for (int i = 0; i < workers; i++) {
        int n = atomic_load(&s->done[i]);
        if (n < least) least = n;
    }
    int old = atomic_load(&s->furthest);
    while (mine - least > old && !atomic_compare_exchange_weak(&s->furthest, &old, mine - least)) {
    }
}

/* Everybody adds 1 to a variable, worker 1 slowly. */
static int bounded(RillTask *task, void *arg) {
    Shared *s = arg;
    RillGraph *g = rill_graph_new();
    RillDeviceSetter setter = rill_task_device_setter(task);
    rill_device_setter_push(g, &setter);
    RillVariable *v = rill_variable(g, "v", NULL, 0, &(RillVariableOptions){.init = {.kind = RILL_INIT_ZEROS}});
    RillTensor loss = rill_unary(g, "Neg", rill_variable_value(v)); /* its gradient is -1 */
    TF_Operation *op = rill_minimize_bounded(g, task, &(RillOptimizer){.method = RILL_SGD, .learning_rate = 1}, loss, STALENESS);
    TF_Status *status = TF_NewStatus();
    RillTraining *t = rill_training_open(g, &(RillTrainingOptions){.task = task, .wait_seconds = 0.02}, status);
    for (int i = 0; t && i < STEPS; i++) {
        if (rill_task_index(task) == 1) usleep(2000); /* the slow one */
        if (rill_training_run(t, &(RillStep){.targets = &op, .target_count = 1}) != TF_OK) atomic_fetch_add(&s->failures, 1);
        note_step(s, rill_task_index(task), rill_task_workers(task));
    }
    if (!t) atomic_fetch_add(&s->failures, 1);
    int code = t ? rill_training_close(t) : 1;
    TF_DeleteStatus(status);
    rill_graph_free(g);
    return code;
}

static void nobody_runs_ahead_of_the_slowest(void **state) {
    (void)state;
    Shared s = {0};
    char *argv[] = {"test", "--cluster=local", "--ps=1", "--workers=2"};
    assert_int_equal(rill_main(4, argv, bounded, &s), 0);
    assert_int_equal(s.failures, 0);
    assert_int_equal(s.done[0], STEPS);
    assert_int_equal(s.done[1], STEPS);
    assert_in_range(s.furthest, 1, STALENESS + 1); /* the step that is under way counts, too */
}

/* Worker i always sends the gradient i; the average of all three is 1. */
static int averaged(RillTask *task, void *arg) {
    Shared *s = arg;
    RillGraph *g = rill_graph_new();
    RillDeviceSetter setter = rill_task_device_setter(task);
    rill_device_setter_push(g, &setter);
    RillVariable *v = rill_variable(g, "v", NULL, 0, &(RillVariableOptions){.init = {.kind = RILL_INIT_ZEROS}});
    RillTensor loss = rill_scale(g, rill_variable_value(v), rill_task_index(task));
    TF_Operation *op = rill_minimize_sync(g, task, &(RillOptimizer){.method = RILL_SGD, .learning_rate = 1}, loss, NULL);
    TF_Status *status = TF_NewStatus();
    RillTraining *t = rill_training_open(g, &(RillTrainingOptions){.task = task, .wait_seconds = 0.02, .last_step = 10}, status);
    while (t && !rill_training_should_stop(t))
        if (rill_training_run(t, &(RillStep){.targets = &op, .target_count = 1}) == TF_OK) note_step(s, rill_task_index(task), rill_task_workers(task));
    if (t && rill_task_is_chief(task)) {
        double step = rill_session_number(rill_training_session(t), rill_variable_value(rill_global_step(g)), status);
        double value = rill_session_number(rill_training_session(t), rill_variable_value(v), status);
        s->final = value + step; /* each step took away 1 */
    }
    int code = t ? rill_training_close(t) : 1;
    TF_DeleteStatus(status);
    rill_graph_free(g);
    return code;
}

static void updates_are_averages_of_all_workers(void **state) {
    (void)state;
    Shared s = {.final = 99};
    char *argv[] = {"test", "--cluster=local", "--ps=2", "--workers=3"};
    assert_int_equal(rill_main(4, argv, averaged, &s), 0);
    assert_true(s.final > -1.01 && s.final < 1.01); /* a step may be applied between the two reads */
    assert_in_range(s.furthest, 0, 2);
}

static int look(RillTask *task, void *arg) {
    (void)arg;
    bool ok = rill_task_workers(task) == 2 && rill_task_count(task, "ps") == 1 && strcmp(rill_task_job(task), "worker") == 0 &&
              rill_task_is_chief(task) == (rill_task_index(task) == 0) && rill_flag_int(task, "number", 0) == 7 && rill_flag_bool(task, "quick", false) &&
              strcmp(rill_flag(task, "some_name", ""), "x y") == 0 && rill_flag_float(task, "rate", 0) == -0.5 && rill_word_count(task) == 1 &&
              strcmp(rill_word(task, 0), "word") == 0;
    return ok ? 0 : 3;
}

static void tasks_know_their_cluster_and_flags(void **state) {
    (void)state;
    char *argv[] = {"test", "--cluster=local", "--workers", "2", "--number=7", "--some-name", "x y", "--rate=-0.5", "word", "--quick"};
    assert_int_equal(rill_main(10, argv, look, NULL), 0);
}

static int fails_on_one(RillTask *task, void *arg) {
    (void)arg;
    return rill_task_index(task) == 1 ? 9 : 0;
}

static void the_code_of_a_failed_task_is_that_of_the_process(void **state) {
    (void)state;
    char *argv[] = {"test", "--cluster=local", "--ps=1", "--workers=3"};
    assert_int_equal(rill_main(4, argv, fails_on_one, NULL), 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_runs_ahead_of_the_slowest),
        cmocka_unit_test(updates_are_averages_of_all_workers),
        cmocka_unit_test(tasks_know_their_cluster_and_flags),
        cmocka_unit_test(the_code_of_a_failed_task_is_that_of_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
