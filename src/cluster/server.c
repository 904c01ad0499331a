/* server.c: starts and stops one task. */
#include "cluster/server.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cluster/job_end.h"
#include "cluster/master.h"
#include "cluster/master_service.h"
#include "cluster/services.h"
#include "cluster/worker.h"
#include "cluster/worker_service.h"
#include "runtime/step.h"

enum { SERVE_THREADS = 2048 /* a RunStep waits in its thread; threads start when needed */, ANNOUNCE_MS = 3000 };

struct Server {
    ClusterSpec cluster;
    const ClusterTask *task;
    DeviceSet devices;
    Transport *transport;
    ThreadPool *compute, *serve, *blocking;
    Peers *peers;
    Worker *worker;
    Master *master;
    Services services;
    JobEnd *job_end;
    Method *methods;
    char *target;
    int64_t started_us;
};

/* ---- /rill.StatusService/Status: what `rill status` shows, as JSON ---- */

static void add_tasks(const Server *s, cJSON *root) {
    cJSON *tasks = cJSON_AddArrayToObject(root, "tasks");
    for (int i = 0; i < s->cluster.count; i++) {
        cJSON *task = cJSON_CreateObject();
        cJSON_AddStringToObject(task, "name", s->cluster.tasks[i].name);
        cJSON_AddStringToObject(task, "address", s->cluster.tasks[i].address);
        cJSON_AddItemToArray(tasks, task);
    }
}

static void add_devices(const Server *s, cJSON *root) {
    cJSON *devices = cJSON_AddArrayToObject(root, "devices");
    for (int i = 0; i < s->devices.count; i++) cJSON_AddItemToArray(devices, cJSON_CreateString(s->devices.devices[i]->name));
}

static void status(void *arg, ServerCall *call) {
    Server *s = ((Services *)arg)->owner;
    WorkerStats worker = worker_stats(s->worker);
    TransportStats net = transport_stats(s->transport);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "task", s->task->name);
    cJSON_AddStringToObject(root, "server", "rill");
    cJSON_AddNumberToObject(root, "pid", (double)getpid());
    cJSON_AddNumberToObject(root, "uptime_s", (double)(clock_wall_us() - s->started_us) / 1e6);
    add_devices(s, root);
    add_tasks(s, root);
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"client_sessions", master_session_count(s->master)}, {"steps_run", master_steps_run(s->master)}, {"worker_sessions", worker.sessions},
        {"graphs", worker.graphs}, {"steps_held", worker.steps}, {"runs", worker.runs}, {"resources", worker.resources},
        {"connections_in", net.connections_in}, {"connections_out", net.connections_out}, {"calls_in", net.calls_in}, {"calls_out", net.calls_out},
        {"messages_lent", net.messages_lent},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) cJSON_AddNumberToObject(root, numbers[i].name, (double)numbers[i].value);
    char *text = cJSON_PrintUnformatted(root);
    Message reply = {0};
    message_add_copy(&reply, str_of(text));
    server_call_reply(call, &reply);
    cJSON_free(text);
    cJSON_Delete(root);
}

/* ---- Start and stop ---- */

static void make_devices(Server *s, int count) {
    s->devices.devices = xcalloc((size_t)count, sizeof(Device *));
    for (; s->devices.count < count; s->devices.count++)
        s->devices.devices[s->devices.count] = cpu_device_new(str_of(s->task->name), s->devices.count, str_of(s->task->job));
}

static void make_methods(Server *s) {
    size_t count = (size_t)(worker_method_count + master_method_count + job_method_count);
    s->methods = xcalloc(count + 2, sizeof *s->methods);
    memcpy(s->methods + worker_method_count + master_method_count, job_methods, sizeof *s->methods * (size_t)job_method_count);
    memcpy(s->methods, worker_methods, sizeof *s->methods * (size_t)worker_method_count);
    memcpy(s->methods + worker_method_count, master_methods, sizeof *s->methods * (size_t)master_method_count);
    s->methods[count] = (Method){"/rill.StatusService/Status", status, ON_READER, NULL};
}

static int core_count(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (int)cores : 1;
}

static Error *copy_cluster(const ClusterSpec *from, ClusterSpec *to) {
    Error *err = NULL;
    for (int i = 0; !err && i < from->count; i++) err = cluster_spec_add(to, str_of(from->tasks[i].job), from->tasks[i].index, str_of(from->tasks[i].address));
    return err;
}

/* A task whose address is a loopback one is meant for this machine alone. */
static bool is_loopback(Str address) {
    return str_starts(address, STR("127.")) || str_starts(address, STR("localhost:")) || str_starts(address, STR("[::1]:"));
}

static char *listen_address(const Server *s, const ServerConfig *config, bool ipv6) {
    if (config->listen.len) return str_dup(config->listen);
    if (is_loopback(str_of(s->task->address))) return xstrdup(s->task->address);
    return xasprintf("%s%s", ipv6 ? "[::]" : "0.0.0.0", strrchr(s->task->address, ':'));
}

static Error *listen_on(Server *s, const ServerConfig *config) {
    char *address = listen_address(s, config, true), *bound = NULL;
    ServerOptions options = {.methods = s->methods, .arg = &s->services, .pool = s->serve, .max_message_bytes = config->max_message_bytes};
    Error *err = transport_serve(s->transport, str_of(address), &options, &bound);
    if (err && str_starts(str_of(address), STR("[::]"))) { /* a machine without IPv6 */
        error_free(err);
        free(address);
        address = listen_address(s, config, false);
        err = transport_serve(s->transport, str_of(address), &options, &bound);
    }
    if (!err) {
        /* The host as the cluster knows it, the port as it is. */
        const char *port = strrchr(bound, ':');
        int host_len = (int)(strrchr(s->task->address, ':') - s->task->address);
        s->target = xasprintf("grpc://%.*s%s", host_len, s->task->address, port);
    }
    free(bound);
    free(address);
    return error_wrap(err, "task %s", s->task->name);
}

Error *server_start(const ServerConfig *config, Transport *take, Server **out) {
    Server *s = xcalloc(1, sizeof *s);
    s->transport = take;
    s->started_us = clock_wall_us();
    Error *err = copy_cluster(config->cluster, &s->cluster);
    if (!err) {
        s->task = cluster_spec_find(&s->cluster, config->job, config->task);
        if (!s->task) err = error_invalid("Task %.*s:%d is not in the cluster", STR_ARG(config->job), config->task);
    }
    if (!err) {
        make_devices(s, config->cpu_devices > 0 ? config->cpu_devices : 1);
        s->compute = threadpool_new("compute", config->threads > 0 ? config->threads : core_count());
        threadpool_poll(s->compute, STEP_POLL_NS);
        s->serve = threadpool_new("serve", SERVE_THREADS);
        s->blocking = threadpool_new("blocking", SERVE_THREADS);
        s->peers = peers_new(s->transport);
        s->worker = worker_new(&(WorkerOptions){.cluster = &s->cluster, .task_name = str_of(s->task->name), .devices = &s->devices, .peers = s->peers, .compute = s->compute, .blocking = s->blocking});
        s->master = master_new(&(MasterOptions){.cluster = &s->cluster,
                                                .task_name = str_of(s->task->name),
                                                .worker = s->worker,
                                                .peers = s->peers,
                                                .session_timeout_ms = config->session_timeout_ms > 0 ? config->session_timeout_ms : 60000,
                                                .max_sessions = config->max_sessions > 0 ? config->max_sessions : 1000});
        s->services = (Services){.worker = s->worker, .master = s->master, .compute = s->compute, .serve = s->serve, .transport = s->transport, .owner = s};
        s->services.job_end = s->job_end = job_end_new(&s->cluster, s->task, s->peers, config->ended, config->ended_arg);
        make_methods(s);
        err = listen_on(s, config);
    }
    if (err)
        server_stop(s, 0);
    else
        *out = s;
    return err;
}

Str server_target(const Server *s) {
    return str_of(s->target);
}

bool server_wait(Server *s, int64_t timeout_ms) {
    return job_end_wait(s->job_end, timeout_ms);
}

void server_announce_done(Server *s) {
    job_end_announce(s->job_end, ANNOUNCE_MS);
}

void server_end(Server *s) {
    job_end_now(s->job_end);
}

Master *server_master(Server *s) {
    return s->master;
}

void server_stop(Server *s, int64_t grace_ms) {
    if (!s) return;
    if (s->master) master_stop(s->master);
    if (s->worker) worker_stop(s->worker);
    transport_stop_serving(s->transport, grace_ms);
    transport_close(s->transport); /* its threads may be working for the rest */
    threadpool_free(s->serve);
    threadpool_free(s->blocking);
    threadpool_free(s->compute);
    master_free(s->master);
    worker_free(s->worker);
    job_end_free(s->job_end);
    peers_free(s->peers);
    transport_free(s->transport);
    for (int i = 0; i < s->devices.count; i++) device_free(s->devices.devices[i]);
    free(s->devices.devices);
    cluster_spec_clear(&s->cluster);
    free(s->methods);
    free(s->target);
    free(s);
}
