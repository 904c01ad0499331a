/* push.c: what the task of a step's master sends to the other tasks of the step, as soon as it is there.

   Elsewhere the receiver asks (RecvTensor), since only it can tell whether the sender is still the one it knows, and has a call that fails when the
   sender is gone. The master needs neither: its RunGraph to that task goes over the same connection, before, and fails with it. So the message has no
   answer. It is a RecvTensorResponse with more fields in front: 1001 step, 1002 key, 1003 session.

   A tensor may be late: for a step that failed and was cleaned up. It is dropped then. One that comes before RunGraph was handled makes the step's entry,
   which goes with the session at the latest. */
#include "cluster/push.h"

#include <string.h>

#include "cluster/codec.h"
#include "cluster/remote_rendezvous.h"
#include "cluster/services.h"
#include "cluster/worker_internal.h"
#include "proto/wire.h"
#include "runtime/step.h"

enum { STEP = 1001, KEY = 1002, SESSION = 1003 };

Error *push_tensor(void *arg, Rendezvous *r, Str key, Tensor *value, bool is_dead) {
    StepEntry *entry = arg;
    RendezvousKey parts;
    Channel *channel;
    if (!rendezvous_key_parse(key, &parts)) return error_internal("Malformed rendezvous key %.*s", STR_ARG(key));
    Error *err = remote_channel(entry, parts.dst_device, &channel);
    if (err) return err;
    StrBuf front = {0};
    Message m = {0};
    strbuf_reserve(&front, key.len + 128);
    wire_put_uint(&front, STEP, (uint64_t)rendezvous_step_id(r));
    wire_put_bytes(&front, KEY, key);
    wire_put_bytes(&front, SESSION, worker_session_handle(step_entry_session(entry)));
    codec_put_received(&m, &front, value, is_dead);
    channel_note(channel, PUSH_TENSOR_PATH, &m);
    return NULL;
}

/* The step a tensor is for; NULL: it comes too late. */
static StepEntry *entry_for(Worker *w, int64_t step_id, Str session_handle) {
    bool is_over;
    StepEntry *e = step_table_find(w->steps, step_id, &is_over);
    if (e || is_over) return e;
    WorkerSession *s;
    Error *err = worker_find_session(w, session_handle, &s);
    if (err) {
        error_free(err);
        return NULL;
    }
    e = step_table_get(w->steps, step_id);
    step_entry_set_session(e, s);
    worker_session_unref(s);
    return e;
}

typedef struct Pushed {
    int64_t step_id;
    Str key, session;
} Pushed;

static Error *read_front(Str bytes, Pushed *out) {
    WireReader r = wire_reader(bytes);
    *out = (Pushed){0};
    while (wire_next(&r) && r.field >= STEP) {
        if (r.field == STEP && r.type == WIRE_VARINT) out->step_id = (int64_t)r.number;
        if (r.field == KEY && r.type == WIRE_BYTES) out->key = r.bytes;
        if (r.field == SESSION && r.type == WIRE_BYTES) out->session = r.bytes;
    }
    return r.failed || !out->key.len ? error_invalid("Malformed PushTensor") : NULL;
}

void push_service(void *arg, ServerCall *call) {
    Worker *w = ((Services *)arg)->worker;
    Message *request = server_call_request(call);
    Pushed pushed;
    Error *err = read_front(message_flatten(request), &pushed);
    if (err) {
        server_call_fail(call, err);
        return;
    }
    if (transport_stay_after(step_lend_end)) step_lend_begin(); /* the step goes on in this thread, when it has all that came for it */
    char room[256];
    StrBuf key = strbuf_in(room, sizeof room); /* what it points to goes with the tensor */
    strbuf_add(&key, pushed.key);
    StepEntry *e = entry_for(w, pushed.step_id, pushed.session);
    Tensor *value = NULL;
    bool is_dead = false;
    err = codec_get_recv_tensor(request, &value, &is_dead);
    if (e && err)
        rendezvous_abort(step_entry_rendezvous(e), err);
    else if (e)
        err = rendezvous_send(step_entry_rendezvous(e), strbuf_str(&key), value, is_dead);
    error_free(err); /* it was aborted: nobody waits */
    tensor_unref(value);
    step_entry_unref(e);
    strbuf_clear(&key);
    service_reply_empty(call);
}
