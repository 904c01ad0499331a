/* worker_client.h: WorkerClient, how a master calls a worker: over a channel, or in this process. */
#pragma once
#include "cluster/worker.h"
#include "net/transport.h"
#include "proto/worker.pb-c.h"
#include "runtime/cancel.h"

typedef struct WorkerClient {
    char *task_name; /* as the session's cluster calls it */
    char *address;   /* "" in this process */
    Worker *local;   /* NULL: remote */
    Channel *channel; /* borrowed from the peers */
    bool forgets_ended_steps; /* the process that has the session said so: no CleanupGraph for a step that ended well */
    bool takes_tensors;       /* it said so: PushTensor */
    WorkerSession *session; /* of a local worker, once created; a reference */
} WorkerClient;

void worker_client_clear(WorkerClient *c);

/* Several calls at once: each counts the latch down; errors and replies are kept by index. */
typedef struct WorkerCalls WorkerCalls;
WorkerCalls *worker_calls_new(int count);
void worker_calls_start(WorkerCalls *calls, int i, WorkerClient *c, const char *method, Message *request, CallOptions options);
bool worker_calls_wait(WorkerCalls *calls, int64_t timeout_ms); /* true when all have ended */
void worker_calls_wait_or_stop(WorkerCalls *calls, Cancel *stop); /* cancels them when `stop` is; returns when all have ended */
bool worker_calls_is_done(WorkerCalls *calls, int i);
void worker_calls_cancel(WorkerCalls *calls);
Error *worker_calls_error(WorkerCalls *calls, int i); /* borrowed; NULL when it went well */
Message *worker_calls_reply(WorkerCalls *calls, int i);
void worker_calls_free(WorkerCalls *calls); /* all must have ended */

/* One call of a remote worker, waiting; errors name the task. */
Error *worker_client_call(WorkerClient *c, const char *method, const ProtobufCMessage *request, CallOptions options, Message *reply) MUST_CHECK;
/* One call whose outcome nobody waits for. */
void worker_client_post(WorkerClient *c, const char *method, const ProtobufCMessage *request, int64_t timeout_ms);
