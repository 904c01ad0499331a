/* step_failure.c: the error that a step ends with, and who hears of it at once. */
#include "runtime/step_internal.h"

void step_fail(Step *step, Error *err) {
    pthread_mutex_lock(&step->mutex);
    bool first = !step->error || (step->error->derived && !err->derived);
    if (first) {
        error_free(step->error);
        step->error = error_copy(err);
    }
    pthread_mutex_unlock(&step->mutex);
    if (!atomic_exchange(&step->failed, true)) {
        /* Whoever waits for this step must hear of it at once: peers in receives, kernels in queues. */
        if (step->context->rendezvous) rendezvous_abort(step->context->rendezvous, err);
        Error *reason = error_new(CODE_CANCELLED, "Step was cancelled: %s", err->message);
        cancel_now(step->context->cancel, error_derived(reason));
    }
    error_free(err);
}

/* Somebody outside cancelled the step: also one whose kernels never wait, such as a loop, must end. */
void step_cancelled(void *arg) {
    Step *step = arg;
    step_fail(step, cancel_reason(step->context->cancel));
}

/* What kernels say when they are stopped is not the cause: the reason they were stopped for is. */
void step_blame_canceller(Step *step) {
    if (!step->error || step->error->code != CODE_CANCELLED) return;
    Error *reason = cancel_reason(step->context->cancel);
    if (!reason || reason->derived) {
        error_free(reason);
        return;
    }
    error_free(step->error);
    step->error = reason;
}
