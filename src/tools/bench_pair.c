/* bench_pair.c: what a cluster of one ps and one worker does on this machine, now. */
#include "tools/bench_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cluster/client_session.h"
#include "rill/graph.h"
#include "rill/variable.h"
#include "tools/local_servers.h"
#include "tools/report.h"

enum { TRANSFERS = 5, WARM_STEPS = 20 };

/* What is measured: a node of the graph, run over and over, or a few times where it moves the large variable. */
typedef struct Row {
    const char *name, *what;
    bool is_transfer;
} Row;
enum { EMPTY, REMOTE, BARRIER, SMALL, PULL, PUSH, ROWS };
static const Row rows[ROWS] = {
    [EMPTY] = {"empty", "empty steps of the worker", false},
    [REMOTE] = {"remote", "empty steps of the ps", false},
    [BARRIER] = {"barrier", "steps of both, in turn", false},
    [SMALL] = {"small", "small steps", false},
    [PULL] = {"pull", "pull", true},
    [PUSH] = {"push", "push", true},
};

typedef struct Memory {
    int64_t idle, peak; /* bytes */
} Memory;

typedef struct Rate {
    double per_s; /* steps, or MB; 0: not measured */
    int64_t steps;
} Rate;

typedef struct Numbers {
    double start_ms, session_ms;
    Rate rates[ROWS];
    Memory ps, worker;
} Numbers;

typedef struct BenchGraph {
    TF_Buffer *def;
    char *init, *nodes[ROWS];
} BenchGraph;

/* ---- The graph ---- */

static char *name_of(TF_Operation *op) {
    return xstrdup(op ? TF_OperationName(op) : "");
}

static void make_nodes(RillGraph *g, int64_t megabytes, TF_Operation *nodes[ROWS]) {
    const int64_t dims[] = {megabytes * 250000};
    rill_device_push(g, "/job:ps/task:0");
    RillVariable *small = rill_variable(g, "small", NULL, 0, &(RillVariableOptions){.init = {.kind = RILL_INIT_ZEROS}});
    RillVariable *large = rill_variable(g, "large", dims, 1, &(RillVariableOptions){.init = {.kind = RILL_INIT_ONES}});
    nodes[REMOTE] = rill_group(g, "remote", NULL, 0);
    rill_device_push(g, "/job:worker/task:0");
    RillVariable *source = rill_variable(g, "source", dims, 1, &(RillVariableOptions){.init = {.kind = RILL_INIT_ONES}});
    RillTensor number = rill_identity(g, rill_const_f32(g, 1), "number");
    nodes[EMPTY] = rill_group(g, "empty", NULL, 0);
    TF_Operation *first = rill_group(g, "first", NULL, 0), *after = rill_group(g, "after", &nodes[REMOTE], 1);
    if (large) nodes[PULL] = rill_identity(g, rill_variable_value(large), "pulled").oper;
    rill_device_pop(g);
    TF_Operation *ends[] = {after, rill_group(g, "last", &first, 1)};
    nodes[BARRIER] = rill_group(g, "barrier", ends, 2);
    if (small) nodes[SMALL] = rill_assign_add(g, small, number);
    if (large && source) nodes[PUSH] = rill_assign(g, large, rill_variable_value(source));
}

static Error *bench_graph_init(BenchGraph *b, int64_t megabytes) {
    RillGraph *g = rill_graph_new();
    TF_Operation *nodes[ROWS] = {0};
    make_nodes(g, megabytes, nodes);
    rill_device_push(g, "/job:ps/task:0");
    *b = (BenchGraph){TF_NewBuffer(), name_of(rill_init_op(g)), {0}};
    rill_device_pop(g);
    for (int i = 0; i < ROWS; i++) b->nodes[i] = name_of(nodes[i]);
    Error *err = rill_graph_failed(g) ? error_internal("%s", rill_graph_message(g)) : NULL;
    TF_Status *status = TF_NewStatus();
    if (!err) TF_GraphToGraphDef(rill_graph_tf(g), b->def, status);
    if (!err && TF_GetCode(status) != TF_OK) err = error_internal("%s", TF_Message(status));
    TF_DeleteStatus(status);
    rill_graph_free(g);
    return err;
}

static void bench_graph_clear(BenchGraph *b) {
    if (b->def) TF_DeleteBuffer(b->def);
    free(b->init);
    for (int i = 0; i < ROWS; i++) free(b->nodes[i]);
}

/* ---- Measuring ---- */

/* A field of /proc/PID/status, in bytes; 0 when the process is gone. */
static int64_t memory_of(const TaskProcess *p, const char *field) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)p->pid);
    FILE *f = fopen(path, "r");
    long long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0) sscanf(line + strlen(field), ": %lld", &kib);
    if (f) fclose(f);
    return kib * 1024;
}

static Error *run_node(ClientSession *s, const char *node) {
    Str target = str_of(node);
    ClientStep step = {.signature = {.targets = &target, .target_count = 1}};
    return client_session_run(s, &step, NULL, NULL);
}

static Error *measure_steps(ClientSession *s, const char *node, int64_t seconds, Rate *rate) {
    Error *err = NULL;
    for (int i = 0; !err && i < WARM_STEPS; i++) err = run_node(s, node);
    int64_t began = clock_mono_ns(), now = began;
    while (!err && now - began < seconds * 1000000000) {
        err = run_node(s, node);
        now = clock_mono_ns();
        rate->steps++;
    }
    if (!err) rate->per_s = (double)rate->steps * 1e9 / (double)(now - began);
    return err;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static Error *measure_transfers(ClientSession *s, const char *node, int64_t megabytes, Rate *rate) {
    double rates[TRANSFERS];
    Error *err = run_node(s, node); /* connections and the graph are made */
    for (int i = 0; !err && i < TRANSFERS; i++) {
        int64_t began = clock_mono_ns();
        err = run_node(s, node);
        rates[i] = (double)megabytes * 1e9 / (double)(clock_mono_ns() - began);
    }
    if (err) return err;
    qsort(rates, TRANSFERS, sizeof rates[0], by_value);
    *rate = (Rate){rates[TRANSFERS / 2], TRANSFERS};
    return NULL;
}

static Error *measure_session(const LocalServers *servers, const BenchGraph *b, const BenchPairOptions *o, Numbers *n) {
    char target[64];
    snprintf(target, sizeof target, "grpc://127.0.0.1:%d", servers->cluster.tasks[0].port);
    ClientSession *s = NULL;
    ClientSessionOptions options = {.target = str_of(target)};
    int64_t began = clock_mono_ns();
    Error *err = client_session_open(&options, (Str){b->def->data, b->def->length}, &s);
    n->session_ms = (double)(clock_mono_ns() - began) / 1e6;
    if (!err) err = run_node(s, b->init);
    for (int i = 0; i < ROWS && !err; i++) {
        if (o->only && strcmp(o->only, rows[i].name) != 0) continue;
        if (rows[i].is_transfer)
            err = measure_transfers(s, b->nodes[i], o->megabytes, &n->rates[i]);
        else
            err = measure_steps(s, b->nodes[i], o->seconds, &n->rates[i]);
    }
    if (s) client_session_free(s);
    return err;
}

static Error *measure(const BenchPairOptions *o, Numbers *n) {
    BenchGraph b = {0};
    Error *err = bench_graph_init(&b, o->megabytes);
    LocalServers servers = {0};
    int64_t began = clock_mono_ns();
    if (!err) err = local_servers_start(&servers, &(LocalJobs){.workers = 1, .ps = 1}, 0);
    n->start_ms = (double)(clock_mono_ns() - began) / 1e6;
    if (!err) {
        const TaskProcess *worker = &servers.processes[0], *ps = &servers.processes[1];
        n->worker.idle = memory_of(worker, "VmRSS");
        n->ps.idle = memory_of(ps, "VmRSS");
        err = measure_session(&servers, &b, o, n);
        n->worker.peak = memory_of(worker, "VmHWM");
        n->ps.peak = memory_of(ps, "VmHWM");
        local_servers_end(&servers);
    }
    bench_graph_clear(&b);
    return err;
}

/* ---- Showing ---- */

static void print_json(const BenchPairOptions *o, const Numbers *n) {
    cJSON *json = cJSON_CreateObject();
    report_double(json, "start_ms", n->start_ms);
    report_double(json, "create_session_ms", n->session_ms);
    for (int i = 0; i < ROWS; i++) {
        char rate[32], count[32];
        if (!n->rates[i].steps) continue;
        snprintf(rate, sizeof rate, rows[i].is_transfer ? "%s_mb_per_s" : "%s_steps_per_s", rows[i].name);
        snprintf(count, sizeof count, rows[i].is_transfer ? "%s_mb" : "%s_steps", rows[i].name);
        report_double(json, rate, n->rates[i].per_s);
        report_int(json, count, rows[i].is_transfer ? o->megabytes : n->rates[i].steps);
    }
    report_int(json, "ps_idle_bytes", n->ps.idle);
    report_int(json, "ps_peak_bytes", n->ps.peak);
    report_int(json, "worker_idle_bytes", n->worker.idle);
    report_int(json, "worker_peak_bytes", n->worker.peak);
    report_print(json);
}

static void print_memory(const char *task, const Memory *m) {
    char *idle = report_size((uint64_t)m->idle), *peak = report_size((uint64_t)m->peak);
    printf("memory, %-6s            %10s idle, %s at most\n", task, idle, peak);
    free(idle);
    free(peak);
}

static void print_text(const BenchPairOptions *o, const Numbers *n) {
    printf("start of ps and worker    %10.1f ms\n", n->start_ms);
    printf("CreateSession             %10.1f ms\n", n->session_ms);
    for (int i = 0; i < ROWS; i++) {
        if (!n->rates[i].steps) continue;
        if (rows[i].is_transfer)
            printf("%s of %4lld MB           %10.0f MB/s\n", rows[i].what, (long long)o->megabytes, n->rates[i].per_s);
        else
            printf("%-25s %10.0f a second, one after the other\n", rows[i].what, n->rates[i].per_s);
    }
    print_memory("ps", &n->ps);
    print_memory("worker", &n->worker);
}

bool bench_pair_has(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(name, rows[i].name) == 0) return true;
    return false;
}

Error *bench_pair(const BenchPairOptions *o) {
    Numbers n = {0};
    Error *err = measure(o, &n);
    if (err) return err;
    if (o->as_json)
        print_json(o, &n);
    else
        print_text(o, &n);
    return NULL;
}
