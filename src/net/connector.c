/* connector.c: resolves a name, then tries its addresses one after the other; those of this host by a local socket first. */
#include "net/connector.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/address.h"
#include "net/local_socket.h"

struct Connector {
    Loop *loop;
    char *host, *port;
    ConnectorDone *done; /* NULL: cancelled */
    void *arg;
    uv_getaddrinfo_t lookup;
    struct sockaddr_storage literal; /* when the host is a number */
    struct addrinfo *addresses;      /* of the lookup */
    const struct addrinfo *next;
    const struct sockaddr *current;
    bool is_looking_up, tcp_only;
    Conn *conn; /* being connected */
    uv_connect_t connect;
    Error *last; /* of the addresses tried */
    LoopTask begin_task;
};

static void connector_free(Connector *c) {
    if (c->addresses) uv_freeaddrinfo(c->addresses);
    error_free(c->last);
    free(c->host);
    free(c->port);
    free(c);
}

static void finish(Connector *c, Error *err, Conn *conn) {
    if (c->done) {
        c->done(c->arg, err, conn);
    } else {
        error_free(err);
        if (conn) conn_close(conn, NULL);
    }
    connector_free(c);
}

static void fail(void *arg) {
    Connector *c = arg;
    Error *last = c->last;
    c->last = NULL;
    finish(c, error_wrap(last, "failed to connect to all addresses; last error"), NULL);
}

static void note(Connector *c, int status) {
    char name[ADDRESS_SIZE];
    address_print(c->current, name);
    error_free(c->last);
    c->last = error_new(CODE_UNAVAILABLE, "%s:%s: %s", address_family(c->current), name, strerror(-status));
}

static void try_next(Connector *c);

static void on_connect(uv_connect_t *request, int status) {
    Connector *c = request->data;
    Conn *conn = c->conn;
    c->conn = NULL;
    if (status == 0) {
        finish(c, NULL, conn);
        return;
    }
    note(c, status);
    conn_close(conn, NULL);
    try_next(c);
}

static void try_one(Connector *c, const struct sockaddr *address) {
    char name[ADDRESS_SIZE];
    c->current = address;
    c->conn = conn_new(c->loop);
    c->connect.data = c;
    int fd = c->tcp_only ? -1 : local_socket_connect(address);
    if (fd >= 0) {
        int not_taken = uv_tcp_open(conn_tcp(c->conn), fd);
        if (not_taken) close(fd);
        address_print(address, name);
        conn_set_peer(c->conn, name);
        on_connect(&c->connect, not_taken);
        return;
    }
    int failed = uv_tcp_connect(&c->connect, conn_tcp(c->conn), address, on_connect);
    if (failed) on_connect(&c->connect, failed);
}

static void try_next(Connector *c) {
    const struct addrinfo *next = c->next;
    if (!c->done || !next) {
        fail(c);
        return;
    }
    c->next = next->ai_next;
    try_one(c, next->ai_addr);
}

static void on_lookup(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses) {
    Connector *c = request->data;
    c->is_looking_up = false;
    c->addresses = addresses;
    c->next = addresses;
    if (status != 0)
        finish(
            c,
            error_new(CODE_UNAVAILABLE, "DNS resolution failed for %s:%s: %s", c->host, c->port, uv_strerror(status)),
            NULL);
    else
        try_next(c);
}

static bool parse_literal(Connector *c) {
    int port = atoi(c->port);
    return uv_ip4_addr(c->host, port, (struct sockaddr_in *)&c->literal) == 0 ||
           uv_ip6_addr(c->host, port, (struct sockaddr_in6 *)&c->literal) == 0;
}

/* Not inside connector_start, whose caller does not have the Connector yet. */
static void begin(void *arg) {
    Connector *c = arg;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    c->lookup.data = c;
    if (!c->done) {
        fail(c);
    } else if (parse_literal(c)) {
        try_one(c, (struct sockaddr *)&c->literal);
    } else {
        c->is_looking_up = true;
        int failed = uv_getaddrinfo(loop_uv(c->loop), &c->lookup, on_lookup, c->host, c->port, &hints);
        if (failed) on_lookup(&c->lookup, failed, NULL);
    }
}

Connector *connector_start(Loop *loop, const char *host, const char *port, bool tcp_only, ConnectorDone *done, void *arg) {
    Connector *c = xcalloc(1, sizeof *c);
    c->loop = loop;
    c->host = xstrdup(host);
    c->port = xstrdup(port);
    c->tcp_only = tcp_only;
    c->done = done;
    c->arg = arg;
    c->begin_task = (LoopTask){.fn = begin, .arg = c};
    loop_post(loop, &c->begin_task);
    return c;
}

void connector_cancel(Connector *c) {
    c->done = NULL;
    if (c->is_looking_up) uv_cancel((uv_req_t *)&c->lookup);
    if (c->conn) conn_close(c->conn, NULL); /* on_connect comes with ECANCELED */
}
