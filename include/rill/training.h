/* training.h: a training that starts, waits, recovers, saves and ends by itself: what MonitoredTrainingSession and Supervisor do.

     RillTraining *t = rill_training_open(g, &(RillTrainingOptions){.task = task, .directory = "run", .last_step = 1000});
     while (!rill_training_should_stop(t))
         rill_training_run(t, &(RillStep){.feeds = ..., .targets = &train_op, .target_count = 1});
     return rill_training_close(t);

   The chief gives the variables their values, from the newest checkpoint of the directory or from their initial ones; the others wait for it. When a task dies and
   comes back (Unavailable, Aborted), a new session is made, the chief restores what was lost, and the run is tried again. */
#ifndef RILL_TRAINING_H_
#define RILL_TRAINING_H_

#include "rill/saver.h"
#include "rill/summary.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RillTraining RillTraining;

/* ---- Hooks: what happens around the runs ---- */
typedef struct RillHook RillHook;
struct RillHook {
    void *arg; /* yours */
    void (*begin)(RillHook *h, RillGraph *g);                       /* (optional) the graph may still grow */
    void (*session_made)(RillHook *h, RillTraining *t, RillSession *s); /* (optional) also after each recovery */
    /* (optional) Before a run: up to `max` tensors to fetch along with it; returns how many. */
    int (*before_run)(RillHook *h, RillTraining *t, RillTensor *fetches, int max);
    void (*after_run)(RillHook *h, RillTraining *t, TF_Tensor *const *values, int64_t step); /* (optional) their values, and the global step; not after a run that failed */
    void (*end)(RillHook *h, RillTraining *t, RillSession *s); /* (optional) the training ended well */
    void (*free)(RillHook *h); /* (optional) */
};
/* Made for you: each is freed by the training it is given to. */
RILL_API RillHook *rill_hook_stop_at(int64_t last_step);
RILL_API RillHook *rill_hook_log(const char *const *names, const RillTensor *tensors, int count, int every_steps); /* one line on standard error */
RILL_API RillHook *rill_hook_nan_guard(RillTensor loss); /* a loss that is not a number fails the training */
RILL_API RillHook *rill_hook_progress(int64_t last_step, const char *const *names, const RillTensor *tensors, int count); /* a bar with rate and time left; plain lines where nobody looks */

typedef struct RillTrainingOptions {
    RillTask *task;         /* NULL: on its own */
    const char *directory;  /* of checkpoints and events; NULL: nothing is saved or restored */
    int save_seconds;       /* between checkpoints; 0: 600, -1: only at the end */
    int64_t save_steps;     /* instead, when > 0 */
    int summary_steps;      /* between summaries; 0: 100, -1: none */
    int log_steps;          /* a line with step, rate and loss every so many; 0: none */
    RillTensor loss;        /* (optional) for that line and a summary */
    int64_t last_step;      /* stop when the global step is there; 0: no limit */
    RillSaver *saver;       /* (optional) else one of all variables, keeping `keep` */
    int keep;               /* 0: 5 */
    TF_Operation *init_op, *local_init_op; /* (optional) else of all variables made so far */
    TF_Operation *ready_for_local_init;    /* reserved: NULL */
    RillTensor ready;       /* (optional) a string vector that is empty when all is ready; else rill_report_uninitialized */
    RillHook **hooks;       /* taken over */
    int hook_count;
    double wait_seconds;    /* between looks at whether the chief is done; 0: 0.2 */
    int64_t patience_seconds; /* for the chief, and for lost tasks to come back; 0: 7200 */
    RillSessionOptions session; /* without device_filters: of this task and the ps tasks */
} RillTrainingOptions;

/* Completes the graph (init ops, saver, summaries), then waits until the session is ready. NULL with *status set when that fails. */
RILL_API RillTraining *rill_training_open(RillGraph *g, const RillTrainingOptions *options, TF_Status *status);
RILL_API bool rill_training_should_stop(RillTraining *t); /* also after an error: close says which */
RILL_API void rill_training_stop(RillTraining *t);        /* asks it to; from any thread */
/* One run, with its hooks; tries again after a recovery. OutOfRange (the input has ended) ends the training well. An error that cannot be recovered from ends it. */
RILL_API TF_Code rill_training_run(RillTraining *t, const RillStep *step);
RILL_API int64_t rill_training_step(const RillTraining *t); /* the global step after the last run */
RILL_API RillSession *rill_training_session(RillTraining *t);
RILL_API const char *rill_training_message(const RillTraining *t); /* of the error; "" while there is none */
/* Saves (the chief), ends threads and session, frees. 0, or 1 when an error ended it: its message went to standard error. */
RILL_API int rill_training_close(RillTraining *t);

/* ---- Supervisor: the same, with the loop in your hands ---- */
typedef struct RillSupervisor RillSupervisor;
typedef struct RillSupervisorOptions {
    RillTask *task;
    bool is_not_chief;       /* when there is no task to say so */
    const char *logdir;      /* checkpoints and events; NULL: none */
    TF_Operation *init_op, *local_init_op; /* (optional) */
    RillSaver *saver;        /* (optional) */
    double recovery_wait_seconds; /* between looks; 0: 0.2 (TensorFlow: 30) */
    int save_seconds;        /* 0: 600 */
    int summary_seconds;     /* 0: 120 */
} RillSupervisorOptions;
RILL_API RillSupervisor *rill_supervisor_new(RillGraph *g, const RillSupervisorOptions *options, TF_Status *status);
/* The chief prepares the session: restores or initialises; the others wait for it. Queue runners and the services that save and summarise are started. */
RILL_API RillSession *rill_supervisor_prepare_or_wait(RillSupervisor *s, TF_Status *status);
RILL_API bool rill_supervisor_should_stop(RillSupervisor *s);
RILL_API void rill_supervisor_request_stop(RillSupervisor *s);
RILL_API TF_Code rill_supervisor_stop(RillSupervisor *s, TF_Status *status); /* saves (the chief), ends threads, closes the session, frees */

#ifdef __cplusplus
}
#endif
#endif
