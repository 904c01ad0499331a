/* rendezvous_test.c: values meet those who wait for them: either first, dead, aborted, withdrawn, in many threads; cancellation; resources. */
#include "runtime/rendezvous.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/thread.h"
#include "runtime/cancel.h"
#include "runtime/resource.h"
#include "unit_test.h"

typedef struct Got {
    int calls;
    Error *err;
    Tensor *value;
    bool is_dead;
} Got;

static void got(void *arg, Error *err, Tensor *value, bool is_dead) {
    Got *g = arg;
    *g = (Got){g->calls + 1, err, value, is_dead};
}

static void send_i32(Rendezvous *r, const char *key, int v) {
    Tensor *t = tensor_scalar_i32(v);
    expect_ok(rendezvous_send(r, str_of(key), t, false));
    tensor_unref(t);
}

static void expect_i32(Got *g, int v) {
    assert_int_equal(g->calls, 1);
    assert_null(g->err);
    assert_int_equal(tensor_i32(g->value)[0], v);
    tensor_unref(g->value);
}

static void either_may_come_first(void **state) {
    (void)state;
    Rendezvous *r = rendezvous_new(7, NULL, NULL);
    assert_int_equal(rendezvous_step_id(r), 7);
    Got a = {0}, b = {0};
    send_i32(r, "a", 1);
    rendezvous_recv(r, STR("a"), got, &a);
    expect_i32(&a, 1);
    rendezvous_recv(r, STR("b"), got, &b);
    assert_int_equal(b.calls, 0);
    send_i32(r, "b", 2);
    expect_i32(&b, 2);
    rendezvous_unref(r);
}

static void values_of_one_key_come_in_order(void **state) {
    (void)state;
    Rendezvous *r = rendezvous_new(1, NULL, NULL);
    Got g[4] = {0};
    for (int i = 0; i < 3; i++) send_i32(r, "k", i);
    for (int i = 0; i < 4; i++) rendezvous_recv(r, STR("k"), got, &g[i]);
    for (int i = 0; i < 3; i++) expect_i32(&g[i], i);
    assert_int_equal(g[3].calls, 0);
    send_i32(r, "k", 3);
    expect_i32(&g[3], 3);
    send_i32(r, "left over", 1); /* freed with the rendezvous */
    send_i32(r, "left over", 2);
    rendezvous_unref(r);
}

static void a_dead_value_arrives_without_a_tensor(void **state) {
    (void)state;
    Rendezvous *r = rendezvous_new(1, NULL, NULL);
    Got a = {0}, b = {0};
    expect_ok(rendezvous_send(r, STR("a"), NULL, true));
    rendezvous_recv(r, STR("a"), got, &a);
    rendezvous_recv(r, STR("b"), got, &b);
    expect_ok(rendezvous_send(r, STR("b"), NULL, true));
    assert_true(a.calls == 1 && a.is_dead && !a.value && !a.err);
    assert_true(b.calls == 1 && b.is_dead && !b.value && !b.err);
    rendezvous_unref(r);
}

static void an_abort_reaches_all_and_the_first_reason_stays(void **state) {
    (void)state;
    Rendezvous *r = rendezvous_new(1, NULL, NULL);
    Got waiting[3] = {0}, later = {0}, remote = {0};
    for (int i = 0; i < 2; i++) rendezvous_recv(r, STR("same"), got, &waiting[i]);
    rendezvous_recv(r, STR("other"), got, &waiting[2]);
    send_i32(r, "unread", 1);
    Error *first = error_invalid("first"), *second = error_invalid("second");
    assert_false(rendezvous_is_aborted(r));
    rendezvous_abort(r, first);
    rendezvous_abort(r, second);
    assert_true(rendezvous_is_aborted(r));
    rendezvous_recv(r, STR("unread"), got, &later);
    rendezvous_recv_remote(r, STR("x"), got, &remote);
    Tensor *t = tensor_scalar_i32(1);
    expect_error(rendezvous_send(r, STR("x"), t, false), CODE_INVALID_ARGUMENT, "first");
    tensor_unref(t);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(waiting[i].calls, 1);
        expect_error(waiting[i].err, CODE_INVALID_ARGUMENT, "first");
    }
    expect_error(later.err, CODE_INVALID_ARGUMENT, "first");
    expect_error(remote.err, CODE_INVALID_ARGUMENT, "first");
    error_free(first);
    error_free(second);
    rendezvous_unref(r);
}

static void the_end_of_a_step_turns_all_away(void **state) {
    (void)state;
    Rendezvous *r = rendezvous_new(7, NULL, NULL);
    Got waiting = {0}, later = {0};
    rendezvous_recv(r, STR("k"), got, &waiting);
    send_i32(r, "unread", 1);
    rendezvous_end(r);
    assert_true(rendezvous_is_aborted(r));
    assert_true(rendezvous_is_empty(r));
    rendezvous_recv(r, STR("unread"), got, &later);
    assert_int_equal(waiting.calls, 1);
    assert_true(waiting.err->derived);
    expect_error(waiting.err, CODE_ABORTED, "Cleanup 7");
    expect_error(later.err, CODE_ABORTED, "Cleanup 7");
    Error *late = error_invalid("late");
    rendezvous_abort(r, late); /* the first reason stays */
    error_free(late);
    Tensor *t = tensor_scalar_i32(1);
    expect_error(rendezvous_send(r, STR("x"), t, false), CODE_ABORTED, "Cleanup 7");
    tensor_unref(t);
    rendezvous_unref(r);
}

static void who_withdraws_is_not_called(void **state) {
    (void)state;
    Rendezvous *r = rendezvous_new(1, NULL, NULL);
    Got g[3] = {0};
    for (int i = 0; i < 3; i++) rendezvous_recv(r, STR("k"), got, &g[i]);
    assert_false(rendezvous_withdraw(r, STR("k"), r));
    assert_false(rendezvous_withdraw(r, STR("no"), &g[0]));
    assert_true(rendezvous_withdraw(r, STR("k"), &g[1])); /* in the middle */
    assert_false(rendezvous_withdraw(r, STR("k"), &g[1]));
    assert_true(rendezvous_withdraw(r, STR("k"), &g[0])); /* the first */
    send_i32(r, "k", 5);
    expect_i32(&g[2], 5);
    assert_int_equal(g[0].calls + g[1].calls, 0);
    assert_false(rendezvous_withdraw(r, STR("k"), &g[2]));
    rendezvous_unref(r);
}

static void without_a_way_to_other_tasks_a_remote_receive_fails(void **state) {
    (void)state;
    Rendezvous *r = rendezvous_new(1, NULL, NULL);
    Got g = {0};
    rendezvous_recv_remote(r, STR("key"), got, &g);
    expect_error(g.err, CODE_INTERNAL, "key");
    rendezvous_unref(r);
}

static void keys_are_taken_apart(void **state) {
    (void)state;
    RendezvousKey k;
    assert_true(rendezvous_key_parse(STR("/job:ps/replica:0/task:0/device:CPU:0;0b2ff3ed353c55dd;/job:w/device:CPU:0;edge_6_v/read;0:0"), &k));
    expect_str(k.src_device, "/job:ps/replica:0/task:0/device:CPU:0");
    expect_str(k.dst_device, "/job:w/device:CPU:0");
    expect_str(k.edge, "edge_6_v/read");
    assert_true(k.src_incarnation == 0x0b2ff3ed353c55dd);
    const char *const bad[] = {"", ";;;;", "a;1;b;c;0:0", "a;0b2ff3ed353c55dg;b;c;0:0", "a;0b2ff3ed353c55dd;b;c", "a;0b2ff3ed353c55dd;b;;0:0", "a;0B2FF3ED353C55DD;b;c;0:0"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(rendezvous_key_parse(str_of(bad[i]), &k));
}

/* ---- Threads ---- */

enum { KEYS = 300, THREADS = 4 };

typedef struct Traffic {
    Rendezvous *r;
    _Atomic int got, failed;
    Latch all;
    int thread;
} Traffic;

static void count_got(void *arg, Error *err, Tensor *value, bool is_dead) {
    (void)is_dead;
    Traffic *t = arg;
    atomic_fetch_add(err ? &t->failed : &t->got, 1);
    error_free(err);
    tensor_unref(value);
    latch_done(&t->all);
}

static void *send_all(void *arg) {
    Rendezvous *r = arg;
    for (int i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        Tensor *t = tensor_scalar_i32(i);
        error_free(rendezvous_send(r, str_of(key), t, false));
        tensor_unref(t);
    }
    return NULL;
}

static void *recv_all(void *arg) {
    Traffic *t = arg;
    for (int i = KEYS - 1; i >= 0; i--) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        rendezvous_recv(t->r, str_of(key), count_got, t);
    }
    return NULL;
}

static void *abort_it(void *arg) {
    Error *err = error_new(CODE_ABORTED, "enough");
    rendezvous_abort(arg, err);
    error_free(err);
    return NULL;
}

static void traffic(bool abort, int *got_out) {
    Traffic t = {.r = rendezvous_new(1, NULL, NULL)};
    pthread_t threads[2 * THREADS + 1];
    latch_init(&t.all, THREADS * KEYS);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[2 * i], NULL, send_all, t.r);
        pthread_create(&threads[2 * i + 1], NULL, recv_all, &t);
    }
    pthread_create(&threads[2 * THREADS], NULL, abort ? abort_it : send_all, t.r);
    for (int i = 0; i <= 2 * THREADS; i++) pthread_join(threads[i], NULL);
    assert_true(latch_wait_for(&t.all, 60000));
    assert_int_equal(atomic_load(&t.got) + atomic_load(&t.failed), THREADS * KEYS);
    *got_out = atomic_load(&t.got);
    latch_clear(&t.all);
    rendezvous_unref(t.r);
}

static void senders_and_receivers_in_many_threads(void **state) {
    (void)state;
    int all = 0;
    for (int i = 0; i < 5; i++) {
        traffic(false, &all);
        assert_int_equal(all, THREADS * KEYS);
        traffic(true, &all);
    }
}

/* ---- Cancel ---- */

static void count_call(void *arg) {
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void watchers_are_told_once(void **state) {
    (void)state;
    Cancel c;
    CancelWatch w[3], late;
    _Atomic int calls[3] = {0};
    cancel_init(&c);
    for (int i = 0; i < 3; i++) assert_true(cancel_watch(&c, &w[i], count_call, &calls[i]));
    assert_true(cancel_unwatch(&c, &w[1]));
    assert_false(cancel_is_set(&c));
    assert_null(cancel_reason(&c));
    cancel_now(&c, error_invalid("one"));
    cancel_now(&c, error_invalid("two"));
    assert_true(cancel_is_set(&c));
    expect_error(cancel_reason(&c), CODE_INVALID_ARGUMENT, "one");
    assert_true(calls[0] == 1 && calls[1] == 0 && calls[2] == 1);
    assert_false(cancel_unwatch(&c, &w[0]));
    assert_false(cancel_watch(&c, &late, count_call, &calls[0]));
    cancel_clear(&c);
}

typedef struct Race {
    Cancel cancel;
    _Atomic int calls;
    pthread_barrier_t start;
} Race;

static void *race_cancel(void *arg) {
    Race *r = arg;
    pthread_barrier_wait(&r->start);
    cancel_now(&r->cancel, error_invalid("race"));
    return NULL;
}

static void leaving_and_being_told_never_overlap(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) {
        Race r = {0};
        cancel_init(&r.cancel);
        pthread_barrier_init(&r.start, NULL, 2);
        CancelWatch *w = xcalloc(1, sizeof *w);
        assert_true(cancel_watch(&r.cancel, w, count_call, &r.calls));
        pthread_t thread;
        pthread_create(&thread, NULL, race_cancel, &r);
        pthread_barrier_wait(&r.start);
        bool left = cancel_unwatch(&r.cancel, w);
        free(w); /* nobody may look at it any more */
        pthread_join(thread, NULL);
        assert_int_equal(atomic_load(&r.calls), left ? 0 : 1);
        cancel_clear(&r.cancel);
        pthread_barrier_destroy(&r.start);
    }
}

/* ---- Resources ---- */

static Error *create_variable(void *arg, Resource **out) {
    *out = &variable_new(DT_FLOAT, str_of(arg))->base;
    return NULL;
}

static Error *create_nothing(void *arg, Resource **out) {
    (void)arg;
    (void)out;
    return error_internal("cannot");
}

static void resources_are_found_by_container_and_name(void **state) {
    (void)state;
    ResourceManager *m = resource_manager_new(STR("default"));
    Resource *a = NULL, *b = NULL;
    expect_error(resource_find(m, STR(""), STR("v"), &variable_type, &a), CODE_NOT_FOUND, "Container default does not exist. (Could not find resource: default/v)");
    expect_error(resource_find_or_create(m, STR(""), STR("v"), &variable_type, create_nothing, NULL, &a), CODE_INTERNAL, "cannot");
    expect_ok(resource_find_or_create(m, STR(""), STR("v"), &variable_type, create_variable, "v", &a));
    expect_ok(resource_find_or_create(m, STR("default"), STR("v"), &variable_type, create_nothing, NULL, &b));
    assert_ptr_equal(a, b);
    expect_error(resource_add(m, STR(""), STR("v"), a), CODE_ALREADY_EXISTS, "default/v");
    expect_ok(resource_add(m, STR("other"), STR("v"), a));
    assert_int_equal(resource_count(m), 2);
    resource_clear_container(m, STR(""));
    assert_int_equal(resource_count(m), 1);
    expect_ok(resource_delete(m, STR("other"), STR("v"), &variable_type));
    expect_error(resource_delete(m, STR("other"), STR("v"), &variable_type), CODE_NOT_FOUND, "Resource other/v/");
    expect_error(resource_delete(m, STR(""), STR("v"), &variable_type), CODE_NOT_FOUND, "Container default does not exist.");
    resource_unref(a);
    resource_unref(b);
    resource_manager_free(m);
}

static void a_variable_is_copied_before_it_changes_under_a_reader(void **state) {
    (void)state;
    Variable *v = variable_new(DT_FLOAT, STR("v"));
    assert_null(variable_read(v));
    Tensor *one = tensor_scalar_f32(1);
    variable_assign(v, one);
    tensor_unref(one);
    Tensor *reader = variable_read(v);
    pthread_mutex_lock(&v->mutex);
    expect_ok(variable_own_locked(v));
    tensor_f32(v->value)[0] = 2;
    pthread_mutex_unlock(&v->mutex);
    assert_true(tensor_f32(reader)[0] == 1);
    tensor_unref(reader);
    reader = variable_read(v);
    assert_true(tensor_f32(reader)[0] == 2);
    tensor_unref(reader);
    resource_unref(&v->base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(either_may_come_first), cmocka_unit_test(values_of_one_key_come_in_order), cmocka_unit_test(a_dead_value_arrives_without_a_tensor),
        cmocka_unit_test(an_abort_reaches_all_and_the_first_reason_stays), cmocka_unit_test(the_end_of_a_step_turns_all_away), cmocka_unit_test(who_withdraws_is_not_called),
        cmocka_unit_test(without_a_way_to_other_tasks_a_remote_receive_fails), cmocka_unit_test(keys_are_taken_apart),
        cmocka_unit_test(senders_and_receivers_in_many_threads), cmocka_unit_test(watchers_are_told_once),
        cmocka_unit_test(leaving_and_being_told_never_overlap), cmocka_unit_test(resources_are_found_by_container_and_name),
        cmocka_unit_test(a_variable_is_copied_before_it_changes_under_a_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
