/* master_session.h: MasterSession, a client's graph and its steps. */
#pragma once
#include "base/error.h"
#include "cluster/services.h"
#include "graph/prune.h"
#include "net/transport.h"
#include "proto/config.pb-c.h"
#include "tensor/tensor.h"

typedef struct Master Master;
typedef struct MasterSession MasterSession;

/* Finds the tasks (waiting for missing ones), opens the session at each, imports and places the graph. */
Error *master_session_open(Master *m, Str handle, Str graph_def, const Pb__ConfigProto *config, Str target, MasterSession **out) MUST_CHECK;
MasterSession *master_session_ref(MasterSession *s);
void master_session_unref(MasterSession *s);
/* Cancels steps under way, waits for them, deletes the session at all workers. */
void master_session_close(MasterSession *s);
Str master_session_handle(const MasterSession *s);

Error *master_session_extend(MasterSession *s, Str graph_def, int64_t version, int64_t *new_version) MUST_CHECK;

typedef struct RunRequest {
    RunSignature signature;
    Tensor *const *feeds; /* by signature.feeds */
    bool trace, partition_graphs;
    Str debug_options; /* serialised DebugOptions; "": none */
    int64_t timeout_ms; /* 0: none */
    int64_t collective_graph_key; /* other than 0: masters agree on the id of the step */
} RunRequest;

typedef struct RunReply {
    Tensor **fetches; /* by signature.fetches; the caller's */
    int fetch_count;
    StrBuf step_stats;       /* serialised StepStats */
    StrBuf cost_graph;       /* serialised CostGraphDef */
    StrBuf partition_graphs; /* fields of RunMetadata */
} RunReply;

/* Runs a step and waits for it; `call` (optional) cancels it when the client goes. */
Error *master_session_run(MasterSession *s, const RunRequest *request, ServerCall *call, RunReply *reply) MUST_CHECK;
/* The same without waiting, when nothing of the step may take a thread: its graph was run before, it has no timeout and is not traced. false: it was
 * not started; only_elsewhere: nor when a part of it runs in this task. done runs exactly once, perhaps before this returns, and owns err; what request and
 * reply point to must live until then. */
typedef void RunDone(void *arg, Error *err);
bool master_session_start(MasterSession *s, const RunRequest *request, bool only_elsewhere, ServerCall *call, RunReply *reply, RunDone *done, void *arg);
void run_reply_init(RunReply *reply, int fetch_count); /* with room for the fetches */
void run_reply_clear(RunReply *reply);

Error *master_session_partial_setup(MasterSession *s, const RunSignature *signature, char **handle) MUST_CHECK;
Error *master_session_partial_run(MasterSession *s, Str handle, const RunRequest *request, ServerCall *call, RunReply *reply) MUST_CHECK;

Error *master_session_make_callable(MasterSession *s, const Pb__CallableOptions *options, int64_t *handle) MUST_CHECK;
Error *master_session_run_callable(MasterSession *s, int64_t handle, Tensor *const *feeds, int feed_count, ServerCall *call, RunReply *reply) MUST_CHECK;
Error *master_session_release_callable(MasterSession *s, int64_t handle) MUST_CHECK;

/* Devices the session sees; rows are borrowed. */
int master_session_device_count(const MasterSession *s);
const Pb__DeviceAttributes *master_session_device(const MasterSession *s, int i);
