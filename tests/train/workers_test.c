/* workers_test.c: clusters in this process whose workers leave early or are slow; averages that move with synchronous updates; strategies. */
#include <pthread.h>
#include <stdatomic.h>

#include "train_test.h"

typedef enum Mode { SYNC, BACKUP, BOUNDED } Mode;

typedef struct Job {
    Mode mode;
    int wanted[2];       /* runs by worker */
    _Atomic int done[2]; /* that went well */
    double value, step, average;
    pthread_mutex_t mutex; /* guards chief_done */
    pthread_cond_t changed;
    bool waits, chief_done; /* waits: worker 1 begins when the chief has done its runs */
} Job;

static TF_Operation *descend(RillGraph *g, RillTask *task, const Job *job, RillTensor loss, const RillAverages *averages) {
    RillOptimizer o = {.method = RILL_SGD, .learning_rate = 1};
    if (job->mode == BOUNDED) return rill_minimize_bounded(g, task, &o, loss, 3);
    return rill_minimize_sync(g, task, &o, loss, &(RillSync){.aggregate = job->mode == BACKUP ? 1 : 0, .averages = averages});
}

static void wait_for_chief(Job *job) {
    pthread_mutex_lock(&job->mutex);
    while (!job->chief_done) pthread_cond_wait(&job->changed, &job->mutex);
    pthread_mutex_unlock(&job->mutex);
}

static void tell_chief_is_done(Job *job) {
    pthread_mutex_lock(&job->mutex);
    job->chief_done = true;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->mutex);
}

/* The gradient is 1 and so is the learning rate: every update takes 1 away. */
static int work(RillTask *task, void *arg) {
    Job *job = arg;
    int own = rill_task_index(task);
    RillGraph *g = rill_graph_new();
    RillDeviceSetter setter = rill_task_device_setter(task);
    rill_device_setter_push(g, &setter);
    RillVariable *v = rill_variable(g, "v", NULL, 0, &(RillVariableOptions){.init = {.kind = RILL_INIT_ZEROS}});
    RillAverages *averages = rill_averages_new(g, 0.5, false);
    TF_Operation *op = descend(g, task, job, rill_variable_value(v), averages);
    rill_averages_push(averages);
    RillTensor average = rill_variable_value(rill_variable(g, "v", NULL, 0, NULL));
    rill_averages_pop(averages);
    TF_Status *status = TF_NewStatus();
    RillTraining *t = rill_training_open(g, &(RillTrainingOptions){.task = task, .wait_seconds = 0.02}, status);
    if (own == 1 && job->waits) wait_for_chief(job);
    for (int i = 0; t && i < job->wanted[own] && !rill_training_should_stop(t); i++)
        if (rill_training_run(t, &(RillStep){.targets = &op, .target_count = 1}) == TF_OK) atomic_fetch_add(&job->done[own], !rill_training_should_stop(t));
    if (t && own == 0) {
        RillTensor fetches[] = {rill_variable_value(v), rill_variable_value(rill_global_step(g)), average};
        TF_Tensor *values[3];
        if (rill_session_run(rill_training_session(t), &(RillStep){.fetches = fetches, .values = values, .fetch_count = 3}, status) == TF_OK) {
            double *out[] = {&job->value, &job->step, &job->average};
            for (int i = 0; i < 3; i++) {
                *out[i] = rill_value_number(values[i]);
                TF_DeleteTensor(values[i]);
            }
        }
    }
    int code = t ? rill_training_close(t) : 1;
    if (own == 0) tell_chief_is_done(job);
    TF_DeleteStatus(status);
    rill_averages_free(averages);
    rill_graph_free(g);
    return code;
}

static void run_job(Job *job) {
    char *argv[] = {"test", "--cluster=local", "--ps=1", "--workers=2"};
    pthread_mutex_init(&job->mutex, NULL);
    pthread_cond_init(&job->changed, NULL);
    assert_int_equal(rill_main(4, argv, work, job), 0);
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->mutex);
}

/* Without being told, the one that is left would wait for ever. */
static void who_leaves_ends_the_training_of_those_who_wait_for_it(void **state) {
    (void)state;
    for (int first = 0; first < 2; first++) {
        Job sync = {.mode = SYNC, .wanted = {first ? 1000 : 5, first ? 5 : 1000}};
        run_job(&sync);
        assert_int_equal(sync.done[first], 5);
        assert_in_range(sync.done[!first], 0, 999);
        Job bounded = {.mode = BOUNDED, .wanted = {first ? 1000 : 5, first ? 5 : 1000}};
        run_job(&bounded);
        assert_int_equal(bounded.done[first], 5);
        assert_in_range(bounded.done[!first], 5, 5 + 3);
    }
}

static void a_backup_may_leave(void **state) {
    (void)state;
    Job job = {.mode = BACKUP, .wanted = {60, 5}};
    run_job(&job);
    assert_int_equal(job.done[0], 60);
}

static void updates_go_on_without_a_slow_backup(void **state) {
    (void)state;
    Job job = {.mode = BACKUP, .wanted = {20, 1000}, .waits = true};
    run_job(&job);
    assert_int_equal(job.done[0], 20);
    assert_in_range((int)job.step, 9, 20); /* two tokens for each update: the chief may have taken both */
    assert_true(fabs(job.value + job.step) < 1.01);
    assert_true(job.done[1] < 1000);
}

/* An average that moved twice for an update would be nearer to the value. */
static void averages_move_once_for_each_update(void **state) {
    (void)state;
    Job job = {.mode = SYNC, .wanted = {12, 12}};
    run_job(&job);
    assert_true(job.average > job.value + 0.4 && job.average < job.value + 2.1); /* it is behind by 1, give or take an update between the reads */
}

static void averages_are_beside_the_parts_of_their_variables(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    rill_device_setter_push(g, &(RillDeviceSetter){.ps_tasks = 3});
    RillVariable *v = rill_variable(g, "v", (int64_t[]){9, 4}, 2, &(RillVariableOptions){.partitions = 3});
    RillAverages *averages = rill_averages_new(g, 0.5, false);
    rill_averages_push(averages);
    RillVariable *average = rill_variable(g, "v", (int64_t[]){9, 4}, 2, NULL);
    rill_averages_pop(averages);
    expect_graph(g);
    assert_ptr_not_equal(v, average);
    assert_int_equal(rill_variable_parts(average), 3);
    for (int i = 0; i < 3; i++) {
        const char *device = TF_OperationDevice(rill_variable_part(v, i, NULL, NULL).oper);
        char task[32];
        snprintf(task, sizeof task, "/job:ps/task:%d", i);
        assert_string_equal(device, task);
        assert_string_equal(device, TF_OperationDevice(rill_variable_part(average, i, NULL, NULL).oper));
    }
    rill_averages_free(averages);
    rill_graph_free(g);
}

/* ---- Strategies ---- */

typedef struct Reduced {
    double sum, mean;
    int replicas;
} Reduced;

/* Replica i gives 10 (i + 1) w, for a w that all share. */
static void replica(RillGraph *g, int i, int replicas, void *arg, RillReplica *out) {
    (void)replicas;
    (void)arg;
    RillVariable *w = rill_variable(g, "w", NULL, 0, &(RillVariableOptions){.init = {.kind = RILL_INIT_CONSTANT, .a = 2}});
    out->values[out->count++] = rill_scale(g, rill_variable_value(w), 10.0 * (i + 1));
}

static int reduce(RillTask *task, void *arg) {
    Reduced *r = arg;
    if (!rill_task_is_chief(task)) return 0;
    RillGraph *g = rill_graph_new();
    RillStrategy *s = rill_strategy_ps(g, task, RILL_IN_GRAPH);
    RillReplica replicas[8];
    rill_strategy_enter(s);
    r->replicas = rill_strategy_run(s, replica, NULL, replicas);
    RillTensor sum = rill_strategy_reduce(s, RILL_REDUCE_SUM, replicas, 0), mean = rill_strategy_reduce(s, RILL_REDUCE_MEAN, replicas, 0);
    rill_strategy_leave(s);
    TF_Operation *init = rill_init_op(g);
    int code = rill_variable_count(g) == 1 ? 0 : 2;
    for (int i = 0; i < r->replicas && !rill_graph_failed(g); i++) {
        char device[32];
        snprintf(device, sizeof device, "/job:worker/task:%d", i);
        if (!strstr(TF_OperationDevice(replicas[i].values[0].oper), device)) code = 3;
    }
    TF_Status *status = TF_NewStatus();
    RillSession *session = rill_session_open(g, task, NULL, status);
    if (!session || rill_session_run_op(session, init, status) != TF_OK) code = 4;
    if (session) {
        r->sum = rill_session_number(session, sum, status);
        r->mean = rill_session_number(session, mean, status);
    }
    rill_session_close(session);
    TF_DeleteStatus(status);
    rill_strategy_free(s);
    rill_graph_free(g);
    return code;
}

static void a_strategy_reduces_over_all_workers(void **state) {
    (void)state;
    Reduced r = {0};
    char *argv[] = {"test", "--cluster=local", "--ps=2", "--workers=3"};
    assert_int_equal(rill_main(4, argv, reduce, &r), 0);
    assert_int_equal(r.replicas, 3);
    assert_float_equal(r.sum, 120, 1e-4);
    assert_float_equal(r.mean, 40, 1e-4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_leaves_ends_the_training_of_those_who_wait_for_it),
        cmocka_unit_test(a_backup_may_leave),
        cmocka_unit_test(updates_go_on_without_a_slow_backup),
        cmocka_unit_test(averages_move_once_for_each_update),
        cmocka_unit_test(averages_are_beside_the_parts_of_their_variables),
        cmocka_unit_test(a_strategy_reduces_over_all_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
