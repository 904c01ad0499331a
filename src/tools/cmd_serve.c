/* cmd_serve.c: rill serve: one task of a cluster, until it is told to end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "cluster/server.h"
#include "ops/op_list.h"
#include "tools/command.h"

typedef struct Options {
    const char *cluster, *job, *ps_hosts, *worker_hosts, *chief_hosts, *listen;
    int64_t task, cpu_devices, threads, session_timeout_s, max_sessions, max_message_mb, keepalive_s;
    bool tcp_only, verbose, help;
} Options;

static char *read_whole(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    StrBuf b = {0};
    char chunk[4096];
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0) strbuf_add(&b, (Str){chunk, n});
    fclose(f);
    return strbuf_detach(&b);
}

/* The cluster from --cluster (JSON or a file of it), from --ps_hosts and friends, or from TF_CONFIG. */
static Error *read_cluster(Options *o, ClusterSpec *spec, char **job, int *task) {
    Error *err = NULL;
    const char *environment = getenv("TF_CONFIG");
    if (o->cluster) {
        char *text = *o->cluster == '{' ? xstrdup(o->cluster) : read_whole(o->cluster);
        if (!text) return error_not_found("cluster file %s cannot be read", o->cluster);
        err = cluster_spec_from_json(str_of(text), spec, job, task);
        free(text);
    } else if (o->ps_hosts || o->worker_hosts || o->chief_hosts) {
        if (o->chief_hosts) err = cluster_spec_add_hosts(spec, STR("chief"), str_of(o->chief_hosts));
        if (!err && o->ps_hosts) err = cluster_spec_add_hosts(spec, STR("ps"), str_of(o->ps_hosts));
        if (!err && o->worker_hosts) err = cluster_spec_add_hosts(spec, STR("worker"), str_of(o->worker_hosts));
    } else if (environment) {
        err = error_wrap(cluster_spec_from_json(str_of(environment), spec, job, task), "TF_CONFIG");
    } else {
        err = error_invalid("no cluster given: use --cluster, --ps_hosts and --worker_hosts, or TF_CONFIG");
    }
    return err;
}

static void raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Told to end from outside: as by SIGTERM, which the main thread waits for. */
static void end_asked(void *arg) {
    (void)arg;
    kill(getpid(), SIGTERM);
}

static Error *serve(Options *o) {
    ClusterSpec spec = {0};
    char *job = NULL;
    int task = -1;
    Transport *transport = NULL;
    Server *server = NULL;
    Error *err = read_cluster(o, &spec, &job, &task);
    if (err) goto out;
    if (o->job) {
        free(job);
        job = xstrdup(o->job);
    }
    if (o->task >= 0) task = (int)o->task;
    if (!job || task < 0) {
        err = error_invalid("which task is this? use --job NAME --task N");
        goto out;
    }
    /* Signals are taken here and nowhere else: block them before the first thread starts. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of the op that writes it */
    raise_file_limit();
    int64_t keepalive_ms = o->keepalive_s * 1000;
    GrpcOptions grpc = {.max_message_bytes = (size_t)o->max_message_mb << 20, .keepalive_ms = keepalive_ms, .keepalive_timeout_ms = keepalive_ms, .connect_timeout_ms = keepalive_ms, .tcp_only = o->tcp_only};
    err = transport_grpc_new(&grpc, &transport);
    if (err) goto out;
    ServerConfig config = {
        .cluster = &spec,
        .job = str_of(job),
        .task = task,
        .cpu_devices = (int)o->cpu_devices,
        .threads = (int)o->threads,
        .session_timeout_ms = o->session_timeout_s * 1000,
        .max_sessions = (int)o->max_sessions,
        .max_message_bytes = (size_t)o->max_message_mb << 20,
        .listen = str_of(o->listen),
        .ended = end_asked,
    };
    err = server_start(&config, transport, &server);
    if (err) goto out;
    printf("READY %s\n", server_target(server).ptr);
    fflush(stdout);
    log_info("task /job:%s/replica:0/task:%d serves at %s", job, task, server_target(server).ptr);
    int got = 0;
    sigwait(&signals, &got);
    log_info("task /job:%s/replica:0/task:%d ends: %s", job, task, strsignal(got));
    server_stop(server, 2000);
out:
    cluster_spec_clear(&spec);
    free(job);
    return err;
}

int cmd_serve(int argc, char **argv) {
    Options o = {.task = -1, .cpu_devices = 1, .session_timeout_s = 60};
    const Flag flags[] = {
        {"cluster", FLAG_STRING, &o.cluster, "JSON|FILE", "the cluster: {\"ps\": [\"host:port\"], \"worker\": [...]}"},
        {"job", FLAG_STRING, &o.job, "NAME", "job of this task"},
        {"job_name", FLAG_STRING, &o.job, "NAME", "the same"},
        {"task", FLAG_INT, &o.task, "N", "index of this task in its job"},
        {"task_index", FLAG_INT, &o.task, "N", "the same"},
        {"ps_hosts", FLAG_STRING, &o.ps_hosts, "HOST:PORT,...", "the ps tasks, instead of --cluster"},
        {"worker_hosts", FLAG_STRING, &o.worker_hosts, "HOST:PORT,...", "the worker tasks"},
        {"chief_hosts", FLAG_STRING, &o.chief_hosts, "HOST:PORT,...", "the chief task"},
        {"cpu-devices", FLAG_INT, &o.cpu_devices, "N", "CPU devices to offer (1)"},
        {"threads", FLAG_INT, &o.threads, "N", "threads that compute (one for each core)"},
        {"listen", FLAG_STRING, &o.listen, "HOST:PORT", "where to listen (a loopback address of the task, else its port on all interfaces)"},
        {"session-timeout", FLAG_INT, &o.session_timeout_s, "SECONDS", "how long a new session waits for missing tasks (60)"},
        {"max-sessions", FLAG_INT, &o.max_sessions, "N", "client sessions at a time (1000)"},
        {"max-message-mb", FLAG_INT, &o.max_message_mb, "N", "largest message taken, in MiB (2047); a larger one gets ResourceExhausted"},
        {"keepalive", FLAG_INT, &o.keepalive_s, "SECONDS", "a machine silent for so long is asked, and given up after as long again (20)"},
        {"tcp-only", FLAG_BOOL, &o.tcp_only, NULL, "use TCP also between tasks of this host"},
        {"verbose", FLAG_BOOL, &o.verbose, NULL, "log more"},
        {"help", FLAG_BOOL, &o.help, NULL, "print this"},
        {0},
    };
    int next;
    Error *err = flags_parse(flags, argc, argv, 1, &next);
    if (!err && next < argc) err = error_invalid("unexpected argument '%s'", argv[next]);
    if (err) {
        fprintf(stderr, "rill serve: %s; try rill serve --help\n", err->message);
        error_free(err);
        return EXIT_USAGE;
    }
    if (o.help) {
        puts("usage: rill serve --cluster JSON|FILE --job NAME --task N\n\nRuns one task. Prints READY grpc://HOST:PORT once it accepts calls; ends on SIGTERM.\nWithout --cluster and --*_hosts it reads TF_CONFIG.\n");
        flags_print(flags);
        return 0;
    }
    if (o.max_message_mb < 0 || o.max_message_mb > 2047) {
        fprintf(stderr, "rill serve: --max-message-mb %lld is not between 1 and 2047; try rill serve --help\n", (long long)o.max_message_mb);
        return EXIT_USAGE;
    }
    if (o.keepalive_s < 0 || o.keepalive_s > 86400) {
        fprintf(stderr, "rill serve: --keepalive %lld is not between 1 and 86400; try rill serve --help\n", (long long)o.keepalive_s);
        return EXIT_USAGE;
    }
    if (o.verbose) log_set_level(LOG_DEBUG);
    ops_register_all();
    err = serve(&o);
    if (!err) return 0;
    fprintf(stderr, "rill serve: %s\n", err->message);
    int code = err->code == CODE_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILURE;
    error_free(err);
    return code;
}
