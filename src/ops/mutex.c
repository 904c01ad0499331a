/* mutex.c: MutexV2, MutexLock, ConsumeMutexLock: what CriticalSection of clients is made of.

   A lock is a variant that holds the mutex as long as anybody holds the variant, or until it is consumed. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/refcount.h"
#include "ops/op_list.h"
#include "ops/wait_room.h"

const OpDef mutex_ops[] = {
    {"MutexV2", "-> resource: resource", "container: string = ''; shared_name: string = ''", OP_STATEFUL},
    {"MutexLock", "mutex: resource -> mutex_lock: variant", "", OP_STATEFUL},
    {"ConsumeMutexLock", "mutex_lock: variant ->", "", OP_STATEFUL},
    {0},
};

typedef struct Mutex {
    Resource base;
    WaitRoom room; /* its mutex guards held */
    bool held;
} Mutex;

static void destroy(Resource *r) {
    Mutex *m = (Mutex *)r;
    wait_room_clear(&m->room);
    free(m);
}

static void abandon(Resource *r) {
    Mutex *m = (Mutex *)r;
    wait_room_lock(&m->room);
    wait_room_cancel_line_unlock(&m->room, 0);
}

static const ResourceType mutex_type = {
    .type_name = "N10tensorflow12_GLOBAL__N_15MutexE", .what = "mutex", .destroy = destroy, .cancel = abandon};

static Error *create(KernelContext *k, Str name, Resource **out) {
    (void)k, (void)name;
    Mutex *m = xcalloc(1, sizeof *m);
    resource_init(&m->base, &mutex_type);
    wait_room_init(&m->room);
    *out = &m->base;
    return NULL;
}

static Error *run_mutex(KernelContext *k) {
    return kernel_own_resource(k, &mutex_type, false, create, NULL);
}

/* ---- A lock that is held ---- */

typedef struct HeldLock {
    RefCount refs;
    Mutex *mutex;
    atomic_bool released;
} HeldLock;

static void release(HeldLock *h) {
    if (atomic_exchange(&h->released, true)) return;
    wait_room_lock(&h->mutex->room);
    h->mutex->held = false;
    wait_room_unlock(&h->mutex->room);
}

static void lock_ref(void *object) {
    refcount_inc(&((HeldLock *)object)->refs);
}

static void lock_unref(void *object) {
    HeldLock *h = object;
    if (!refcount_dec(&h->refs)) return;
    release(h);
    resource_unref(&h->mutex->base);
    free(h);
}

static const VariantType held_lock_type = {.type_name = "MutexLock", .ref = lock_ref, .unref = lock_unref};

/* ---- Waiting for it ---- */

typedef struct LockOp {
    Waiter waiter; /* first: a Waiter is cast to it */
    Mutex *mutex;
    KernelContext *k;
} LockOp;

static AttemptResult try_lock(Waiter *w) {
    Mutex *m = ((LockOp *)w)->mutex;
    if (m->held) return ATTEMPT_NOTHING;
    m->held = true;
    return ATTEMPT_DONE;
}

static void finish(Waiter *w) {
    LockOp *op = (LockOp *)w;
    KernelContext *k = op->k;
    Error *err = w->error;
    Tensor *t = NULL;
    if (err) {
        resource_unref(&op->mutex->base);
    } else {
        HeldLock *h = xcalloc(1, sizeof *h);
        refcount_init(&h->refs);
        h->mutex = op->mutex; /* the operation's reference */
        err = tensor_new(DT_VARIANT, &SHAPE_SCALAR, &t);
        if (!err) variant_set(tensor_variants(t), (Variant){&held_lock_type, h});
        lock_unref(h); /* the tensor has it, or it goes */
        if (!err) kernel_set_output(k, 0, t);
    }
    free(op);
    kernel_done(k, err);
}

static Error *run_lock(KernelContext *k) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, 0, &mutex_type, &r);
    if (err) return err;
    LockOp *op = xcalloc(1, sizeof *op);
    op->mutex = (Mutex *)r;
    op->k = kernel_defer(k);
    op->waiter = (Waiter){.attempt = try_lock, .finish = finish, .cancel_text = "Lock acquisition cancelled."};
    wait_room_enter(&op->mutex->room, 0, &op->waiter, kernel_cancel(op->k));
    return NULL;
}

static Error *run_consume(KernelContext *k) {
    const Variant *v = k->in[0]->count == 1 ? tensor_variants(k->in[0]) : NULL;
    if (!v || v->type != &held_lock_type)
        return error_invalid("Expected input to contain a mutex lock object, but saw variant: '%s'",
                             v && v->type ? v->type->type_name : "<empty>");
    release(v->object);
    return NULL;
}

const KernelDef mutex_cpu[] = {
    {"MutexV2", .run = run_mutex},
    {"MutexLock", .run = run_lock, .flags = KERNEL_DEFERS},
    {"ConsumeMutexLock", .run = run_consume},
    {0},
};
