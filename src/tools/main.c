/* main.c: the program rill: a table of subcommands. */
#include <stdio.h>
#include <string.h>

#include "tools/command.h"

const Command commands[] = {
    {"serve", cmd_serve, "runs one task of a cluster", NULL},
    {"up", cmd_up, "runs a whole cluster on this machine, with a program on every task", NULL},
    {"demo", cmd_demo, "trains a digit classifier on a cluster on this machine", NULL},
    {"bench", cmd_bench, "measures a ps and a worker on this machine, or a graph at any server", NULL},
    {"run", cmd_run, "runs a TensorFlow 1-style script with Rill servers", NULL},
    {"stop", cmd_stop, "ends every task of a running cluster", NULL},
    {"status", cmd_status, "shows the tasks, devices and sessions of a running cluster", NULL},
    {"graph", cmd_graph, "runs and shows SavedModels, MetaGraphs and GraphDefs", graph_rows},
    {"ckpt", cmd_ckpt, "lists, prints, compares and verifies checkpoints", ckpt_rows},
    {"records", cmd_records, "lists, prints, counts and verifies the records of TFRecord files", records_rows},
    {"events", cmd_events, "shows the summaries of event files", NULL},
    {"ops", cmd_ops, "lists the ops this build can run", NULL},
    {"completion", cmd_completion, "prints what makes a shell complete commands and flags", completion_rows},
    {"version", cmd_version, "prints the version", NULL},
    {0},
};

static void print_help(void) {
    puts("rill: the distributed TensorFlow runtime\n\nusage: rill COMMAND [FLAGS]      rill COMMAND --help\n");
    for (const Command *c = commands; c->name; c++) printf("  %-10s %s\n", c->name, c->help);
    puts("\nExit codes: 0 done, 1 failed, 2 wrong usage.");
}

int main(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_help();
        return argc < 2 ? EXIT_USAGE : 0;
    }
    for (const Command *c = commands; c->name; c++)
        if (strcmp(argv[1], c->name) == 0) return c->run(argc - 1, argv + 1);
    fprintf(stderr, "rill: unknown command '%s'; try rill --help\n", argv[1]);
    return EXIT_USAGE;
}
