/* local_socket_test.c: sockets between tasks of one host: found beside the TCP address, refused to other users, and TCP where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/local_socket.h"
#include "net/transport.h"

enum { PATIENCE_MS = 60000 };

/* An address and a TCP socket bound to it, so that nobody else uses the port meanwhile. */
static int reserve(const char *host, struct sockaddr_in *out) {
    socklen_t len = sizeof *out;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *out = (struct sockaddr_in){.sin_family = AF_INET};
    assert_int_equal(inet_pton(AF_INET, host, &out->sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)out, sizeof *out), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)out, &len), 0);
    return fd;
}

static void the_peer_is_found_by_its_tcp_address(void **state) {
    (void)state;
    static const char *const listen_on[] = {"127.0.0.1", "0.0.0.0"};
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in bound, to;
        int reserved = reserve(listen_on[i], &bound);
        to = bound;
        inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
        assert_int_equal(local_socket_connect((struct sockaddr *)&to), -1); /* nobody is there yet */
        int listener = local_socket_listen((struct sockaddr *)&bound, 10);
        assert_true(listener >= 0);
        assert_int_equal(local_socket_listen((struct sockaddr *)&bound, 10), -1);
        int fd = local_socket_connect((struct sockaddr *)&to);
        assert_true(fd >= 0);
        int accepted = accept(listener, NULL, NULL);
        assert_true(local_socket_is_own(accepted));
        close(accepted);
        close(fd);
        close(listener);
        assert_int_equal(local_socket_connect((struct sockaddr *)&to), -1);
        close(reserved);
    }
}

static void other_hosts_are_not_here(void **state) {
    (void)state;
    struct sockaddr_in bound, far;
    int reserved = reserve("0.0.0.0", &bound);
    int listener = local_socket_listen((struct sockaddr *)&bound, 10);
    far = bound;
    inet_pton(AF_INET, "192.0.2.1", &far.sin_addr); /* of documentation */
    assert_int_equal(local_socket_connect((struct sockaddr *)&far), -1);
    close(listener);
    close(reserved);
}

static void a_name_held_by_another_user_is_not_trusted(void **state) {
    (void)state;
    struct sockaddr_in bound;
    char byte = 0;
    int ready[2], over[2];
    if (geteuid() != 0) skip(); /* only root can be somebody else */
    int reserved = reserve("127.0.0.1", &bound);
    assert_int_equal(pipe(ready) | pipe(over), 0);
    pid_t child = fork();
    if (child == 0) {
        bool ok = setuid(65534) == 0 && local_socket_listen((struct sockaddr *)&bound, 10) >= 0;
        if (ok) ok = write(ready[1], "x", 1) == 1;
        close(over[1]);
        if (ok) ok = read(over[0], &byte, 1) == 0;
        _exit(ok ? 0 : 1);
    }
    close(ready[1]);
    close(over[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(local_socket_connect((struct sockaddr *)&bound), -1);
    close(over[1]);
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(reserved);
}

/* ---- Transports ---- */

static void say_peer(void *arg, ServerCall *call) {
    (void)arg;
    Message m = {0};
    message_add_copy(&m, server_call_peer(call));
    server_call_reply(call, &m);
}

static const Method methods[] = {{"/test.T/Peer", say_peer, ON_READER, NULL}, {0}};

/* How the server sees a client; malloced. */
static char *peer_seen(bool server_tcp_only, bool client_tcp_only) {
    Transport *server = NULL, *client = NULL;
    char *address = NULL;
    Message request = {0}, reply = {0};
    assert_null(transport_grpc_new(&(GrpcOptions){.tcp_only = server_tcp_only}, &server));
    assert_null(transport_grpc_new(&(GrpcOptions){.tcp_only = client_tcp_only}, &client));
    ThreadPool *pool = threadpool_new("serve", 1);
    assert_null(transport_serve(server, STR("127.0.0.1:0"), &(ServerOptions){.methods = methods, .pool = pool}, &address));
    Channel *c = transport_channel(client, str_of(address));
    Error *err = channel_call_wait(c, "/test.T/Peer", &request, (CallOptions){.timeout_ms = PATIENCE_MS}, &reply);
    assert_null(err);
    char *peer = str_dup(message_flatten(&reply));
    message_clear(&reply);
    channel_unref(c);
    transport_free(client);
    transport_free(server);
    threadpool_free(pool);
    free(address);
    return peer;
}

static void transports_of_one_host_take_it_and_others_take_tcp(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        char *peer = peer_seen(i & 1, i & 2);
        if (i == 0)
            assert_string_equal(peer, "local");
        else
            assert_int_equal(strncmp(peer, "127.0.0.1:", 10), 0);
        free(peer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peer_is_found_by_its_tcp_address),
        cmocka_unit_test(other_hosts_are_not_here),
        cmocka_unit_test(a_name_held_by_another_user_is_not_trusted),
        cmocka_unit_test(transports_of_one_host_take_it_and_others_take_tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
