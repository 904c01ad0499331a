/* job_end.h: JobEnd, how a task learns that it may end: it is told to, or it is a ps task and all tasks that compute are done. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "cluster/peers.h"
#include "cluster/spec.h"
#include "net/transport.h"

typedef void JobEnded(void *arg); /* once, on any thread; must not wait */

/* Thread-safe. */
typedef struct JobEnd JobEnd;

JobEnd *job_end_new(const ClusterSpec *cluster, const ClusterTask *own, Peers *peers, JobEnded *ended, void *arg); /* ended: optional */
void job_end_free(JobEnd *j);
/* A task has done its part. When that was the last one that computes (neither ps nor evaluator), a ps task ends. NotFound for a stranger. */
Error *job_end_done(JobEnd *j, Str task_name) MUST_CHECK;
void job_end_now(JobEnd *j);      /* this task ends */
bool job_end_wait(JobEnd *j, int64_t timeout_ms); /* until it is to end; false when the time is over first; -1: no limit */
/* Tells every ps task that this one is done; those that cannot be reached within timeout_ms go without. */
void job_end_announce(JobEnd *j, int64_t timeout_ms);

extern const Method job_methods[]; /* /rill.JobService/Stop and Done; their arg is Services, with `job_end` */
extern const int job_method_count;
