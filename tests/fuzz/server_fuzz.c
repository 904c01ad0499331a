/* server_fuzz.c: bytes of a client for the gRPC server, through a socket; a method that echoes and one that fails. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/log.h"
#include "fuzz_target.h"
#include "net/transport.h"

static int port;

static void echo(void *arg, ServerCall *call) {
    (void)arg;
    Message reply = message_move(server_call_request(call));
    server_call_reply(call, &reply);
}

static void refuse(void *arg, ServerCall *call) {
    (void)arg;
    server_call_fail(call, error_invalid("no"));
}

static void start(void) {
    static const Method rows[] = {{"/a.B/Echo", echo, false}, {"/a.B/Refuse", refuse, true}, {0}};
    static Transport *transport;
    char *address = NULL;
    Error *err = transport_grpc_new(NULL, &transport);
    if (!err) err = transport_serve(transport, STR("127.0.0.1:0"), &(ServerOptions){.methods = rows, .pool = threadpool_new("serve", 2), .max_message_bytes = 1 << 20}, &address);
    if (err) fprintf(stderr, "%s\n", err->message), abort();
    port = atoi(strrchr(address, ':') + 1);
    free(address);
}

/* Sends all and reads until the server hangs up. */
static void talk(Str bytes) {
    char reply[4096];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 10};
    struct linger gone = {.l_onoff = 1};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &gone, sizeof gone); /* leaves no port waiting */
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) {
        ssize_t sent = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        ssize_t got = sent;
        while (got > 0) got = recv(fd, reply, sizeof reply, 0);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!port) start();
    Str input = input_str(data, size);
    StrBuf bytes = {0};
    if (take_choice(&input) & 1) strbuf_add(&bytes, (Str){"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 33});
    strbuf_add(&bytes, input);
    talk(strbuf_str(&bytes));
    strbuf_clear(&bytes);
    return 0;
}
