/* task.h: one program for every task of a cluster: on its own, all in one process, over many machines, or mixed.

   int main(int argc, char **argv) { return rill_main(argc, argv, train, NULL); }

   The command line, or TF_CONFIG, says what the process is:

     (nothing)                                   the program runs on its own, without a cluster
     --cluster=local [--ps=2] [--workers=2]      a whole cluster in this process, without ports: train() runs once for each worker, in its own thread
     --ps_hosts=a:1,b:1 --worker_hosts=c:1,d:1 --job_name=worker --task_index=0
     --cluster=FILE|JSON --job_name=... --task_index=...      one task of a cluster
     TF_CONFIG={"cluster": {...}, "task": {"type": "worker", "index": 0}}
     TF_CONFIG={"cluster": {...}} and --target=grpc://... or RILL_TARGET         a client of the cluster, as rill up --client gives them
     --here=ps:0,ps:1,worker:0                   several tasks of the cluster in this process, without ports between them; the others elsewhere
     --keepalive=20                              with addresses: a machine silent for so many seconds is asked, and given up after as many again;
                                                 so long may an attempt to connect take

   A ps only serves: train() is not called, and the process ends when all workers are done. */
#ifndef RILL_TASK_H_
#define RILL_TASK_H_

#include "rill/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RillTask RillTask;
typedef int RillProgram(RillTask *task, void *arg); /* returns the exit code of the task */

/* The exit code of the process: that of the chief if it is here and failed, else of the first that failed. Mistakes in the flags are told on standard error. */
RILL_API int rill_main(int argc, char **argv, RillProgram *program, void *arg);

RILL_API const char *rill_task_job(const RillTask *t); /* "worker"; "local" on its own */
RILL_API int rill_task_index(const RillTask *t);
RILL_API bool rill_task_is_chief(const RillTask *t); /* chief 0, or worker 0 where there is no chief */
RILL_API int rill_task_count(const RillTask *t, const char *job);
RILL_API const char *rill_task_target(const RillTask *t); /* "grpc://host:port"; "" on its own */
RILL_API const char *rill_task_device(const RillTask *t); /* "/job:worker/task:1"; "" on its own */
/* How tasks that compute (chief, master, worker) share the ps tasks. */
RILL_API int rill_task_workers(const RillTask *t); /* how many compute; 1 on its own */
RILL_API RillDeviceSetter rill_task_device_setter(const RillTask *t);

/* ---- The program's own flags: --name=value, --name value; --name alone is true ---- */
RILL_API const char *rill_flag(const RillTask *t, const char *name, const char *otherwise);
RILL_API int64_t rill_flag_int(const RillTask *t, const char *name, int64_t otherwise);
RILL_API double rill_flag_float(const RillTask *t, const char *name, double otherwise);
RILL_API bool rill_flag_bool(const RillTask *t, const char *name, bool otherwise);
/* Words that are neither flags nor their values. */
RILL_API int rill_word_count(const RillTask *t);
RILL_API const char *rill_word(const RillTask *t, int i);

/* One line on standard error, behind time and task. */
RILL_API void rill_log(const RillTask *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
