/* threadpool.h: threads that run posted tasks; parallel_for. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct ThreadPool ThreadPool;
typedef void TaskFn(void *arg);
typedef void RangeFn(void *arg, int64_t begin, int64_t end);

/* A function over ranges with its argument; fn NULL: nothing is called. */
typedef struct RangeCall {
    RangeFn *fn;
    void *arg;
} RangeCall;
static inline void range_call(RangeCall c, int64_t begin, int64_t end) {
    if (c.fn && begin < end) c.fn(c.arg, begin, end);
}

/* Threads are started when work needs them, `max_threads` at most. */
ThreadPool *threadpool_new(const char *name, int max_threads);
void threadpool_free(ThreadPool *pool); /* runs what was posted, then joins */
void threadpool_post(ThreadPool *pool, TaskFn *fn, void *arg);
int threadpool_size(const ThreadPool *pool);
/* Threads without work look for it up to `max_ns` before they sleep, less when tasks have lately come later than that: waking one takes longer than
 * many tasks. They yield to whoever else wants the core. Before the first post. */
void threadpool_poll(ThreadPool *pool, int64_t max_ns);

/* The calling thread works beside the pool's until threadpool_leave, so that one thread less of the pool (but one at least)
 * is given tasks. False when it is one of them or has entered already: then it must not leave. */
bool threadpool_enter(ThreadPool *pool);
void threadpool_leave(ThreadPool *pool);

/* Splits [0, n) in pieces of at least `grain` and returns when all are done. The caller works too; safe inside a task
 * of the same pool; pool may be NULL (the caller does all). */
void threadpool_parallel_for(ThreadPool *pool, int64_t n, int64_t grain, RangeFn *fn, void *arg);
/* Says of the loops that this thread begins from now on whether they are so short that no sleeping thread should be woken for one of them alone. The
 * pieces are the same either way. */
void threadpool_brief(bool yes);
