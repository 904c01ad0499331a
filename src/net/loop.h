/* loop.h: Loop, a libuv loop on its own thread that runs posted tasks and timers.

   Whoever runs has the turn: the loop's thread, except while it sleeps; then another thread may take the turn for one
   task, which saves waking the loop. State "of the loop" is state of who has the turn. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"

typedef struct Loop Loop;
typedef void LoopFn(void *arg);

/* Lives inside what it is about; in at most one queue at a time. */
typedef struct LoopTask {
    struct LoopTask *next;
    LoopFn *fn;
    void *arg;
} LoopTask;

/* Zero-initialised is not running. Used by who has the turn only. */
typedef struct LoopTimer {
    int64_t at_ns;
    size_t place; /* in the heap, from 1; 0: not running */
    LoopFn *fn;
    void *arg;
} LoopTimer;

Error *loop_new(const char *name, Loop **out) MUST_CHECK;
void loop_stop(Loop *loop); /* runs what is posted, waits until every handle was closed by its owner, ends the thread */
void loop_free(Loop *loop); /* stopped */

bool loop_post(Loop *loop, LoopTask *task); /* from any thread; false: has stopped, task will not run */
bool loop_run(Loop *loop, LoopTask *task);  /* here if the loop sleeps, else posts; user code must not run in it */
bool loop_call(Loop *loop, LoopFn *fn, void *arg); /* runs fn on the loop and waits; not from the loop's thread */
bool loop_is_here(const Loop *loop);               /* is this the loop's thread? */

/* For code that has the turn. */
void loop_touch(Loop *loop); /* after any call of libuv that the loop must look at before it sleeps on */
uv_loop_t *loop_uv(Loop *loop);
uv_buf_t loop_read_buffer(Loop *loop); /* one for all readers: empty it before returning to the loop */
void loop_timer_start(Loop *loop, LoopTimer *timer, int64_t at_mono_ns, LoopFn *fn, void *arg); /* or moves it */
void loop_timer_stop(Loop *loop, LoopTimer *timer);
