/* command.h: the subcommands of rill. */
#pragma once
#include <stdbool.h>

#include "base/error.h"
#include "base/flags.h"

/* argv[0] is the subcommand's name; returns the exit code. */
typedef int CommandFn(int argc, char **argv);

CommandFn cmd_serve, cmd_up, cmd_run, cmd_stop, cmd_status, cmd_ops, cmd_version, cmd_graph, cmd_ckpt, cmd_records,
    cmd_events;
/* Of those that have subcommands of their own. */
CommandFn graph_run, graph_show, graph_ops, graph_dot;
CommandFn ckpt_ls, ckpt_cat, ckpt_diff, ckpt_verify;

enum { EXIT_USAGE = 2 };

/* One subcommand of a subcommand. */
typedef struct Subcommand {
    const char *name; /* NULL ends the table */
    CommandFn *run;
    const char *help;
} Subcommand;

/* Runs the row that argv[1] names; argv[0] becomes "NAME ROW", for messages. */
int subcommand_run(const Subcommand *rows, const char *name, const char *about, int argc, char **argv);

/* Flags and at least `min`, at most `max` words after them. True: go on. False: *code is what to exit with, because of
 * --help (usage and flags are printed) or because of a mistake (it is told). The table has a row "help". */
bool command_parse(const Flag *flags, const char *usage, int argc, char **argv, const char **words, int min, int max,
                   int *count, int *code);

int command_failed(const char *name, Error *err); /* tells and frees it; EXIT_FAILURE */
