/* load_generator.c: a thread that runs steps, threads that run the loops of the case, and windows in which steps are counted.

   The stepping thread pauses between windows. In synchronous training a step may wait for another worker that pauses already: then the window ends
   without it, and the step goes on into the next window, where it is not counted because it began before. */
#include "tools/load_generator.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cluster/client_session.h"
#include "net/transport.h"

enum { PATIENCE_MS = 60000, LEAST_PATIENCE_MS = 100, PATIENCE_STEPS = 4 };

struct LoadGenerator {
    const BenchCase *c;
    Transport *transport; /* NULL: no target */
    ClientSession *session;
    int64_t rotated; /* steps so far, of the stepping thread alone */
    pthread_t stepper, *loops;
    int loop_count;
    bool has_stepper;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    bool is_running, is_stepping, is_ending;
    Error *err;               /* the first one */
    int64_t began, last, max; /* of the window: its start, the end of its last step, how many steps it may have (0: any) */
    double *durations_us;     /* of its steps */
    size_t count, capacity;
};

/* ---- Steps ---- */

static Error *run_targets(LoadGenerator *g, const TargetList *list) {
    ClientStep step = {.signature = {.targets = list->items, .target_count = list->count}};
    return client_session_run(g->session, &step, NULL, NULL);
}

static Error *run_step(LoadGenerator *g) {
    const BenchCase *c = g->c;
    ClientStep step = {.signature = c->step, .feeds = c->feeds};
    if (c->rotation.count) {
        step.signature.fetches = &c->rotation.items[g->rotated++ % c->rotation.count];
        step.signature.fetch_count = 1;
    }
    int count = step.signature.fetch_count;
    Tensor **values = xcalloc((size_t)count + 1, sizeof *values);
    Error *err = client_session_run(g->session, &step, values, NULL);
    for (int i = 0; !err && i < count; i++) tensor_unref(values[i]);
    free(values);
    return err;
}

/* ---- Threads ---- */

static void fail_locked(LoadGenerator *g, Error *err) {
    if (g->err || g->is_ending)
        error_free(err);
    else
        g->err = err;
    g->is_running = false;
}

static void count_locked(LoadGenerator *g, int64_t began, int64_t ended) {
    if (began < g->began) return;
    g->durations_us = vec_reserve(g->durations_us, &g->capacity, g->count + 1, sizeof *g->durations_us);
    g->durations_us[g->count++] = (double)(ended - began) / 1e3;
    g->last = ended;
    if (g->max && (int64_t)g->count >= g->max) g->is_running = false;
}

static void *stepper(void *arg) {
    LoadGenerator *g = arg;
    pthread_mutex_lock(&g->mutex);
    for (;;) {
        while (!g->is_running && !g->is_ending) pthread_cond_wait(&g->changed, &g->mutex);
        if (g->is_ending) break;
        g->is_stepping = true;
        pthread_mutex_unlock(&g->mutex);
        int64_t began = clock_mono_ns();
        Error *err = run_step(g);
        int64_t ended = clock_mono_ns();
        pthread_mutex_lock(&g->mutex);
        g->is_stepping = false;
        if (err)
            fail_locked(g, err);
        else
            count_locked(g, began, ended);
        if (!g->is_running) pthread_cond_broadcast(&g->changed);
    }
    pthread_mutex_unlock(&g->mutex);
    return NULL;
}

typedef struct Loop {
    LoadGenerator *g;
    const TargetList *targets;
} Loop;

static void *loop(void *arg) {
    Loop l = *(Loop *)arg;
    free(arg);
    for (bool go_on = true; go_on;) {
        Error *err = run_targets(l.g, l.targets);
        pthread_mutex_lock(&l.g->mutex);
        go_on = !err && !l.g->is_ending;
        if (err) {
            fail_locked(l.g, err);
            pthread_cond_broadcast(&l.g->changed);
        }
        pthread_mutex_unlock(&l.g->mutex);
    }
    return NULL;
}

static Error *start_thread(pthread_t *thread, void *(*run)(void *), void *arg) {
    return pthread_create(thread, NULL, run, arg) ? error_new(CODE_RESOURCE_EXHAUSTED, "cannot start a thread") : NULL;
}

static Error *start_loops(LoadGenerator *g) {
    Error *err = NULL;
    g->loops = xcalloc((size_t)g->c->loop_count, sizeof *g->loops);
    for (int i = 0; !err && i < g->c->loop_count; i++) {
        Loop *l = xmalloc(sizeof *l);
        *l = (Loop){g, &g->c->loops[i]};
        err = start_thread(&g->loops[i], loop, l);
        if (err)
            free(l);
        else
            g->loop_count++;
    }
    return err;
}

/* ---- Start and end ---- */

static double ms_since(int64_t began) {
    return (double)(clock_mono_ns() - began) / 1e6;
}

/* Every server is asked in the same way: in plain gRPC, though Rill's take calls that cost less. */
static Error *open_session(LoadGenerator *g, const char *target, LoadStart *start) {
    const BenchCase *c = g->c;
    int64_t began = clock_mono_ns();
    Error *err = str_starts(str_of(target), STR("grpc://")) ? transport_grpc_new(&(GrpcOptions){.plain_grpc = true}, &g->transport) : NULL;
    ClientSessionOptions options = {.target = str_of(target), .config = strbuf_str(&c->config), .transport = g->transport};
    if (!err) err = client_session_open(&options, (Str){c->graph, c->graph_len}, &g->session);
    start->create_ms = ms_since(began);
    began = clock_mono_ns();
    for (int i = 0; !err && i < c->init_count; i++) err = run_targets(g, &c->init[i]);
    start->init_ms = ms_since(began);
    began = clock_mono_ns();
    if (!err && c->extension_len) err = client_session_extend(g->session, (Str){c->extension, c->extension_len});
    start->extend_ms = ms_since(began);
    return err;
}

static Error *first_steps(LoadGenerator *g, int64_t warm_steps, LoadStart *start) {
    int64_t began = clock_mono_ns();
    Error *err = run_step(g);
    start->first_ms = ms_since(began);
    for (int64_t i = 0; !err && i < warm_steps; i++) err = run_step(g);
    return err;
}

Error *load_generator_new(const BenchCase *c, const LoadOptions *options, LoadStart *start, LoadGenerator **out) {
    LoadGenerator *g = xcalloc(1, sizeof *g);
    g->c = c;
    pthread_mutex_init(&g->mutex, NULL);
    cond_init(&g->changed);
    Error *err = open_session(g, options->target, start);
    if (!err) err = start_loops(g);
    if (!err) err = first_steps(g, options->warm_steps, start);
    if (!err) err = start_thread(&g->stepper, stepper, g);
    g->has_stepper = !err;
    if (err)
        load_generator_free(g);
    else
        *out = g;
    return err;
}

void load_generator_free(LoadGenerator *g) {
    if (!g) return;
    pthread_mutex_lock(&g->mutex);
    g->is_ending = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
    if (g->session) error_free(client_session_close(g->session)); /* a master that is gone needs no goodbye */
    if (g->has_stepper) pthread_join(g->stepper, NULL);
    for (int i = 0; i < g->loop_count; i++) pthread_join(g->loops[i], NULL);
    client_session_free(g->session);
    if (g->transport) transport_free(g->transport);
    error_free(g->err);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->mutex);
    free(g->durations_us);
    free(g->loops);
    free(g);
}

/* ---- Windows ---- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* CPU time of a process so far; 0 when it is gone. pid 0: this one. */
static int64_t cpu_ns(pid_t pid) {
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t)) return 0;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Until the window is over, then for the step under way: a few times as long as the longest so far, in case it is stuck. */
static void wait_window_locked(LoadGenerator *g, double seconds) {
    int64_t deadline = g->began + (int64_t)(seconds * 1e9);
    while (g->is_running && cond_wait_until(&g->changed, &g->mutex, deadline)) continue;
    g->is_running = false;
    double longest_ms = 0;
    for (size_t i = 0; i < g->count; i++)
        if (g->durations_us[i] / 1e3 > longest_ms) longest_ms = g->durations_us[i] / 1e3;
    double patience_ms = g->count ? LEAST_PATIENCE_MS + PATIENCE_STEPS * longest_ms : PATIENCE_MS;
    deadline = clock_mono_ns() + (int64_t)(patience_ms * 1e6);
    while (g->is_stepping && cond_wait_until(&g->changed, &g->mutex, deadline)) continue;
}

static Error *take_numbers_locked(LoadGenerator *g, LoadNumbers *out) {
    Error *err = g->err;
    g->err = NULL;
    out->seconds = (double)(clock_mono_ns() - g->began) / 1e9;
    if (err || !g->count) return err;
    qsort(g->durations_us, g->count, sizeof *g->durations_us, by_value);
    out->steps = (int64_t)g->count;
    out->seconds = (double)(g->last - g->began) / 1e9;
    out->least_us = g->durations_us[0];
    out->median_us = g->durations_us[g->count / 2];
    out->p90_us = g->durations_us[g->count * 9 / 10];
    return NULL;
}

Error *load_generator_run(LoadGenerator *g, const LoadWindow *window, LoadNumbers *out) {
    *out = (LoadNumbers){.server_cpu_us = xcalloc((size_t)window->pid_count + 1, sizeof *out->server_cpu_us)};
    int64_t own = cpu_ns(0), *cpu = xcalloc((size_t)window->pid_count + 1, sizeof *cpu);
    for (int i = 0; i < window->pid_count; i++) cpu[i] = cpu_ns(window->pids[i]);
    pthread_mutex_lock(&g->mutex);
    g->count = 0;
    g->max = window->max_steps;
    g->began = clock_mono_ns();
    g->is_running = !g->err;
    pthread_cond_broadcast(&g->changed);
    wait_window_locked(g, window->seconds);
    Error *err = take_numbers_locked(g, out);
    pthread_mutex_unlock(&g->mutex);
    double per_step = out->steps ? 1e3 * (double)out->steps : 1e3;
    out->client_cpu_us = (double)(cpu_ns(0) - own) / per_step;
    for (int i = 0; i < window->pid_count; i++) out->server_cpu_us[i] = (double)(cpu_ns(window->pids[i]) - cpu[i]) / per_step;
    if (err) {
        free(out->server_cpu_us);
        *out = (LoadNumbers){0};
    }
    free(cpu);
    return err;
}
