/* master_service.c: MasterService: one row per method. */
#include "cluster/master_service.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cluster/codec.h"
#include "cluster/debug.h"
#include "cluster/master.h"
#include "cluster/run_message.h"
#include "cluster/services.h"
#include "cluster/worker_service.h"
#include "proto/master.pb-c.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

static Error *twice(const char *method) {
    return error_new(CODE_ABORTED, "The same %s (Master) request was received twice.", method);
}

/* ---- Sessions ---- */

static void note_gone(void *gone) {
    atomic_store((_Atomic bool *)gone, true);
}

static void create_session(void *arg, ServerCall *call) {
    Pb__CreateSessionRequest *request = service_request(call, &pb__create_session_request__descriptor);
    if (!request) return;
    Master *master = ((Services *)arg)->master;
    char *handle = NULL;
    _Atomic bool gone = false;
    server_call_watch(call, note_gone, &gone);
    Error *err = master_create_session(master, codec_str(request->graph_def), request->config, str_of(request->target), &handle);
    server_call_unwatch(call);
    if (!err && atomic_load(&gone)) { /* nobody knows the handle: the session would stay for ever */
        err = master_close_session(master, str_of(handle));
        if (!err) err = error_new(CODE_CANCELLED, "The client went away while its session was made");
    }
    if (err) {
        server_call_fail(call, err);
    } else {
        Pb__CreateSessionResponse reply = PB__CREATE_SESSION_RESPONSE__INIT;
        reply.session_handle = handle;
        service_reply(call, &reply.base);
    }
    free(handle);
    service_free(request);
}

static void extend_session(void *arg, ServerCall *call) {
    Pb__ExtendSessionRequest *request = service_request(call, &pb__extend_session_request__descriptor);
    if (!request) return;
    MasterSession *s = NULL;
    Pb__ExtendSessionResponse reply = PB__EXTEND_SESSION_RESPONSE__INIT;
    Error *err = master_find_session(((Services *)arg)->master, str_of(request->session_handle), &s);
    if (!err) err = master_session_extend(s, codec_str(request->graph_def), request->current_graph_version, &reply.new_graph_version);
    if (err)
        server_call_fail(call, err);
    else
        service_reply(call, &reply.base);
    master_session_unref(s);
    service_free(request);
}

static void close_session(void *arg, ServerCall *call) {
    Pb__CloseSessionRequest *request = service_request(call, &pb__close_session_request__descriptor);
    if (!request) return;
    service_finish(call, master_close_session(((Services *)arg)->master, str_of(request->session_handle)));
    service_free(request);
}

static void reset(void *arg, ServerCall *call) {
    Pb__ResetRequest *request = service_request(call, &pb__reset_request__descriptor);
    if (!request) return;
    service_finish(call, master_reset(((Services *)arg)->master, request->container, request->n_container, request->device_filters, request->n_device_filters));
    service_free(request);
}

static void list_own_devices(Services *s, ServerCall *call) {
    const DeviceSet *devices = worker_devices(s->worker);
    Pb__ListDevicesResponse reply = PB__LIST_DEVICES_RESPONSE__INIT;
    Pb__DeviceAttributes *rows = xcalloc((size_t)devices->count, sizeof *rows);
    reply.local_device = xcalloc((size_t)devices->count, sizeof *reply.local_device);
    reply.n_local_device = (size_t)devices->count;
    for (int i = 0; i < devices->count; i++) {
        device_attributes_fill(devices->devices[i], str_of(devices->devices[i]->name), &rows[i]);
        reply.local_device[i] = &rows[i];
    }
    service_reply(call, &reply.base);
    free(reply.local_device);
    free(rows);
}

static void list_devices(void *arg, ServerCall *call) {
    Pb__ListDevicesRequest *request = service_request(call, &pb__list_devices_request__descriptor);
    if (!request) return;
    Services *services = arg;
    MasterSession *s = NULL;
    Error *err = *request->session_handle ? master_find_session(services->master, str_of(request->session_handle), &s) : NULL;
    if (err) {
        error_free(err);
        server_call_fail(call, error_invalid("Session %s is not found. Possibly, this master has restarted.", request->session_handle));
    } else if (!s) {
        list_own_devices(services, call);
    } else {
        Pb__ListDevicesResponse reply = PB__LIST_DEVICES_RESPONSE__INIT;
        reply.n_local_device = (size_t)master_session_device_count(s);
        reply.local_device = xcalloc(reply.n_local_device, sizeof *reply.local_device);
        for (size_t i = 0; i < reply.n_local_device; i++) reply.local_device[i] = (Pb__DeviceAttributes *)master_session_device(s, (int)i);
        service_reply(call, &reply.base);
        free(reply.local_device);
    }
    master_session_unref(s);
    service_free(request);
}

/* ---- Steps ---- */

static Error *decode_options(Str bytes, RunRequest *out) {
    if (!bytes.len) return NULL;
    Pb__RunOptions *options = pb__run_options__unpack(NULL, bytes.len, (const uint8_t *)bytes.ptr);
    if (!options) return error_invalid("Malformed RunOptions");
    out->trace = options->trace_level > 0;
    out->partition_graphs = options->output_partition_graphs;
    out->timeout_ms = options->timeout_in_ms;
    out->debug_options = debug_options_of(bytes);
    if (options->experimental) out->collective_graph_key = options->experimental->collective_graph_key;
    pb__run_options__free_unpacked(options, NULL);
    return NULL;
}

/* `feeds` has room for what the message feeds. */
static Error *decode_run(const RunMessage *m, Tensor **feeds, RunRequest *out) {
    out->signature = (RunSignature){.feeds = m->feeds, .fetches = m->fetches, .targets = m->targets, .feed_count = m->feed_count, .fetch_count = m->fetch_count, .target_count = m->target_count};
    out->feeds = feeds;
    Error *err = decode_options(m->options, out);
    for (int i = 0; !err && i < m->feed_count; i++) {
        err = tensor_proto_decode(m->feed_protos[i], &feeds[i]);
        if (err) err = error_wrap(err, "feed %.*s", STR_ARG(m->feeds[i]));
    }
    return err;
}

static void add_metadata(Message *m, uint32_t field, const RunReply *reply) {
    if (!reply->step_stats.len && !reply->cost_graph.len && !reply->partition_graphs.len) return;
    StrBuf metadata = {0};
    if (reply->step_stats.len) wire_put_bytes(&metadata, 1, strbuf_str(&reply->step_stats));
    if (reply->cost_graph.len) wire_put_bytes(&metadata, 2, strbuf_str(&reply->cost_graph));
    strbuf_add(&metadata, strbuf_str(&reply->partition_graphs));
    codec_add_bytes(m, field, strbuf_str(&metadata));
    strbuf_clear(&metadata);
}

static void reply_with_error(ServerCall *call, Error *err, bool in_body) {
    if (!in_body) {
        server_call_fail(call, err);
        return;
    }
    StrBuf b = {0};
    wire_put_uint(&b, 3, (uint64_t)err->code);
    wire_put_bytes(&b, 4, str_of(err->message));
    Message m = {0};
    size_t len = b.len;
    message_add_take(&m, strbuf_detach(&b), len);
    server_call_reply(call, &m);
    error_free(err);
}

/* One RunStep call. */
typedef struct RunStepCall {
    Services *services;
    ServerCall *call;
    RunMessage message; /* in the bytes of the call */
    MasterSession *session;
    Tensor **feeds;
    RunRequest request;
    RunReply reply;
} RunStepCall;

/* Answers and frees. */
static void run_step_done(void *arg, Error *err) {
    RunStepCall *c = arg;
    for (int i = 0; c->feeds && i < c->message.feed_count; i++) tensor_unref(c->feeds[i]);
    free(c->feeds);
    if (err) {
        reply_with_error(c->call, err, c->message.store_errors_in_response_body);
    } else {
        Message m = {0};
        for (int i = 0; i < c->reply.fetch_count; i++) codec_add_named_tensor(&m, 1, c->message.fetches[i], c->reply.fetches[i]);
        add_metadata(&m, 2, &c->reply);
        server_call_reply(c->call, &m);
    }
    run_reply_clear(&c->reply);
    run_message_clear(&c->message);
    master_session_unref(c->session);
    free(c);
}

static void run_step_and_wait(void *arg) {
    RunStepCall *c = arg;
    Str partial = c->message.partial_run_handle;
    Error *err = partial.len ? master_session_partial_run(c->session, partial, &c->request, c->call, &c->reply)
                             : master_session_run(c->session, &c->request, c->call, &c->reply);
    run_step_done(c, err);
}

/* Here, or only if none of it runs in this task. False: it must wait. */
static bool start_step(RunStepCall *c, bool only_elsewhere) {
    return !c->message.partial_run_handle.len && master_session_start(c->session, &c->request, only_elsewhere, c->call, &c->reply, run_step_done, c);
}

static void start_last_step(void *arg) {
    RunStepCall *c = arg;
    if (!start_step(c, false)) threadpool_post(c->services->serve, run_step_and_wait, c);
}

/* Steps that are known and plain run from here to their end on the threads that read the messages; others get a thread that waits. Of those that came
 * together one runs here, after those that run elsewhere have been started. */
static void run_step(void *arg, ServerCall *call) {
    Services *services = arg;
    RunStepCall *c = xcalloc(1, sizeof *c);
    *c = (RunStepCall){.services = services, .call = call};
    RunMessage *m = &c->message;
    Error *err = run_message_read(server_call_request(call), m);
    if (!err && !master_fresh_request_id(services->master, m->request_id)) err = twice("RunStep");
    if (!err) err = master_find_session(services->master, m->session_handle, &c->session);
    if (!err && m->feed_count) c->feeds = xcalloc((size_t)m->feed_count, sizeof *c->feeds);
    if (!err) err = decode_run(m, c->feeds, &c->request);
    if (err)
        run_step_done(c, err);
    else if (!start_step(c, !transport_thread_is_spare()) && (transport_thread_is_spare() || !transport_do_last(start_last_step, c)))
        threadpool_post(services->serve, run_step_and_wait, c);
}

static Str *strings_of(char **items, size_t count) {
    Str *out = xcalloc(count, sizeof *out);
    for (size_t i = 0; i < count; i++) out[i] = str_of(items[i]);
    return out;
}

static void partial_run_setup(void *arg, ServerCall *call) {
    Pb__PartialRunSetupRequest *request = service_request(call, &pb__partial_run_setup_request__descriptor);
    if (!request) return;
    Services *services = arg;
    MasterSession *s = NULL;
    char *handle = NULL;
    Str *feeds = strings_of(request->feed, request->n_feed), *fetches = strings_of(request->fetch, request->n_fetch);
    Str *targets = strings_of(request->target, request->n_target);
    RunSignature signature = {.feeds = feeds, .fetches = fetches, .targets = targets, .feed_count = (int)request->n_feed, .fetch_count = (int)request->n_fetch, .target_count = (int)request->n_target};
    Error *err = master_fresh_request_id(services->master, request->request_id) ? NULL : twice("PartialRunSetup");
    if (!err) err = master_find_session(services->master, str_of(request->session_handle), &s);
    if (!err) err = master_session_partial_setup(s, &signature, &handle);
    if (err) {
        server_call_fail(call, err);
    } else {
        Pb__PartialRunSetupResponse reply = PB__PARTIAL_RUN_SETUP_RESPONSE__INIT;
        reply.partial_run_handle = handle;
        service_reply(call, &reply.base);
    }
    free(handle);
    free(feeds);
    free(fetches);
    free(targets);
    master_session_unref(s);
    service_free(request);
}

/* ---- Callables ---- */

static void make_callable(void *arg, ServerCall *call) {
    Pb__MakeCallableRequest *request = service_request(call, &pb__make_callable_request__descriptor);
    if (!request) return;
    Services *services = arg;
    MasterSession *s = NULL;
    Pb__MakeCallableResponse reply = PB__MAKE_CALLABLE_RESPONSE__INIT;
    Error *err = master_fresh_request_id(services->master, request->request_id) ? NULL : twice("MakeCallable");
    if (!err && !request->options) err = error_invalid("MakeCallable without CallableOptions");
    if (!err) err = master_find_session(services->master, str_of(request->session_handle), &s);
    if (!err) err = master_session_make_callable(s, request->options, &reply.handle);
    if (err)
        server_call_fail(call, err);
    else
        service_reply(call, &reply.base);
    master_session_unref(s);
    service_free(request);
}

static void run_callable(void *arg, ServerCall *call) {
    Pb__RunCallableRequest *request = service_request(call, &pb__run_callable_request__descriptor);
    if (!request) return;
    Services *services = arg;
    MasterSession *s = NULL;
    RunReply reply = {0};
    Tensor **feeds = xcalloc(request->n_feed, sizeof *feeds);
    Error *err = master_fresh_request_id(services->master, request->request_id) ? NULL : twice("RunCallable");
    if (!err) err = master_find_session(services->master, str_of(request->session_handle), &s);
    for (size_t i = 0; !err && i < request->n_feed; i++) err = error_wrap(tensor_proto_decode(codec_str(request->feed[i]), &feeds[i]), "feed %zu", i);
    if (!err) err = master_session_run_callable(s, request->handle, feeds, (int)request->n_feed, call, &reply);
    if (err) {
        server_call_fail(call, err);
    } else {
        Message m = {0};
        for (int i = 0; i < reply.fetch_count; i++) codec_add_tensor(&m, 1, reply.fetches[i]);
        add_metadata(&m, 2, &reply);
        server_call_reply(call, &m);
    }
    run_reply_clear(&reply);
    for (size_t i = 0; i < request->n_feed; i++) tensor_unref(feeds[i]);
    free(feeds);
    master_session_unref(s);
    service_free(request);
}

static void release_callable(void *arg, ServerCall *call) {
    Pb__ReleaseCallableRequest *request = service_request(call, &pb__release_callable_request__descriptor);
    if (!request) return;
    MasterSession *s = NULL;
    Error *err = master_find_session(((Services *)arg)->master, str_of(request->session_handle), &s);
    if (!err) err = master_session_release_callable(s, request->handle);
    service_finish(call, err);
    master_session_unref(s);
    service_free(request);
}

#define MASTER "/tensorflow.MasterService/"

const Method master_methods[] = {
    {MASTER "CreateSession", create_session, ON_POOL, NULL},
    {MASTER "ExtendSession", extend_session, ON_POOL, NULL},
    {MASTER "PartialRunSetup", partial_run_setup, ON_POOL, NULL},
    {MASTER "RunStep", run_step, STAYING, NULL},
    {MASTER "CloseSession", close_session, ON_POOL, NULL},
    {MASTER "ListDevices", list_devices, ON_POOL, NULL},
    {MASTER "Reset", reset, ON_POOL, NULL},
    {MASTER "MakeCallable", make_callable, ON_POOL, NULL},
    {MASTER "RunCallable", run_callable, ON_POOL, NULL},
    {MASTER "ReleaseCallable", release_callable, ON_POOL, NULL},
};
const int master_method_count = sizeof master_methods / sizeof master_methods[0];
