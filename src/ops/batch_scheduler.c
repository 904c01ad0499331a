/* batch_scheduler.c: queues of batches, a thread that watches their time, work on the pool for what blocks. */
#include "ops/batch_scheduler.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/thread.h"
#include "ops/tensor_list.h"
#include "ops/elements.h"

struct Batch {
    BatchPiece *pieces;
    size_t count, capacity;
    int64_t size;        /* rows */
    int64_t deadline_ns; /* of the first request */
    bool closed;         /* full, or another one was begun */
};

/* Batches that wait; the last one is open unless it is closed. */
typedef struct BatchQueue {
    char *name;
    Batch **batches;
    size_t count, capacity;
} BatchQueue;

struct BatchScheduler {
    Resource base;
    BatchOptions options;
    BatchWork *work;
    ThreadPool *blocking;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    BatchQueue *queues;
    size_t queue_count, queue_capacity;
    int64_t at_work;
    bool stopping;
    bool watched; /* the thread runs */
    pthread_t watcher;
};

/* ---- Life ---- */

static void free_batch(Batch *b) {
    free(b->pieces);
    free(b);
}

/* Waiting requests hold references, so there are none. */
static void destroy(Resource *r) {
    BatchScheduler *s = (BatchScheduler *)r;
    pthread_mutex_lock(&s->mutex);
    s->stopping = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    if (s->watched) pthread_join(s->watcher, NULL);
    for (size_t i = 0; i < s->queue_count; i++) {
        for (size_t j = 0; j < s->queues[i].count; j++) free_batch(s->queues[i].batches[j]);
        free(s->queues[i].batches);
        free(s->queues[i].name);
    }
    free(s->queues);
    free((int64_t *)s->options.allowed);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->changed);
    free(s);
}

const ResourceType batch_scheduler_type = {
    .type_name = "N10tensorflow13BatchResourceE", .what = "batch scheduler", .destroy = destroy};

typedef struct Plan {
    KernelContext *k;
    const BatchOptions *options;
    BatchWork *work;
} Plan;

static Error *create(void *arg, Resource **out) {
    const Plan *plan = arg;
    BatchScheduler *s = xcalloc(1, sizeof *s);
    resource_init(&s->base, &batch_scheduler_type);
    s->options = *plan->options;
    int64_t *allowed = xcalloc((size_t)s->options.allowed_count + 1, sizeof *allowed);
    for (int i = 0; i < s->options.allowed_count; i++) allowed[i] = plan->options->allowed[i];
    s->options.allowed = allowed;
    if (s->options.threads <= 0) s->options.threads = sysconf(_SC_NPROCESSORS_ONLN);
    s->work = plan->work;
    s->blocking = kernel_blocking_pool(plan->k);
    pthread_mutex_init(&s->mutex, NULL);
    cond_init(&s->changed);
    *out = &s->base;
    return NULL;
}

Error *batch_scheduler_find(KernelContext *k, const BatchOptions *options, BatchWork *work, BatchScheduler **out) {
    Str container = STR(""), name = STR("");
    Resource *r = NULL;
    Error *err = node_attr_string(k->node, "container", &container);
    if (!err) err = node_attr_string(k->node, "shared_name", &name);
    Plan plan = {k, options, work};
    if (!err)
        err = resource_find_or_create(kernel_resources(k), container, name.len ? name : k->node->name,
                                      &batch_scheduler_type, create, &plan, &r);
    if (!err && ((BatchScheduler *)r)->work != work) {
        resource_unref(r);
        err = error_invalid("Batch and BatchFunction nodes share the scheduler %.*s", STR_ARG(name));
    }
    if (!err) *out = (BatchScheduler *)r;
    return err;
}

/* ---- Requests ---- */

static void free_request(BatchRequest *r) {
    for (int i = 0; r->results && i < r->piece_count; i++)
        for (int j = 0; r->results[i] && j < r->k->output_count; j++) tensor_unref(r->results[i][j]);
    for (int i = 0; r->results && i < r->piece_count; i++) free(r->results[i]);
    free(r->results);
    closure_unref(r->closure);
    free(r);
}

Error *rows_concat(Tensor *const *items, int64_t count, Tensor **out) {
    Shape rest = items[0]->shape;
    for (int64_t i = 0; i < count; i++) {
        bool same = items[i]->shape.rank == rest.rank && items[i]->dtype == items[0]->dtype;
        for (int a = 1; same && a < rest.rank; a++) same = items[i]->shape.dims[a] == rest.dims[a];
        if (!same)
            return error_invalid("Dimensions of inputs should match: shape[0] = %s vs. shape[%lld] = %s",
                                 shape_text(&items[0]->shape).text, (long long)i, shape_text(&items[i]->shape).text);
    }
    for (int a = 1; a < rest.rank; a++) rest.dims[a - 1] = rest.dims[a];
    rest.rank--;
    Tensor *lengths = NULL;
    Error *err = tensors_concat(items, count, items[0]->dtype, &rest, out, &lengths);
    tensor_unref(lengths);
    return err;
}

/* All pieces of a request have been worked on. */
static void finish_request(BatchRequest *r) {
    KernelContext *k = r->k;
    BatchScheduler *s = r->scheduler;
    Error *err = r->error;
    if (r->watching) cancel_unwatch(kernel_cancel(k), &r->watch);
    Tensor **column = xcalloc((size_t)r->piece_count, sizeof *column);
    for (int i = 0; !err && i < k->output_count; i++) {
        Tensor *whole = NULL;
        for (int j = 0; j < r->piece_count; j++) column[j] = r->results[j][i];
        if (r->piece_count == 1)
            whole = tensor_ref(column[0]);
        else
            err = rows_concat(column, r->piece_count, &whole);
        if (!err) kernel_set_output(k, i, whole);
    }
    free(column);
    free_request(r);
    resource_unref(&s->base);
    kernel_done(k, err);
}

void batch_piece_done(const BatchPiece *p, Tensor **results, Error *err) {
    BatchRequest *r = p->request;
    pthread_mutex_lock(&r->scheduler->mutex);
    r->results[p->number] = results;
    if (!r->error) {
        r->error = err;
        err = NULL;
    }
    bool last = --r->pieces_left == 0;
    pthread_mutex_unlock(&r->scheduler->mutex);
    error_free(err);
    if (last) finish_request(r);
}

static int64_t padded_size(const BatchScheduler *s, int64_t size) {
    for (int i = 0; i < s->options.allowed_count; i++)
        if (s->options.allowed[i] >= size) return s->options.allowed[i];
    return size;
}

Error *batch_concat(BatchScheduler *s, const BatchPiece *pieces, int count, int i, Tensor **out) {
    int64_t size = 0;
    for (int j = 0; j < count; j++) size += pieces[j].to - pieces[j].from;
    int64_t padding = padded_size(s, size) - size;
    Tensor **items = xcalloc((size_t)(count + padding), sizeof *items);
    Error *err = NULL;
    for (int j = 0; j < count; j++) items[j] = tensor_rows(pieces[j].request->inputs[i], pieces[j].from, pieces[j].to);
    for (int64_t j = 0; j < padding; j++) items[count + j] = tensor_rows(items[0], 0, 1);
    err = rows_concat(items, count + padding, out);
    for (int64_t j = 0; j < count + padding; j++) tensor_unref(items[j]);
    free(items);
    return err;
}

/* ---- Batches ---- */

typedef struct Job {
    BatchScheduler *scheduler; /* a reference */
    Batch *batch;
} Job;

static void start_ready_locked(BatchScheduler *s);

static void work_on(void *arg) {
    Job *job = arg;
    BatchScheduler *s = job->scheduler;
    s->work(s, job->batch->pieces, (int)job->batch->count);
    free_batch(job->batch);
    free(job);
    pthread_mutex_lock(&s->mutex);
    s->at_work--;
    start_ready_locked(s);
    pthread_mutex_unlock(&s->mutex);
    resource_unref(&s->base);
}

/* Batches of all queues whose time has come, as long as there are threads for them. */
static void start_ready_locked(BatchScheduler *s) {
    int64_t now = clock_mono_ns();
    for (size_t i = 0; i < s->queue_count; i++) {
        BatchQueue *q = &s->queues[i];
        while (q->count && s->at_work < s->options.threads &&
               (q->batches[0]->closed || q->batches[0]->deadline_ns <= now)) {
            Job *job = xcalloc(1, sizeof *job);
            *job = (Job){s, q->batches[0]};
            for (size_t j = 1; j < q->count; j++) q->batches[j - 1] = q->batches[j];
            q->count--;
            s->at_work++;
            resource_ref(&s->base);
            threadpool_post(s->blocking, work_on, job);
        }
    }
}

/* When the next open batch is due; INT64_MAX when none is, or when nobody could work on it. */
static int64_t next_deadline_locked(const BatchScheduler *s) {
    int64_t least = INT64_MAX;
    for (size_t i = 0; s->at_work < s->options.threads && i < s->queue_count; i++)
        if (s->queues[i].count && s->queues[i].batches[0]->deadline_ns < least)
            least = s->queues[i].batches[0]->deadline_ns;
    return least;
}

static void *watch_time(void *arg) {
    BatchScheduler *s = arg;
    pthread_mutex_lock(&s->mutex);
    while (!s->stopping) {
        start_ready_locked(s);
        int64_t deadline = next_deadline_locked(s);
        if (deadline == INT64_MAX)
            pthread_cond_wait(&s->changed, &s->mutex);
        else
            cond_wait_until(&s->changed, &s->mutex, deadline);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static BatchQueue *find_queue_locked(BatchScheduler *s, Str name) {
    for (size_t i = 0; i < s->queue_count; i++)
        if (str_is(name, s->queues[i].name)) return &s->queues[i];
    s->queues = vec_reserve(s->queues, &s->queue_capacity, s->queue_count + 1, sizeof *s->queues);
    s->queues[s->queue_count] = (BatchQueue){.name = str_dup(name)};
    return &s->queues[s->queue_count++];
}

static Batch *open_batch(BatchQueue *q) {
    return q->count && !q->batches[q->count - 1]->closed ? q->batches[q->count - 1] : NULL;
}

static Batch *begin_batch(BatchScheduler *s, BatchQueue *q) {
    Batch *b = xcalloc(1, sizeof *b);
    int64_t wait;
    if (__builtin_mul_overflow(s->options.timeout_us, 1000, &wait) ||
        __builtin_add_overflow(wait, clock_mono_ns(), &b->deadline_ns))
        b->deadline_ns = INT64_MAX - 1;
    q->batches = vec_reserve(q->batches, &q->capacity, q->count + 1, sizeof *q->batches);
    q->batches[q->count++] = b;
    return b;
}

/* How many batches would have to be begun for so many rows. */
static int64_t batches_needed(const BatchScheduler *s, const Batch *open, int64_t size) {
    int64_t room = open ? s->options.max_batch - open->size : 0;
    if (size <= room) return 0;
    return s->options.splits ? (size - room + s->options.max_batch - 1) / s->options.max_batch : 1;
}

static void enqueue_locked(BatchScheduler *s, BatchQueue *q, BatchRequest *r) {
    for (int64_t from = 0; from < r->size;) {
        Batch *b = open_batch(q);
        int64_t room = b ? s->options.max_batch - b->size : 0, left = r->size - from;
        if (b && (room == 0 || (!s->options.splits && left > room))) {
            b->closed = true;
            b = NULL;
        }
        if (!b) b = begin_batch(s, q);
        room = s->options.max_batch - b->size;
        int64_t n = left < room ? left : room;
        b->pieces = vec_reserve(b->pieces, &b->capacity, b->count + 1, sizeof *b->pieces);
        b->pieces[b->count++] = (BatchPiece){r, r->piece_count++, from, from + n};
        b->size += n;
        b->closed = b->size == s->options.max_batch;
        from += n;
    }
    r->pieces_left = r->piece_count;
    r->results = xcalloc((size_t)r->piece_count, sizeof *r->results);
}

/* The step of a request is over: its batches wait no longer. */
static void hurry_locked(BatchScheduler *s, const BatchRequest *r) {
    for (size_t i = 0; i < s->queue_count; i++)
        for (size_t j = 0; j < s->queues[i].count; j++) {
            Batch *b = s->queues[i].batches[j];
            for (size_t p = 0; p < b->count; p++)
                if (b->pieces[p].request == r) b->closed = true;
        }
    pthread_cond_broadcast(&s->changed);
}

static void hurry(void *arg) {
    BatchRequest *r = arg;
    pthread_mutex_lock(&r->scheduler->mutex);
    hurry_locked(r->scheduler, r);
    pthread_mutex_unlock(&r->scheduler->mutex);
}

static Error *check_capacity_locked(const BatchScheduler *s, BatchQueue *q, int64_t size) {
    if (size > s->options.max_request)
        return error_invalid("Task size %lld is larger than maximum input batch size %lld", (long long)size,
                             (long long)s->options.max_request);
    int64_t begun = batches_needed(s, open_batch(q), size), waiting = (int64_t)q->count;
    if (waiting && begun && waiting + begun > s->options.max_queued)
        return error_new(CODE_UNAVAILABLE,
                         "The batch scheduling queue to which this task was submitted is full; task size is %lld",
                         (long long)size);
    return NULL;
}

Error *batch_scheduler_add(BatchScheduler *s, KernelContext *k, Str queue, int input_count, Closure *closure) {
    int64_t size = k->in[0]->shape.dims[0];
    pthread_mutex_lock(&s->mutex);
    BatchQueue *q = find_queue_locked(s, queue);
    Error *err = check_capacity_locked(s, q, size);
    if (!err && !s->watched) {
        s->watched = pthread_create(&s->watcher, NULL, watch_time, s) == 0;
        if (!s->watched) err = error_new(CODE_RESOURCE_EXHAUSTED, "No thread for batches");
    }
    if (err) {
        pthread_mutex_unlock(&s->mutex);
        return err;
    }
    BatchRequest *r = xcalloc(1, sizeof *r);
    KernelContext *kept = kernel_defer(k);
    *r = (BatchRequest){.k = kept,
                        .id = (int64_t)rng_entropy(),
                        .size = size,
                        .inputs = kept->in,
                        .input_count = input_count,
                        .closure = closure,
                        .scheduler = s};
    resource_ref(&s->base);
    r->watching = cancel_watch(kernel_cancel(kept), &r->watch, hurry, r);
    enqueue_locked(s, q, r);
    if (!r->watching) hurry_locked(s, r);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}
