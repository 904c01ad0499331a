/* closure.c: functions called outside of their step. */
#include "runtime/closure.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread.h"
#include "proto/wire.h"
#include "runtime/executable.h"
#include "runtime/function_runtime.h"
#include "runtime/step_context.h"

enum { NAME_ATTR_LIST_NAME = 1 };

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

Str closure_name(const Closure *c) {
    Str name = STR("");
    WireReader r = wire_reader((Str){c->function, c->function_len});
    while (wire_next(&r))
        if (r.field == NAME_ATTR_LIST_NAME && r.type == WIRE_BYTES) name = r.bytes;
    return name;
}

/* ---- Scopes ---- */

struct ClosureScope {
    Executable *executable; /* a reference */
    FunctionRuntime *functions;
};

ClosureScope *closure_scope_new(KernelContext *k) {
    ClosureScope *s = xcalloc(1, sizeof *s);
    s->executable = executable_ref(k->step->executable);
    if (k->step->functions) s->functions = function_runtime_new(k->step->functions, function_runtime_passes(k->step->function_runtime), session_devices(k->step->session), k->step->session);
    return s;
}

void closure_scope_free(ClosureScope *s) {
    if (!s) return;
    function_runtime_free(s->functions);
    executable_unref(s->executable);
    free(s);
}

/* ---- Calls ---- */

typedef struct Call {
    Closure *closure;
    Cancel own, *outer; /* own is what the step sees */
    CancelWatch watch;
    bool watching;
    StepContext context;
    Error *err;
    Tensor **rets;
    int ret_count;
    ClosureDone *done;
    void *arg;
} Call;

/* After the step: waits for a watch that is just being told, so it must not run inside of one. */
static void finish(void *arg) {
    Call *call = arg;
    if (call->watching) cancel_unwatch(call->outer, &call->watch);
    step_context_clear(&call->context);
    cancel_clear(&call->own);
    call->done(call->arg, call->err, call->rets, call->ret_count);
    free(call);
}

static void called(void *arg, Error *err, Tensor **rets, int ret_count) {
    Call *call = arg;
    call->err = err;
    if (!err) {
        call->rets = xcalloc((size_t)ret_count + 1, sizeof *call->rets);
        for (; call->ret_count < ret_count; call->ret_count++) {
            call->rets[call->ret_count] = rets[call->ret_count];
            rets[call->ret_count] = NULL;
        }
    }
    threadpool_post(call->closure->pool, finish, call);
}

static void pass_on(void *arg) {
    cancel_now(arg, error_derived(error_new(CODE_CANCELLED, "The call was cancelled")));
}

void closure_start(Closure *c, ClosureScope *scope, Cancel *cancel, Tensor *const *args, int arg_count, ClosureDone *done, void *arg) {
    int count = arg_count + c->captured_count;
    Tensor **all = xcalloc((size_t)count + 1, sizeof *all);
    for (int i = 0; i < count; i++) all[i] = i < arg_count ? args[i] : c->captured[i - arg_count];
    Call *call = xcalloc(1, sizeof *call);
    call->closure = c;
    call->outer = cancel;
    call->done = done;
    call->arg = arg;
    cancel_init(&call->own);
    call->context = executable_context(c->executable);
    if (scope && scope->executable == c->executable) call->context.function_runtime = scope->functions;
    call->context.cancel = &call->own;
    call->context.pool = c->pool;
    call->context.blocking = c->blocking;
    call->watching = cancel && cancel_watch(cancel, &call->watch, pass_on, &call->own);
    if (cancel && !call->watching) {
        call->err = cancel_reason(cancel);
        threadpool_post(c->pool, finish, call);
    } else {
        function_run_in(&call->context, c->device, (Str){c->function, c->function_len}, all, count, called, call);
    }
    free(all);
}

typedef struct Waiter {
    Latch latch;
    Error *err;
    Tensor **rets;
    int ret_count;
} Waiter;

static void wake(void *arg, Error *err, Tensor **rets, int ret_count) {
    Waiter *w = arg;
    w->err = err;
    w->rets = rets;
    w->ret_count = ret_count;
    latch_done(&w->latch);
}

Error *closure_call(Closure *c, ClosureScope *scope, Cancel *cancel, Tensor *const *args, int arg_count, Tensor ***rets, int *ret_count) {
    Waiter w = {0};
    latch_init(&w.latch, 1);
    closure_start(c, scope, cancel, args, arg_count, wake, &w);
    latch_wait(&w.latch);
    latch_clear(&w.latch);
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
