/* task.c: a process becomes one task of a cluster, several, or all of them. */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "ops/op_list.h"
#include "train/task_internal.h"

enum { EXIT_USAGE = 2, STOP_MS = 2000 };

typedef struct Process {
    ProgramFlags flags;
    ClusterSpec cluster;
    bool is_all_here;         /* --cluster=local: no ports */
    LoopbackNetwork *network; /* between the tasks that run here; NULL: on its own */
    GrpcOptions grpc;
    RillTask **tasks;         /* that run here */
    int task_count;
    RillProgram *program;
    void *arg;
} Process;

/* ---- What the command line says ---- */

static Error *count_flag(const Process *p, const char *name, int otherwise, int *out) {
    const char *text = program_flag(&p->flags, name);
    char *end = NULL;
    long n = text ? strtol(text, &end, 10) : otherwise;
    if (text && (*end || end == text || n < 0 || n > 1000)) return error_invalid("--%s=%s: a number of tasks from 0 to 1000, please", name, text);
    *out = (int)n;
    return NULL;
}

/* How soon a machine that has gone silent counts as gone: after so long, and as long again without an answer; each attempt to connect to it takes no longer either. */
static Error *read_keepalive(Process *p) {
    const char *text = program_flag(&p->flags, "keepalive");
    char *end = NULL;
    double seconds = text ? strtod(text, &end) : 0;
    if (text && (*end || end == text || !(seconds >= 0.1 && seconds <= 86400))) return error_invalid("--keepalive=%s: seconds, from 0.1 to 86400, please", text);
    p->grpc.keepalive_ms = p->grpc.keepalive_timeout_ms = p->grpc.connect_timeout_ms = (int64_t)(seconds * 1000);
    return NULL;
}

static Error *add_local(Process *p, const char *job, int count) {
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++) {
        char *address = xasprintf("%s%d.local:1", job, i);
        err = cluster_spec_add(&p->cluster, str_of(job), i, str_of(address));
        free(address);
    }
    return err;
}

/* A whole cluster in this process. */
static Error *local_cluster(Process *p) {
    int ps = 0, workers = 0;
    Error *err = count_flag(p, "ps", 1, &ps);
    if (!err) err = count_flag(p, "workers", 2, &workers);
    if (!err && workers == 0) err = error_invalid("--workers=0: a cluster needs a worker");
    if (!err) err = add_local(p, "ps", ps);
    if (!err) err = add_local(p, "worker", workers);
    p->is_all_here = true;
    return err;
}

static Error *read_cluster(Process *p, char **job, int *index) {
    const char *cluster = program_flag(&p->flags, "cluster"), *environment = getenv("TF_CONFIG");
    static const char *const hosts[][2] = {{"chief_hosts", "chief"}, {"ps_hosts", "ps"}, {"worker_hosts", "worker"}, {"evaluator_hosts", "evaluator"}};
    if (cluster && strcmp(cluster, "local") == 0) return local_cluster(p);
    if (cluster) {
        char *text = NULL;
        size_t len = 0;
        Error *err = *cluster == '{' ? NULL : file_read_all(&file_system_local, cluster, &text, &len);
        if (!err) err = cluster_spec_from_json(str_of(text ? text : cluster), &p->cluster, job, index);
        free(text);
        return err;
    }
    Error *err = NULL;
    for (size_t i = 0; !err && i < sizeof hosts / sizeof hosts[0]; i++) {
        const char *list = program_flag(&p->flags, hosts[i][0]);
        if (list && *list) err = cluster_spec_add_hosts(&p->cluster, str_of(hosts[i][1]), str_of(list));
    }
    if (!err && !p->cluster.count && environment && *environment) err = error_wrap(cluster_spec_from_json(str_of(environment), &p->cluster, job, index), "TF_CONFIG");
    return err;
}

/* ---- Tasks ---- */

static RillTask *add_task(Process *p, const char *job, int index) {
    RillTask *t = xcalloc(1, sizeof *t);
    t->flags = &p->flags;
    t->job = xstrdup(job);
    t->index = index;
    t->target = xstrdup("");
    t->device = p->cluster.count ? xasprintf("/job:%s/task:%d", job, index) : xstrdup("");
    t->cluster = p->cluster.count ? &p->cluster : NULL;
    p->tasks = xrealloc(p->tasks, sizeof *p->tasks * (size_t)(p->task_count + 1));
    p->tasks[p->task_count++] = t;
    return t;
}

static Error *add_here(Process *p, Str list) {
    while (list.len) {
        Str item = str_next(&list, ','), job = str_trim(str_next(&item, ':'));
        int64_t index = 0;
        if (!str_to_int64(str_trim(item), &index) || !cluster_spec_find(&p->cluster, job, (int)index))
            return error_invalid("--here: %.*s:%.*s is not a task of the cluster", STR_ARG(job), STR_ARG(item));
        char *name = str_dup(job);
        add_task(p, name, (int)index);
        free(name);
    }
    return NULL;
}

/* Where a program that is no task of the cluster finds it. */
static const char *client_target(const Process *p) {
    const char *flag = program_flag(&p->flags, "target"), *environment = getenv("RILL_TARGET");
    return flag ? flag : environment && *environment ? environment : NULL;
}

static void add_client(Process *p) {
    RillTask *t = add_task(p, "client", 0);
    t->is_client = true;
    free(t->target);
    free(t->device);
    t->target = xstrdup(client_target(p));
    t->device = xstrdup("");
}

static Error *choose_tasks(Process *p) {
    char *job = NULL;
    int index = -1;
    Error *err = read_cluster(p, &job, &index);
    const char *job_flag = program_flag(&p->flags, "job_name"), *index_flag = program_flag(&p->flags, "task_index"), *here = program_flag(&p->flags, "here");
    if (!err && job_flag) {
        free(job);
        job = xstrdup(job_flag);
    }
    if (!err && index_flag) index = atoi(index_flag);
    if (err) {
        free(job);
        return err;
    }
    if (!p->cluster.count) {
        add_task(p, "local", 0);
    } else if (p->is_all_here) {
        for (int i = 0; i < p->cluster.count; i++) add_task(p, p->cluster.tasks[i].job, p->cluster.tasks[i].index);
    } else if (here) {
        err = add_here(p, str_of(here));
    } else if (!job && client_target(p)) {
        add_client(p);
    } else if (!job || index < 0) {
        err = error_invalid("which task of the cluster is this? use --job_name and --task_index, or TF_CONFIG");
    } else if (!cluster_spec_find(&p->cluster, str_of(job), index)) {
        err = error_invalid("task %s:%d is not in the cluster", job, index);
    } else {
        add_task(p, job, index);
    }
    free(job);
    return err;
}

static Error *start_server(Process *p, RillTask *t) {
    Transport *transport = NULL;
    Error *err = NULL;
    ServerConfig config = {.cluster = &p->cluster, .job = str_of(t->job), .task = t->index};
    Str address = str_of(cluster_spec_find(&p->cluster, config.job, config.task)->address);
    if (!p->network) p->network = loopback_network_new();
    if (p->is_all_here) {
        transport = transport_loopback_new(p->network);
        config.listen = address; /* of the network within the process */
    } else {
        err = transport_joined_new(p->network, &p->grpc, address, &transport);
    }
    if (err) return err;
    err = server_start(&config, transport, &t->server);
    if (err) return err;
    free(t->target);
    t->target = xstrdup(server_target(t->server).ptr);
    t->transport = transport;
    return NULL;
}

/* ---- Running ---- */

static bool computes(const RillTask *t) {
    return strcmp(t->job, "ps") != 0;
}

typedef struct Started {
    Process *process;
    RillTask *task;
} Started;

static void *run_task(void *arg) {
    Started *s = arg;
    RillTask *t = s->task;
    t->exit_code = s->process->program(t, s->process->arg);
    if (t->server && t->exit_code == 0) server_announce_done(t->server);
    return NULL;
}

static void *serve_until_done(void *arg) {
    server_wait(((Started *)arg)->task->server, -1);
    return NULL;
}

/* Each task in a thread of its own; the last one in this one. When a task here failed, a ps here would wait for ever: it is told. */
static int run_all(Process *p) {
    Started *started = xcalloc((size_t)p->task_count, sizeof *started);
    pthread_t *threads = xcalloc((size_t)p->task_count, sizeof *threads);
    int code = 0, computing = 0;
    for (int i = 0; i < p->task_count; i++) {
        started[i] = (Started){p, p->tasks[i]};
        computing += computes(p->tasks[i]);
        pthread_create(&threads[i], NULL, computes(p->tasks[i]) ? run_task : serve_until_done, &started[i]);
    }
    for (int i = 0; i < p->task_count; i++) {
        if (!computes(p->tasks[i])) continue;
        pthread_join(threads[i], NULL);
        int own = p->tasks[i]->exit_code;
        if (own && (!code || rill_task_is_chief(p->tasks[i]))) code = own;
    }
    for (int i = 0; i < p->task_count; i++) {
        if (computes(p->tasks[i])) continue;
        if (computing && (code || p->is_all_here)) server_end(p->tasks[i]->server);
        pthread_join(threads[i], NULL);
    }
    free(threads);
    free(started);
    return code;
}

static void process_clear(Process *p) {
    for (int i = 0; i < p->task_count; i++) {
        RillTask *t = p->tasks[i];
        server_stop(t->server, STOP_MS);
        free(t->job);
        free(t->target);
        free(t->device);
        free(t);
    }
    free(p->tasks);
    if (p->network) loopback_network_free(p->network);
    cluster_spec_clear(&p->cluster);
    program_flags_clear(&p->flags);
}

int rill_main(int argc, char **argv, RillProgram *program, void *arg) {
    Process p = {.program = program, .arg = arg};
    signal(SIGPIPE, SIG_IGN);
    TF_DeleteStatus(TF_NewStatus()); /* the library is ready */
    ops_register_all();
    program_flags_init(&p.flags, argc, argv);
    Error *err = choose_tasks(&p);
    if (!err) err = read_keepalive(&p);
    int code = err ? EXIT_USAGE : 0;
    for (int i = 0; !err && p.cluster.count && i < p.task_count; i++) {
        if (p.tasks[i]->is_client) continue;
        err = start_server(&p, p.tasks[i]);
        if (err) code = EXIT_FAILURE;
    }
    if (err)
        fprintf(stderr, "%s: %s\n", argv[0], err->message);
    else
        code = run_all(&p);
    error_free(err);
    process_clear(&p);
    return code;
}

/* ---- What a task is ---- */

const char *rill_task_job(const RillTask *t) {
    return t->job;
}

int rill_task_index(const RillTask *t) {
    return t->index;
}

int rill_task_count(const RillTask *t, const char *job) {
    int count = 0;
    for (int i = 0; t->cluster && i < t->cluster->count; i++) count += strcmp(t->cluster->tasks[i].job, job) == 0;
    return count;
}

bool rill_task_is_chief(const RillTask *t) {
    if (!t->cluster || t->is_client) return true;
    if (t->index != 0) return false;
    if (strcmp(t->job, "chief") == 0 || strcmp(t->job, "master") == 0) return true;
    return strcmp(t->job, "worker") == 0 && !rill_task_count(t, "chief") && !rill_task_count(t, "master");
}

const char *rill_task_target(const RillTask *t) {
    return t->target;
}

const char *rill_task_device(const RillTask *t) {
    return t->device;
}

int rill_task_workers(const RillTask *t) {
    return t->cluster ? rill_task_count(t, "chief") + rill_task_count(t, "master") + rill_task_count(t, "worker") : 1;
}

RillDeviceSetter rill_task_device_setter(const RillTask *t) {
    return (RillDeviceSetter){.ps_tasks = rill_task_count(t, "ps"), .worker_device = t->is_client ? NULL : t->device};
}

void rill_log(const RillTask *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char text[2048];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_info("%s:%d %s", t->job, t->index, text);
}
