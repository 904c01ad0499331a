/* queue_resource.h: Queue, tuples of tensors that wait between steps, and the four orders in which they leave it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/resource.h"
#include "tensor/tensor.h"

typedef enum QueueKind { QUEUE_FIFO, QUEUE_SHUFFLE, QUEUE_PADDING, QUEUE_PRIORITY } QueueKind;

/* What a queue is made from; the arrays are borrowed. */
typedef struct QueueSpec {
    QueueKind kind;
    int64_t capacity; /* < 0: unbounded */
    int component_count;
    const DataType *types;
    const PartialShape *shapes; /* NULL: any; only a padding queue may have unknown dimensions */
    int64_t min_after_dequeue;  /* shuffle: elements that stay, until the queue is closed */
    int64_t seed, seed2;        /* shuffle; both 0: random */
} QueueSpec;

typedef struct Queue Queue;
extern const ResourceType queue_type;

Queue *queue_new(Str name, const QueueSpec *spec); /* one reference; a Resource */
/* What an element of a shared queue or barrier is made of. */
typedef struct Components {
    const DataType *types;
    const PartialShape *shapes; /* NULL: any */
    int count;
} Components;

/* InvalidArgument where the shared `what` of that name has other components than those asked for. */
Error *components_check(const char *what, const char *name, const Components *ours, const Components *theirs) MUST_CHECK;
/* InvalidArgument when a shared queue was made with another spec. */
Error *queue_check_spec(const Queue *q, const QueueSpec *spec) MUST_CHECK;
const char *queue_kind_name(QueueKind kind); /* "FIFOQueue" */
int queue_component_count(const Queue *q);
DataType queue_component_type(const Queue *q, int i);

/* The operation is over: err is the callee's; components are set when a dequeue succeeded, borrowed,
 * queue_component_count of them. May run before the function that started it returned, or on another thread; never with
 * a lock of the queue held. */
typedef void QueueDone(void *arg, Error *err, Tensor **components);

/* All keep what they need: components and queue are borrowed. `many` take or give rows of the first dimension. */
void queue_enqueue(Queue *q, Tensor *const *components, Cancel *cancel, QueueDone *done, void *arg);
void queue_enqueue_many(Queue *q, Tensor *const *components, Cancel *cancel, QueueDone *done, void *arg);
void queue_dequeue(Queue *q, Cancel *cancel, QueueDone *done, void *arg);
/* up_to: once the queue is closed, fewer are given, one at least. */
void queue_dequeue_many(Queue *q, int64_t n, bool up_to, Cancel *cancel, QueueDone *done, void *arg);
/* cancel_pending: enqueues that wait are cancelled; else the queue closes when they are done. */
void queue_close(Queue *q, bool cancel_pending, Cancel *cancel, QueueDone *done, void *arg);
int64_t queue_size(Queue *q);
bool queue_is_closed(Queue *q);

/* Checks the tuple before anything waits. */
Error *queue_check_tuple(const Queue *q, Tensor *const *components, int count, bool many) MUST_CHECK;
