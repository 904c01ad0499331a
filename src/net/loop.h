/* loop.h: Loop, a libuv loop on a few threads of its own that runs posted tasks and timers.

   One has the turn: a thread of the loop, except while all of them sleep or run what was handed out to them; then
   another thread may take the turn for one task, which saves waking the loop. State "of the loop" is state of who has
   the turn. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "net/timer_heap.h"

typedef struct Loop Loop;

/* Lives inside what it is about; in at most one queue at a time. */
typedef struct LoopTask {
    struct LoopTask *next;
    LoopFn *fn;
    void *arg;
} LoopTask;

enum { LOOP_MAX_THREADS = 5 };

Error *loop_new(const char *name, int threads, Loop **out) MUST_CHECK;
void loop_stop(Loop *loop); /* runs what is posted, waits until every handle was closed by its owner, ends the threads */
void loop_free(Loop *loop); /* stopped */

bool loop_post(Loop *loop, LoopTask *task); /* from any thread; false: has stopped, task will not run */
bool loop_run(Loop *loop, LoopTask *task);  /* here if the loop sleeps, else posts; in a task that was handed out: after
                                               it, or at before_long. User code must not run in it */
bool loop_call(Loop *loop, LoopFn *fn, void *arg); /* runs fn on the loop and waits; not from who has the turn */
bool loop_is_here(const Loop *loop);               /* is this a thread of the loop, with the turn? */

/* A thread that is not of the loop waits for something that who has the turn will note in *done, and then call
 * loop_wait_note. Begun before that is asked for; reads events meanwhile and works on them in this thread, unless another
 * one does so already. What was handed out is left to the loop's threads. Afterwards the caller still has to wait, if
 * *done is not set. */
typedef struct LoopWait {
    uint64_t ticket; /* 0: does not read events */
    int64_t limit_ns, began_ns;
} LoopWait;
void loop_wait_begin(Loop *loop, LoopWait *wait);
void loop_wait_for(Loop *loop, LoopWait *wait, const _Atomic bool *done);
void loop_wait_note(Loop *loop);

/* Inside a task handed out by loop_hand_out: may it take its time, because another thread looks after the loop? */
bool loop_thread_is_spare(void);
/* The same, for what is done once for all tasks that were handed to this thread together: fn runs after them. false: it may not. */
bool loop_stay_after(void (*fn)(void));
/* In one of them that is not the last: fn runs after them, with the thread to spare. One such function at a time. false: it will not. */
bool loop_do_last(LoopFn *fn, void *arg);

/* For code that has the turn. A LoopTimer is used by who has the turn only. */
/* Runs task soon, on a thread of the loop but without the turn; those that came together in this order. false: has stopped. */
typedef enum LoopKind {
    LOOP_SHORT,
    LOOP_CONTINUES, /* brings what others wait for; may use loop_stay_after */
    LOOP_LONG,      /* may take its time if loop_thread_is_spare, as it is for the last one */
    LOOP_KINDS
} LoopKind;
bool loop_hand_out(Loop *loop, LoopTask *task, LoopKind kind);
void loop_touch(Loop *loop); /* after any call of libuv that the loop must look at before it sleeps on */
uv_loop_t *loop_uv(Loop *loop);
uv_buf_t loop_read_buffer(Loop *loop); /* one for all readers: empty it before returning to the loop */
void loop_timer_start(Loop *loop, LoopTimer *timer, int64_t at_mono_ns, LoopFn *fn, void *arg); /* or moves it */
void loop_timer_stop(Loop *loop, LoopTimer *timer);
