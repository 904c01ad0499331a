/* client_session.h: ClientSession, a program's session: in this process, or at a master elsewhere.

   The same calls for both: local_session.c runs a whole task (job localhost) inside of the process, master_client.c speaks MasterService over gRPC. */
#pragma once
#include "base/error.h"
#include "graph/prune.h"
#include "tensor/tensor.h"

/* Thread-safe: runs may be under way on many threads, and while the graph is extended. */
typedef struct ClientSession ClientSession;

typedef struct ClientSessionOptions {
    Str target;                 /* "" or "local": in this process; "grpc://host:port" */
    Str config;                 /* serialised ConfigProto */
    int64_t connect_timeout_ms; /* how long a master that cannot be reached is tried; 0: 60 s */
    struct Transport *transport; /* (optional) the way to the master, outlives the session: of a cluster within this process. Else sockets */
} ClientSessionOptions;

typedef struct ClientStep {
    RunSignature signature;
    Tensor *const *feeds; /* by signature.feeds */
    Str options;          /* serialised RunOptions */
    Str partial_handle;   /* "": a whole step */
} ClientStep;

typedef struct ClientDeviceInfo {
    char *name, *type;
    int64_t memory_bytes;
    uint64_t incarnation;
} ClientDeviceInfo;

/* NotFound when the target is of another kind. Unavailable names the master when nobody answers there; Aborted those tasks that it waits for. */
Error *client_session_open(const ClientSessionOptions *options, Str graph_def, ClientSession **out) MUST_CHECK;
/* Adds nodes and functions; on error the session is as before. */
Error *client_session_extend(ClientSession *s, Str graph_def) MUST_CHECK;
/* Waits for the step; fetches (by signature.fetches) get a reference each. metadata (optional) gets a serialised RunMetadata. */
Error *client_session_run(ClientSession *s, const ClientStep *step, Tensor **fetches, StrBuf *metadata) MUST_CHECK;
Error *client_session_partial_setup(ClientSession *s, const RunSignature *signature, char **handle) MUST_CHECK;
/* Malloced rows, freed by client_devices_free. */
Error *client_session_devices(ClientSession *s, ClientDeviceInfo **out, int *count) MUST_CHECK;
void client_devices_free(ClientDeviceInfo *devices, int count);
/* Cancels steps under way. Everything afterwards is Cancelled; closing twice is fine. */
Error *client_session_close(ClientSession *s) MUST_CHECK;
void client_session_free(ClientSession *s); /* closes; no call may be under way */

/* Closes all sessions of a master and clears these containers (none: the default one) on all of its tasks. */
Error *client_reset(const ClientSessionOptions *options, const Str *containers, int count) MUST_CHECK;
