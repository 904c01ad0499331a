/* group_table_test.c: a leader's groups: they form, refuse, are given up and begun anew; instances agree or do not. */
#include "collective/group_table.h"

#include <stdlib.h>

#include "unit_test.h"

typedef struct Told {
    int calls, source_rank;
    Error *err;
    Group *group;
} Told;

static void told(void *arg, Error *err, Group *group) {
    Told *t = arg;
    *t = (Told){.calls = t->calls + 1, .err = err, .group = group};
}

static void told_instance(void *arg, Error *err, int source_rank) {
    Told *t = arg;
    *t = (Told){.calls = t->calls + 1, .err = err, .source_rank = source_rank};
}

static const char *const devices[] = {
    "/job:worker/replica:0/task:2/device:CPU:0", "/job:worker/replica:0/task:10/device:CPU:0", "/job:chief/replica:0/task:0/device:CPU:0",
    "/job:worker/replica:0/task:2/device:CPU:1"};

static GroupJoin join_of(int device, int size, uint64_t incarnation) {
    Str name = str_of(devices[device]);
    return (GroupJoin){.key = 7, .size = size, .device_type = STR("CPU"), .device = name, .task = str_slice(name, 0, name.len - 13), .incarnation = incarnation};
}

static Told joins(GroupTable *t, int device, int size, uint64_t incarnation, const void *session) {
    Told got = {0};
    GroupJoin j = join_of(device, size, incarnation);
    j.session = session;
    j.asks_again = session != NULL;
    group_table_join(t, &j, told, &got);
    assert_int_equal(got.calls, 1);
    return got;
}

static void waits(GroupTable *t, int device, int size, uint64_t incarnation, const void *session, Told *got) {
    GroupJoin j = join_of(device, size, incarnation);
    j.session = session;
    j.asks_again = session != NULL;
    group_table_join(t, &j, told, got);
    assert_int_equal(got->calls, 0);
}

static void a_full_group_is_told_to_all_in_the_order_of_tasks(void **state) {
    (void)state;
    GroupTable *t = group_table_new();
    Told got[4] = {0};
    for (int i = 0; i < 3; i++) waits(t, i, 4, 1, NULL, &got[i]);
    char *text = group_table_waits_for(t, 7);
    assert_non_null(strstr(text, "1 of 4 members"));
    assert_non_null(strstr(text, devices[1]));
    free(text);
    got[3] = joins(t, 3, 4, 1, NULL);
    const int order[] = {2, 0, 3, 1}; /* chief, task 2 with its two devices, task 10 */
    for (int i = 0; i < 4; i++) {
        assert_int_equal(got[i].calls, 1);
        assert_null(got[i].err);
        assert_int_equal(got[i].group->task_count, 3);
        for (int r = 0; r < 4; r++) assert_string_equal(got[i].group->members[r].device, devices[order[r]]);
        assert_int_equal(group_rank(got[i].group, str_of(devices[1])), 3);
        group_unref(got[i].group);
    }
    assert_null(group_table_waits_for(t, 7));
    group_table_free(t);
}

static void members_that_do_not_fit_are_an_error_for_all(void **state) {
    (void)state;
    GroupTable *t = group_table_new();
    int session = 0;
    Told first = {0};
    waits(t, 0, 2, 1, &session, &first);
    Told second = joins(t, 1, 3, 1, NULL);
    expect_error(second.err, CODE_INTERNAL, "is joining a group with size3, but that group has size 2 (group_key=7)");
    assert_int_equal(first.calls, 1);
    expect_error(first.err, CODE_INTERNAL, "size3");
    first = (Told){0};
    waits(t, 0, 2, 1, &session, &first);
    group_unref(joins(t, 1, 2, 1, NULL).group);
    group_unref(first.group);
    expect_error(joins(t, 2, 2, 1, NULL).err, CODE_INTERNAL, "already full");
    group_unref(joins(t, 1, 2, 1, NULL).group); /* the others still have it */
    group_table_free(t);
}

static void a_group_of_a_closed_session_gives_way(void **state) {
    (void)state;
    GroupTable *t = group_table_new();
    int session = 0;
    group_unref(joins(t, 0, 1, 1, &session).group);
    group_table_session_closed(t, &session);
    group_unref(joins(t, 0, 1, 1, NULL).group); /* fits: the same group */
    Told got = {0};
    waits(t, 0, 2, 1, NULL, &got); /* another program */
    group_unref(joins(t, 1, 2, 1, NULL).group);
    group_unref(got.group);
    group_table_free(t);
}

static void a_restarted_member_begins_the_group_anew(void **state) {
    (void)state;
    GroupTable *t = group_table_new();
    int session = 0;
    Told got = {0};
    waits(t, 0, 2, 1, &session, &got);
    group_unref(joins(t, 1, 2, 1, NULL).group);
    group_unref(got.group);
    got = (Told){0};
    waits(t, 1, 2, 99, NULL, &got);
    group_unref(joins(t, 0, 2, 1, &session).group);
    assert_int_equal(got.group->members[1].incarnation, 99);
    group_unref(got.group);
    group_table_forget(t, 7);
    got = (Told){0};
    waits(t, 0, 2, 1, &session, &got);
    assert_true(group_table_withdraw(t, 7, &got));
    group_table_free(t);
}

static void who_gives_up_is_no_member_any_more(void **state) {
    (void)state;
    GroupTable *t = group_table_new();
    Told a = {0}, again = {0}, b = {0};
    waits(t, 0, 2, 1, NULL, &a);
    waits(t, 0, 2, 1, NULL, &again);
    assert_true(group_table_withdraw(t, 7, &a));
    assert_false(group_table_withdraw(t, 7, &a));
    assert_true(group_table_withdraw(t, 7, &again));
    waits(t, 1, 2, 1, NULL, &b);
    group_unref(joins(t, 2, 2, 1, NULL).group);
    assert_int_equal(a.calls + again.calls, 0);
    group_unref(b.group);
    group_table_free(t);
}

static GroupTable *table_of_two(const void *session) {
    GroupTable *t = group_table_new();
    Told got = {0};
    waits(t, 0, 2, 1, session, &got);
    group_unref(joins(t, 1, 2, 1, NULL).group);
    group_unref(got.group);
    return t;
}

static InstanceJoin instance(int device, CollectiveType type, DataType dtype, int64_t n, bool is_source) {
    return (InstanceJoin){.group_key = 7, .instance_key = 3, .group_size = 2, .type = type, .dtype = dtype, .shape = shape_vector(n), .device = str_of(devices[device]),
                          .is_source = is_source};
}

static Error *agree(GroupTable *t, InstanceJoin j) {
    Told got = {0};
    group_table_instance(t, &j, told_instance, &got);
    assert_int_equal(got.calls, 1);
    return got.err;
}

static void instances_must_agree(void **state) {
    (void)state;
    int session = 0;
    GroupTable *t = table_of_two(&session);
    expect_ok(agree(t, instance(0, COLLECTIVE_REDUCE, DT_FLOAT, 4, false)));
    expect_ok(agree(t, instance(1, COLLECTIVE_REDUCE, DT_FLOAT, 4, false)));
    expect_error(agree(t, instance(1, COLLECTIVE_REDUCE, DT_FLOAT, 5, false)), CODE_INVALID_ARGUMENT,
                 "task:10/device:CPU:0 expected shape [5] but another member in the group expected shape [4]");
    expect_error(agree(t, instance(1, COLLECTIVE_REDUCE, DT_INT32, 4, false)), CODE_INTERNAL, "expected type 0 and data_type 1 but got type 0 and data_type 3");
    expect_error(agree(t, instance(2, COLLECTIVE_REDUCE, DT_FLOAT, 4, false)), CODE_FAILED_PRECONDITION, "not in group 7");
    group_table_session_closed(t, &session);
    expect_ok(agree(t, instance(1, COLLECTIVE_GATHER, DT_INT32, 9, false))); /* of the next program */
    InstanceJoin unknown = instance(0, COLLECTIVE_REDUCE, DT_FLOAT, 4, false);
    unknown.group_key = 8;
    expect_error(agree(t, unknown), CODE_FAILED_PRECONDITION, "group 8 not found");
    group_table_free(t);
}

static void a_broadcast_has_one_source(void **state) {
    (void)state;
    int session = 0;
    GroupTable *t = table_of_two(&session);
    for (int source = 0; source < 2; source++) { /* the second time another program, under the same keys */
        Told got = {0};
        InstanceJoin first = instance(0, COLLECTIVE_BROADCAST, DT_FLOAT, 4, source == 0), second = instance(1, COLLECTIVE_BROADCAST, DT_FLOAT, 4, source == 1);
        group_table_instance(t, &first, told_instance, &got);
        assert_int_equal(got.calls, 0);
        assert_true(group_table_instance_withdraw(t, &first, &got));
        group_table_instance(t, &first, told_instance, &got);
        expect_ok(agree(t, second));
        assert_int_equal(got.calls, 1);
        assert_null(got.err);
        assert_int_equal(got.source_rank, source);
    }
    group_table_session_closed(t, &session);
    const bool sources[] = {false, true};
    const char *const texts[] = {"found no source for broadcast", "already has source 0, received second claim from 1"};
    for (int i = 0; i < 2; i++) {
        Told got = {0};
        InstanceJoin first = instance(0, COLLECTIVE_BROADCAST, DT_INT32, 4, sources[i]);
        group_table_instance(t, &first, told_instance, &got);
        expect_error(agree(t, instance(1, COLLECTIVE_BROADCAST, DT_INT32, 4, sources[i])), CODE_INTERNAL, texts[i]);
        expect_error(got.err, CODE_INTERNAL, texts[i]);
    }
    group_table_free(t);
}

static void who_says_it_once_is_remembered(void **state) {
    (void)state;
    int sessions[2] = {0};
    GroupTable *t = table_of_two(&sessions[0]);
    InstanceJoin first = instance(0, COLLECTIVE_BROADCAST, DT_FLOAT, 4, false);
    Told got = {0};
    group_table_instance(t, &first, told_instance, &got);
    expect_ok(agree(t, instance(1, COLLECTIVE_BROADCAST, DT_FLOAT, 4, true)));
    assert_int_equal(got.source_rank, 1);
    group_table_session_closed(t, &sessions[0]);
    group_unref(joins(t, 0, 2, 1, &sessions[1]).group);
    Told again = {0};
    group_table_instance(t, &first, told_instance, &again);
    assert_int_equal(again.calls, 1);
    assert_null(again.err);
    assert_int_equal(again.source_rank, 1);
    group_table_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_group_is_told_to_all_in_the_order_of_tasks),
        cmocka_unit_test(members_that_do_not_fit_are_an_error_for_all),
        cmocka_unit_test(a_group_of_a_closed_session_gives_way),
        cmocka_unit_test(a_restarted_member_begins_the_group_anew),
        cmocka_unit_test(who_gives_up_is_no_member_any_more),
        cmocka_unit_test(instances_must_agree),
        cmocka_unit_test(a_broadcast_has_one_source),
        cmocka_unit_test(who_says_it_once_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
