/* batch_scheduler.h: BatchScheduler, which puts the requests of many steps together into batches.

   A request is some rows of several tensors. Requests gather in the open batch of a queue; a batch is worked on when it is
   full, when the next one has been begun, or when its first request has waited long enough. */
#pragma once
#include "runtime/closure.h"
#include "runtime/kernel.h"

typedef struct BatchScheduler BatchScheduler;
typedef struct Batch Batch;
extern const ResourceType batch_scheduler_type;

typedef struct BatchOptions {
    int64_t threads;         /* batches at work at once; 0 or less: one for each core */
    int64_t max_request;     /* rows of a request */
    int64_t max_batch;       /* rows of a batch */
    int64_t max_queued;      /* batches that wait, in one queue */
    int64_t timeout_us;
    const int64_t *allowed;  /* sizes that batches are padded to, ascending; copied */
    int allowed_count;
    bool splits;             /* a request may be spread over batches */
} BatchOptions;

/* A request, or part of one, as a batch has it. */
typedef struct BatchPiece {
    struct BatchRequest *request;
    int number;       /* among the pieces of its request */
    int64_t from, to; /* its rows of the request */
} BatchPiece;

/* What waits for its batch. The scheduler owns it while it does. */
typedef struct BatchRequest {
    KernelContext *k; /* deferred */
    int64_t id, size; /* size: rows */
    Tensor **inputs;  /* of k, borrowed: those that are batched */
    int input_count;
    Closure *closure; /* (optional) a reference */
    Tensor ***results; /* of each piece, [piece][output]; filled by the worker */
    int piece_count, pieces_left;
    Error *error; /* the first of its pieces */
    CancelWatch watch;
    bool watching;
    BatchScheduler *scheduler;
} BatchRequest;

/* Works on a batch, on a thread that may block; ends each piece by batch_piece_done. */
typedef void BatchWork(BatchScheduler *s, const BatchPiece *pieces, int count);

/* Find or make the scheduler of a node, by its attributes container and shared_name, else its name. *out gets a reference. */
Error *batch_scheduler_find(KernelContext *k, const BatchOptions *options, BatchWork *work,
                            BatchScheduler **out) MUST_CHECK;
/* Takes the step's request over: the kernel is deferred. InvalidArgument when it is too large, Unavailable when the queue
 * is full: then nothing was taken. */
Error *batch_scheduler_add(BatchScheduler *s, KernelContext *k, Str queue, int input_count, Closure *closure) MUST_CHECK;

/* The rows of input i of all pieces, one after the other, padded with the first row to a size that is allowed. */
Error *batch_concat(BatchScheduler *s, const BatchPiece *pieces, int count, int i, Tensor **out) MUST_CHECK;
/* results (taken, may be NULL) are the outputs for this piece. With the last piece of a request its step goes on. Takes err. */
void batch_piece_done(const BatchPiece *p, Tensor **results, Error *err);

/* Tensors one after the other along the first dimension; their other dimensions must agree. */
Error *rows_concat(Tensor *const *items, int64_t count, Tensor **out) MUST_CHECK;
