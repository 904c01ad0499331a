/* lending_test.c: large messages that another process copies from the sender's memory: what arrives, what is given back and when, and what happens when
 * the sender gives up or dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "net/lending.h"
#include "net/transport.h"

enum { PATIENCE_MS = 60000, LARGE = 3 << 20, VERY_LARGE = 20 << 20, LIMIT = 100 << 20 };

static _Atomic int lent_out; /* pieces of memory that somebody may still read */

static void give_back(void *memory) {
    free(memory);
    lent_out--;
}

/* Bytes that tell who they are. */
static void fill(char *to, size_t len, unsigned seed) {
    for (size_t i = 0; i < len; i++) to[i] = (char)((i * 2654435761u + seed) >> 13);
}

static bool is_filled(Str s, unsigned seed) {
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] != (char)((i * 2654435761u + seed) >> 13)) return false;
    return true;
}

static void add_owned(Message *m, size_t len, unsigned seed) {
    char *memory = xmalloc(len);
    fill(memory, len, seed);
    lent_out++;
    message_add_slice(m, (Slice){memory, len, give_back, memory});
}

/* A sandbox may forbid it; then messages go through the socket, and there is nothing to test here. */
static void need_memory_of_others(void) {
    char from = 'x', to = 0;
    struct iovec local = {&to, 1}, remote = {&from, 1};
    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1) skip();
}

/* ---- Loans ---- */

/* Three bytes, 3 MB, 200 KB, five bytes. */
static Message mixed_message(void) {
    Message m = {0};
    message_add_copy(&m, STR("abc"));
    add_owned(&m, LARGE, 1);
    add_owned(&m, 200000, 2);
    message_add_copy(&m, STR("fghij"));
    return m;
}

static size_t align_at_three(Str head) {
    assert_true(str_is(head, "abc"));
    return 3;
}

static void a_message_is_copied_whole_and_lies_as_it_shall(void **state) {
    (void)state;
    need_memory_of_others();
    ThreadPool *pools[] = {NULL, threadpool_new("copy", 2)};
    for (int i = 0; i < 2; i++) {
        Message m = mixed_message(), sent = {0};
        Loan *loan = loan_new(&m, &sent);
        assert_int_equal(m.count, 0);
        assert_true(sent.len < 1000);
        assert_null(loan_fetch(getpid(), &sent, LIMIT, i ? align_at_three : NULL, pools[i]));
        loan_free(loan);
        assert_int_equal(lent_out, 0);
        Str got = message_flatten(&sent);
        assert_int_equal(got.len, 3 + LARGE + 200000 + 5);
        if (i) assert_int_equal((uintptr_t)(got.ptr + 3) % 64, 0);
        assert_memory_equal(got.ptr, "abc", 3);
        assert_true(is_filled(str_slice(got, 3, 3 + LARGE), 1));
        assert_true(is_filled(str_slice(got, 3 + LARGE, 3 + LARGE + 200000), 2));
        assert_memory_equal(got.ptr + got.len - 5, "fghij", 5);
        message_clear(&sent);
    }
    threadpool_free(pools[1]);
}

static void what_was_taken_back_is_not_used(void **state) {
    (void)state;
    need_memory_of_others();
    Message m = mixed_message(), sent = {0};
    Loan *loan = loan_new(&m, &sent);
    loan_free(loan);
    assert_int_equal(lent_out, 0);
    Error *err = loan_fetch(getpid(), &sent, LIMIT, NULL, NULL);
    assert_non_null(err);
    assert_int_equal(err->code, CODE_UNAVAILABLE);
    error_free(err);
    message_clear(&sent);
}

static void a_process_that_is_gone_has_nothing(void **state) {
    (void)state;
    Message m = mixed_message(), sent = {0};
    Loan *loan = loan_new(&m, &sent);
    pid_t child = fork();
    if (child == 0) _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    Error *err = loan_fetch(child, &sent, LIMIT, NULL, NULL);
    assert_non_null(err);
    assert_int_equal(err->code, CODE_UNAVAILABLE);
    assert_true(sent.len > 0); /* as it was */
    error_free(err);
    message_clear(&sent);
    loan_free(loan);
}

static void lists_that_are_malformed_or_too_large_are_refused(void **state) {
    (void)state;
    need_memory_of_others();
    Message m = mixed_message(), sent = {0};
    Loan *loan = loan_new(&m, &sent);
    Str whole = message_flatten(&sent);
    for (size_t len = 0; len <= whole.len + 1; len++) {
        Message part = {0};
        char *bytes = xcalloc(1, len + 1);
        memcpy(bytes, whole.ptr, len < whole.len ? len : whole.len);
        message_add_take(&part, bytes, len);
        Error *err = loan_fetch(getpid(), &part, LIMIT, NULL, NULL);
        assert_int_equal(err == NULL, len == whole.len);
        if (err) assert_int_equal(err->code, CODE_INTERNAL);
        error_free(err);
        message_clear(&part);
    }
    Error *err = loan_fetch(getpid(), &sent, LARGE, NULL, NULL);
    assert_non_null(err);
    assert_int_equal(err->code, CODE_RESOURCE_EXHAUSTED);
    error_free(err);
    message_clear(&sent);
    loan_free(loan);
    assert_int_equal(lent_out, 0);
}

/* ---- Transports ---- */

/* Answers "LEN SEED" with so many bytes. */
static void make_bytes(void *arg, ServerCall *call) {
    (void)arg;
    char text[40] = "";
    Str request = message_flatten(server_call_request(call));
    memcpy(text, request.ptr, request.len < sizeof text ? request.len : sizeof text - 1);
    char *end;
    size_t len = strtoul(text, &end, 10);
    Message m = {0};
    add_owned(&m, len, (unsigned)strtoul(end, NULL, 10));
    server_call_reply(call, &m);
}

/* Says whether the request is what it shall be. */
static void judge(void *arg, ServerCall *call) {
    (void)arg;
    Message m = {0};
    message_add_copy(&m, is_filled(message_flatten(server_call_request(call)), 7) ? STR("right") : STR("wrong"));
    server_call_reply(call, &m);
}

static void refuse(void *arg, ServerCall *call) {
    (void)arg;
    server_call_fail(call, error_new(CODE_ABORTED, "no"));
}

static const Method methods[] = {
    {"/test.T/Make", make_bytes, ON_READER, NULL}, {"/test.T/Judge", judge, STAYING, NULL}, {"/test.T/Refuse", refuse, ON_POOL, NULL}, {0}};

typedef struct Env {
    Transport *server, *client;
    ThreadPool *pool;
    char *address;
    Channel *channel;
} Env;

static void env_start(Env *env, bool tcp_only) {
    *env = (Env){0};
    assert_null(transport_grpc_new(&(GrpcOptions){.tcp_only = tcp_only}, &env->server));
    assert_null(transport_grpc_new(&(GrpcOptions){.tcp_only = tcp_only}, &env->client));
    env->pool = threadpool_new("serve", 2);
    assert_null(transport_serve(env->server, STR("127.0.0.1:0"), &(ServerOptions){.methods = methods, .pool = env->pool}, &env->address));
    env->channel = transport_channel(env->client, str_of(env->address));
}

static void env_stop(Env *env) {
    channel_unref(env->channel);
    transport_free(env->client);
    transport_free(env->server);
    threadpool_free(env->pool);
    free(env->address);
    assert_int_equal(lent_out, 0);
}

static Error *ask(Channel *c, size_t len, unsigned seed, Message *reply) {
    Message request = {0};
    char *text = xasprintf("%zu %u", len, seed);
    message_add_take(&request, text, strlen(text));
    return channel_call_wait(c, "/test.T/Make", &request, (CallOptions){.timeout_ms = PATIENCE_MS}, reply);
}

/* The two sides find each other's memory with the first messages: small ones until then. */
static void warm_up(Env *env) {
    for (int i = 0; i < 2; i++) {
        Message reply = {0};
        assert_null(ask(env->channel, 10, 0, &reply));
        message_clear(&reply);
    }
}

static void answers_and_requests_are_lent_between_local_sockets_alone(void **state) {
    (void)state;
    need_memory_of_others();
    static const size_t sizes[] = {1000, 200000, LARGE, VERY_LARGE};
    for (int tcp_only = 0; tcp_only < 2; tcp_only++) {
        Env env;
        env_start(&env, tcp_only);
        warm_up(&env);
        for (unsigned i = 0; i < 4; i++) {
            Message reply = {0}, request = {0};
            assert_null(ask(env.channel, sizes[i], i, &reply));
            assert_int_equal(reply.len, sizes[i]);
            assert_true(is_filled(message_flatten(&reply), i));
            message_clear(&reply);
            add_owned(&request, sizes[i], 7);
            assert_null(channel_call_wait(env.channel, "/test.T/Judge", &request, (CallOptions){.timeout_ms = PATIENCE_MS}, &reply));
            assert_true(str_is(message_flatten(&reply), "right"));
            message_clear(&reply);
        }
        assert_int_equal(transport_stats(env.server).messages_lent, tcp_only ? 0 : 3);
        assert_int_equal(transport_stats(env.client).messages_lent, tcp_only ? 0 : 3);
        env_stop(&env);
    }
}

static void an_error_gives_a_lent_request_back(void **state) {
    (void)state;
    Env env;
    env_start(&env, false);
    warm_up(&env);
    Message request = {0}, reply = {0};
    add_owned(&request, LARGE, 7);
    Error *err = channel_call_wait(env.channel, "/test.T/Refuse", &request, (CallOptions){.timeout_ms = PATIENCE_MS}, &reply);
    assert_non_null(err);
    assert_int_equal(err->code, CODE_ABORTED);
    error_free(err);
    env_stop(&env);
}

typedef struct Outcome {
    Latch *done;
    unsigned seed;
    _Atomic int right, wrong, failed;
} Outcome;

static void count(void *arg, Error *err, Message *reply) {
    Outcome *o = arg;
    if (err)
        o->failed++;
    else if (reply->len == LARGE && is_filled(message_flatten(reply), o->seed))
        o->right++;
    else
        o->wrong++;
    error_free(err);
    latch_done(o->done);
}

/* What arrives is right or an error, whenever the call is given up, and all memory comes back. */
static void calls_given_up_while_they_copy_do_no_harm(void **state) {
    (void)state;
    enum { CALLS = 60 };
    Env env;
    Latch done;
    Outcome outcome = {.done = &done, .seed = 5};
    env_start(&env, false);
    warm_up(&env);
    latch_init(&done, CALLS);
    for (int i = 0; i < CALLS; i++) {
        Message request = {0};
        char *text = xasprintf("%d 5", LARGE);
        message_add_take(&request, text, strlen(text));
        Call *call = channel_call(env.channel, "/test.T/Make", &request, (CallOptions){.timeout_ms = i % 3 == 0 ? 1 + i / 10 : PATIENCE_MS}, count, &outcome);
        if (i % 3 == 1) call_cancel(call);
        call_unref(call);
    }
    latch_wait(&done);
    latch_clear(&done);
    assert_int_equal(outcome.wrong, 0);
    assert_true(outcome.right >= CALLS / 3);
    assert_int_equal(outcome.right + outcome.failed, CALLS);
    env_stop(&env);
}

/* ---- A peer in another process ---- */

static void serve_until_killed(int out) {
    Transport *server = NULL;
    char *address = NULL;
    ThreadPool *pool = threadpool_new("serve", 2);
    bool ok = !transport_grpc_new(NULL, &server) &&
              !transport_serve(server, STR("127.0.0.1:0"), &(ServerOptions){.methods = methods, .pool = pool}, &address) &&
              write(out, address, strlen(address) + 1) > 0;
    while (ok) pause();
    _exit(1);
}

/* Answers come one after the other until the peer is killed, in the midst of one more often than not. */
static void a_peer_that_dies_ends_the_call_with_unavailable(void **state) {
    (void)state;
    Transport *client = NULL;
    char address[64] = "";
    int from_child[2];
    assert_int_equal(pipe(from_child), 0);
    pid_t child = fork();
    if (child == 0) serve_until_killed(from_child[1]);
    assert_true(read(from_child[0], address, sizeof address - 1) > 0);
    assert_null(transport_grpc_new(NULL, &client));
    Channel *c = transport_channel(client, str_of(address));
    Error *err = NULL;
    int right = 0;
    for (; !err && right < 1000; right++) {
        Message reply = {0};
        if (right == 5) kill(child, SIGKILL);
        err = ask(c, VERY_LARGE, (unsigned)right, &reply);
        if (!err) assert_true(is_filled(message_flatten(&reply), (unsigned)right));
        message_clear(&reply);
    }
    assert_non_null(err);
    assert_int_equal(err->code, CODE_UNAVAILABLE);
    assert_true(right > 5);
    error_free(err);
    assert_int_equal(waitpid(child, NULL, 0), child);
    channel_unref(c);
    transport_free(client);
    close(from_child[0]);
    close(from_child[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_that_dies_ends_the_call_with_unavailable), /* forks: before there are threads */
        cmocka_unit_test(a_message_is_copied_whole_and_lies_as_it_shall),
        cmocka_unit_test(what_was_taken_back_is_not_used),
        cmocka_unit_test(a_process_that_is_gone_has_nothing),
        cmocka_unit_test(lists_that_are_malformed_or_too_large_are_refused),
        cmocka_unit_test(answers_and_requests_are_lent_between_local_sockets_alone),
        cmocka_unit_test(an_error_gives_a_lent_request_back),
        cmocka_unit_test(calls_given_up_while_they_copy_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
