/* master.h: Master, the sessions of one task's clients. */
#pragma once
#include "base/error.h"
#include "cluster/master_session.h"
#include "cluster/peers.h"
#include "cluster/spec.h"
#include "cluster/worker.h"
#include "runtime/cancel.h"

typedef struct MasterOptions {
    const ClusterSpec *cluster; /* outlives the master */
    Str task_name;
    Worker *worker; /* of the same task */
    Peers *peers;
    int64_t session_timeout_ms; /* how long CreateSession waits for missing tasks */
    int max_sessions;           /* 0: no limit */
    Cancel *stop;               /* set by master_new: cancelled when the master stops */
} MasterOptions;

Master *master_new(const MasterOptions *options);
void master_stop(Master *m); /* closes every session, and opens no more */
void master_free(Master *m);

Error *master_create_session(Master *m, Str graph_def, const Pb__ConfigProto *config, Str target, char **handle) MUST_CHECK;
/* A reference; Aborted when unknown. */
Error *master_find_session(Master *m, Str handle, MasterSession **out) MUST_CHECK;
Error *master_close_session(Master *m, Str handle) MUST_CHECK;
/* Closes all sessions and clears the containers on every (filtered) task. */
Error *master_reset(Master *m, char **containers, size_t container_count, char **filters, size_t filter_count) MUST_CHECK;
bool master_fresh_request_id(Master *m, int64_t id);
const MasterOptions *master_options(const Master *m);
int64_t master_session_count(Master *m);
int64_t master_steps_run(Master *m); /* since the start */
void master_count_step(Master *m);
