/* ready.c: the chief prepares, the others wait; both until it is so. */
#include "train/ready.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/str.h"
#include "train/graph_internal.h"

void session_leave(RillSession *s) {
    const RillGraph *g = rill_session_graph(s);
    TF_Status *status = TF_NewStatus();
    for (int i = 0; TF_GetCode(status) == TF_OK && i < g->lists[LIST_LEAVES].count; i++) rill_session_run_op(s, g->lists[LIST_LEAVES].items[i].op, status);
    TF_DeleteStatus(status); /* where the others cannot be told they are gone, too */
}

bool is_recoverable(TF_Code code) {
    return code == TF_ABORTED || code == TF_UNAVAILABLE;
}

void session_maker_set_filters(SessionMaker *m) {
    if (!m->task || m->session.device_filter_count || !rill_task_count(m->task, "ps") || !*rill_task_device(m->task)) return;
    m->filters[0] = "/job:ps";
    m->filters[1] = rill_task_device(m->task);
    m->session.device_filters = m->filters;
    m->session.device_filter_count = 2;
}

/* Names of variables without a value, malloced; NULL when all have one. */
static char *missing(const SessionMaker *m, RillSession *s, TF_Status *status) {
    TF_Tensor *names = NULL;
    if (rill_session_run(s, &(RillStep){.fetches = &m->ready, .values = &names, .fetch_count = 1}, status) != TF_OK) return NULL;
    StrBuf list = {0};
    int64_t count = TF_TensorElementCount(names);
    for (int64_t i = 0; i < count && list.len < 500; i++) {
        char *name = rill_value_text(names, i);
        strbuf_addf(&list, "%s%s", i ? ", " : "", name);
        free(name);
    }
    TF_DeleteTensor(names);
    return count ? strbuf_detach(&list) : NULL;
}

static void prepare(const SessionMaker *m, RillSession *s, TF_Status *status) {
    char *without = missing(m, s, status);
    bool has_all = !without && TF_GetCode(status) == TF_OK;
    free(without);
    if (TF_GetCode(status) != TF_OK) return;
    char *checkpoint = !has_all && m->directory && m->saver ? rill_latest_checkpoint(m->directory) : NULL;
    /* Variables that the checkpoint does not have, such as those of a new optimizer, are a mistake that the restore names. */
    if (checkpoint)
        rill_saver_restore(m->saver, s, checkpoint, status);
    else if (!has_all)
        rill_session_run_op(s, m->init_op, status);
    free(checkpoint);
    if (TF_GetCode(status) == TF_OK && m->local_init_op) rill_session_run_op(s, m->local_init_op, status);
    without = TF_GetCode(status) == TF_OK ? missing(m, s, status) : NULL;
    if (without) {
        char *text = xasprintf("After the init ops these still have no value: %s", without);
        TF_SetStatus(status, TF_FAILED_PRECONDITION, text);
        free(text);
    }
    free(without);
    const RillGraph *g = m->graph;
    for (int i = 0; TF_GetCode(status) == TF_OK && i < g->lists[LIST_CHIEF_STARTS].count; i++) rill_session_run_op(s, g->lists[LIST_CHIEF_STARTS].items[i].op, status);
}

static void wait_for_chief(const SessionMaker *m, RillSession *s, TF_Status *status) {
    char *without = missing(m, s, status);
    if (without) {
        char *text = xasprintf("The chief has not initialised: %s", without);
        TF_SetStatus(status, TF_UNAVAILABLE, text); /* look again later */
        free(text);
    } else if (TF_GetCode(status) == TF_OK && m->local_init_op) {
        rill_session_run_op(s, m->local_init_op, status); /* may start from values of the chief's */
    }
    free(without);
}

RillSession *session_maker_make(const SessionMaker *m, bool (*stop)(void *arg), void *arg, TF_Status *status) {
    int64_t deadline = clock_mono_ns() + m->patience_seconds * 1000000000;
    for (;;) {
        RillSession *s = rill_session_open(m->graph, m->task, &m->session, status);
        if (s && m->is_chief)
            prepare(m, s, status);
        else if (s)
            wait_for_chief(m, s, status);
        TF_Code code = TF_GetCode(status);
        if (code == TF_OK) return s;
        rill_session_close(s);
        /* A variable of a ps that is just being restored may be seen half made. */
        bool again = is_recoverable(code) || (!m->is_chief && code == TF_FAILED_PRECONDITION) || code == TF_DEADLINE_EXCEEDED;
        if (!again) return NULL;
        if (clock_mono_ns() >= deadline) {
            char *text = xasprintf("The session was not ready within %lld s. Last: %s", (long long)m->patience_seconds, TF_Message(status));
            TF_SetStatus(status, TF_DEADLINE_EXCEEDED, text);
            free(text);
            return NULL;
        }
        if (stop && stop(arg)) {
            TF_SetStatus(status, TF_CANCELLED, "Asked to stop while waiting for the session to be ready");
            return NULL;
        }
        nanosleep(&(struct timespec){(time_t)m->wait_seconds, (long)((m->wait_seconds - (double)(time_t)m->wait_seconds) * 1e9)}, NULL);
    }
}
