/* cmd_up.c: rill up: a cluster of processes on this machine, from the first task's start to the last one's end.

   One loop waits for lines of output, for signals (SIGCHLD, Ctrl-C, SIGTERM) and for the clock. The tasks that only serve are rill serve; the others run the
   command. The job ends when the chief's command ends; then the others have a while to end by themselves, and what is left is told, then killed. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/flags.h"
#include "base/memory.h"
#include "tools/command.h"
#include "tools/job_progress.h"
#include "tools/local_cluster.h"
#include "tools/orphan_guard.h"
#include "tools/task_log.h"
#include "tools/task_process.h"

typedef struct Options {
    int64_t ps, workers, evaluators, restarts, grace_s, threads;
    bool chief, client, run_ps, quiet, help;
    char **command;
    int command_count;
} Options;

typedef enum Phase { PHASE_STARTING, PHASE_RUNNING, PHASE_ENDING, PHASE_TOLD, PHASE_KILLED } Phase;

typedef struct Up {
    const Options *o;
    LocalCluster cluster;
    TaskProcess *processes;
    bool *serves; /* rill serve, without a program of the user */
    bool *ready;
    int count, chief; /* chief: index of the process whose end is the job's; -1: none */
    OrphanGuard guard;
    TaskLog log;
    JobProgress *progress;
    Phase phase;
    int64_t phase_until_ns;
    int exit_code;
} Up;

/* ---- What is run ---- */

static char **user_command(const Up *up, const LocalTask *t) {
    char **out = xcalloc((size_t)up->o->command_count + 1, sizeof *out);
    for (int i = 0; i < up->o->command_count; i++) out[i] = local_cluster_fill(&up->cluster, t, up->o->command[i]);
    return out;
}

static char **environment_of(const Up *up, const LocalTask *t) {
    char **out = xcalloc(4, sizeof *out);
    char *config = local_cluster_tf_config(&up->cluster, t);
    out[0] = xasprintf("TF_CONFIG=%s", config);
    out[1] = xasprintf("RILL_TARGET=grpc://127.0.0.1:%d", t ? t->port : up->cluster.tasks[0].port);
    out[2] = xstrdup("PYTHONUNBUFFERED=1"); /* lines as they come */
    free(config);
    return out;
}

static void plan(Up *up) {
    const Options *o = up->o;
    up->processes = xcalloc((size_t)up->cluster.count + 1, sizeof *up->processes);
    up->serves = xcalloc((size_t)up->cluster.count + 1, sizeof *up->serves);
    up->ready = xcalloc((size_t)up->cluster.count + 1, sizeof *up->ready);
    up->chief = -1;
    size_t width = 0;
    for (int i = 0; i < up->cluster.count; i++) {
        const LocalTask *t = &up->cluster.tasks[i];
        bool serves = !o->command_count || o->client || (strcmp(t->job, "ps") == 0 && !o->run_ps);
        up->serves[up->count] = serves;
        if (!serves && up->chief < 0) up->chief = up->count; /* the first of chief and workers */
        TaskProcess *p = &up->processes[up->count++];
        task_process_init(p, xasprintf("%s/%d", t->job, t->index), serves ? local_cluster_serve(&up->cluster, t, up->o->threads) : user_command(up, t), environment_of(up, t));
        if (strlen(p->name) > width) width = strlen(p->name);
    }
    if (o->command_count && o->client) {
        up->chief = up->count;
        task_process_init(&up->processes[up->count++], xstrdup("client"), user_command(up, NULL), environment_of(up, NULL));
    }
    task_log_init(&up->log, (int)width);
}

/* ---- Phases ---- */

static void say(Up *up, const char *text) {
    task_log_line(&up->log, "rill", 9, str_of(text));
}

static void enter(Up *up, Phase phase, int64_t seconds) {
    if (phase <= up->phase) return;
    up->phase = phase;
    up->phase_until_ns = clock_mono_ns() + seconds * 1000000000;
}

static int running(const Up *up, bool commands_only) {
    int n = 0;
    for (int i = 0; i < up->count; i++) n += up->processes[i].pid > 0 && !(commands_only && up->serves[i]);
    return n;
}

static void signal_all(Up *up, int signal) {
    for (int i = 0; i < up->count; i++) task_process_signal(&up->processes[i], signal);
}

/* Some must end now: told first, killed a little later. */
static void tell_all(Up *up) {
    if (up->phase >= PHASE_TOLD) return;
    signal_all(up, SIGTERM);
    enter(up, PHASE_TOLD, 5);
}

static Error *start(Up *up, TaskProcess *p) {
    Error *err = task_process_start(p);
    if (!err) orphan_guard_add(&up->guard, p->pid);
    return err;
}

static void start_commands(Up *up, Error **err) {
    if (up->phase != PHASE_STARTING) return;
    enter(up, PHASE_RUNNING, 0);
    for (int i = 0; !*err && i < up->count; i++)
        if (!up->serves[i]) *err = start(up, &up->processes[i]);
    if (up->o->command_count) return;
    char *text = xasprintf("the cluster is up: grpc://127.0.0.1:%d; Ctrl-C ends it", up->cluster.tasks[0].port);
    say(up, text);
    free(text);
}

static void check_ready(Up *up, Error **err) {
    for (int i = 0; i < up->count; i++)
        if (up->serves[i] && !up->ready[i]) return;
    start_commands(up, err);
}

static void clock_check(Up *up) {
    int64_t now = clock_mono_ns();
    if (up->phase == PHASE_ENDING && (now >= up->phase_until_ns || running(up, true) == 0)) {
        if (running(up, true)) say(up, "some tasks have not ended by themselves: they are told to");
        tell_all(up);
    } else if (up->phase == PHASE_TOLD && now >= up->phase_until_ns) {
        signal_all(up, SIGKILL);
        enter(up, PHASE_KILLED, 3600);
    }
}

/* ---- Events ---- */

static void on_line(void *arg, TaskProcess *p, Str line) {
    Up *up = arg;
    int i = (int)(p - up->processes);
    if (up->serves[i] && str_starts(line, STR("READY "))) {
        up->ready[i] = true;
        return;
    }
    if (!(up->o->quiet && up->serves[i])) task_log_line(&up->log, p->name, i, line);
}

static void fail(Up *up, int code) {
    if (!up->exit_code) up->exit_code = code ? code : EXIT_FAILURE;
    tell_all(up);
}

static void on_end(Up *up, TaskProcess *p) {
    int i = (int)(p - up->processes), code = task_process_exit_code(p);
    task_process_read_rest(p, on_line, up);
    if (up->phase >= PHASE_ENDING) return;
    bool is_chief = i == up->chief;
    if (code && p->restarts < up->o->restarts) {
        p->restarts++;
        char *text = xasprintf("%s ended with code %d: restart %d of %lld", p->name, code, p->restarts, (long long)up->o->restarts);
        say(up, text);
        free(text);
        Error *err = start(up, p);
        if (!err) return;
        say(up, err->message);
        error_free(err);
    }
    if (code) { /* a server that was told to end, or whose job is done, ends with 0 */
        char *text = xasprintf("%s ended with code %d: the job has failed", p->name, code);
        say(up, text);
        free(text);
        fail(up, code);
    } else if (is_chief) {
        enter(up, PHASE_ENDING, up->o->grace_s);
    } else if (!up->o->command_count && running(up, false) == 0) {
        enter(up, PHASE_ENDING, 0);
    }
}

static void reap(Up *up) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        for (int i = 0; i < up->count; i++) {
            TaskProcess *p = &up->processes[i];
            if (p->pid != pid) continue;
            kill(-pid, SIGKILL); /* what it started goes with it */
            orphan_guard_remove(&up->guard, pid);
            p->pid = 0;
            p->status = status;
            p->has_ended = true;
            on_end(up, p);
        }
    }
}

static void on_signal(Up *up, int signal) {
    if (signal == SIGCHLD) {
        reap(up);
        return;
    }
    if (!up->exit_code) up->exit_code = 128 + signal;
    if (up->phase >= PHASE_ENDING) { /* asked again */
        signal_all(up, SIGKILL);
        enter(up, PHASE_KILLED, 3600);
        return;
    }
    for (int i = 0; i < up->count; i++) /* programs see Ctrl-C themselves; servers wait for them */
        if (!up->serves[i]) task_process_signal(&up->processes[i], signal);
    enter(up, PHASE_ENDING, up->o->grace_s);
}

static void wait_for_event(Up *up, int signals) {
    struct pollfd *fds = xcalloc((size_t)up->count + 1, sizeof *fds);
    fds[0] = (struct pollfd){.fd = signals, .events = POLLIN};
    for (int i = 0; i < up->count; i++) fds[i + 1] = (struct pollfd){.fd = up->processes[i].out, .events = POLLIN};
    poll(fds, (nfds_t)up->count + 1, 200);
    for (int i = 0; i < up->count; i++)
        if (fds[i + 1].revents) task_process_read(&up->processes[i], on_line, up);
    struct signalfd_siginfo info;
    while (fds[0].revents && read(signals, &info, sizeof info) == sizeof info) on_signal(up, (int)info.ssi_signo);
    free(fds);
}

/* ---- All of it ---- */

static Error *start_servers(Up *up) {
    Error *err = NULL;
    for (int i = 0; !err && i < up->count; i++)
        if (up->serves[i]) err = start(up, &up->processes[i]);
    return err;
}

/* Under nohup: a blocked signal would come through the descriptor all the same. */
static bool hangups_ignored(void) {
    struct sigaction was;
    return sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler == SIG_IGN;
}

static Error *run(Up *up) {
    sigset_t set;
    Error *err = orphan_guard_start(&up->guard);
    if (err) return err;
    sigemptyset(&set);
    int wanted[] = {SIGCHLD, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) sigaddset(&set, wanted[i]);
    if (!hangups_ignored()) sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    err = signals < 0 ? error_internal("signalfd: %s", strerror(errno)) : start_servers(up);
    while (!err && (running(up, false) || up->phase < PHASE_ENDING)) {
        check_ready(up, &err);
        wait_for_event(up, signals);
        clock_check(up);
        if (up->progress) job_progress_show(up->progress, &up->log, running(up, true), up->count);
    }
    if (err) signal_all(up, SIGKILL);
    while (running(up, false)) { /* after an error */
        up->phase = PHASE_KILLED;
        wait_for_event(up, signals);
    }
    if (up->chief >= 0 && !up->exit_code) up->exit_code = task_process_exit_code(&up->processes[up->chief]);
    task_log_end(&up->log);
    orphan_guard_stop(&up->guard);
    close(signals);
    return err;
}

static int up_main(const Options *o) {
    Up up = {.o = o};
    LocalJobs jobs = {o->chief, (int)o->workers, (int)o->ps, (int)o->evaluators};
    Error *err = local_cluster_init(&up.cluster, &jobs);
    if (!err) {
        plan(&up);
        if (up.log.colour && o->command_count) {
            char address[32];
            snprintf(address, sizeof address, "127.0.0.1:%d", up.cluster.tasks[0].port);
            up.progress = job_progress_new(address);
        }
        err = run(&up);
    }
    for (int i = 0; i < up.count; i++) task_process_clear(&up.processes[i]);
    job_progress_free(up.progress);
    free(up.processes);
    free(up.serves);
    free(up.ready);
    local_cluster_clear(&up.cluster);
    if (!err) return up.exit_code;
    fprintf(stderr, "rill up: %s\n", err->message);
    error_free(err);
    return EXIT_FAILURE;
}

static Error *check(const Options *o) {
    if (o->ps < 0 || o->workers < 0 || o->evaluators < 0 || o->ps + o->workers + o->evaluators > 500) return error_invalid("from 0 to 500 tasks, please");
    if (o->workers == 0 && !o->chief) return error_invalid("a cluster needs a worker or a chief: --workers 1, or --chief");
    if (o->client && !o->command_count) return error_invalid("--client needs a command");
    if (o->restarts < 0 || o->grace_s < 0) return error_invalid("--restart and --grace take numbers from 0 on");
    return NULL;
}

int cmd_up(int argc, char **argv) {
    Options o = {.ps = 1, .workers = 2, .grace_s = 10};
    const Flag flags[] = {
        {"ps", FLAG_INT, &o.ps, "N", "ps tasks (1)"},
        {"workers", FLAG_INT, &o.workers, "N", "worker tasks (2)"},
        {"chief", FLAG_BOOL, &o.chief, NULL, "a job chief besides the workers; otherwise worker 0 is the chief"},
        {"evaluators", FLAG_INT, &o.evaluators, "N", "evaluator tasks (0)"},
        {"client", FLAG_BOOL, &o.client, NULL, "all tasks serve, and the command runs once, as their client"},
        {"run-ps", FLAG_BOOL, &o.run_ps, NULL, "run the command as ps, too; otherwise ps tasks are rill serve"},
        {"restart", FLAG_INT, &o.restarts, "N", "start a task that fails again, up to N times each (0)"},
        {"grace", FLAG_INT, &o.grace_s, "SECONDS", "how long others may go on when the chief has ended (10)"},
        {"threads", FLAG_INT, &o.threads, "N", "threads that compute in each rill serve (one for each core)"},
        {"quiet", FLAG_BOOL, &o.quiet, NULL, "no log lines of tasks that only serve"},
        {"help", FLAG_BOOL, &o.help, NULL, "print this"},
        {0},
    };
    int next = argc;
    Error *err = flags_parse(flags, argc, argv, 1, &next);
    if (next < argc && strcmp(argv[next], "--") == 0) next++;
    o.command = argv + next;
    o.command_count = argc - next;
    if (!err && !o.help) err = check(&o);
    if (err) {
        fprintf(stderr, "rill up: %s; try rill up --help\n", err->message);
        error_free(err);
        return EXIT_USAGE;
    }
    if (o.help) {
        puts("usage: rill up [FLAGS] [-- COMMAND ...]\n\n"
             "Runs a cluster on this machine. Chief and workers run COMMAND with TF_CONFIG set; the words {job}, {task}, {target}, {cluster}, {ps_hosts}, {worker_hosts}\n"
             "and {chief_hosts} in it are filled in for each. Ends when the chief ends, with its exit code; a task that fails ends the job, with its code.\n"
             "Without COMMAND all tasks serve until Ctrl-C.\n\n"
             "  rill up --ps 2 --workers 4 -- rill run train.py\n"
             "  rill up --client -- python3 train.py --target={target}\n");
        flags_print(flags);
        return 0;
    }
    return up_main(&o);
}
