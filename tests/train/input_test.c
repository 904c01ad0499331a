/* input_test.c: records written, then read by queues and by datasets; coordinators; trainings that end with their input. */
#include "train_test.h"

enum { COUNT = 20 };

/* Records with a number (float bytes) and a name. */
static char *write_numbers(const char *folder, const char *compression) {
    char *path = malloc(300);
    snprintf(path, 300, "%s/numbers%s.tfrecords", folder, compression);
    TF_Status *status = TF_NewStatus();
    RillRecordWriter *w = rill_record_writer_open(path, compression, status);
    expect_status(status);
    for (int i = 0; i < COUNT; i++) {
        float x = (float)i;
        rill_record_write_example(w, (RillExampleBytes[]){{"x", &x, sizeof x}, {"name", "n", 1}}, 2, status);
        expect_status(status);
    }
    rill_record_writer_close(w, status);
    expect_status(status);
    TF_DeleteStatus(status);
    return path;
}

static RillTensor number_in(RillGraph *g, RillTensor record) {
    RillTensor parsed[2];
    rill_parse_example(g, record, (RillFeature[]){{"x", TF_STRING, {0}}, {"name", TF_STRING, {0}}}, 2, parsed);
    return rill_decode_raw(g, parsed[0], TF_FLOAT);
}

/* Runs until the input ends; the sum of all numbers, and how many batches. */
static double sum_until_end(RillGraph *g, RillTensor sum, int *batches) {
    TF_Status *status = TF_NewStatus();
    RillTraining *t = rill_training_open(g, &(RillTrainingOptions){.summary_steps = -1}, status);
    expect_status(status);
    double all = 0;
    *batches = 0;
    while (!rill_training_should_stop(t)) {
        TF_Tensor *value = NULL;
        if (rill_training_run(t, &(RillStep){.fetches = &sum, .values = &value, .fetch_count = 1}) != TF_OK) continue;
        all += rill_value_number(value);
        ++*batches;
        TF_DeleteTensor(value);
    }
    assert_string_equal(rill_training_message(t), "");
    assert_int_equal(rill_training_close(t), 0);
    TF_DeleteStatus(status);
    return all;
}

static void queues_read_every_record_of_every_epoch(void **state) {
    (void)state;
    char *folder = temporary_folder();
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        char *path = write_numbers(folder, shuffled ? "GZIP" : "");
        const char *files[] = {path};
        RillGraph *g = rill_graph_new();
        RillTensor record = rill_read_record(g, rill_file_queue(g, files, 1, 3, shuffled), shuffled ? "GZIP" : "");
        RillTensor x = rill_reshape(g, number_in(g, record), (int64_t[]){1}, 1), batch;
        rill_batch(g, &x, 1, &(RillBatch){.size = 7, .threads = 2, .min_after = shuffled ? 5 : 0, .allow_smaller = true}, &batch);
        int batches;
        double sum = sum_until_end(g, rill_reduce_sum(g, batch, NULL, 0, false), &batches);
        assert_float_equal(sum, 3 * COUNT * (COUNT - 1) / 2, 0);
        assert_int_equal(batches, (3 * COUNT + 6) / 7);
        rill_graph_free(g);
        free(path);
    }
    free(folder);
}

static void datasets_read_shuffle_shard_and_batch(void **state) {
    (void)state;
    char *folder = temporary_folder(), *path = write_numbers(folder, "");
    const char *files[] = {path};
    double sums[2];
    for (int i = 0; i < 2; i++) {
        RillGraph *g = rill_graph_new();
        RillDataset *d = rill_dataset_shard(rill_dataset_records(g, files, 1, ""), 2, i);
        d = rill_dataset_prefetch(rill_dataset_batch(rill_dataset_repeat(rill_dataset_shuffle(d, 8), 2), 3, false), 2);
        RillTensor records;
        rill_dataset_next(d, &records, 1);
        int batches;
        sums[i] = sum_until_end(g, rill_reduce_sum(g, number_in(g, records), NULL, 0, false), &batches);
        assert_int_equal(batches, 7); /* 2 * 10 records by threes */
        rill_graph_free(g);
    }
    assert_float_equal(sums[0], 2 * 90, 0); /* even ones, twice */
    assert_float_equal(sums[1], 2 * 100, 0);
    free(path);
    free(folder);
}

static void slices_take_and_skip(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    float data[10];
    for (int i = 0; i < 10; i++) data[i] = (float)i;
    RillTensor x = rill_const(g, "x", TF_FLOAT, (int64_t[]){10}, 1, data), next;
    rill_dataset_next(rill_dataset_take(rill_dataset_skip(rill_dataset_slices(g, &x, 1), 2), 3), &next, 1);
    int batches;
    assert_float_equal(sum_until_end(g, next, &batches), 2 + 3 + 4, 0);
    assert_int_equal(batches, 3);
    rill_graph_free(g);
}

static void broken_input_fails_the_training(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    const char *files[] = {"/no/such/file.tfrecords"};
    RillTensor x = rill_reshape(g, number_in(g, rill_read_record(g, rill_file_queue(g, files, 1, 1, false), "")), (int64_t[]){1}, 1), batch;
    rill_batch(g, &x, 1, &(RillBatch){.size = 2}, &batch);
    TF_Status *status = TF_NewStatus();
    RillTraining *t = rill_training_open(g, &(RillTrainingOptions){.summary_steps = -1}, status);
    expect_status(status);
    while (!rill_training_should_stop(t)) {
        TF_Tensor *value = NULL;
        rill_training_run(t, &(RillStep){.fetches = &batch, .values = &value, .fetch_count = 1});
        if (value) TF_DeleteTensor(value);
    }
    assert_non_null(strstr(rill_training_message(t), "/no/such/file.tfrecords"));
    assert_int_equal(rill_training_close(t), 1);
    TF_DeleteStatus(status);
    rill_graph_free(g);
}

/* ---- Coordinators ---- */

static void wait_for_stop(RillCoordinator *c, void *arg) {
    rill_coordinator_wait(c, -1);
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_SEQ_CST);
}

static void fail_once(RillCoordinator *c, void *arg) {
    (void)arg;
    rill_coordinator_stop(c, TF_INTERNAL, "the thread failed");
}

static void one_failure_ends_all_threads(void **state) {
    (void)state;
    RillCoordinator *c = rill_coordinator_new();
    int ended = 0;
    assert_false(rill_coordinator_wait(c, 1));
    for (int i = 0; i < 5; i++) rill_coordinator_start(c, wait_for_stop, &ended);
    rill_coordinator_start(c, fail_once, NULL);
    TF_Status *status = TF_NewStatus();
    assert_int_equal(rill_coordinator_join(c, status), TF_INTERNAL);
    assert_string_equal(TF_Message(status), "the thread failed");
    assert_int_equal(ended, 5);
    rill_coordinator_stop(c, TF_OUT_OF_RANGE, "no error"); /* the first one stays */
    assert_int_equal(rill_coordinator_join(c, status), TF_INTERNAL);
    TF_DeleteStatus(status);
    rill_coordinator_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_read_every_record_of_every_epoch),
        cmocka_unit_test(datasets_read_shuffle_shard_and_batch),
        cmocka_unit_test(slices_take_and_skip),
        cmocka_unit_test(broken_input_fails_the_training),
        cmocka_unit_test(one_failure_ends_all_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
