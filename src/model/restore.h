/* restore.h: brings a fresh session to the state a MetaGraph was saved in. */
#pragma once
#include "base/error.h"
#include "graph/prune.h"
#include "io/meta_graph.h"
#include "tensor/tensor.h"

/* Runs one step of the session that holds the graph and waits for it. */
typedef Error *RunStepFn(void *session, const RunSignature *signature, Tensor *const *feeds, Tensor **fetches);

typedef struct RestoreFrom {
    const char *variables; /* (optional) prefix of the checkpoint; without it only the init op runs */
    const char *assets;    /* (optional) folder of the asset files */
} RestoreFrom;

/* Runs the restore op of the saver with the prefix fed to its file name, then the init op; the paths of assets are fed
 * to both. FailedPrecondition when there are variables to restore and the graph has no saver. */
Error *meta_graph_restore(const MetaGraph *m, const RestoreFrom *from, RunStepFn *run, void *session) MUST_CHECK;
