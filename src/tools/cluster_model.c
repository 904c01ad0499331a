/* cluster_model.c: ModelSessions over cluster/client_session.h. */
#include "tools/cluster_model.h"

#include "cluster/client_session.h"
#include "proto/wire.h"

static Error *open_session(const void *arg, Str graph_def, void **session) {
    ClientSession *s = NULL;
    StrBuf config = {0};
    wire_put_uint(&config, 7, 1);  /* allow_soft_placement: the model may name devices the cluster lacks */
    wire_put_uint(&config, 15, 1); /* isolate_session_state */
    ClientSessionOptions options = {.target = str_of(arg), .config = strbuf_str(&config)};
    Error *err = client_session_open(&options, graph_def, &s);
    strbuf_clear(&config);
    *session = s;
    return err;
}

static Error *run_session(void *session, const RunSignature *signature, Tensor *const *feeds, Tensor **fetches,
                          int64_t timeout_ms) {
    StrBuf options = {0};
    if (timeout_ms) wire_put_uint(&options, 2, (uint64_t)timeout_ms); /* RunOptions.timeout_in_ms */
    ClientStep step = {.signature = *signature, .feeds = feeds, .options = strbuf_str(&options)};
    Error *err = client_session_run(session, &step, fetches, NULL);
    strbuf_clear(&options);
    return err;
}

static void close_session(void *session) {
    client_session_free(session);
}

const ModelSessions cluster_sessions = {.open = open_session, .run = run_session, .close = close_session};
