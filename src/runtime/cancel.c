/* cancel.c: a list of watchers, told once. */
#include "runtime/cancel.h"

static _Thread_local CancelWatch *inside; /* the watch whose fn runs on this thread */

void cancel_init(Cancel *c) {
    *c = (Cancel){0};
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->quiet, NULL);
}

void cancel_clear(Cancel *c) {
    error_free(c->reason);
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->quiet);
}

static void unlink_locked(Cancel *c, CancelWatch *w) {
    if (w->prev)
        w->prev->next = w->next;
    else
        c->watches = w->next;
    if (w->next) w->next->prev = w->prev;
    w->linked = false;
}

void cancel_now(Cancel *c, Error *reason) {
    pthread_mutex_lock(&c->mutex);
    if (c->cancelled) {
        pthread_mutex_unlock(&c->mutex);
        error_free(reason);
        return;
    }
    c->cancelled = true;
    c->reason = reason;
    while (c->watches) {
        CancelWatch *w = c->watches;
        unlink_locked(c, w);
        c->running = w;
        CancelWatch *outer = inside;
        inside = w;
        pthread_mutex_unlock(&c->mutex);
        w->fn(w->arg);
        pthread_mutex_lock(&c->mutex);
        inside = outer;
        c->running = NULL;
        pthread_cond_broadcast(&c->quiet);
    }
    pthread_mutex_unlock(&c->mutex);
}

bool cancel_is_set(Cancel *c) {
    pthread_mutex_lock(&c->mutex);
    bool set = c->cancelled;
    pthread_mutex_unlock(&c->mutex);
    return set;
}

Error *cancel_reason(Cancel *c) {
    pthread_mutex_lock(&c->mutex);
    Error *reason = error_copy(c->reason);
    pthread_mutex_unlock(&c->mutex);
    return reason;
}

bool cancel_watch(Cancel *c, CancelWatch *w, void (*fn)(void *arg), void *arg) {
    pthread_mutex_lock(&c->mutex);
    bool ok = !c->cancelled;
    if (ok) {
        *w = (CancelWatch){.next = c->watches, .fn = fn, .arg = arg, .linked = true};
        if (c->watches) c->watches->prev = w;
        c->watches = w;
    }
    pthread_mutex_unlock(&c->mutex);
    return ok;
}

bool cancel_unwatch(Cancel *c, CancelWatch *w) {
    pthread_mutex_lock(&c->mutex);
    bool was_linked = w->linked;
    if (was_linked) unlink_locked(c, w);
    while (!was_linked && c->running == w && inside != w) pthread_cond_wait(&c->quiet, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
    return was_linked;
}
