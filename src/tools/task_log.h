/* task_log.h: TaskLog, the output of many tasks on one terminal: each line behind its task's name, in its colour, above one line of progress. */
#pragma once
#include <stdbool.h>

#include "base/str.h"

typedef struct TaskLog {
    int name_width;
    bool colour; /* standard output is a terminal */
    bool progress_shown;
} TaskLog;

void task_log_init(TaskLog *l, int name_width);
/* A line of a task; `index` chooses the colour. */
void task_log_line(TaskLog *l, const char *name, int index, Str line);
void task_log_progress(TaskLog *l, const char *text); /* replaced by the next; on a terminal only */
void task_log_end(TaskLog *l); /* takes the progress line away */
