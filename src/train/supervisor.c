/* supervisor.c: RillSupervisor: prepares a session or waits for it, and saves and summarises from threads of its own while the program runs the loop. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "rill/coordinator.h"
#include "rill/training.h"
#include "train/graph_internal.h"
#include "train/ready.h"

struct RillSupervisor {
    SessionMaker maker;
    char *logdir, *path;
    RillSaver *own_saver;
    RillTensor merged;
    RillWriter *writer;
    RillSession *session;
    RillCoordinator *threads;
    int save_seconds, summary_seconds;
    _Atomic bool should_stop;
};

RillSupervisor *rill_supervisor_new(RillGraph *g, const RillSupervisorOptions *o, TF_Status *status) {
    RillSupervisor *s = xcalloc(1, sizeof *s);
    if (o->logdir) {
        s->logdir = xstrdup(o->logdir);
        s->path = xasprintf("%s/model.ckpt", o->logdir);
    }
    s->save_seconds = o->save_seconds ? o->save_seconds : 600;
    s->summary_seconds = o->summary_seconds ? o->summary_seconds : 120;
    rill_global_step(g);
    s->maker = (SessionMaker){.graph = g, .task = o->task, .is_chief = o->task ? rill_task_is_chief(o->task) : !o->is_not_chief, .directory = s->logdir, .saver = o->saver,
                              .wait_seconds = o->recovery_wait_seconds > 0 ? o->recovery_wait_seconds : CHIEF_WAIT_SECONDS, .patience_seconds = 7200};
    session_maker_set_filters(&s->maker);
    s->maker.init_op = o->init_op ? o->init_op : rill_init_op(g);
    s->maker.local_init_op = o->local_init_op ? o->local_init_op : rill_local_init_op(g);
    s->maker.ready = rill_report_uninitialized(g);
    if (!s->maker.saver && s->logdir) s->maker.saver = s->own_saver = rill_saver_new(g, NULL);
    s->merged = rill_summary_merge(g);
    TF_SetStatus(status, rill_graph_code(g), rill_graph_message(g));
    if (TF_GetCode(status) == TF_OK && s->maker.is_chief && s->logdir) s->writer = rill_writer_open(s->logdir, status);
    if (TF_GetCode(status) == TF_OK) return s;
    rill_saver_free(s->own_saver);
    free(s->logdir);
    free(s->path);
    free(s);
    return NULL;
}

static bool asked_to_stop(void *arg) {
    return atomic_load(&((RillSupervisor *)arg)->should_stop);
}

static int64_t step_now(RillSupervisor *s, TF_Status *status) {
    double step = rill_session_number(s->session, rill_variable_value(rill_global_step(s->maker.graph)), status);
    return TF_GetCode(status) == TF_OK ? (int64_t)step : -1;
}

static void save_now(RillSupervisor *s, TF_Status *status) {
    int64_t step = step_now(s, status);
    if (step >= 0) free(rill_saver_save(s->maker.saver, s->session, s->path, step, status));
}

static void save_service(RillCoordinator *c, void *arg) {
    RillSupervisor *s = arg;
    TF_Status *status = TF_NewStatus();
    while (!rill_coordinator_wait(c, s->save_seconds * 1000ll)) {
        save_now(s, status);
        if (TF_GetCode(status) != TF_OK) log_warn("no checkpoint was saved: %s", TF_Message(status)); /* the loop meets the cause itself */
    }
    TF_DeleteStatus(status);
}

static void summary_service(RillCoordinator *c, void *arg) {
    RillSupervisor *s = arg;
    TF_Status *status = TF_NewStatus();
    do {
        int64_t step = step_now(s, status);
        TF_Tensor *value = NULL;
        if (step >= 0 && tensor_ok(s->merged)) rill_session_run(s->session, &(RillStep){.fetches = &s->merged, .values = &value, .fetch_count = 1}, status);
        if (value) {
            rill_writer_summary(s->writer, value, step);
            rill_writer_flush(s->writer, status);
            TF_DeleteTensor(value);
        }
    } while (!rill_coordinator_wait(c, s->summary_seconds * 1000ll));
    TF_DeleteStatus(status);
}

static void end_session(RillSupervisor *s, TF_Status *status) {
    if (!s->session) return;
    rill_coordinator_stop(s->threads, TF_OK, "");
    TF_Status *ignored = TF_NewStatus();
    TF_CloseSession(rill_session_tf(s->session), ignored);
    TF_DeleteStatus(ignored);
    rill_coordinator_join(s->threads, status);
    rill_coordinator_free(s->threads);
    rill_session_close(s->session);
    s->threads = NULL;
    s->session = NULL;
}

RillSession *rill_supervisor_prepare_or_wait(RillSupervisor *s, TF_Status *status) {
    end_session(s, status); /* of an earlier call: the program prepares again after an error */
    s->session = session_maker_make(&s->maker, asked_to_stop, s, status);
    if (!s->session) return NULL;
    s->threads = rill_coordinator_new();
    queue_runners_start(s->session, s->threads, s->maker.is_chief);
    if (s->writer) rill_writer_graph(s->writer, s->maker.graph);
    if (s->maker.is_chief && s->maker.saver && s->logdir) rill_coordinator_start(s->threads, save_service, s);
    if (s->writer && tensor_ok(s->merged)) rill_coordinator_start(s->threads, summary_service, s);
    return s->session;
}

bool rill_supervisor_should_stop(RillSupervisor *s) {
    return asked_to_stop(s) || (s->threads && rill_coordinator_should_stop(s->threads));
}

void rill_supervisor_request_stop(RillSupervisor *s) {
    atomic_store(&s->should_stop, true);
}

TF_Code rill_supervisor_stop(RillSupervisor *s, TF_Status *status) {
    TF_SetStatus(status, TF_OK, "");
    TF_Status *saved = TF_NewStatus();
    if (s->session && s->maker.is_chief && s->maker.saver && s->logdir) save_now(s, saved);
    if (s->session) session_leave(s->session);
    end_session(s, status);
    if (TF_GetCode(status) == TF_OK && TF_GetCode(saved) != TF_OK) TF_SetStatus(status, TF_GetCode(saved), TF_Message(saved));
    TF_DeleteStatus(saved);
    rill_writer_close(s->writer);
    rill_saver_free(s->own_saver);
    free(s->logdir);
    free(s->path);
    free(s);
    return TF_GetCode(status);
}
