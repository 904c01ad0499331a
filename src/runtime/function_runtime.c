/* function_runtime.c: function bodies as plans, cached by name, attributes and device; runs are steps within a step. */
#include "runtime/function_runtime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "placement/device_name.h"
#include "placement/symbolic_gradient.h"
#include "runtime/evaluate.h"
#include "runtime/step_context.h"

enum { MAX_CALLS = 2000 }; /* under way in one step; more is a function that calls itself without end */

typedef struct Compiled {
    char *key;
    size_t key_len;
    const DeviceKind *kind;
    DeviceProgram *program;
    int arg_count, ret_count;
} Compiled;

struct FunctionRuntime {
    const FunctionLibrary *lib;
    PassOptions passes;
    const DeviceSet *devices;
    SessionState *session;
    pthread_mutex_t mutex; /* guards compiled */
    StrMap compiled;
};

FunctionRuntime *function_runtime_new(const FunctionLibrary *lib, const PassOptions *passes, const DeviceSet *devices, SessionState *session) {
    FunctionRuntime *r = xcalloc(1, sizeof *r);
    r->lib = lib;
    r->passes = *passes;
    r->devices = devices;
    r->session = session;
    pthread_mutex_init(&r->mutex, NULL);
    return r;
}

const PassOptions *function_runtime_passes(const FunctionRuntime *r) {
    return &r->passes;
}

void function_runtime_free(FunctionRuntime *r) {
    if (!r) return;
    size_t at = 0;
    void *value;
    while (strmap_next(&r->compiled, &at, NULL, &value)) {
        Compiled *c = value;
        c->kind->free(c->program);
        free(c->key);
        free(c);
    }
    strmap_clear(&r->compiled);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

/* Results become _Retval nodes; what neither a result nor an effect needs is dropped. */
static Error *add_retvals(FunctionBody *body) {
    Graph *g = body->graph;
    for (int i = 0; i < body->ret_count; i++) {
        Node *n;
        Str name = graph_unique_name(g, STR("_retval"));
        Error *err = graph_add_node(g, name, STR("_Retval"), STR(""), &n);
        if (err) return err;
        Output ret = body->rets[i];
        DataType type = ret.node->info && ret.index < ret.node->output_count ? dtype_base(ret.node->output_types[ret.index]) : DT_FLOAT;
        node_add_attr(g, n, STR("T"), attr_make_type(g->arena, type));
        node_add_attr(g, n, STR("index"), attr_make_int(g->arena, i));
        node_set_inputs(g, n, &ret, 1);
        err = node_resolve(g, n);
        if (err) return err;
    }
    return NULL;
}

static void mark(Node *n, bool *keep, Node **stack, int *depth) {
    if (keep[n->id]) return;
    keep[n->id] = true;
    stack[(*depth)++] = n;
}

static void prune_body(FunctionBody *body) {
    Graph *g = body->graph;
    bool *keep = xcalloc((size_t)g->node_count, sizeof *keep);
    Node **stack = xcalloc((size_t)g->node_count, sizeof(Node *));
    int depth = 0;
    for (int i = 0; i < g->node_count; i++)
        if (node_is(g->nodes[i], "_Retval") || (node_is_stateful(g->nodes[i]) && !node_is(g->nodes[i], "_Arg"))) mark(g->nodes[i], keep, stack, &depth);
    for (int i = 0; i < body->control_ret_count; i++) mark(body->control_rets[i], keep, stack, &depth);
    while (depth) {
        Node *n = stack[--depth];
        for (int i = 0; i < n->input_count; i++) mark(n->inputs[i].node, keep, stack, &depth);
        for (int i = 0; i < n->control_count; i++) mark(n->controls[i], keep, stack, &depth);
    }
    int count = 0;
    for (int i = 0; i < g->node_count; i++) {
        if (!keep[i]) {
            strmap_remove(&g->by_name, g->nodes[i]->name);
            continue;
        }
        g->nodes[i]->id = count;
        g->nodes[count++] = g->nodes[i];
    }
    g->node_count = count;
    free(stack);
    free(keep);
}

/* "SymbolicGradient", with the attribute f, stands for the gradient of f. */
static Error *make_body(const FunctionLibrary *lib, Str name_attr_list, Str device_type, FunctionBody **out) {
    Str name = func_name(name_attr_list), function;
    const Function *f = function_find(lib, name);
    int attr_count = func_attrs(name_attr_list, NULL, 0);
    Attr *attrs = xcalloc((size_t)attr_count, sizeof *attrs);
    func_attrs(name_attr_list, attrs, attr_count);
    Error *err = NULL;
    bool made = false;
    for (int i = 0; !f && str_is(name, "SymbolicGradient") && !made && i < attr_count; i++) {
        made = str_is(attrs[i].name, "f") && attr_func(attrs[i].value, &function);
        if (made) err = symbolic_gradient_body(lib, function, 0, out);
    }
    if (f)
        err = function_instantiate(lib, function_implementation(lib, f, device_type), attrs, attr_count, out);
    else if (!made)
        err = error_not_found("Function %.*s is not in the library", STR_ARG(name));
    free(attrs);
    return err;
}

static Error *compile(FunctionRuntime *r, Str name_attr_list, int device, Compiled *c) {
    FunctionBody *body = NULL;
    Error *err = make_body(r->lib, name_attr_list, str_of(r->devices->devices[device]->kind->type), &body);
    if (!err) err = add_retvals(body);
    if (!err) {
        prune_body(body);
        for (int i = 0; i < body->graph->node_count; i++) body->graph->nodes[i]->placed = device;
        c->arg_count = body->arg_count;
        c->ret_count = body->ret_count;
        Graph *graph = body->graph;
        body->graph = NULL;
        graph->is_function_body = true;
        c->kind = r->devices->devices[device]->kind;
        err = graph_optimize_for(graph, &r->passes, r->devices, r->session);
        if (err)
            graph_free(graph);
        else
            err = c->kind->compile(graph, r->devices, r->session, &c->program);
    }
    function_body_free(body);
    return err;
}

static Error *find_compiled(FunctionRuntime *r, Str name_attr_list, Device *device, const Compiled **out) {
    int index = 0;
    while (index + 1 < r->devices->count && r->devices->devices[index] != device) index++;
    StrBuf key = {0};
    strbuf_addf(&key, "%d;", index);
    strbuf_add(&key, name_attr_list);
    Error *err = NULL;
    pthread_mutex_lock(&r->mutex);
    Compiled *c = strmap_get(&r->compiled, strbuf_str(&key));
    if (!c) {
        c = xcalloc(1, sizeof *c);
        err = compile(r, name_attr_list, index, c);
        if (err) {
            free(c);
        } else {
            c->key_len = key.len;
            c->key = strbuf_detach(&key);
            strmap_put(&r->compiled, (Str){c->key, c->key_len}, c);
        }
    }
    pthread_mutex_unlock(&r->mutex);
    strbuf_clear(&key);
    if (!err) *out = c;
    return err;
}

/* One run of a function. */
typedef struct Run {
    StepContext *context;
    const Compiled *compiled;
    Tensor **args, **rets;
    int arg_count, ret_count;
    FunctionDone *done;
    void *arg;
    Error *early;
} Run;

static void run_done(void *arg, Error *err) {
    Run *run = arg;
    for (int i = 0; !err && i < run->ret_count; i++)
        if (!run->rets[i]) err = error_invalid("Retval[%d] does not have value", i);
    atomic_fetch_sub(&run->context->function_calls, 1);
    run->done(run->arg, err, run->rets, run->ret_count);
    for (int i = 0; i < run->arg_count; i++) tensor_unref(run->args[i]);
    for (int i = 0; i < run->ret_count; i++) tensor_unref(run->rets[i]);
    free(run->args);
    free(run->rets);
    free(run);
}

static void run_start(void *arg) {
    Run *run = arg;
    if (run->early) {
        run_done(run, run->early);
        return;
    }
    StepIo io = {run->args, run->arg_count, run->rets, run->ret_count};
    run->compiled->kind->run(run->compiled->program, run->context, &io, run_done, run);
}

void function_run_in(StepContext *context, Device *device, Str name_attr_list, Tensor *const *args, int arg_count, FunctionDone *done, void *arg) {
    Run *run = xcalloc(1, sizeof *run);
    run->context = context;
    run->done = done;
    run->arg = arg;
    FunctionRuntime *r = context->function_runtime;
    run->early = r ? find_compiled(r, name_attr_list, device, &run->compiled)
                   : error_internal("Function %.*s cannot be run here", STR_ARG(func_name(name_attr_list)));
    if (!run->early && run->compiled->arg_count != arg_count)
        run->early = error_invalid("Function %.*s takes %d arguments, got %d", STR_ARG(func_name(name_attr_list)), run->compiled->arg_count, arg_count);
    if (atomic_fetch_add(&context->function_calls, 1) >= MAX_CALLS && !run->early)
        run->early = error_new(CODE_RESOURCE_EXHAUSTED, "%d function calls are under way in one step when %.*s is called: is there a recursion that does not end?",
                               MAX_CALLS, STR_ARG(func_name(name_attr_list)));
    run->args = xcalloc((size_t)arg_count, sizeof(Tensor *));
    for (run->arg_count = 0; run->arg_count < arg_count; run->arg_count++) run->args[run->arg_count] = tensor_ref(args[run->arg_count]);
    run->ret_count = run->early ? 0 : run->compiled->ret_count;
    run->rets = xcalloc((size_t)run->ret_count, sizeof(Tensor *));
    threadpool_post(context->pool, run_start, run);
}

void function_run(KernelContext *k, Str name_attr_list, Tensor **args, int arg_count, FunctionDone *done, void *arg) {
    function_run_in(k->step, k->device, name_attr_list, args, arg_count, done, arg);
}

/* Whether one of the tasks is that of the device. */
static Error *check_task(Str tasks, const DeviceName *wanted) {
    Arena *arena = arena_new();
    Str text = device_name_text(arena, wanted), task = device_task_text(text);
    int count = attr_list_strings(tasks, NULL, 0);
    Str *names = arena_calloc(arena, (size_t)(count > 0 ? count : 0) + 1, sizeof *names);
    attr_list_strings(tasks, names, count);
    StrBuf list = {0};
    bool found = false;
    for (int i = 0; i < count; i++) {
        found |= str_eq(names[i], task);
        strbuf_addf(&list, "%s%.*s", i ? ", " : "", STR_ARG(names[i]));
    }
    Error *err = found ? NULL : error_invalid("Could not find worker with target: %.*s Available workers: %s", STR_ARG(text), list.len ? list.ptr : "");
    strbuf_clear(&list);
    arena_free(arena);
    return err;
}

Error *function_check_device(KernelContext *k, Str name) {
    DeviceName wanted, own, here;
    Error *err = device_name_parse(name, &wanted);
    if (err) {
        error_free(err);
        return error_invalid("Could not parse %.*s into a device specification.", STR_ARG(name));
    }
    err = device_name_parse(str_of(k->device->name), &own);
    if (err) return err;
    device_name_fill(&wanted, &own);
    Str tasks;
    bool in_cluster = node_attr(k->node, "_tasks", &tasks);
    /* A function gives the same here as on another task. */
    if (!str_eq(wanted.job, own.job) || wanted.replica != own.replica || wanted.task != own.task) return in_cluster ? check_task(tasks, &wanted) : NULL;
    const DeviceSet *devices = session_devices(k->step->session);
    for (int i = 0; i < devices->count; i++) {
        err = device_name_parse(str_of(devices->devices[i]->name), &here);
        if (!err && device_name_matches(&wanted, &here)) return NULL;
        error_free(err);
    }
    Arena *arena = arena_new();
    Str text = device_name_text(arena, &wanted);
    err = in_cluster ? error_invalid("%.*s unknown device.", STR_ARG(text))
                     : error_internal("Currently don't support instantiating functions on device: %.*s", STR_ARG(text));
    arena_free(arena);
    return err;
}
