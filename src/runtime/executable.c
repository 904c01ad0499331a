/* executable.c: owns what a registered graph needs to run. */
#include "runtime/executable.h"

#include <stdlib.h>

#include "base/memory.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "runtime/function_runtime.h"
#include "runtime/step_context.h"

struct Executable {
    RefCount refs;
    Plan *plan;
    FunctionLibrary *own_functions; /* NULL: somebody else's */
    const FunctionLibrary *functions;
    FunctionRuntime *function_runtime;
    SessionState *session;
    const DeviceSet *devices;
};

static Error *place_by_name(Graph *g, const DeviceSet *devices) {
    for (int i = 0; i < g->node_count; i++) {
        Node *n = g->nodes[i];
        n->placed = n->device.len ? -1 : 0;
        for (int j = 0; n->placed < 0 && j < devices->count; j++)
            if (str_is(n->device, devices->devices[j]->name)) n->placed = j;
        if (n->placed < 0)
            return error_invalid("Node {{node %.*s}} is assigned to %.*s, which is not a device of this task", STR_ARG(n->name), STR_ARG(n->device));
    }
    return NULL;
}

Error *executable_from_graph(Graph *take, const DeviceSet *devices, SessionState *session, Executable **out) {
    Executable *e = xcalloc(1, sizeof *e);
    refcount_init(&e->refs);
    e->functions = take->functions;
    e->devices = devices;
    e->session = session_state_ref(session);
    Error *err = plan_build(take, devices, session, &e->plan);
    if (!err && e->functions) e->function_runtime = function_runtime_new(e->functions, devices, session);
    if (err)
        executable_unref(e);
    else
        *out = e;
    return err;
}

Error *executable_new(Str graph_def, const DeviceSet *devices, SessionState *session, Executable **out) {
    Graph *g = graph_new();
    FunctionLibrary *lib = function_library_new();
    g->functions = lib;
    Error *err = graph_import(g, graph_def);
    if (!err) err = place_by_name(g, devices);
    if (err) {
        graph_free(g);
        function_library_free(lib);
        return err;
    }
    err = executable_from_graph(g, devices, session, out);
    if (err)
        function_library_free(lib);
    else
        (*out)->own_functions = lib;
    return err;
}

Executable *executable_ref(Executable *e) {
    refcount_inc(&e->refs);
    return e;
}

void executable_unref(Executable *e) {
    if (!e || !refcount_dec(&e->refs)) return;
    function_runtime_free(e->function_runtime);
    plan_free(e->plan);
    function_library_free(e->own_functions);
    session_state_unref(e->session);
    free(e);
}

int executable_node_count(const Executable *e) {
    return e->plan->node_count;
}

void executable_graph_def(const Executable *e, StrBuf *out) {
    Str *names = xcalloc((size_t)e->devices->count, sizeof *names);
    for (int i = 0; i < e->devices->count; i++) names[i] = str_of(e->devices->devices[i]->name);
    graph_export(e->plan->graph, &(GraphExport){.device_names = names}, out);
    free(names);
}

StepContext executable_context(Executable *e) {
    return (StepContext){.session = e->session, .functions = e->functions, .function_runtime = e->function_runtime, .executable = e};
}

/* One run: the context its kernels share. */
typedef struct Run {
    Executable *executable;
    StepContext context;
    StepDone *done;
    void *arg;
} Run;

static void run_done(void *arg, Error *err) {
    Run *run = arg;
    resource_manager_free(run->context.step_resources);
    StepDone *done = run->done;
    void *done_arg = run->arg;
    executable_unref(run->executable);
    free(run);
    done(done_arg, err);
}

void executable_run(Executable *e, const RunOptions *options, StepDone *done, void *arg) {
    Run *run = xcalloc(1, sizeof *run);
    run->executable = executable_ref(e);
    run->done = done;
    run->arg = arg;
    run->context = (StepContext){
        .step_id = options->step_id,
        .rendezvous = options->rendezvous,
        .cancel = options->cancel,
        .session = e->session,
        .functions = e->functions,
        .function_runtime = e->function_runtime,
        .executable = e,
        .blocking = options->blocking,
        .step_resources = resource_manager_new(STR("__per_step")),
        .pool = options->pool,
        .stats = options->stats,
    };
    step_start(e->plan, &run->context, NULL, run_done, run);
}
