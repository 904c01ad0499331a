/* recv_service.c: a peer's call waits in the rendezvous of a step until the value is there, the step fails, or the peer gives up. */
#include "cluster/recv_service.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cluster/codec.h"
#include "cluster/services.h"
#include "proto/worker.pb-c.h"

typedef struct RecvCall {
    RefCount refs; /* the handler, and whoever answers */
    Services *services;
    ServerCall *call;
    void *request; /* what key points into */
    int64_t step_id;
    Str key;
    bool is_buf;
    pthread_mutex_t mutex; /* guards all below */
    bool waiting;   /* in the rendezvous, or already answered */
    bool cancelled; /* before it was waiting */
} RecvCall;

static void recv_unref(RecvCall *c) {
    if (!refcount_dec(&c->refs)) return;
    pthread_mutex_destroy(&c->mutex);
    service_free(c->request);
    free(c);
}

static void recv_done(void *arg, Error *err, Tensor *value, bool is_dead) {
    RecvCall *c = arg;
    server_call_unwatch(c->call);
    if (!err && c->is_buf && (is_dead || !dtype_is_plain(value->dtype))) err = error_invalid("RecvBuf of %.*s, which is not a piece of a collective", STR_ARG(c->key));
    if (err) {
        server_call_fail(c->call, err);
    } else {
        Message reply = {0};
        if (c->is_buf)
            codec_put_recv_buf(&reply, value, clock_wall_us());
        else
            codec_put_recv_tensor(&reply, value, is_dead, clock_wall_us());
        server_call_reply(c->call, &reply);
    }
    tensor_unref(value);
    recv_unref(c);
}

static void withdraw(RecvCall *c) {
    if (!worker_recv_cancel(c->services->worker, c->step_id, c->key, c)) return;
    server_call_fail(c->call, error_new(CODE_CANCELLED, "%s was cancelled", c->is_buf ? "RecvBuf" : "RecvTensor"));
    recv_unref(c);
}

/* The peer no longer wants it. */
static void recv_cancelled(void *arg) {
    RecvCall *c = arg;
    pthread_mutex_lock(&c->mutex);
    bool waiting = c->waiting;
    c->cancelled = true;
    pthread_mutex_unlock(&c->mutex);
    if (waiting) withdraw(c);
}

/* Takes the request; NULL when it came before. */
static RecvCall *recv_begin(Services *s, ServerCall *call, void *request, int64_t request_id, int64_t step_id, const char *key, bool is_buf) {
    if (!worker_fresh_recv_id(s->worker, request_id)) {
        server_call_fail(call, error_new(CODE_ABORTED, "The same %s (WorkerServer) request was received twice.", is_buf ? "RecvBuf" : "RecvTensor"));
        service_free(request);
        return NULL;
    }
    RecvCall *c = xcalloc(1, sizeof *c);
    refcount_init(&c->refs);
    refcount_inc(&c->refs);
    pthread_mutex_init(&c->mutex, NULL);
    c->services = s;
    c->call = call;
    c->request = request;
    c->step_id = step_id;
    c->key = str_of(key);
    c->is_buf = is_buf;
    server_call_watch(call, recv_cancelled, c);
    return c;
}

static void recv_waits(RecvCall *c) {
    pthread_mutex_lock(&c->mutex);
    c->waiting = true;
    bool cancelled = c->cancelled;
    pthread_mutex_unlock(&c->mutex);
    if (cancelled) withdraw(c);
    recv_unref(c);
}

void recv_service_tensor(void *arg, ServerCall *call) {
    Services *s = arg;
    Pb__RecvTensorRequest *request = service_request(call, &pb__recv_tensor_request__descriptor);
    if (!request) return;
    RecvCall *c = recv_begin(s, call, request, request->request_id, request->step_id, request->rendezvous_key, false);
    if (!c) return;
    worker_recv_tensor(s->worker, c->step_id, c->key, recv_done, c);
    recv_waits(c);
}

void recv_service_buf(void *arg, ServerCall *call) {
    Services *s = arg;
    Pb__RecvBufRequest *request = service_request(call, &pb__recv_buf_request__descriptor);
    if (!request) return;
    RecvCall *c = recv_begin(s, call, request, request->request_id, request->step_id, request->buf_rendezvous_key, true);
    if (!c) return;
    worker_recv_buf(s->worker, c->step_id, c->key, str_of(request->src_device), request->src_incarnation, recv_done, c);
    recv_waits(c);
}
