/* local_servers.c: starts and ends the servers of a local cluster. */
#include "tools/local_servers.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/memory.h"

enum { START_MS = 60000, END_MS = 5000 };

typedef struct Wait {
    bool ready;
    char *last; /* line, malloced */
} Wait;

static void on_line(void *arg, TaskProcess *p, Str line) {
    (void)p;
    Wait *w = arg;
    w->ready |= str_starts(line, STR("READY "));
    free(w->last);
    w->last = str_dup(line);
}

static Error *wait_ready(TaskProcess *p, int64_t until_ms) {
    Wait w = {0};
    Error *err = NULL;
    while (!err && !w.ready) {
        struct pollfd fd = {.fd = p->out, .events = POLLIN};
        int64_t left = until_ms - clock_mono_ms();
        bool open = left <= 0 || poll(&fd, 1, (int)left) <= 0 || task_process_read(p, on_line, &w);
        if (!w.ready && !open) err = error_new(CODE_UNAVAILABLE, "%s has ended: %s", p->name, w.last ? w.last : "it said nothing");
        else if (!w.ready && left <= 0) err = error_new(CODE_DEADLINE_EXCEEDED, "%s accepts no calls after %d s", p->name, START_MS / 1000);
    }
    free(w.last);
    return err;
}

Error *local_servers_start(LocalServers *s, const LocalJobs *jobs, int64_t threads) {
    *s = (LocalServers){0};
    Error *err = local_cluster_init(&s->cluster, jobs);
    s->processes = xcalloc((size_t)s->cluster.count + 1, sizeof *s->processes);
    for (int i = 0; !err && i < s->cluster.count; i++) {
        const LocalTask *t = &s->cluster.tasks[i];
        task_process_init(&s->processes[s->count++], xasprintf("%s/%d", t->job, t->index), local_cluster_serve(&s->cluster, t, threads), NULL);
        err = task_process_start(&s->processes[i]);
    }
    int64_t until_ms = clock_mono_ms() + START_MS;
    for (int i = 0; !err && i < s->count; i++) err = wait_ready(&s->processes[i], until_ms);
    if (err) local_servers_end(s);
    return err;
}

static void drop_line(void *arg, TaskProcess *p, Str line) {
    (void)arg, (void)p, (void)line;
}

/* Its output ends when it does; what it still says must not fill the pipe. */
static void wait_end(TaskProcess *p, int64_t until_ms) {
    for (int64_t left; (left = until_ms - clock_mono_ms()) > 0;) {
        struct pollfd fd = {.fd = p->out, .events = POLLIN};
        if (p->out < 0 || (poll(&fd, 1, (int)left) > 0 && !task_process_read(p, drop_line, NULL))) break;
    }
    if (until_ms <= clock_mono_ms()) task_process_signal(p, SIGKILL);
    waitpid(p->pid, &p->status, 0);
    p->pid = 0;
    p->has_ended = true;
}

void local_servers_end(LocalServers *s) {
    for (int i = 0; i < s->count; i++) task_process_signal(&s->processes[i], SIGTERM);
    int64_t until_ms = clock_mono_ms() + END_MS;
    for (int i = 0; i < s->count; i++) {
        if (s->processes[i].pid > 0) wait_end(&s->processes[i], until_ms);
        task_process_clear(&s->processes[i]);
    }
    free(s->processes);
    local_cluster_clear(&s->cluster);
    *s = (LocalServers){0};
}
