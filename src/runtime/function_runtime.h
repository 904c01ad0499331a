/* function_runtime.h: runs functions of a graph's library: bodies compiled to plans on first use. */
#pragma once
#include "base/error.h"
#include "graph/function.h"
#include "passes/pass.h"
#include "runtime/kernel.h"
#include "runtime/step.h"

typedef struct FunctionRuntime FunctionRuntime;

/* Thread-safe. The library must outlive it and must not grow while it is used. Bodies are optimized as `passes` say, which are copied. */
FunctionRuntime *function_runtime_new(const FunctionLibrary *lib, const PassOptions *passes, const DeviceSet *devices, SessionState *session);
const PassOptions *function_runtime_passes(const FunctionRuntime *r);
void function_runtime_free(FunctionRuntime *r);

typedef void FunctionDone(void *arg, Error *err, Tensor **rets, int ret_count); /* owns err; may take rets by setting them to NULL */

/* The same outside of a kernel: on `device`, as part of the step that `context` describes, which must live until done. */
void function_run_in(StepContext *context, Device *device, Str name_attr_list, Tensor *const *args, int arg_count, FunctionDone *done, void *arg);

/* Runs the function that a serialised NameAttrList names, on the kernel's device, as part of its step. args are kept until
 * done, which runs on a pool thread, never inside this call. */
void function_run(KernelContext *k, Str name_attr_list, Tensor **args, int arg_count, FunctionDone *done, void *arg);
/* Internal when `name`, which may leave parts out, means a device of this task that it does not have. */
Error *function_check_device(KernelContext *k, Str name) MUST_CHECK;
