/* server.c: TF_Server: a task of a cluster in this process. */
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "capi/graph_internal.h"
#include "capi/status_internal.h"
#include "cluster/server.h"

enum { GRACE_MS = 2000 };

struct TF_Server {
    char *target;
    pthread_mutex_t mutex; /* guards the two below */
    pthread_cond_t stopped;
    Server *server; /* NULL from when it is told to stop */
    bool is_stopped;
};

static Error *start(const Pb__ServerDef *def, Server **out) {
    if (*def->protocol && !str_starts(str_of(def->protocol), STR("grpc")))
        return error_not_found("No server factory registered for the given ServerDef: protocol \"%s\"; there is \"grpc\"", def->protocol);
    if (!def->cluster) return error_invalid("The ServerDef has no cluster");
    ClusterSpec cluster = {0};
    Transport *transport = NULL;
    Error *err = cluster_spec_from_def(def->cluster, &cluster);
    if (!err) err = transport_grpc_new(NULL, &transport);
    ServerConfig config = {.cluster = &cluster, .job = str_of(def->job_name), .task = def->task_index};
    if (!err) err = server_start(&config, transport, out);
    cluster_spec_clear(&cluster);
    return err;
}

TF_Server *TF_NewServer(const void *proto, size_t proto_len, TF_Status *status) {
    capi_init();
    Pb__ServerDef *def = pb__server_def__unpack(NULL, proto_len, proto);
    Server *server = NULL;
    Error *err = def ? start(def, &server) : error_invalid("Could not parse provided bytes into a ServerDef protocol buffer");
    if (def) pb__server_def__free_unpacked(def, NULL);
    if (!status_take(status, err)) return NULL;
    TF_Server *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->stopped, NULL);
    s->server = server;
    s->target = str_dup(server_target(server));
    return s;
}

/* It serves from the moment it is made: its address is known and taken then. */
void TF_ServerStart(TF_Server *s, TF_Status *status) {
    pthread_mutex_lock(&s->mutex);
    bool runs = s->server != NULL;
    pthread_mutex_unlock(&s->mutex);
    status_take(status, runs ? NULL : error_new(CODE_FAILED_PRECONDITION, "The server %s was stopped", s->target));
}

static void wait_stopped(TF_Server *s) {
    pthread_mutex_lock(&s->mutex);
    while (!s->is_stopped) pthread_cond_wait(&s->stopped, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

/* Whoever comes first stops it; all return when it has stopped. */
static void stop(TF_Server *s) {
    pthread_mutex_lock(&s->mutex);
    Server *server = s->server;
    s->server = NULL;
    pthread_mutex_unlock(&s->mutex);
    if (!server) {
        wait_stopped(s);
        return;
    }
    server_stop(server, GRACE_MS);
    pthread_mutex_lock(&s->mutex);
    s->is_stopped = true;
    pthread_cond_broadcast(&s->stopped);
    pthread_mutex_unlock(&s->mutex);
}

void TF_ServerStop(TF_Server *s, TF_Status *status) {
    stop(s);
    status_take(status, NULL);
}

void TF_ServerJoin(TF_Server *s, TF_Status *status) {
    wait_stopped(s);
    status_take(status, NULL);
}

const char *TF_ServerTarget(TF_Server *s) {
    return s->target;
}

void TF_DeleteServer(TF_Server *s) {
    if (!s) return;
    stop(s);
    pthread_cond_destroy(&s->stopped);
    pthread_mutex_destroy(&s->mutex);
    free(s->target);
    free(s);
}
