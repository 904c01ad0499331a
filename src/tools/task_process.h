/* task_process.h: TaskProcess, a process of a local cluster: started with its own environment, its output read line by line, never left behind. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

typedef struct TaskProcess {
    char *name;  /* "worker/0" */
    char **argv; /* ends with NULL */
    char **environment; /* "NAME=value", set on top of ours; ends with NULL */
    pid_t pid;   /* 0: does not run */
    int out;     /* reads what it prints on standard output and standard error; -1: closed */
    StrBuf line; /* read, without its end so far */
    size_t searched; /* of line: has no end in it */
    int status;  /* of waitpid, once it has ended */
    bool has_ended;
    int restarts;
} TaskProcess;

/* Takes over name, argv and environment. */
void task_process_init(TaskProcess *p, char *name, char **argv, char **environment);
void task_process_clear(TaskProcess *p); /* it must have ended */
/* Starts it, in a process group of its own; it is killed when this process dies. */
Error *task_process_start(TaskProcess *p) MUST_CHECK;
void task_process_signal(TaskProcess *p, int signal); /* to it and all it started */

typedef void LineFn(void *arg, TaskProcess *p, Str line);
/* Reads what is there, a megabyte at most, so that one that never stops printing does not keep the caller from others; gives whole lines on, at the end also an
 * unfinished one. A line of more than a megabyte comes in pieces. False when nothing more will come. */
bool task_process_read(TaskProcess *p, LineFn *line, void *arg);
/* What a process that has ended had printed; what somebody it started may still print is not waited for. */
void task_process_read_rest(TaskProcess *p, LineFn *line, void *arg);
int task_process_exit_code(const TaskProcess *p); /* 128 + signal when one ended it */
