/* coordinator.c: a flag to stop, the first error, and the threads to wait for. */
#include "rill/coordinator.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

typedef struct CoordinatedThread {
    pthread_t thread;
    RillCoordinator *coordinator;
    void (*run)(RillCoordinator *c, void *arg);
    void *arg;
    struct CoordinatedThread *next;
} CoordinatedThread;

struct RillCoordinator {
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t stopped;
    CoordinatedThread *threads;
    TF_Code code;
    char *message;
    _Atomic bool should_stop;
};

RillCoordinator *rill_coordinator_new(void) {
    RillCoordinator *c = xcalloc(1, sizeof *c);
    pthread_mutex_init(&c->mutex, NULL);
    cond_init(&c->stopped);
    return c;
}

void rill_coordinator_free(RillCoordinator *c) {
    if (!c) return;
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->stopped);
    free(c->message);
    free(c);
}

void rill_coordinator_stop(RillCoordinator *c, TF_Code code, const char *message) {
    bool is_error = code != TF_OK && code != TF_OUT_OF_RANGE && code != TF_CANCELLED;
    pthread_mutex_lock(&c->mutex);
    if (is_error && c->code == TF_OK) {
        c->code = code;
        c->message = xstrdup(message ? message : "");
    }
    atomic_store(&c->should_stop, true);
    pthread_cond_broadcast(&c->stopped);
    pthread_mutex_unlock(&c->mutex);
}

bool rill_coordinator_should_stop(const RillCoordinator *c) {
    return atomic_load(&((RillCoordinator *)c)->should_stop);
}

bool rill_coordinator_wait(RillCoordinator *c, int64_t timeout_ms) {
    int64_t deadline = clock_mono_ns() + timeout_ms * 1000000;
    pthread_mutex_lock(&c->mutex);
    while (!rill_coordinator_should_stop(c)) {
        if (timeout_ms < 0)
            pthread_cond_wait(&c->stopped, &c->mutex);
        else if (!cond_wait_until(&c->stopped, &c->mutex, deadline))
            break;
    }
    pthread_mutex_unlock(&c->mutex);
    return rill_coordinator_should_stop(c);
}

static void *run_thread(void *arg) {
    CoordinatedThread *t = arg;
    t->run(t->coordinator, t->arg);
    return NULL;
}

void rill_coordinator_start(RillCoordinator *c, void (*run)(RillCoordinator *c, void *arg), void *arg) {
    CoordinatedThread *t = xcalloc(1, sizeof *t);
    *t = (CoordinatedThread){.coordinator = c, .run = run, .arg = arg};
    if (pthread_create(&t->thread, NULL, run_thread, t) != 0) {
        free(t);
        rill_coordinator_stop(c, TF_RESOURCE_EXHAUSTED, "No more threads can be started");
        return;
    }
    pthread_mutex_lock(&c->mutex);
    t->next = c->threads;
    c->threads = t;
    pthread_mutex_unlock(&c->mutex);
}

TF_Code rill_coordinator_join(RillCoordinator *c, TF_Status *status) {
    for (;;) {
        pthread_mutex_lock(&c->mutex);
        CoordinatedThread *t = c->threads;
        if (t) c->threads = t->next;
        pthread_mutex_unlock(&c->mutex);
        if (!t) break;
        pthread_join(t->thread, NULL);
        free(t);
    }
    pthread_mutex_lock(&c->mutex);
    TF_SetStatus(status, c->code, c->message ? c->message : "");
    pthread_mutex_unlock(&c->mutex);
    return TF_GetCode(status);
}
