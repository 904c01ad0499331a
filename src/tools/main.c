/* main.c: the program rill: a table of subcommands. */
#include <stdio.h>
#include <string.h>

#include "tools/command.h"

static const struct {
    const char *name;
    CommandFn *run;
    const char *help;
} commands[] = {
    {"serve", cmd_serve, "runs one task of a cluster"},
    {"up", cmd_up, "runs a whole cluster on this machine, with a program on every task"},
    {"run", cmd_run, "runs a TensorFlow 1-style script with Rill servers"},
    {"stop", cmd_stop, "ends every task of a running cluster"},
    {"status", cmd_status, "shows the tasks, devices and sessions of a running cluster"},
    {"graph", cmd_graph, "runs and shows SavedModels, MetaGraphs and GraphDefs"},
    {"ckpt", cmd_ckpt, "lists, prints, compares and verifies checkpoints"},
    {"records", cmd_records, "lists, prints, counts and verifies the records of TFRecord files"},
    {"events", cmd_events, "shows the summaries of event files"},
    {"ops", cmd_ops, "lists the ops this build can run"},
    {"version", cmd_version, "prints the version"},
};

static void print_help(void) {
    puts("rill: the distributed TensorFlow runtime\n\nusage: rill COMMAND [FLAGS]      rill COMMAND --help\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) printf("  %-10s %s\n", commands[i].name, commands[i].help);
    puts("\nExit codes: 0 done, 1 failed, 2 wrong usage.");
}

int main(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_help();
        return argc < 2 ? EXIT_USAGE : 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "rill: unknown command '%s'; try rill --help\n", argv[1]);
    return EXIT_USAGE;
}
