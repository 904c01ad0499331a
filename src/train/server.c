/* server.c: RillServer, a task by itself. */
#include "rill/server.h"

#include <stdlib.h>

#include "base/memory.h"
#include "cluster/server.h"
#include "ops/op_list.h"

enum { GRACE_MS = 2000 };

struct RillServer {
    Server *server;
    char *target;
};

static Error *start(const char *cluster, const char *job, int task, Server **out) {
    ClusterSpec spec = {0};
    Transport *transport = NULL;
    Error *err = cluster_spec_from_json(str_of(cluster), &spec, NULL, NULL);
    if (!err) err = transport_grpc_new(NULL, &transport);
    ServerConfig config = {.cluster = &spec, .job = str_of(job), .task = task};
    if (!err) err = server_start(&config, transport, out);
    cluster_spec_clear(&spec);
    return err;
}

RillServer *rill_server_start(const char *cluster, const char *job, int task, TF_Status *status) {
    Server *server = NULL;
    ops_register_all();
    Error *err = start(cluster, job, task, &server);
    TF_SetStatus(status, err ? (TF_Code)err->code : TF_OK, err ? err->message : "");
    error_free(err);
    if (!server) return NULL;
    RillServer *s = xcalloc(1, sizeof *s);
    *s = (RillServer){server, str_dup(server_target(server))};
    return s;
}

const char *rill_server_target(const RillServer *s) {
    return s->target;
}

bool rill_server_wait(RillServer *s, int64_t timeout_ms) {
    return server_wait(s->server, timeout_ms);
}

void rill_server_done(RillServer *s) {
    server_announce_done(s->server);
}

void rill_server_stop(RillServer *s) {
    if (!s) return;
    server_stop(s->server, GRACE_MS);
    free(s->target);
    free(s);
}
