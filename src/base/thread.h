/* thread.h: Latch, which waits until n things are done. Mutexes and conditions are pthread's. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Latch {
    pthread_mutex_t mutex; /* guards count */
    pthread_cond_t zero;
    int64_t count;
} Latch;

void latch_init(Latch *l, int64_t count);
void latch_clear(Latch *l);
void latch_add(Latch *l, int64_t more);
void latch_done(Latch *l); /* counts down */
void latch_wait(Latch *l); /* until zero */
bool latch_wait_for(Latch *l, int64_t timeout_ms); /* false when the time is over; timeout_ms < 0 waits on */

/* A condition on the monotonic clock, and a timed wait with it; false when the time is over. */
void cond_init(pthread_cond_t *cond);
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_mono_ns);
