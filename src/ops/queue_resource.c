/* queue_resource.c: queues of tuples; enqueues and dequeues that wait for room or elements. */
#include "ops/queue_resource.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/element_store.h"
#include "ops/wait_room.h"

struct Queue {
    Resource base;
    WaitRoom room; /* its mutex guards store and closed */
    ElementStore store;
    bool closed;
    char *name;
    QueueKind kind;
    int64_t capacity, min_after_dequeue, seed, seed2;
    int n; /* components */
    DataType *types;
    PartialShape *shapes; /* NULL: any */
};

enum { LINE_ENQUEUE = 0, LINE_DEQUEUE = 1 };

static void queue_destroy(Resource *r) {
    Queue *q = (Queue *)r;
    element_store_clear(&q->store);
    wait_room_clear(&q->room);
    free(q->name);
    free(q->types);
    free(q->shapes);
    free(q);
}

static void queue_abandon(Resource *r) {
    Queue *q = (Queue *)r;
    wait_room_lock(&q->room);
    q->closed = true;
    wait_room_cancel_line_unlock(&q->room, LINE_ENQUEUE);
    wait_room_lock(&q->room);
    wait_room_cancel_line_unlock(&q->room, LINE_DEQUEUE);
}

const ResourceType queue_type = {
    .type_name = "N10tensorflow14QueueInterfaceE", .what = "queue", .destroy = queue_destroy, .cancel = queue_abandon};

const char *queue_kind_name(QueueKind kind) {
    static const char *const names[] = {"FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue"};
    return names[kind];
}

Queue *queue_new(Str name, const QueueSpec *spec) {
    Queue *q = xcalloc(1, sizeof *q);
    resource_init(&q->base, &queue_type);
    wait_room_init(&q->room);
    q->name = str_dup(name);
    q->kind = spec->kind;
    q->capacity = spec->capacity < 0 ? INT64_MAX : spec->capacity;
    q->min_after_dequeue = spec->min_after_dequeue;
    q->seed = spec->seed;
    q->seed2 = spec->seed2;
    q->n = spec->component_count;
    q->types = xmalloc((size_t)(q->n + 1) * sizeof *q->types);
    memcpy(q->types, spec->types, (size_t)q->n * sizeof *q->types);
    if (spec->shapes) {
        q->shapes = xmalloc((size_t)(q->n + 1) * sizeof *q->shapes);
        memcpy(q->shapes, spec->shapes, (size_t)q->n * sizeof *q->shapes);
    }
    StoreOrder order = spec->kind == QUEUE_SHUFFLE    ? STORE_SHUFFLED
                       : spec->kind == QUEUE_PRIORITY ? STORE_BY_PRIORITY
                                                      : STORE_FIFO;
    element_store_init(&q->store, order, spec->seed, spec->seed2);
    return q;
}

int queue_component_count(const Queue *q) {
    return q->n;
}

DataType queue_component_type(const Queue *q, int i) {
    return q->types[i];
}

int64_t queue_size(Queue *q) {
    wait_room_lock(&q->room);
    int64_t size = q->store.count;
    wait_room_unlock(&q->room);
    return size;
}

bool queue_is_closed(Queue *q) {
    wait_room_lock(&q->room);
    bool closed = q->closed;
    wait_room_unlock(&q->room);
    return closed;
}

/* ---- Checks ---- */

static char *types_text(const DataType *types, int n) {
    StrBuf b = {0};
    for (int i = 0; i < n; i++) strbuf_addf(&b, "%s%s", i ? ", " : "", dtype_name(types[i]));
    return strbuf_detach(&b);
}

static char *shapes_text(const PartialShape *shapes, int n) {
    StrBuf b = {0};
    strbuf_addc(&b, '[');
    for (int i = 0; shapes && i < n; i++) {
        char *text = shape_str(&shapes[i]);
        strbuf_addf(&b, "%s%s", i ? ", " : "", text);
        free(text);
    }
    strbuf_addc(&b, ']');
    return strbuf_detach(&b);
}

Error *components_check(const char *what, const char *name, const Components *ours, const Components *theirs) {
    char *own = types_text(ours->types, ours->count), *other = types_text(theirs->types, theirs->count);
    Error *err = NULL;
    if (strcmp(own, other)) err = error_invalid("Shared %s '%s' has component types %s but requested component types were %s", what, name, own, other);
    free(own);
    free(other);
    if (err) return err;
    own = shapes_text(ours->shapes, ours->count);
    other = shapes_text(theirs->shapes, theirs->count);
    if (strcmp(own, other)) err = error_invalid("Shared %s '%s' has component shapes %s but requested component shapes were %s", what, name, own, other);
    free(own);
    free(other);
    return err;
}

Error *queue_check_spec(const Queue *q, const QueueSpec *spec) {
    if (spec->kind != q->kind)
        return error_invalid("Expected %s, found %sV2", queue_kind_name(q->kind), queue_kind_name(spec->kind));
    int64_t capacity = spec->capacity < 0 ? INT64_MAX : spec->capacity;
    if (capacity != q->capacity)
        return error_invalid("Shared queue '%s' has capacity %lld but requested capacity was %lld", q->name,
                             (long long)(q->capacity == INT64_MAX ? -1 : q->capacity), (long long)spec->capacity);
    Error *err = components_check("queue", q->name, &(Components){q->types, q->shapes, q->n}, &(Components){spec->types, spec->shapes, spec->component_count});
    if (err || q->kind != QUEUE_SHUFFLE) return err;
    if (spec->min_after_dequeue != q->min_after_dequeue)
        return error_invalid("Shared queue '%s' has min_after_dequeue %lld but requested min_after_dequeue was %lld.",
                             q->name, (long long)q->min_after_dequeue, (long long)spec->min_after_dequeue);
    if ((spec->seed || spec->seed2) && (spec->seed != q->seed || spec->seed2 != q->seed2))
        return error_invalid("Shared queue '%s' has random seeds (%lld, %lld) but requested seeds are (%lld, %lld).",
                             q->name, (long long)q->seed, (long long)q->seed2, (long long)spec->seed,
                             (long long)spec->seed2);
    return NULL;
}

static Error *shape_mismatch(int i, const PartialShape *want, const Shape *got) {
    char *expected = shape_str(want), *actual = shape_str(got);
    Error *err = error_invalid("Shape mismatch in tuple component %d. Expected %s, got %s", i, expected, actual);
    free(expected);
    free(actual);
    return err;
}

Error *queue_check_tuple(const Queue *q, Tensor *const *components, int count, bool many) {
    if (count != q->n) return error_invalid("Wrong number of components in tuple. Expected %d, got %d", q->n, count);
    for (int i = 0; i < count; i++) {
        const Tensor *t = components[i];
        if (t->dtype != q->types[i])
            return error_invalid("Type mismatch in tuple component %d. Expected %s, got %s", i, dtype_name(q->types[i]),
                                 dtype_name(t->dtype));
        if (many && t->shape.rank < 1)
            return error_invalid("Component %d must have at least one dimension to enqueue many, but is a scalar", i);
        if (q->shapes) {
            PartialShape want = q->shapes[i];
            if (many && want.rank >= 0 && want.rank < SHAPE_MAX_RANK)
                shape_insert_dim(&want, 0, components[0]->shape.dims[0]);
            if (!partial_shape_matches(&want, &t->shape)) return shape_mismatch(i, &want, &t->shape);
        }
        if (many && t->shape.dims[0] != components[0]->shape.dims[0])
            return error_invalid(
                "All input tensors must have the same size in the 0th dimension. Component %d has %lld, "
                "and should have %lld",
                i, (long long)t->shape.dims[0], (long long)components[0]->shape.dims[0]);
    }
    return NULL;
}

/* ---- Operations that wait ---- */

typedef struct QueueOp {
    Waiter waiter; /* first: a Waiter is cast to it */
    Queue *queue;
    QueueDone *done;
    void *arg;
    Element **elements; /* still to enqueue, or dequeued so far */
    int64_t wanted;     /* by a dequeue, else -1 */
    int64_t count, next;
    bool up_to, batch;
} QueueOp;

static QueueOp *queue_op_new(Queue *q, QueueDone *done, void *arg) {
    QueueOp *op = xcalloc(1, sizeof *op);
    op->queue = q;
    op->done = done;
    op->arg = arg;
    resource_ref(&q->base);
    op->waiter.resource = &q->base;
    return op;
}

static void finish(Waiter *w) {
    QueueOp *op = (QueueOp *)w;
    Queue *q = op->queue;
    Tensor **components = NULL;
    Error *err = w->error;
    if (!err && op->wanted >= 0) {
        components = xcalloc((size_t)q->n + 1, sizeof *components);
        if (op->batch)
            err = elements_stack(op->elements, op->count, q->n, q->types, q->shapes, components);
        else
            for (int i = 0; i < q->n; i++) components[i] = tensor_ref(op->elements[0]->components[i]);
    }
    op->done(op->arg, err, components);
    for (int i = 0; components && i < q->n; i++) tensor_unref(components[i]);
    free(components);
    for (int64_t i = op->next; i < op->count; i++) element_free(op->elements[i]);
    free(op->elements);
    resource_unref(&q->base);
    free(op);
}

static AttemptResult try_enqueue(Waiter *w) {
    QueueOp *op = (QueueOp *)w;
    Queue *q = op->queue;
    if (q->closed) {
        /* a padding queue enqueues as the FIFO queue that it is also */
        w->error = error_new(CODE_CANCELLED, "%s '%s' is closed.", queue_kind_name(q->kind == QUEUE_PADDING ? QUEUE_FIFO : q->kind), q->name);
        return ATTEMPT_DONE;
    }
    AttemptResult result = ATTEMPT_NOTHING;
    while (op->next < op->count && q->store.count < q->capacity) {
        element_store_push(&q->store, op->elements[op->next++]);
        result = ATTEMPT_PROGRESS;
    }
    return op->next == op->count ? ATTEMPT_DONE : result;
}

static void start_enqueue(QueueOp *op, Cancel *cancel) {
    op->wanted = -1;
    op->waiter.attempt = try_enqueue;
    op->waiter.finish = finish;
    op->waiter.cancel_text = "Enqueue operation was cancelled";
    wait_room_enter(&op->queue->room, LINE_ENQUEUE, &op->waiter, cancel);
}

void queue_enqueue(Queue *q, Tensor *const *components, Cancel *cancel, QueueDone *done, void *arg) {
    QueueOp *op = queue_op_new(q, done, arg);
    op->elements = xmalloc(sizeof *op->elements);
    op->elements[0] = element_new(components, q->n, q->kind == QUEUE_PRIORITY);
    op->count = 1;
    start_enqueue(op, cancel);
}

void queue_enqueue_many(Queue *q, Tensor *const *components, Cancel *cancel, QueueDone *done, void *arg) {
    int64_t rows = q->n ? components[0]->shape.dims[0] : 0;
    QueueOp *op = queue_op_new(q, done, arg);
    op->elements = xmalloc((size_t)(rows + 1) * sizeof *op->elements);
    for (int64_t i = 0; i < rows; i++) {
        op->waiter.error = element_of_row(components, q->n, i, q->kind == QUEUE_PRIORITY, &op->elements[i]);
        if (op->waiter.error) break;
        op->count++;
    }
    if (op->waiter.error || !rows) {
        op->wanted = -1;
        finish(&op->waiter);
        return;
    }
    start_enqueue(op, cancel);
}

static void put_back(Waiter *w) {
    QueueOp *op = (QueueOp *)w;
    while (op->count > 0) element_store_push_front(&op->queue->store, op->elements[--op->count]);
}

static AttemptResult try_dequeue(Waiter *w) {
    QueueOp *op = (QueueOp *)w;
    Queue *q = op->queue;
    int64_t size = q->store.count;
    if (q->closed && size < op->wanted - op->count) {
        int64_t missing = op->wanted - op->count, before = size;
        put_back(w);
        size = q->store.count;
        bool few = op->up_to && q->kind == QUEUE_PRIORITY; /* TensorFlow's takes what there is, wants the rest, and gives it back */
        if (op->up_to && size > 0 && !few) {
            op->wanted = size < op->wanted ? size : op->wanted;
        } else {
            w->error = error_new(CODE_OUT_OF_RANGE,
                                 "%s '%s' is closed and has insufficient elements (requested %lld, current size %lld)",
                                 queue_kind_name(q->kind), q->name, (long long)(few ? missing - before : missing), (long long)(few ? 0 : before));
            return ATTEMPT_DONE;
        }
    }
    if (!q->closed) size -= q->min_after_dequeue;
    AttemptResult result = ATTEMPT_NOTHING;
    for (; size > 0 && op->count < op->wanted; size--) {
        op->elements[op->count++] = element_store_pop(&q->store);
        result = ATTEMPT_PROGRESS;
    }
    return op->count == op->wanted ? ATTEMPT_DONE : result;
}

static void start_dequeue(QueueOp *op, Cancel *cancel) {
    op->waiter.attempt = try_dequeue;
    op->waiter.undo = put_back;
    op->waiter.finish = finish;
    op->waiter.cancel_text = "Dequeue operation was cancelled";
    wait_room_enter(&op->queue->room, LINE_DEQUEUE, &op->waiter, cancel);
}

void queue_dequeue(Queue *q, Cancel *cancel, QueueDone *done, void *arg) {
    QueueOp *op = queue_op_new(q, done, arg);
    op->wanted = 1;
    op->elements = xmalloc(sizeof *op->elements);
    start_dequeue(op, cancel);
}

/* Rows are stacked, so their shapes must be known. */
static Error *check_many(const Queue *q, int64_t n, bool up_to) {
    if (n < 0) return error_invalid("%s requested %lld < 0 elements", up_to ? "DequeueUpToOp" : "DequeueManyOp", (long long)n);
    if (!q->shapes)
        return error_invalid("%s's DequeueMany and DequeueUpTo require the components to have specified shapes.",
                             queue_kind_name(q->kind));
    if (n > (int64_t)1 << 40) return error_new(CODE_RESOURCE_EXHAUSTED, "DequeueMany of %lld elements", (long long)n);
    return NULL;
}

void queue_dequeue_many(Queue *q, int64_t n, bool up_to, Cancel *cancel, QueueDone *done, void *arg) {
    QueueOp *op = queue_op_new(q, done, arg);
    op->waiter.error = check_many(q, n, up_to);
    op->batch = true;
    op->up_to = up_to;
    op->wanted = n;
    if (!op->waiter.error) {
        op->elements = n ? try_alloc((size_t)n * sizeof *op->elements) : NULL;
        if (n && !op->elements)
            op->waiter.error = error_new(CODE_RESOURCE_EXHAUSTED, "DequeueMany of %lld elements", (long long)n);
    }
    if (op->waiter.error || !n) {
        finish(&op->waiter);
        return;
    }
    start_dequeue(op, cancel);
}

static AttemptResult try_close(Waiter *w) {
    Queue *q = ((QueueOp *)w)->queue;
    if (q->closed) w->error = error_new(CODE_CANCELLED, "Queue '%s' is already closed.", q->name);
    q->closed = true;
    return ATTEMPT_DONE;
}

void queue_close(Queue *q, bool cancel_pending, Cancel *cancel, QueueDone *done, void *arg) {
    QueueOp *op = queue_op_new(q, done, arg);
    op->wanted = -1;
    op->waiter.attempt = try_close;
    op->waiter.finish = finish;
    op->waiter.cancel_text = "Close operation was cancelled";
    if (cancel_pending) {
        wait_room_lock(&q->room);
        q->closed = true;
        wait_room_cancel_line_unlock(&q->room, LINE_ENQUEUE);
        finish(&op->waiter);
        return;
    }
    wait_room_enter(&q->room, LINE_ENQUEUE, &op->waiter, cancel);
}
