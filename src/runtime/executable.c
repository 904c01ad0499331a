/* executable.c: owns what a registered graph needs to run. */
#include "runtime/executable.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/block_cache.h"
#include "base/clock.h"
#include "base/memory.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "placement/partition.h"
#include "runtime/cost_graph.h"
#include "runtime/evaluate.h"
#include "runtime/function_runtime.h"
#include "runtime/step_context.h"

/* The nodes on devices of one kind, compiled by it. */
typedef struct Part {
    const DeviceKind *kind;
    DeviceProgram *program;
} Part;

struct Executable {
    RefCount refs;
    Part *parts; /* one, unless the graph uses several kinds of device */
    int part_count;
    Graph *uncut; /* when there are several: the graph they were cut from, whose strings they share */
    FunctionLibrary *own_functions; /* NULL: somebody else's */
    const FunctionLibrary *functions;
    FunctionRuntime *function_runtime;
    SessionState *session;
    const DeviceSet *devices;
    _Atomic int64_t start_ns; /* what executable_run takes, by its usual runs; 0: not known */
};

enum { SOON_NS = 20000 };

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

/* ---- Parts ---- */

static Error *compile_part(Executable *e, const DeviceKind *kind, Graph *take) {
    Part *part = &e->parts[e->part_count];
    part->kind = kind;
    Error *err = kind->compile(take, e->devices, e->session, &part->program);
    if (!err) e->part_count++;
    return err;
}

/* Cuts the graph between kinds of device as a master cuts it between tasks. */
static Error *compile_each(Executable *e, const DeviceKind *const *kinds, const int *kind_of, int kind_count) {
    PartitionDevice *devices = xcalloc((size_t)e->devices->count, sizeof *devices);
    for (int i = 0; i < e->devices->count; i++)
        devices[i] = (PartitionDevice){str_of(e->devices->devices[i]->name), e->devices->devices[i]->incarnation, kind_of[i]};
    Graph **graphs = xcalloc((size_t)kind_count, sizeof *graphs);
    int edges = 0;
    PartitionOptions options = {.devices = devices, .device_count = e->devices->count, .task_count = kind_count, .edge_count = &edges};
    Error *err = graph_partition(e->uncut, &options, graphs);
    for (int i = 0; i < kind_count; i++) {
        if (graphs[i] && !err)
            err = compile_part(e, kinds[i], graphs[i]);
        else
            graph_free(graphs[i]);
    }
    free(graphs);
    free(devices);
    return err;
}

static Error *compile(Executable *e, Graph *take) {
    int count = e->devices->count, kind_count = 0;
    const DeviceKind **kinds = xcalloc((size_t)count, sizeof *kinds);
    int *kind_of = xcalloc((size_t)count, sizeof *kind_of);
    bool *used = xcalloc((size_t)count, sizeof *used); /* by kind */
    for (int i = 0; i < count; i++) {
        while (kind_of[i] < kind_count && kinds[kind_of[i]] != e->devices->devices[i]->kind) kind_of[i]++;
        if (kind_of[i] == kind_count) kinds[kind_count++] = e->devices->devices[i]->kind;
    }
    for (int i = 0; i < take->node_count; i++) used[kind_of[take->nodes[i]->placed]] = true;
    int used_count = 0, only = 0;
    for (int i = 0; i < kind_count; i++) {
        if (!used[i]) continue;
        used_count++;
        only = i;
    }
    e->parts = xcalloc((size_t)kind_count, sizeof *e->parts);
    if (used_count > 1) e->uncut = take;
    Error *err = used_count > 1 ? compile_each(e, kinds, kind_of, kind_count) : compile_part(e, kinds[only], take);
    free(used);
    free(kind_of);
    free(kinds);
    return err;
}

Error *executable_from_graph(Graph *take, const PassOptions *passes, const DeviceSet *devices, SessionState *session, Executable **out) {
    Executable *e = xcalloc(1, sizeof *e);
    refcount_init(&e->refs);
    e->functions = take->functions;
    e->devices = devices;
    e->session = session_state_ref(session);
    Error *err = graph_optimize_for(take, passes, devices, session);
    if (err)
        graph_free(take);
    else
        err = compile(e, take);
    if (!err && e->functions) e->function_runtime = function_runtime_new(e->functions, passes, devices, session);
    if (err)
        executable_unref(e);
    else
        *out = e;
    return err;
}

static Error *watch(Graph *g, const DebugWatch *watches, int watch_count, const DeviceSet *devices) {
    Str *names = xcalloc((size_t)devices->count, sizeof *names);
    for (int i = 0; i < devices->count; i++) names[i] = str_of(devices->devices[i]->name);
    Error *err = graph_watch(g, watches, watch_count, names);
    free(names);
    return err;
}

Error *executable_new(Str graph_def, const PassOptions *passes, const DeviceSet *devices, SessionState *session, Executable **out) {
    return executable_new_watched(graph_def, NULL, 0, passes, devices, session, out);
}

Error *executable_new_watched(Str graph_def, const DebugWatch *watches, int watch_count, const PassOptions *passes, const DeviceSet *devices, SessionState *session, Executable **out) {
    Graph *g = graph_new();
    FunctionLibrary *lib = function_library_new();
    g->functions = lib;
    Error *err = graph_import(g, graph_def);
    if (!err) err = place_by_name(g, devices);
    if (!err && watch_count) err = watch(g, watches, watch_count, devices);
    if (err) {
        graph_free(g);
        function_library_free(lib);
        return err;
    }
    err = executable_from_graph(g, watch_count ? &(PassOptions){.disabled = PASS_ALL} : passes, devices, session, out);
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
    for (int i = 0; i < e->part_count; i++) e->parts[i].kind->free(e->parts[i].program);
    free(e->parts);
    graph_free(e->uncut);
    function_library_free(e->own_functions);
    session_state_unref(e->session);
    free(e);
}

int executable_node_count(const Executable *e) {
    int count = 0;
    for (int i = 0; i < e->part_count; i++) count += e->parts[i].kind->graph(e->parts[i].program)->node_count;
    return count;
}

void executable_graph_def(const Executable *e, StrBuf *out) {
    Str *names = xcalloc((size_t)e->devices->count, sizeof *names);
    for (int i = 0; i < e->devices->count; i++) names[i] = str_of(e->devices->devices[i]->name);
    /* Messages may be joined end to end: nodes are a repeated field. */
    for (int i = 0; i < e->part_count; i++) graph_export(e->parts[i].kind->graph(e->parts[i].program), &(GraphExport){.device_names = names}, out);
    free(names);
}

void executable_cost_graph(const Executable *e, const StepStats *stats, StrBuf *out) {
    Str *names = xcalloc((size_t)e->devices->count, sizeof *names);
    for (int i = 0; i < e->devices->count; i++) names[i] = str_of(e->devices->devices[i]->name);
    size_t count;
    const NodeTiming *timings = step_stats_timings(stats, &count);
    int64_t next_id = 0;
    for (int i = 0; i < e->part_count; i++) cost_graph_encode(e->parts[i].kind->graph(e->parts[i].program), names, timings, count, &next_id, out);
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
    _Atomic int parts_left;
    Error *_Atomic error; /* the first one */
} Run;

/* A part that fails aborts the rendezvous, which ends the others. */
static void part_done(void *arg, Error *err) {
    Run *run = arg;
    Error *none = NULL;
    if (err && !atomic_compare_exchange_strong(&run->error, &none, err)) error_free(err);
    if (atomic_fetch_sub(&run->parts_left, 1) != 1) return;
    err = atomic_load(&run->error);
    step_context_clear(&run->context);
    StepDone *done = run->done;
    void *done_arg = run->arg;
    executable_unref(run->executable);
    block_free(run, sizeof *run);
    done(done_arg, err);
}

bool executable_starts_soon(const Executable *e) {
    int64_t ns = atomic_load_explicit(&e->start_ns, memory_order_relaxed);
    return ns > 0 && ns < SOON_NS;
}

/* Slowly up, at once down: a thread that had to wait for its core says nothing. */
static void note_start(Executable *e, int64_t took) {
    int64_t before = atomic_load_explicit(&e->start_ns, memory_order_relaxed);
    atomic_store_explicit(&e->start_ns, !before || took < before ? took : before + (took - before) / 8, memory_order_relaxed);
}

void executable_run(Executable *e, const RunOptions *options, StepDone *done, void *arg) {
    Run *run = block_zeroed(sizeof *run);
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
        .pool = options->pool,
        .stats = options->stats,
    };
    int count = e->part_count; /* the last part to end frees the run */
    int64_t began = clock_mono_ns();
    executable_ref(e); /* the run may be over soon */
    atomic_init(&run->parts_left, count);
    for (int i = 0; i < count; i++) e->parts[i].kind->run(e->parts[i].program, &run->context, NULL, part_done, run);
    note_start(e, clock_mono_ns() - began);
    executable_unref(e);
}
