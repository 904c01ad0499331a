/* ready.h: SessionMaker, how a session becomes one whose variables have values. */
#pragma once
#include "rill/training.h"

#define CHIEF_WAIT_SECONDS 0.2 /* between looks at whether the chief is done, unless the program says otherwise */

typedef struct SessionMaker {
    RillGraph *graph;
    RillTask *task; /* NULL: on its own */
    bool is_chief;
    TF_Operation *init_op, *local_init_op;
    RillTensor ready;      /* names of what has no value yet */
    RillSaver *saver;      /* (optional) */
    const char *directory; /* (optional) of checkpoints */
    double wait_seconds;
    int64_t patience_seconds;
    RillSessionOptions session;
    const char *filters[2];
} SessionMaker;

/* Unless the program says otherwise, a worker's session is of its own task and the ps tasks alone: other workers may come and go. */
void session_maker_set_filters(SessionMaker *m);

/* The chief restores the newest checkpoint, or initialises, where something has no value; the others wait for it. Tasks that cannot be reached are waited for. NULL
 * with *status when that fails or the patience is over: the message names what is missing. `stop` (optional) ends the wait: Cancelled. */
RillSession *session_maker_make(const SessionMaker *m, bool (*stop)(void *arg), void *arg, TF_Status *status);
/* Tells those who may wait for this task that it is done. */
void session_leave(RillSession *s);
/* After these a new session may go well where the old one failed. */
bool is_recoverable(TF_Code code);
