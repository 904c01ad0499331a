/* cmd_bench.c: rill bench: a ps and a worker measured on this machine, or a graph from a file at any server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_list.h"
#include "tools/bench_pair.h"
#include "tools/command.h"
#include "tools/load_generator.h"
#include "tools/report.h"

static const char usage[] =
    "bench [NAME | FILE CASE] [FLAGS]\n\n"
    "Without FILE: starts a ps and a worker on this machine, a process each, and measures the time until both accept calls, the time of CreateSession,\n"
    "resident memory, and what NAME says, or all of it: empty (empty steps of the worker, which is the master), remote (of the ps), barrier (both wait\n"
    "for each other), small (the worker makes a number, the ps adds it to a variable), each one after the other; pull and push (a large variable of the\n"
    "ps, read and assigned by the worker; median of 5). The numbers are those of this run; a busy machine gives others.\n\n"
    "With FILE: runs one step of a graph over and over, at the task that --target names, which may be Rill's or TensorFlow's, else in this process.\n"
    "FILE is JSON: {\"graph\": \"graph.pb\", \"cases\": {\"CASE\": {\"init\": [[\"init\"]], \"feeds\": {\"x:0\": \"x.npy\"}, \"fetches\": [\"loss:0\"],\n"
    "\"targets\": [\"train\"]}}}; graph.pb is a GraphDef, and paths are those beside FILE. Told are steps a second, the time of a step, and CPU time\n"
    "of a step, by process.\n";

typedef struct Options {
    int64_t seconds, megabytes, steps, warm_steps;
    const char *target;
    FlagList pids;
    bool as_json, lines, help;
} Options;

/* ---- A graph from a file ---- */

static void report_start(cJSON *json, const LoadStart *s) {
    report_double(json, "create_ms", s->create_ms);
    report_double(json, "init_ms", s->init_ms);
    report_double(json, "extend_ms", s->extend_ms);
    report_double(json, "first_ms", s->first_ms);
}

static void report_numbers(cJSON *json, const LoadWindow *w, const LoadNumbers *n) {
    report_int(json, "steps", n->steps);
    report_double(json, "seconds", n->seconds);
    report_double(json, "steps_per_s", (double)n->steps / n->seconds);
    report_double(json, "median_us", n->median_us);
    report_double(json, "p90_us", n->p90_us);
    report_double(json, "least_us", n->least_us);
    report_double(json, "client_cpu_us", n->client_cpu_us);
    cJSON *cpu = report_array(json, "server_cpu_us");
    for (int i = 0; i < w->pid_count; i++) report_double(cpu, NULL, n->server_cpu_us[i]);
}

static void print_text(const LoadWindow *w, const LoadNumbers *n, const LoadStart *s) {
    printf("CreateSession             %10.1f ms\n", s->create_ms);
    printf("first step                %10.1f ms\n", s->first_ms);
    printf("steps                     %10.0f a second (%lld in %.2f s)\n", (double)n->steps / n->seconds, (long long)n->steps, n->seconds);
    printf("a step                    %10.1f us median, %.1f at least, %.1f for 90 of 100\n", n->median_us, n->least_us, n->p90_us);
    printf("CPU a step, client        %10.1f us\n", n->client_cpu_us);
    for (int i = 0; i < w->pid_count; i++) printf("CPU a step, process %-8d %7.1f us\n", (int)w->pids[i], n->server_cpu_us[i]);
}

/* A window for every line of standard input: "SECONDS" or "SECONDS STEPS". */
static Error *answer_lines(LoadGenerator *g, LoadWindow *w, const LoadStart *start) {
    char line[256];
    cJSON *json = cJSON_CreateObject();
    report_start(json, start);
    report_print_line(json);
    Error *err = NULL;
    while (!err && fgets(line, sizeof line, stdin)) {
        long long steps = 0;
        double seconds = 0;
        if (sscanf(line, "%lf %lld", &seconds, &steps) < 1 || seconds <= 0) return error_invalid("'%s' is not SECONDS [STEPS]", strtok(line, "\n"));
        w->seconds = seconds;
        w->max_steps = steps;
        LoadNumbers n;
        err = load_generator_run(g, w, &n);
        if (err) break;
        json = cJSON_CreateObject();
        report_numbers(json, w, &n);
        report_print_line(json);
        free(n.server_cpu_us);
    }
    return err;
}

static Error *measure_once(LoadGenerator *g, const LoadWindow *w, const LoadStart *start, bool as_json) {
    LoadNumbers n;
    Error *err = load_generator_run(g, w, &n);
    if (err) return err;
    if (as_json) {
        cJSON *json = cJSON_CreateObject();
        report_start(json, start);
        report_numbers(json, w, &n);
        report_print(json);
    } else {
        print_text(w, &n, start);
    }
    free(n.server_cpu_us);
    return NULL;
}

static Error *bench_file(const char *path, const char *name, const Options *o) {
    BenchCase c;
    Error *err = bench_case_read(path, name, &c);
    if (err) return err;
    pid_t *pids = xcalloc((size_t)o->pids.count + 1, sizeof *pids);
    for (int i = 0; i < o->pids.count; i++) pids[i] = (pid_t)atoi(o->pids.items[i]);
    LoadWindow window = {.seconds = (double)o->seconds, .max_steps = o->steps, .pids = pids, .pid_count = o->pids.count};
    LoadStart start = {0};
    LoadGenerator *g = NULL;
    err = load_generator_new(&c, &(LoadOptions){.target = o->target, .warm_steps = o->warm_steps}, &start, &g);
    if (!err) err = o->lines ? answer_lines(g, &window, &start) : measure_once(g, &window, &start, o->as_json);
    load_generator_free(g);
    free(pids);
    bench_case_clear(&c);
    return err;
}

/* ---- The command ---- */

static const char *mistake(const Options *o, const char *const *words, int word_count) {
    int64_t pid;
    if (o->seconds < 1 || o->seconds > 3600 || o->megabytes < 1 || o->megabytes > 2000) return "--seconds takes 1 to 3600, --mb 1 to 2000";
    if (o->steps < 0 || o->warm_steps < 0) return "--steps and --warm take 0 and more";
    for (int i = 0; i < o->pids.count; i++)
        if (!str_to_int64(str_of(o->pids.items[i]), &pid) || pid < 1) return "--pid takes the number of a process";
    if (word_count == 1 && !bench_pair_has(words[0])) return "takes empty, remote, barrier, small, pull or push, or a FILE, of which the name of a case is missing";
    return NULL;
}

int cmd_bench(int argc, char **argv) {
    Options o = {.seconds = 2, .megabytes = 100, .warm_steps = 10, .target = ""};
    const Flag flags[] = {
        {"seconds", FLAG_INT, &o.seconds, "N", "how long steps are run (2)"},
        {"mb", FLAG_INT, &o.megabytes, "N", "size of the large variable, in MB (100)"},
        {"target", FLAG_STRING, &o.target, "grpc://HOST:PORT", "the task that runs the steps of FILE (this process)"},
        {"steps", FLAG_INT, &o.steps, "N", "steps of FILE at most (any number)"},
        {"warm", FLAG_INT, &o.warm_steps, "N", "steps of FILE before it is measured, after the first (10)"},
        {"pid", FLAG_LIST, &o.pids, "PID", "tell CPU time of this process too; may be given several times"},
        {"lines", FLAG_BOOL, &o.lines, NULL, "for programs: measures FILE for each line \"SECONDS [STEPS]\" on standard input, answers with one of JSON"},
        {"json", FLAG_BOOL, &o.as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &o.help, NULL, "print this"},
        {0},
    };
    const char *words[2];
    int count, code;
    if (!command_parse(flags, usage, argc, argv, words, 0, 2, &count, &code)) {
        flag_list_clear(&o.pids);
        return code;
    }
    const char *wrong = mistake(&o, words, count);
    Error *err = NULL;
    if (!wrong) {
        ops_register_all();
        err = count == 2 ? bench_file(words[0], words[1], &o) : bench_pair(&(BenchPairOptions){o.seconds, o.megabytes, count ? words[0] : NULL, o.as_json});
    }
    flag_list_clear(&o.pids);
    if (wrong) {
        fprintf(stderr, "rill bench: %s\n", wrong);
        return EXIT_USAGE;
    }
    return err ? command_failed("bench", err) : 0;
}
