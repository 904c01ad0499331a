/* cmd_demo.c: rill demo: the digits program (examples/c/digits.c) through rill up, with what lies beside this program. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "tools/command.h"

enum { STEPS = 800, EXPECTED_PERCENT = 97 };

static const char usage[] =
    "demo [--ps N] [--workers N] [--steps N] [--logdir DIR]\n\n"
    "Trains a convolutional network on handwritten digits, in step, on a cluster on this machine: a chief, ps and workers, a process each, by rill up.\n"
    "Exit code 1 when it fails, or when it has not learnt to read 97 % of the digits it has not seen (with the default number of steps).\n";

/* Where the program and its data are: in a build folder of a checkout, or installed. */
static const struct {
    const char *program, *data;
} places[] = {
    {"examples/digits", "../../data/digits.csv.gz"},
    {"../share/rill/demo/digits", "../share/rill/demo/digits.csv.gz"},
};

static bool find(char **program, char **data) {
    char *folder = program_folder();
    bool found = false;
    for (size_t i = 0; !found && i < sizeof places / sizeof places[0]; i++) {
        *program = xasprintf("%s/%s", folder, places[i].program);
        *data = xasprintf("--data=%s/%s", folder, places[i].data);
        found = access(*program, X_OK) == 0;
        if (found) break;
        free(*program);
        free(*data);
    }
    free(folder);
    return found;
}

int cmd_demo(int argc, char **argv) {
    int64_t ps = 2, workers = 2, steps = 0;
    const char *logdir = NULL;
    bool help = false;
    const Flag flags[] = {
        {"ps", FLAG_INT, &ps, "N", "ps tasks (2)"},
        {"workers", FLAG_INT, &workers, "N", "worker tasks besides the chief (2)"},
        {"steps", FLAG_INT, &steps, "N", "steps to train (800)"},
        {"logdir", FLAG_STRING, &logdir, "DIR", "write checkpoints and events there (none are written)"},
        {"help", FLAG_BOOL, &help, NULL, "print this"},
        {0},
    };
    int count, code;
    if (!command_parse(flags, usage, argc, argv, NULL, 0, 0, &count, &code)) return code;
    if (steps < 0) {
        fprintf(stderr, "rill demo: --steps takes a number from 1 on; try rill demo --help\n");
        return EXIT_USAGE;
    }
    char *program = NULL, *data = NULL;
    if (!find(&program, &data)) return command_failed("demo", error_not_found("the program digits is not beside this one; make examples builds it, make install installs it"));
    char ps_text[24], workers_text[24], steps_text[40], expect_text[24], *logdir_text = logdir ? xasprintf("--logdir=%s", logdir) : NULL;
    snprintf(ps_text, sizeof ps_text, "%lld", (long long)ps);
    snprintf(workers_text, sizeof workers_text, "%lld", (long long)workers);
    snprintf(steps_text, sizeof steps_text, "--steps=%lld", (long long)(steps ? steps : STEPS));
    snprintf(expect_text, sizeof expect_text, "--expect=%d", steps ? 0 : EXPECTED_PERCENT);
    char *words[] = {"up", "--chief", "--quiet", "--ps", ps_text, "--workers", workers_text, "--", program, data, steps_text, expect_text, logdir_text, NULL};
    code = cmd_up((int)(sizeof words / sizeof words[0]) - 1 - !logdir, words);
    free(program);
    free(data);
    free(logdir_text);
    return code;
}
