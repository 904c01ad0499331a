/* evaluate.c: runs one kernel by itself, without a step. */
#include "runtime/evaluate.h"

#include <stdlib.h>

#include "base/float_mode.h"
#include "base/memory.h"
#include "runtime/kernel.h"
#include "runtime/step_context.h"

/* Kernels with any of these look at more than their inputs. */
enum { NEEDS_STEP = KERNEL_DEFERS | KERNEL_REFS | KERNEL_SKIPS | KERNEL_RUNS_DEAD | KERNEL_PER_SESSION };

typedef struct Evaluator {
    const DeviceSet *devices;
    Device *cpu;
    SessionState *session;
} Evaluator;

static Error *run_kernel(const Evaluator *e, const Node *n, const KernelDef *def, KernelFn *run, Tensor **in, size_t limit_bytes, Tensor **out) {
    Cancel cancel;
    cancel_init(&cancel);
    StepContext step = {.cancel = &cancel, .session = e->session};
    Variable **refs = xcalloc((size_t)(n->input_count + n->output_count), sizeof *refs);
    KernelContext k = {.node = n, .input_count = n->input_count, .output_count = n->output_count, .in = in, .ref = refs, .out = out,
                       .out_ref = refs + n->input_count, .step = &step, .device = e->cpu, .output_limit = limit_bytes};
    void *state = def->state_size ? xcalloc(1, def->state_size) : NULL;
    Error *err = def->init ? def->init(n, state) : NULL;
    if (!err) {
        k.state = state;
        for (int i = 0; i < n->input_count; i++) tensor_ref(in[i]); /* they are not the last holder's: nobody may write on them */
        err = run(&k);
        for (int i = 0; i < n->input_count; i++) tensor_unref(in[i]);
        if (err)
            error_free(k.error);
        else
            err = k.error;
    }
    if (state && def->clear) def->clear(state);
    free(state);
    free(refs);
    cancel_clear(&cancel);
    return err;
}

static Error *evaluate(const void *arg, const Node *n, Tensor **in, size_t limit_bytes, Tensor **out) {
    const KernelDef *def = NULL;
    KernelFn *run = NULL;
    Error *err = kernel_find(n, &def, &run);
    if (err) return err;
    const Evaluator *e = arg;
    if (def->flags & NEEDS_STEP || !e->cpu) return error_unimplemented("%.*s needs a step", STR_ARG(n->op));
    FloatMode before = float_mode_flush();
    err = run_kernel(e, n, def, run, in, limit_bytes, out);
    float_mode_restore(before);
    for (int i = 0; err && i < n->output_count; i++) {
        tensor_unref(out[i]);
        out[i] = NULL;
    }
    return err;
}

static bool may_skip_outputs(const Node *n) {
    const KernelDef *def = kernel_of(n->op);
    return !def || def->flags & KERNEL_SKIPS;
}

/* Asks the kernel; inputs are not looked at. */
static bool is_elementwise(const Node *n) {
    const KernelDef *def = NULL;
    KernelFn *run = NULL;
    Error *err = kernel_find(n, &def, &run);
    void *state = !err && def->state_size ? xcalloc(1, def->state_size) : NULL;
    if (!err && def->init) err = def->init(n, state);
    ElementLoop loop = {0};
    KernelContext k = {.node = n, .state = state, .input_count = n->input_count, .output_count = n->output_count, .loop = &loop};
    if (!err) err = run(&k);
    if (state && def->clear) def->clear(state);
    free(state);
    bool yes = !err && (loop.unary || loop.binary || loop.ternary);
    error_free(err);
    return yes;
}

static FusionRole fusion_role(const void *arg, const Node *n) {
    const Evaluator *e = arg;
    const KernelDef *def = kernel_of(n->op);
    if (!def || (n->placed >= 0 && n->placed < e->devices->count && e->devices->devices[n->placed]->kind != &cpu_device_kind)) return FUSION_NONE;
    if (def->flags & KERNEL_TAIL) return kernel_has(n) ? FUSION_HEAD : FUSION_NONE;
    return def->flags & KERNEL_ELEMENTWISE && is_elementwise(n) ? FUSION_ELEMENTWISE : FUSION_NONE;
}

Error *graph_optimize_for(Graph *g, const PassOptions *options, const DeviceSet *devices, SessionState *session) {
    Evaluator e = {.devices = devices, .session = session};
    for (int i = 0; !e.cpu && i < devices->count; i++)
        if (devices->devices[i]->kind == &cpu_device_kind) e.cpu = devices->devices[i];
    PassRuntime runtime = {.evaluate = evaluate, .may_skip_outputs = may_skip_outputs, .fusion_role = fusion_role, .arg = &e};
    return graph_optimize(g, options, &runtime);
}
