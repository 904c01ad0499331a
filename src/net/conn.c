/* conn.c: reads into the session, writes what the session has to say with one writev per turn of the loop.

   A session that is done (both sides agreed to go away) shuts the socket down and waits a moment for the peer to close:
   closing with unread input would make the kernel throw away what the peer has not read yet. */
#include "net/conn.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/address.h"

_Static_assert(sizeof(uv_buf_t) == sizeof(struct iovec), "libuv's buffers are iovecs");

enum { FLUSH_BYTES = 2 << 20, LINGER_MS = 500, LOCAL_BUFFER_BYTES = 512 << 10 };

struct Conn {
    uv_tcp_t tcp;
    uv_os_fd_t fd;
    Loop *loop;
    Http2 *http2;
    Lending *lending; /* NULL: not a local socket */
    ConnClosed *closed;
    void *arg;
    char peer[ADDRESS_SIZE];
    int64_t last_read_ns;
    Error *why;
    LoopTask flush_task;
    bool is_flush_posted, is_writing, is_shut;
    Message out; /* being written */
    uv_write_t write;
    uv_buf_t *bufs;
    size_t buf_capacity;
    uv_shutdown_t shutdown;
    LoopTimer linger;
};

static void flush(void *arg);

Conn *conn_new(Loop *loop) {
    Conn *c = xcalloc(1, sizeof *c);
    c->loop = loop;
    uv_tcp_init(loop_uv(loop), &c->tcp);
    c->tcp.data = c;
    c->flush_task = (LoopTask){.fn = flush, .arg = c};
    return c;
}

uv_tcp_t *conn_tcp(Conn *c) {
    return &c->tcp;
}

void conn_set_peer(Conn *c, const char *peer) {
    strncpy(c->peer, peer, sizeof c->peer - 1);
}

Http2 *conn_http2(Conn *c) {
    return c->http2;
}

Lending *conn_lending(const Conn *c) {
    return c->lending;
}

const char *conn_peer(const Conn *c) {
    return c->peer;
}

int64_t conn_last_read_ns(const Conn *c) {
    return c->last_read_ns;
}

/* ---- Closing ---- */

static void conn_free(Conn *c) {
    lending_end(c->lending);
    http2_free(c->http2);
    message_clear(&c->out);
    error_free(c->why);
    free(c->bufs);
    free(c);
}

/* A posted flush still points here; it runs before the next turn ends. */
static void free_later(void *arg) {
    conn_free(arg);
}

static void on_handle_closed(uv_handle_t *handle) {
    Conn *c = handle->data;
    if (c->closed) c->closed(c->arg, c->why);
    c->closed = NULL;
    if (c->is_flush_posted)
        c->flush_task.fn = free_later;
    else
        conn_free(c);
}

void conn_close(Conn *c, Error *why) {
    if (uv_is_closing((uv_handle_t *)&c->tcp)) {
        error_free(why);
        return;
    }
    c->why = why;
    loop_timer_stop(c->loop, &c->linger);
    uv_close((uv_handle_t *)&c->tcp, on_handle_closed);
    loop_touch(c->loop);
}

static Error *broken(Conn *c, const char *what) {
    return error_new(CODE_UNAVAILABLE, "%s: %s", c->peer, what);
}

static void linger_over(void *arg) {
    conn_close(arg, broken(arg, "Socket closed"));
}

static void on_shutdown(uv_shutdown_t *request, int status) {
    if (status < 0 && status != UV_ECANCELED) linger_over(request->data);
}

static void shut(Conn *c) {
    c->is_shut = true;
    c->shutdown.data = c;
    loop_timer_start(c->loop, &c->linger, clock_mono_ns() + LINGER_MS * 1000000LL, linger_over, c);
    if (uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, on_shutdown) != 0) linger_over(c);
    loop_touch(c->loop);
}

/* ---- Writing ---- */

static void on_written(uv_write_t *request, int status) {
    Conn *c = request->data;
    message_clear(&c->out);
    c->is_writing = false;
    if (status == 0)
        conn_flush_soon(c);
    else if (status != UV_ECANCELED)
        conn_close(c, broken(c, strerror(-status)));
}

static void write_out(Conn *c) {
    c->bufs = vec_reserve(c->bufs, &c->buf_capacity, c->out.count, sizeof *c->bufs);
    for (size_t i = 0; i < c->out.count; i++)
        c->bufs[i] = uv_buf_init((char *)c->out.slices[i].data, (unsigned)c->out.slices[i].len);
    struct msghdr header = {.msg_iov = (struct iovec *)c->bufs,
                            .msg_iovlen = c->out.count < IOV_MAX ? c->out.count : IOV_MAX};
    ssize_t n = sendmsg(c->fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT); /* libuv's own write may raise SIGPIPE */
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        conn_close(c, broken(c, strerror(errno)));
        return;
    }
    size_t done = n > 0 ? (size_t)n : 0, at = 0;
    while (at < c->out.count && done >= c->bufs[at].len) done -= c->bufs[at++].len;
    if (at == c->out.count) {
        message_clear(&c->out);
        return;
    }
    c->bufs[at].base += done;
    c->bufs[at].len -= done;
    c->write.data = c;
    c->is_writing = true;
    uv_write(&c->write, (uv_stream_t *)&c->tcp, c->bufs + at, (unsigned)(c->out.count - at), on_written);
    loop_touch(c->loop);
}

static bool is_open(Conn *c) {
    return !uv_is_closing((uv_handle_t *)&c->tcp) && !c->is_shut;
}

static void flush(void *arg) {
    Conn *c = arg;
    c->is_flush_posted = false;
    while (is_open(c) && !c->is_writing) {
        Error *err = http2_take_output(c->http2, &c->out, FLUSH_BYTES);
        if (err) conn_close(c, err);
        if (err || c->out.len == 0) break;
        write_out(c);
    }
    if (is_open(c) && !c->is_writing && http2_is_done(c->http2)) shut(c);
}

void conn_flush_soon(Conn *c) {
    if (c->is_flush_posted || !is_open(c)) return;
    if (loop_is_here(c->loop))
        c->is_flush_posted = loop_post(c->loop, &c->flush_task);
    else
        flush(c);
}

/* ---- Reading ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
    (void)suggested;
    Conn *c = handle->data;
    char *to;
    size_t len;
    if (http2_input_place(c->http2, &to, &len)) {
        *buf = uv_buf_init(to, (unsigned)len);
        return;
    }
    *buf = loop_read_buffer(c->loop);
    if (len < buf->len) buf->len = len;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
    Conn *c = stream->data;
    if (n == 0) return;
    if (n < 0) {
        conn_close(c, broken(c, n == UV_EOF ? "Socket closed" : strerror((int)-n)));
        return;
    }
    c->last_read_ns = clock_mono_ns();
    Error *err = http2_feed(c->http2, (Str){buf->base, (size_t)n});
    if (err) {
        flush(c); /* the GOAWAY that says why */
        conn_close(c, error_wrap(err, "%s", c->peer));
    }
    conn_flush_soon(c);
}

static void set_options(Conn *c, int64_t idle_ms, int64_t timeout_ms) {
    int fd = c->fd, on = 1, idle_s = (int)((idle_ms + 999) / 1000), probes = 4, timeout = (int)(idle_ms + timeout_ms);
    int interval_s = (int)((timeout_ms + 3999) / 4000);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
}

/* TCP's buffers grow by themselves. */
static void set_local_options(Conn *c) {
    int size = LOCAL_BUFFER_BYTES;
    setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    c->lending = lending_new(c, c->loop, c->fd);
}

void conn_start(Conn *c, Http2 *http2, int64_t idle_ms, int64_t timeout_ms, ConnClosed *closed, void *arg) {
    struct sockaddr_storage name;
    int len = sizeof name;
    c->http2 = http2;
    c->closed = closed;
    c->arg = arg;
    c->last_read_ns = clock_mono_ns();
    uv_fileno((uv_handle_t *)&c->tcp, &c->fd);
    set_options(c, idle_ms, timeout_ms);
    bool is_known = uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&name, &len) == 0;
    if (is_known && name.ss_family != AF_UNIX)
        address_print((struct sockaddr *)&name, c->peer);
    else if (!*c->peer)
        strcpy(c->peer, is_known ? "local" : "?");
    if (is_known && name.ss_family == AF_UNIX) set_local_options(c);
    int failed = uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    if (failed) conn_close(c, broken(c, strerror(-failed)));
    conn_flush_soon(c);
}
