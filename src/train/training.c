/* training.c: RillTraining: a session that is ready, runs with hooks, and another session when the first is lost. */
#include "rill/training.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "rill/coordinator.h"
#include "train/graph_internal.h"
#include "train/hooks_internal.h"
#include "train/ready.h"

enum { MAX_EXTRA = 32, MAX_HOOKS = 64 };

struct RillTraining {
    SessionMaker maker;
    char *directory;
    RillSaver *own_saver;
    RillSession *session;
    RillCoordinator *threads; /* of the session */
    RillHook *hooks[MAX_HOOKS];
    int hook_count;
    RillTensor step_value;
    int64_t step;
    _Atomic bool should_stop;
    TF_Code code; /* of the error that ended it */
    char *message;
    TF_Status *status;
};

void training_fail(RillTraining *t, TF_Code code, const char *message) {
    if (t->code == TF_OK) {
        t->code = code;
        t->message = xstrdup(message);
    }
    atomic_store(&t->should_stop, true);
}

const RillTask *training_task(const RillTraining *t) {
    return t->maker.task;
}

static bool asked_to_stop(void *arg) {
    return atomic_load(&((RillTraining *)arg)->should_stop);
}

/* ---- Sessions ---- */

static void drop_session(RillTraining *t) {
    if (t->threads) {
        rill_coordinator_stop(t->threads, TF_OK, "");
        TF_Status *status = TF_NewStatus();
        TF_CloseSession(rill_session_tf(t->session), status); /* wakes threads that wait in a queue */
        rill_coordinator_join(t->threads, status);
        TF_DeleteStatus(status);
        rill_coordinator_free(t->threads);
        t->threads = NULL;
    }
    rill_session_close(t->session);
    t->session = NULL;
}

static bool make_session(RillTraining *t) {
    t->session = session_maker_make(&t->maker, asked_to_stop, t, t->status);
    if (!t->session) {
        if (TF_GetCode(t->status) != TF_CANCELLED) training_fail(t, TF_GetCode(t->status), TF_Message(t->status));
        return false;
    }
    double step = rill_session_number(t->session, t->step_value, t->status);
    if (TF_GetCode(t->status) == TF_OK) t->step = (int64_t)step;
    for (int i = 0; i < t->hook_count; i++)
        if (t->hooks[i]->session_made) t->hooks[i]->session_made(t->hooks[i], t, t->session);
    t->threads = rill_coordinator_new();
    queue_runners_start(t->session, t->threads, t->maker.is_chief);
    return true;
}

/* ---- Opening ---- */

static void add_hook(RillTraining *t, RillHook *h) {
    if (t->hook_count < MAX_HOOKS)
        t->hooks[t->hook_count++] = h;
    else if (h->free)
        h->free(h);
}

static void add_own_hooks(RillTraining *t, RillGraph *g, const RillTrainingOptions *o) {
    if (o->last_step > 0) add_hook(t, rill_hook_stop_at(o->last_step));
    if (o->log_steps > 0) add_hook(t, hook_step_rate(o->log_steps, o->loss));
    if (!t->maker.is_chief || !t->directory) return;
    add_hook(t, hook_checkpoint(t->maker.saver, t->directory, o->save_seconds ? o->save_seconds : 600, o->save_steps));
    RillTensor merged = o->summary_steps < 0 ? NO_TENSOR : rill_summary_merge(g);
    if (o->summary_steps >= 0) add_hook(t, hook_summary(merged, o->loss, t->directory, o->summary_steps ? o->summary_steps : 100));
}

static void fill_maker(RillTraining *t, RillGraph *g, const RillTrainingOptions *o) {
    SessionMaker *m = &t->maker;
    for (int i = 0; i < t->hook_count; i++)
        if (t->hooks[i]->begin) t->hooks[i]->begin(t->hooks[i], g);
    t->step_value = rill_variable_value(rill_global_step(g));
    *m = (SessionMaker){.graph = g, .task = o->task, .is_chief = !o->task || rill_task_is_chief(o->task), .directory = t->directory, .saver = o->saver,
                        .wait_seconds = o->wait_seconds > 0 ? o->wait_seconds : CHIEF_WAIT_SECONDS, .patience_seconds = o->patience_seconds > 0 ? o->patience_seconds : 7200,
                        .session = o->session};
    session_maker_set_filters(m);
    m->init_op = o->init_op ? o->init_op : rill_init_op(g);
    m->local_init_op = o->local_init_op ? o->local_init_op : rill_local_init_op(g);
    m->ready = tensor_ok(o->ready) ? o->ready : rill_report_uninitialized(g);
    if (!m->saver && t->directory) m->saver = t->own_saver = rill_saver_new(g, &(RillSaverOptions){.keep = o->keep});
}

static void training_free(RillTraining *t) {
    for (int i = 0; i < t->hook_count; i++)
        if (t->hooks[i]->free) t->hooks[i]->free(t->hooks[i]);
    rill_saver_free(t->own_saver);
    TF_DeleteStatus(t->status);
    free(t->directory);
    free(t->message);
    free(t);
}

RillTraining *rill_training_open(RillGraph *g, const RillTrainingOptions *options, TF_Status *status) {
    RillTraining *t = xcalloc(1, sizeof *t);
    t->status = TF_NewStatus();
    t->directory = options->directory ? xstrdup(options->directory) : NULL;
    for (int i = 0; i < options->hook_count; i++) add_hook(t, options->hooks[i]);
    fill_maker(t, g, options);
    add_own_hooks(t, g, options);
    if (rill_graph_failed(g))
        training_fail(t, rill_graph_code(g), rill_graph_message(g));
    else
        make_session(t);
    TF_SetStatus(status, t->code, t->message ? t->message : "");
    if (t->code == TF_OK) return t;
    drop_session(t);
    training_free(t);
    return NULL;
}

/* ---- Running ---- */

bool rill_training_should_stop(RillTraining *t) {
    if (t->threads && rill_coordinator_should_stop(t->threads) && !asked_to_stop(t)) { /* a queue runner failed, or the input is broken */
        TF_Status *status = TF_NewStatus();
        RillCoordinator *threads = t->threads;
        TF_CloseSession(rill_session_tf(t->session), status);
        if (rill_coordinator_join(threads, status) != TF_OK) training_fail(t, TF_GetCode(status), TF_Message(status));
        TF_DeleteStatus(status);
        atomic_store(&t->should_stop, true);
    }
    return asked_to_stop(t);
}

void rill_training_stop(RillTraining *t) {
    atomic_store(&t->should_stop, true);
}

int64_t rill_training_step(const RillTraining *t) {
    return t->step;
}

RillSession *rill_training_session(RillTraining *t) {
    return t->session;
}

const char *rill_training_message(const RillTraining *t) {
    return t->message ? t->message : "";
}

/* The user's fetches, the global step, and what the hooks ask for. */
typedef struct Fetching {
    RillTensor *fetches;
    TF_Tensor **values;
    int own, count;
    int from[MAX_HOOKS], asked[MAX_HOOKS];
} Fetching;

static void fetching_init(Fetching *f, RillTraining *t, const RillStep *step) {
    f->own = step->fetch_count;
    f->fetches = xcalloc((size_t)f->own + 1 + MAX_EXTRA, sizeof *f->fetches);
    f->values = xcalloc((size_t)f->own + 1 + MAX_EXTRA, sizeof *f->values);
    for (int i = 0; i < f->own; i++) f->fetches[i] = step->fetches[i];
    f->fetches[f->own] = t->step_value;
    f->count = f->own + 1;
    for (int i = 0; i < t->hook_count; i++) {
        f->from[i] = f->count;
        f->asked[i] = t->hooks[i]->before_run ? t->hooks[i]->before_run(t->hooks[i], t, f->fetches + f->count, f->own + 1 + MAX_EXTRA - f->count) : 0;
        f->count += f->asked[i];
    }
}

static void fetching_clear(Fetching *f, bool keep_own) {
    for (int i = keep_own ? f->own : 0; i < f->count; i++)
        if (f->values[i]) TF_DeleteTensor(f->values[i]);
    free(f->fetches);
    free(f->values);
}

static TF_Code run_once(RillTraining *t, const RillStep *step) {
    Fetching f;
    fetching_init(&f, t, step);
    RillStep all = *step;
    all.fetches = f.fetches;
    all.values = f.values;
    all.fetch_count = f.count;
    TF_Code code = rill_session_run(t->session, &all, t->status);
    if (code == TF_OK) {
        t->step = (int64_t)rill_value_number(f.values[f.own]);
        for (int i = 0; i < t->hook_count; i++)
            if (t->hooks[i]->after_run) t->hooks[i]->after_run(t->hooks[i], t, f.values + f.from[i], t->step);
        for (int i = 0; i < f.own; i++) step->values[i] = f.values[i];
    }
    fetching_clear(&f, code == TF_OK);
    return code;
}

TF_Code rill_training_run(RillTraining *t, const RillStep *step) {
    for (int i = 0; i < step->fetch_count; i++) step->values[i] = NULL;
    if (asked_to_stop(t)) return t->code ? t->code : TF_CANCELLED;
    for (;;) {
        TF_Code code = run_once(t, step);
        if (code == TF_OK) return TF_OK;
        if (!is_recoverable(code) && rill_training_should_stop(t) && t->code != TF_OK) return t->code; /* a thread failed first: that is the cause */
        if (code == TF_OUT_OF_RANGE) { /* the input has ended */
            atomic_store(&t->should_stop, true);
            return code;
        }
        if (!is_recoverable(code)) {
            training_fail(t, code, TF_Message(t->status));
            return code;
        }
        log_warn("the session is made anew: %s", TF_Message(t->status));
        drop_session(t);
        if (!make_session(t)) return t->code ? t->code : TF_CANCELLED;
        if (asked_to_stop(t)) return t->code ? t->code : TF_CANCELLED;
    }
}

int rill_training_close(RillTraining *t) {
    if (!t) return 1;
    for (int i = 0; t->code == TF_OK && t->session && i < t->hook_count; i++)
        if (t->hooks[i]->end) t->hooks[i]->end(t->hooks[i], t, t->session);
    if (t->code == TF_OK && t->session) session_leave(t->session);
    if (t->code != TF_OK) fprintf(stderr, "training failed: %s\n", t->message);
    int code = t->code != TF_OK;
    drop_session(t);
    training_free(t);
    return code;
}
