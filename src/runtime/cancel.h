/* cancel.h: Cancel, stops everything of a step; whoever waits registers to be told. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

typedef struct CancelWatch {
    struct CancelWatch *prev, *next;
    void (*fn)(void *arg);
    void *arg;
    bool linked;
} CancelWatch;

typedef struct Cancel {
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t quiet;
    CancelWatch *watches;
    CancelWatch *running; /* whose fn is being called */
    Error *reason; /* set once cancelled */
    bool cancelled;
} Cancel;

void cancel_init(Cancel *c);
void cancel_clear(Cancel *c);
/* The first reason stays; takes it. Calls every watcher's fn (outside the lock) exactly once. */
void cancel_now(Cancel *c, Error *reason);
bool cancel_is_set(Cancel *c);
Error *cancel_reason(Cancel *c); /* a copy; NULL when not cancelled */
/* False when already cancelled: fn will not be called. The watch must stay valid until cancel_unwatch returned. */
bool cancel_watch(Cancel *c, CancelWatch *w, void (*fn)(void *arg), void *arg);
/* True when fn has not run and will not; false when it has (waits for it to return, unless called from inside it). */
bool cancel_unwatch(Cancel *c, CancelWatch *w);
