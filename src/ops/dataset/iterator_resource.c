/* iterator_resource.c: the walk a resource is on, pulled by one step at a time. */
#include "ops/dataset/iterator_resource.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset_origin.h"
#include "ops/elements.h"

/* One walk along a dataset; shared by the resource and the steps that pull it. */
typedef struct Walk {
    RefCount refs;
    ClosureScope *scope;
    DatasetIterator *it;
    pthread_mutex_t mutex; /* guards busy */
    pthread_cond_t changed;
    bool busy; /* a thread is pulling */
} Walk;

struct IteratorResource {
    Resource base;
    DataType *types;
    PartialShape *shapes;
    int type_count;
    Cancel closing;
    pthread_mutex_t once;  /* held while the factory of a one-shot iterator runs; taken before mutex */
    pthread_mutex_t mutex; /* guards walk */
    Walk *walk;            /* NULL: not initialised */
    ThreadPool *blocking;  /* of one that its handle owns */
};

static void walk_unref(Walk *w) {
    if (!w || !refcount_dec(&w->refs)) return;
    iterator_free(w->it);
    closure_scope_free(w->scope);
    pthread_mutex_destroy(&w->mutex);
    pthread_cond_destroy(&w->changed);
    free(w);
}

static Walk *take_walk(IteratorResource *r) {
    pthread_mutex_lock(&r->mutex);
    Walk *w = r->walk;
    r->walk = NULL;
    pthread_mutex_unlock(&r->mutex);
    return w;
}

static Error *closed(void) {
    return error_new(CODE_CANCELLED, "The iterator was deleted or its session closed");
}

/* Runs on the thread that clears the container, so that threads end while there are pools. */
static void cancel_iterator(Resource *base) {
    IteratorResource *r = (IteratorResource *)base;
    cancel_now(&r->closing, closed());
    walk_unref(take_walk(r));
}

static void destroy_iterator(Resource *base) {
    IteratorResource *r = (IteratorResource *)base;
    walk_unref(r->walk);
    cancel_clear(&r->closing);
    pthread_mutex_destroy(&r->mutex);
    pthread_mutex_destroy(&r->once);
    free(r->types);
    free(r->shapes);
    free(r);
}

const ResourceType iterator_resource_type = {.type_name = "N10tensorflow4data16IteratorResourceE",
                                             .what = "iterator",
                                             .destroy = destroy_iterator,
                                             .cancel = cancel_iterator};

IteratorResource *iterator_resource_new(const DataType *types, const PartialShape *shapes, int count) {
    IteratorResource *r = xcalloc(1, sizeof *r);
    resource_init(&r->base, &iterator_resource_type);
    cancel_init(&r->closing);
    pthread_mutex_init(&r->mutex, NULL);
    pthread_mutex_init(&r->once, NULL);
    r->types = xcalloc((size_t)count + 1, sizeof *r->types);
    r->shapes = xcalloc((size_t)count + 1, sizeof *r->shapes);
    r->type_count = count;
    for (int i = 0; i < count; i++) r->types[i] = types[i];
    for (int i = 0; i < count; i++) r->shapes[i] = shapes[i];
    return r;
}

static Error *compare_types(const DataType *expected, int expected_count, const DataType *got, int count) {
    if (!count || !expected_count) return NULL;
    if (count != expected_count)
        return error_invalid("Number of components does not match: expected %d types but got %d.", expected_count,
                             count);
    for (int i = 0; i < count; i++)
        if (expected[i] != got[i])
            return error_invalid("Data type mismatch at component %d: expected %s but got %s.", i,
                                 dtype_name(expected[i]), dtype_name(got[i]));
    return NULL;
}

Error *iterator_check_types(const IteratorResource *r, const DataType *types, int count) {
    return compare_types(r->types, r->type_count, types, count);
}

/* Both may be partial. */
static bool compatible(const PartialShape *a, const PartialShape *b) {
    if (a->rank < 0 || b->rank < 0) return true;
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i] || a->dims[i] < 0 || b->dims[i] < 0;
    return same;
}

Error *iterator_check_expected(const IteratorResource *r, const DataType *types, const PartialShape *shapes,
                               int count) {
    Error *err = compare_types(types, count, r->types, r->type_count);
    for (int i = 0; !err && i < count && i < r->type_count; i++)
        if (!compatible(&shapes[i], &r->shapes[i]))
            err = error_invalid("Incompatible shapes at component %d: expected %s but got %s.", i,
                                shape_text(&shapes[i]).text, shape_text(&r->shapes[i]).text);
    return err;
}

static void drop_walk(void *arg) {
    walk_unref(arg);
}

static void release(void *direct) {
    IteratorResource *r = direct;
    cancel_now(&r->closing, closed());
    Walk *w = take_walk(r);
    if (w) threadpool_post(r->blocking, drop_walk, w);
    resource_unref(&r->base);
}

void iterator_resource_own(IteratorResource *take, ResourceHandle *handle, ThreadPool *blocking) {
    take->blocking = blocking;
    handle->direct = take;
    handle->release_direct = release;
}

/* ---- Cancelling: by the step or by the resource ---- */

typedef struct Pull {
    Cancel either;
    CancelWatch step, closing;
    bool watches_step, watches_closing;
} Pull;

static void pass_on(void *arg) {
    cancel_now(arg, error_derived(error_new(CODE_CANCELLED, "The step was cancelled")));
}

static IteratorContext pull_begin(Pull *p, IteratorResource *r, KernelContext *k, ClosureScope *scope) {
    *p = (Pull){0};
    cancel_init(&p->either);
    p->watches_step = cancel_watch(kernel_cancel(k), &p->step, pass_on, &p->either);
    p->watches_closing = cancel_watch(&r->closing, &p->closing, pass_on, &p->either);
    if (!p->watches_step || !p->watches_closing) pass_on(&p->either);
    return (IteratorContext){.cancel = &p->either, .scope = scope};
}

static void pull_end(Pull *p, IteratorResource *r, KernelContext *k) {
    if (p->watches_step) cancel_unwatch(kernel_cancel(k), &p->step);
    if (p->watches_closing) cancel_unwatch(&r->closing, &p->closing);
    cancel_clear(&p->either);
}

bool iterator_is_set(IteratorResource *r) {
    pthread_mutex_lock(&r->mutex);
    bool set = r->walk != NULL;
    pthread_mutex_unlock(&r->mutex);
    return set;
}

static bool is_free(void *arg) {
    return !((Walk *)arg)->busy;
}

/* For this thread alone until walk_end. */
static Error *walk_begin(Walk *w, IteratorContext *c) {
    pthread_mutex_lock(&w->mutex);
    bool mine = iterator_wait(c, &w->mutex, &w->changed, is_free, w);
    if (mine) w->busy = true;
    pthread_mutex_unlock(&w->mutex);
    return mine ? NULL : iterator_cancelled(c);
}

static void walk_end(Walk *w) {
    pthread_mutex_lock(&w->mutex);
    w->busy = false;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

static Walk *current_walk(IteratorResource *r) {
    pthread_mutex_lock(&r->mutex);
    Walk *w = r->walk;
    if (w) refcount_inc(&w->refs);
    pthread_mutex_unlock(&r->mutex);
    return w;
}

/* ---- What steps do ---- */

Error *iterator_resource_set(IteratorResource *r, KernelContext *k, Dataset *d) {
    Error *err = iterator_check_types(r, d->types, d->component_count);
    if (err) return err;
    Walk *w = xcalloc(1, sizeof *w);
    refcount_init(&w->refs);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->scope = closure_scope_new(k);
    Pull pull;
    IteratorContext c = pull_begin(&pull, r, k, w->scope);
    err = dataset_iterate(d, &c, &w->it);
    pull_end(&pull, r, k);
    if (!err) {
        pthread_mutex_lock(&r->mutex);
        Walk *old = r->walk;
        r->walk = w;
        pthread_mutex_unlock(&r->mutex);
        w = old;
        /* The resource may have been closed meanwhile: then nobody would end the new walk. */
        if (cancel_is_set(&r->closing)) {
            walk_unref(take_walk(r));
            err = closed();
        }
    }
    walk_unref(w);
    return err;
}

Error *iterator_resource_set_once(IteratorResource *r, KernelContext *k, Closure *factory) {
    pthread_mutex_lock(&r->once);
    Error *err = NULL;
    if (!iterator_is_set(r)) {
        Pull pull;
        IteratorContext c = pull_begin(&pull, r, k, NULL);
        Tensor *t = NULL;
        Dataset *d = NULL;
        err = dataset_call(factory, &c, NULL, 0, NULL, 1, &t);
        pull_end(&pull, r, k);
        if (!err) err = tensor_dataset(t, &d);
        if (!err) err = iterator_resource_set(r, k, d);
        tensor_unref(t);
    }
    pthread_mutex_unlock(&r->once);
    return err;
}

Error *iterator_resource_next(IteratorResource *r, KernelContext *k, Tensor ***element, int *count) {
    Walk *w = current_walk(r);
    if (!w)
        return error_new(CODE_FAILED_PRECONDITION,
                         "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                         "initializer operation for this iterator before getting the next element.");
    Pull pull;
    IteratorContext c = pull_begin(&pull, r, k, w->scope);
    Error *err = walk_begin(w, &c);
    if (!err) {
        bool end = false;
        *count = w->it->dataset->component_count;
        *element = tuple_new(*count);
        err = iterator_next(w->it, &c, *element, &end);
        walk_end(w);
        if (err || end) {
            tuple_free(*element, *count);
            *element = NULL;
        }
    }
    pull_end(&pull, r, k);
    walk_unref(w);
    return err;
}

Error *iterator_resource_save(IteratorResource *r, KernelContext *k, bool refuses_state, IteratorState *s) {
    Walk *w = current_walk(r);
    if (!w)
        return error_new(
            CODE_FAILED_PRECONDITION,
            "Save() failed because the iterator has not been initialized. Ensure that you have run the initializer "
            "operation for this iterator before saving it.");
    Pull pull;
    IteratorContext c = pull_begin(&pull, r, k, w->scope);
    Error *err = walk_begin(w, &c);
    if (!err) {
        err = refuses_state ? dataset_check_state(w->it->dataset) : NULL;
        if (!err) err = iterator_save(w->it, s);
        walk_end(w);
    }
    pull_end(&pull, r, k);
    walk_unref(w);
    return err;
}

Error *iterator_resource_restore(IteratorResource *r, KernelContext *k, IteratorState *s) {
    Walk *w = current_walk(r);
    if (!w)
        return error_new(CODE_FAILED_PRECONDITION,
                         "Restore() failed because the iterator has not been initialized. Ensure that you have run the "
                         "initializer operation for this iterator before restoring it.");
    Pull pull;
    IteratorContext c = pull_begin(&pull, r, k, w->scope);
    Error *err = walk_begin(w, &c);
    if (!err) {
        DatasetIterator *fresh = NULL;
        err = dataset_iterate(w->it->dataset, &c, &fresh);
        if (!err) err = iterator_restore(fresh, &c, s);
        if (!err) {
            DatasetIterator *old = w->it;
            w->it = fresh;
            fresh = old;
        }
        iterator_free(fresh);
        walk_end(w);
    }
    pull_end(&pull, r, k);
    walk_unref(w);
    return err;
}
