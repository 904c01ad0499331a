/* job_progress.h: JobProgress, one line that says how a running job gets on: asked of the chief's server, once a second. */
#pragma once
#include "tools/task_log.h"

typedef struct JobProgress JobProgress;

JobProgress *job_progress_new(const char *chief_address); /* NULL when there is no transport */
void job_progress_free(JobProgress *p);
void job_progress_show(JobProgress *p, TaskLog *log, int running, int tasks);
