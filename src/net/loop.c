/* loop.c: the threads, the queue of posted tasks, and timers over one timer of the kernel.

   Tasks run before and after the loop polls, so what who has the turn posts needs no wake-up, and whatever many
   threads posted meanwhile costs one.

   Threads sleep outside libuv, without the turn, on an epoll of their own that holds nothing but libuv's: one-shot, so
   that an event wakes one thread, and nobody else until that one sleeps again or goes off to run what was handed out.
   So a request is read, worked on and answered by one thread, and another one wakes only for what comes meanwhile.
   Who finds another thread of the loop at it goes to sleep: that one looks for events after it has said that it stops,
   and only then arms the epoll, so none is lost.

   Before a thread sleeps it looks for events a while, when poll_policy.h finds that worth it: without the turn, so that
   others can take it, and with the epoll not armed, so that nobody else wakes. One looks at a time, the poller; others
   that find nothing to do sleep, and leave it to the poller to arm the epoll when it stops. Who waits for the answer to
   a call may be the poller, too (loop_wait), and stays it while it sleeps: then nobody else needs to be woken. */
#include "net/loop_internal.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/before_long.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

enum {
    READ_BUFFER_BYTES = 256 * 1024,
    BURST_NS = 20000, /* tasks that come closer together are cheaper posted: the loop then writes them all at once */
};

static _Thread_local Loop *own;      /* the loop this is a thread of */
static _Thread_local bool has_turn;  /* of its own loop */
static _Thread_local bool is_spare;  /* another thread of the loop does its work meanwhile */
static _Thread_local bool is_handed; /* runs what was handed out */
static _Thread_local bool may_stay;  /* is spare now or at the last of the tasks that were handed to it */
static _Thread_local void (*after_list)(void); /* (optional) to be called after them */
static _Thread_local LoopFn *last_fn;          /* (optional) the same, before that, as the last of them */
static _Thread_local void *last_arg;
static _Thread_local bool has_kept;  /* tasks in the queue that nobody was woken for: see flush_kept */

/* ---- Tasks ---- */

static void add_locked(Loop *l, LoopTask *task) {
    if (l->head)
        l->tail->next = task;
    else
        l->head = task;
    l->tail = task;
}

bool loop_post(Loop *l, LoopTask *task) {
    task->next = NULL;
    pthread_mutex_lock(&l->mutex);
    bool posted = !l->stopped, first = !l->head;
    if (posted) add_locked(l, task);
    pthread_mutex_unlock(&l->mutex);
    if (posted && first && !loop_is_here(l)) uv_async_send(&l->wake);
    return posted;
}

/* In a task that was handed out: left for flush_kept, behind what was posted before. */
static bool keep(Loop *l, LoopTask *task) {
    task->next = NULL;
    pthread_mutex_lock(&l->mutex);
    bool kept = !l->stopped;
    if (kept) add_locked(l, task);
    pthread_mutex_unlock(&l->mutex);
    has_kept |= kept;
    return kept;
}

bool loop_run(Loop *l, LoopTask *task) {
    if (own == l && is_handed && !has_turn) return keep(l, task);
    if (loop_is_here(l) || (own != l && atomic_load(&l->turn_wanted_by)) || pthread_mutex_trylock(&l->turn) != 0)
        return loop_post(l, task);
    int64_t now = clock_mono_ns();
    pthread_mutex_lock(&l->mutex);
    bool must_post = l->head || l->stopped; /* behind those posted before */
    pthread_mutex_unlock(&l->mutex);
    if (now - l->last_run_ns < BURST_NS && own != l && !loop_wait_is_here()) must_post = true;
    l->last_run_ns = now;
    if (!must_post) task->fn(task->arg);
    bool wake = l->is_touched;
    l->is_touched = false;
    pthread_mutex_unlock(&l->turn);
    if (wake) uv_async_send(&l->wake);
    return !must_post || loop_post(l, task);
}

void loop_touch(Loop *l) {
    l->is_touched = true;
}

static LoopTask *take_tasks(Loop *l) {
    pthread_mutex_lock(&l->mutex);
    LoopTask *list = l->head;
    l->head = l->tail = NULL;
    pthread_mutex_unlock(&l->mutex);
    return list;
}

static void run_tasks(Loop *l) {
    for (LoopTask *task; (task = take_tasks(l));) {
        while (task) {
            LoopTask *next = task->next; /* fn may free or post the task again */
            task->fn(task->arg);
            task = next;
        }
    }
}

static void before_poll(uv_prepare_t *handle) {
    run_tasks(handle->data);
}

static void after_poll(uv_check_t *handle) {
    run_tasks(handle->data);
}

static void woken(uv_async_t *handle) {
    (void)handle; /* after_poll does the work */
}

/* ---- Tasks without the turn ---- */

static void task_list_add(TaskList *list, LoopTask *task) {
    task->next = NULL;
    if (list->head)
        list->tail->next = task;
    else
        list->head = task;
    list->tail = task;
}

bool loop_hand_out(Loop *l, LoopTask *task, LoopKind kind) {
    pthread_mutex_lock(&l->mutex);
    bool stopped = l->stopped;
    pthread_mutex_unlock(&l->mutex);
    if (stopped) return false;
    task_list_add(&l->handed[kind], task);
    if (!loop_is_here(l)) loop_touch(l);
    return true;
}

bool loop_thread_is_spare(void) {
    return is_spare;
}

bool loop_stay_after(void (*fn)(void)) {
    if (!may_stay) return false;
    after_list = fn;
    return true;
}

bool loop_do_last(LoopFn *fn, void *arg) {
    if (!may_stay || last_fn) return false;
    last_fn = fn;
    last_arg = arg;
    return true;
}

static void leave_turn(Loop *l) {
    has_turn = false;
    pthread_mutex_unlock(&l->turn);
}

/* False: another thread of the loop has it. */
static bool enter_turn(Loop *l) {
    if (pthread_mutex_trylock(&l->turn) != 0) {
        if (atomic_load(&l->is_driven)) return false;
        atomic_fetch_add(&l->turn_wanted_by, 1);
        pthread_mutex_lock(&l->turn);
        atomic_fetch_sub(&l->turn_wanted_by, 1);
    }
    atomic_store(&l->is_driven, true);
    has_turn = true;
    return true;
}

static bool has_handed(const Loop *l) {
    return l->handed[LOOP_SHORT].head || l->handed[LOOP_CONTINUES].head || l->handed[LOOP_LONG].head;
}

/* What the tasks handed out to this thread have begun is done here at once, messages to one peer in one write. */
static void flush_kept(void) {
    Loop *l = own;
    if (!has_kept) return;
    has_kept = false;
    bool wake = pthread_mutex_trylock(&l->turn) != 0;
    if (!wake) {
        has_turn = true;
        run_tasks(l);
        wake = l->is_touched || has_handed(l);
        l->is_touched = false;
        leave_turn(l);
    }
    if (wake) uv_async_send(&l->wake);
}

/* Only the last task may keep the thread, the others would keep each other waiting. */
static void run_list(LoopTask *task, bool may_keep) {
    while (task) {
        LoopTask *next = task->next;
        is_spare = may_keep && !next && !last_fn;
        task->fn(task->arg);
        task = next;
    }
    is_spare = false;
}

static void run_last(void) {
    LoopFn *fn = last_fn;
    if (!fn) return;
    last_fn = NULL;
    is_spare = true;
    fn(last_arg);
    is_spare = false;
}

/* Leaves the turn. What continues something comes before what begins something. */
static void run_handed(Loop *l) {
    LoopTask *tasks = l->handed[LOOP_SHORT].head, *continuing = l->handed[LOOP_CONTINUES].head, *long_tasks = l->handed[LOOP_LONG].head;
    memset(l->handed, 0, sizeof l->handed);
    atomic_store(&l->is_driven, false);
    bool has_sleeper = atomic_load(&l->sleepers) > 0;
    if (has_sleeper && (continuing || long_tasks) && !atomic_load(&l->poller)) loop_arm(l);
    leave_turn(l);
    is_handed = true;
    run_list(tasks, false);
    may_stay = has_sleeper;
    run_list(continuing, false);
    run_list(long_tasks, has_sleeper);
    run_last();
    if (after_list) after_list();
    after_list = NULL;
    is_handed = may_stay = false;
    flush_kept();
}

typedef struct WaitedCall {
    LoopFn *fn;
    void *arg;
    Latch done;
} WaitedCall;

static void run_waited_call(void *arg) {
    WaitedCall *c = arg;
    c->fn(c->arg);
    latch_done(&c->done);
}

bool loop_call(Loop *l, LoopFn *fn, void *arg) {
    WaitedCall call = {fn, arg, {.count = 0}};
    latch_init(&call.done, 1);
    LoopTask task = {.fn = run_waited_call, .arg = &call};
    bool posted = loop_post(l, &task);
    if (posted) latch_wait(&call.done);
    latch_clear(&call.done);
    return posted;
}

/* ---- Timers ---- */

static void set_alarm(Loop *l) {
    const LoopTimer *first = timer_heap_first(&l->timers);
    if (!first || (l->alarm_ns && l->alarm_ns <= first->at_ns)) return;
    l->alarm_ns = first->at_ns > 0 ? first->at_ns : 1;
    struct itimerspec when = {.it_value = {l->alarm_ns / 1000000000, l->alarm_ns % 1000000000}};
    timerfd_settime(l->alarm_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void ring(uv_poll_t *alarm, int status, int events) {
    (void)status, (void)events;
    Loop *l = alarm->data;
    uint64_t times;
    if (read(l->alarm_fd, &times, sizeof times) < 0) return; /* it was set again meanwhile */
    l->alarm_ns = 0;
    int64_t now = clock_mono_ns();
    for (LoopTimer *timer; (timer = timer_heap_first(&l->timers)) && timer->at_ns <= now;) {
        timer_heap_remove(&l->timers, timer);
        timer->fn(timer->arg);
    }
    set_alarm(l);
}

void loop_timer_start(Loop *l, LoopTimer *timer, int64_t at_mono_ns, LoopFn *fn, void *arg) {
    timer_heap_remove(&l->timers, timer);
    *timer = (LoopTimer){at_mono_ns, 0, fn, arg};
    timer_heap_add(&l->timers, timer);
    set_alarm(l);
}

/* The alarm stays: when it rings for nothing it is set anew. */
void loop_timer_stop(Loop *l, LoopTimer *timer) {
    timer_heap_remove(&l->timers, timer);
}

/* ---- Life ---- */

typedef enum Rest { WORKS, POLLS, SLEEPS } Rest; /* without the turn unless it works */

typedef struct Poll {
    uint64_t ticket;
    int64_t limit_ns;
} Poll;

static Rest rest_if_idle(Loop *l, Poll *poll) {
    l->is_touched = false;
    if (uv_backend_timeout(&l->uv) == 0) return WORKS;
    atomic_store(&l->is_driven, false);
    uint64_t poller = atomic_load(&l->poller);
    poll->ticket = poller ? 0 : loop_become_poller(l, &l->policy, 0, false, &poll->limit_ns);
    bool is_watched = poller || poll->ticket; /* else to arm now would wake another thread for what is there already */
    if (!is_watched && loop_has_events(l)) {
        atomic_store(&l->is_driven, true);
        return WORKS;
    }
    atomic_fetch_add(&l->sleepers, 1);
    if (!is_watched) {
        pthread_mutex_lock(&l->watch);
        l->idle_since_ns = clock_mono_ns();
        loop_set_armed_locked(l, true);
        pthread_mutex_unlock(&l->watch);
    }
    leave_turn(l);
    return poll->ticket ? POLLS : SLEEPS;
}

static void sleep_for_event(Loop *l) {
    struct epoll_event event;
    if (epoll_wait(l->wait_fd, &event, 1, -1) > 0) {
        pthread_mutex_lock(&l->watch);
        l->is_armed = false;
        if (l->idle_since_ns) poll_policy_slept(&l->policy, clock_mono_ns() - l->idle_since_ns);
        l->idle_since_ns = 0;
        pthread_mutex_unlock(&l->watch);
    }
    atomic_fetch_sub(&l->sleepers, 1);
}

static void poll_for_event(Loop *l, const Poll *poll) {
    PollLook look = poll_look(poll->limit_ns, clock_mono_ns());
    PollEnd how = loop_look_for_events(l, poll->ticket, &look, NULL);
    loop_note_poll(l, &l->policy, how, clock_mono_ns() - look.began_ns);
    loop_stop_polling(l, poll->ticket, how == POLL_FOUND);
    if (how == POLL_FOUND)
        atomic_fetch_sub(&l->sleepers, 1);
    else
        sleep_for_event(l);
}

static bool is_over(Loop *l) {
    pthread_mutex_lock(&l->mutex);
    bool over = l->stopped = !l->head && !has_handed(l) && !uv_loop_alive(&l->uv);
    pthread_mutex_unlock(&l->mutex);
    return over;
}

/* Signals, SIGPIPE too, are for other threads; only faults are a thread's own. */
static void block_signals(void) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
}

/* With the turn; leaves it. */
static Rest drive(Loop *l, Poll *poll) {
    while (!is_over(l)) {
        uv_run(&l->uv, UV_RUN_NOWAIT);
        run_tasks(l);
        if (has_handed(l)) {
            run_handed(l);
            return WORKS;
        }
        Rest rest = rest_if_idle(l, poll);
        if (rest != WORKS) return rest;
    }
    atomic_store(&l->is_ended, true);
    leave_turn(l);
    return WORKS;
}

static void *thread_main(void *arg) {
    Loop *l = arg;
    block_signals();
    pthread_setname_np(pthread_self(), l->name);
    own = l;
    before_long_set(flush_kept);
    while (!atomic_load(&l->is_ended)) {
        Poll poll;
        bool entered = enter_turn(l);
        if (!entered) atomic_fetch_add(&l->sleepers, 1);
        Rest rest = entered ? drive(l, &poll) : SLEEPS;
        if (rest == POLLS)
            poll_for_event(l, &poll);
        else if (rest == SLEEPS)
            sleep_for_event(l);
    }
    uv_async_send(&l->wake); /* the next one ends */
    loop_arm(l);
    return NULL;
}

static int start_threads(Loop *l, int count) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    l->wait_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->wait_fd < 0 || epoll_ctl(l->wait_fd, EPOLL_CTL_ADD, uv_backend_fd(&l->uv), &event) != 0) return UV_EMFILE;
    l->is_armed = true;
    while (l->thread_count < count && pthread_create(&l->threads[l->thread_count], NULL, thread_main, l) == 0)
        l->thread_count++;
    return l->thread_count ? 0 : UV_EAGAIN;
}

Error *loop_new(const char *name, int threads, Loop **out) {
    Loop *l = xcalloc(1, sizeof *l);
    int failed = uv_loop_init(&l->uv);
    if (failed) {
        free(l);
        return error_new(CODE_RESOURCE_EXHAUSTED, "cannot start an event loop: %s", uv_strerror(failed));
    }
    strncpy(l->name, name, sizeof l->name - 1);
    l->read_buffer = xmalloc(READ_BUFFER_BYTES);
    l->wait_fd = -1;
    l->call_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&l->mutex, NULL);
    pthread_mutex_init(&l->turn, NULL);
    pthread_mutex_init(&l->watch, NULL);
    l->wake.data = l->before_poll.data = l->after_poll.data = l->alarm.data = l;
    failed = uv_async_init(&l->uv, &l->wake, woken);
    uv_prepare_init(&l->uv, &l->before_poll);
    uv_check_init(&l->uv, &l->after_poll);
    l->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if ((l->alarm_fd < 0 || l->call_fd < 0) && !failed) failed = UV_EMFILE;
    if (l->alarm_fd >= 0) {
        uv_poll_init(&l->uv, &l->alarm, l->alarm_fd);
        uv_poll_start(&l->alarm, UV_READABLE, ring);
        uv_unref((uv_handle_t *)&l->alarm);
    }
    uv_prepare_start(&l->before_poll, before_poll);
    uv_check_start(&l->after_poll, after_poll);
    uv_unref((uv_handle_t *)&l->before_poll);
    uv_unref((uv_handle_t *)&l->after_poll);
    if (!failed) failed = start_threads(l, threads < LOOP_MAX_THREADS ? threads : LOOP_MAX_THREADS);
    if (failed) {
        loop_free(l);
        return error_new(CODE_RESOURCE_EXHAUSTED, "cannot start an event loop: %s", uv_strerror(failed));
    }
    *out = l;
    return NULL;
}

static void let_run_end(void *arg) {
    Loop *l = arg;
    uv_unref((uv_handle_t *)&l->wake);
}

void loop_stop(Loop *l) {
    LoopTask task = {.fn = let_run_end, .arg = l};
    loop_post(l, &task);
    for (int i = 0; i < l->thread_count; i++) pthread_join(l->threads[i], NULL);
}

static void close_handle(uv_handle_t *handle, void *arg) {
    (void)arg;
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

void loop_free(Loop *l) {
    if (!l) return;
    uv_walk(&l->uv, close_handle, NULL);
    uv_run(&l->uv, UV_RUN_DEFAULT);
    uv_loop_close(&l->uv);
    if (l->wait_fd >= 0) close(l->wait_fd);
    if (l->call_fd >= 0) close(l->call_fd);
    if (l->alarm_fd >= 0) close(l->alarm_fd);
    pthread_mutex_destroy(&l->mutex);
    pthread_mutex_destroy(&l->turn);
    pthread_mutex_destroy(&l->watch);
    timer_heap_clear(&l->timers);
    free(l->read_buffer);
    free(l);
}

/* ---- Guests ---- */

bool loop_is_own_thread(void) {
    return own != NULL;
}

bool loop_drive_as_guest(Loop *l) {
    own = l;
    bool is_done = true;
    if (!enter_turn(l)) {
        sched_yield(); /* who has it is at these events */
    } else {
        uv_run(&l->uv, UV_RUN_NOWAIT);
        run_tasks(l);
        l->is_touched = false;
        is_done = !has_handed(l) && uv_backend_timeout(&l->uv) != 0;
        atomic_store(&l->is_driven, false);
        leave_turn(l);
    }
    own = NULL;
    return is_done;
}

bool loop_is_here(const Loop *l) {
    return has_turn && own == l;
}

uv_loop_t *loop_uv(Loop *l) {
    return &l->uv;
}

uv_buf_t loop_read_buffer(Loop *l) {
    return uv_buf_init(l->read_buffer, READ_BUFFER_BYTES);
}
