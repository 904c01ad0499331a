/* queue_runner.c: threads that fill the queues of a graph. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "rill/coordinator.h"
#include "train/graph_internal.h"

typedef struct QueueRunner {
    TF_Operation **enqueue;
    int count;
    TF_Operation *close, *cancel;
    bool chief_only;
} QueueRunner;

static void runner_free(void *object) {
    QueueRunner *r = object;
    free(r->enqueue);
    free(r);
}

void rill_queue_runner(RillGraph *g, RillTensor queue, TF_Operation *const *enqueue_ops, int count) {
    queue_runner_add(g, queue, enqueue_ops, count, false);
}

void queue_runner_add(RillGraph *g, RillTensor queue, TF_Operation *const *enqueue_ops, int count, bool chief_only) {
    if (rill_graph_failed(g)) return;
    QueueRunner *r = xcalloc(1, sizeof *r);
    r->chief_only = chief_only;
    r->enqueue = xcalloc((size_t)count + 1, sizeof *r->enqueue);
    for (int i = 0; i < count; i++) r->enqueue[r->count++] = enqueue_ops[i];
    r->close = rill_operation(g, "QueueCloseV2", NULL, &queue, 1, NULL, 0);
    r->cancel = rill_operation(g, "QueueCloseV2", NULL, &queue, 1, (RillAttr[]){RILL_BOOL("cancel_pending_enqueues", true)}, 1);
    g->lists[LIST_QUEUE_RUNNERS].free_object = runner_free;
    graph_list_add(g, LIST_QUEUE_RUNNERS, (RillListItem){.object = r});
}

/* What the threads of one runner share. */
typedef struct Filling {
    RillSession *session;
    const QueueRunner *runner;
    _Atomic int filling; /* threads that still fill */
    _Atomic int users;   /* threads that hold this */
} Filling;

typedef struct FillThread {
    Filling *filling;
    TF_Operation *enqueue; /* NULL: the thread that cancels when all is to end */
} FillThread;

static void filling_leave(Filling *f) {
    if (atomic_fetch_sub(&f->users, 1) == 1) free(f);
}

static void fill(RillCoordinator *c, void *arg) {
    FillThread *t = arg;
    Filling *f = t->filling;
    TF_Status *status = TF_NewStatus();
    while (!rill_coordinator_should_stop(c) && rill_session_run_op(f->session, t->enqueue, status) == TF_OK) {
    }
    TF_Code code = TF_GetCode(status);
    bool is_last = atomic_fetch_sub(&f->filling, 1) == 1;
    if (code == TF_OUT_OF_RANGE) { /* the input has ended; the last one closes the queue, after all have put in what they had */
        if (is_last) rill_session_run_op(f->session, f->runner->close, status);
    } else if (code != TF_OK && code != TF_CANCELLED) {
        rill_coordinator_stop(c, code, TF_Message(status));
    }
    filling_leave(f);
    TF_DeleteStatus(status);
    free(t);
}

static void cancel_at_end(RillCoordinator *c, void *arg) {
    FillThread *t = arg;
    TF_Status *status = TF_NewStatus();
    rill_coordinator_wait(c, -1);
    rill_session_run_op(t->filling->session, t->filling->runner->cancel, status);
    filling_leave(t->filling);
    TF_DeleteStatus(status);
    free(t);
}

static void start(RillCoordinator *c, Filling *f, TF_Operation *enqueue) {
    FillThread *t = xcalloc(1, sizeof *t);
    *t = (FillThread){f, enqueue};
    rill_coordinator_start(c, enqueue ? fill : cancel_at_end, t);
}

void queue_runners_start(RillSession *s, RillCoordinator *c, bool is_chief) {
    RillGraph *g = rill_session_graph(s);
    for (int i = 0; i < g->lists[LIST_QUEUE_RUNNERS].count; i++) {
        const QueueRunner *r = g->lists[LIST_QUEUE_RUNNERS].items[i].object;
        if (r->chief_only && !is_chief) continue;
        Filling *f = xcalloc(1, sizeof *f);
        f->session = s;
        f->runner = r;
        atomic_store(&f->filling, r->count);
        bool cancels = !r->chief_only; /* the chief's queues are for the next session, too; its threads end with this one */
        atomic_store(&f->users, r->count + cancels);
        if (cancels) start(c, f, NULL);
        for (int j = 0; j < r->count; j++) start(c, f, r->enqueue[j]);
    }
}

void rill_start_queue_runners(RillSession *s, RillCoordinator *c) {
    queue_runners_start(s, c, true);
}
