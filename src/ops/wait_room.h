/* wait_room.h: WaitRoom, where operations wait for a resource to change; first come first served in each line.
 */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/resource.h"

typedef enum AttemptResult {
    ATTEMPT_NOTHING,  /* goes on waiting; nothing changed */
    ATTEMPT_PROGRESS, /* goes on waiting, but something changed: others may try again */
    ATTEMPT_DONE,     /* ends; w->error says how */
} AttemptResult;

typedef struct Waiter Waiter;
struct Waiter {
    AttemptResult (*attempt)(Waiter *w); /* with the room's mutex held */
    void (*undo)(Waiter *w);   /* (optional) with the mutex held, when cancelled: gives back what it had taken */
    void (*finish)(Waiter *w); /* without locks, exactly once; owns w and w->error; must drop w->resource */
    const char *cancel_text;   /* message of the Cancelled error */
    Error *error;
    Resource *resource; /* (optional) a reference, so that the room outlives its waiters */
    /* The room's own: */
    struct WaitRoom *room;
    Waiter *prev, *next;
    int line; /* -1: not in line */
    bool cancelled;
    Cancel *cancel;
    CancelWatch watch;
};

enum { WAIT_ROOM_LINES = 3 };

/* Thread-safe. Nobody is ever finished with the mutex held. */
typedef struct WaitRoom {
    pthread_mutex_t mutex; /* guards the lines, and the state of the resource the room belongs to */
    Waiter *head[WAIT_ROOM_LINES], *tail[WAIT_ROOM_LINES];
    bool any_order[WAIT_ROOM_LINES]; /* set once by the owner: those behind may go first when the first cannot */
} WaitRoom;

void wait_room_init(WaitRoom *r);
void wait_room_clear(WaitRoom *r); /* nobody waits */

/* Puts w at the end of a line and lets everybody try. w may be finished before this returns. cancel may be NULL. */
void wait_room_enter(WaitRoom *r, int line, Waiter *w, Cancel *cancel);

void wait_room_lock(WaitRoom *r);
/* After a change under the lock: everybody tries until nothing moves, then the mutex is released and who is done is
 * finished. */
void wait_room_unlock(WaitRoom *r);
/* The same, after all who wait in `line` were cancelled. */
void wait_room_cancel_line_unlock(WaitRoom *r, int line);
