/* loopback_cluster.h: several servers in one process and a client that speaks MasterService to them, for tests: without sockets, or with them. */
#pragma once
#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cluster/server.h"
#include "graph_builder.h"
#include "net/transport.h"
#include "ops/op_list.h"
#include "unit_test.h"

enum { PATIENCE_MS = 60000, MAX_TASKS = 8 };

typedef struct Cluster {
    LoopbackNetwork *network;
    ClusterSpec spec;
    Server *servers[MAX_TASKS]; /* by task of the spec; NULL: not running */
    Transport *client;
    Channel *channels[MAX_TASKS];
    int64_t session_timeout_ms;
} Cluster;

static bool cluster_has_sockets; /* of clusters made from now on */

static inline Transport *cluster_transport(Cluster *c) {
    Transport *t = NULL;
    if (!cluster_has_sockets) return transport_loopback_new(c->network);
    expect_ok(transport_grpc_new(NULL, &t));
    return t;
}

/* A port nobody listens on, below those of outgoing connections: a task that restarts must find it free. */
static inline int free_port(void) {
    static unsigned tries;
    for (;;) {
        struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int port = 12000 + (int)(((unsigned)getpid() * 211u + tries++ * 7u) % 20000u);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        name.sin_port = htons((uint16_t)port);
        bool is_free = bind(fd, (struct sockaddr *)&name, sizeof name) == 0;
        close(fd);
        if (is_free) return port;
    }
}

static inline void cluster_start_task(Cluster *c, int i) {
    ServerConfig config = {.cluster = &c->spec, .job = str_of(c->spec.tasks[i].job), .task = c->spec.tasks[i].index, .threads = 2, .session_timeout_ms = c->session_timeout_ms};
    expect_ok(server_start(&config, cluster_transport(c), &c->servers[i]));
}

static inline void cluster_stop_task(Cluster *c, int i) {
    server_stop(c->servers[i], 0);
    c->servers[i] = NULL;
}

/* ps tasks first, then workers. */
static inline Cluster *cluster_new(int ps, int workers, int64_t session_timeout_ms) {
    Cluster *c = xcalloc(1, sizeof *c);
    ops_register_all();
    c->network = loopback_network_new();
    c->session_timeout_ms = session_timeout_ms;
    for (int i = 0; i < ps + workers; i++) {
        char address[32];
        snprintf(address, sizeof address, "127.0.0.1:%d", cluster_has_sockets ? free_port() : 2001 + i);
        expect_ok(cluster_spec_add(&c->spec, i < ps ? STR("ps") : STR("worker"), i < ps ? i : i - ps, str_of(address)));
    }
    c->client = cluster_transport(c);
    for (int i = 0; i < c->spec.count; i++) c->channels[i] = transport_channel(c->client, str_of(c->spec.tasks[i].address));
    return c;
}

static inline void cluster_free(Cluster *c) {
    for (int i = 0; i < c->spec.count; i++) {
        cluster_stop_task(c, i);
        channel_unref(c->channels[i]);
    }
    transport_free(c->client);
    loopback_network_free(c->network);
    cluster_spec_clear(&c->spec);
    free(c);
}

/* ---- Calls ---- */

/* Takes the request; the reply is the caller's to clear. */
static inline Error *call_master(Cluster *c, int task, const char *method, StrBuf *request, Message *reply) {
    char path[100];
    snprintf(path, sizeof path, "/tensorflow.MasterService/%s", method);
    Message m = {0};
    message_add_copy(&m, strbuf_str(request));
    strbuf_clear(request);
    return channel_call_wait(c->channels[task], path, &m, (CallOptions){.timeout_ms = PATIENCE_MS}, reply);
}

static inline Str reply_field(Message *reply, uint32_t field, uint64_t *number) {
    Str found = {"", 0};
    WireReader r = wire_reader(message_flatten(reply));
    while (wire_next(&r)) {
        if (r.field != field) continue;
        if (r.type == WIRE_BYTES) found = r.bytes;
        if (number) *number = r.number;
    }
    return found;
}

/* Opens a session at a task; takes the graph out of the builder. `config` is a serialised ConfigProto. */
static inline Error *create_session_with(Cluster *c, int task, GraphBuilder *b, Str config, char **handle) {
    StrBuf request = {0};
    Message reply = {0};
    wire_put_bytes(&request, 1, gb_graph(b));
    if (config.len) wire_put_bytes(&request, 2, config);
    gb_clear(b);
    Error *err = call_master(c, task, "CreateSession", &request, &reply);
    if (!err) *handle = str_dup(reply_field(&reply, 1, NULL));
    message_clear(&reply);
    return err;
}

static inline char *create_session(Cluster *c, int task, GraphBuilder *b) {
    char *handle = NULL;
    expect_ok(create_session_with(c, task, b, STR(""), &handle));
    return handle;
}

/* Takes the handle. */
static inline Error *close_session(Cluster *c, int task, char *handle) {
    StrBuf request = {0};
    Message reply = {0};
    wire_put_bytes(&request, 1, str_of(handle));
    free(handle);
    Error *err = call_master(c, task, "CloseSession", &request, &reply);
    message_clear(&reply);
    return err;
}

/* One RunStep. Lists are comma separated, NULL or "" for none. */
typedef struct Run {
    const char *fetches, *targets;
    const char *feed; /* one tensor */
    Tensor *value;    /* borrowed */
    int64_t timeout_ms, request_id;
    const char *partial_handle;
    bool error_in_body;
} Run;

static inline void put_list(StrBuf *b, uint32_t field, const char *list) {
    Str rest = str_of(list);
    while (rest.len) wire_put_bytes(b, field, str_next(&rest, ','));
}

static inline void put_named_tensor(StrBuf *b, uint32_t field, const char *name, const Tensor *t) {
    StrBuf named = {0}, bytes = {0};
    tensor_proto_encode(t, &bytes);
    wire_put_bytes(&named, 1, str_of(name));
    wire_put_bytes(&named, 2, strbuf_str(&bytes));
    wire_put_bytes(b, field, strbuf_str(&named));
    strbuf_clear(&bytes);
    strbuf_clear(&named);
}

static inline void encode_run(StrBuf *request, const char *handle, const Run *run) {
    wire_put_bytes(request, 1, str_of(handle));
    if (run->feed) put_named_tensor(request, 2, run->feed, run->value);
    put_list(request, 3, run->fetches);
    put_list(request, 4, run->targets);
    if (run->timeout_ms) {
        StrBuf options = {0};
        wire_put_uint(&options, 2, (uint64_t)run->timeout_ms);
        wire_put_bytes(request, 5, strbuf_str(&options));
        strbuf_clear(&options);
    }
    if (run->partial_handle) wire_put_bytes(request, 6, str_of(run->partial_handle));
    if (run->error_in_body) wire_put_uint(request, 7, 1);
    if (run->request_id) wire_put_uint(request, 8, (uint64_t)run->request_id);
}

/* The tensors of field 1 of a reply: NamedTensorProto, or TensorProto when `bare`. At most `max`; how many. */
static inline int reply_tensors(Message *reply, bool bare, Tensor **out, int max) {
    int n = 0;
    WireReader r = wire_reader(message_flatten(reply));
    while (wire_next(&r)) {
        if (r.field != 1 || n == max) continue;
        Str tensor = r.bytes;
        if (!bare) {
            WireReader named = wire_reader(r.bytes);
            while (wire_next(&named))
                if (named.field == 2) tensor = named.bytes;
        }
        expect_ok(tensor_proto_decode(tensor, &out[n++]));
    }
    return n;
}

/* Runs a step; *out is the first fetch when asked for. Errors in the body become errors. */
static inline Error *run_step(Cluster *c, int task, const char *handle, const Run *run, Tensor **out) {
    StrBuf request = {0};
    Message reply = {0};
    encode_run(&request, handle, run);
    Error *err = call_master(c, task, "RunStep", &request, &reply);
    uint64_t code = 0;
    if (!err) {
        reply_field(&reply, 3, &code);
        if (code) err = error_new((ErrorCode)code, "%.*s", STR_ARG(reply_field(&reply, 4, NULL)));
    }
    if (!err && out) assert_int_equal(reply_tensors(&reply, false, out, 1), 1);
    message_clear(&reply);
    return err;
}

static inline float step_f32(Cluster *c, int task, const char *handle, const char *fetch) {
    Tensor *t = NULL;
    expect_ok(run_step(c, task, handle, &(Run){.fetches = fetch}, &t));
    float v = t->dtype == DT_INT32 ? (float)tensor_i32(t)[0] : tensor_f32(t)[0];
    tensor_unref(t);
    return v;
}

static inline void step_target(Cluster *c, int task, const char *handle, const char *target) {
    expect_ok(run_step(c, task, handle, &(Run){.targets = target}, NULL));
}

/* ---- A step in the background ---- */

typedef struct Background {
    Call *call;
    Latch done;
    Error *err;
} Background;

static inline void background_ended(void *arg, Error *err, Message *reply) {
    Background *b = arg;
    b->err = err;
    if (reply) message_clear(reply);
    latch_done(&b->done);
}

static inline void background_run(Background *b, Cluster *c, int task, const char *handle, const Run *run, int64_t call_timeout_ms) {
    StrBuf request = {0};
    Message m = {0};
    encode_run(&request, handle, run);
    message_add_copy(&m, strbuf_str(&request));
    strbuf_clear(&request);
    *b = (Background){0};
    latch_init(&b->done, 1);
    b->call = channel_call(c->channels[task], "/tensorflow.MasterService/RunStep", &m, (CallOptions){.timeout_ms = call_timeout_ms}, background_ended, b);
}

static inline Error *background_wait(Background *b) {
    assert_true(latch_wait_for(&b->done, PATIENCE_MS));
    call_unref(b->call);
    latch_clear(&b->done);
    return b->err;
}

/* ---- What a task holds ---- */

static inline int status_number(Cluster *c, int task, const char *name) {
    Message request = {0}, reply = {0};
    expect_ok(channel_call_wait(c->channels[task], "/rill.StatusService/Status", &request, (CallOptions){.timeout_ms = PATIENCE_MS}, &reply));
    Str text = message_flatten(&reply);
    cJSON *root = cJSON_ParseWithLength(text.ptr, text.len);
    cJSON *item = cJSON_GetObjectItem(root, name);
    assert_true(cJSON_IsNumber(item));
    int value = (int)item->valuedouble;
    cJSON_Delete(root);
    message_clear(&reply);
    return value;
}

/* Asks again and again until the number is as expected. */
static inline void await_number(Cluster *c, int task, const char *name, int expected) {
    int64_t deadline = clock_mono_ms() + 20000;
    int value;
    while ((value = status_number(c, task, name)) != expected) {
        if (clock_mono_ms() > deadline) {
            print_message("%s of %s is %d, not %d\n", name, c->spec.tasks[task].name, value, expected);
            assert_int_equal(value, expected);
        }
        sched_yield();
    }
}

/* Nothing is left of sessions, steps and calls at any running task. */
static inline void await_quiet(Cluster *c) {
    static const char *const names[] = {"client_sessions", "worker_sessions", "graphs", "steps_held", "runs", "calls_out"};
    for (int i = 0; i < c->spec.count; i++) {
        if (!c->servers[i]) continue;
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++) await_number(c, i, names[j], 0);
        await_number(c, i, "calls_in", 1); /* the question itself */
    }
}
