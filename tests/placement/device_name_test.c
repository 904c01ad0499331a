/* device_name_test.c: device names parsed, matched, merged, printed. */
#include "placement/device_name.h"

#include "unit_test.h"

static DeviceName parse(const char *text) {
    DeviceName d;
    expect_ok(device_name_parse(str_of(text), &d));
    return d;
}

static void every_form_means_the_same_device(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *const rows[][2] = {
        {"", ""},
        {"/", ""},
        {"/job:ps", "/job:ps"},
        {"/job:ps/replica:0/task:3/device:CPU:1", "/job:ps/replica:0/task:3/device:CPU:1"},
        {"/task:3/job:ps", "/job:ps/task:3"},
        {"/cpu:0", "/device:CPU:0"},
        {"/gpu:2", "/device:GPU:2"},
        {"/job:w/device:cpu:0", "/job:w/device:CPU:0"},
        {"/device:CPU", "/device:CPU:*"},
        {"/job:*/replica:*/task:*/device:CPU:*", "/device:CPU:*"},
        {"/job:my_job1/task:12", "/job:my_job1/task:12"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        DeviceName d = parse(rows[i][0]);
        expect_str(device_name_text(a, &d), rows[i][1]);
    }
    arena_free(a);
}

static void malformed_names_are_quoted(void **state) {
    (void)state;
    const char *const bad[] = {"cpu:0", "job:ps", "/job", "/job:", "/job:9x", "/job:a-b", "/task:x", "/task:-1", "/task:", "/task:99999999999", "//", "/job:ps//task:0",
                               "/device:", "/device:CPU:x", "/cpu:0:1", "/unknown:0", "/device:CPU:0/x", "/replica:1.5"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        DeviceName d;
        expect_error(device_name_parse(str_of(bad[i]), &d), CODE_INVALID_ARGUMENT, bad[i]);
    }
}

static void a_partial_name_matches_what_it_says(void **state) {
    (void)state;
    DeviceName full = parse("/job:ps/replica:0/task:1/device:CPU:0");
    const struct {
        const char *pattern;
        bool matches;
    } rows[] = {{"", true}, {"/job:ps", true}, {"/job:worker", false}, {"/task:1", true}, {"/task:0", false}, {"/device:cpu:0", true}, {"/gpu:0", false}, {"/cpu:1", false}, {"/job:ps/task:1/cpu:0", true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        DeviceName p = parse(rows[i].pattern);
        assert_int_equal(device_name_matches(&p, &full), rows[i].matches);
    }
    DeviceName part = parse("/job:ps");
    assert_false(device_name_matches(&full, &part));
    DeviceName lower = parse("/job:ps/replica:0/task:1/device:cpu:0");
    assert_true(device_name_eq(&full, &lower));
    assert_false(device_name_eq(&full, &part));
}

static void merging_fills_in_and_finds_clashes(void **state) {
    (void)state;
    Arena *a = arena_new();
    const struct {
        const char *into, *from;
        bool soft, ok;
        const char *result;
    } rows[] = {
        {"/job:ps", "/task:1", false, true, "/job:ps/task:1"},
        {"/job:ps", "/job:worker", false, false, "/job:ps"},
        {"/job:ps/task:0", "/task:1", true, false, "/job:ps/task:0"},
        {"/job:ps/cpu:0", "/gpu:0", false, false, "/job:ps/device:CPU:0"},
        {"/job:ps/cpu:0", "/gpu:0", true, true, "/job:ps"},
        {"/cpu:0", "/cpu:1/job:w", true, true, "/job:w/device:CPU:*"},
        {"", "", false, true, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        DeviceName into = parse(rows[i].into), from = parse(rows[i].from);
        assert_int_equal(device_name_merge(&into, &from, rows[i].soft), rows[i].ok);
        expect_str(device_name_text(a, &into), rows[i].result);
    }
    DeviceName mine = parse("/job:a/task:1"), more = parse("/job:b/cpu:0");
    device_name_fill(&mine, &more);
    expect_str(device_name_text(a, &mine), "/job:a/task:1/device:CPU:0");
    expect_str(device_task_text(STR("/job:ps/replica:0/task:0/device:CPU:0")), "/job:ps/replica:0/task:0");
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_means_the_same_device), cmocka_unit_test(malformed_names_are_quoted),
        cmocka_unit_test(a_partial_name_matches_what_it_says), cmocka_unit_test(merging_fills_in_and_finds_clashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
