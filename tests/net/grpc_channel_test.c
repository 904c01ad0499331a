/* grpc_channel_test.c: a channel and servers that misbehave, over real sockets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/http2.h"
#include "net/transport.h"

/* ---- A server by hand: accepts one connection, answers each request in its own way ---- */

typedef struct Server Server;
typedef void Answer(Server *s, Http2Stream *stream);

struct Server {
    int listener, fd;
    char address[32];
    Answer *answer; /* NULL: does not even read */
    bool is_mute;   /* stops reading after the first request */
    Http2 *http2;
    pthread_t thread;
};

static void ignore_stream(void *arg, Http2Stream *s) {
    (void)arg, (void)s;
}

static void ignore_header(void *arg, Http2Stream *s, Str name, Str value) {
    (void)arg, (void)s, (void)name, (void)value;
}

static void ignore_data(void *arg, Http2Stream *s, Str bytes) {
    (void)arg, (void)s, (void)bytes;
}

static void ignore_closed(void *arg, Http2Stream *s, uint32_t code) {
    (void)arg, (void)s, (void)code;
}

static void ignore_ready(void *arg) {
    (void)arg;
}

static void on_ended(void *arg, Http2Stream *s) {
    Server *server = arg;
    server->answer(server, s);
}

static const Http2Events server_events = {
    .opened = ignore_stream,
    .header = ignore_header,
    .headers_end = ignore_stream,
    .data = ignore_data,
    .ended = on_ended,
    .closed = ignore_closed,
    .ready = ignore_ready,
};

static void write_all(Server *s) {
    Message out = {0};
    assert_null(http2_take_output(s->http2, &out, SIZE_MAX));
    Str bytes = message_flatten(&out);
    /* The channel may have hung up already: it has its answer. */
    ssize_t sent = bytes.len ? send(s->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL) : 0;
    assert_true(sent == (ssize_t)bytes.len || errno == EPIPE || errno == ECONNRESET);
    message_clear(&out);
}

static void *server_main(void *arg) {
    static _Thread_local char buffer[65536];
    Server *s = arg;
    s->fd = accept(s->listener, NULL, NULL);
    if (!s->answer) return NULL;
    s->http2 = http2_server_new(&server_events, s);
    for (;;) {
        write_all(s);
        if (http2_is_done(s->http2) || s->is_mute) return NULL;
        ssize_t n = read(s->fd, buffer, sizeof buffer);
        if (n <= 0) return NULL;
        error_free(http2_feed(s->http2, (Str){buffer, (size_t)n}));
    }
}

static void server_start(Server *s, Answer *answer) {
    *s = (Server){.answer = answer, .fd = -1};
    struct sockaddr_in name = {.sin_family = AF_INET};
    socklen_t len = sizeof name;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(listen(s->listener, 5), 0);
    getsockname(s->listener, (struct sockaddr *)&name, &len);
    snprintf(s->address, sizeof s->address, "127.0.0.1:%d", ntohs(name.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

static void server_stop(Server *s) {
    pthread_join(s->thread, NULL);
    close(s->fd);
    close(s->listener);
    http2_free(s->http2);
}

/* ---- Answers ---- */

#define STATUS(code) \
    { STR(":status"), STR(code) }
#define GRPC \
    { STR("content-type"), STR("application/grpc") }

static void answer_503(Server *s, Http2Stream *stream) {
    http2_respond(s->http2, stream, (Http2Header[]){STATUS("503")}, 1, NULL, NULL, 0);
}

static void answer_trailers_only(Server *s, Http2Stream *stream) {
    Http2Header headers[] = {STATUS("200"), GRPC, {STR("grpc-status"), STR("9")}, {STR("grpc-message"), STR("a%20b")}};
    http2_respond(s->http2, stream, headers, 4, NULL, NULL, 0);
}

static void answer_without_status(Server *s, Http2Stream *stream) {
    Message body = {0};
    message_add_copy(&body, (Str){"\0\0\0\0\0", 5});
    http2_respond(s->http2, stream, (Http2Header[]){STATUS("200"), GRPC}, 2, &body, NULL, 0);
}

static void answer_half(Server *s, Http2Stream *stream) {
    Message body = {0};
    message_add_copy(&body, (Str){"\0\0\0\0\7abc", 8});
    http2_respond(s->http2, stream, (Http2Header[]){STATUS("200"), GRPC}, 2, &body,
                  (Http2Header[]){{STR("grpc-status"), STR("0")}}, 1);
}

static void answer_large(Server *s, Http2Stream *stream) {
    Message body = {0};
    message_add_copy(&body, (Str){"\0\0\0\x10\0", 5});
    message_add_take(&body, xcalloc(1, 4096), 4096);
    http2_respond(s->http2, stream, (Http2Header[]){STATUS("200"), GRPC}, 2, &body,
                  (Http2Header[]){{STR("grpc-status"), STR("0")}}, 1);
}

static void answer_refuse(Server *s, Http2Stream *stream) {
    http2_reset(s->http2, stream, HTTP2_REFUSED_STREAM);
}

static void answer_reset(Server *s, Http2Stream *stream) {
    http2_reset(s->http2, stream, HTTP2_INTERNAL_ERROR);
}

static void answer_hang_up(Server *s, Http2Stream *stream) {
    (void)stream;
    shutdown(s->fd, SHUT_RDWR);
    s->is_mute = true;
}

static void answer_nothing(Server *s, Http2Stream *stream) {
    (void)stream;
    s->is_mute = true;
}

/* ---- Tests ---- */

static Error *call(Channel *c, int64_t timeout_ms) {
    Message m = {0}, reply = {0};
    message_add_copy(&m, STR("x"));
    Error *err = channel_call_wait(c, "/a/B", &m, (CallOptions){.timeout_ms = timeout_ms}, &reply);
    message_clear(&reply);
    return err;
}

static void expect(Answer *answer, const GrpcOptions *options, ErrorCode code, const char *text) {
    Server s;
    Transport *t = NULL;
    server_start(&s, answer);
    assert_null(transport_grpc_new(options, &t));
    Channel *c = transport_channel(t, str_of(s.address));
    Error *err = call(c, 30000);
    assert_non_null(err);
    if (err->code != code || !strstr(err->message, text)) fail_msg("%s: %s", error_code_name(err->code), err->message);
    error_free(err);
    channel_unref(c);
    transport_free(t);
    server_stop(&s);
}

static void odd_answers_become_errors(void **state) {
    (void)state;
    GrpcOptions small = {.max_message_bytes = 4095};
    expect(answer_503, NULL, CODE_UNAVAILABLE, "HTTP status 503");
    expect(answer_trailers_only, NULL, CODE_FAILED_PRECONDITION, "a b");
    expect(answer_without_status, NULL, CODE_UNKNOWN, "without a status");
    expect(answer_half, NULL, CODE_INTERNAL, "before its message was complete");
    expect(answer_large, &small, CODE_RESOURCE_EXHAUSTED, "4096 bytes is larger than the limit of 4095");
    expect(answer_refuse, NULL, CODE_UNAVAILABLE, "error code 7");
    expect(answer_reset, NULL, CODE_INTERNAL, "error code 2");
    expect(answer_hang_up, NULL, CODE_UNAVAILABLE, "127.0.0.1:");
}

static void a_silent_server_is_given_up(void **state) {
    (void)state;
    GrpcOptions options = {.keepalive_ms = 50, .keepalive_timeout_ms = 50, .connect_timeout_ms = 100};
    expect(answer_nothing, &options, CODE_UNAVAILABLE, "no answer to a PING");
    expect(NULL, &options, CODE_UNAVAILABLE, "failed to connect to all addresses; last error");
}

static void a_bad_address_is_unavailable(void **state) {
    (void)state;
    Transport *t = NULL;
    assert_null(transport_grpc_new(NULL, &t));
    Channel *c = transport_channel(t, STR("no port"));
    Error *err = call(c, 0);
    assert_int_equal(err->code, CODE_UNAVAILABLE);
    error_free(err);
    channel_unref(c);
    transport_free(t);
}

static void all_addresses_of_a_name_are_tried(void **state) {
    (void)state;
    Server s;
    Transport *t = NULL;
    server_start(&s, answer_trailers_only); /* on IPv4 only */
    assert_null(transport_grpc_new(NULL, &t));
    char *address = xasprintf("localhost%s", strchr(s.address, ':'));
    Channel *c = transport_channel(t, str_of(address));
    Error *err = call(c, 0);
    assert_int_equal(err->code, CODE_FAILED_PRECONDITION);
    error_free(err);
    channel_unref(c);
    transport_free(t);
    server_stop(&s);
    free(address);
}

/* With a connection that is gone, fail-fast calls fail at once, and soon after the server is back they succeed. */
static void a_channel_connects_again(void **state) {
    (void)state;
    Server s;
    Transport *t = NULL;
    server_start(&s, answer_hang_up);
    assert_null(transport_grpc_new(NULL, &t));
    Channel *c = transport_channel(t, str_of(s.address));
    for (int i = 0; i < 3; i++) {
        Error *err = call(c, 30000);
        assert_int_equal(err->code, CODE_UNAVAILABLE);
        error_free(err);
        if (i == 0) server_stop(&s);
    }
    assert_false(channel_is_connected(c));
    char *why = channel_last_error(c);
    assert_non_null(strstr(why, "Connection refused"));
    free(why);
    channel_unref(c);
    transport_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_answers_become_errors),    cmocka_unit_test(a_silent_server_is_given_up),
        cmocka_unit_test(a_bad_address_is_unavailable), cmocka_unit_test(all_addresses_of_a_name_are_tried),
        cmocka_unit_test(a_channel_connects_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
