/* closure.h: Closure, a function with captured tensors that can be called after the step that made it has ended; and work that blocks.

   Datasets and iterators are pulled by threads of the blocking pool: straight-line code that may wait, unlike kernels. Their functions run on the
   compute pool as steps of their own. */
#pragma once
#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/kernel.h"

typedef struct Closure Closure;

/* From a serialised NameAttrList (copied) and what the function gets after its own arguments (references are kept). */
Closure *closure_new(KernelContext *k, Str name_attr_list, Tensor *const *captured, int captured_count);
Closure *closure_ref(Closure *c);
void closure_unref(Closure *c);
Str closure_name(const Closure *c); /* of its function; borrowed */

/* Function bodies with state of their own, so that random ops in them start anew; shared by the calls of one iterator. */
typedef struct ClosureScope ClosureScope;
ClosureScope *closure_scope_new(KernelContext *k);
void closure_scope_free(ClosureScope *s); /* NULL is allowed; no call may run in it any more */

/* Calls the function and waits. Only from a thread that may block. `cancel` (optional) ends it early, `scope` is optional. *rets is malloced,
 * one reference each. */
Error *closure_call(Closure *c, ClosureScope *scope, Cancel *cancel, Tensor *const *args, int arg_count, Tensor ***rets, int *ret_count) MUST_CHECK;

/* The same without waiting: done runs later, on a thread of the compute pool, and owns err and rets. Closure, scope and cancel must live until
 * then; args are kept. */
typedef void ClosureDone(void *arg, Error *err, Tensor **rets, int ret_count);
void closure_start(Closure *c, ClosureScope *scope, Cancel *cancel, Tensor *const *args, int arg_count, ClosureDone *done, void *arg);

/* Defers the kernel and runs fn on a thread that may block; fn ends with kernel_done. */
typedef void BlockingFn(KernelContext *k, void *arg);
void kernel_block(KernelContext *k, BlockingFn *fn, void *arg);
/* The pool for work that blocks, for background threads of resources; lives as long as the task. */
ThreadPool *kernel_blocking_pool(KernelContext *k);
