/* wait_room.c: lines of waiters that try in turn, and leave when done or cancelled. */
#include "ops/wait_room.h"

#include <stddef.h>

void wait_room_init(WaitRoom *r) {
    *r = (WaitRoom){0};
    pthread_mutex_init(&r->mutex, NULL);
}

void wait_room_clear(WaitRoom *r) {
    pthread_mutex_destroy(&r->mutex);
}

static void join_locked(WaitRoom *r, int line, Waiter *w) {
    w->line = line;
    w->prev = r->tail[line];
    w->next = NULL;
    *(w->prev ? &w->prev->next : &r->head[line]) = w;
    r->tail[line] = w;
}

static void leave_locked(WaitRoom *r, Waiter *w) {
    *(w->prev ? &w->prev->next : &r->head[w->line]) = w->next;
    *(w->next ? &w->next->prev : &r->tail[w->line]) = w->prev;
    w->line = -1;
    w->prev = w->next = NULL;
}

/* Those who are done, in order, linked by next. */
typedef struct Leaving {
    Waiter *head, *tail;
} Leaving;

static void leaving_add(Leaving *l, Waiter *w) {
    w->next = NULL;
    *(l->tail ? &l->tail->next : &l->head) = w;
    l->tail = w;
}

static void cancel_locked(Waiter *w, Leaving *leaving) {
    if (w->line >= 0) leave_locked(w->room, w);
    if (w->undo) w->undo(w);
    error_free(w->error);
    w->error = error_new(CODE_CANCELLED, "%s", w->cancel_text);
    leaving_add(leaving, w);
}

/* Lets those of a line try; only the first, unless the line has no order, so that nobody is overtaken. */
static bool flush_line_locked(WaitRoom *r, int line, Leaving *leaving) {
    bool changed = false;
    for (Waiter *w = r->head[line], *next; w; w = next) {
        next = w->next;
        AttemptResult result = w->attempt(w);
        if (result != ATTEMPT_NOTHING) changed = true;
        if (result == ATTEMPT_DONE) {
            leave_locked(r, w);
            leaving_add(leaving, w);
        } else if (!r->any_order[line]) {
            break;
        }
    }
    return changed;
}

static void flush_locked(WaitRoom *r, Leaving *leaving) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int line = 0; line < WAIT_ROOM_LINES; line++) changed = flush_line_locked(r, line, leaving) || changed;
    }
}

static void finish_all(Leaving *leaving) {
    for (Waiter *w = leaving->head, *next; w; w = next) {
        next = w->next;
        if (w->cancel) cancel_unwatch(w->cancel, &w->watch);
        w->finish(w);
    }
}

/* Runs on the thread that cancels. A waiter that has left its line belongs to the thread that finishes it, which waits
 * for this function to return: so nothing may be done then. */
static void on_cancel(void *arg) {
    Waiter *w = arg;
    WaitRoom *r = w->room;
    Leaving leaving = {0};
    pthread_mutex_lock(&r->mutex);
    w->cancelled = true;
    if (w->line >= 0) {
        cancel_locked(w, &leaving);
        flush_locked(r, &leaving);
    }
    pthread_mutex_unlock(&r->mutex);
    finish_all(&leaving);
}

void wait_room_enter(WaitRoom *r, int line, Waiter *w, Cancel *cancel) {
    Leaving leaving = {0};
    w->room = r;
    w->line = -1;
    w->cancelled = false;
    w->cancel = cancel;
    bool was_cancelled = cancel && !cancel_watch(cancel, &w->watch, on_cancel, w);
    if (was_cancelled) w->cancel = NULL;
    pthread_mutex_lock(&r->mutex);
    if (was_cancelled || w->cancelled) {
        cancel_locked(w, &leaving);
    } else {
        join_locked(r, line, w);
        flush_locked(r, &leaving);
    }
    pthread_mutex_unlock(&r->mutex);
    finish_all(&leaving);
}

void wait_room_lock(WaitRoom *r) {
    pthread_mutex_lock(&r->mutex);
}

void wait_room_unlock(WaitRoom *r) {
    Leaving leaving = {0};
    flush_locked(r, &leaving);
    pthread_mutex_unlock(&r->mutex);
    finish_all(&leaving);
}

void wait_room_cancel_line_unlock(WaitRoom *r, int line) {
    Leaving leaving = {0};
    while (r->head[line]) cancel_locked(r->head[line], &leaving);
    flush_locked(r, &leaving);
    pthread_mutex_unlock(&r->mutex);
    finish_all(&leaving);
}
