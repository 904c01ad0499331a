/* session_tasks.c: finding the tasks of a session. */
#include "cluster/session_tasks.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "cluster/codec.h"
#include "cluster/worker_service.h"

enum { STOP_MS = 500, CLOSE_MS = 5000, FIRST_LOOK_MS = 1000 }; /* after that long a missing task is worth a line in the log */

Error *task_passes_filters(Str task_name, char **filters, size_t count, bool *passes) {
    DeviceName task, filter;
    Error *err = device_name_parse(task_name, &task);
    *passes = count == 0;
    for (size_t i = 0; !err && i < count; i++) {
        err = device_name_parse(str_of(filters[i]), &filter);
        filter.has_type = filter.has_id = false;
        if (!err && device_name_matches(&filter, &task)) *passes = true;
    }
    return error_wrap(err, "device filter");
}

static void add_task(SessionTasks *t, const ClusterTask *task, Worker *local, Peers *peers) {
    WorkerClient *c = &t->tasks[t->task_count++];
    *c = (WorkerClient){.task_name = xstrdup(task->name), .address = xstrdup(local ? "" : task->address), .local = local};
    if (!local) c->channel = peers_channel(peers, str_of(task->address));
}

static Error *choose_tasks(SessionTasks *t, const MasterOptions *o, const ClusterSpec *cluster, Str own_name, const Pb__ConfigProto *config) {
    const ClusterTask *own = cluster_spec_find_name(cluster, own_name);
    if (!own) return error_invalid("The master's task %.*s is not in the cluster", STR_ARG(own_name));
    t->tasks = xcalloc((size_t)cluster->count, sizeof *t->tasks);
    add_task(t, own, o->worker, o->peers);
    for (int i = 0; i < cluster->count; i++) {
        if (&cluster->tasks[i] == own) continue;
        bool passes = true;
        Error *err = config ? task_passes_filters(str_of(cluster->tasks[i].name), config->device_filters, config->n_device_filters, &passes) : NULL;
        if (err) return err;
        if (passes) add_task(t, &cluster->tasks[i], NULL, o->peers);
    }
    return NULL;
}

/* ---- GetStatus ---- */

/* "ps:0 at host:1 (last reason)" for every task that has not answered. */
static char *missing_tasks(SessionTasks *t, WorkerCalls *calls) {
    StrBuf b = {0};
    for (int i = 1; i < t->task_count; i++) {
        Error *err = worker_calls_error(calls, i);
        if (worker_calls_is_done(calls, i) && (!err || err->code != CODE_DEADLINE_EXCEEDED)) continue;
        char *reason = channel_last_error(t->tasks[i].channel);
        strbuf_addf(&b, "%s%s at %s (%s)", b.len ? ", " : "", t->tasks[i].task_name, t->tasks[i].address, reason ? reason : "no answer yet");
        free(reason);
    }
    return strbuf_detach(&b);
}

static void add_device(SessionTasks *t, int task, const Pb__DeviceAttributes *d) {
    size_t count = (size_t)t->device_count + 1;
    t->devices = xrealloc(t->devices, count * sizeof *t->devices);
    t->placer = xrealloc(t->placer, count * sizeof *t->placer);
    t->partition = xrealloc(t->partition, count * sizeof *t->partition);
    Pb__DeviceAttributes *copy = t->devices[count - 1] = xmalloc(sizeof *copy);
    *copy = *d;
    /* The task's name is the session's, whatever the task calls itself. */
    const char *device = d->name;
    for (const char *p = d->name; *p; p++)
        if (*p == '/') device = p;
    copy->name = xasprintf("%s%s", t->tasks[task].task_name, device);
    copy->device_type = xstrdup(d->device_type);
    copy->physical_device_desc = xstrdup(d->physical_device_desc);
    copy->locality = (ProtobufCBinaryData){0};
    PlacerDevice *p = &t->placer[count - 1];
    /* A device of a type we do not know belongs to an accelerator of another task; it is taken to run whatever it is given. */
    const DeviceKind *kind = device_kind_find(str_of(d->device_type));
    *p = (PlacerDevice){.name = str_of(copy->name), .is_local = task == 0, .priority = kind ? kind->priority : 100, .can_run = kind ? kind->can_run : NULL};
    Error *err = device_name_parse(p->name, &p->parsed);
    if (err) log_warn("device %s of %s is left out: %s", d->name, t->tasks[task].task_name, err->message);
    /* Devices that only a compiler can use take no nodes. */
    if (str_starts(str_of(d->device_type), STR("XLA_")) || str_is(str_of(d->device_type), "TPU_SYSTEM")) p->priority = -1;
    t->partition[count - 1] = (PartitionDevice){.name = p->name, .incarnation = d->incarnation, .task = task};
    if (!err && p->priority >= 0) {
        t->device_count++;
    } else {
        free(copy->name);
        free(copy->device_type);
        free(copy->physical_device_desc);
        free(copy);
    }
    error_free(err);
}

static Error *read_status(SessionTasks *t, int task, Message *reply) {
    ProtobufCMessage *m;
    Error *err = codec_unpack(&pb__get_status_response__descriptor, reply, &m);
    if (err) return error_wrap(err, "%s at %s", t->tasks[task].task_name, t->tasks[task].address);
    const Pb__GetStatusResponse *status = (Pb__GetStatusResponse *)m;
    for (size_t i = 0; i < status->n_device_attributes; i++) add_device(t, task, status->device_attributes[i]);
    t->tasks[task].forgets_ended_steps = status->forgets_ended_steps;
    t->tasks[task].takes_tensors = status->takes_tensors;
    protobuf_c_message_free_unpacked(m, NULL);
    return NULL;
}

static void stop_asking(void *calls) {
    worker_calls_cancel(calls);
}

static Error *ask_status(SessionTasks *t, int64_t timeout_ms, Cancel *stop) {
    WorkerCalls *calls = worker_calls_new(t->task_count);
    for (int i = 1; i < t->task_count; i++) {
        Message empty = {0};
        worker_calls_start(calls, i, &t->tasks[i], "GetStatus", &empty, (CallOptions){.timeout_ms = timeout_ms, .wait_for_ready = true});
    }
    CancelWatch watch;
    if (!cancel_watch(stop, &watch, stop_asking, calls)) {
        watch = (CancelWatch){0};
        worker_calls_cancel(calls);
    }
    if (!worker_calls_wait(calls, FIRST_LOOK_MS)) {
        char *missing = missing_tasks(t, calls);
        log_info("CreateSession waits up to %lld s for %s", (long long)timeout_ms / 1000, missing);
        free(missing);
        worker_calls_wait(calls, -1);
    }
    cancel_unwatch(stop, &watch);
    Error *err = cancel_reason(stop);
    char *missing = missing_tasks(t, calls);
    if (!err && *missing) /* not Unavailable: the client would silently ask ten times more */
        err = error_new(CODE_ABORTED,
                        "CreateSession: %lld s have passed and these tasks have not answered: %s. Start them, or leave them out of the session with ConfigProto.device_filters.",
                        (long long)timeout_ms / 1000, missing);
    free(missing);
    for (int i = 1; !err && i < t->task_count; i++) {
        Error *call_error = worker_calls_error(calls, i);
        err = call_error ? error_wrap(error_copy(call_error), "GetStatus of %s at %s", t->tasks[i].task_name, t->tasks[i].address)
                         : read_status(t, i, worker_calls_reply(calls, i));
    }
    worker_calls_free(calls);
    return err;
}

/* ---- CreateWorkerSession ---- */

/* A session with a cluster of its own is, unless it asks not to be. */
static bool is_isolated(const Pb__ConfigProto *config) {
    if (!config) return false;
    bool own_cluster = config->cluster_def && config->cluster_def->n_job;
    bool shares = config->experimental && config->experimental->share_session_state_in_clusterspec_propagation;
    return config->isolate_session_state || (own_cluster && !shares);
}

static Error *open_local(SessionTasks *t, Str handle, const Pb__ConfigProto *config, const ClusterSpec *own_cluster) {
    WorkerClient *c = &t->tasks[0];
    Error *err = worker_create_session(c->local, &(CreateWorkerSession){.handle = handle,
                                                                        .master_task = str_of(c->task_name),
                                                                        .master_incarnation = (int64_t)t->client.incarnation,
                                                                        .isolate = is_isolated(config),
                                                                        .task_name = str_of(c->task_name),
                                                                        .cluster = own_cluster});
    return err ? err : worker_find_session(c->local, handle, &c->session);
}

static void session_request(const SessionTasks *t, int task, Str handle, const Pb__ConfigProto *config, Pb__ClusterDef *cluster, Message *out) {
    Pb__CreateWorkerSessionRequest request = PB__CREATE_WORKER_SESSION_REQUEST__INIT;
    Pb__ServerDef server = PB__SERVER_DEF__INIT;
    DeviceName name;
    error_free(device_name_parse(str_of(t->tasks[task].task_name), &name));
    char *job = str_dup(name.job);
    server.job_name = job;
    server.task_index = name.task;
    server.protocol = (char *)"grpc";
    server.cluster = cluster;
    request.session_handle = (char *)handle.ptr;
    request.server_def = &server;
    request.isolate_session_state = is_isolated(config);
    request.master_task = t->tasks[0].task_name;
    request.master_incarnation = (int64_t)t->client.incarnation;
    if (config && config->share_cluster_devices_in_session) {
        request.cluster_device_attributes = t->devices;
        request.n_cluster_device_attributes = (size_t)t->device_count;
    }
    codec_pack(&request.base, out);
    free(job);
}

static Error *open_remote(SessionTasks *t, Str handle, const Pb__ConfigProto *config, const ClusterSpec *own_cluster, const MasterOptions *o) {
    Pb__ClusterDef *cluster = own_cluster ? cluster_spec_to_def(own_cluster) : NULL;
    WorkerCalls *calls = worker_calls_new(t->task_count);
    for (int i = 1; i < t->task_count; i++) {
        Message request = {0};
        session_request(t, i, handle, config, cluster, &request);
        worker_calls_start(calls, i, &t->tasks[i], "CreateWorkerSession", &request, (CallOptions){.timeout_ms = o->session_timeout_ms});
    }
    worker_calls_wait_or_stop(calls, o->stop);
    Error *err = NULL;
    for (int i = 1; !err && i < t->task_count; i++)
        err = error_wrap(error_copy(worker_calls_error(calls, i)), "CreateWorkerSession at %s (%s)", t->tasks[i].task_name, t->tasks[i].address);
    worker_calls_free(calls);
    if (cluster) pb__cluster_def__free_unpacked(cluster, NULL);
    return err;
}

/* The master's own place in a cluster that the client brought: the task at the address the client called. */
static Error *own_task_in(const ClusterSpec *cluster, Str target, const MasterOptions *o, Str *name) {
    Str address = str_starts(target, STR("grpc://")) ? str_slice(target, 7, target.len) : target;
    const ClusterTask *self = cluster_spec_find_name(o->cluster, o->task_name);
    for (int i = 0; i < cluster->count; i++) {
        if (!str_is(address, cluster->tasks[i].address) && !(self && str_is(str_of(self->address), cluster->tasks[i].address))) continue;
        *name = str_of(cluster->tasks[i].name);
        return NULL;
    }
    StrBuf tasks = {0};
    for (int i = 0; i < cluster->count; i++) strbuf_addf(&tasks, "%s%s at %s", i ? ", " : "", cluster->tasks[i].name, cluster->tasks[i].address);
    Error *err = error_invalid("The master (current machine) is not included in the provided cluster_def. It is called as %.*s; there are %s", STR_ARG(target), tasks.len ? tasks.ptr : "no tasks");
    strbuf_clear(&tasks);
    return err;
}

Error *session_tasks_open(SessionTasks *t, const MasterOptions *o, Str handle, const Pb__ConfigProto *config, Str target) {
    ClusterSpec brought = {0};
    bool has_own = config && config->cluster_def && config->cluster_def->n_job;
    Str own_name = o->task_name;
    Error *err = has_own ? cluster_spec_from_def(config->cluster_def, &brought) : NULL;
    if (!err && has_own) err = own_task_in(&brought, target, o, &own_name);
    if (!err) err = choose_tasks(t, o, has_own ? &brought : o->cluster, own_name, config);
    const DeviceSet *local = worker_devices(o->worker);
    for (int i = 0; !err && i < local->count; i++) {
        Pb__DeviceAttributes d;
        device_attributes_fill(local->devices[i], str_of(local->devices[i]->name), &d);
        add_device(t, 0, &d);
    }
    if (!err) t->client = (ClientDevice){t->partition[0].name, t->partition[0].incarnation, 0};
    if (!err) err = ask_status(t, o->session_timeout_ms, o->stop);
    for (int i = 0; !err && i < t->device_count; i++) { /* the arrays have moved while they grew */
        t->placer[i].name = t->partition[i].name = str_of(t->devices[i]->name);
        err = device_name_parse(t->placer[i].name, &t->placer[i].parsed);
    }
    if (!err) err = open_local(t, handle, config, has_own ? &brought : NULL);
    if (!err) err = open_remote(t, handle, config, has_own ? &brought : NULL, o);
    cluster_spec_clear(&brought);
    return err;
}

/* Waits for the answers: who stops next must not take the requests with it. */
void session_tasks_close(SessionTasks *t, Str handle, Cancel *stop) {
    Pb__DeleteWorkerSessionRequest request = PB__DELETE_WORKER_SESSION_REQUEST__INIT;
    request.session_handle = (char *)handle.ptr;
    WorkerCalls *calls = worker_calls_new(t->task_count);
    bool stopping = cancel_is_set(stop);
    for (int i = t->task_count - 1; i >= 0; i--) {
        Message m = {0};
        if (t->tasks[i].local) {
            worker_delete_session(t->tasks[i].local, handle);
        } else { /* a silent task must not hold up the end */
            codec_pack(&request.base, &m);
            worker_calls_start(calls, i, &t->tasks[i], "DeleteWorkerSession", &m, (CallOptions){.timeout_ms = stopping ? STOP_MS : CLOSE_MS});
        }
    }
    worker_calls_wait(calls, -1);
    worker_calls_free(calls);
}

void session_tasks_clear(SessionTasks *t) {
    for (int i = 0; i < t->task_count; i++) worker_client_clear(&t->tasks[i]);
    for (int i = 0; i < t->device_count; i++) {
        free(t->devices[i]->name);
        free(t->devices[i]->device_type);
        free(t->devices[i]->physical_device_desc);
        free(t->devices[i]);
    }
    free(t->tasks);
    free(t->devices);
    free(t->placer);
    free(t->partition);
    *t = (SessionTasks){0};
}
