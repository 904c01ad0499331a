/* worker_service.c: WorkerService: one row per method. */
#include "cluster/worker_service.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/refcount.h"
#include "cluster/codec.h"
#include "cluster/collective_service.h"
#include "cluster/pass_config.h"
#include "cluster/push.h"
#include "cluster/recv_service.h"
#include "cluster/services.h"
#include "proto/wire.h"
#include "proto/worker.pb-c.h"
#include "tensor/tensor_proto.h"

/* ---- Status and sessions ---- */

void device_attributes_fill(const Device *d, Str name, Pb__DeviceAttributes *out) {
    pb__device_attributes__init(out);
    out->name = (char *)name.ptr;
    out->device_type = (char *)d->kind->type;
    out->memory_limit = d->memory_limit;
    out->incarnation = d->incarnation;
    out->xla_global_id = -1;
}

static void get_status(void *arg, ServerCall *call) {
    Services *s = arg;
    const DeviceSet *devices = worker_devices(s->worker);
    Pb__GetStatusResponse reply = PB__GET_STATUS_RESPONSE__INIT;
    reply.forgets_ended_steps = true;
    reply.takes_tensors = true;
    Pb__DeviceAttributes *rows = xcalloc((size_t)devices->count, sizeof *rows);
    reply.device_attributes = xcalloc((size_t)devices->count, sizeof *reply.device_attributes);
    for (; reply.n_device_attributes < (size_t)devices->count; reply.n_device_attributes++) {
        size_t i = reply.n_device_attributes;
        device_attributes_fill(devices->devices[i], str_of(devices->devices[i]->name), &rows[i]);
        reply.device_attributes[i] = &rows[i];
    }
    service_reply(call, &reply.base);
    free(reply.device_attributes);
    free(rows);
}

static Error *create_session(Worker *w, const Pb__CreateWorkerSessionRequest *request) {
    ClusterSpec cluster = {0};
    char *task_name = NULL;
    Error *err = NULL;
    CreateWorkerSession create = {
        .handle = str_of(request->session_handle),
        .master_task = str_of(request->master_task),
        .master_incarnation = request->master_incarnation,
        .isolate = request->isolate_session_state,
    };
    if (request->server_def && request->server_def->cluster && request->server_def->cluster->n_job) {
        err = cluster_spec_from_def(request->server_def->cluster, &cluster);
        task_name = xasprintf("/job:%s/replica:0/task:%d", request->server_def->job_name, request->server_def->task_index);
        create.cluster = &cluster;
        create.task_name = str_of(task_name);
    }
    if (!err) err = worker_create_session(w, &create);
    cluster_spec_clear(&cluster);
    free(task_name);
    return err;
}

static void create_worker_session(void *arg, ServerCall *call) {
    Pb__CreateWorkerSessionRequest *request = service_request(call, &pb__create_worker_session_request__descriptor);
    if (!request) return;
    service_finish(call, create_session(((Services *)arg)->worker, request));
    service_free(request);
}

static void delete_worker_session(void *arg, ServerCall *call) {
    Pb__DeleteWorkerSessionRequest *request = service_request(call, &pb__delete_worker_session_request__descriptor);
    if (!request) return;
    worker_delete_session(((Services *)arg)->worker, str_of(request->session_handle));
    service_reply_empty(call);
    service_free(request);
}

/* ---- Graphs ---- */

static void register_graph(void *arg, ServerCall *call) {
    Pb__RegisterGraphRequest *request = service_request(call, &pb__register_graph_request__descriptor);
    if (!request) return;
    WorkerSession *session = NULL;
    char *handle = NULL;
    Error *err = worker_find_session(((Services *)arg)->worker, str_of(request->session_handle), &session);
    PassOptions passes = pass_options_read(request->graph_options);
    const Pb__ConfigProto *config = request->config_proto;
    if (!err && config && config->experimental) worker_session_set_leader(session, str_of(config->experimental->collective_group_leader));
    if (!err) err = worker_session_register(session, codec_str(request->graph_def), &passes, request->debug_options, &handle);
    if (err) {
        server_call_fail(call, err);
    } else {
        Pb__RegisterGraphResponse reply = PB__REGISTER_GRAPH_RESPONSE__INIT;
        reply.graph_handle = handle;
        service_reply(call, &reply.base);
    }
    free(handle);
    worker_session_unref(session);
    service_free(request);
}

static void deregister_graph(void *arg, ServerCall *call) {
    Pb__DeregisterGraphRequest *request = service_request(call, &pb__deregister_graph_request__descriptor);
    if (!request) return;
    WorkerSession *session = NULL;
    Error *err = worker_find_session(((Services *)arg)->worker, str_of(request->session_handle), &session);
    if (!err) err = worker_session_deregister(session, str_of(request->graph_handle));
    service_finish(call, err);
    worker_session_unref(session);
    service_free(request);
}

/* One RunGraph call: started on the thread that read it or on the compute pool, answered when the run ends. */
typedef struct RunGraphCall {
    RefCount refs; /* the starter, the run's end, a cancellation under way */
    Services *services;
    ServerCall *call;
    Pb__RunGraphRequest *request;
    WorkerSession *session;
    pthread_mutex_t mutex; /* guards all below */
    GraphRun *run;
    bool cancelled;
} RunGraphCall;

static void run_graph_unref(RunGraphCall *c) {
    if (!refcount_dec(&c->refs)) return;
    graph_run_unref(c->run);
    worker_session_unref(c->session);
    pthread_mutex_destroy(&c->mutex);
    service_free(c->request);
    free(c);
}

static void run_graph_reply(RunGraphCall *c, Error *err, RunGraphResult *result) {
    bool in_body = err && c->request->store_errors_in_response_body;
    if (err && !in_body) {
        server_call_fail(c->call, err);
        return;
    }
    Message reply = {0};
    if (in_body) {
        StrBuf b = {0};
        wire_put_uint(&b, 5, (uint64_t)err->code);
        wire_put_bytes(&b, 6, str_of(err->message));
        size_t len = b.len;
        message_add_take(&reply, strbuf_detach(&b), len);
        error_free(err);
    } else {
        for (int i = 0; i < result->count; i++) codec_add_named_tensor(&reply, 1, str_of(c->request->recv_key[i]), result->values[i]);
        if (result->step_stats.len) codec_add_bytes(&reply, 2, strbuf_str(&result->step_stats));
        if (result->cost_graph.len) codec_add_bytes(&reply, 3, strbuf_str(&result->cost_graph));
        if (result->partition_graph.len) codec_add_bytes(&reply, 4, strbuf_str(&result->partition_graph));
    }
    server_call_reply(c->call, &reply);
}

static void run_graph_done(void *arg, Error *err, RunGraphResult *result) {
    RunGraphCall *c = arg;
    bool cancelled = !server_call_unwatch(c->call);
    /* The master's CleanupGraph may have come before the run had started; or the master is gone. */
    if (cancelled) worker_cleanup_graph(c->services->worker, c->request->step_id);
    run_graph_reply(c, err, result);
    run_graph_unref(c);
}

static void cancel_run(RunGraphCall *c) {
    pthread_mutex_lock(&c->mutex);
    c->cancelled = true;
    GraphRun *run = c->run;
    pthread_mutex_unlock(&c->mutex);
    if (run) graph_run_cancel(run, error_derived(error_new(CODE_CANCELLED, "RunGraph was cancelled by the master")));
}

static void run_cancellation(void *arg) {
    cancel_run(arg);
    run_graph_unref(arg);
}

/* On a thread of the transport: the work of cancelling goes to the pool. */
static void run_graph_cancelled(void *arg) {
    RunGraphCall *c = arg;
    refcount_inc(&c->refs);
    threadpool_post(c->services->compute, run_cancellation, c);
}

static Error *decode_sends(const Pb__RunGraphRequest *r, Str *names, Tensor **values) {
    for (size_t i = 0; i < r->n_send; i++) {
        names[i] = str_of(r->send[i]->name);
        Error *err = tensor_proto_decode(codec_str(r->send[i]->tensor), &values[i]);
        if (err) return error_wrap(err, "send %s", r->send[i]->name);
    }
    return NULL;
}

static void start_run_graph(void *arg) {
    RunGraphCall *c = arg;
    const Pb__RunGraphRequest *r = c->request;
    Worker *w = c->services->worker;
    Str *send_names = xcalloc(r->n_send + r->n_recv_key, sizeof *send_names), *recv_keys = send_names + r->n_send;
    Tensor **values = xcalloc(r->n_send, sizeof *values);
    Error *err = worker_fresh_run_id(w, r->request_id) ? NULL : error_new(CODE_ABORTED, "The same RunGraph request was received twice.");
    if (!err) err = worker_find_session(w, str_of(r->session_handle), &c->session);
    if (!err) err = decode_sends(r, send_names, values);
    for (size_t i = 0; i < r->n_recv_key; i++) recv_keys[i] = str_of(r->recv_key[i]);
    if (err) {
        RunGraphResult none = {0};
        run_graph_reply(c, err, &none);
        run_graph_unref(c);
    } else {
        RunGraphRequest run = {
            .graph_handle = str_of(r->graph_handle),
            .step_id = r->step_id,
            .send_names = send_names,
            .send_values = values,
            .send_count = (int)r->n_send,
            .recv_keys = recv_keys,
            .recv_count = (int)r->n_recv_key,
            .record_timeline = r->exec_opts && r->exec_opts->record_timeline,
            .record_costs = r->exec_opts && r->exec_opts->record_costs,
            .record_partition_graphs = r->exec_opts && r->exec_opts->record_partition_graphs,
            .is_partial = r->is_partial,
            .is_last_partial = r->is_last_partial_run,
        };
        server_call_watch(c->call, run_graph_cancelled, c);
        GraphRun *started = worker_run_graph(w, c->session, &run, run_graph_done, c);
        pthread_mutex_lock(&c->mutex);
        c->run = started;
        bool cancelled = c->cancelled;
        pthread_mutex_unlock(&c->mutex);
        if (cancelled) cancel_run(c);
    }
    for (size_t i = 0; i < r->n_send; i++) tensor_unref(values[i]);
    free(values);
    free(send_names);
    run_graph_unref(c);
}

/* Another call came with it, which waits meanwhile. */
static bool starts_soon(Worker *w, const Pb__RunGraphRequest *r) {
    WorkerSession *session = NULL;
    Error *err = worker_find_session(w, str_of(r->session_handle), &session);
    Executable *e = err ? NULL : worker_session_graph(session, str_of(r->graph_handle));
    bool soon = e && executable_starts_soon(e);
    error_free(err);
    executable_unref(e);
    worker_session_unref(session);
    return soon;
}

static void run_graph(void *arg, ServerCall *call) {
    Pb__RunGraphRequest *request = service_request(call, &pb__run_graph_request__descriptor);
    if (!request) return;
    RunGraphCall *c = xcalloc(1, sizeof *c);
    refcount_init(&c->refs);
    refcount_inc(&c->refs);
    pthread_mutex_init(&c->mutex, NULL);
    c->services = arg;
    c->call = call;
    c->request = request;
    if (transport_thread_is_spare() || starts_soon(c->services->worker, request))
        start_run_graph(c);
    else
        threadpool_post(c->services->compute, start_run_graph, c);
}

static void cleanup_graph(void *arg, ServerCall *call) {
    Pb__CleanupGraphRequest *request = service_request(call, &pb__cleanup_graph_request__descriptor);
    if (!request) return;
    worker_cleanup_graph(((Services *)arg)->worker, request->step_id);
    service_reply_empty(call);
    service_free(request);
}

static void cleanup_all(void *arg, ServerCall *call) {
    Pb__CleanupAllRequest *request = service_request(call, &pb__cleanup_all_request__descriptor);
    if (!request) return;
    Str *containers = xcalloc(request->n_container, sizeof *containers);
    for (size_t i = 0; i < request->n_container; i++) containers[i] = str_of(request->container[i]);
    worker_cleanup_all(((Services *)arg)->worker, containers, (int)request->n_container);
    service_reply_empty(call);
    free(containers);
    service_free(request);
}

/* ---- The rest ---- */

static void answer_empty(void *arg, ServerCall *call) {
    (void)arg;
    service_reply_empty(call);
}

#define WORKER "/tensorflow.WorkerService/"

const Method worker_methods[] = {
    {WORKER "GetStatus", get_status, ON_READER, NULL},
    {WORKER "CreateWorkerSession", create_worker_session, ON_POOL, NULL},
    {WORKER "DeleteWorkerSession", delete_worker_session, ON_POOL, NULL},
    {WORKER "RegisterGraph", register_graph, ON_POOL, NULL},
    {WORKER "DeregisterGraph", deregister_graph, ON_POOL, NULL},
    {WORKER "RunGraph", run_graph, STAYING, NULL},
    {WORKER "CleanupGraph", cleanup_graph, ON_READER, NULL},
    {WORKER "CleanupAll", cleanup_all, ON_POOL, NULL},
    {WORKER "RecvTensor", recv_service_tensor, ON_READER, NULL},
    {WORKER "MarkRecvFinished", answer_empty, ON_READER, NULL},
    {WORKER "Logging", answer_empty, ON_READER, NULL},
    {WORKER "Tracing", answer_empty, ON_READER, NULL},
    {WORKER "RecvBuf", recv_service_buf, ON_READER, NULL},
    {PUSH_TENSOR_PATH, push_service, CONTINUING, codec_recv_tensor_align_at},
    {WORKER "CompleteGroup", collective_service_group, ON_READER, NULL},
    {WORKER "CompleteInstance", collective_service_instance, ON_READER, NULL},
    {WORKER "GetStepSequence", collective_service_step_sequence, ON_READER, NULL},
};
const int worker_method_count = sizeof worker_methods / sizeof worker_methods[0];
