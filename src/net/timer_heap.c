/* timer_heap.c: a binary heap whose elements know their places. */
#include "net/timer_heap.h"

#include <stdlib.h>

#include "base/memory.h"

static void put(TimerHeap *h, size_t place, LoopTimer *timer) {
    h->heap[place] = timer;
    timer->place = place;
}

static void sift_up(TimerHeap *h, LoopTimer *timer) {
    size_t at = timer->place;
    for (; at > 1 && h->heap[at / 2]->at_ns > timer->at_ns; at /= 2) put(h, at, h->heap[at / 2]);
    put(h, at, timer);
}

static void sift_down(TimerHeap *h, LoopTimer *timer) {
    size_t at = timer->place;
    for (size_t child; (child = at * 2) <= h->count; at = child) {
        if (child < h->count && h->heap[child + 1]->at_ns < h->heap[child]->at_ns) child++;
        if (h->heap[child]->at_ns >= timer->at_ns) break;
        put(h, at, h->heap[child]);
    }
    put(h, at, timer);
}

void timer_heap_add(TimerHeap *h, LoopTimer *timer) {
    h->heap = vec_reserve(h->heap, &h->capacity, h->count + 2, sizeof(LoopTimer *));
    timer->place = ++h->count;
    sift_up(h, timer);
}

void timer_heap_remove(TimerHeap *h, LoopTimer *timer) {
    if (!timer->place) return;
    LoopTimer *last = h->heap[h->count--];
    if (last != timer) {
        put(h, timer->place, last);
        sift_up(h, last);
        sift_down(h, last);
    }
    timer->place = 0;
}

LoopTimer *timer_heap_first(const TimerHeap *h) {
    return h->count ? h->heap[1] : NULL;
}

void timer_heap_clear(TimerHeap *h) {
    free(h->heap);
    *h = (TimerHeap){0};
}
