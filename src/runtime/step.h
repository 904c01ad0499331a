/* step.h: Step, one run of a plan: counts, values, a ready queue. */
#pragma once
#include "base/error.h"
#include "runtime/plan.h"
#include "runtime/step_context.h"

/* How long threads of a pool that runs steps look for work before they sleep. */
enum { STEP_POLL_NS = 60000 };

/* Runs the plan; the plan and the context must live until done is called. Arguments and results of function bodies go through
 * `args` (borrowed until done) and `rets` (filled, one reference each, NULL when dead). */
struct StepIo {
    Tensor **args;
    int arg_count;
    Tensor **rets;
    int ret_count;
};
void step_start(const Plan *plan, StepContext *context, const StepIo *io, StepDone *done, void *arg);

/* A thread that is not the pool's lends itself to steps: deferred kernels that end in it between the two calls are gone on with by it, at the end,
 * instead of by the pool. Of several steps the pool gets all but one. To begin again before the end changes nothing. */
void step_lend_begin(void);
void step_lend_end(void);

/* For kernels of _Arg and _Retval. */
const StepIo *kernel_step_io(KernelContext *k);
