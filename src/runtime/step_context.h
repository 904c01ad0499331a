/* step_context.h: StepContext, what all kernels of one running step share. */
#pragma once
#include "base/threadpool.h"
#include "runtime/cancel.h"
#include "runtime/rendezvous.h"
#include "runtime/session_state.h"
#include "runtime/step_stats.h"

struct StepContext {
    int64_t step_id;
    Rendezvous *rendezvous;
    Cancel *cancel;
    SessionState *session;
    const FunctionLibrary *functions; /* (optional) */
    struct FunctionRuntime *function_runtime; /* (optional) runs function bodies */
    ResourceManager *_Atomic step_resources; /* vanish with the step; made when a kernel wants one: kernel_step_resources */
    struct Executable *executable;            /* (optional) what is run; closures hold on to it */
    ThreadPool *pool;
    ThreadPool *blocking; /* for the few things that must wait in a thread; see runtime/closure.h */
    StepStats *stats; /* (optional) what ran when */
    _Atomic int function_calls; /* under way; see function_runtime.c */
};
void step_context_clear(StepContext *c); /* what kernels left in it */
