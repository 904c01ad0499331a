/* server.h: one task of a cluster inside this process, for programs that bring their own client. */
#ifndef RILL_SERVER_H_
#define RILL_SERVER_H_

#include "rill/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RillServer RillServer;

/* cluster: JSON, {"ps": ["host:port"], "worker": ["host:port", ...]}. Serves from now on. NULL with *status set when it cannot. */
RILL_API RillServer *rill_server_start(const char *cluster, const char *job, int task, TF_Status *status);
RILL_API const char *rill_server_target(const RillServer *s); /* "grpc://host:port" */
/* Waits until the task is told to end (rill stop) or, for a ps, until its job is done; false when timeout_ms (-1: none) has passed first. */
RILL_API bool rill_server_wait(RillServer *s, int64_t timeout_ms);
RILL_API void rill_server_done(RillServer *s); /* this task has done its part of the job: ps tasks end when all have */
RILL_API void rill_server_stop(RillServer *s); /* and frees it; NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
