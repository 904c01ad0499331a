/* threadpool.c: one queue, threads started on demand. */
#include "base/threadpool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"

typedef struct Task {
    TaskFn *fn;
    void *arg;
} Task;

struct ThreadPool {
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t work;
    Task *ring;
    size_t head, count, capacity;
    pthread_t *threads;
    int thread_count, idle, max_threads;
    bool stopping;
    char name[16];
};

ThreadPool *threadpool_new(const char *name, int max_threads) {
    ThreadPool *p = xcalloc(1, sizeof *p);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->work, NULL);
    p->max_threads = max_threads > 0 ? max_threads : 1;
    p->threads = xcalloc((size_t)p->max_threads, sizeof *p->threads);
    strncpy(p->name, name, sizeof p->name - 1);
    return p;
}

static void *thread_main(void *arg) {
    ThreadPool *p = arg;
    pthread_mutex_lock(&p->mutex);
    for (;;) {
        while (p->count == 0 && !p->stopping) {
            p->idle++;
            pthread_cond_wait(&p->work, &p->mutex);
            p->idle--;
        }
        if (p->count == 0) break;
        Task task = p->ring[p->head];
        p->head = (p->head + 1) % p->capacity;
        p->count--;
        pthread_mutex_unlock(&p->mutex);
        task.fn(task.arg);
        pthread_mutex_lock(&p->mutex);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

static void start_thread_locked(ThreadPool *p) {
    if (pthread_create(&p->threads[p->thread_count], NULL, thread_main, p) != 0) return;
    pthread_setname_np(p->threads[p->thread_count], p->name);
    p->thread_count++;
}

void threadpool_post(ThreadPool *p, TaskFn *fn, void *arg) {
    pthread_mutex_lock(&p->mutex);
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? p->capacity * 2 : 64;
        Task *ring = xmalloc(capacity * sizeof *ring);
        for (size_t i = 0; i < p->count; i++) ring[i] = p->ring[(p->head + i) % p->capacity];
        free(p->ring);
        p->ring = ring;
        p->head = 0;
        p->capacity = capacity;
    }
    p->ring[(p->head + p->count++) % p->capacity] = (Task){fn, arg};
    if ((int)p->count > p->idle && p->thread_count < p->max_threads) start_thread_locked(p);
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->mutex);
}

void threadpool_free(ThreadPool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->mutex);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mutex);
    for (int i = 0; i < p->thread_count; i++) pthread_join(p->threads[i], NULL);
    pthread_mutex_destroy(&p->mutex);
    pthread_cond_destroy(&p->work);
    free(p->ring);
    free(p->threads);
    free(p);
}

int threadpool_size(const ThreadPool *p) {
    return p->max_threads;
}

/* A shared loop: helpers and the caller take pieces until none is left. Freed by the last to let go. */
typedef struct ParallelFor {
    RangeFn *fn;
    void *arg;
    int64_t n, piece;
    _Atomic int64_t next; /* first element nobody has taken */
    _Atomic int holders;
    Latch done; /* counts elements */
} ParallelFor;

static void let_go(ParallelFor *f) {
    if (atomic_fetch_sub(&f->holders, 1) != 1) return;
    latch_clear(&f->done);
    free(f);
}

static void take_pieces(ParallelFor *f) {
    for (;;) {
        int64_t begin = atomic_fetch_add(&f->next, f->piece);
        if (begin >= f->n) return;
        f->fn(f->arg, begin, begin + f->piece < f->n ? begin + f->piece : f->n);
        latch_done(&f->done);
    }
}

static void help(void *arg) {
    ParallelFor *f = arg;
    take_pieces(f);
    let_go(f);
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
    ParallelFor *f = xmalloc(sizeof *f);
    f->fn = fn;
    f->arg = arg;
    f->n = n;
    f->piece = (n + pieces - 1) / pieces;
    pieces = (n + f->piece - 1) / f->piece;
    int helpers = (int)(pieces - 1 < threads - 1 ? pieces - 1 : threads - 1);
    atomic_init(&f->next, 0);
    atomic_init(&f->holders, helpers + 1);
    latch_init(&f->done, pieces);
    for (int i = 0; i < helpers; i++) threadpool_post(pool, help, f);
    take_pieces(f);
    latch_wait(&f->done);
    let_go(f);
}
