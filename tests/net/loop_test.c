/* loop_test.c: threads that look for events before they sleep: nothing is lost between them, and idle they use no time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/before_long.h"
#include "base/clock.h"
#include "base/thread.h"
#include "net/transport.h"

enum { CALLS = 400, CALLERS = 4, IDLE_MS = 300, PATIENCE_MS = 60000 };

typedef struct Pair {
    Transport *server, *client;
    ThreadPool *pool;
    Channel *channel, *self; /* from the client, from the server itself */
} Pair;

static void echo(void *arg, ServerCall *call) {
    (void)arg;
    Message m = message_move(server_call_request(call));
    server_call_reply(call, &m);
}

static void answered(void *arg, Error *err, Message *reply) {
    error_free(err);
    if (reply) message_clear(reply);
    latch_done(arg);
}

/* Calls several methods while it has its thread; before it keeps the thread for long, what it has begun goes out. */
static void ask_others(void *arg, ServerCall *call) {
    Pair *p = arg;
    Message reply = {0};
    Latch answers;
    latch_init(&answers, 3);
    bool is_spare = transport_thread_is_spare();
    for (int i = 0; is_spare && i < 3; i++) {
        Message request = {0};
        message_add_copy(&request, STR("from a handler"));
        call_unref(channel_call(p->self, i ? "/t/Pool" : "/t/Read", &request, (CallOptions){0}, answered, &answers));
    }
    before_long();
    bool came = !is_spare || latch_wait_for(&answers, PATIENCE_MS);
    message_add_copy(&reply, came ? STR("ping") : STR("silence"));
    server_call_reply(call, &reply);
    if (came) latch_clear(&answers);
}

/* Leaves its work to one call after all that came with it. */
static _Atomic int undone, rounds;
static _Thread_local int undone_here;

static void do_all(void) {
    atomic_fetch_sub(&undone, undone_here);
    undone_here = 0;
    atomic_fetch_add(&rounds, 1);
}

static void leave_for_later(void *arg, ServerCall *call) {
    if (transport_stay_after(do_all)) {
        undone_here++;
        atomic_fetch_add(&undone, 1);
    }
    echo(arg, call);
}

static const Method methods[] = {
    {"/t/Later", leave_for_later, STAYING, NULL},
    {"/t/Ask", ask_others, STAYING, NULL},
    {"/t/Stay", echo, STAYING, NULL},
    {"/t/Read", echo, ON_READER, NULL},
    {"/t/Pool", echo, ON_POOL, NULL},
    {0},
};
static const char *const paths[] = {"/t/Stay", "/t/Read", "/t/Pool"};

static int set_up(void **state) {
    Pair *p = calloc(1, sizeof *p);
    char *address = NULL;
    assert_null(transport_grpc_new(NULL, &p->server));
    assert_null(transport_grpc_new(NULL, &p->client));
    p->pool = threadpool_new("test", 4);
    ServerOptions options = {.methods = methods, .arg = p, .pool = p->pool};
    assert_null(transport_serve(p->server, STR("127.0.0.1:0"), &options, &address));
    p->channel = transport_channel(p->client, str_of(address));
    p->self = transport_channel(p->server, str_of(address));
    free(address);
    *state = p;
    return 0;
}

static int tear_down(void **state) {
    Pair *p = *state;
    channel_unref(p->channel);
    channel_unref(p->self);
    transport_free(p->client);
    transport_free(p->server);
    threadpool_free(p->pool);
    free(p);
    return 0;
}

static void call_and_wait(Pair *p, const char *path) {
    Message request = {0}, reply = {0};
    message_add_copy(&request, STR("ping"));
    Error *err = channel_call_wait(p->channel, path, &request, (CallOptions){.timeout_ms = PATIENCE_MS}, &reply);
    assert_null(err);
    assert_true(str_is(message_flatten(&reply), "ping"));
    message_clear(&reply);
}

static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* What this process uses while nobody calls, by its own CPU time: a loaded machine makes it less, not more. */
static void an_idle_pair_uses_no_time(void **state) {
    Pair *p = *state;
    for (int i = 0; i < CALLS; i++) call_and_wait(p, paths[i % 3]); /* all ends have come to trust in short waits */
    struct timespec idle = {0, IDLE_MS * 1000000L};
    int64_t before = cpu_ns();
    nanosleep(&idle, NULL);
    int64_t used = cpu_ns() - before;
    assert_true(used < IDLE_MS * 1000000LL / 10);
}

static void what_is_left_for_after_all_that_came_is_done_then(void **state) {
    Pair *p = *state;
    enum { AT_ONCE = 5 };
    for (int i = 0; i < CALLS; i += AT_ONCE) {
        Latch answers;
        latch_init(&answers, AT_ONCE);
        for (int j = 0; j < AT_ONCE; j++) {
            Message request = {0};
            message_add_copy(&request, STR("ping"));
            call_unref(channel_call(p->channel, "/t/Later", &request, (CallOptions){0}, answered, &answers));
        }
        assert_true(latch_wait_for(&answers, PATIENCE_MS));
        latch_clear(&answers);
    }
    int64_t until = clock_mono_ns() + PATIENCE_MS * 1000000LL;
    while (atomic_load(&undone) && clock_mono_ns() < until) sched_yield();
    assert_int_equal(atomic_load(&undone), 0);
    assert_true(atomic_load(&rounds) > 0);
}

/* ---- Callers of both kinds ---- */

typedef struct Noted {
    Latch done;
    _Atomic int failed;
} Noted;

static void note(void *arg, Error *err, Message *reply) {
    Noted *n = arg;
    if (err) atomic_fetch_add(&n->failed, 1);
    error_free(err);
    if (reply) message_clear(reply);
    latch_done(&n->done);
}

typedef struct Caller {
    Pair *pair;
    int index;
} Caller;

/* Every call but those it waits for is completed by a thread of the loop, whoever has read its answer. */
static void *call_both_ways(void *arg) {
    Caller *c = arg;
    Noted noted = {.failed = 0};
    latch_init(&noted.done, CALLS);
    for (int i = 0; i < CALLS; i++) {
        Message request = {0};
        message_add_copy(&request, STR("other"));
        const char *path = paths[(i + c->index) % 3];
        call_unref(channel_call(c->pair->channel, path, &request, (CallOptions){.may_stay = i % 2 == 0}, note, &noted));
        call_and_wait(c->pair, path);
    }
    bool all = latch_wait_for(&noted.done, PATIENCE_MS);
    assert_true(all);
    latch_clear(&noted.done);
    assert_int_equal(atomic_load(&noted.failed), 0);
    return NULL;
}

static void waiting_callers_and_others_get_their_answers(void **state) {
    pthread_t threads[CALLERS];
    Caller callers[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (Caller){*state, i};
        assert_int_equal(pthread_create(&threads[i], NULL, call_both_ways, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
}

static void *call_one_way(void *arg) {
    Caller *c = arg;
    for (int i = 0; i < CALLS; i++) call_and_wait(c->pair, paths[c->index % 3]);
    return NULL;
}

/* One waits for an answer that takes its time while others come and go: it is told, though it polls no more. */
static void waiters_come_and_go(void **state) {
    pthread_t threads[CALLERS];
    Caller callers[CALLERS];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CALLERS; i++) {
            callers[i] = (Caller){*state, i + round};
            assert_int_equal(pthread_create(&threads[i], NULL, call_one_way, &callers[i]), 0);
        }
        for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    }
}

static void what_a_handler_begins_goes_out_before_it_stays(void **state) {
    for (int i = 0; i < 50; i++) call_and_wait(*state, "/t/Ask");
}

/* ---- The end ---- */

static void stop_with_a_poller(void **state) {
    for (int i = 0; i < 10; i++) { /* each time right after a step, while somebody polls */
        for (int k = 0; k < 50; k++) call_and_wait(*state, paths[0]);
        tear_down(state);
        set_up(state);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_left_for_after_all_that_came_is_done_then, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_idle_pair_uses_no_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waiting_callers_and_others_get_their_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waiters_come_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_handler_begins_goes_out_before_it_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stop_with_a_poller, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
