/* direct_session.c: prune, compile and run in one process; compiled signatures are kept. */
#include "runtime/direct_session.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "base/thread.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "placement/lower.h"
#include "runtime/executable.h"
#include "runtime/step.h"

typedef struct Compiled {
    char *key;
    size_t key_len;
    Executable *executable;
} Compiled;

struct DirectSession {
    Graph *source, *graph;
    FunctionLibrary *functions;
    Device *device;
    DeviceSet devices;
    SessionState *state;
    PassOptions passes;
    ThreadPool *pool, *blocking;
    StepStats *stats; /* (optional) */
    _Atomic int64_t next_step;
    pthread_mutex_t mutex; /* guards compiled */
    StrMap compiled;
};

Error *direct_session_new(Str graph_def, int threads, DirectSession **out) {
    DirectSession *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    s->device = cpu_device_new(STR("/job:localhost/replica:0/task:0"), 0, STR("localhost"));
    s->devices = (DeviceSet){&s->device, 1};
    s->state = session_state_new(&s->devices, STR(""), false);
    s->pool = threadpool_new("compute", threads);
    threadpool_poll(s->pool, STEP_POLL_NS);
    s->blocking = threadpool_new("blocking", 256);
    s->functions = function_library_new();
    s->source = graph_new();
    s->source->functions = s->functions;
    Error *err = graph_import(s->source, graph_def);
    if (!err) err = graph_lower(s->source, &s->graph);
    if (err)
        direct_session_free(s);
    else
        *out = s;
    return err;
}

void direct_session_set_passes(DirectSession *s, const PassOptions *passes) {
    s->passes = *passes;
}

void direct_session_trace(DirectSession *s, StepStats *stats) {
    s->stats = stats;
}

void direct_session_free(DirectSession *s) {
    if (!s) return;
    session_state_close(s->state);
    resource_clear_all(s->device->resources); /* what has threads of its own ends while there are pools */
    threadpool_free(s->blocking);
    threadpool_free(s->pool);
    size_t at = 0;
    void *value;
    while (strmap_next(&s->compiled, &at, NULL, &value)) {
        Compiled *c = value;
        executable_unref(c->executable);
        free(c->key);
        free(c);
    }
    strmap_clear(&s->compiled);
    session_state_unref(s->state);
    graph_free(s->graph);
    graph_free(s->source);
    function_library_free(s->functions);
    device_free(s->device);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static ClientDevice client_of(const DirectSession *s) {
    return (ClientDevice){str_of(s->device->name), s->device->incarnation, 0};
}

static void signature_key(const RunSignature *sig, StrBuf *key) {
    for (int i = 0; i < sig->feed_count; i++) strbuf_addf(key, "<%.*s", STR_ARG(sig->feeds[i]));
    for (int i = 0; i < sig->fetch_count; i++) strbuf_addf(key, ">%.*s", STR_ARG(sig->fetches[i]));
    for (int i = 0; i < sig->target_count; i++) strbuf_addf(key, "!%.*s", STR_ARG(sig->targets[i]));
}

static Error *compile(DirectSession *s, const RunSignature *sig, Executable **out) {
    ClientDevice client = client_of(s);
    Graph *pruned;
    Error *err = graph_prune(s->graph, sig, &client, &pruned);
    if (err) return err;
    for (int i = 0; i < pruned->node_count; i++) pruned->nodes[i]->placed = 0;
    return executable_from_graph(pruned, &s->passes, &s->devices, s->state, out);
}

static Error *find_executable(DirectSession *s, const RunSignature *sig, Executable **out) {
    StrBuf key = {0};
    signature_key(sig, &key);
    Error *err = NULL;
    pthread_mutex_lock(&s->mutex);
    Compiled *c = strmap_get(&s->compiled, strbuf_str(&key));
    if (!c) {
        Executable *e;
        err = compile(s, sig, &e);
        if (!err) {
            c = xcalloc(1, sizeof *c);
            *c = (Compiled){.key_len = key.len, .executable = e};
            c->key = strbuf_detach(&key);
            strmap_put(&s->compiled, (Str){c->key, c->key_len}, c);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    strbuf_clear(&key);
    if (!err) *out = c->executable;
    return err;
}

typedef struct Waiter {
    Latch done;
    Error *err;
} Waiter;

static void step_ended(void *arg, Error *err) {
    Waiter *w = arg;
    w->err = err;
    latch_done(&w->done);
}

typedef struct Fetched {
    Error *err;
    Tensor *value;
    bool is_dead, came;
} Fetched;

static void fetched(void *arg, Error *err, Tensor *value, bool is_dead) {
    *(Fetched *)arg = (Fetched){err, value, is_dead, true};
}

static Error *take_fetches(DirectSession *s, const RunSignature *sig, Rendezvous *r, Tensor **fetches) {
    ClientDevice client = client_of(s);
    Error *err = NULL;
    int taken = 0;
    for (; !err && taken < sig->fetch_count; taken++) {
        char *key = client_key(&client, sig->fetches[taken]);
        Fetched f = {0};
        rendezvous_recv(r, str_of(key), fetched, &f); /* the step is over: it is there or never comes */
        if (!f.came) rendezvous_withdraw(r, str_of(key), &f);
        if (f.err || f.is_dead || !f.came)
            err = f.err ? f.err : error_invalid("Retval[%d] does not have value", taken);
        fetches[taken] = f.value;
        free(key);
    }
    for (int i = 0; err && i < taken; i++) tensor_unref(fetches[i]);
    return err;
}

Error *direct_session_run(DirectSession *s, const RunSignature *sig, Tensor *const *feeds, Tensor **fetches, int64_t timeout_ms) {
    Executable *e;
    Error *err = find_executable(s, sig, &e);
    if (err) return err;
    int64_t step_id = atomic_fetch_add(&s->next_step, 1) + 1;
    Rendezvous *r = rendezvous_new(step_id, NULL, NULL);
    ClientDevice client = client_of(s);
    for (int i = 0; !err && i < sig->feed_count; i++) {
        char *key = client_key(&client, sig->feeds[i]);
        err = rendezvous_send(r, str_of(key), feeds[i], false);
        free(key);
    }
    Cancel cancel;
    cancel_init(&cancel);
    Waiter w = {.err = NULL};
    latch_init(&w.done, 1);
    executable_run(e, &(RunOptions){.step_id = step_id, .rendezvous = r, .cancel = &cancel, .pool = s->pool, .blocking = s->blocking, .stats = s->stats}, step_ended, &w);
    if (!latch_wait_for(&w.done, timeout_ms ? timeout_ms : -1)) {
        Error *late = error_new(CODE_DEADLINE_EXCEEDED, "Step did not end within %lld ms", (long long)timeout_ms);
        rendezvous_abort(r, late);
        cancel_now(&cancel, late);
        latch_wait(&w.done);
    }
    if (!err) err = w.err ? w.err : take_fetches(s, sig, r, fetches);
    latch_clear(&w.done);
    cancel_clear(&cancel);
    rendezvous_unref(r);
    return err;
}
