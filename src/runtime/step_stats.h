/* step_stats.h: what ran where and when in one step, for traces. */
#pragma once
#include <stdint.h>

#include "base/str.h"

typedef struct NodeTiming {
    Str node, op, label; /* label "" is made from node and op */
    Str device;
    Str tensors; /* fields of NodeExecStats that describe outputs and memory, or "" */
    int64_t scheduled_ns, start_ns, end_ns; /* wall clock */
    int64_t output_bytes;
    int thread;
} NodeTiming;

/* Thread-safe. */
typedef struct StepStats StepStats;
StepStats *step_stats_new(void);
void step_stats_free(StepStats *s);
void step_stats_add(StepStats *s, const NodeTiming *t); /* copies the strings */
/* A kernel put its result into the memory of an input that nobody else needed. */
void step_stats_add_forwarded(StepStats *s);
int64_t step_stats_forwarded(StepStats *s); /* how often */
/* What was added; borrowed, for when the step is over. */
const NodeTiming *step_stats_timings(const StepStats *s, size_t *count);
/* Serialised StepStats: one DeviceStepStats for each device. */
void step_stats_encode(StepStats *s, StrBuf *out);
