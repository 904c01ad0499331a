/* client_graph.c: from the placed graph of a session to handles at its workers. */
#include "cluster/client_graph.h"

#include <stdlib.h>

#include "base/fingerprint.h"
#include "base/memory.h"
#include "cluster/codec.h"
#include "cluster/worker_client.h"
#include "graph/graph_def.h"
#include "runtime/evaluate.h"

static void add_names(StrBuf *out, char mark, const Str *names, int count) {
    for (int i = 0; i < count; i++) {
        strbuf_addc(out, mark);
        strbuf_add(out, names[i]);
    }
}

void signature_key(const RunSignature *s, StrBuf *out) {
    add_names(out, '<', s->feeds, s->feed_count);
    add_names(out, '>', s->fetches, s->fetch_count);
    add_names(out, '!', s->targets, s->target_count);
    for (int i = 0; i < s->connection_count; i++) {
        add_names(out, '(', &s->connections[i].from, 1);
        add_names(out, ')', &s->connections[i].to, 1);
    }
}

static const Str *copy_strings(Arena *a, const Str *from, int count) {
    Str *to = arena_calloc(a, (size_t)count, sizeof *to);
    for (int i = 0; i < count; i++) to[i] = arena_str(a, from[i]);
    return to;
}

void signature_copy(Arena *a, const RunSignature *from, RunSignature *to) {
    *to = *from;
    to->feeds = copy_strings(a, from->feeds, from->feed_count);
    to->fetches = copy_strings(a, from->fetches, from->fetch_count);
    to->targets = copy_strings(a, from->targets, from->target_count);
    Connection *connections = arena_calloc(a, (size_t)from->connection_count, sizeof *connections);
    for (int i = 0; i < from->connection_count; i++) connections[i] = (Connection){arena_str(a, from->connections[i].from), arena_str(a, from->connections[i].to)};
    to->connections = connections;
}

static Str *keys_of(Arena *a, const ClientDevice *client, const Str *names, int count) {
    Str *keys = arena_calloc(a, (size_t)count, sizeof *keys);
    for (int i = 0; i < count; i++) {
        char *key = client_key(client, names[i]);
        keys[i] = arena_str(a, str_of(key));
        free(key);
    }
    return keys;
}

/* Which fetches need which feeds: walks back from each fetch's _Send to the feeds' _Recv nodes. */
static void find_needs(ClientGraph *cg, const Graph *pruned) {
    const RunSignature *s = &cg->signature;
    cg->computable = arena_calloc(cg->arena, (size_t)s->fetch_count * (size_t)s->feed_count, sizeof(bool));
    bool *seen = xcalloc((size_t)pruned->node_count, sizeof *seen);
    Node **stack = xcalloc((size_t)pruned->node_count, sizeof *stack);
    for (int f = 0; f < s->fetch_count; f++) {
        int depth = 0;
        for (int i = 0; i < pruned->node_count; i++) {
            Str name = {0}, value;
            Node *n = pruned->nodes[i];
            seen[i] = node_is(n, "_Send") && node_attr(n, "tensor_name", &value) && attr_string(value, &name) && str_eq(name, s->fetches[f]);
            if (seen[i]) stack[depth++] = n;
        }
        while (depth) {
            Node *n = stack[--depth];
            Str name = {0}, value;
            if (node_is(n, "_Recv") && node_attr(n, "tensor_name", &value) && attr_string(value, &name))
                for (int i = 0; i < s->feed_count; i++)
                    if (str_eq(name, s->feeds[i])) cg->computable[f * s->feed_count + i] = true;
            for (int i = 0; i < n->input_count + n->control_count; i++) {
                Node *src = i < n->input_count ? n->inputs[i].node : n->controls[i - n->input_count];
                if (seen[src->id]) continue;
                seen[src->id] = true;
                stack[depth++] = src;
            }
        }
    }
    free(stack);
    free(seen);
}

/* ---- Collectives ---- */

static int by_key(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The key under which masters agree on steps, as TensorFlow's masters make it of the instance keys: theirs may run the same collectives. */
static int64_t collective_key(const Graph *g) {
    int32_t *keys = xcalloc((size_t)g->node_count, sizeof *keys);
    size_t count = 0;
    bool has_any = false;
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        int64_t key;
        Str value;
        if (!str_starts(n->op, STR("Collective")) || node_is(n, "CollectivePermute") || node_is(n, "CollectiveAssignGroupV2")) continue;
        has_any = true;
        if (node_attr(n, "instance_key", &value) && attr_int(value, &key)) keys[count++] = (int32_t)key;
    }
    qsort(keys, count, sizeof *keys, by_key);
    uint64_t hash = has_any ? 0x8774aa605c729c72ull : 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || keys[i] != keys[i - 1]) hash = hash64_combine((uint64_t)(int64_t)keys[i], hash);
    free(keys);
    return (int64_t)hash;
}

/* ---- Registering ---- */

static void encode_part(const Graph *part, const SessionTasks *t, StrBuf *out) {
    Str *names = xcalloc((size_t)t->device_count, sizeof *names);
    for (int i = 0; i < t->device_count; i++) names[i] = t->partition[i].name;
    graph_export(part, &(GraphExport){.strip_defaults = true, .device_names = names}, out);
    free(names);
}

static Error *register_local(ClientGraph *cg, WorkerClient *c, Str graph_def, const ClientGraphOptions *o) {
    char *handle;
    Error *err = worker_session_register(c->session, graph_def, o->passes, o->debug, &handle);
    if (err) return err;
    cg->handles[0] = arena_str(cg->arena, str_of(handle));
    free(handle);
    return NULL;
}

static void start_register(WorkerCalls *calls, int task, WorkerClient *c, const ClientGraph *cg, const ClientGraphOptions *o, StrBuf *graph_def) {
    Pb__RegisterGraphRequest request = PB__REGISTER_GRAPH_REQUEST__INIT;
    request.session_handle = (char *)o->session_handle.ptr;
    request.create_worker_session_called = true;
    request.graph_options = o->graph_options;
    request.debug_options = o->debug;
    request.collective_graph_key = cg->collective_graph_key;
    Pb__ConfigProtoExperimental experimental = PB__CONFIG_PROTO_EXPERIMENTAL__INIT;
    Pb__ConfigProto config = PB__CONFIG_PROTO__INIT;
    experimental.collective_group_leader = (char *)o->group_leader;
    config.experimental = &experimental;
    if (*o->group_leader) request.config_proto = &config;
    request.graph_def = (ProtobufCBinaryData){graph_def->len, (uint8_t *)graph_def->ptr};
    Message m = {0};
    codec_pack(&request.base, &m);
    worker_calls_start(calls, task, c, "RegisterGraph", &m, (CallOptions){0});
}

static Error *read_handle(ClientGraph *cg, int task, Message *reply) {
    ProtobufCMessage *m;
    Error *err = codec_unpack(&pb__register_graph_response__descriptor, reply, &m);
    if (err) return err;
    cg->handles[task] = arena_str(cg->arena, str_of(((Pb__RegisterGraphResponse *)m)->graph_handle));
    protobuf_c_message_free_unpacked(m, NULL);
    return NULL;
}

static Error *register_parts(ClientGraph *cg, Graph **parts, const ClientGraphOptions *o) {
    SessionTasks *t = o->tasks;
    WorkerCalls *calls = worker_calls_new(t->task_count);
    Error *err = NULL;
    for (int i = t->task_count - 1; i >= 0; i--) { /* the remote ones first: they work while we register our own */
        if (!parts[i] || err) continue;
        StrBuf graph_def = {0};
        encode_part(parts[i], t, &graph_def);
        if (i == 0)
            err = register_local(cg, &t->tasks[0], strbuf_str(&graph_def), o);
        else
            start_register(calls, i, &t->tasks[i], cg, o, &graph_def);
        strbuf_clear(&graph_def);
        cg->part_count++;
    }
    worker_calls_wait_or_stop(calls, o->stop);
    for (int i = 1; !err && i < t->task_count; i++) {
        if (!parts[i]) continue;
        Error *call_error = worker_calls_error(calls, i);
        err = call_error ? error_wrap(error_copy(call_error), "RegisterGraph at %s (%s)", t->tasks[i].task_name, t->tasks[i].address)
                         : read_handle(cg, i, worker_calls_reply(calls, i));
    }
    worker_calls_free(calls);
    return err;
}

/* A graph that stays in one task is optimized there; what crosses between tasks has to be known to be equal before it is cut. */
static bool is_split(const Graph *g, const SessionTasks *t) {
    for (int i = 1; i < g->node_count; i++)
        if (t->partition[g->nodes[i]->placed].task != t->partition[g->nodes[0]->placed].task) return true;
    return false;
}

/* The parts go over the wire: what only a plan understands is left to those who make one. */
static Error *optimize(Graph *pruned, const ClientGraphOptions *o) {
    WorkerSession *own = o->tasks->tasks[0].session;
    PassOptions passes = *o->passes;
    passes.disabled |= PASS_FUSE;
    return graph_optimize_for(pruned, &passes, worker_session_devices(own), worker_session_state(own));
}

Error *client_graph_build(Graph *placed, const RunSignature *signature, Str key, const ClientGraphOptions *o, ClientGraph **out) {
    SessionTasks *t = o->tasks;
    ClientGraph *cg = xcalloc(1, sizeof *cg);
    refcount_init(&cg->refs);
    cg->arena = arena_new();
    cg->key = arena_str(cg->arena, key);
    cg->task_count = t->task_count;
    cg->handles = arena_calloc(cg->arena, (size_t)t->task_count, sizeof *cg->handles);
    signature_copy(cg->arena, signature, &cg->signature);
    cg->feed_keys = keys_of(cg->arena, &t->client, signature->feeds, signature->feed_count);
    cg->fetch_keys = keys_of(cg->arena, &t->client, signature->fetches, signature->fetch_count);
    Graph *pruned = NULL;
    Graph **parts = xcalloc((size_t)t->task_count, sizeof *parts);
    Error *err = graph_prune(placed, signature, &t->client, &pruned);
    if (!err && o->partial) find_needs(cg, pruned);
    if (!err) cg->collective_graph_key = collective_key(pruned);
    if (!err && !o->debug && is_split(pruned, t)) err = optimize(pruned, o);
    bool *pushed_to = arena_calloc(cg->arena, (size_t)t->task_count, sizeof *pushed_to);
    for (int i = 1; i < t->task_count; i++) pushed_to[i] = t->tasks[i].takes_tensors;
    PartitionOptions options = {.pushed_to = pushed_to, .devices = t->partition, .device_count = t->device_count, .task_count = t->task_count,
                                .bfloat16_edges = o->bfloat16_edges, .edge_count = &t->edge_count};
    if (!err) err = graph_partition(pruned, &options, parts);
    if (!err) err = register_parts(cg, parts, o);
    for (int i = 0; i < t->task_count; i++) graph_free(parts[i]);
    free(parts);
    graph_free(pruned);
    if (err)
        client_graph_unref(cg);
    else
        *out = cg;
    return err;
}

void client_graph_deregister(ClientGraph *g, const ClientGraphOptions *o) {
    enum { WAIT_MS = 10000 };
    for (int i = 0; i < g->task_count; i++) {
        if (!g->handles[i].ptr) continue;
        if (i == 0) {
            error_free(worker_session_deregister(o->tasks->tasks[0].session, g->handles[0]));
            continue;
        }
        Pb__DeregisterGraphRequest request = PB__DEREGISTER_GRAPH_REQUEST__INIT;
        request.session_handle = (char *)o->session_handle.ptr;
        request.graph_handle = (char *)g->handles[i].ptr;
        request.create_worker_session_called = true;
        worker_client_post(&o->tasks->tasks[i], "DeregisterGraph", &request.base, WAIT_MS);
    }
}

void client_graph_unref(ClientGraph *g) {
    if (!g || !refcount_dec(&g->refs)) return;
    arena_free(g->arena);
    free(g);
}
