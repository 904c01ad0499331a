/* worker_client.c: calls of WorkerService. */
#include "cluster/worker_client.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/thread.h"
#include "cluster/codec.h"

void worker_client_clear(WorkerClient *c) {
    worker_session_unref(c->session);
    free(c->task_name);
    free(c->address);
    *c = (WorkerClient){0};
}

typedef struct OneCall {
    WorkerCalls *calls;
    Call *call;
    Error *err;
    Message reply;
    _Atomic bool done;
} OneCall;

struct WorkerCalls {
    Latch latch;
    OneCall *items;
    int count;
};

WorkerCalls *worker_calls_new(int count) {
    WorkerCalls *calls = xcalloc(1, sizeof *calls);
    latch_init(&calls->latch, 0);
    calls->items = xcalloc((size_t)count, sizeof *calls->items);
    calls->count = count;
    return calls;
}

static void ended(void *arg, Error *err, Message *reply) {
    OneCall *one = arg;
    one->err = err;
    if (reply) one->reply = message_move(reply);
    atomic_store(&one->done, true);
    latch_done(&one->calls->latch);
}

static char *method_path(const char *method) {
    return xasprintf("/tensorflow.WorkerService/%s", method);
}

void worker_calls_start(WorkerCalls *calls, int i, WorkerClient *c, const char *method, Message *request, CallOptions options) {
    OneCall *one = &calls->items[i];
    one->calls = calls;
    latch_add(&calls->latch, 1);
    char *path = method_path(method);
    one->call = channel_call(c->channel, path, request, options, ended, one);
    free(path);
}

bool worker_calls_wait(WorkerCalls *calls, int64_t timeout_ms) {
    return latch_wait_for(&calls->latch, timeout_ms);
}

static void stop_calls(void *calls) {
    worker_calls_cancel(calls);
}

void worker_calls_wait_or_stop(WorkerCalls *calls, Cancel *stop) {
    CancelWatch watch;
    bool watched = cancel_watch(stop, &watch, stop_calls, calls);
    if (!watched) worker_calls_cancel(calls);
    worker_calls_wait(calls, -1);
    if (watched) cancel_unwatch(stop, &watch);
}

bool worker_calls_is_done(WorkerCalls *calls, int i) {
    return !calls->items[i].call || atomic_load(&calls->items[i].done);
}

void worker_calls_cancel(WorkerCalls *calls) {
    for (int i = 0; i < calls->count; i++)
        if (calls->items[i].call) call_cancel(calls->items[i].call);
}

Error *worker_calls_error(WorkerCalls *calls, int i) {
    return calls->items[i].err;
}

Message *worker_calls_reply(WorkerCalls *calls, int i) {
    return &calls->items[i].reply;
}

void worker_calls_free(WorkerCalls *calls) {
    if (!calls) return;
    for (int i = 0; i < calls->count; i++) {
        if (calls->items[i].call) call_unref(calls->items[i].call);
        error_free(calls->items[i].err);
        message_clear(&calls->items[i].reply);
    }
    latch_clear(&calls->latch);
    free(calls->items);
    free(calls);
}

Error *worker_client_call(WorkerClient *c, const char *method, const ProtobufCMessage *request, CallOptions options, Message *reply) {
    Message m = {0};
    codec_pack(request, &m);
    char *path = method_path(method);
    Error *err = channel_call_wait(c->channel, path, &m, options, reply);
    free(path);
    return err;
}

static void forget(void *arg, Error *err, Message *reply) {
    (void)arg;
    error_free(err);
    if (reply) message_clear(reply);
}

void worker_client_post(WorkerClient *c, const char *method, const ProtobufCMessage *request, int64_t timeout_ms) {
    Message m = {0};
    codec_pack(request, &m);
    char *path = method_path(method);
    call_unref(channel_call(c->channel, path, &m, (CallOptions){.timeout_ms = timeout_ms}, forget, NULL));
    free(path);
}
