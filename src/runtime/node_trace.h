/* node_trace.h: what a trace says of one run of a node: its time, its outputs and the memory it took. */
#pragma once
#include "runtime/kernel.h"
#include "runtime/step_stats.h"

/* Adds a kernel that has run to the trace. `t` has its device and times; the rest is told from the context. */
void node_trace_add(StepStats *stats, const KernelContext *k, NodeTiming t);
