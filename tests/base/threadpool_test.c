/* threadpool_test.c: posted tasks, loops in pieces, loops in loops, guests, latches. */
#include "base/threadpool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "unit_test.h"

static void count_one(void *arg) {
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void freeing_the_pool_runs_what_was_posted(void **state) {
    (void)state;
    _Atomic int count = 0;
    ThreadPool *pool = threadpool_new("test", 4);
    for (int i = 0; i < 10000; i++) threadpool_post(pool, count_one, &count);
    threadpool_free(pool);
    assert_int_equal(atomic_load(&count), 10000);
    threadpool_free(NULL);
}

typedef struct Marks {
    ThreadPool *pool;
    _Atomic int *marks;
    int64_t offset;
} Marks;

static void mark_range(void *arg, int64_t begin, int64_t end) {
    Marks *m = arg;
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&m->marks[m->offset + i], 1);
}

static void every_element_is_visited_once(void **state) {
    (void)state;
    ThreadPool *pool = threadpool_new("test", 4);
    const int64_t sizes[] = {0, 1, 2, 7, 16, 17, 1000, 4097};
    const int64_t grains[] = {0, 1, 3, 64, 5000};
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 5; j++) {
            Marks m = {.marks = xcalloc((size_t)sizes[i] + 1, sizeof(_Atomic int))};
            threadpool_parallel_for(j % 2 ? pool : NULL, sizes[i], grains[j], mark_range, &m);
            for (int64_t k = 0; k < sizes[i]; k++) assert_int_equal(atomic_load(&m.marks[k]), 1);
            assert_int_equal(atomic_load(&m.marks[sizes[i]]), 0);
            free(m.marks);
        }
    }
    threadpool_free(pool);
}

enum { ROWS = 64, COLUMNS = 200 };

static void mark_rows(void *arg, int64_t begin, int64_t end) {
    Marks *m = arg;
    for (int64_t i = begin; i < end; i++) {
        Marks row = {.marks = m->marks, .offset = i * COLUMNS};
        threadpool_parallel_for(m->pool, COLUMNS, 8, mark_range, &row);
    }
}

static void loops_may_be_nested_in_one_pool(void **state) {
    (void)state;
    ThreadPool *pool = threadpool_new("test", 3);
    Marks m = {.pool = pool, .marks = xcalloc(ROWS * COLUMNS, sizeof(_Atomic int))};
    for (int round = 0; round < 20; round++) threadpool_parallel_for(pool, ROWS, 1, mark_rows, &m);
    for (int i = 0; i < ROWS * COLUMNS; i++) assert_int_equal(atomic_load(&m.marks[i]), 20);
    free(m.marks);
    threadpool_free(pool);
}

typedef struct Chain {
    ThreadPool *pool;
    Latch done;
    _Atomic int left;
} Chain;

static void post_again(void *arg) {
    Chain *c = arg;
    if (atomic_fetch_sub(&c->left, 1) > 0) {
        latch_add(&c->done, 1);
        threadpool_post(c->pool, post_again, c);
    }
    latch_done(&c->done);
}

static void tasks_may_post_tasks(void **state) {
    (void)state;
    Chain c = {.pool = threadpool_new("test", 2), .left = 5000};
    latch_init(&c.done, 3);
    for (int i = 0; i < 3; i++) threadpool_post(c.pool, post_again, &c);
    latch_wait(&c.done);
    latch_clear(&c.done);
    threadpool_free(c.pool);
}

typedef struct Crowd {
    _Atomic int now, most, done;
} Crowd;

static void join_crowd(void *arg) {
    Crowd *c = arg;
    int now = atomic_fetch_add(&c->now, 1) + 1, most = atomic_load(&c->most);
    while (now > most && !atomic_compare_exchange_weak(&c->most, &most, now)) continue;
    for (volatile int i = 0; i < 1000; i++) continue;
    atomic_fetch_sub(&c->now, 1);
    atomic_fetch_add(&c->done, 1);
}

static void a_guest_takes_the_place_of_a_thread(void **state) {
    (void)state;
    ThreadPool *pool = threadpool_new("test", 3);
    Crowd c = {0};
    assert_true(threadpool_enter(pool));
    assert_false(threadpool_enter(pool)); /* it is there already */
    for (int i = 0; i < 2000; i++) threadpool_post(pool, join_crowd, &c);
    while (atomic_load(&c.done) < 2000) continue;
    assert_true(atomic_load(&c.most) <= 2);
    for (int i = 0; i < 100; i++) threadpool_post(pool, join_crowd, &c);
    threadpool_leave(pool);
    threadpool_free(pool);
    assert_int_equal(atomic_load(&c.done), 2100);
}

static void a_pool_of_one_runs_tasks_beside_its_guest(void **state) {
    (void)state;
    ThreadPool *pool = threadpool_new("test", 1);
    Crowd c = {0};
    assert_true(threadpool_enter(pool));
    threadpool_post(pool, join_crowd, &c);
    while (atomic_load(&c.done) < 1) continue;
    threadpool_leave(pool);
    threadpool_free(pool);
}

static void threads_that_poll_miss_nothing(void **state) {
    (void)state;
    ThreadPool *pool = threadpool_new("test", 3);
    threadpool_poll(pool, 20000);
    Marks m = {.pool = pool, .marks = xcalloc(ROWS * COLUMNS, sizeof(_Atomic int))};
    _Atomic int count = 0;
    for (int round = 0; round < 200; round++) {
        threadpool_post(pool, count_one, &count);
        threadpool_parallel_for(pool, ROWS * COLUMNS, 100, mark_range, &m);
        for (volatile int i = 0; i < round * 1000; i++) continue; /* so that some find work at once and some fall asleep */
    }
    for (int i = 0; i < ROWS * COLUMNS; i++) assert_int_equal(atomic_load(&m.marks[i]), 200);
    free(m.marks);
    threadpool_free(pool);
    assert_int_equal(atomic_load(&count), 200);
}

enum { TRIES = 2000 };
static _Atomic int helped;

/* Long enough for a thread that was woken to have its share. */
static void note_thread(void *arg, int64_t begin, int64_t end) {
    (void)begin, (void)end;
    if (!pthread_equal(pthread_self(), *(pthread_t *)arg)) atomic_fetch_add(&helped, 1);
    int64_t until = clock_mono_ns() + 1000000;
    while (clock_mono_ns() < until) continue;
}

static bool is_helped(ThreadPool *p) {
    pthread_t caller = pthread_self();
    atomic_store(&helped, 0);
    threadpool_parallel_for(p, 4, 1, note_thread, &caller);
    return atomic_load(&helped) > 0;
}

static bool is_helped_in_the_end(ThreadPool *p) {
    bool yes = false;
    for (int i = 0; !yes && i < TRIES; i++) yes = is_helped(p);
    return yes;
}

static void a_brief_loop_wakes_nobody_and_a_longer_one_does(void **state) {
    (void)state;
    enum { POLL_NS = 20000 };
    struct timespec pause = {0, 2000000}; /* for threads to fall asleep; those that do not are waited for again */
    ThreadPool *p = threadpool_new("test", 2);
    threadpool_poll(p, POLL_NS);
    bool alone = false;
    assert_true(is_helped_in_the_end(p));
    threadpool_brief(true);
    for (int i = 0; !alone && i < TRIES; i++) {
        nanosleep(&pause, NULL);
        alone = !is_helped(p);
    }
    threadpool_brief(false);
    assert_true(alone);
    assert_true(is_helped_in_the_end(p));
    threadpool_free(p);
}

static void a_latch_gives_up_after_its_time(void **state) {
    (void)state;
    Latch l;
    latch_init(&l, 1);
    int64_t start = clock_mono_ms();
    assert_false(latch_wait_for(&l, 30));
    assert_true(clock_mono_ms() - start >= 29);
    latch_done(&l);
    assert_true(latch_wait_for(&l, 0));
    assert_true(latch_wait_for(&l, -1));
    latch_wait(&l);
    latch_clear(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freeing_the_pool_runs_what_was_posted), cmocka_unit_test(every_element_is_visited_once),
        cmocka_unit_test(loops_may_be_nested_in_one_pool), cmocka_unit_test(tasks_may_post_tasks), cmocka_unit_test(a_guest_takes_the_place_of_a_thread),
        cmocka_unit_test(a_pool_of_one_runs_tasks_beside_its_guest), cmocka_unit_test(threads_that_poll_miss_nothing),
        cmocka_unit_test(a_brief_loop_wakes_nobody_and_a_longer_one_does), cmocka_unit_test(a_latch_gives_up_after_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
