/* coordinator.h: threads that belong together, and the threads that fill a graph's queues. */
#ifndef RILL_COORDINATOR_H_
#define RILL_COORDINATOR_H_

#include "rill/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Thread-safe. */
typedef struct RillCoordinator RillCoordinator;

RILL_API RillCoordinator *rill_coordinator_new(void);
RILL_API void rill_coordinator_free(RillCoordinator *c); /* after rill_coordinator_join; NULL is allowed */
/* Asks all threads to end. With an error: join reports the first; OutOfRange (the input has ended) and Cancelled are none. */
RILL_API void rill_coordinator_stop(RillCoordinator *c, TF_Code code, const char *message);
RILL_API bool rill_coordinator_should_stop(const RillCoordinator *c);
RILL_API bool rill_coordinator_wait(RillCoordinator *c, int64_t timeout_ms); /* until asked to stop; false when the time is over first; -1: no limit */
/* Starts a thread that is joined with the others. It looks at rill_coordinator_should_stop by itself. */
RILL_API void rill_coordinator_start(RillCoordinator *c, void (*run)(RillCoordinator *c, void *arg), void *arg);
RILL_API TF_Code rill_coordinator_join(RillCoordinator *c, TF_Status *status); /* waits for all threads */

/* Threads that run these operations over and over, each in its own: they fill the queue until the input ends, then close it. Kept by the graph. */
RILL_API void rill_queue_runner(RillGraph *g, RillTensor queue, TF_Operation *const *enqueue_ops, int count);
/* Starts those of the session's graph. The session must stay open until the coordinator has joined: stop it, close the session's queues by
 * rill_coordinator_stop, then join. */
RILL_API void rill_start_queue_runners(RillSession *s, RillCoordinator *c);

#ifdef __cplusplus
}
#endif
#endif
