/* timer_heap.h: TimerHeap, timers by when they are due. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef void LoopFn(void *arg);

/* Zero-initialised is not running. */
typedef struct LoopTimer {
    int64_t at_ns;
    size_t place; /* in the heap, from 1; 0: not running */
    LoopFn *fn;
    void *arg;
} LoopTimer;

typedef struct TimerHeap {
    LoopTimer **heap; /* heap[1..count], earliest first */
    size_t count, capacity;
} TimerHeap;

void timer_heap_add(TimerHeap *h, LoopTimer *timer);    /* not running yet; borrowed until removed */
void timer_heap_remove(TimerHeap *h, LoopTimer *timer); /* nothing happens when it is not running */
LoopTimer *timer_heap_first(const TimerHeap *h);        /* NULL: none */
void timer_heap_clear(TimerHeap *h);
