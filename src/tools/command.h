/* command.h: the subcommands of rill. */
#pragma once
#include <stdbool.h>

#include "base/error.h"
#include "base/flags.h"

/* argv[0] is the subcommand's name; returns the exit code. */
typedef int CommandFn(int argc, char **argv);

CommandFn cmd_serve, cmd_up, cmd_demo, cmd_bench, cmd_run, cmd_stop, cmd_status, cmd_graph, cmd_ckpt, cmd_records, cmd_events, cmd_ops,
    cmd_completion, cmd_version;
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

/* A subcommand, and what comes below it. */
typedef struct Command {
    const char *name; /* NULL ends the table */
    CommandFn *run;
    const char *help;
    const Subcommand *rows; /* NULL: it has no subcommands */
} Command;

extern const Command commands[]; /* all of them, in main.c */
extern const Subcommand graph_rows[], ckpt_rows[], records_rows[], completion_rows[];

/* Runs the row that argv[1] names; argv[0] becomes "NAME ROW", for messages. */
int subcommand_run(const Subcommand *rows, const char *name, const char *about, int argc, char **argv);

/* Flags and at least `min`, at most `max` words after them. True: go on. False: *code is what to exit with, because of
 * --help (usage and flags are printed) or because of a mistake (it is told). The table has a row "help". */
bool command_parse(const Flag *flags, const char *usage, int argc, char **argv, const char **words, int min, int max,
                   int *count, int *code);

char *program_path(void);   /* of this program, malloced */
char *program_folder(void); /* where it lies, malloced */

int command_failed(const char *name, Error *err); /* tells and frees it; EXIT_FAILURE */
