/* server_call.c: what incoming calls of all transports have in common: running the handler, telling the watcher. */
#include "base/memory.h"
#include "base/thread.h"
#include "net/transport_internal.h"

/* ---- HandlerCount ---- */

void handler_count_init(HandlerCount *h) {
    pthread_mutex_init(&h->mutex, NULL);
    cond_init(&h->none);
    h->count = 0;
}

void handler_count_clear(HandlerCount *h) {
    pthread_mutex_destroy(&h->mutex);
    pthread_cond_destroy(&h->none);
}

void handler_count_wait(HandlerCount *h) {
    pthread_mutex_lock(&h->mutex);
    while (h->count > 0) pthread_cond_wait(&h->none, &h->mutex);
    pthread_mutex_unlock(&h->mutex);
}

static void handler_count_add(HandlerCount *h, int64_t more) {
    pthread_mutex_lock(&h->mutex);
    h->count += more;
    if (h->count == 0) pthread_cond_broadcast(&h->none);
    pthread_mutex_unlock(&h->mutex);
}

/* ---- Life ---- */

void server_call_init(ServerCall *call, const ServerCallTable *table, Loop *loop, HandlerCount *handlers) {
    call->table = table;
    call->loop = loop;
    call->handlers = handlers;
    refcount_init(&call->refs);
    pthread_mutex_init(&call->mutex, NULL);
    cond_init(&call->watcher_returned);
}

void server_call_clear(ServerCall *call) {
    message_clear(&call->request);
    pthread_mutex_destroy(&call->mutex);
    pthread_cond_destroy(&call->watcher_returned);
}

void server_call_ref(ServerCall *call) {
    refcount_inc(&call->refs);
}

void server_call_unref(ServerCall *call) {
    if (refcount_dec(&call->refs)) call->table->destroy(call);
}

/* ---- Handler ---- */

static bool is_cancelled(ServerCall *call) {
    pthread_mutex_lock(&call->mutex);
    bool cancelled = call->is_cancelled;
    pthread_mutex_unlock(&call->mutex);
    return cancelled;
}

static void run_handler(void *arg) {
    ServerCall *call = arg;
    HandlerCount *handlers = call->handlers; /* the call may be gone after its handler */
    Error *err = is_cancelled(call) ? error_new(CODE_CANCELLED, "cancelled before it began") : NULL;
    if (!err && call->table->prepare) err = call->table->prepare(call);
    if (err)
        server_call_fail(call, err);
    else
        call->handler(call->handler_arg, call);
    handler_count_add(handlers, -1);
}

void server_call_dispatch(ServerCall *call, const Method *method, void *arg, ThreadPool *pool) {
    server_call_ref(call);
    call->handler = method->handler;
    call->handler_arg = arg;
    handler_count_add(call->handlers, 1);
    call->handler_task = (LoopTask){.fn = run_handler, .arg = call};
    LoopKind kind = method->place == STAYING ? LOOP_LONG : method->place == CONTINUING ? LOOP_CONTINUES : LOOP_SHORT;
    if (method->place == ON_POOL || !loop_hand_out(call->loop, &call->handler_task, kind))
        threadpool_post(pool, run_handler, call);
}

/* ---- Watcher ---- */

static void run_watcher(ServerCall *call) {
    pthread_mutex_lock(&call->mutex);
    if (call->watch == WATCH_SET && call->is_cancelled && !call->is_finished) {
        call->watch = WATCH_RUNNING;
        pthread_mutex_unlock(&call->mutex);
        call->watcher(call->watcher_arg);
        pthread_mutex_lock(&call->mutex);
        call->watch = WATCH_RAN;
        pthread_cond_broadcast(&call->watcher_returned);
    }
    pthread_mutex_unlock(&call->mutex);
}

static void watcher_task(void *arg) {
    ServerCall *call = arg;
    pthread_mutex_lock(&call->mutex);
    call->is_task_posted = false;
    pthread_mutex_unlock(&call->mutex);
    run_watcher(call);
    server_call_unref(call);
}

static void post_watcher_locked(ServerCall *call) {
    if (call->is_task_posted) return;
    server_call_ref(call);
    call->watcher_task = (LoopTask){.fn = watcher_task, .arg = call};
    call->is_task_posted = loop_post(call->loop, &call->watcher_task);
    if (!call->is_task_posted)
        refcount_dec(&call->refs); /* a transport that is gone tells nobody; not the last reference */
}

void server_call_cancel(ServerCall *call) {
    bool is_here = loop_is_here(call->loop);
    pthread_mutex_lock(&call->mutex);
    call->is_cancelled = true;
    if (!is_here && call->watch == WATCH_SET) post_watcher_locked(call);
    pthread_mutex_unlock(&call->mutex);
    if (is_here) run_watcher(call);
}

void server_call_watch(ServerCall *call, CancelFn *fn, void *arg) {
    pthread_mutex_lock(&call->mutex);
    call->watch = WATCH_SET;
    call->watcher = fn;
    call->watcher_arg = arg;
    if (call->is_cancelled) post_watcher_locked(call);
    pthread_mutex_unlock(&call->mutex);
}

bool server_call_unwatch(ServerCall *call) {
    pthread_mutex_lock(&call->mutex);
    if (call->watch == WATCH_SET) call->watch = WATCH_NONE;
    while (call->watch == WATCH_RUNNING && !loop_is_here(call->loop))
        pthread_cond_wait(&call->watcher_returned, &call->mutex);
    bool never_ran = call->watch == WATCH_NONE;
    pthread_mutex_unlock(&call->mutex);
    return never_ran;
}

/* ---- Reply ---- */

static void finish(ServerCall *call, Message *reply, Error *err) {
    pthread_mutex_lock(&call->mutex);
    call->is_finished = true;
    if (call->watch == WATCH_SET) call->watch = WATCH_NONE;
    pthread_mutex_unlock(&call->mutex);
    call->table->finish(call, reply, err);
}

void server_call_reply(ServerCall *call, Message *reply) {
    finish(call, reply, NULL);
}

void server_call_fail(ServerCall *call, Error *err) {
    finish(call, NULL, err ? err : error_internal("a call failed without a reason"));
}

Message *server_call_request(ServerCall *call) {
    return &call->request;
}

Str server_call_peer(const ServerCall *call) {
    return str_of(call->peer);
}

int64_t server_call_deadline_ns(const ServerCall *call) {
    return call->deadline_ns;
}
