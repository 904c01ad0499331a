/* task_log.c: lines and one progress line; plain text when nobody looks. */
#include "tools/task_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void task_log_init(TaskLog *l, int name_width) {
    *l = (TaskLog){.name_width = name_width, .colour = isatty(1) && !getenv("NO_COLOR")};
}

static void hide_progress(TaskLog *l) {
    if (l->progress_shown) fputs("\r\033[K", stdout);
    l->progress_shown = false;
}

void task_log_line(TaskLog *l, const char *name, int index, Str line) {
    static const int colours[] = {36, 32, 33, 35, 34, 96, 92, 93, 95, 94};
    hide_progress(l);
    if (line.len && line.ptr[line.len - 1] == '\r') line.len--;
    if (l->colour)
        printf("\033[%dm%-*s |\033[0m ", colours[(unsigned)index % (sizeof colours / sizeof colours[0])], l->name_width, name);
    else
        printf("%-*s | ", l->name_width, name);
    fwrite(line.ptr, 1, line.len, stdout);
    putchar('\n');
    fflush(stdout);
}

void task_log_progress(TaskLog *l, const char *text) {
    if (!l->colour) return;
    hide_progress(l);
    fputs(text, stdout);
    fflush(stdout);
    l->progress_shown = true;
}

void task_log_end(TaskLog *l) {
    hide_progress(l);
    fflush(stdout);
}
