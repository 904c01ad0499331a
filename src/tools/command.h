/* command.h: the subcommands of rill. */
#pragma once

/* argv[0] is the subcommand's name; returns the exit code. */
typedef int CommandFn(int argc, char **argv);

CommandFn cmd_serve, cmd_status, cmd_ops, cmd_version;

enum { EXIT_USAGE = 2 };
