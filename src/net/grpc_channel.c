/* grpc_channel.c: connects when a call needs it, waits longer and longer after failures, and watches the connection.

        call               SETTINGS of the peer
   IDLE ----> CONNECTING -----------------------> READY
    ^  ^        |    ^                              |
    |  |  fails |    | time is over, and            | connection lost, or the peer goes away
    |  |        v    | a call came meanwhile        |
    |  +----- BACKOFF                               |
    |   no call came                                |
    +-----------------------------------------------+

   Fail-fast calls wait for the outcome of the first attempt; after a failure they fail at once with its reason, until
   an attempt succeeds or nobody has called for the length of a backoff. */
#include "net/grpc_channel.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/address.h"
#include "net/grpc_channel_internal.h"

enum {
    BACKOFF_FIRST_MS = 50,
    BACKOFF_MAX_MS = 1000,
    FOREIGN_KEEPALIVE_MS = 310000, /* gRPC's own servers hang up on clients that PING more often than every 5 minutes */
};

static void connect_now(GrpcChannel *c);

static Loop *loop_of(const GrpcChannel *c) {
    return c->transport->loop;
}

void grpc_channel_unhold(GrpcChannel *c) {
    if (!refcount_dec(&c->holds)) return;
    GrpcTransport *t = c->transport;
    pthread_mutex_lock(&t->mutex);
    list_remove(&c->link);
    pthread_mutex_unlock(&t->mutex);
    pthread_mutex_destroy(&c->mutex);
    error_free(c->last_error);
    free(c->base.address);
    free(c);
    grpc_transport_unref(t);
}

/* What other threads see. err NULL leaves the last reason. */
static void publish(GrpcChannel *c, bool is_connected, const Error *err) {
    pthread_mutex_lock(&c->mutex);
    c->is_connected = is_connected;
    if (err) {
        error_free(c->last_error);
        c->last_error = error_copy(err);
    }
    pthread_mutex_unlock(&c->mutex);
}

/* ---- Calls ---- */

void grpc_channel_start_call(GrpcChannel *c, GrpcCall *call) {
    c->is_wanted = true;
    if (c->state == CHANNEL_CLOSED) {
        grpc_call_finish(call, error_new(CODE_CANCELLED, "the channel to %s was closed", c->base.address));
        return;
    }
    if (c->state == CHANNEL_READY) {
        ClientConn *conn = c->conn;
        if (!grpc_call_send(call, conn)) grpc_conn_gone_away(conn);
        return;
    }
    if (c->failed && !call->wait_for_ready) {
        grpc_call_finish(call, error_copy(c->last_error));
        return;
    }
    list_add(&c->waiting, &call->link);
    if (c->state == CHANNEL_IDLE) connect_now(c);
}

static void fail_calls(List *calls, const Error *err, bool also_patient) {
    for (List *link = calls->next, *next; link != calls; link = next) {
        GrpcCall *call = LIST_ENTRY(link, GrpcCall, link);
        next = link->next;
        if (also_patient || !call->wait_for_ready) grpc_call_finish(call, error_copy(err));
    }
}

/* ---- Connecting ---- */

static void backoff_over(void *arg) {
    GrpcChannel *c = arg;
    c->state = CHANNEL_IDLE;
    if (c->is_wanted || !list_is_empty(&c->waiting))
        connect_now(c);
    else
        c->failed = false;
}

static void attempt_failed(GrpcChannel *c, Error *err) {
    c->state = CHANNEL_BACKOFF;
    c->failed = true;
    err->code = CODE_UNAVAILABLE;
    publish(c, false, err);
    loop_timer_start(loop_of(c), &c->timer, clock_mono_ns() + c->backoff_ms * 1000000, backoff_over, c);
    c->backoff_ms = c->backoff_ms * 8 / 5 < BACKOFF_MAX_MS ? c->backoff_ms * 8 / 5 : BACKOFF_MAX_MS;
    fail_calls(&c->waiting, err, false);
    error_free(err);
}

static void on_conn_closed(void *arg, const Error *why);

static void on_connected(void *arg, Error *err, Conn *conn) {
    GrpcChannel *c = arg;
    const GrpcOptions *options = &c->transport->options;
    c->connector = NULL;
    if (err) {
        attempt_failed(c, err);
    } else {
        ClientConn *client = xcalloc(1, sizeof *client);
        client->channel = c;
        client->conn = conn;
        list_init(&client->calls);
        list_add(&c->conns, &client->link);
        refcount_inc(&c->holds);
        c->transport->connections_out++;
        c->conn = client;
        conn_start(conn, http2_client_new(&grpc_call_events, client), options->keepalive_ms,
                   options->keepalive_timeout_ms, on_conn_closed, client);
    }
    grpc_channel_unhold(c);
}

static void connect_timed_out(void *arg) {
    GrpcChannel *c = arg;
    Error *err = error_new(CODE_UNAVAILABLE, "failed to connect to all addresses; last error: %s: no answer in %lld ms",
                           c->base.address, (long long)c->transport->options.connect_timeout_ms);
    if (c->connector) {
        connector_cancel(c->connector);
        c->connector = NULL;
        attempt_failed(c, err);
        grpc_channel_unhold(c);
    } else {
        conn_close(c->conn->conn, err); /* on_conn_closed goes on */
    }
}

static void connect_now(GrpcChannel *c) {
    char *host = NULL, *port = NULL;
    c->state = CHANNEL_CONNECTING;
    c->is_wanted = false;
    Error *err = address_split(str_of(c->base.address), &host, &port);
    if (err) {
        attempt_failed(c, err);
    } else {
        refcount_inc(&c->holds);
        c->connector = connector_start(loop_of(c), host, port, c->transport->options.tcp_only, on_connected, c);
        loop_timer_start(loop_of(c), &c->timer, clock_mono_ns() + c->transport->options.connect_timeout_ms * 1000000,
                         connect_timed_out, c);
    }
    free(host);
    free(port);
}

/* ---- A connection's life ---- */

void grpc_conn_ready(ClientConn *conn) {
    GrpcChannel *c = conn->channel;
    if (c->conn != conn || c->state != CHANNEL_CONNECTING) return;
    c->state = CHANNEL_READY;
    c->failed = false;
    c->backoff_ms = BACKOFF_FIRST_MS;
    loop_timer_stop(loop_of(c), &c->timer);
    publish(c, true, NULL);
    for (List *link; c->state == CHANNEL_READY && (link = list_first(&c->waiting));) {
        GrpcCall *call = LIST_ENTRY(link, GrpcCall, link);
        list_remove(link);
        grpc_channel_start_call(c, call);
    }
}

/* Its calls go on, new ones get a new connection. */
void grpc_conn_gone_away(ClientConn *conn) {
    GrpcChannel *c = conn->channel;
    http2_goaway(conn_http2(conn->conn), HTTP2_NO_ERROR);
    conn_flush_soon(conn->conn);
    if (c->conn != conn || c->state != CHANNEL_READY) return;
    c->conn = NULL;
    c->state = CHANNEL_IDLE;
    publish(c, false, NULL);
    if (!list_is_empty(&c->waiting)) connect_now(c);
}

static void on_conn_closed(void *arg, const Error *why) {
    ClientConn *conn = arg;
    GrpcChannel *c = conn->channel;
    Error *err = why ? error_copy(why) : error_new(CODE_UNAVAILABLE, "Socket closed");
    err->code = CODE_UNAVAILABLE;
    bool is_current = c->conn == conn;
    if (is_current) c->conn = NULL;
    if (is_current && c->state == CHANNEL_READY) {
        c->state = CHANNEL_IDLE;
        publish(c, false, err);
        if (!list_is_empty(&c->waiting)) connect_now(c);
    } else if (is_current && c->state == CHANNEL_CONNECTING) {
        attempt_failed(c, error_wrap(error_copy(err), "failed to connect to all addresses; last error"));
    }
    for (List *link; (link = list_first(&conn->calls));) {
        GrpcCall *call = LIST_ENTRY(link, GrpcCall, link);
        call->stream = NULL;
        grpc_call_finish(call, error_copy(err));
    }
    error_free(err);
    loop_timer_stop(loop_of(c), &conn->keepalive);
    list_remove(&conn->link);
    c->transport->connections_out--;
    free(conn);
    grpc_channel_unhold(c);
}

/* ---- Keepalive ---- */

static void keepalive_due(void *arg);

static void keepalive_at(ClientConn *conn, int64_t at_ns) {
    loop_timer_start(loop_of(conn->channel), &conn->keepalive, at_ns, keepalive_due, conn);
}

static int64_t keepalive_ns(ClientConn *conn) {
    int64_t ms = conn->channel->transport->options.keepalive_ms;
    if (!http2_peer_is_rill(conn_http2(conn->conn)) && ms < FOREIGN_KEEPALIVE_MS) ms = FOREIGN_KEEPALIVE_MS;
    return ms * 1000000;
}

static void keepalive_due(void *arg) {
    ClientConn *conn = arg;
    int64_t now = clock_mono_ns(), last = conn_last_read_ns(conn->conn);
    if (conn->ping_ns && last < conn->ping_ns) {
        conn_close(conn->conn, error_new(CODE_UNAVAILABLE, "%s: no answer to a PING in %lld ms", conn_peer(conn->conn),
                                         (long long)(now - conn->ping_ns) / 1000000));
        return;
    }
    conn->ping_ns = 0;
    if (list_is_empty(&conn->calls)) return;
    if (now - last < keepalive_ns(conn)) {
        keepalive_at(conn, last + keepalive_ns(conn));
        return;
    }
    conn->ping_ns = now;
    http2_ping(conn_http2(conn->conn), NULL);
    conn_flush_soon(conn->conn);
    keepalive_at(conn, now + conn->channel->transport->options.keepalive_timeout_ms * 1000000);
}

/* What kind of peer it is shows later; keepalive_due asks. */
void grpc_conn_watch(ClientConn *conn) {
    if (!conn->keepalive.place)
        keepalive_at(conn, clock_mono_ns() + conn->channel->transport->options.keepalive_ms * 1000000);
}

/* ---- Life ---- */

static void close_here(GrpcChannel *c) {
    if (c->state == CHANNEL_CLOSED) return;
    c->state = CHANNEL_CLOSED;
    loop_timer_stop(loop_of(c), &c->timer);
    if (c->connector) {
        connector_cancel(c->connector);
        c->connector = NULL;
        grpc_channel_unhold(c);
    }
    Error *err = error_new(CODE_CANCELLED, "the channel to %s was closed", c->base.address);
    fail_calls(&c->waiting, err, true);
    for (List *link = c->conns.next; link != &c->conns; link = link->next) {
        ClientConn *conn = LIST_ENTRY(link, ClientConn, link);
        fail_calls(&conn->calls, err, true);
        conn_close(conn->conn, error_copy(err));
    }
    publish(c, false, NULL);
    error_free(err);
}

static void close_task(void *arg) {
    close_here(arg);
    grpc_channel_unhold(arg);
}

static void channel_close(Channel *base) {
    GrpcChannel *c = (GrpcChannel *)base;
    c->close_task = (LoopTask){.fn = close_task, .arg = c};
    if (!loop_post(loop_of(c), &c->close_task)) grpc_channel_unhold(c);
}

void grpc_channels_close(GrpcTransport *t) {
    for (;;) {
        pthread_mutex_lock(&t->mutex);
        List *link = list_first(&t->channels);
        GrpcChannel *c = link ? LIST_ENTRY(link, GrpcChannel, link) : NULL;
        if (c) {
            list_remove(link);
            refcount_inc(&c->holds);
        }
        pthread_mutex_unlock(&t->mutex);
        if (!c) break;
        close_here(c);
        grpc_channel_unhold(c);
    }
}

static bool is_connected(Channel *base) {
    GrpcChannel *c = (GrpcChannel *)base;
    pthread_mutex_lock(&c->mutex);
    bool connected = c->is_connected;
    pthread_mutex_unlock(&c->mutex);
    return connected;
}

static char *last_error(Channel *base) {
    GrpcChannel *c = (GrpcChannel *)base;
    pthread_mutex_lock(&c->mutex);
    char *text = c->last_error ? xstrdup(c->last_error->message) : NULL;
    pthread_mutex_unlock(&c->mutex);
    return text;
}

/* Where handlers run, a thread that waits might hold what they need. */
static Loop *loop_to_drive(Channel *base) {
    GrpcTransport *t = ((GrpcChannel *)base)->transport;
    pthread_mutex_lock(&t->mutex);
    bool is_serving = t->is_serving;
    pthread_mutex_unlock(&t->mutex);
    return is_serving ? NULL : t->loop;
}

static const ChannelTable channel_table = {
    .loop = loop_to_drive,
    .call = grpc_call_new,
    .is_connected = is_connected,
    .last_error = last_error,
    .close = channel_close,
};

Channel *grpc_channel_new(GrpcTransport *t, Str address) {
    GrpcChannel *c = xcalloc(1, sizeof *c);
    c->base.table = &channel_table;
    c->base.address = str_dup(address);
    refcount_init(&c->base.users);
    refcount_init(&c->holds);
    c->transport = t;
    c->backoff_ms = BACKOFF_FIRST_MS;
    list_init(&c->conns);
    list_init(&c->waiting);
    pthread_mutex_init(&c->mutex, NULL);
    refcount_inc(&t->refs);
    pthread_mutex_lock(&t->mutex);
    list_add(&t->channels, &c->link);
    pthread_mutex_unlock(&t->mutex);
    return &c->base;
}
