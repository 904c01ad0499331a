/* transport.c: hands each function of transport.h to the implementation's table. */
#include "net/transport.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread.h"
#include "net/transport_internal.h"

Channel *transport_channel(Transport *t, Str address) {
    return t->table->channel(t, address);
}

Error *transport_serve(Transport *t, Str address, const ServerOptions *options, char **bound_address) {
    return t->table->serve(t, address, options, bound_address);
}

void transport_stop_serving(Transport *t, int64_t grace_ms) {
    t->table->stop_serving(t, grace_ms);
}

TransportStats transport_stats(Transport *t) {
    return t->table->stats(t);
}

bool transport_do_last(void (*fn)(void *arg), void *arg) {
    return loop_do_last(fn, arg);
}

bool transport_thread_is_spare(void) {
    return loop_thread_is_spare();
}

bool transport_stay_after(void (*fn)(void)) {
    return loop_stay_after(fn);
}

void transport_close(Transport *t) {
    t->table->close(t);
}

void transport_free(Transport *t) {
    if (!t) return;
    t->table->close(t);
    t->table->free(t);
}

Channel *channel_ref(Channel *c) {
    refcount_inc(&c->users);
    return c;
}

void channel_unref(Channel *c) {
    if (c && refcount_dec(&c->users)) c->table->close(c);
}

Str channel_address(const Channel *c) {
    return str_of(c->address);
}

bool channel_is_connected(const Channel *c) {
    return c->table->is_connected((Channel *)c);
}

char *channel_last_error(const Channel *c) {
    return c->table->last_error((Channel *)c);
}

Call *channel_call(Channel *c, const char *path, Message *request, CallOptions options, CallDone *done, void *arg) {
    return c->table->call(c, path, request, options, done, arg);
}

static void ignore(void *arg, Error *err, Message *reply) {
    (void)arg, (void)reply;
    error_free(err);
}

void channel_note(Channel *c, const char *path, Message *message) {
    call_unref(channel_call(c, path, message, (CallOptions){.is_one_way = true, .is_noted = true}, ignore, NULL));
}

void call_cancel(Call *call) {
    call->table->cancel(call);
}

void call_unref(Call *call) {
    if (call) call->table->unref(call);
}

typedef struct Waiter {
    Latch latch;
    Error *err;
    Message reply;
    Loop *loop; /* that the waiting thread may drive; NULL: none */
    _Atomic bool is_done;
} Waiter;

static void wake_waiter(void *arg, Error *err, Message *reply) {
    Waiter *w = arg;
    w->err = err;
    if (reply) w->reply = message_move(reply);
    atomic_store(&w->is_done, true);
    if (w->loop) loop_wait_note(w->loop);
    latch_done(&w->latch);
}

Error *channel_call_wait(Channel *c, const char *path, Message *request, CallOptions options, Message *reply) {
    Waiter w = {.loop = c->table->loop ? c->table->loop(c) : NULL};
    LoopWait wait;
    options.is_noted = true;
    latch_init(&w.latch, 1);
    if (w.loop) loop_wait_begin(w.loop, &wait);
    Call *call = channel_call(c, path, request, options, wake_waiter, &w);
    if (w.loop) loop_wait_for(w.loop, &wait, &w.is_done);
    latch_wait(&w.latch);
    latch_clear(&w.latch);
    call_unref(call);
    if (!w.err) *reply = w.reply;
    return w.err;
}
