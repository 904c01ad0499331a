/* grpc_server.c: connections, and the calls on them.

   All state is of the loop. A GrpcServerCall has a reference from its stream, until the stream is closed, and
   one from its handler, until the reply; the two end in any order. */
#include "net/grpc_server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/before_long.h"
#include "base/clock.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/conn.h"
#include "net/grpc_frame.h"
#include "net/grpc_status.h"
#include "net/listener.h"

enum { PREFACE_MS = 5000, CLOSE_MS = 1000 };

struct GrpcServer {
    GrpcTransport *transport;
    ServerOptions options;
    StrMap methods; /* path to Method */
    Listener *listener;
    List conns; /* of ServerConn */
    bool is_stopping;

    pthread_mutex_t mutex; /* guards conn_count */
    pthread_cond_t no_conns;
    int64_t conn_count;
};

typedef struct ServerConn {
    List link;
    GrpcServer *server;
    Conn *conn;
    List calls;        /* whose stream is open */
    LoopTimer preface; /* the peer must begin in time */
} ServerConn;

typedef struct GrpcServerCall {
    ServerCall base;
    List link;
    GrpcTransport *transport;
    ServerConn *conn;    /* valid while there is a stream */
    Http2Stream *stream; /* NULL: closed */
    const Method *method;
    char *path;
    int64_t timeout_ns; /* -1: none */
    bool is_post, is_grpc, is_answered;
    bool is_note; /* nobody waits for an answer */
    GrpcReader reader;
    LoopTimer deadline;
    LoopTask finish_task;
    Message reply;
    Error *err; /* NULL: reply */
} GrpcServerCall;

/* ---- Answering ---- */

#define CONTENT_TYPE ((Http2Header){STR("content-type"), STR("application/grpc")})

static void answer_error(GrpcServerCall *call, Str http_status, const Error *err) {
    GrpcTrailers trailers;
    Http2Header headers[8] = {{STR(":status"), http_status}, CONTENT_TYPE};
    size_t own = http2_stream_is_brief(call->stream) ? 0 : 2;
    grpc_trailers_init(&trailers, err);
    memcpy(headers + own, trailers.headers, trailers.count * sizeof *headers);
    http2_respond(conn_http2(call->conn->conn), call->stream, headers, own + trailers.count, NULL, NULL, 0);
    grpc_trailers_clear(&trailers);
}

static void answer_reply(GrpcServerCall *call) {
    const Http2Header headers[] = {{STR(":status"), STR("200")}, CONTENT_TYPE};
    const Http2Header trailer = {STR("grpc-status"), STR("0")};
    Loan *loan;
    Message body = grpc_frame_lend(conn_lending(call->conn->conn), &call->reply, &loan);
    if (loan) {
        call->transport->messages_lent++;
        http2_stream_keep(call->stream, loan_free, loan);
        http2_stream_hold(call->stream);
    }
    http2_respond(conn_http2(call->conn->conn), call->stream, headers, 2, &body, &trailer, 1);
}

/* Takes err; NULL: sends call->reply. The first answer counts. */
static void answer(GrpcServerCall *call, Str http_status, Error *err) {
    if (call->stream && !call->is_answered) {
        call->is_answered = true;
        loop_timer_stop(call->base.loop, &call->deadline);
        if (err)
            answer_error(call, http_status, err);
        else
            answer_reply(call);
        conn_flush_soon(call->conn->conn);
    }
    error_free(err);
}

static void fail(GrpcServerCall *call, Error *err) {
    answer(call, STR("200"), err);
}

static void finish_here(void *arg) {
    GrpcServerCall *call = arg;
    Error *err = call->err;
    call->err = NULL;
    fail(call, err);
    server_call_unref(&call->base);
}

static void call_finish(ServerCall *base, Message *reply, Error *err) {
    GrpcServerCall *call = (GrpcServerCall *)base;
    if (reply && reply->len > GRPC_MESSAGE_LIMIT) {
        err = error_new(CODE_RESOURCE_EXHAUSTED, "reply of %zu bytes is larger than the limit of %zu bytes", reply->len,
                        GRPC_MESSAGE_LIMIT);
        message_clear(reply);
    }
    if (!err) call->reply = message_move(reply);
    call->err = err;
    if (call->is_note) {
        server_call_unref(base);
        return;
    }
    call->finish_task = (LoopTask){.fn = finish_here, .arg = call};
    if (loop_is_here(base->loop))
        finish_here(call);
    else if (!loop_run(base->loop, &call->finish_task))
        server_call_unref(base); /* the transport is gone, and the stream with it */
}

/* ---- Calls ---- */

static void call_destroy(ServerCall *base) {
    GrpcServerCall *call = (GrpcServerCall *)base;
    GrpcTransport *transport = call->transport;
    server_call_clear(base);
    grpc_reader_clear(&call->reader);
    message_clear(&call->reply);
    error_free(call->err);
    free(call->path);
    free(call);
    transport->calls_in--;
    grpc_transport_unref(transport);
}

static Error *call_prepare(ServerCall *base) {
    GrpcServerCall *call = (GrpcServerCall *)base;
    if (call->reader.is_lent) before_long(); /* it is copied */
    return grpc_reader_take(&call->reader, call->transport->copiers, &base->request);
}

static const ServerCallTable call_table = {.prepare = call_prepare, .finish = call_finish, .destroy = call_destroy};

static void on_opened(void *arg, Http2Stream *stream) {
    ServerConn *conn = arg;
    GrpcTransport *transport = conn->server->transport;
    GrpcServerCall *call = xcalloc(1, sizeof *call);
    server_call_init(&call->base, &call_table, transport->loop, &transport->handlers);
    strncpy(call->base.peer, conn_peer(conn->conn), PEER_NAME_SIZE - 1);
    call->transport = transport;
    call->conn = conn;
    call->stream = stream;
    call->timeout_ns = -1;
    call->reader.limit = conn->server->options.max_message_bytes;
    call->reader.lending = lending_ref(conn_lending(conn->conn));
    list_add(&conn->calls, &call->link);
    refcount_inc(&transport->refs);
    transport->calls_in++;
    http2_stream_set_user(stream, call);
}

/* The stream is gone: who still works on the call is told. */
static void detach(GrpcServerCall *call) {
    call->stream = NULL;
    list_remove(&call->link);
    loop_timer_stop(call->base.loop, &call->deadline);
    if (!call->is_answered) server_call_cancel(&call->base);
    server_call_unref(&call->base);
}

static void on_closed(void *arg, Http2Stream *stream, uint32_t code) {
    (void)arg, (void)code;
    detach(http2_stream_user(stream));
}

static void on_deadline(void *arg) {
    GrpcServerCall *call = arg;
    fail(call, error_new(CODE_DEADLINE_EXCEEDED, "Deadline Exceeded"));
    server_call_cancel(&call->base);
}

static void on_header(void *arg, Http2Stream *stream, Str name, Str value) {
    GrpcServerCall *call = http2_stream_user(stream);
    ServerConn *conn = arg;
    if (str_is(name, ":path")) {
        call->method = strmap_get(&conn->server->methods, value);
        if (call->method) call->reader.align_at = call->method->align_at;
        if (!call->method && !call->path) call->path = str_dup(value);
    } else if (str_is(name, ":method")) {
        call->is_post = str_is(value, "POST");
    } else if (str_is(name, "content-type")) {
        call->is_grpc = str_starts(value, STR("application/grpc"));
    } else if (str_is(name, "grpc-timeout") && !grpc_timeout_parse(value, &call->timeout_ns)) {
        call->timeout_ns = -1;
    }
}

static void on_headers_end(void *arg, Http2Stream *stream) {
    (void)arg;
    GrpcServerCall *call = http2_stream_user(stream);
    if (call->is_answered || call->base.deadline_ns) return;
    if (!call->is_post) {
        answer(call, STR("405"), error_new(CODE_INTERNAL, "gRPC requests are POST"));
    } else if (!call->is_grpc) {
        answer(call, STR("415"), error_invalid("content-type is not application/grpc"));
    } else if (!call->method) {
        fail(call, error_unimplemented("method %s is not implemented", call->path ? call->path : "\"\""));
    } else if (call->timeout_ns >= 0) {
        call->base.deadline_ns = clock_mono_ns() + call->timeout_ns;
        loop_timer_start(call->base.loop, &call->deadline, call->base.deadline_ns, on_deadline, call);
    }
}

static void on_data(void *arg, Http2Stream *stream, Str bytes) {
    (void)arg;
    GrpcServerCall *call = http2_stream_user(stream);
    if (call->is_answered) return;
    Error *err = grpc_reader_feed(&call->reader, bytes);
    if (!err) return;
    fail(call, err);
    grpc_reader_clear(&call->reader);
}

static size_t on_room(void *arg, Http2Stream *stream, char **to) {
    (void)arg;
    GrpcServerCall *call = http2_stream_user(stream);
    return call->is_answered ? 0 : grpc_reader_room(&call->reader, to);
}

static void on_ended(void *arg, Http2Stream *stream) {
    ServerConn *conn = arg;
    GrpcServerCall *call = http2_stream_user(stream);
    if (call->is_answered) return;
    if (!grpc_reader_is_complete(&call->reader)) {
        fail(call, error_internal("the request ended before its message was complete"));
        return;
    }
    call->is_note = call->is_answered = http2_stream_is_note(stream);
    server_call_dispatch(&call->base, call->method, conn->server->options.arg, conn->server->options.pool);
}

/* ---- Connections ---- */

static void on_ready(void *arg) {
    ServerConn *conn = arg;
    loop_timer_stop(conn->server->transport->loop, &conn->preface);
}

static const Http2Events http2_events = {
    .opened = on_opened,
    .header = on_header,
    .headers_end = on_headers_end,
    .data = on_data,
    .room = on_room,
    .ended = on_ended,
    .closed = on_closed,
    .ready = on_ready,
};

static void preface_over(void *arg) {
    ServerConn *conn = arg;
    conn_close(conn->conn, error_new(CODE_UNAVAILABLE, "no HTTP/2 preface in %d ms", PREFACE_MS));
}

static void add_conns(GrpcServer *s, int64_t more) {
    s->transport->connections_in += more;
    pthread_mutex_lock(&s->mutex);
    s->conn_count += more;
    if (s->conn_count == 0) pthread_cond_broadcast(&s->no_conns);
    pthread_mutex_unlock(&s->mutex);
}

static void on_conn_closed(void *arg, const Error *why) {
    (void)why;
    ServerConn *conn = arg;
    GrpcServer *s = conn->server;
    for (List *link; (link = list_first(&conn->calls));) detach(LIST_ENTRY(link, GrpcServerCall, link));
    loop_timer_stop(s->transport->loop, &conn->preface);
    list_remove(&conn->link);
    free(conn);
    add_conns(s, -1);
}

static void on_accepted(void *arg, int fd) {
    GrpcServer *s = arg;
    Loop *loop = s->transport->loop;
    const GrpcOptions *options = &s->transport->options;
    Conn *conn = conn_new(loop);
    if (uv_tcp_open(conn_tcp(conn), fd) != 0) {
        close(fd);
        conn_close(conn, NULL);
        return;
    }
    ServerConn *c = xcalloc(1, sizeof *c);
    c->server = s;
    c->conn = conn;
    list_init(&c->calls);
    list_add(&s->conns, &c->link);
    add_conns(s, 1);
    loop_timer_start(loop, &c->preface, clock_mono_ns() + PREFACE_MS * 1000000LL, preface_over, c);
    conn_start(conn, http2_server_new(&http2_events, c), options->keepalive_ms, options->keepalive_timeout_ms,
               on_conn_closed, c);
}

/* ---- Life ---- */

static void start_here(void *arg) {
    GrpcServer *s = arg;
    listener_start(s->listener, s->transport->loop, on_accepted, s);
}

Error *grpc_server_new(GrpcTransport *t, Str address, const ServerOptions *options, GrpcServer **out,
                       char **bound_address) {
    Listener *listener = NULL;
    Error *err = listener_open(address, t->options.tcp_only, &listener, bound_address);
    if (err) return err;
    GrpcServer *s = xcalloc(1, sizeof *s);
    s->transport = t;
    s->options = *options;
    s->listener = listener;
    list_init(&s->conns);
    pthread_mutex_init(&s->mutex, NULL);
    cond_init(&s->no_conns);
    for (const Method *m = options->methods; m->path; m++) strmap_put(&s->methods, str_of(m->path), (void *)m);
    *out = s;
    loop_call(t->loop, start_here, s);
    return NULL;
}

static void refuse_here(void *arg) {
    GrpcServer *s = arg;
    if (s->is_stopping) return;
    s->is_stopping = true;
    listener_close(s->listener);
    s->listener = NULL;
    for (List *link = s->conns.next; link != &s->conns; link = link->next) {
        ServerConn *conn = LIST_ENTRY(link, ServerConn, link);
        http2_goaway(conn_http2(conn->conn), HTTP2_NO_ERROR);
        conn_flush_soon(conn->conn);
    }
}

static void cancel_here(void *arg) {
    GrpcServer *s = arg;
    for (List *link = s->conns.next; link != &s->conns; link = link->next) {
        List *calls = &LIST_ENTRY(link, ServerConn, link)->calls;
        for (List *at = calls->next, *next; at != calls; at = next) {
            GrpcServerCall *call = LIST_ENTRY(at, GrpcServerCall, link);
            next = at->next;
            if (call->is_answered) continue;
            fail(call, error_new(CODE_UNAVAILABLE, "the server is shutting down"));
            server_call_cancel(&call->base);
        }
    }
}

static void close_here(void *arg) {
    GrpcServer *s = arg;
    for (List *link = s->conns.next; link != &s->conns; link = link->next)
        conn_close(LIST_ENTRY(link, ServerConn, link)->conn, NULL);
}

static void wait_for_conns(GrpcServer *s, int64_t timeout_ms) {
    int64_t deadline = clock_mono_ns() + timeout_ms * 1000000;
    pthread_mutex_lock(&s->mutex);
    while (s->conn_count > 0 && cond_wait_until(&s->no_conns, &s->mutex, deadline)) continue;
    pthread_mutex_unlock(&s->mutex);
}

void grpc_server_stop(GrpcServer *s, int64_t grace_ms) {
    loop_call(s->transport->loop, refuse_here, s);
    wait_for_conns(s, grace_ms);
    loop_call(s->transport->loop, cancel_here, s);
    wait_for_conns(s, CLOSE_MS);
    loop_call(s->transport->loop, close_here, s);
}

void grpc_server_free(GrpcServer *s) {
    if (!s) return;
    strmap_clear(&s->methods);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->no_conns);
    free(s);
}
