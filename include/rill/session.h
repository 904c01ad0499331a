/* session.h: graphs are run; values go in and come out. */
#ifndef RILL_SESSION_H_
#define RILL_SESSION_H_

#include "rill/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RillSession RillSession;

typedef struct RillSessionOptions {
    int64_t timeout_ms;             /* of each run; 0: none */
    bool soft_placement;            /* nodes go elsewhere when their device cannot run them */
    const char *const *device_filters; /* only tasks that match take part: "/job:ps", "/job:worker/task:0" */
    int device_filter_count;
} RillSessionOptions;

/* A session at the task's own server, or in this process when the program is on its own. NULL with *status set when it cannot be made, for example because the
 * graph holds a mistake. The graph may still grow. */
RILL_API RillSession *rill_session_open(RillGraph *g, const RillTask *task, const RillSessionOptions *options, TF_Status *status);
RILL_API RillSession *rill_session_open_target(RillGraph *g, const char *target, const RillSessionOptions *options, TF_Status *status); /* "", "grpc://host:port" */
RILL_API void rill_session_close(RillSession *s); /* steps under way are cancelled; NULL is allowed */
RILL_API TF_Session *rill_session_tf(RillSession *s);
RILL_API RillGraph *rill_session_graph(RillSession *s);

typedef struct RillFeed {
    RillTensor tensor;
    TF_Tensor *value; /* borrowed */
} RillFeed;

/* What one run does. */
typedef struct RillStep {
    const RillFeed *feeds;
    int feed_count;
    const RillTensor *fetches;
    TF_Tensor **values; /* by fetch: filled, the caller's to delete; all NULL on error */
    int fetch_count;
    TF_Operation *const *targets;
    int target_count;
    TF_Buffer *metadata; /* (optional) a trace of the step, serialised RunMetadata */
} RillStep;

/* Thread-safe: several threads may run at once. The code, and with `status` the message. */
RILL_API TF_Code rill_session_run(RillSession *s, const RillStep *step, TF_Status *status);
RILL_API TF_Code rill_session_run_op(RillSession *s, TF_Operation *op, TF_Status *status);
/* One number of any numeric type; NaN on error. */
RILL_API double rill_session_number(RillSession *s, RillTensor t, TF_Status *status);

/* ---- Values ---- */
RILL_API TF_Tensor *rill_value(TF_DataType type, const int64_t *dims, int rank, const void *data); /* data is copied */
RILL_API TF_Tensor *rill_value_string(const char *text);
RILL_API double rill_value_number(const TF_Tensor *t); /* its first element */
RILL_API char *rill_value_text(const TF_Tensor *t, int64_t i); /* element i of a string tensor, malloced */

#ifdef __cplusplus
}
#endif
#endif
