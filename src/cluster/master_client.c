/* master_client.c: a ClientSession at a master elsewhere: MasterService over a gRPC channel.

   Every call names the master in its errors. A call that fails because the master cannot be reached is Unavailable at once; only the first one,
   CreateSession, is tried again for a while, since tasks of a cluster start in any order. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cluster/client_session_internal.h"
#include "cluster/codec.h"
#include "cluster/random_id.h"
#include "net/transport.h"
#include "proto/master.pb-c.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

enum { CONNECT_TIMEOUT_MS = 60000, RETRY_MS = 200 };

typedef struct MasterClient {
    ClientSession base;
    char *target; /* "grpc://host:port" */
    Transport *transport; /* NULL: somebody else's */
    Channel *channel;
    char *handle;
    pthread_mutex_t extend_mutex; /* guards version: one extend at a time */
    int64_t version;
} MasterClient;

/* ---- Calls ---- */

static Error *call_bytes(MasterClient *c, const char *method, Message *request, int64_t timeout_ms, Message *reply) {
    char *path = xasprintf("/tensorflow.MasterService/%s", method);
    Error *err = channel_call_wait(c->channel, path, request, (CallOptions){.timeout_ms = timeout_ms}, reply);
    free(path);
    return error_wrap(err, "%s at master %s", method, c->target);
}

/* For messages that protobuf-c reads and writes; the reply is freed with protobuf_c_message_free_unpacked. */
static Error *call(MasterClient *c, const char *method, const ProtobufCMessage *request, const ProtobufCMessageDescriptor *reply_type, ProtobufCMessage **out) {
    Message bytes = {0}, reply = {0};
    codec_pack(request, &bytes);
    Error *err = call_bytes(c, method, &bytes, c->base.timeout_ms, &reply);
    if (!err && reply_type) err = error_wrap(codec_unpack(reply_type, &reply, out), "%s at master %s", method, c->target);
    message_clear(&reply);
    return err;
}

/* ---- Opening ---- */

static void client_free(ClientSession *base) {
    MasterClient *c = (MasterClient *)base;
    channel_unref(c->channel);
    if (c->transport) transport_free(c->transport);
    pthread_mutex_destroy(&c->extend_mutex);
    free(c->handle);
    free(c->target);
    free(c);
}

static Error *client_new(const ClientSessionOptions *options, MasterClient **out) {
    Pb__ConfigProto *config = NULL;
    Error *err = client_config(options->config, &config);
    if (err) return err;
    MasterClient *c = xcalloc(1, sizeof *c);
    pthread_mutex_init(&c->extend_mutex, NULL);
    c->target = str_dup(options->target);
    c->base.timeout_ms = config->operation_timeout_in_ms;
    pb__config_proto__free_unpacked(config, NULL);
    if (!options->transport) err = transport_grpc_new(NULL, &c->transport);
    if (err) {
        client_free(&c->base);
        return err;
    }
    c->channel = transport_channel(options->transport ? options->transport : c->transport, str_slice(options->target, 7, options->target.len));
    *out = c;
    return NULL;
}

static void pause_ms(int64_t ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Calls until somebody answers, or for the time that connecting may take. */
static Error *call_patiently(MasterClient *c, const char *method, Str request, int64_t patience_ms, Message *reply) {
    int64_t until = clock_mono_ns() + patience_ms * 1000000;
    bool told = false;
    for (;;) {
        Message bytes = {0};
        message_add_copy(&bytes, request);
        Error *err = call_bytes(c, method, &bytes, c->base.timeout_ms, reply);
        if (!err || err->code != CODE_UNAVAILABLE) return err;
        if (clock_mono_ns() >= until) return error_append(err, " (tried for %lld ms)", (long long)patience_ms);
        if (!told) log_info("waiting for master %s: %s", c->target, err->message);
        told = true;
        error_free(err);
        pause_ms(RETRY_MS);
    }
}

static int64_t patience(const ClientSessionOptions *options, int64_t timeout_ms) {
    int64_t ms = options->connect_timeout_ms ? options->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    return timeout_ms && timeout_ms < ms ? timeout_ms : ms;
}

/* By hand: a ConfigProto has fields that only the master knows. */
static Error *create_session(MasterClient *c, const ClientSessionOptions *options, Str graph_def) {
    StrBuf request = {0};
    Message reply = {0};
    wire_put_bytes(&request, 1, graph_def);
    wire_put_bytes(&request, 2, options->config);
    wire_put_bytes(&request, 3, options->target);
    Error *err = call_patiently(c, "CreateSession", strbuf_str(&request), patience(options, c->base.timeout_ms), &reply);
    strbuf_clear(&request);
    ProtobufCMessage *answer = NULL;
    if (!err) err = codec_unpack(&pb__create_session_response__descriptor, &reply, &answer);
    message_clear(&reply);
    if (err) return err;
    const Pb__CreateSessionResponse *response = (const Pb__CreateSessionResponse *)answer;
    c->handle = xstrdup(response->session_handle);
    c->version = response->graph_version;
    protobuf_c_message_free_unpacked(answer, NULL);
    return NULL;
}

/* ---- Graph, devices, the end ---- */

static Error *extend(ClientSession *base, Str graph_def) {
    MasterClient *c = (MasterClient *)base;
    pthread_mutex_lock(&c->extend_mutex);
    Pb__ExtendSessionRequest request = PB__EXTEND_SESSION_REQUEST__INIT;
    request.session_handle = c->handle;
    request.graph_def = (ProtobufCBinaryData){graph_def.len, (uint8_t *)graph_def.ptr};
    request.current_graph_version = c->version;
    ProtobufCMessage *reply = NULL;
    Error *err = call(c, "ExtendSession", &request.base, &pb__extend_session_response__descriptor, &reply);
    if (!err) {
        c->version = ((Pb__ExtendSessionResponse *)reply)->new_graph_version;
        protobuf_c_message_free_unpacked(reply, NULL);
    }
    pthread_mutex_unlock(&c->extend_mutex);
    return err;
}

static Error *devices(ClientSession *base, ClientDeviceInfo **out, int *count) {
    MasterClient *c = (MasterClient *)base;
    Pb__ListDevicesRequest request = PB__LIST_DEVICES_REQUEST__INIT;
    request.session_handle = c->handle;
    ProtobufCMessage *reply = NULL;
    Error *err = call(c, "ListDevices", &request.base, &pb__list_devices_response__descriptor, &reply);
    if (err) return err;
    const Pb__ListDevicesResponse *list = (const Pb__ListDevicesResponse *)reply;
    *out = xcalloc(list->n_local_device + list->n_remote_device, sizeof **out);
    *count = 0;
    for (size_t i = 0; i < list->n_local_device; i++) client_device_set(&(*out)[(*count)++], list->local_device[i]);
    for (size_t i = 0; i < list->n_remote_device; i++) client_device_set(&(*out)[(*count)++], list->remote_device[i]);
    protobuf_c_message_free_unpacked(reply, NULL);
    return NULL;
}

static Error *close_session(ClientSession *base) {
    MasterClient *c = (MasterClient *)base;
    if (!c->handle) return NULL;
    Pb__CloseSessionRequest request = PB__CLOSE_SESSION_REQUEST__INIT;
    request.session_handle = c->handle;
    return call(c, "CloseSession", &request.base, NULL, NULL);
}

/* ---- Steps ---- */

/* RunStepRequest: session_handle=1 feed=2 fetch=3 target=4 options=5 partial_run_handle=6 store_errors_in_response_body=7 request_id=8. */
static void put_step(const MasterClient *c, const ClientStep *step, Message *out) {
    const RunSignature *sig = &step->signature;
    StrBuf b = {0};
    wire_put_bytes(&b, 1, str_of(c->handle));
    for (int i = 0; i < sig->fetch_count; i++) wire_put_bytes(&b, 3, sig->fetches[i]);
    for (int i = 0; i < sig->target_count; i++) wire_put_bytes(&b, 4, sig->targets[i]);
    wire_put_bytes(&b, 5, step->options);
    if (step->partial_handle.len) wire_put_bytes(&b, 6, step->partial_handle);
    wire_put_uint(&b, 7, 1);
    wire_put_uint(&b, 8, (uint64_t)random_id());
    size_t len = b.len;
    message_add_take(out, strbuf_detach(&b), len);
    for (int i = 0; i < sig->feed_count; i++) codec_add_named_tensor(out, 2, sig->feeds[i], step->feeds[i]);
}

/* One NamedTensorProto of the reply goes to every fetch of that name. */
static Error *take_tensor(Str named, const RunSignature *sig, Tensor **fetches) {
    Str name = STR(""), proto = STR("");
    WireReader r = wire_reader(named);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) name = r.bytes;
        if (r.field == 2 && r.type == WIRE_BYTES) proto = r.bytes;
    }
    Tensor *value = NULL;
    Error *err = tensor_proto_decode(proto, &value);
    for (int i = 0; !err && i < sig->fetch_count; i++)
        if (!fetches[i] && str_eq(sig->fetches[i], name)) fetches[i] = tensor_ref(value);
    tensor_unref(value);
    return error_wrap(err, "fetch %.*s", STR_ARG(name));
}

/* RunStepResponse: tensor=1 metadata=2 status_code=3 status_error_message=4. */
static Error *take_reply(Message *reply, const RunSignature *sig, Tensor **fetches, StrBuf *metadata) {
    uint64_t code = 0;
    Str text = STR("");
    Error *err = NULL;
    WireReader r = wire_reader(message_flatten(reply));
    while (!err && wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) err = take_tensor(r.bytes, sig, fetches);
        if (r.field == 2 && r.type == WIRE_BYTES && metadata) strbuf_add(metadata, r.bytes);
        if (r.field == 3 && r.type == WIRE_VARINT) code = r.number;
        if (r.field == 4 && r.type == WIRE_BYTES) text = r.bytes;
    }
    if (!err && r.failed) err = error_internal("Malformed RunStepResponse");
    if (!err && code) err = error_new(code <= CODE_UNAUTHENTICATED ? (ErrorCode)code : CODE_UNKNOWN, "%.*s", STR_ARG(text));
    for (int i = 0; !err && i < sig->fetch_count; i++)
        if (!fetches[i]) err = error_internal("The master did not send the fetch %.*s", STR_ARG(sig->fetches[i]));
    return err;
}

static Error *step_timeout(const MasterClient *c, Str options, int64_t *timeout_ms) {
    Pb__RunOptions *parsed = pb__run_options__unpack(NULL, options.len, (const uint8_t *)options.ptr);
    if (!parsed) return error_invalid("Unparseable RunOptions proto");
    *timeout_ms = parsed->timeout_in_ms ? parsed->timeout_in_ms : c->base.timeout_ms;
    pb__run_options__free_unpacked(parsed, NULL);
    return NULL;
}

static Error *run(ClientSession *base, const ClientStep *step, Tensor **fetches, StrBuf *metadata) {
    MasterClient *c = (MasterClient *)base;
    int64_t timeout_ms = 0;
    Error *err = step_timeout(c, step->options, &timeout_ms);
    if (err) return err;
    int count = step->signature.fetch_count;
    for (int i = 0; i < count; i++) fetches[i] = NULL;
    Message request = {0}, reply = {0};
    put_step(c, step, &request);
    err = call_bytes(c, "RunStep", &request, timeout_ms, &reply);
    if (!err) err = take_reply(&reply, &step->signature, fetches, metadata);
    message_clear(&reply);
    for (int i = 0; err && i < count; i++) {
        tensor_unref(fetches[i]);
        fetches[i] = NULL;
    }
    return err;
}

static char **texts_of(const Str *items, int count) {
    char **texts = xcalloc((size_t)count, sizeof *texts);
    for (int i = 0; i < count; i++) texts[i] = str_dup(items[i]);
    return texts;
}

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; i < count; i++) free(texts[i]);
    free(texts);
}

static Error *partial_setup(ClientSession *base, const RunSignature *sig, char **handle) {
    MasterClient *c = (MasterClient *)base;
    Pb__PartialRunSetupRequest request = PB__PARTIAL_RUN_SETUP_REQUEST__INIT;
    request.session_handle = c->handle;
    request.feed = texts_of(sig->feeds, sig->feed_count);
    request.n_feed = (size_t)sig->feed_count;
    request.fetch = texts_of(sig->fetches, sig->fetch_count);
    request.n_fetch = (size_t)sig->fetch_count;
    request.target = texts_of(sig->targets, sig->target_count);
    request.n_target = (size_t)sig->target_count;
    request.request_id = random_id();
    ProtobufCMessage *reply = NULL;
    Error *err = call(c, "PartialRunSetup", &request.base, &pb__partial_run_setup_response__descriptor, &reply);
    if (!err) {
        *handle = xstrdup(((Pb__PartialRunSetupResponse *)reply)->partial_run_handle);
        protobuf_c_message_free_unpacked(reply, NULL);
    }
    free_texts(request.feed, request.n_feed);
    free_texts(request.fetch, request.n_fetch);
    free_texts(request.target, request.n_target);
    return err;
}

static const ClientSessionKind master_client_kind = {
    .extend = extend,
    .run = run,
    .partial_setup = partial_setup,
    .devices = devices,
    .close = close_session,
    .free = client_free,
};

Error *master_client_open(const ClientSessionOptions *options, Str graph_def, ClientSession **out) {
    MasterClient *c;
    Error *err = client_new(options, &c);
    if (err) return err;
    c->base.kind = &master_client_kind;
    err = create_session(c, options, graph_def);
    if (err)
        client_free(&c->base);
    else
        *out = &c->base;
    return err;
}

Error *master_client_reset(const ClientSessionOptions *options, const Str *containers, int count) {
    MasterClient *c;
    Error *err = client_new(options, &c);
    if (err) return err;
    Pb__ConfigProto *config = NULL;
    err = client_config(options->config, &config);
    Pb__ResetRequest request = PB__RESET_REQUEST__INIT;
    request.container = texts_of(containers, count);
    request.n_container = (size_t)count;
    if (!err) {
        request.device_filters = config->device_filters;
        request.n_device_filters = config->n_device_filters;
        err = call(c, "Reset", &request.base, NULL, NULL);
        pb__config_proto__free_unpacked(config, NULL);
    }
    free_texts(request.container, request.n_container);
    client_free(&c->base);
    return err;
}
