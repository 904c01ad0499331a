/* variable_rows_test.c: who changes a variable waits for those that read some of its rows, and copies only for those that keep the value. */
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/resource.h"
#include "unit_test.h"

typedef struct Writer {
    Variable *v;
    atomic_bool is_done;
    const void *data; /* where it may write */
} Writer;

static void *write_once(void *arg) {
    Writer *w = arg;
    pthread_mutex_lock(&w->v->mutex);
    assert_null(variable_own_locked(w->v));
    w->data = w->v->value->data;
    atomic_store(&w->is_done, true);
    pthread_mutex_unlock(&w->v->mutex);
    return NULL;
}

static Variable *new_variable(void) {
    Variable *v = variable_new(DT_FLOAT, STR("v"));
    Tensor *value = tensor_scalar_f32(1);
    variable_assign(v, value);
    tensor_unref(value);
    return v;
}

static void a_writer_waits_for_readers_of_rows_and_does_not_copy(void **state) {
    (void)state;
    Variable *v = new_variable();
    const void *data = v->value->data;
    Writer w = {.v = v};
    Tensor *first = variable_begin_rows(v), *second = variable_begin_rows(v);
    assert_ptr_equal(first->data, data);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_once, &w), 0);
    variable_end_rows(v, first);
    pthread_mutex_lock(&v->mutex);
    while (!v->waiting_writers) { /* until it waits, as it must while there is a reader */
        pthread_mutex_unlock(&v->mutex);
        sched_yield();
        pthread_mutex_lock(&v->mutex);
    }
    pthread_mutex_unlock(&v->mutex);
    assert_false(atomic_load(&w.is_done));
    variable_end_rows(v, second);
    pthread_join(thread, NULL);
    assert_ptr_equal(w.data, data);
    resource_unref(&v->base);
}

static void a_writer_copies_for_who_keeps_the_value(void **state) {
    (void)state;
    Variable *v = new_variable();
    Writer w = {.v = v};
    Tensor *kept = variable_read(v);
    write_once(&w);
    assert_ptr_not_equal(w.data, kept->data);
    tensor_unref(kept);
    resource_unref(&v->base);
}

enum { ROUNDS = 2000 };

static void *read_rows(void *arg) {
    Writer *w = arg;
    for (int i = 0; i < ROUNDS; i++) {
        Tensor *t = variable_begin_rows(w->v);
        if (t->data != w->data) return t;
        variable_end_rows(w->v, t);
    }
    return NULL;
}

static void *write_rows(void *arg) {
    Writer *w = arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&w->v->mutex);
        error_free(variable_own_locked(w->v));
        tensor_f32(w->v->value)[0] += 1;
        pthread_mutex_unlock(&w->v->mutex);
    }
    return NULL;
}

static void readers_and_writers_get_on(void **state) {
    (void)state;
    Variable *v = new_variable();
    Writer w = {.v = v, .data = v->value->data};
    pthread_t threads[4];
    void *odd;
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? write_rows : read_rows, &w), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &odd);
        assert_null(odd);
    }
    assert_ptr_equal(v->value->data, w.data);
    assert_true(tensor_f32(v->value)[0] == 1 + 2 * ROUNDS);
    resource_unref(&v->base);
}

static void a_variable_without_a_value_has_no_rows(void **state) {
    (void)state;
    Variable *v = variable_new(DT_FLOAT, STR("v"));
    assert_null(variable_begin_rows(v));
    assert_int_equal(v->row_readers, 0);
    resource_unref(&v->base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_waits_for_readers_of_rows_and_does_not_copy),
        cmocka_unit_test(a_writer_copies_for_who_keeps_the_value),
        cmocka_unit_test(readers_and_writers_get_on),
        cmocka_unit_test(a_variable_without_a_value_has_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
