/* threadpool.c: one queue, threads started on demand. */
#include "base/threadpool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/float_mode.h"
#include "base/memory.h"
#include "base/spin.h"

enum { LEAST_POLL_NS = 4000, WAIT_POLL_NS = 100000, BRIEF_LOOPS = 8 };

typedef struct Task {
    TaskFn *fn;
    void *arg;
} Task;

/* A shared loop: helpers and the caller take pieces until none is left. Back in the pool's list with the last to let go. */
typedef struct ParallelFor {
    ThreadPool *pool;
    RangeFn *fn;
    void *arg;
    int64_t n, piece;
    _Atomic int64_t next;   /* first element nobody has taken */
    _Atomic int64_t pieces; /* not done */
    _Atomic int holders;
    pthread_mutex_t mutex; /* for `done` alone */
    pthread_cond_t done;
    struct ParallelFor *next_free;
} ParallelFor;

struct ThreadPool {
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t work;
    Task *ring;
    size_t head, capacity;
    _Atomic size_t count; /* of tasks; pollers read it without the mutex */
    pthread_t *threads;
    int thread_count, max_threads;
    int idle, polling, busy; /* threads that sleep, look for work, run a task */
    int guests;
    bool stopping;
    int64_t poll_ns, poll_limit_ns;
    int64_t waiting_since_ns; /* when the last of the threads that wait began to; 0: a task has come since */
    int briefs;            /* brief loops since the last pause or longer loop */
    int64_t last_brief_ns; /* when the last of them began; 0: none since a longer one */
    ParallelFor *free_loops;
    char name[16];
};

/* The pool this thread belongs to, and the one it has entered. */
static _Thread_local ThreadPool *home, *entered;
static _Thread_local bool is_brief;

ThreadPool *threadpool_new(const char *name, int max_threads) {
    ThreadPool *p = xcalloc(1, sizeof *p);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->work, NULL);
    p->max_threads = max_threads > 0 ? max_threads : 1;
    p->threads = xcalloc((size_t)p->max_threads, sizeof *p->threads);
    strncpy(p->name, name, sizeof p->name - 1);
    return p;
}

void threadpool_poll(ThreadPool *p, int64_t max_ns) {
    p->poll_ns = p->poll_limit_ns = max_ns;
}

/* Tasks that threads may run besides those they run now. */
static int places_locked(const ThreadPool *p) {
    int limit = p->max_threads - p->guests;
    return (limit > 1 ? limit : 1) - p->busy;
}

/* Tasks that a thread may take now. */
static int room_locked(const ThreadPool *p) {
    int places = places_locked(p), count = (int)p->count;
    return places < count ? places : count;
}

/* A task comes after threads have waited: whether the last of them would have seen it within the limit says how long to look next time. */
static void learn_locked(ThreadPool *p) {
    if (!p->waiting_since_ns) return;
    int64_t waited = clock_mono_ns() - p->waiting_since_ns;
    int64_t next = waited < p->poll_limit_ns ? p->poll_ns * 2 : p->poll_ns / 2;
    p->poll_ns = next > p->poll_limit_ns ? p->poll_limit_ns : next < LEAST_POLL_NS ? LEAST_POLL_NS : next;
    p->waiting_since_ns = 0;
}

/* Looks for work a while without the mutex, unless enough others do. */
static void poll_locked(ThreadPool *p) {
    p->waiting_since_ns = clock_mono_ns();
    if (p->polling >= places_locked(p)) return;
    Spin spin = spin_for(p->poll_ns);
    p->polling++;
    pthread_mutex_unlock(&p->mutex);
    while (atomic_load_explicit(&p->count, memory_order_relaxed) == 0 && spin_on(&spin)) continue;
    pthread_mutex_lock(&p->mutex);
    p->polling--;
}

static void *thread_main(void *arg) {
    ThreadPool *p = arg;
    home = p;
    float_mode_flush();
    pthread_mutex_lock(&p->mutex);
    for (;;) {
        if (p->poll_limit_ns && room_locked(p) <= 0 && !p->stopping) poll_locked(p);
        while (room_locked(p) <= 0 && !(p->stopping && p->count == 0)) {
            p->idle++;
            pthread_cond_wait(&p->work, &p->mutex);
            p->idle--;
        }
        if (p->count == 0) break;
        Task task = p->ring[p->head];
        p->head = (p->head + 1) % p->capacity;
        p->count--;
        p->busy++;
        pthread_mutex_unlock(&p->mutex);
        task.fn(task.arg);
        pthread_mutex_lock(&p->mutex);
        p->busy--;
    }
    pthread_cond_broadcast(&p->work); /* others may wait for room that is there now */
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* As many threads as there are tasks for. */
static void call_threads_locked(ThreadPool *p) {
    int wanted = room_locked(p) - p->polling;
    if (wanted > 0 && p->idle > 0) pthread_cond_signal(&p->work);
    if (wanted <= p->idle || p->thread_count == p->max_threads) return;
    if (pthread_create(&p->threads[p->thread_count], NULL, thread_main, p) != 0) return;
    pthread_setname_np(p->threads[p->thread_count], p->name);
    p->thread_count++;
}

static void push_locked(ThreadPool *p, TaskFn *fn, void *arg) {
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? p->capacity * 2 : 64;
        Task *ring = xmalloc(capacity * sizeof *ring);
        for (size_t i = 0; i < p->count; i++) ring[i] = p->ring[(p->head + i) % p->capacity];
        free(p->ring);
        p->ring = ring;
        p->head = 0;
        p->capacity = capacity;
    }
    learn_locked(p);
    p->ring[(p->head + p->count) % p->capacity] = (Task){fn, arg};
    p->count++;
    call_threads_locked(p);
}

void threadpool_post(ThreadPool *p, TaskFn *fn, void *arg) {
    pthread_mutex_lock(&p->mutex);
    push_locked(p, fn, arg);
    pthread_mutex_unlock(&p->mutex);
}

void threadpool_free(ThreadPool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->mutex);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mutex);
    for (int i = 0; i < p->thread_count; i++) pthread_join(p->threads[i], NULL);
    for (ParallelFor *f = p->free_loops; f;) {
        ParallelFor *next = f->next_free;
        pthread_mutex_destroy(&f->mutex);
        pthread_cond_destroy(&f->done);
        free(f);
        f = next;
    }
    pthread_mutex_destroy(&p->mutex);
    pthread_cond_destroy(&p->work);
    free(p->ring);
    free(p->threads);
    free(p);
}

int threadpool_size(const ThreadPool *p) {
    return p->max_threads;
}

bool threadpool_enter(ThreadPool *p) {
    if (home == p || entered) return false;
    entered = p;
    pthread_mutex_lock(&p->mutex);
    p->guests++;
    pthread_mutex_unlock(&p->mutex);
    return true;
}

void threadpool_leave(ThreadPool *p) {
    entered = NULL;
    pthread_mutex_lock(&p->mutex);
    p->guests--;
    if (p->count > 0) call_threads_locked(p);
    pthread_mutex_unlock(&p->mutex);
}

/* ---- Loops ---- */

static ParallelFor *loop_new_locked(ThreadPool *p) {
    ParallelFor *f = p->free_loops;
    if (f) {
        p->free_loops = f->next_free;
        return f;
    }
    f = xcalloc(1, sizeof *f);
    f->pool = p;
    pthread_mutex_init(&f->mutex, NULL);
    pthread_cond_init(&f->done, NULL);
    return f;
}

static void let_go(ParallelFor *f) {
    if (atomic_fetch_sub(&f->holders, 1) != 1) return;
    ThreadPool *p = f->pool;
    pthread_mutex_lock(&p->mutex);
    f->next_free = p->free_loops;
    p->free_loops = f;
    pthread_mutex_unlock(&p->mutex);
}

static void take_pieces(ParallelFor *f) {
    for (;;) {
        int64_t begin = atomic_fetch_add(&f->next, f->piece);
        if (begin >= f->n) return;
        f->fn(f->arg, begin, begin + f->piece < f->n ? begin + f->piece : f->n);
        if (atomic_fetch_sub(&f->pieces, 1) != 1) continue;
        pthread_mutex_lock(&f->mutex);
        pthread_cond_broadcast(&f->done);
        pthread_mutex_unlock(&f->mutex);
    }
}

static void help(void *arg) {
    ParallelFor *f = arg;
    take_pieces(f);
    let_go(f);
}

/* The others are in their last pieces. */
static void wait_for_pieces(ParallelFor *f) {
    Spin spin = spin_for(WAIT_POLL_NS);
    while (atomic_load(&f->pieces) > 0 && spin_on(&spin)) continue;
    if (atomic_load(&f->pieces) == 0) return;
    pthread_mutex_lock(&f->mutex);
    while (atomic_load(&f->pieces) > 0) pthread_cond_wait(&f->done, &f->mutex);
    pthread_mutex_unlock(&f->mutex);
}

void threadpool_brief(bool yes) {
    is_brief = yes;
}

/* Whether sleeping threads are better left alone: the loop would be over before they come. After a longer loop, or where one such loop follows another, they
 * are called, and then look for the next one. */
static bool may_sleep_on_locked(ThreadPool *p) {
    if (!is_brief) {
        p->briefs = BRIEF_LOOPS;
        p->last_brief_ns = 0;
    }
    bool would_wake = p->idle > 0 && places_locked(p) > p->polling;
    if (!is_brief || !would_wake || !p->poll_limit_ns) return false;
    int64_t now = clock_mono_ns();
    if (p->last_brief_ns && now - p->last_brief_ns > p->poll_limit_ns) p->briefs = 0;
    p->last_brief_ns = now;
    return ++p->briefs <= BRIEF_LOOPS;
}

void threadpool_parallel_for(ThreadPool *pool, int64_t n, int64_t grain, RangeFn *fn, void *arg) {
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    int threads = pool ? pool->max_threads : 1;
    if (threads == 1 || n <= grain) {
        fn(arg, 0, n);
        return;
    }
    int64_t pieces = (n + grain - 1) / grain;
    if (pieces > threads * 4) pieces = threads * 4;
    int64_t piece = (n + pieces - 1) / pieces;
    pieces = (n + piece - 1) / piece;
    int helpers = (int)(pieces - 1 < threads - 1 ? pieces - 1 : threads - 1);
    pthread_mutex_lock(&pool->mutex);
    if (may_sleep_on_locked(pool)) helpers = 0;
    ParallelFor *f = loop_new_locked(pool);
    f->fn = fn;
    f->arg = arg;
    f->n = n;
    f->piece = piece;
    atomic_store(&f->next, 0);
    atomic_store(&f->pieces, pieces);
    atomic_store(&f->holders, helpers + 1);
    for (int i = 0; i < helpers; i++) push_locked(pool, help, f);
    pthread_mutex_unlock(&pool->mutex);
    take_pieces(f);
    wait_for_pieces(f);
    let_go(f);
}
