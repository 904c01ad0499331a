/* transport_test.c: one suite of behaviour, run against every implementation of Transport. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/transport.h"

enum { MAX_PARKED = 1000, LIMIT = 200 << 20, PATIENCE_MS = 60000 };

/* What a test runs against. */
typedef struct Kind {
    Transport *(*make)(void);
    bool is_met; /* there was a call before */
} Kind;

static LoopbackNetwork *network, *other_network;

static Transport *make_grpc(void) {
    Transport *t = NULL;
    assert_null(transport_grpc_new(NULL, &t));
    return t;
}

static Transport *make_plain_grpc(void) {
    Transport *t = NULL;
    assert_null(transport_grpc_new(&(GrpcOptions){.plain_grpc = true}, &t));
    return t;
}

static Transport *make_loopback(void) {
    return transport_loopback_new(network);
}

static Transport *make_joined_to(LoopbackNetwork *n) {
    Transport *t = NULL;
    assert_null(transport_joined_new(n, NULL, STR("127.0.0.1:0"), &t));
    return t;
}

static Transport *make_joined(void) {
    return make_joined_to(network);
}

/* Each in a process of its own, so to say: server and client take the two networks by turns. */
static Transport *make_apart(void) {
    static bool other;
    other = !other;
    return make_joined_to(other ? other_network : network);
}

static Kind kinds[] = {{make_grpc, true}, {make_loopback, false}, {make_joined, false}, {make_apart, false}, {make_grpc, false}, {make_plain_grpc, true}};

typedef struct Env {
    const Kind *kind;
    Transport *server, *client;
    ThreadPool *pool;
    char *address;
    Channel *channel;
    pthread_mutex_t mutex; /* guards parked, parked_count */
    ServerCall *parked[MAX_PARKED];
    int parked_count;
    Latch arrived;   /* parked calls to come */
    Latch cancelled; /* watchers to be called */
} Env;

/* ---- Handlers ---- */

static void echo(void *arg, ServerCall *call) {
    (void)arg;
    Message m = message_move(server_call_request(call));
    server_call_reply(call, &m);
}

static void lose(void *arg, ServerCall *call) {
    (void)arg;
    Error *err =
        error_new(CODE_ABORTED, "lost \"%.*s\" \xc3\xa4 100%%", STR_ARG(message_flatten(server_call_request(call))));
    err->derived = err->restarted = true;
    server_call_fail(call, err);
}

static void park(void *arg, ServerCall *call) {
    Env *env = arg;
    pthread_mutex_lock(&env->mutex);
    env->parked[env->parked_count++] = call;
    pthread_mutex_unlock(&env->mutex);
    latch_done(&env->arrived);
}

static void note_cancel(void *arg) {
    Env *env = arg;
    latch_done(&env->cancelled);
}

static void park_watched(void *arg, ServerCall *call) {
    server_call_watch(call, note_cancel, arg);
    park(arg, call);
}

static void deadline_left(void *arg, ServerCall *call) {
    (void)arg;
    Message m = {0};
    int64_t deadline = server_call_deadline_ns(call);
    char *text = xasprintf("%lld", deadline ? (long long)(deadline - clock_mono_ns()) / 1000000 : -1LL);
    message_add_take(&m, text, strlen(text));
    server_call_reply(call, &m);
}

/* Keeps its thread until a call is parked, where the transport allows that. */
static void stay(void *arg, ServerCall *call) {
    Env *env = arg;
    Message m = {0};
    bool is_spare = transport_thread_is_spare();
    if (is_spare) latch_wait_for(&env->arrived, PATIENCE_MS);
    message_add_copy(&m, is_spare ? STR("stayed") : STR("went"));
    server_call_reply(call, &m);
}

static void echo_last(void *arg) {
    echo(NULL, arg);
}

/* Later, when others came with it; one of those that want this is let. */
static void prefer_last(void *arg, ServerCall *call) {
    (void)arg;
    if (transport_thread_is_spare() || !transport_do_last(echo_last, call)) echo(NULL, call);
}

static const Method methods[] = {
    {"/test.T/Last", prefer_last, STAYING, NULL},
    {"/test.T/Stay", stay, STAYING, NULL},
    {"/test.T/Echo", echo, ON_POOL, NULL},
    {"/test.T/EchoInline", echo, ON_READER, NULL},
    {"/test.T/Fail", lose, ON_POOL, NULL},
    {"/test.T/Park", park, ON_READER, NULL},
    {"/test.T/ParkWatched", park_watched, ON_POOL, NULL},
    {"/test.T/Deadline", deadline_left, ON_READER, NULL},
    {0},
};

/* ---- Set-up ---- */

static void env_serve(Env *env, const char *address) {
    ServerOptions options = {.methods = methods, .arg = env, .pool = env->pool, .max_message_bytes = LIMIT};
    Error *err = transport_serve(env->server, str_of(address), &options, &env->address);
    if (err) fail_msg("%s", err->message);
}

static void meet(Env *env) {
    Message request = {0}, reply = {0};
    assert_null(channel_call_wait(env->channel, "/test.T/Echo", &request, (CallOptions){0}, &reply));
    message_clear(&reply);
}

static int set_up(void **state) {
    Env *env = xcalloc(1, sizeof *env);
    env->kind = *state;
    env->server = env->kind->make();
    env->client = env->kind->make();
    env->pool = threadpool_new("serve", 4);
    pthread_mutex_init(&env->mutex, NULL);
    latch_init(&env->arrived, 0);
    latch_init(&env->cancelled, 0);
    env_serve(env, "127.0.0.1:0");
    env->channel = transport_channel(env->client, str_of(env->address));
    if (env->kind->is_met) meet(env);
    *state = env;
    return 0;
}

static int tear_down(void **state) {
    Env *env = *state;
    channel_unref(env->channel);
    transport_free(env->client);
    transport_free(env->server);
    threadpool_free(env->pool);
    latch_clear(&env->arrived);
    latch_clear(&env->cancelled);
    pthread_mutex_destroy(&env->mutex);
    free(env->address);
    *state = (void *)env->kind;
    free(env);
    return 0;
}

static void wait_for(Latch *latch) {
    if (!latch_wait_for(latch, PATIENCE_MS)) fail_msg("waited too long");
}

static Message text_message(const char *text) {
    Message m = {0};
    message_add_copy(&m, str_of(text));
    return m;
}

static Error *call_text(Channel *c, const char *path, const char *text, CallOptions options, char **reply_text) {
    Message request = text_message(text), reply = {0};
    Error *err = channel_call_wait(c, path, &request, options, &reply);
    assert_int_equal(request.count, 0);
    if (!err && reply_text) *reply_text = str_dup(message_flatten(&reply));
    message_clear(&reply);
    return err;
}

static void expect_ok(Channel *c, const char *path, const char *text) {
    char *reply = NULL;
    Error *err = call_text(c, path, text, (CallOptions){0}, &reply);
    if (err) fail_msg("%s", err->message);
    assert_string_equal(reply, text);
    free(reply);
}

static void expect_error(Error *err, ErrorCode code, const char *text) {
    if (!err) fail_msg("no error, expected %s", error_code_name(code));
    if (err->code != code || !strstr(err->message, text)) fail_msg("%s: %s", error_code_name(err->code), err->message);
    error_free(err);
}

/* An outgoing call that a test looks at later. */
typedef struct Pending {
    Call *call;
    Latch done;
    Error *err;
    Message reply;
} Pending;

static void pending_done(void *arg, Error *err, Message *reply) {
    Pending *p = arg;
    p->err = err;
    if (reply) p->reply = message_move(reply);
    latch_done(&p->done);
}

static void pending_start(Pending *p, Channel *c, const char *path, const char *text, CallOptions options) {
    Message request = text_message(text);
    *p = (Pending){0};
    latch_init(&p->done, 1);
    p->call = channel_call(c, path, &request, options, pending_done, p);
}

static void pending_clear(Pending *p) {
    latch_clear(&p->done);
    call_unref(p->call);
    message_clear(&p->reply);
}

/* Replies to all parked calls, the last first. */
static void reply_to_parked(Env *env) {
    for (int i = env->parked_count; i-- > 0;) echo(env, env->parked[i]);
    env->parked_count = 0;
}

/* ---- Tests ---- */

static void a_call_is_answered(void **state) {
    Env *env = *state;
    expect_ok(env->channel, "/test.T/Echo", "hello");
    expect_ok(env->channel, "/test.T/EchoInline", "hello");
    expect_ok(env->channel, "/test.T/Echo", "");
    assert_true(channel_is_connected(env->channel));
    assert_true(str_is(channel_address(env->channel), env->address));
    TransportStats client = transport_stats(env->client), server = transport_stats(env->server);
    assert_int_equal(client.calls_out, 0);
    assert_int_equal(server.calls_out, 0);
}

static void a_hundred_megabytes_travel(void **state) {
    Env *env = *state;
    size_t part = 25 << 20;
    Message request = {0}, reply = {0};
    for (size_t i = 0; i < 4; i++) {
        char *data = xmalloc(part);
        for (size_t k = 0; k < part; k++) data[k] = (char)(k * 7 + k / 4093 + i);
        message_add_take(&request, data, part);
    }
    Error *err = channel_call_wait(env->channel, "/test.T/Echo", &request, (CallOptions){0}, &reply);
    if (err) fail_msg("%s", err->message);
    assert_int_equal(reply.len, 4 * part);
    Str bytes = message_flatten(&reply);
    for (size_t i = 0; i < bytes.len; i += 4001)
        assert_int_equal(bytes.ptr[i], (char)(i % part * 7 + i % part / 4093 + i / part));
    message_clear(&reply);
}

static void too_large_messages_are_refused(void **state) {
    Env *env = *state;
    Message request = {0}, reply = {0};
    char *zeros = xcalloc(1, LIMIT + 1);
    message_add_take(&request, zeros, LIMIT + 1);
    Error *err = channel_call_wait(env->channel, "/test.T/Echo", &request, (CallOptions){0}, &reply);
    expect_error(err, CODE_RESOURCE_EXHAUSTED, "209715201 bytes is larger than the limit of 209715200");
    expect_ok(env->channel, "/test.T/Echo", "still there");
}

static void a_thousand_parked_calls_end_in_reverse(void **state) {
    Env *env = *state;
    Pending *calls = xcalloc(MAX_PARKED, sizeof *calls);
    latch_add(&env->arrived, MAX_PARKED);
    for (int i = 0; i < MAX_PARKED; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        pending_start(&calls[i], env->channel, "/test.T/Park", text, (CallOptions){0});
    }
    wait_for(&env->arrived);
    assert_int_equal(transport_stats(env->server).calls_in, MAX_PARKED);
    assert_int_equal(transport_stats(env->client).calls_out, MAX_PARKED);
    expect_ok(env->channel, "/test.T/Echo", "in between");
    reply_to_parked(env);
    for (int i = 0; i < MAX_PARKED; i++) {
        wait_for(&calls[i].done);
        assert_null(calls[i].err);
        char *text = str_dup(message_flatten(&calls[i].reply));
        assert_int_equal(atoi(text), i);
        free(text);
        pending_clear(&calls[i]);
    }
    assert_int_equal(transport_stats(env->client).calls_out, 0);
    free(calls);
}

static void notes_arrive_and_leave_nothing(void **state) {
    Env *env = *state;
    static const size_t sizes[] = {0, 100, 60 << 10, 3 << 20};
    size_t sum = 0, count = sizeof sizes / sizeof *sizes;
    latch_add(&env->arrived, (int)count);
    for (size_t i = 0; i < count; i++) {
        Message m = {0};
        if (sizes[i]) message_add_take(&m, xcalloc(1, sizes[i]), sizes[i]);
        channel_note(env->channel, "/test.T/Park", &m);
        sum += sizes[i];
    }
    wait_for(&env->arrived);
    for (size_t i = 0; i < count; i++) sum -= server_call_request(env->parked[i])->len;
    assert_int_equal(sum, 0);
    reply_to_parked(env);
    Message lost = {0};
    message_add_copy(&lost, STR("lost"));
    channel_note(env->channel, "/test.T/NoSuchMethod", &lost);
    expect_ok(env->channel, "/test.T/Echo", "after them");
    while (transport_stats(env->client).calls_out || transport_stats(env->server).calls_in) sched_yield();
}

static void who_prefers_to_be_last_is_answered_once(void **state) {
    Env *env = *state;
    enum { CALLS = 300 };
    Pending *calls = xcalloc(CALLS, sizeof *calls);
    for (int i = 0; i < CALLS; i++) pending_start(&calls[i], env->channel, i % 3 ? "/test.T/Last" : "/test.T/EchoInline", "x", (CallOptions){0});
    for (int i = 0; i < CALLS; i++) {
        wait_for(&calls[i].done);
        assert_null(calls[i].err);
        assert_int_equal(calls[i].reply.len, 1);
        pending_clear(&calls[i]);
    }
    free(calls);
}

static void a_deadline_ends_both_sides(void **state) {
    Env *env = *state;
    char *left = NULL;
    assert_null(call_text(env->channel, "/test.T/Deadline", "", (CallOptions){.timeout_ms = 60000}, &left));
    assert_in_range(atoi(left), 30000, 60000);
    free(left);
    assert_null(call_text(env->channel, "/test.T/Deadline", "", (CallOptions){0}, &left));
    assert_string_equal(left, "-1");
    free(left);
    latch_add(&env->arrived, 1);
    latch_add(&env->cancelled, 1);
    int64_t begin = clock_mono_ms();
    expect_error(call_text(env->channel, "/test.T/ParkWatched", "", (CallOptions){.timeout_ms = 100}, NULL),
                 CODE_DEADLINE_EXCEEDED, "Deadline Exceeded");
    assert_in_range(clock_mono_ms() - begin, 99, 30000);
    wait_for(&env->cancelled);
    wait_for(&env->arrived);
    reply_to_parked(env);
    expect_ok(env->channel, "/test.T/Echo", "still there");
}

static void the_server_sees_a_cancel(void **state) {
    Env *env = *state;
    Pending p;
    latch_add(&env->arrived, 1);
    latch_add(&env->cancelled, 1);
    pending_start(&p, env->channel, "/test.T/ParkWatched", "", (CallOptions){0});
    wait_for(&env->arrived);
    call_cancel(p.call);
    wait_for(&p.done);
    expect_error(p.err, CODE_CANCELLED, "CANCELLED");
    wait_for(&env->cancelled);
    assert_false(server_call_unwatch(env->parked[0]));
    reply_to_parked(env); /* dropped */
    call_cancel(p.call);  /* too late, harmless */
    pending_clear(&p);
    expect_ok(env->channel, "/test.T/Echo", "still there");
}

static void a_watcher_set_after_the_cancel_is_told(void **state) {
    Env *env = *state;
    Pending p;
    latch_add(&env->arrived, 2);
    latch_add(&env->cancelled, 2);
    pending_start(&p, env->channel, "/test.T/Park", "", (CallOptions){0});
    Pending watched;
    pending_start(&watched, env->channel, "/test.T/ParkWatched", "", (CallOptions){0});
    wait_for(&env->arrived);
    channel_unref(env->channel);
    env->channel = transport_channel(env->client, str_of(env->address));
    wait_for(&p.done);
    wait_for(&watched.done);
    expect_error(p.err, CODE_CANCELLED, "closed");
    expect_error(watched.err, CODE_CANCELLED, "closed");
    for (int i = 0; i < 2; i++) /* the one without a watcher was parked by the I/O thread */
        if (server_call_unwatch(env->parked[i])) server_call_watch(env->parked[i], note_cancel, env);
    wait_for(&env->cancelled);
    reply_to_parked(env);
    pending_clear(&p);
    pending_clear(&watched);
}

static void an_unwatched_call_is_not_told(void **state) {
    Env *env = *state;
    Pending p;
    latch_add(&env->arrived, 1);
    latch_add(&env->cancelled, 1);
    pending_start(&p, env->channel, "/test.T/ParkWatched", "", (CallOptions){0});
    wait_for(&env->arrived);
    assert_true(server_call_unwatch(env->parked[0]));
    call_cancel(p.call);
    wait_for(&p.done);
    expect_error(p.err, CODE_CANCELLED, "CANCELLED");
    expect_ok(env->channel, "/test.T/EchoInline", "behind the cancel");
    assert_int_equal(env->cancelled.count, 1);
    reply_to_parked(env);
    pending_clear(&p);
}

static void a_dead_server_is_unavailable(void **state) {
    Env *env = *state;
    Pending p;
    latch_add(&env->arrived, 1);
    latch_add(&env->cancelled, 1);
    pending_start(&p, env->channel, "/test.T/ParkWatched", "", (CallOptions){0});
    wait_for(&env->arrived);
    transport_free(env->server);
    wait_for(&env->cancelled);
    wait_for(&p.done);
    expect_error(p.err, CODE_UNAVAILABLE, "");
    pending_clear(&p);
    reply_to_parked(env); /* after its transport is gone */
    expect_error(call_text(env->channel, "/test.T/Echo", "", (CallOptions){0}, NULL), CODE_UNAVAILABLE,
                 "failed to connect to all addresses");
    char *why = channel_last_error(env->channel);
    assert_non_null(why);
    free(why);
    env->server = env->kind->make(); /* and comes back at the same address */
    char *address = env->address;
    env_serve(env, address);
    char *reply = NULL;
    assert_null(call_text(env->channel, "/test.T/Echo", "again", (CallOptions){.wait_for_ready = true}, &reply));
    assert_string_equal(reply, "again");
    free(reply);
    free(address);
}

static void waiting_calls_wait_for_a_server(void **state) {
    Env *env = *state;
    transport_free(env->server);
    char *address = env->address;
    expect_error(call_text(env->channel, "/test.T/Echo", "", (CallOptions){0}, NULL), CODE_UNAVAILABLE, address);
    expect_error(call_text(env->channel, "/test.T/Echo", "", (CallOptions){0}, NULL), CODE_UNAVAILABLE,
                 "failed to connect to all addresses; last error: ");
    expect_error(
        call_text(env->channel, "/test.T/Echo", "", (CallOptions){.timeout_ms = 50, .wait_for_ready = true}, NULL),
        CODE_DEADLINE_EXCEEDED, "");
    Pending p, cancelled;
    pending_start(&p, env->channel, "/test.T/Echo", "patient", (CallOptions){.wait_for_ready = true});
    pending_start(&cancelled, env->channel, "/test.T/Echo", "", (CallOptions){.wait_for_ready = true});
    call_cancel(cancelled.call);
    wait_for(&cancelled.done);
    expect_error(cancelled.err, CODE_CANCELLED, "");
    pending_clear(&cancelled);
    assert_false(channel_is_connected(env->channel));
    env->server = env->kind->make();
    env_serve(env, address);
    wait_for(&p.done);
    assert_null(p.err);
    assert_true(str_is(message_flatten(&p.reply), "patient"));
    pending_clear(&p);
    free(address);
}

static void unknown_methods_are_unimplemented(void **state) {
    Env *env = *state;
    expect_error(call_text(env->channel, "/test.T/Nothing", "x", (CallOptions){0}, NULL), CODE_UNIMPLEMENTED,
                 "/test.T/Nothing");
    expect_ok(env->channel, "/test.T/Echo", "still there");
}

static void errors_keep_their_flags(void **state) {
    Env *env = *state;
    Error *err = call_text(env->channel, "/test.T/Fail", "it", (CallOptions){0}, NULL);
    assert_non_null(err);
    assert_true(err->derived && err->restarted);
    expect_error(err, CODE_ABORTED, "lost \"it\" \xc3\xa4 100%");
}

typedef struct Stopper {
    Env *env;
    Latch done;
} Stopper;

static void stop(void *arg) {
    Stopper *s = arg;
    transport_stop_serving(s->env->server, PATIENCE_MS);
    latch_done(&s->done);
}

static void a_graceful_stop_waits_for_calls(void **state) {
    Env *env = *state;
    Pending p;
    Stopper stopper = {.env = env};
    latch_init(&stopper.done, 1);
    latch_add(&env->arrived, 1);
    pending_start(&p, env->channel, "/test.T/Park", "under way", (CallOptions){0});
    wait_for(&env->arrived);
    ThreadPool *pool = threadpool_new("stop", 1);
    threadpool_post(pool, stop, &stopper);
    Error *err = NULL; /* calls succeed until the server has begun to refuse them */
    while (!(err = call_text(env->channel, "/test.T/Echo", "", (CallOptions){0}, NULL))) continue;
    expect_error(err, CODE_UNAVAILABLE, "");
    assert_false(latch_wait_for(&p.done, 0));
    reply_to_parked(env);
    wait_for(&p.done);
    assert_null(p.err);
    assert_true(str_is(message_flatten(&p.reply), "under way"));
    wait_for(&stopper.done);
    threadpool_free(pool);
    pending_clear(&p);
    latch_clear(&stopper.done);
}

static void a_stop_without_grace_cancels(void **state) {
    Env *env = *state;
    Pending p;
    latch_add(&env->arrived, 1);
    latch_add(&env->cancelled, 1);
    pending_start(&p, env->channel, "/test.T/ParkWatched", "", (CallOptions){0});
    wait_for(&env->arrived);
    transport_stop_serving(env->server, 0);
    wait_for(&env->cancelled);
    wait_for(&p.done);
    expect_error(p.err, CODE_UNAVAILABLE, "");
    reply_to_parked(env);
    pending_clear(&p);
}

static void a_freed_client_cancels_its_calls(void **state) {
    Env *env = *state;
    Pending p;
    latch_add(&env->arrived, 1);
    latch_add(&env->cancelled, 1);
    pending_start(&p, env->channel, "/test.T/ParkWatched", "", (CallOptions){0});
    wait_for(&env->arrived);
    transport_free(env->client);
    assert_true(latch_wait_for(&p.done, 0));
    expect_error(p.err, CODE_CANCELLED, "");
    wait_for(&env->cancelled);
    reply_to_parked(env);
    call_cancel(p.call);
    pending_clear(&p);
    channel_unref(env->channel);
    env->client = env->kind->make();
    env->channel = transport_channel(env->client, str_of(env->address));
    expect_ok(env->channel, "/test.T/Echo", "another client");
}

static void a_transport_serves_once(void **state) {
    Env *env = *state;
    ServerOptions options = {.methods = methods};
    char *address = NULL;
    expect_error(transport_serve(env->server, STR("127.0.0.1:0"), &options, &address), CODE_FAILED_PRECONDITION,
                 "already");
    expect_error(transport_serve(env->client, str_of(env->address), &options, &address), CODE_UNAVAILABLE, "in use");
    expect_error(transport_serve(env->client, STR("nonsense"), &options, &address), CODE_INVALID_ARGUMENT, "nonsense");
    assert_null(address);
}

static void count_done(void *arg, Error *err, Message *reply) {
    (void)reply;
    assert_null(err);
    latch_done(arg);
}

static void *make_many_calls(void *arg) {
    Env *env = arg;
    Latch done;
    latch_init(&done, 2000);
    for (int i = 0; i < 2000; i++) {
        Message m = text_message("many");
        call_unref(channel_call(env->channel, i % 2 ? "/test.T/Echo" : "/test.T/EchoInline", &m,
                                (CallOptions){.timeout_ms = PATIENCE_MS}, count_done, &done));
    }
    wait_for(&done);
    latch_clear(&done);
    return NULL;
}

static void many_threads_call_at_once(void **state) {
    Env *env = *state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, make_many_calls, env), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    assert_int_equal(transport_stats(env->client).calls_out, 0);
}

/* While one thread of the transport is busy with a handler another one reads and answers. */
static void a_handler_that_stays_keeps_nobody_waiting(void **state) {
    Env *env = *state;
    Pending busy, parked;
    latch_add(&env->arrived, 1);
    pending_start(&busy, env->channel, "/test.T/Stay", "", (CallOptions){0});
    expect_ok(env->channel, "/test.T/Echo", "meanwhile");
    expect_ok(env->channel, "/test.T/EchoInline", "meanwhile");
    pending_start(&parked, env->channel, "/test.T/Park", "", (CallOptions){0});
    wait_for(&busy.done);
    assert_null(busy.err);
    wait_for(&env->arrived);
    reply_to_parked(env);
    wait_for(&parked.done);
    pending_clear(&busy);
    pending_clear(&parked);
}

/* ---- Joined ---- */

static void joined_takes_no_socket_to_its_own_process(void **state) {
    Env *env = *state;
    expect_ok(env->channel, "/test.T/Echo", "near");
    assert_true(channel_is_connected(env->channel));
    assert_int_equal(transport_stats(env->client).connections_out, 0);
    assert_int_equal(transport_stats(env->server).connections_in, 0);
}

static void joined_serves_others_by_sockets(void **state) {
    Env *env = *state;
    Transport *others[] = {make_grpc(), make_joined_to(other_network)};
    Channel *channels[2];
    for (int i = 0; i < 2; i++) {
        channels[i] = transport_channel(others[i], str_of(env->address));
        expect_ok(channels[i], "/test.T/Echo", "far");
        assert_int_equal(transport_stats(others[i]).connections_out, 1);
        assert_int_equal(transport_stats(env->server).connections_in, i + 1);
    }
    for (int i = 0; i < 2; i++) {
        channel_unref(channels[i]);
        transport_free(others[i]);
    }
}

static void joined_names_itself_by_the_host_it_was_given(void **state) {
    Env *env = *state;
    static const char *const hosts[] = {"machine.test", "[fd00::1]"}; /* nobody can resolve or reach them */
    for (int i = 0; i < 2; i++) {
        Transport *t = NULL;
        char *own = xasprintf("%s:1", hosts[i]), *bound = NULL;
        assert_null(transport_joined_new(network, NULL, str_of(own), &t));
        ServerOptions options = {.methods = methods, .arg = env, .pool = env->pool};
        assert_null(transport_serve(t, STR("127.0.0.1:0"), &options, &bound));
        char *address = xasprintf("%s%s", hosts[i], strrchr(bound, ':'));
        Channel *c = transport_channel(env->client, str_of(address));
        expect_ok(c, "/test.T/Echo", "by name");
        channel_unref(c);
        transport_free(t);
        free(address);
        free(bound);
        free(own);
    }
}

#define ROW(test) \
    { #test, test, set_up, tear_down, kind }

static int run(const char *name, Kind *kind) {
    const struct CMUnitTest tests[] = {
        ROW(a_call_is_answered),
        ROW(a_hundred_megabytes_travel),
        ROW(too_large_messages_are_refused),
        ROW(a_thousand_parked_calls_end_in_reverse),
        ROW(notes_arrive_and_leave_nothing),
        ROW(who_prefers_to_be_last_is_answered_once),
        ROW(a_deadline_ends_both_sides),
        ROW(the_server_sees_a_cancel),
        ROW(a_watcher_set_after_the_cancel_is_told),
        ROW(an_unwatched_call_is_not_told),
        ROW(a_dead_server_is_unavailable),
        ROW(waiting_calls_wait_for_a_server),
        ROW(unknown_methods_are_unimplemented),
        ROW(errors_keep_their_flags),
        ROW(a_graceful_stop_waits_for_calls),
        ROW(a_stop_without_grace_cancels),
        ROW(a_freed_client_cancels_its_calls),
        ROW(a_transport_serves_once),
        ROW(many_threads_call_at_once),
        ROW(a_handler_that_stays_keeps_nobody_waiting),
    };
    return _cmocka_run_group_tests(name, tests, sizeof tests / sizeof tests[0], NULL, NULL);
}

static int run_joined(Kind *kind) {
    const struct CMUnitTest tests[] = {
        ROW(joined_takes_no_socket_to_its_own_process),
        ROW(joined_serves_others_by_sockets),
        ROW(joined_names_itself_by_the_host_it_was_given),
    };
    return _cmocka_run_group_tests("joined, both ways", tests, sizeof tests / sizeof tests[0], NULL, NULL);
}

int main(void) {
    network = loopback_network_new();
    other_network = loopback_network_new();
    int failed = run("grpc", &kinds[0]) + run("loopback", &kinds[1]) + run("joined, one process", &kinds[2]) +
                 run("joined, two processes", &kinds[3]) + run_joined(&kinds[2]) + run("grpc, at first", &kinds[4]) + run("plain grpc", &kinds[5]);
    loopback_network_free(network);
    loopback_network_free(other_network);
    return failed;
}
