/* local_session.c: a ClientSession in this process: a task of its own, without sockets, whose master is called by function. */
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cluster/client_session_internal.h"
#include "cluster/debug.h"
#include "cluster/master.h"
#include "cluster/server.h"
#include "proto/wire.h"

typedef struct LocalSession {
    ClientSession base;
    LoopbackNetwork *network;
    Server *server;
    MasterSession *session; /* a reference */
    pthread_mutex_t extend_mutex; /* guards version: one extend at a time */
    int64_t version;
} LocalSession;

/* What the process decides of a ConfigProto: device_count=1 (map), intra_op_parallelism_threads=2. */
static void read_sizes(Str config, ServerConfig *out) {
    WireReader r = wire_reader(config);
    while (wire_next(&r)) {
        if (r.field == 2 && r.type == WIRE_VARINT) out->threads = (int)r.number;
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        Str key = STR("");
        int count = 0;
        WireReader entry = wire_reader(r.bytes);
        while (wire_next(&entry)) {
            if (entry.field == 1 && entry.type == WIRE_BYTES) key = entry.bytes;
            if (entry.field == 2 && entry.type == WIRE_VARINT) count = (int)entry.number;
        }
        if (str_is(key, "CPU")) out->cpu_devices = count;
    }
}

static Error *start_task(LocalSession *s, Str config) {
    ClusterSpec cluster = {0};
    Error *err = cluster_spec_add(&cluster, STR("localhost"), 0, STR("localhost:1"));
    ServerConfig server = {.cluster = &cluster, .job = STR("localhost")};
    read_sizes(config, &server);
    s->network = loopback_network_new();
    if (!err) err = server_start(&server, transport_loopback_new(s->network), &s->server);
    cluster_spec_clear(&cluster);
    return err;
}

static Error *extend(ClientSession *base, Str graph_def) {
    LocalSession *s = (LocalSession *)base;
    pthread_mutex_lock(&s->extend_mutex);
    Error *err = master_session_extend(s->session, graph_def, s->version, &s->version);
    pthread_mutex_unlock(&s->extend_mutex);
    return err;
}

/* RunMetadata: step_stats=1, cost_graph=2, partition_graphs=3. */
static void put_metadata(const RunReply *reply, StrBuf *out) {
    if (reply->step_stats.len) wire_put_bytes(out, 1, strbuf_str(&reply->step_stats));
    if (reply->cost_graph.len) wire_put_bytes(out, 2, strbuf_str(&reply->cost_graph));
    strbuf_add(out, strbuf_str(&reply->partition_graphs));
}

static Error *read_options(Str bytes, RunRequest *request) {
    Pb__RunOptions *options = pb__run_options__unpack(NULL, bytes.len, (const uint8_t *)bytes.ptr);
    if (!options) return error_invalid("Unparseable RunOptions proto");
    request->trace = options->trace_level > 0;
    request->partition_graphs = options->output_partition_graphs;
    request->debug_options = debug_options_of(bytes);
    if (options->timeout_in_ms) request->timeout_ms = options->timeout_in_ms;
    pb__run_options__free_unpacked(options, NULL);
    return NULL;
}

static Error *run(ClientSession *base, const ClientStep *step, Tensor **fetches, StrBuf *metadata) {
    LocalSession *s = (LocalSession *)base;
    RunRequest request = {.signature = step->signature, .feeds = step->feeds, .timeout_ms = base->timeout_ms};
    if (step->options.len) {
        Error *err = read_options(step->options, &request);
        if (err) return err;
    }
    RunReply reply = {0};
    Error *err = step->partial_handle.len ? master_session_partial_run(s->session, step->partial_handle, &request, NULL, &reply)
                                          : master_session_run(s->session, &request, NULL, &reply);
    for (int i = 0; !err && i < reply.fetch_count; i++) fetches[i] = tensor_ref(reply.fetches[i]);
    if (!err && metadata) put_metadata(&reply, metadata);
    run_reply_clear(&reply);
    return err;
}

static Error *partial_setup(ClientSession *base, const RunSignature *signature, char **handle) {
    return master_session_partial_setup(((LocalSession *)base)->session, signature, handle);
}

static Error *devices(ClientSession *base, ClientDeviceInfo **out, int *count) {
    const MasterSession *session = ((LocalSession *)base)->session;
    *count = master_session_device_count(session);
    *out = xcalloc((size_t)*count, sizeof **out);
    for (int i = 0; i < *count; i++) client_device_set(&(*out)[i], master_session_device(session, i));
    return NULL;
}

static Error *close_session(ClientSession *base) {
    LocalSession *s = (LocalSession *)base;
    return master_close_session(server_master(s->server), master_session_handle(s->session));
}

static void free_session(ClientSession *base) {
    LocalSession *s = (LocalSession *)base;
    master_session_unref(s->session);
    server_stop(s->server, 0);
    loopback_network_free(s->network);
    pthread_mutex_destroy(&s->extend_mutex);
    free(s);
}

static const ClientSessionKind local_kind = {
    .extend = extend,
    .run = run,
    .partial_setup = partial_setup,
    .devices = devices,
    .close = close_session,
    .free = free_session,
};

Error *local_session_open(const ClientSessionOptions *options, Str graph_def, ClientSession **out) {
    Pb__ConfigProto *config = NULL;
    char *handle = NULL;
    Error *err = client_config(options->config, &config);
    if (err) return err;
    LocalSession *s = xcalloc(1, sizeof *s);
    s->base.kind = &local_kind;
    s->base.timeout_ms = config->operation_timeout_in_ms;
    pthread_mutex_init(&s->extend_mutex, NULL);
    err = start_task(s, options->config);
    if (!err) err = master_create_session(server_master(s->server), graph_def, config, STR(""), &handle);
    if (!err) err = master_find_session(server_master(s->server), str_of(handle), &s->session);
    if (err)
        free_session(&s->base);
    else
        *out = &s->base;
    free(handle);
    pb__config_proto__free_unpacked(config, NULL);
    return err;
}
