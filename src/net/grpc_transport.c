/* grpc_transport.c: Transport over sockets: one loop for the server side and all channels. */
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/grpc_channel.h"
#include "net/grpc_internal.h"
#include "net/grpc_server.h"

enum { DEFAULT_MS = 20000, COPIERS = 2 };

static GrpcTransport *self(Transport *t) {
    return (GrpcTransport *)t;
}

static Channel *channel(Transport *t, Str address) {
    return grpc_channel_new(self(t), address);
}

static Error *serve(Transport *base, Str address, const ServerOptions *options, char **bound_address) {
    GrpcTransport *t = self(base);
    GrpcServer *server = NULL;
    pthread_mutex_lock(&t->mutex);
    bool was_serving = t->is_serving;
    t->is_serving = true;
    pthread_mutex_unlock(&t->mutex);
    if (was_serving) return error_new(CODE_FAILED_PRECONDITION, "this transport already serves");
    Error *err = grpc_server_new(t, address, options, &server, bound_address);
    pthread_mutex_lock(&t->mutex);
    t->is_serving = !err;
    t->server = server;
    pthread_mutex_unlock(&t->mutex);
    return err;
}

static void stop_serving(Transport *base, int64_t grace_ms) {
    GrpcTransport *t = self(base);
    pthread_mutex_lock(&t->mutex);
    GrpcServer *server = t->server;
    pthread_mutex_unlock(&t->mutex);
    if (server) grpc_server_stop(server, grace_ms);
}

static TransportStats stats(Transport *base) {
    GrpcTransport *t = self(base);
    return (TransportStats){t->connections_in, t->connections_out, t->calls_in, t->calls_out, t->messages_lent};
}

void grpc_transport_unref(GrpcTransport *t) {
    if (!refcount_dec(&t->refs)) return;
    loop_free(t->loop);
    threadpool_free(t->copiers);
    grpc_server_free(t->server);
    handler_count_clear(&t->handlers);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

static void close_channels(void *arg) {
    grpc_channels_close(arg);
}

static void close_transport(Transport *base) {
    GrpcTransport *t = self(base);
    if (t->is_closed) return;
    t->is_closed = true;
    stop_serving(base, 0);
    loop_call(t->loop, close_channels, t);
    handler_count_wait(&t->handlers);
    loop_stop(t->loop);
}

static void free_transport(Transport *base) {
    grpc_transport_unref(self(base));
}

static const TransportTable transport_table = {
    .channel = channel,
    .serve = serve,
    .stop_serving = stop_serving,
    .stats = stats,
    .close = close_transport,
    .free = free_transport,
};

/* One that reads, and one for every core that may be busy with what was read. */
static int thread_count(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 2 : cores < LOOP_MAX_THREADS ? (int)cores + 1 : LOOP_MAX_THREADS;
}

Error *transport_grpc_new(const GrpcOptions *options, Transport **out) {
    GrpcTransport *t = xcalloc(1, sizeof *t);
    Error *err = loop_new("rill-net", thread_count(), &t->loop);
    if (err) {
        free(t);
        return err;
    }
    t->base.table = &transport_table;
    refcount_init(&t->refs);
    t->copiers = threadpool_new("rill-copy", COPIERS);
    if (options) t->options = *options;
    if (!t->options.keepalive_ms) t->options.keepalive_ms = DEFAULT_MS;
    if (!t->options.keepalive_timeout_ms) t->options.keepalive_timeout_ms = DEFAULT_MS;
    if (!t->options.connect_timeout_ms) t->options.connect_timeout_ms = DEFAULT_MS;
    handler_count_init(&t->handlers);
    pthread_mutex_init(&t->mutex, NULL);
    list_init(&t->channels);
    *out = &t->base;
    return NULL;
}
