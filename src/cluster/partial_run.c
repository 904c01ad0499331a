/* partial_run.c: a step run in parts: set up once, then fed and fetched by several calls. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/master_session_internal.h"
#include "cluster/random_id.h"
#include "cluster/step_run.h"

static void partial_run_free(MasterSession *s, PartialRun *p) {
    if (!p) return;
    step_run_cleanup(p->step);
    session_remove_step(s, p->step);
    step_run_free(p->step);
    client_graph_unref(p->graph);
    free(p->handle);
    free(p->fed);
    free(p->fetched);
    free(p);
}

/* Partial runs that no call is working on end with the session. */
void session_drop_partial_runs(MasterSession *s) {
    for (;;) {
        size_t at = 0;
        void *value = NULL;
        pthread_mutex_lock(&s->mutex);
        s->closed = true;
        PartialRun *found = NULL;
        while (!found && strmap_next(&s->partial_runs, &at, NULL, &value))
            if (!((PartialRun *)value)->running) found = value;
        if (found) strmap_remove(&s->partial_runs, str_of(found->handle));
        pthread_mutex_unlock(&s->mutex);
        if (!found) return;
        partial_run_free(s, found);
    }
}

Error *master_session_partial_setup(MasterSession *s, const RunSignature *signature, char **handle) {
    ClientGraph *g;
    Error *err = session_graph_for(s, signature, true, &g);
    if (err) return err;
    PartialRun *p = xcalloc(1, sizeof *p);
    p->graph = g;
    p->step = step_run_new(s, g, random_step_id());
    p->fed = xcalloc((size_t)signature->feed_count, sizeof *p->fed);
    p->fetched = xcalloc((size_t)signature->fetch_count, sizeof *p->fetched);
    pthread_mutex_lock(&s->mutex); /* one lock for both: a session that closes must find the run with the step */
    p->handle = xasprintf("%lld", (long long)s->next_partial++);
    err = session_add_step_locked(s, p->step);
    if (!err) strmap_put(&s->partial_runs, str_of(p->handle), p);
    pthread_mutex_unlock(&s->mutex);
    if (err) {
        partial_run_free(s, p);
        return err;
    }
    *handle = xstrdup(p->handle);
    return NULL;
}

static int find_name(const Str *names, int count, Str name) {
    for (int i = 0; i < count; i++)
        if (str_eq(names[i], name)) return i;
    return -1;
}

/* Marks what this call feeds and fetches in p; what it cannot do is an error. */
static Error *mark_partial(PartialRun *p, const RunSignature *call, Str *send_keys, Str *recv_keys) {
    const RunSignature *all = &p->graph->signature;
    for (int i = 0; i < call->feed_count; i++) {
        int at = find_name(all->feeds, all->feed_count, call->feeds[i]);
        if (at < 0) return error_invalid("The feed %.*s was not specified in partial_run_setup.", STR_ARG(call->feeds[i]));
        if (p->fed[at]) return error_invalid("The feed %.*s has already been fed.", STR_ARG(call->feeds[i]));
        p->fed[at] = true;
        send_keys[i] = p->graph->feed_keys[at];
    }
    for (int i = 0; i < call->fetch_count; i++) {
        int at = find_name(all->fetches, all->fetch_count, call->fetches[i]);
        if (at < 0) return error_invalid("The fetch %.*s was not specified in partial_run_setup.", STR_ARG(call->fetches[i]));
        if (p->fetched[at]) return error_invalid("The fetch %.*s has already been fetched.", STR_ARG(call->fetches[i]));
        /* What is named is the feed that is missing, as TensorFlow does. */
        for (int f = 0; f < all->feed_count; f++)
            if (p->graph->computable[at * all->feed_count + f] && !p->fed[f])
                return error_invalid("Fetch %.*s can't be computed from the feeds that have been fed so far.", STR_ARG(all->feeds[f]));
        p->fetched[at] = true;
        recv_keys[i] = p->graph->fetch_keys[at];
    }
    return NULL;
}

/* The same; a call that is refused leaves the run as it was. */
static Error *check_partial(PartialRun *p, const RunSignature *call, Str *send_keys, Str *recv_keys, bool *is_last) {
    const RunSignature *all = &p->graph->signature;
    size_t feeds = (size_t)all->feed_count * sizeof *p->fed, fetches = (size_t)all->fetch_count * sizeof *p->fetched;
    char *before = xmalloc(feeds + fetches + 1);
    memcpy(before, p->fed, feeds);
    memcpy(before + feeds, p->fetched, fetches);
    Error *err = mark_partial(p, call, send_keys, recv_keys);
    if (err) {
        memcpy(p->fed, before, feeds);
        memcpy(p->fetched, before + feeds, fetches);
    }
    free(before);
    if (err) return err;
    *is_last = true;
    for (int i = 0; i < all->feed_count; i++) *is_last &= p->fed[i];
    for (int i = 0; i < all->fetch_count; i++) *is_last &= p->fetched[i];
    return NULL;
}

Error *master_session_partial_run(MasterSession *s, Str handle, const RunRequest *request, ServerCall *call, RunReply *reply) {
    pthread_mutex_lock(&s->mutex);
    PartialRun *p = strmap_get(&s->partial_runs, handle);
    bool busy = p && p->running;
    if (p && !busy) p->running = true;
    pthread_mutex_unlock(&s->mutex);
    if (!p) return error_invalid("Must run PartialRunSetup before performing partial runs");
    if (busy) return error_invalid("Partial run '%.*s' is already being run by another call", STR_ARG(handle));
    const RunSignature *sig = &request->signature;
    Str *send_keys = xcalloc((size_t)(sig->feed_count + sig->fetch_count), sizeof *send_keys);
    Str *recv_keys = send_keys + sig->feed_count;
    bool is_last = false;
    Error *err = check_partial(p, sig, send_keys, recv_keys, &is_last);
    bool checked = !err;
    if (checked) {
        run_reply_init(reply, sig->fetch_count);
        StepRound round = {.send_keys = send_keys, .send_values = request->feeds, .send_count = sig->feed_count, .recv_keys = recv_keys,
                           .recv_values = reply->fetches, .recv_count = sig->fetch_count, .is_partial = true, .is_last = is_last,
                           .timeout_ms = request->timeout_ms, .call = call};
        err = step_run_round(p->step, &round);
    }
    free(send_keys);
    bool over = is_last || (checked && err);
    pthread_mutex_lock(&s->mutex);
    p->running = false;
    over |= s->closed;
    if (over) strmap_remove(&s->partial_runs, str_of(p->handle));
    pthread_mutex_unlock(&s->mutex);
    if (over) partial_run_free(s, p);
    return err;
}
