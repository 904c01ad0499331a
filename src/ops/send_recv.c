/* send_recv.c: _Send and _Recv, which join the parts of a step through its rendezvous. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ops/op_list.h"
#include "ops/session_handle.h"
#include "runtime/device.h"
#include "runtime/rendezvous.h"
#include "runtime/step_context.h"

#define KEY_ATTRS \
    "tensor_name: string; send_device: string; send_device_incarnation: int; recv_device: string; client_terminated: bool = false"

const OpDef send_recv_ops[] = {
    {"_Send", "tensor: T ->", "T: type; " KEY_ATTRS, OP_STATEFUL},
    {"_HostSend", "tensor: T ->", "T: type; " KEY_ATTRS, OP_STATEFUL},
    {"_Recv", "-> tensor: tensor_type", "tensor_type: type; " KEY_ATTRS, OP_STATEFUL},
    {"_HostRecv", "-> tensor: tensor_type", "tensor_type: type; " KEY_ATTRS, OP_STATEFUL},
    {0},
};

typedef struct Endpoint {
    char *prefix;   /* the key up to the frame */
    char *root_key; /* the whole key outside loops */
    bool remote;    /* the producer is another task, and must be asked */
    bool pushed;    /* it sends unasked */
} Endpoint;

/* "/job:ps/replica:0/task:0" of "/job:ps/replica:0/task:0/device:CPU:0". */
static Str task_of(Str device) {
    for (size_t i = device.len; i > 0; i--)
        if (device.ptr[i - 1] == '/') return str_slice(device, 0, i - 1);
    return device;
}

static Error *endpoint_init(const Node *node, void *state) {
    Endpoint *e = state;
    Str tensor_name, send_device, recv_device;
    int64_t incarnation;
    Error *err = node_attr_string(node, "tensor_name", &tensor_name);
    if (!err) err = node_attr_string(node, "send_device", &send_device);
    if (!err) err = node_attr_string(node, "recv_device", &recv_device);
    if (!err) err = node_attr_int(node, "send_device_incarnation", &incarnation);
    if (err) return err;
    e->prefix = xasprintf("%.*s;%016llx;%.*s;%.*s;", STR_ARG(send_device), (unsigned long long)incarnation, STR_ARG(recv_device), STR_ARG(tensor_name));
    e->root_key = xasprintf("%s0:0", e->prefix);
    Str pushed;
    e->pushed = node_attr(node, "_pushed", &pushed);
    e->remote = !e->pushed && !str_eq(task_of(send_device), task_of(recv_device));
    return NULL;
}

static void endpoint_clear(void *state) {
    Endpoint *e = state;
    free(e->prefix);
    free(e->root_key);
}

/* The key of the running iteration; *owned must be freed. */
static Str key_of(KernelContext *k, char **owned) {
    const Endpoint *e = k->state;
    *owned = NULL;
    if (k->frame_id == 0 && k->iteration == 0) return str_of(e->root_key);
    *owned = xasprintf("%s%llu:%lld", e->prefix, (unsigned long long)k->frame_id, (long long)k->iteration);
    return str_of(*owned);
}

static Error *run_send(KernelContext *k) {
    Tensor *host = NULL; /* values travel in host memory */
    Error *err = k->dead ? NULL : k->device->kind->copy_out(k->device, k->in[0], &host);
    if (err) return err;
    char *owned;
    Str key = key_of(k, &owned);
    bool pushed = ((const Endpoint *)k->state)->pushed;
    err = (pushed ? rendezvous_push : rendezvous_send)(k->step->rendezvous, key, host, k->dead);
    tensor_unref(host);
    free(owned);
    return err;
}

static void received(void *arg, Error *err, Tensor *value, bool is_dead) {
    KernelContext *k = arg;
    Tensor *own = NULL;
    if (!err && !is_dead && value->dtype == DT_RESOURCE && kernel_output_type(k, 0) != DT_RESOURCE) {
        Tensor *kept = NULL;
        err = session_handle_value(k, value, &kept);
        if (err || kept) tensor_unref(value);
        if (kept) value = kept;
    }
    if (!err && !is_dead) {
        err = value->dtype == kernel_output_type(k, 0)
                  ? k->device->kind->copy_in(k->device, value, &own)
                  : error_invalid("Received a tensor of type %s where %s was expected", dtype_name(value->dtype), dtype_name(kernel_output_type(k, 0)));
        tensor_unref(value);
        if (!err) kernel_set_output(k, 0, own);
    }
    kernel_done(k, err);
}

/* A receive of a traced step: its transfer becomes a row of its own. */
typedef struct TracedRecv {
    KernelContext *k;
    int64_t start_ns;
    char *key;
} TracedRecv;

static void put_size(StrBuf *label, double bytes) {
    if (bytes >= 0.1 * 1048576)
        strbuf_addf(label, "[%.1fMB] ", bytes / 1048576);
    else
        strbuf_addf(label, "[%.0fB] ", bytes);
}

static void received_traced(void *arg, Error *err, Tensor *value, bool is_dead) {
    TracedRecv *t = arg;
    KernelContext *k = t->k;
    RendezvousKey key;
    if (!err && rendezvous_key_parse(str_of(t->key), &key)) {
        double bytes = value ? (double)tensor_bytes(value) : 0;
        int64_t end_ns = clock_wall_ns();
        StrBuf label = {0};
        put_size(&label, bytes);
        strbuf_addf(&label, "[%.2fMb/s] %.*s from %.*s to %.*s", bytes * 8000 / (double)(end_ns - t->start_ns + 1), STR_ARG(key.edge), STR_ARG(key.src_device),
                    STR_ARG(key.dst_device));
        step_stats_add(k->step->stats, &(NodeTiming){.node = STR("RecvTensor"), .op = STR("RecvTensor"), .label = strbuf_str(&label),
                                                     .device = key.dst_device, .scheduled_ns = t->start_ns, .start_ns = t->start_ns, .end_ns = end_ns});
        strbuf_clear(&label);
    }
    free(t->key);
    free(t);
    received(k, err, value, is_dead);
}

static TracedRecv *traced_new(Str key, KernelContext *waiting) {
    TracedRecv *t = xmalloc(sizeof *t);
    *t = (TracedRecv){waiting, clock_wall_ns(), str_dup(key)};
    return t;
}

static Error *run_recv(KernelContext *k) {
    const Endpoint *e = k->state;
    char *owned;
    Str key = key_of(k, &owned);
    Rendezvous *r = k->step->rendezvous;
    KernelContext *waiting = kernel_defer(k);
    bool is_traced = (e->remote || e->pushed) && waiting->step->stats;
    (e->remote ? rendezvous_recv_remote : rendezvous_recv)(r, key, is_traced ? received_traced : received, is_traced ? (void *)traced_new(key, waiting) : waiting);
    free(owned);
    return NULL;
}

enum { RECV_FLAGS = KERNEL_DEFERS | KERNEL_SKIPS | KERNEL_RUNS_DEAD };

const KernelDef send_recv_cpu[] = {
    {"_Send", .run = run_send, .state_size = sizeof(Endpoint), .init = endpoint_init, .clear = endpoint_clear, .flags = KERNEL_RUNS_DEAD},
    {"_HostSend", .run = run_send, .state_size = sizeof(Endpoint), .init = endpoint_init, .clear = endpoint_clear, .flags = KERNEL_RUNS_DEAD},
    {"_Recv", .run = run_recv, .state_size = sizeof(Endpoint), .init = endpoint_init, .clear = endpoint_clear, .flags = RECV_FLAGS},
    {"_HostRecv", .run = run_recv, .state_size = sizeof(Endpoint), .init = endpoint_init, .clear = endpoint_clear, .flags = RECV_FLAGS},
    {0},
};
