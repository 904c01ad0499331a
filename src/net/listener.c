/* listener.c: bind, listen, accept.

   When the process is out of file descriptors the connections wait in the kernel's queue: accepting pauses and is tried
   again, the listener itself stays. */
#include "net/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "net/address.h"
#include "net/local_socket.h"

enum { MAX_ADDRESSES = 8, MAX_SOCKETS = 2 * MAX_ADDRESSES, BACKLOG = 1024, PAUSE_MS = 100 };

typedef struct ListenSocket {
    uv_poll_t poll;
    int fd;
    bool is_local;
    Listener *listener;
} ListenSocket;

struct Listener {
    Loop *loop; /* NULL: not started */
    ListenerAccepted *accepted;
    void *arg;
    ListenSocket sockets[MAX_SOCKETS];
    int count, open;
    bool is_full; /* since the last connection */
    LoopTimer pause;
};

/* ---- Accepting ---- */

static void on_readable(uv_poll_t *poll, int status, int events);

static void resume(void *arg) {
    Listener *l = arg;
    for (int i = 0; i < l->count; i++) uv_poll_start(&l->sockets[i].poll, UV_READABLE, on_readable);
}

static void pause_accepting(Listener *l, int error) {
    if (!l->is_full) log_warn("cannot accept connections for now: %s", strerror(error));
    l->is_full = true;
    for (int i = 0; i < l->count; i++) uv_poll_stop(&l->sockets[i].poll);
    loop_timer_start(l->loop, &l->pause, clock_mono_ns() + PAUSE_MS * 1000000LL, resume, l);
}

static void on_readable(uv_poll_t *poll, int status, int events) {
    (void)status, (void)events;
    ListenSocket *s = poll->data;
    for (;;) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0 && s->is_local && !local_socket_is_own(fd)) {
            close(fd);
        } else if (fd >= 0) {
            s->listener->is_full = false;
            s->listener->accepted(s->listener->arg, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_accepting(s->listener, errno);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return; /* EAGAIN, or an error of a connection that is already gone */
        }
    }
}

void listener_start(Listener *l, Loop *loop, ListenerAccepted *accepted, void *arg) {
    l->loop = loop;
    l->accepted = accepted;
    l->arg = arg;
    for (int i = 0; i < l->count; i++) {
        ListenSocket *s = &l->sockets[i];
        s->listener = l;
        uv_poll_init(loop_uv(loop), &s->poll, s->fd);
        s->poll.data = s;
        l->open++;
    }
    resume(l);
}

static void on_closed(uv_handle_t *handle) {
    ListenSocket *s = handle->data;
    if (--s->listener->open == 0) free(s->listener);
}

void listener_close(Listener *l) {
    if (!l) return;
    if (l->loop) loop_timer_stop(l->loop, &l->pause);
    for (int i = 0; i < l->count; i++) {
        if (l->loop) uv_close((uv_handle_t *)&l->sockets[i].poll, on_closed);
        close(l->sockets[i].fd);
    }
    if (!l->loop) free(l);
}

/* ---- Binding ---- */

static int bind_one(const struct addrinfo *a, int port) {
    struct sockaddr_storage name;
    int on = 1;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    memcpy(&name, a->ai_addr, a->ai_addrlen);
    address_set_port((struct sockaddr *)&name, port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) { /* "[::]" takes IPv4 as well, an address of its own does not */
        int only = !IN6_IS_ADDR_UNSPECIFIED(&((struct sockaddr_in6 *)&name)->sin6_addr);
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    }
    if (bind(fd, (struct sockaddr *)&name, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Beside those bound so far; one that cannot be had is left out. */
static void add_local_sockets(Listener *l) {
    for (int i = 0, bound = l->count; i < bound; i++) {
        struct sockaddr_storage name;
        socklen_t len = sizeof name;
        int fd = getsockname(l->sockets[i].fd, (struct sockaddr *)&name, &len) == 0
                     ? local_socket_listen((struct sockaddr *)&name, BACKLOG)
                     : -1;
        if (fd >= 0) l->sockets[l->count++] = (ListenSocket){.fd = fd, .is_local = true};
    }
}

static int bound_port(int fd) {
    struct sockaddr_storage name;
    socklen_t len = sizeof name;
    return getsockname(fd, (struct sockaddr *)&name, &len) == 0 ? address_port((struct sockaddr *)&name) : 0;
}

/* The first address that can be bound decides the port; one that cannot is left out. */
static Error *bind_all(Listener *l, const struct addrinfo *addresses, int *port) {
    int error = 0;
    *port = address_port(addresses->ai_addr);
    for (const struct addrinfo *a = addresses; a && l->count < MAX_ADDRESSES; a = a->ai_next) {
        int fd = bind_one(a, *port);
        if (fd < 0) {
            error = errno;
            continue;
        }
        *port = bound_port(fd);
        l->sockets[l->count++].fd = fd;
    }
    return l->count ? NULL : error_new(CODE_UNAVAILABLE, "cannot listen: %s", strerror(error));
}

Error *listener_open(Str address, bool tcp_only, Listener **out, char **bound_address) {
    char *host = NULL, *port_text = NULL;
    struct addrinfo *addresses = NULL;
    int port;
    Listener *l = xcalloc(1, sizeof *l);

    Error *err = address_split(address, &host, &port_text);
    if (err) goto out;
    err = address_resolve(host, port_text, &addresses);
    if (err) goto out;
    err = bind_all(l, addresses, &port);
    if (err) goto out;
    if (!tcp_only) add_local_sockets(l);

    *bound_address = xasprintf(strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
    *out = l;
    l = NULL;
out:
    listener_close(l);
    if (addresses) freeaddrinfo(addresses);
    free(host);
    free(port_text);
    return error_wrap(err, "%.*s", STR_ARG(address));
}
