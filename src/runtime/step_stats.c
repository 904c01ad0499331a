/* step_stats.c: timings collected under a lock, written as tensorflow.StepStats.

   StepStats: dev_stats=1. DeviceStepStats: device=1 node_stats=2 thread_names=3. NodeExecStats: node_name=1 all_start_micros=2
   op_start_rel_micros=3 op_end_rel_micros=4 all_end_rel_micros=5 timeline_label=8 scheduled_micros=9 thread_id=10 all_start_nanos=13
   op_start_rel_nanos=14 op_end_rel_nanos=15 all_end_rel_nanos=16 scheduled_nanos=17. */
#include "runtime/step_stats.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/memory.h"
#include "proto/wire.h"

struct StepStats {
    pthread_mutex_t mutex; /* guards all below */
    Arena *arena;
    NodeTiming *timings;
    size_t count, capacity;
    _Atomic int64_t forwarded; /* not guarded */
};

StepStats *step_stats_new(void) {
    StepStats *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    s->arena = arena_new();
    return s;
}

void step_stats_free(StepStats *s) {
    if (!s) return;
    pthread_mutex_destroy(&s->mutex);
    arena_free(s->arena);
    free(s->timings);
    free(s);
}

void step_stats_add(StepStats *s, const NodeTiming *t) {
    pthread_mutex_lock(&s->mutex);
    s->timings = vec_reserve(s->timings, &s->capacity, s->count + 1, sizeof *s->timings);
    NodeTiming *copy = &s->timings[s->count++];
    *copy = *t;
    copy->node = arena_str(s->arena, t->node);
    copy->op = arena_str(s->arena, t->op);
    copy->label = arena_str(s->arena, t->label);
    copy->device = arena_str(s->arena, t->device);
    copy->tensors = arena_str(s->arena, t->tensors);
    pthread_mutex_unlock(&s->mutex);
}

void step_stats_add_forwarded(StepStats *s) {
    atomic_fetch_add(&s->forwarded, 1);
}

int64_t step_stats_forwarded(StepStats *s) {
    return atomic_load(&s->forwarded);
}

const NodeTiming *step_stats_timings(const StepStats *s, size_t *count) {
    *count = s->count;
    return s->timings;
}

static void encode_node(const NodeTiming *t, StrBuf *out) {
    int64_t length = t->end_ns - t->start_ns;
    int64_t start_us = t->start_ns / 1000;
    wire_put_bytes(out, 1, t->node);
    wire_put_uint(out, 2, (uint64_t)start_us);
    wire_put_uint(out, 3, 0);
    wire_put_uint(out, 4, (uint64_t)(length / 1000));
    wire_put_uint(out, 5, (uint64_t)(length / 1000 > 0 ? length / 1000 : 1));
    if (t->label.len) {
        wire_put_bytes(out, 8, t->label);
    } else {
        StrBuf label = {0};
        strbuf_addf(&label, "%.*s = %.*s()", STR_ARG(t->node), STR_ARG(t->op));
        wire_put_bytes(out, 8, strbuf_str(&label));
        strbuf_clear(&label);
    }
    strbuf_add(out, t->tensors);
    wire_put_uint(out, 9, (uint64_t)(t->scheduled_ns / 1000));
    wire_put_uint(out, 10, (uint64_t)t->thread);
    wire_put_uint(out, 13, (uint64_t)t->start_ns);
    wire_put_uint(out, 14, 0);
    wire_put_uint(out, 15, (uint64_t)length);
    wire_put_uint(out, 16, (uint64_t)length);
    wire_put_uint(out, 17, (uint64_t)t->scheduled_ns);
}

void step_stats_encode(StepStats *s, StrBuf *out) {
    pthread_mutex_lock(&s->mutex);
    bool *done = xcalloc(s->count, sizeof *done);
    for (size_t i = 0; i < s->count; i++) {
        if (done[i]) continue;
        StrBuf device = {0}, node = {0};
        wire_put_bytes(&device, 1, s->timings[i].device);
        for (size_t j = i; j < s->count; j++) {
            if (done[j] || !str_eq(s->timings[i].device, s->timings[j].device)) continue;
            done[j] = true;
            node.len = 0;
            encode_node(&s->timings[j], &node);
            wire_put_bytes(&device, 2, strbuf_str(&node));
        }
        wire_put_bytes(out, 1, strbuf_str(&device));
        strbuf_clear(&device);
        strbuf_clear(&node);
    }
    free(done);
    pthread_mutex_unlock(&s->mutex);
}
