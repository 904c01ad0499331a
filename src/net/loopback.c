/* loopback.c: Transport inside one process. Messages pass by reference.

   One loop thread does everything for a network, so nothing here needs a lock but what other threads look at. A
   LoopbackCall is both ends of a call; the client end is done when its callback ran, the server end when the handler
   has replied, in any order. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/address.h"
#include "net/grpc_frame.h"
#include "net/transport_internal.h"

enum { FIRST_PORT = 40000 };

struct LoopbackNetwork {
    Loop *loop;
    RefCount refs; /* the user, transports, channels, calls */
    List waiting;  /* calls for an address that nobody serves yet; of the loop's thread */
    _Atomic int next_port;
    pthread_mutex_t mutex; /* guards servers, which only the loop's thread changes */
    StrMap servers;        /* address to LoopbackTransport */
};

typedef struct LoopbackTransport {
    Transport base;
    RefCount refs; /* the user, channels, calls from here, calls to here */
    LoopbackNetwork *network;
    HandlerCount handlers;
    _Atomic int64_t calls_in, calls_out;
    List calls_from, calls_to; /* of the loop's thread, as all below */
    char *address;             /* NULL: does not serve */
    bool is_refusing, is_closed;
    ServerOptions options;
    StrMap methods;

    pthread_mutex_t mutex; /* guards served_calls */
    pthread_cond_t no_calls;
    int64_t served_calls;
} LoopbackTransport;

typedef struct LoopbackChannel {
    Channel base;
    LoopbackTransport *transport;
    RefCount holds; /* the users together, calls */
    bool is_closed; /* of the loop's thread */
    LoopTask close_task;
} LoopbackChannel;

typedef struct LoopbackCall {
    Call base;
    ServerCall server_end; /* its references are those of the whole */
    LoopbackChannel *channel;
    LoopbackTransport *server; /* NULL: none yet */
    List from_link;            /* in the client's calls_from, until done */
    List to_link;              /* in the server's calls_to or the network's waiting, until done */
    char *path;
    bool wait_for_ready, is_done;
    CallDone *done;
    void *arg;
    LoopTimer deadline;
    LoopTask start_task, cancel_task, finish_task;
    _Atomic bool is_cancel_posted;
    Message reply;
    Error *err;
} LoopbackCall;

static void network_unref(LoopbackNetwork *n) {
    if (!refcount_dec(&n->refs)) return;
    loop_free(n->loop);
    strmap_clear(&n->servers);
    pthread_mutex_destroy(&n->mutex);
    free(n);
}

static LoopbackTransport *find_server(LoopbackNetwork *n, const char *address) {
    pthread_mutex_lock(&n->mutex);
    LoopbackTransport *t = strmap_get(&n->servers, str_of(address));
    pthread_mutex_unlock(&n->mutex);
    return t;
}

static void transport_unref(LoopbackTransport *t) {
    if (!refcount_dec(&t->refs)) return;
    LoopbackNetwork *n = t->network;
    handler_count_clear(&t->handlers);
    strmap_clear(&t->methods);
    pthread_mutex_destroy(&t->mutex);
    pthread_cond_destroy(&t->no_calls);
    free(t->address);
    free(t);
    network_unref(n);
}

static void channel_unhold(LoopbackChannel *c) {
    if (!refcount_dec(&c->holds)) return;
    LoopbackTransport *t = c->transport;
    free(c->base.address);
    free(c);
    transport_unref(t);
}

static Loop *loop_of(const LoopbackCall *call) {
    return call->channel->transport->network->loop;
}

/* ---- Call: the end ---- */

static LoopbackCall *call_of(ServerCall *server_end) {
    return LIST_ENTRY(server_end, LoopbackCall, server_end);
}

static void call_destroy(ServerCall *server_end) {
    LoopbackCall *call = call_of(server_end);
    server_call_clear(server_end);
    message_clear(&call->reply);
    error_free(call->err);
    if (call->server) {
        call->server->calls_in--;
        transport_unref(call->server);
    }
    channel_unhold(call->channel);
    free(call->path);
    free(call);
}

static void add_served(LoopbackTransport *t, int64_t more) {
    pthread_mutex_lock(&t->mutex);
    t->served_calls += more;
    if (t->served_calls == 0) pthread_cond_broadcast(&t->no_calls);
    pthread_mutex_unlock(&t->mutex);
}

/* Takes err; NULL: with reply. */
static void finish(LoopbackCall *call, Error *err, Message *reply) {
    if (call->is_done) {
        error_free(err);
        return;
    }
    call->is_done = true;
    list_remove(&call->from_link);
    list_remove(&call->to_link);
    loop_timer_stop(loop_of(call), &call->deadline);
    if (call->server) add_served(call->server, -1);
    call->channel->transport->calls_out--;
    call->done(call->arg, err, err ? NULL : reply);
    server_call_unref(&call->server_end);
}

/* The caller gets err, the handler is told to stop. */
static void give_up(LoopbackCall *call, Error *err) {
    if (call->is_done) {
        error_free(err);
        return;
    }
    server_call_ref(&call->server_end);
    finish(call, err, NULL);
    server_call_cancel(&call->server_end);
    server_call_unref(&call->server_end);
}

static void on_deadline(void *arg) {
    give_up(arg, error_new(CODE_DEADLINE_EXCEEDED, "Deadline Exceeded"));
}

static void finish_here(void *arg) {
    LoopbackCall *call = arg;
    Error *err = call->err;
    call->err = NULL;
    finish(call, err, &call->reply);
    server_call_unref(&call->server_end);
}

static void server_end_finish(ServerCall *server_end, Message *reply, Error *err) {
    LoopbackCall *call = call_of(server_end);
    if (reply && reply->len > GRPC_MESSAGE_LIMIT) {
        err = error_new(CODE_RESOURCE_EXHAUSTED, "reply of %zu bytes is larger than the limit of %zu bytes", reply->len,
                        GRPC_MESSAGE_LIMIT);
        message_clear(reply);
    }
    if (!err) call->reply = message_move(reply);
    call->err = err;
    call->finish_task = (LoopTask){.fn = finish_here, .arg = call};
    if (!loop_post(server_end->loop, &call->finish_task)) server_call_unref(server_end);
}

static const ServerCallTable server_end_table = {.finish = server_end_finish, .destroy = call_destroy};

static void call_unref_user(Call *base) {
    server_call_unref(&((LoopbackCall *)base)->server_end);
}

static void cancel_here(void *arg) {
    LoopbackCall *call = arg;
    give_up(call, error_new(CODE_CANCELLED, "CANCELLED"));
    server_call_unref(&call->server_end);
}

static void call_cancel_user(Call *base) {
    LoopbackCall *call = (LoopbackCall *)base;
    if (atomic_exchange(&call->is_cancel_posted, true)) return;
    server_call_ref(&call->server_end);
    call->cancel_task = (LoopTask){.fn = cancel_here, .arg = call};
    if (!loop_post(loop_of(call), &call->cancel_task)) server_call_unref(&call->server_end);
}

static const CallTable call_table = {.cancel = call_cancel_user, .unref = call_unref_user};

/* ---- Call: the beginning ---- */

static void deliver(LoopbackCall *call, LoopbackTransport *server) {
    size_t limit = server->options.max_message_bytes ? server->options.max_message_bytes : GRPC_MESSAGE_LIMIT;
    const Method *method = strmap_get(&server->methods, str_of(call->path));
    list_remove(&call->to_link);
    list_add(&server->calls_to, &call->to_link);
    refcount_inc(&server->refs);
    call->server = server;
    call->server_end.handlers = &server->handlers;
    server->calls_in++;
    add_served(server, 1);
    if (!method)
        finish(call, error_unimplemented("method %s is not implemented", call->path), NULL);
    else if (call->server_end.request.len > limit)
        finish(call,
               error_new(CODE_RESOURCE_EXHAUSTED, "message of %zu bytes is larger than the limit of %zu bytes",
                         call->server_end.request.len, limit),
               NULL);
    else
        server_call_dispatch(&call->server_end, method, server->options.arg, server->options.pool);
}

static void start_here(void *arg) {
    LoopbackCall *call = arg;
    LoopbackChannel *c = call->channel;
    LoopbackNetwork *n = c->transport->network;
    if (c->is_closed || c->transport->is_closed) {
        finish(call, error_new(CODE_CANCELLED, "the channel to %s was closed", c->base.address), NULL);
        return;
    }
    list_add(&c->transport->calls_from, &call->from_link);
    if (call->server_end.deadline_ns)
        loop_timer_start(n->loop, &call->deadline, call->server_end.deadline_ns, on_deadline, call);
    LoopbackTransport *server = find_server(n, c->base.address);
    if (server)
        deliver(call, server);
    else if (call->wait_for_ready)
        list_add(&n->waiting, &call->to_link);
    else
        finish(call,
               error_new(CODE_UNAVAILABLE, "failed to connect to all addresses; last error: %s: nobody serves here",
                         c->base.address),
               NULL);
}

static Call *channel_start_call(Channel *base, const char *path, Message *request, CallOptions options, CallDone *done,
                                void *arg) {
    LoopbackChannel *c = (LoopbackChannel *)base;
    LoopbackCall *call = xcalloc(1, sizeof *call);
    call->base.table = &call_table;
    server_call_init(&call->server_end, &server_end_table, c->transport->network->loop, NULL);
    server_call_ref(&call->server_end); /* the user's, besides the one until done */
    strcpy(call->server_end.peer, "loopback");
    if (options.timeout_ms > 0) call->server_end.deadline_ns = clock_mono_ns() + options.timeout_ms * 1000000;
    call->server_end.request = message_move(request);
    call->channel = c;
    refcount_inc(&c->holds);
    call->path = xstrdup(path);
    call->wait_for_ready = options.wait_for_ready;
    call->done = done;
    call->arg = arg;
    list_init(&call->from_link);
    list_init(&call->to_link);
    c->transport->calls_out++;
    call->start_task = (LoopTask){.fn = start_here, .arg = call};
    if (!loop_post(loop_of(call), &call->start_task))
        finish(call, error_new(CODE_CANCELLED, "the transport was freed"), NULL);
    return &call->base;
}

/* ---- Channel ---- */

static bool channel_is_served(Channel *base) {
    return find_server(((LoopbackChannel *)base)->transport->network, base->address) != NULL;
}

static char *channel_why_not(Channel *base) {
    return channel_is_served(base) ? NULL : xasprintf("%s: nobody serves here", base->address);
}

static void channel_close_here(void *arg) {
    LoopbackChannel *c = arg;
    c->is_closed = true;
    List *calls = &c->transport->calls_from;
    for (List *link = calls->next, *next; link != calls; link = next) {
        LoopbackCall *call = LIST_ENTRY(link, LoopbackCall, from_link);
        next = link->next;
        if (call->channel == c)
            give_up(call, error_new(CODE_CANCELLED, "the channel to %s was closed", c->base.address));
    }
    channel_unhold(c);
}

static void channel_close(Channel *base) {
    LoopbackChannel *c = (LoopbackChannel *)base;
    c->close_task = (LoopTask){.fn = channel_close_here, .arg = c};
    if (!loop_post(c->transport->network->loop, &c->close_task)) channel_unhold(c);
}

static const ChannelTable channel_table = {
    .call = channel_start_call,
    .is_connected = channel_is_served,
    .last_error = channel_why_not,
    .close = channel_close,
};

static Channel *channel_new(Transport *t, Str address) {
    LoopbackChannel *c = xcalloc(1, sizeof *c);
    c->base.table = &channel_table;
    c->base.address = str_dup(address);
    refcount_init(&c->base.users);
    refcount_init(&c->holds);
    c->transport = (LoopbackTransport *)t;
    refcount_inc(&c->transport->refs);
    return &c->base;
}

/* ---- Serving ---- */

typedef struct Serve {
    LoopbackTransport *transport;
    char *address;
    const ServerOptions *options;
    Error *err;
} Serve;

static void serve_here(void *arg) {
    Serve *s = arg;
    LoopbackTransport *t = s->transport;
    LoopbackNetwork *n = t->network;
    if (t->address) {
        s->err = error_new(CODE_FAILED_PRECONDITION, "this transport already serves");
        return;
    }
    if (find_server(n, s->address)) {
        s->err = error_new(CODE_UNAVAILABLE, "%s: cannot listen: Address already in use", s->address);
        return;
    }
    t->address = xstrdup(s->address);
    t->options = *s->options;
    for (const Method *m = t->options.methods; m->path; m++) strmap_put(&t->methods, str_of(m->path), (void *)m);
    pthread_mutex_lock(&n->mutex);
    strmap_put(&n->servers, str_of(t->address), t);
    pthread_mutex_unlock(&n->mutex);
    for (List *link = n->waiting.next, *next; link != &n->waiting; link = next) {
        LoopbackCall *call = LIST_ENTRY(link, LoopbackCall, to_link);
        next = link->next;
        if (strcmp(call->channel->base.address, t->address) == 0) deliver(call, t);
    }
}

static Error *serve(Transport *base, Str address, const ServerOptions *options, char **bound_address) {
    LoopbackTransport *t = (LoopbackTransport *)base;
    char *host = NULL, *port = NULL;
    Error *err = address_split(address, &host, &port);
    if (err) return err;
    int number = atoi(port), host_len = (int)(address.len - strlen(port) - 1); /* with the brackets of an IPv6 host */
    Serve s = {t, xasprintf("%.*s:%d", host_len, address.ptr, number ? number : t->network->next_port++), options, NULL};
    loop_call(t->network->loop, serve_here, &s);
    if (s.err)
        free(s.address);
    else
        *bound_address = s.address;
    free(host);
    free(port);
    return s.err;
}

static void refuse_here(void *arg) {
    LoopbackTransport *t = arg;
    if (!t->address || t->is_refusing) return;
    t->is_refusing = true;
    pthread_mutex_lock(&t->network->mutex);
    strmap_remove(&t->network->servers, str_of(t->address));
    pthread_mutex_unlock(&t->network->mutex);
}

static void cancel_served_here(void *arg) {
    LoopbackTransport *t = arg;
    for (List *link; (link = list_first(&t->calls_to));)
        give_up(LIST_ENTRY(link, LoopbackCall, to_link),
                error_new(CODE_UNAVAILABLE, "%s: the server is shutting down", t->address));
}

static void stop_serving(Transport *base, int64_t grace_ms) {
    LoopbackTransport *t = (LoopbackTransport *)base;
    int64_t deadline = clock_mono_ns() + grace_ms * 1000000;
    loop_call(t->network->loop, refuse_here, t);
    pthread_mutex_lock(&t->mutex);
    while (t->served_calls > 0 && cond_wait_until(&t->no_calls, &t->mutex, deadline)) continue;
    pthread_mutex_unlock(&t->mutex);
    loop_call(t->network->loop, cancel_served_here, t);
}

/* ---- Transport ---- */

static void close_here(void *arg) {
    LoopbackTransport *t = arg;
    t->is_closed = true;
    for (List *link; (link = list_first(&t->calls_from));)
        give_up(LIST_ENTRY(link, LoopbackCall, from_link), error_new(CODE_CANCELLED, "the transport was freed"));
}

static void loopback_close(Transport *base) {
    LoopbackTransport *t = (LoopbackTransport *)base;
    stop_serving(base, 0);
    loop_call(t->network->loop, close_here, t);
    handler_count_wait(&t->handlers);
}

static void loopback_free(Transport *base) {
    transport_unref((LoopbackTransport *)base);
}

static TransportStats stats(Transport *base) {
    LoopbackTransport *t = (LoopbackTransport *)base;
    return (TransportStats){.calls_in = t->calls_in, .calls_out = t->calls_out};
}

static const TransportTable transport_table = {
    .channel = channel_new,
    .serve = serve,
    .stop_serving = stop_serving,
    .stats = stats,
    .close = loopback_close,
    .free = loopback_free,
};

Transport *transport_loopback_new(LoopbackNetwork *n) {
    LoopbackTransport *t = xcalloc(1, sizeof *t);
    t->base.table = &transport_table;
    refcount_init(&t->refs);
    refcount_inc(&n->refs);
    t->network = n;
    handler_count_init(&t->handlers);
    list_init(&t->calls_from);
    list_init(&t->calls_to);
    pthread_mutex_init(&t->mutex, NULL);
    cond_init(&t->no_calls);
    return &t->base;
}

LoopbackNetwork *loopback_network_new(void) {
    LoopbackNetwork *n = xcalloc(1, sizeof *n);
    Error *err = loop_new("rill-loopback", 1, &n->loop);
    if (err) abort(); /* only when the process is out of memory or threads */
    refcount_init(&n->refs);
    list_init(&n->waiting);
    pthread_mutex_init(&n->mutex, NULL);
    atomic_init(&n->next_port, FIRST_PORT);
    return n;
}

void loopback_network_free(LoopbackNetwork *n) {
    if (!n) return;
    loop_stop(n->loop);
    network_unref(n);
}
