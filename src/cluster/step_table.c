/* step_table.c: step ids to rendezvous. */
#include "cluster/step_table.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/block_cache.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "cluster/worker_session.h"

struct StepEntry {
    RefCount refs;
    int64_t step_id;
    Rendezvous *rendezvous;
    void *worker;
    WorkerSession *_Atomic session; /* a reference once set */
    _Atomic bool is_ended;
};

enum { REMEMBERED_FAILURES = 256, REMEMBERED_CLEANUPS = 256 };

struct StepTable {
    pthread_mutex_t mutex; /* guards all below but remote and worker */
    struct {
        int64_t step_id;
        Error *err;
    } failures[REMEMBERED_FAILURES];
    size_t failure_count; /* ever */
    int64_t cleaned[REMEMBERED_CLEANUPS]; /* steps that were cleaned up before their end */
    size_t cleaned_count; /* ever */
    IntMap entries;        /* step id + 1, since a map key may be 0 but a step id is never -1 */
    const RemoteWay *remote;
    void *worker;
};

StepTable *step_table_new(const RemoteWay *remote, void *worker) {
    StepTable *t = xcalloc(1, sizeof *t);
    pthread_mutex_init(&t->mutex, NULL);
    t->remote = remote;
    t->worker = worker;
    return t;
}

StepEntry *step_entry_ref(StepEntry *e) {
    refcount_inc(&e->refs);
    return e;
}

void step_entry_unref(StepEntry *e) {
    if (!e || !refcount_dec(&e->refs)) return;
    rendezvous_unref(e->rendezvous);
    worker_session_unref(atomic_load(&e->session));
    block_free(e, sizeof *e);
}

Rendezvous *step_entry_rendezvous(StepEntry *e) {
    return e->rendezvous;
}

void *step_entry_worker(StepEntry *e) {
    return e->worker;
}

void step_entry_set_session(StepEntry *e, WorkerSession *s) {
    WorkerSession *none = NULL;
    if (atomic_compare_exchange_strong(&e->session, &none, s)) worker_session_ref(s);
}

WorkerSession *step_entry_session(StepEntry *e) {
    return atomic_load(&e->session);
}

bool step_entry_is_ended(StepEntry *e) {
    return atomic_load(&e->is_ended);
}

StepEntry *step_table_get(StepTable *t, int64_t step_id) {
    pthread_mutex_lock(&t->mutex);
    StepEntry *e = intmap_get(&t->entries, (uint64_t)step_id + 1);
    if (!e) {
        e = block_zeroed(sizeof *e);
        refcount_init(&e->refs);
        e->step_id = step_id;
        e->worker = t->worker;
        e->rendezvous = rendezvous_new(step_id, t->remote, e);
        intmap_put(&t->entries, (uint64_t)step_id + 1, e);
    }
    refcount_inc(&e->refs);
    pthread_mutex_unlock(&t->mutex);
    return e;
}

static void drop(StepEntry *e) {
    if (!e) return;
    rendezvous_end(e->rendezvous);
    step_entry_unref(e);
}

void step_table_cleanup(StepTable *t, int64_t step_id) {
    pthread_mutex_lock(&t->mutex);
    StepEntry *e = intmap_remove(&t->entries, (uint64_t)step_id + 1);
    t->cleaned[t->cleaned_count++ % REMEMBERED_CLEANUPS] = step_id;
    pthread_mutex_unlock(&t->mutex);
    drop(e);
}

StepEntry *step_table_find(StepTable *t, int64_t step_id, bool *is_over) {
    pthread_mutex_lock(&t->mutex);
    StepEntry *e = intmap_get(&t->entries, (uint64_t)step_id + 1);
    if (e) refcount_inc(&e->refs);
    *is_over = false;
    for (size_t i = 0; !e && i < t->cleaned_count && i < REMEMBERED_CLEANUPS; i++) *is_over |= t->cleaned[i] == step_id;
    pthread_mutex_unlock(&t->mutex);
    return e;
}

/* Takes out one entry of a session (any entry when s is NULL). */
static StepEntry *take_one(StepTable *t, WorkerSession *s) {
    StepEntry *found = NULL;
    size_t at = 0;
    void *value;
    pthread_mutex_lock(&t->mutex);
    while (!found && intmap_next(&t->entries, &at, NULL, &value))
        if (!s || atomic_load(&((StepEntry *)value)->session) == s) found = value;
    if (found) intmap_remove(&t->entries, (uint64_t)found->step_id + 1);
    pthread_mutex_unlock(&t->mutex);
    return found;
}

void step_table_cleanup_session(StepTable *t, WorkerSession *s) {
    for (StepEntry *e; (e = take_one(t, s));) drop(e);
}

void step_table_drop_if_idle(StepTable *t, StepEntry *e) {
    pthread_mutex_lock(&t->mutex);
    /* Only the table and the caller hold it, no RunGraph came and no other RecvTensor waits: nobody else will ever clean it up. */
    bool is_orphan = !atomic_load(&e->session) && atomic_load(&e->refs.count) == 2;
    bool idle = (is_orphan || atomic_load(&e->is_ended)) && rendezvous_is_empty(e->rendezvous) && intmap_get(&t->entries, (uint64_t)e->step_id + 1) == e;
    if (idle) intmap_remove(&t->entries, (uint64_t)e->step_id + 1);
    pthread_mutex_unlock(&t->mutex);
    if (idle) step_entry_unref(e);
}

void step_table_end(StepTable *t, StepEntry *e) {
    atomic_store(&e->is_ended, true);
    step_table_drop_if_idle(t, e);
}

void step_table_note_failure(StepTable *t, int64_t step_id, const Error *err) {
    pthread_mutex_lock(&t->mutex);
    size_t at = t->failure_count++ % REMEMBERED_FAILURES;
    Error *old = t->failures[at].err;
    t->failures[at].step_id = step_id;
    t->failures[at].err = error_copy(err);
    pthread_mutex_unlock(&t->mutex);
    error_free(old);
}

void step_table_forget_failure(StepTable *t, int64_t step_id) {
    pthread_mutex_lock(&t->mutex);
    for (size_t i = 0; i < REMEMBERED_FAILURES && i < t->failure_count; i++) {
        if (t->failures[i].step_id != step_id) continue;
        error_free(t->failures[i].err);
        t->failures[i].err = NULL;
    }
    pthread_mutex_unlock(&t->mutex);
}

Error *step_table_failure(StepTable *t, int64_t step_id) {
    Error *err = NULL;
    pthread_mutex_lock(&t->mutex);
    for (size_t i = 0; !err && i < REMEMBERED_FAILURES && i < t->failure_count; i++)
        if (t->failures[i].step_id == step_id) err = error_copy(t->failures[i].err);
    pthread_mutex_unlock(&t->mutex);
    return err;
}

int64_t step_table_count(StepTable *t) {
    pthread_mutex_lock(&t->mutex);
    int64_t n = (int64_t)t->entries.count;
    pthread_mutex_unlock(&t->mutex);
    return n;
}

void step_table_free(StepTable *t) {
    if (!t) return;
    for (StepEntry *e; (e = take_one(t, NULL));) drop(e);
    intmap_clear(&t->entries);
    for (size_t i = 0; i < REMEMBERED_FAILURES; i++) error_free(t->failures[i].err);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}
