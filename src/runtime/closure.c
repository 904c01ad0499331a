/* closure.c: functions called outside of their step. */
#include "runtime/closure.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread.h"
#include "runtime/executable.h"
#include "runtime/function_runtime.h"
#include "runtime/step_context.h"

struct Closure {
    RefCount refs;
    Executable *executable; /* a reference: it owns the function */
    Device *device;
    ThreadPool *pool, *blocking;
    char *function;
    size_t function_len;
    Tensor **captured;
    int captured_count;
};

Closure *closure_new(KernelContext *k, Str name_attr_list, Tensor *const *captured, int captured_count) {
    Closure *c = xcalloc(1, sizeof *c);
    refcount_init(&c->refs);
    c->executable = executable_ref(k->step->executable);
    c->device = k->device;
    c->pool = k->step->pool;
    c->blocking = k->step->blocking;
    c->function = str_dup(name_attr_list);
    c->function_len = name_attr_list.len;
    c->captured = xcalloc((size_t)captured_count, sizeof *c->captured);
    for (; c->captured_count < captured_count; c->captured_count++) c->captured[c->captured_count] = tensor_ref(captured[c->captured_count]);
    return c;
}

Closure *closure_ref(Closure *c) {
    refcount_inc(&c->refs);
    return c;
}

void closure_unref(Closure *c) {
    if (!c || !refcount_dec(&c->refs)) return;
    for (int i = 0; i < c->captured_count; i++) tensor_unref(c->captured[i]);
    free(c->captured);
    free(c->function);
    executable_unref(c->executable);
    free(c);
}

typedef struct Waiter {
    Latch latch;
    Error *err;
    Tensor **rets;
    int ret_count;
} Waiter;

static void called(void *arg, Error *err, Tensor **rets, int ret_count) {
    Waiter *w = arg;
    w->err = err;
    if (!err) {
        w->rets = xcalloc((size_t)ret_count, sizeof *w->rets);
        for (; w->ret_count < ret_count; w->ret_count++) {
            w->rets[w->ret_count] = rets[w->ret_count];
            rets[w->ret_count] = NULL;
        }
    }
    latch_done(&w->latch);
}

static void pass_on(void *arg) {
    cancel_now(arg, error_derived(error_new(CODE_CANCELLED, "The call was cancelled")));
}

Error *closure_call(Closure *c, Cancel *cancel, Tensor *const *args, int arg_count, Tensor ***rets, int *ret_count) {
    int count = arg_count + c->captured_count;
    Tensor **all = xcalloc((size_t)count, sizeof *all);
    for (int i = 0; i < count; i++) all[i] = i < arg_count ? args[i] : c->captured[i - arg_count];
    Cancel own;
    CancelWatch watch = {0};
    cancel_init(&own);
    StepContext context = executable_context(c->executable);
    context.cancel = &own;
    context.pool = c->pool;
    context.blocking = c->blocking;
    context.step_resources = resource_manager_new(STR("__per_step"));
    Waiter w = {0};
    latch_init(&w.latch, 1);
    bool watching = cancel && cancel_watch(cancel, &watch, pass_on, &own);
    if (cancel && !watching) {
        w.err = cancel_reason(cancel);
    } else {
        function_run_in(&context, c->device, (Str){c->function, c->function_len}, all, count, called, &w);
        latch_wait(&w.latch);
    }
    if (watching) cancel_unwatch(cancel, &watch);
    latch_clear(&w.latch);
    resource_manager_free(context.step_resources);
    cancel_clear(&own);
    free(all);
    if (w.err) return w.err;
    *rets = w.rets;
    *ret_count = w.ret_count;
    return NULL;
}

/* ---- Kernels that block ---- */

typedef struct Blocking {
    KernelContext *k;
    BlockingFn *fn;
    void *arg;
} Blocking;

static void run_blocking(void *arg) {
    Blocking b = *(Blocking *)arg;
    free(arg);
    b.fn(b.k, b.arg);
}

void kernel_block(KernelContext *k, BlockingFn *fn, void *arg) {
    Blocking *b = xmalloc(sizeof *b);
    ThreadPool *pool = k->step->blocking;
    *b = (Blocking){kernel_defer(k), fn, arg};
    threadpool_post(pool, run_blocking, b);
}

ThreadPool *kernel_blocking_pool(KernelContext *k) {
    return k->step->blocking;
}
