/* run_message.c: a RunStepRequest read where it lies. protobuf-c would copy every name, and every tensor that is fed. */
#include "cluster/run_message.h"

#include <stdlib.h>

#include "base/memory.h"
#include "proto/wire.h"

/* Fields of RunStepRequest. */
enum { SESSION_HANDLE = 1, FEED, FETCH, TARGET, OPTIONS, PARTIAL_RUN_HANDLE, STORE_ERRORS, REQUEST_ID };
/* Fields of NamedTensorProto. */
enum { FEED_NAME = 1, FEED_TENSOR };

static bool has_type(const WireReader *r) {
    if (r->field < SESSION_HANDLE || r->field > REQUEST_ID) return true;
    return r->type == (r->field < STORE_ERRORS ? WIRE_BYTES : WIRE_VARINT);
}

static bool count_names(Str bytes, RunMessage *m) {
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (!has_type(&r)) return false;
        m->feed_count += r.field == FEED;
        m->fetch_count += r.field == FETCH;
        m->target_count += r.field == TARGET;
    }
    return !r.failed;
}

static bool read_feed(Str bytes, Str *name, Str *tensor) {
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field != FEED_NAME && r.field != FEED_TENSOR) continue;
        if (r.type != WIRE_BYTES) return false;
        *(r.field == FEED_NAME ? name : tensor) = r.bytes;
    }
    return !r.failed;
}

static bool read_fields(Str bytes, RunMessage *m) {
    int feeds = 0, fetches = 0, targets = 0;
    bool ok = true;
    for (WireReader r = wire_reader(bytes); wire_next(&r);) {
        switch (r.field) {
            case SESSION_HANDLE: m->session_handle = r.bytes; break;
            case FEED:
                ok = ok && read_feed(r.bytes, &m->feeds[feeds], &m->feed_protos[feeds]);
                feeds++;
                break;
            case FETCH: m->fetches[fetches++] = r.bytes; break;
            case TARGET: m->targets[targets++] = r.bytes; break;
            case OPTIONS: m->options = r.bytes; break;
            case PARTIAL_RUN_HANDLE: m->partial_run_handle = r.bytes; break;
            case STORE_ERRORS: m->store_errors_in_response_body = r.number != 0; break;
            case REQUEST_ID: m->request_id = (int64_t)r.number; break;
            default: break;
        }
    }
    return ok;
}

Error *run_message_read(Message *bytes, RunMessage *out) {
    *out = (RunMessage){0};
    Str flat = message_flatten(bytes);
    bool ok = count_names(flat, out);
    out->feeds = xcalloc(2 * (size_t)out->feed_count + (size_t)out->fetch_count + (size_t)out->target_count, sizeof *out->feeds);
    out->fetches = out->feeds + out->feed_count;
    out->targets = out->fetches + out->fetch_count;
    out->feed_protos = out->targets + out->target_count;
    return ok && read_fields(flat, out) ? NULL : error_invalid("Malformed RunStepRequest");
}

void run_message_clear(RunMessage *m) {
    free(m->feeds);
    *m = (RunMessage){0};
}
