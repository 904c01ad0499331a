/* remote_rendezvous.c: one RecvTensor call (or RecvBuf) for each tensor that comes from another task.

   No request id: a channel never sends a call twice, and to remember so many would cost each step some misses of the processor's caches at the other task.

   The call has no deadline: it ends with the tensor, with the producer's error, or when the step is aborted here. For the last case the receive
   also waits in the local rendezvous under its key, where nobody sends: an abort wakes it there and it cancels the call. */
#include "cluster/remote_rendezvous.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/refcount.h"
#include "cluster/codec.h"
#include "cluster/push.h"
#include "cluster/step_table.h"
#include "cluster/worker_session.h"
#include "placement/device_name.h"
#include "proto/wire.h"
#include "runtime/step.h"

typedef struct RemoteRecvCall {
    RefCount refs; /* the call's completion and the local waiter */
    const RecvMethod *method;
    WorkerSession *session;
    StepEntry *entry;
    Rendezvous *rendezvous;
    char *key;
    RecvDone *done;
    void *arg;
    pthread_mutex_t mutex; /* guards all below */
    Call *call;
    bool finished, cancel_asked;
} RemoteRecvCall;

static void recv_unref(RemoteRecvCall *c) {
    if (!refcount_dec(&c->refs)) return;
    if (c->call) call_unref(c->call);
    rendezvous_unref(c->rendezvous);
    step_entry_unref(c->entry);
    worker_session_unref(c->session);
    pthread_mutex_destroy(&c->mutex);
    free(c->key);
    free(c);
}

/* True for the one who may report the outcome. */
static bool finish(RemoteRecvCall *c) {
    pthread_mutex_lock(&c->mutex);
    bool first = !c->finished;
    c->finished = true;
    pthread_mutex_unlock(&c->mutex);
    return first;
}

/* The step was aborted here, or its master put the value in. */
static void aborted(void *arg, Error *err, Tensor *value, bool is_dead) {
    RemoteRecvCall *c = arg;
    pthread_mutex_lock(&c->mutex);
    c->cancel_asked = true;
    Call *call = c->call;
    pthread_mutex_unlock(&c->mutex);
    if (finish(c)) {
        c->done(c->arg, err, value, is_dead);
    } else {
        error_free(err);
        tensor_unref(value);
    }
    if (call) call_cancel(call);
    recv_unref(c);
}

static void received(void *arg, Error *err, Message *reply) {
    RemoteRecvCall *c = arg;
    Tensor *value = NULL;
    bool is_dead = false;
    if (!err) err = c->method->decode(reply, &value, &is_dead);
    if (err && err->code == CODE_FAILED_PRECONDITION && c->method->precondition_means_restart) {
        err->code = CODE_ABORTED; /* make a new session */
        err->restarted = true;
    }
    if (reply) message_clear(reply);
    if (transport_stay_after(step_lend_end)) step_lend_begin(); /* the step goes on in this thread, when it has all that came for it */
    bool is_first = finish(c);
    if (rendezvous_withdraw(c->rendezvous, str_of(c->key), c)) recv_unref(c); /* before the step goes on: it may end, and its rendezvous should be empty */
    if (is_first)
        c->done(c->arg, error_append(err, "\nAdditional information: %s of %s", c->method->what, c->key), value, is_dead);
    else {
        error_free(err);
        tensor_unref(value);
    }
    recv_unref(c);
}

Error *remote_channel(StepEntry *e, Str device, Channel **out) {
    WorkerSession *s = step_entry_session(e);
    if (!s) return error_internal("Step has no session: %.*s", STR_ARG(device));
    return worker_session_channel(s, device_task_text(device), out);
}

void remote_recv_start(const RecvMethod *method, Channel *channel, Message *request, WorkerSession *session, StepEntry *entry, Rendezvous *r, Str key,
                       RecvDone *done, void *arg) {
    RemoteRecvCall *c = xcalloc(1, sizeof *c);
    refcount_init(&c->refs);
    refcount_inc(&c->refs);
    pthread_mutex_init(&c->mutex, NULL);
    c->method = method;
    c->session = worker_session_ref(session);
    c->entry = entry ? step_entry_ref(entry) : NULL;
    c->rendezvous = rendezvous_ref(r);
    c->key = str_dup(key);
    c->done = done;
    c->arg = arg;
    refcount_inc(&c->refs); /* ours, until the call is stored */
    rendezvous_recv(r, key, aborted, c);
    Call *call = channel_call(channel, method->path, request, (CallOptions){.may_stay = true, .align_at = method->align_at}, received, c);
    pthread_mutex_lock(&c->mutex);
    c->call = call;
    bool cancel = c->cancel_asked;
    pthread_mutex_unlock(&c->mutex);
    if (cancel) call_cancel(call);
    recv_unref(c);
}

static const RecvMethod recv_tensor = {
    .path = "/tensorflow.WorkerService/RecvTensor", .what = "RecvTensor", .decode = codec_get_recv_tensor, .align_at = codec_recv_tensor_align_at};

static void remote_recv(void *arg, Rendezvous *r, Str key, RecvDone *done, void *done_arg) {
    StepEntry *entry = arg;
    RendezvousKey parts;
    Channel *channel;
    bool is_valid = rendezvous_key_parse(key, &parts);
    Error *err = is_valid ? remote_channel(entry, parts.src_device, &channel) : error_internal("Malformed rendezvous key %.*s", STR_ARG(key));
    if (err) {
        done(done_arg, err, NULL, false);
        return;
    }
    StrBuf request = {0};
    wire_put_uint(&request, 1, (uint64_t)rendezvous_step_id(r));
    wire_put_bytes(&request, 2, key);
    Message m = {0};
    size_t len = request.len;
    message_add_take(&m, strbuf_detach(&request), len);
    remote_recv_start(&recv_tensor, channel, &m, NULL, entry, r, key, done, done_arg);
}

const RemoteWay remote_way = {.recv = remote_recv, .push = push_tensor};
