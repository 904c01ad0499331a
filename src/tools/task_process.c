/* task_process.c: fork and exec with a pipe; the process group makes sure that nothing survives. */
#include "tools/task_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

void task_process_init(TaskProcess *p, char *name, char **argv, char **environment) {
    *p = (TaskProcess){.name = name, .argv = argv, .environment = environment, .out = -1};
}

static void free_strings(char **list) {
    for (char **s = list; s && *s; s++) free(*s);
    free(list);
}

void task_process_clear(TaskProcess *p) {
    if (p->out >= 0) close(p->out);
    strbuf_clear(&p->line);
    free_strings(p->argv);
    free_strings(p->environment);
    free(p->name);
    *p = (TaskProcess){.out = -1};
}

/* Ours with p's on top; the strings stay where they are. */
static char **merged_environment(const TaskProcess *p) {
    size_t ours = 0, own = 0, count = 0;
    while (environ[ours]) ours++;
    while (p->environment && p->environment[own]) own++;
    char **out = xcalloc(ours + own + 1, sizeof *out);
    for (size_t i = 0; i < own; i++) out[count++] = p->environment[i];
    for (size_t i = 0; i < ours; i++) {
        size_t name = strcspn(environ[i], "=") + 1;
        bool hidden = false;
        for (size_t j = 0; j < own; j++) hidden |= strncmp(environ[i], p->environment[j], name) == 0;
        if (!hidden) out[count++] = environ[i];
    }
    return out;
}

/* In the child: never returns, and allocates nothing (other threads of the parent may have held the heap's lock). */
static void become(const TaskProcess *p, char **environment, int out, pid_t parent) {
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127); /* it died before the line above */
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL); /* ignored where a script put us in the background; what we pass on must arrive */
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    execvpe(p->argv[0], p->argv, environment);
    dprintf(2, "%s: cannot be run: %s\n", p->argv[0], strerror(errno));
    _exit(127);
}

Error *task_process_start(TaskProcess *p) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return error_internal("no pipe for %s: %s", p->name, strerror(errno));
    char **environment = merged_environment(p);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) become(p, environment, ends[1], parent);
    free(environment);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return error_internal("%s cannot be started: %s", p->name, strerror(errno));
    }
    setpgid(pid, pid); /* in both, whoever comes first */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (p->out >= 0) close(p->out);
    p->out = ends[0];
    p->pid = pid;
    p->has_ended = false;
    return NULL;
}

void task_process_signal(TaskProcess *p, int signal) {
    if (p->pid > 0) kill(-p->pid, signal);
}

enum { CHUNK = 16384, MAX_LINE = 1 << 20, MAX_CHUNKS = (1 << 20) / CHUNK }; /* no pipe holds more than MAX_CHUNKS unless it was told to */

static void give_lines(TaskProcess *p, LineFn *line, void *arg) {
    size_t start = 0;
    for (size_t i = p->searched; i < p->line.len; i++) {
        if (p->line.ptr[i] != '\n' && i - start < MAX_LINE) continue;
        line(arg, p, (Str){p->line.ptr + start, i - start});
        start = i + (p->line.ptr[i] == '\n');
    }
    if (start) memmove(p->line.ptr, p->line.ptr + start, p->line.len - start);
    p->line.len -= start;
    p->searched = p->line.len;
}

static void end_output(TaskProcess *p, LineFn *line, void *arg) {
    if (p->line.len) line(arg, p, strbuf_str(&p->line));
    p->line.len = p->searched = 0;
    if (p->out >= 0) close(p->out);
    p->out = -1;
}

bool task_process_read(TaskProcess *p, LineFn *line, void *arg) {
    char chunk[CHUNK];
    for (int i = 0; i < MAX_CHUNKS; i++) {
        ssize_t n = p->out < 0 ? 0 : read(p->out, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return true;
        if (n <= 0) {
            end_output(p, line, arg);
            return false;
        }
        strbuf_add(&p->line, (Str){chunk, (size_t)n});
        give_lines(p, line, arg);
    }
    return true;
}

void task_process_read_rest(TaskProcess *p, LineFn *line, void *arg) {
    if (task_process_read(p, line, arg)) end_output(p, line, arg);
}

int task_process_exit_code(const TaskProcess *p) {
    return WIFSIGNALED(p->status) ? 128 + WTERMSIG(p->status) : WEXITSTATUS(p->status);
}
