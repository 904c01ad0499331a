/* loop_internal.h: what the files of Loop share: loop.c (the turn), loop_poll.c (who looks for events), loop_wait.c (threads that wait for a call). */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "net/loop.h"
#include "net/poll_policy.h"

typedef struct TaskList {
    LoopTask *head, *tail;
} TaskList;

struct Loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_poll_t alarm;
    int alarm_fd; /* a timer that any sleeping thread hears of */
    int wait_fd; /* what the threads sleep on */
    int call_fd; /* an eventfd: wakes the poller that sleeps until its call is done */
    pthread_t threads[LOOP_MAX_THREADS];
    int thread_count;
    char name[16];
    char *read_buffer;

    pthread_mutex_t mutex; /* guards head, tail, stopped */
    LoopTask *head, *tail;
    bool stopped;

    _Atomic int turn_wanted_by; /* the loop's threads come first */
    _Atomic int sleepers;
    _Atomic bool is_driven; /* one of the loop's threads has the turn and will look for events before it leaves it */
    _Atomic bool is_ended;
    _Atomic uint64_t poller; /* the ticket of who looks for events without the turn; 0: nobody. Odd: waits for a call */
    _Atomic uint64_t tickets;
    _Atomic bool is_call_slept_on; /* by the poller */

    pthread_mutex_t watch;  /* guards what follows */
    bool is_armed;          /* the next event wakes a sleeper */
    int64_t idle_since_ns;  /* the threads have had nothing to do; 0: they have, or one looks for it */
    PollPolicy policy;      /* of the loop's threads */
    PollPolicy wait_policy; /* of who waits for a call */

    pthread_mutex_t turn; /* guards what follows, libuv's loop and what users of the loop keep there */
    bool is_touched;
    TaskList handed[LOOP_KINDS];
    int64_t last_run_ns; /* of loop_run */
    TimerHeap timers;
    int64_t alarm_ns; /* when the alarm rings; 0: it does not */
};

/* ---- loop.c ---- */

bool loop_is_own_thread(void); /* is this a thread of any loop? */
/* In a thread that is none, without the turn: works on events. False: there is something that only a thread of the loop may do. */
bool loop_drive_as_guest(Loop *l);

/* ---- loop_poll.c ---- */

bool loop_has_events(Loop *l);
void loop_arm(Loop *l); /* the next event wakes a sleeper */
void loop_set_armed_locked(Loop *l, bool armed);

/* Becomes the poller, in place of `instead` (0: of nobody), unless there is another one by now, or the policy is against
 * looking and this thread would not stay the poller while it sleeps: then 0. */
uint64_t loop_become_poller(Loop *l, PollPolicy *policy, uint64_t instead, bool sleeps_too, int64_t *limit_ns);
/* Without the turn, until there are events, *stop (optional) or it is enough. */
PollEnd loop_look_for_events(Loop *l, uint64_t ticket, PollLook *look, const _Atomic bool *stop);
void loop_note_poll(Loop *l, PollPolicy *policy, PollEnd how, int64_t waited_ns);
/* Is no longer the poller. What comes from now on wakes a sleeper, unless this thread looks at it next. */
void loop_stop_polling(Loop *l, uint64_t ticket, bool looks_next);

/* ---- loop_wait.c ---- */

bool loop_wait_is_here(void); /* is this a thread that waits for a call, as the poller? */
