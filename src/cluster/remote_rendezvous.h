/* remote_rendezvous.h: how a step receives from other tasks: RecvTensor, and RecvBuf for collectives. */
#pragma once
#include "cluster/step_table.h"
#include "net/transport.h"
#include "runtime/rendezvous.h"

/* Of every step of a worker; its arg is the StepEntry. */
extern const RemoteWay remote_way;
/* The way to the task of a device, in the session of a step; borrowed. */
Error *remote_channel(StepEntry *e, Str device, Channel **out) MUST_CHECK;

/* A method that waits at another task for what a step of it sends. */
typedef struct RecvMethod {
    const char *path, *what;
    Error *(*decode)(Message *reply, Tensor **value, bool *is_dead);
    AlignAt *align_at;
    bool precondition_means_restart; /* FailedPrecondition is how it says that the task is another than expected */
} RecvMethod;

/* Calls it with the request (taken). Ends with the value, with the other task's error, or when the rendezvous is aborted: it also waits there under the
 * key, which nobody may send. `session` and `entry` (both optional) are held until the end. */
void remote_recv_start(const RecvMethod *method, Channel *channel, Message *request, WorkerSession *session, StepEntry *entry, Rendezvous *r, Str key,
                       RecvDone *done, void *arg);
