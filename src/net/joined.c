/* joined.c: Transport of a task that shares its process with others: calls to addresses served in this process go
   through the loopback network, all others through sockets. It serves on both.

   Which way a call goes is decided when it starts, so a channel may be made before its peer serves. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/transport_internal.h"

typedef struct JoinedTransport {
    Transport base;
    Transport *near, *far;
    char *own_address;
} JoinedTransport;

typedef struct JoinedChannel {
    Channel base;
    Channel *near, *far; /* to the same address */
} JoinedChannel;

/* ---- Channel: its calls are those of one of the two ---- */

static Channel *way_of(Channel *base) {
    JoinedChannel *c = (JoinedChannel *)base;
    return channel_is_connected(c->near) ? c->near : c->far;
}

static Call *call(Channel *c, const char *path, Message *request, CallOptions options, CallDone *done, void *arg) {
    return channel_call(way_of(c), path, request, options, done, arg);
}

static bool is_connected(Channel *c) {
    return channel_is_connected(way_of(c));
}

static char *last_error(Channel *c) {
    return channel_last_error(way_of(c));
}

static void channel_close(Channel *base) {
    JoinedChannel *c = (JoinedChannel *)base;
    channel_unref(c->near);
    channel_unref(c->far);
    free(c->base.address);
    free(c);
}

static const ChannelTable channel_table = {
    .call = call,
    .is_connected = is_connected,
    .last_error = last_error,
    .close = channel_close,
};

static Channel *channel_new(Transport *base, Str address) {
    JoinedTransport *t = (JoinedTransport *)base;
    JoinedChannel *c = xcalloc(1, sizeof *c);
    c->base.table = &channel_table;
    c->base.address = str_dup(address);
    refcount_init(&c->base.users);
    c->near = transport_channel(t->near, address);
    c->far = transport_channel(t->far, address);
    return &c->base;
}

/* ---- Serving ---- */

/* Others of this process call the host that the cluster knows; the port is the one in use. */
static char *near_address(const JoinedTransport *t, const char *bound) {
    const char *colon = strrchr(t->own_address, ':');
    int host_len = colon ? (int)(colon - t->own_address) : (int)strlen(t->own_address);
    return xasprintf("%.*s%s", host_len, t->own_address, strrchr(bound, ':'));
}

static Error *serve(Transport *base, Str address, const ServerOptions *options, char **bound_address) {
    JoinedTransport *t = (JoinedTransport *)base;
    char *bound = NULL, *name = NULL;
    Error *err = transport_serve(t->far, address, options, &bound);
    if (err) return err;
    char *wanted = near_address(t, bound);
    err = transport_serve(t->near, str_of(wanted), options, &name);
    free(wanted);
    free(name);
    if (!err) {
        *bound_address = bound;
        return NULL;
    }
    transport_stop_serving(t->far, 0);
    free(bound);
    return err;
}

static void stop_serving(Transport *base, int64_t grace_ms) {
    JoinedTransport *t = (JoinedTransport *)base;
    int64_t deadline = clock_mono_ns() + grace_ms * 1000000;
    transport_stop_serving(t->far, grace_ms);
    int64_t left_ms = (deadline - clock_mono_ns()) / 1000000;
    transport_stop_serving(t->near, left_ms > 0 ? left_ms : 0);
}

/* ---- Transport ---- */

static TransportStats stats(Transport *base) {
    JoinedTransport *t = (JoinedTransport *)base;
    TransportStats sum = transport_stats(t->far), near = transport_stats(t->near);
    sum.calls_in += near.calls_in;
    sum.calls_out += near.calls_out;
    return sum;
}

static void joined_close(Transport *base) {
    JoinedTransport *t = (JoinedTransport *)base;
    transport_close(t->near);
    transport_close(t->far);
}

static void joined_free(Transport *base) {
    JoinedTransport *t = (JoinedTransport *)base;
    transport_free(t->near);
    transport_free(t->far);
    free(t->own_address);
    free(t);
}

static const TransportTable transport_table = {
    .channel = channel_new,
    .serve = serve,
    .stop_serving = stop_serving,
    .stats = stats,
    .close = joined_close,
    .free = joined_free,
};

Error *transport_joined_new(LoopbackNetwork *n, const GrpcOptions *options, Str own_address, Transport **out) {
    Transport *far = NULL;
    Error *err = transport_grpc_new(options, &far);
    if (err) return err;
    JoinedTransport *t = xcalloc(1, sizeof *t);
    t->base.table = &transport_table;
    t->near = transport_loopback_new(n);
    t->far = far;
    t->own_address = str_dup(own_address);
    *out = &t->base;
    return NULL;
}
