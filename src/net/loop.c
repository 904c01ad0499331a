/* loop.c: the threads, the queue of posted tasks, and a heap of timers over one timer of the kernel.

   Tasks run before and after the loop polls, so what who has the turn posts needs no wake-up, and whatever many
   threads posted meanwhile costs one.

   Threads sleep outside libuv, without the turn, on an epoll of their own that holds nothing but libuv's: one-shot, so
   that an event wakes one thread, and nobody else until that one sleeps again or goes off to run what was handed out.
   So a request is read, worked on and answered by one thread, and another one wakes only for what comes meanwhile.
   Who finds another thread of the loop at it goes to sleep: that one looks for events after it has said that it stops,
   and only then arms the epoll, so none is lost. */
#include "net/loop.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

enum {
    READ_BUFFER_BYTES = 256 * 1024,
    BURST_NS = 20000, /* tasks that come closer together are cheaper posted: the loop then writes them all at once */
};

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
    _Atomic bool is_armed;  /* the next event wakes a sleeper */
    _Atomic bool is_ended;

    pthread_mutex_t turn; /* guards what follows, libuv's loop and what users of the loop keep there */
    bool is_touched;
    TaskList handed, handed_long;
    int64_t last_run_ns; /* of loop_run */
    LoopTimer **heap;    /* heap[1..count], earliest first */
    size_t count, capacity;
    int64_t alarm_ns; /* when the alarm rings; 0: it does not */
};

static _Thread_local Loop *own;      /* the loop this is a thread of */
static _Thread_local bool has_turn;  /* of its own loop */
static _Thread_local bool is_spare;  /* another thread of the loop does its work meanwhile */

/* ---- Tasks ---- */

bool loop_post(Loop *l, LoopTask *task) {
    task->next = NULL;
    pthread_mutex_lock(&l->mutex);
    bool posted = !l->stopped, first = !l->head;
    if (posted) {
        if (first)
            l->head = task;
        else
            l->tail->next = task;
        l->tail = task;
    }
    pthread_mutex_unlock(&l->mutex);
    if (posted && first && !loop_is_here(l)) uv_async_send(&l->wake);
    return posted;
}

bool loop_run(Loop *l, LoopTask *task) {
    if (loop_is_here(l) || (own != l && atomic_load(&l->turn_wanted_by)) || pthread_mutex_trylock(&l->turn) != 0)
        return loop_post(l, task);
    int64_t now = clock_mono_ns();
    pthread_mutex_lock(&l->mutex);
    bool must_post = l->head || l->stopped; /* behind those posted before */
    pthread_mutex_unlock(&l->mutex);
    if (now - l->last_run_ns < BURST_NS && own != l) must_post = true;
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

bool loop_hand_out(Loop *l, LoopTask *task, bool is_long) {
    pthread_mutex_lock(&l->mutex);
    bool stopped = l->stopped;
    pthread_mutex_unlock(&l->mutex);
    if (stopped) return false;
    task_list_add(is_long ? &l->handed_long : &l->handed, task);
    if (!loop_is_here(l)) loop_touch(l);
    return true;
}

bool loop_thread_is_spare(void) {
    return is_spare;
}

static void arm(Loop *l) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    if (!atomic_exchange(&l->is_armed, true)) epoll_ctl(l->wait_fd, EPOLL_CTL_MOD, uv_backend_fd(&l->uv), &event);
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

/* Runs a list; only the last task may keep the thread, the others would keep each other waiting. */
static void run_list(LoopTask *task, bool may_keep) {
    while (task) {
        LoopTask *next = task->next;
        is_spare = may_keep && !next;
        task->fn(task->arg);
        task = next;
    }
    is_spare = false;
}

static bool has_handed(const Loop *l) {
    return l->handed.head || l->handed_long.head;
}

/* Leaves the turn. */
static void run_handed(Loop *l) {
    LoopTask *tasks = l->handed.head, *long_tasks = l->handed_long.head;
    l->handed = l->handed_long = (TaskList){0};
    atomic_store(&l->is_driven, false);
    bool has_sleeper = atomic_load(&l->sleepers) > 0;
    if (has_sleeper && long_tasks) arm(l);
    leave_turn(l);
    run_list(tasks, false);
    run_list(long_tasks, has_sleeper);
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

static void put(Loop *l, size_t place, LoopTimer *timer) {
    l->heap[place] = timer;
    timer->place = place;
}

static void sift_up(Loop *l, LoopTimer *timer) {
    size_t at = timer->place;
    for (; at > 1 && l->heap[at / 2]->at_ns > timer->at_ns; at /= 2) put(l, at, l->heap[at / 2]);
    put(l, at, timer);
}

static void sift_down(Loop *l, LoopTimer *timer) {
    size_t at = timer->place;
    for (size_t child; (child = at * 2) <= l->count; at = child) {
        if (child < l->count && l->heap[child + 1]->at_ns < l->heap[child]->at_ns) child++;
        if (l->heap[child]->at_ns >= timer->at_ns) break;
        put(l, at, l->heap[child]);
    }
    put(l, at, timer);
}

static void set_alarm(Loop *l) {
    if (l->count == 0 || (l->alarm_ns && l->alarm_ns <= l->heap[1]->at_ns)) return;
    l->alarm_ns = l->heap[1]->at_ns > 0 ? l->heap[1]->at_ns : 1;
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
    while (l->count > 0 && l->heap[1]->at_ns <= now) {
        LoopTimer *timer = l->heap[1];
        loop_timer_stop(l, timer);
        timer->fn(timer->arg);
    }
    set_alarm(l);
}

void loop_timer_start(Loop *l, LoopTimer *timer, int64_t at_mono_ns, LoopFn *fn, void *arg) {
    loop_timer_stop(l, timer);
    *timer = (LoopTimer){at_mono_ns, 0, fn, arg};
    l->heap = vec_reserve(l->heap, &l->capacity, l->count + 2, sizeof *l->heap);
    timer->place = ++l->count;
    sift_up(l, timer);
    set_alarm(l);
}

/* The alarm stays: when it rings for nothing it is set anew. */
void loop_timer_stop(Loop *l, LoopTimer *timer) {
    if (!timer->place) return;
    LoopTimer *last = l->heap[l->count--];
    if (last != timer) {
        put(l, timer->place, last);
        sift_up(l, last);
        sift_down(l, last);
    }
    timer->place = 0;
}

/* ---- Life ---- */

static bool has_events(Loop *l) {
    struct pollfd events = {.fd = uv_backend_fd(&l->uv), .events = POLLIN};
    return poll(&events, 1, 0) > 0;
}

/* True: nothing is to be done, and the turn is left. */
static bool leave_if_idle(Loop *l) {
    l->is_touched = false;
    if (uv_backend_timeout(&l->uv) == 0) return false;
    atomic_store(&l->is_driven, false);
    if (has_events(l)) { /* to arm now would wake another thread for them */
        atomic_store(&l->is_driven, true);
        return false;
    }
    atomic_fetch_add(&l->sleepers, 1);
    arm(l);
    leave_turn(l);
    return true;
}

static void sleep_for_event(Loop *l) {
    struct epoll_event event;
    if (epoll_wait(l->wait_fd, &event, 1, -1) > 0) atomic_store(&l->is_armed, false);
    atomic_fetch_sub(&l->sleepers, 1);
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

/* With the turn; leaves it. True: sleeps. */
static bool drive(Loop *l) {
    while (!is_over(l)) {
        uv_run(&l->uv, UV_RUN_NOWAIT);
        run_tasks(l);
        if (has_handed(l)) {
            run_handed(l);
            return false;
        }
        if (leave_if_idle(l)) return true;
    }
    atomic_store(&l->is_ended, true);
    leave_turn(l);
    return false;
}

static void *thread_main(void *arg) {
    Loop *l = arg;
    block_signals();
    pthread_setname_np(pthread_self(), l->name);
    own = l;
    while (!atomic_load(&l->is_ended)) {
        bool entered = enter_turn(l);
        if (!entered) atomic_fetch_add(&l->sleepers, 1);
        if (!entered || drive(l)) sleep_for_event(l);
    }
    uv_async_send(&l->wake); /* the next one ends */
    arm(l);
    return NULL;
}

static int start_threads(Loop *l, int count) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    l->wait_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->wait_fd < 0 || epoll_ctl(l->wait_fd, EPOLL_CTL_ADD, uv_backend_fd(&l->uv), &event) != 0) return UV_EMFILE;
    atomic_store(&l->is_armed, true);
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
    pthread_mutex_init(&l->mutex, NULL);
    pthread_mutex_init(&l->turn, NULL);
    l->wake.data = l->before_poll.data = l->after_poll.data = l->alarm.data = l;
    failed = uv_async_init(&l->uv, &l->wake, woken);
    uv_prepare_init(&l->uv, &l->before_poll);
    uv_check_init(&l->uv, &l->after_poll);
    l->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (l->alarm_fd < 0 && !failed) failed = UV_EMFILE;
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
    if (l->alarm_fd >= 0) close(l->alarm_fd);
    pthread_mutex_destroy(&l->mutex);
    pthread_mutex_destroy(&l->turn);
    free(l->heap);
    free(l->read_buffer);
    free(l);
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
