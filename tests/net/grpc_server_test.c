/* grpc_server_test.c: a server and peers that misbehave, over real sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/http2.h"
#include "net/transport.h"

/* ---- A peer that speaks HTTP/2 by hand ---- */

typedef struct Peer {
    int fd;
    Http2 *http2;
    StrBuf headers; /* "name=value;" of all that came */
    int ended, closed, ready, goaway;
    uint32_t code;
} Peer;

static void on_header(void *arg, Http2Stream *s, Str name, Str value) {
    (void)s;
    strbuf_addf(&((Peer *)arg)->headers, "%.*s=%.*s;", STR_ARG(name), STR_ARG(value));
}

static void on_headers_end(void *arg, Http2Stream *s) {
    (void)arg, (void)s;
}

static void on_data(void *arg, Http2Stream *s, Str bytes) {
    (void)arg, (void)s, (void)bytes;
}

static void on_ended(void *arg, Http2Stream *s) {
    (void)s;
    ((Peer *)arg)->ended++;
}

static void on_closed(void *arg, Http2Stream *s, uint32_t code) {
    (void)s;
    Peer *peer = arg;
    peer->closed++;
    peer->code = code;
}

static void on_ready(void *arg) {
    ((Peer *)arg)->ready++;
}

static void on_goaway(void *arg, uint32_t code, Str debug) {
    (void)code, (void)debug;
    ((Peer *)arg)->goaway++;
}

static const Http2Events peer_events = {
    .header = on_header,
    .headers_end = on_headers_end,
    .data = on_data,
    .ended = on_ended,
    .closed = on_closed,
    .ready = on_ready,
    .goaway = on_goaway,
};

/* ---- Set-up ---- */

typedef struct Env {
    Transport *transport;
    char *address;
    Channel *channel;
} Env;

static void echo(void *arg, ServerCall *call) {
    (void)arg;
    Message m = message_move(server_call_request(call));
    server_call_reply(call, &m);
}

static const Method methods[] = {{"/test.T/Echo", echo, ON_READER, NULL}, {0}};

static int set_up(void **state) {
    Env *env = xcalloc(1, sizeof *env);
    ServerOptions options = {.methods = methods};
    assert_null(transport_grpc_new(NULL, &env->transport));
    assert_null(transport_serve(env->transport, STR("127.0.0.1:0"), &options, &env->address));
    env->channel = transport_channel(env->transport, str_of(env->address));
    *state = env;
    return 0;
}

static int tear_down(void **state) {
    Env *env = *state;
    channel_unref(env->channel);
    transport_free(env->transport);
    free(env->address);
    free(env);
    return 0;
}

static void expect_alive(Env *env) {
    Message m = {0}, reply = {0};
    message_add_copy(&m, STR("alive"));
    Error *err = channel_call_wait(env->channel, "/test.T/Echo", &m, (CallOptions){0}, &reply);
    if (err) fail_msg("%s", err->message);
    message_clear(&reply);
}

static int socket_to(Env *env, bool connect_it) {
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)atoi(strrchr(env->address, ':') + 1))};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    if (connect_it) assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof name), 0);
    return fd;
}

static void peer_open(Peer *peer, Env *env) {
    *peer = (Peer){.fd = socket_to(env, true)};
    peer->http2 = http2_client_new(&peer_events, peer);
}

static void peer_close(Peer *peer) {
    close(peer->fd);
    http2_free(peer->http2);
    strbuf_clear(&peer->headers);
}

static void peer_write(Peer *peer) {
    Message out = {0};
    assert_null(http2_take_output(peer->http2, &out, SIZE_MAX));
    Str bytes = message_flatten(&out);
    assert_int_equal(send(peer->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL), bytes.len);
    message_clear(&out);
}

/* Reads until *count is there or the server closes; false in that case. */
static bool peer_read(Peer *peer, const int *count) {
    static char buffer[65536];
    while (!*count) {
        peer_write(peer);
        ssize_t n = read(peer->fd, buffer, sizeof buffer);
        if (n <= 0) return false;
        error_free(http2_feed(peer->http2, (Str){buffer, (size_t)n}));
    }
    return true;
}

static void send_request(Peer *peer, const char *method, const char *path, const char *type, Str body_bytes) {
    Message body = {0};
    Http2Header headers[] = {{STR(":method"), str_of(method)},    {STR(":scheme"), STR("http")},
                             {STR(":path"), str_of(path)},        {STR(":authority"), STR("me")},
                             {STR("content-type"), str_of(type)}, {STR("te"), STR("trailers")}};
    message_add_copy(&body, body_bytes);
    assert_non_null(http2_request(peer->http2, headers, 6, &body, NULL));
}

static void expect_answer(Env *env, const char *method, const char *path, const char *type, Str body,
                          const char *answer) {
    Peer peer;
    peer_open(&peer, env);
    send_request(&peer, method, path, type, body);
    assert_true(peer_read(&peer, &peer.ended));
    if (!strstr(peer.headers.ptr, answer)) fail_msg("%s", peer.headers.ptr);
    peer_close(&peer);
}

/* ---- Tests ---- */

static void bad_requests_get_a_status(void **state) {
    Env *env = *state;
    Str empty = {"\0\0\0\0\0", 5};
    const char *grpc = "application/grpc", *path = "/test.T/Echo";
    expect_answer(env, "POST", path, "application/grpc+proto", empty,
                  ":status=200;content-type=application/grpc;grpc-status=0;");
    expect_answer(env, "POST", path, "text/html", empty, ":status=415;content-type=application/grpc;grpc-status=3;");
    expect_answer(env, "GET", path, grpc, empty, ":status=405;content-type=application/grpc;grpc-status=13;");
    expect_answer(env, "POST", "/", grpc, empty, ":status=200;content-type=application/grpc;grpc-status=12;");
    expect_answer(env, "POST", path, grpc, (Str){"\1\0\0\0\0", 5}, "grpc-status=12;grpc-message=compressed");
    expect_answer(env, "POST", path, grpc, (Str){"\0\0\0\0\5abc", 8}, "grpc-status=13;grpc-message=the request ended");
    expect_answer(env, "POST", path, grpc, (Str){"", 0}, "grpc-status=13;");
    expect_answer(env, "POST", path, grpc, (Str){"\0\0\0\0\0\0\0\0\0\0", 10},
                  "grpc-status=12;grpc-message=more than one");
    expect_answer(env, "POST", path, grpc, (Str){"\0\xff\xff\xff\xff", 5},
                  "grpc-status=8;grpc-message=message of 4294967295 bytes");
    expect_alive(env);
}

static void other_protocols_are_hung_up_on(void **state) {
    Env *env = *state;
    const char *texts[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00",
                           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff"};
    expect_alive(env);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char buffer[4096];
        int fd = socket_to(env, true);
        assert_true(write(fd, texts[i], strlen(texts[i])) > 0);
        shutdown(fd, SHUT_WR);
        while (read(fd, buffer, sizeof buffer) > 0) continue;
        close(fd);
    }
    expect_alive(env);
}

static void silence_instead_of_a_preface_is_hung_up_on(void **state) {
    Env *env = *state;
    char buffer[4096];
    int fd = socket_to(env, true);
    int64_t begin = clock_mono_ms();
    while (read(fd, buffer, sizeof buffer) > 0) continue;
    assert_in_range(clock_mono_ms() - begin, 4000, 60000);
    close(fd);
    expect_alive(env);
}

static void running_out_of_descriptors_only_delays(void **state) {
    Env *env = *state;
    struct rlimit old, low;
    Peer peer = {.fd = socket_to(env, false)};
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)atoi(strrchr(env->address, ':') + 1))};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int lowest_free = fcntl(0, F_DUPFD, 0);
    close(lowest_free);
    getrlimit(RLIMIT_NOFILE, &old);
    low = (struct rlimit){(rlim_t)lowest_free, old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    assert_int_equal(connect(peer.fd, (struct sockaddr *)&name, sizeof name),
                     0); /* the kernel takes it, the server cannot */
    peer.http2 = http2_client_new(&peer_events, &peer);
    send_request(&peer, "POST", "/test.T/Echo", "application/grpc", (Str){"\0\0\0\0\0", 5});
    peer_write(&peer);
    struct timeval patience = {.tv_usec = 250000};
    setsockopt(peer.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_false(peer_read(&peer, &peer.ended)); /* not accepted, not refused */
    setrlimit(RLIMIT_NOFILE, &old);
    patience = (struct timeval){.tv_sec = 20};
    setsockopt(peer.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_true(peer_read(&peer, &peer.ended));
    assert_non_null(strstr(peer.headers.ptr, "grpc-status=0"));
    peer_close(&peer);
    expect_alive(env);
}

static void a_broken_connection_is_forgotten(void **state) {
    Env *env = *state;
    expect_alive(env);
    for (int i = 0; i < 50; i++) {
        Peer peer;
        peer_open(&peer, env);
        send_request(&peer, "POST", "/test.T/Echo", "application/grpc", (Str){"\0\0\0\0\5", 5}); /* never complete */
        assert_true(peer_read(&peer, &peer.ready));
        peer_close(&peer);
    }
    expect_alive(env);
    /* The server learns of the ends while it answers further calls. */
    int64_t give_up = clock_mono_ms() + 20000;
    while (transport_stats(env->transport).connections_in > 1 && clock_mono_ms() < give_up) expect_alive(env);
    TransportStats stats = transport_stats(env->transport);
    assert_int_equal(stats.connections_in, 1);
    assert_int_equal(stats.connections_out, 1);
}

static void a_stop_says_goodbye(void **state) {
    Env *env = *state;
    Peer peer;
    peer_open(&peer, env);
    assert_true(peer_read(&peer, &peer.ready));
    send_request(&peer, "POST", "/test.T/Echo", "application/grpc", (Str){"\0\0\0\0\0", 5});
    assert_true(peer_read(&peer, &peer.ended));
    transport_stop_serving(env->transport, 0);
    assert_true(peer_read(&peer, &peer.goaway));
    int never = 0;
    assert_false(peer_read(&peer, &never));
    peer_close(&peer);
    assert_int_equal(transport_stats(env->transport).connections_in, 0);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        ROW(bad_requests_get_a_status),
        ROW(other_protocols_are_hung_up_on),
        ROW(silence_instead_of_a_preface_is_hung_up_on),
        ROW(running_out_of_descriptors_only_delays),
        ROW(a_broken_connection_is_forgotten),
        ROW(a_stop_says_goodbye),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
