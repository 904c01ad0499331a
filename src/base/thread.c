/* thread.c: Latch. */
#include "base/thread.h"

#include <errno.h>

#include "base/clock.h"

void cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_mono_ns) {
    struct timespec t = {deadline_mono_ns / 1000000000, deadline_mono_ns % 1000000000};
    return pthread_cond_timedwait(cond, mutex, &t) != ETIMEDOUT;
}

void latch_init(Latch *l, int64_t count) {
    pthread_mutex_init(&l->mutex, NULL);
    cond_init(&l->zero);
    l->count = count;
}

void latch_clear(Latch *l) {
    pthread_mutex_destroy(&l->mutex);
    pthread_cond_destroy(&l->zero);
}

void latch_add(Latch *l, int64_t more) {
    pthread_mutex_lock(&l->mutex);
    l->count += more;
    pthread_mutex_unlock(&l->mutex);
}

void latch_done(Latch *l) {
    pthread_mutex_lock(&l->mutex);
    if (--l->count <= 0) pthread_cond_broadcast(&l->zero);
    pthread_mutex_unlock(&l->mutex);
}

bool latch_wait_for(Latch *l, int64_t timeout_ms) {
    if (timeout_ms > INT64_MAX / 4000000) timeout_ms = -1; /* some thousand years */
    int64_t deadline = timeout_ms < 0 ? 0 : clock_mono_ns() + timeout_ms * 1000000;
    pthread_mutex_lock(&l->mutex);
    while (l->count > 0) {
        if (timeout_ms < 0)
            pthread_cond_wait(&l->zero, &l->mutex);
        else if (!cond_wait_until(&l->zero, &l->mutex, deadline))
            break;
    }
    bool done = l->count <= 0;
    pthread_mutex_unlock(&l->mutex);
    return done;
}

void latch_wait(Latch *l) {
    latch_wait_for(l, -1);
}
