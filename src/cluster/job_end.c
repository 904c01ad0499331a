/* job_end.c: who is done, and JobService on the wire.

   TensorFlow's servers never end by themselves: a ps waits in join() for ever. Here a task that has done its part says so to the ps tasks, and a ps whose
   computing tasks are all done ends with exit code 0. A task that crashes says nothing, so the ps waits for its restart. */
#include "cluster/job_end.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cluster/codec.h"
#include "cluster/services.h"
#include "cluster/worker_client.h"
#include "proto/job.pb-c.h"

enum { TELL_MS = 5000 };

struct JobEnd {
    const ClusterSpec *cluster;
    const ClusterTask *own;
    Peers *peers;
    JobEnded *ended;
    void *arg;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    bool *done; /* by task of the cluster */
    bool is_over;
};

JobEnd *job_end_new(const ClusterSpec *cluster, const ClusterTask *own, Peers *peers, JobEnded *ended, void *arg) {
    JobEnd *j = xcalloc(1, sizeof *j);
    *j = (JobEnd){.cluster = cluster, .own = own, .peers = peers, .ended = ended, .arg = arg, .done = xcalloc((size_t)cluster->count, sizeof(bool))};
    pthread_mutex_init(&j->mutex, NULL);
    cond_init(&j->changed);
    return j;
}

void job_end_free(JobEnd *j) {
    if (!j) return;
    pthread_mutex_destroy(&j->mutex);
    pthread_cond_destroy(&j->changed);
    free(j->done);
    free(j);
}

static bool computes(const ClusterTask *t) {
    return strcmp(t->job, "ps") != 0 && strcmp(t->job, "evaluator") != 0;
}

void job_end_now(JobEnd *j) {
    pthread_mutex_lock(&j->mutex);
    bool first = !j->is_over;
    j->is_over = true;
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->mutex);
    if (first && j->ended) j->ended(j->arg);
}

bool job_end_wait(JobEnd *j, int64_t timeout_ms) {
    int64_t deadline = clock_mono_ns() + timeout_ms * 1000000;
    pthread_mutex_lock(&j->mutex);
    while (!j->is_over) {
        if (timeout_ms < 0)
            pthread_cond_wait(&j->changed, &j->mutex);
        else if (!cond_wait_until(&j->changed, &j->mutex, deadline))
            break;
    }
    bool over = j->is_over;
    pthread_mutex_unlock(&j->mutex);
    return over;
}

Error *job_end_done(JobEnd *j, Str task_name) {
    const ClusterTask *t = cluster_spec_find_name(j->cluster, task_name);
    if (!t) return error_not_found("%.*s is not a task of this cluster", STR_ARG(task_name));
    bool all = true;
    pthread_mutex_lock(&j->mutex);
    j->done[t - j->cluster->tasks] = true;
    for (int i = 0; i < j->cluster->count; i++) all &= j->done[i] || !computes(&j->cluster->tasks[i]);
    pthread_mutex_unlock(&j->mutex);
    if (!all || strcmp(j->own->job, "ps") != 0) return NULL;
    log_info("all tasks that compute are done: %s ends", j->own->name);
    job_end_now(j);
    return NULL;
}

/* ---- Telling others ---- */

/* One call to each task that `wants` says; the errors, by task of the cluster, are the caller's. */
static void tell(JobEnd *j, bool (*wants)(const JobEnd *j, const ClusterTask *t), const char *path, const ProtobufCMessage *request, int64_t timeout_ms,
                 Error **errors) {
    for (int i = 0; i < j->cluster->count; i++) {
        const ClusterTask *t = &j->cluster->tasks[i];
        errors[i] = NULL;
        if (!wants(j, t)) continue;
        Message m = {0}, reply = {0};
        codec_pack(request, &m);
        errors[i] = channel_call_wait(peers_channel(j->peers, str_of(t->address)), path, &m, (CallOptions){.timeout_ms = timeout_ms}, &reply);
        message_clear(&reply);
    }
}

static bool is_ps(const JobEnd *j, const ClusterTask *t) {
    return t != j->own && strcmp(t->job, "ps") == 0;
}

static bool is_other(const JobEnd *j, const ClusterTask *t) {
    return t != j->own;
}

void job_end_announce(JobEnd *j, int64_t timeout_ms) {
    Pb__DoneRequest request = PB__DONE_REQUEST__INIT;
    request.task = j->own->name;
    Error **errors = xcalloc((size_t)j->cluster->count, sizeof *errors);
    tell(j, is_ps, "/rill.JobService/Done", &request.base, timeout_ms, errors);
    for (int i = 0; i < j->cluster->count; i++) error_free(errors[i]); /* gone already, or a TensorFlow task */
    free(errors);
}

/* ---- On the wire ---- */

static void done(void *arg, ServerCall *call) {
    Pb__DoneRequest *request = service_request(call, &pb__done_request__descriptor);
    if (!request) return;
    service_finish(call, job_end_done(((Services *)arg)->job_end, str_of(request->task)));
    service_free(request);
}

static void stop(void *arg, ServerCall *call) {
    JobEnd *j = ((Services *)arg)->job_end;
    Pb__StopRequest *request = service_request(call, &pb__stop_request__descriptor);
    if (!request) return;
    Pb__StopResponse reply = PB__STOP_RESPONSE__INIT;
    Error **errors = xcalloc((size_t)j->cluster->count, sizeof *errors);
    reply.unreached = xcalloc((size_t)j->cluster->count, sizeof *reply.unreached);
    Pb__StopRequest one = PB__STOP_REQUEST__INIT;
    if (request->whole_cluster) tell(j, is_other, "/rill.JobService/Stop", &one.base, TELL_MS, errors);
    for (int i = 0; i < j->cluster->count; i++) {
        if (!errors[i]) continue;
        reply.unreached[reply.n_unreached++] = xasprintf("%s at %s: %s", j->cluster->tasks[i].name, j->cluster->tasks[i].address, errors[i]->message);
        error_free(errors[i]);
    }
    log_info("%s was told to end", j->own->name);
    service_reply(call, &reply.base);
    for (size_t i = 0; i < reply.n_unreached; i++) free(reply.unreached[i]);
    free(reply.unreached);
    free(errors);
    service_free(request);
    job_end_now(j);
}

const Method job_methods[] = {
    {"/rill.JobService/Stop", stop, ON_POOL, NULL},
    {"/rill.JobService/Done", done, ON_POOL, NULL},
};
const int job_method_count = sizeof job_methods / sizeof job_methods[0];
