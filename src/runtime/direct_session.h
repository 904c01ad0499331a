/* direct_session.h: a session in this process: one CPU, no cluster. */
#pragma once
#include "base/error.h"
#include "graph/prune.h"
#include "passes/pass.h"
#include "runtime/step_stats.h"
#include "tensor/tensor.h"

typedef struct DirectSession DirectSession;

Error *direct_session_new(Str graph_def, int threads, DirectSession **out) MUST_CHECK;
void direct_session_trace(DirectSession *s, StepStats *stats); /* borrowed: filled by the steps that follow, until it is NULL */
void direct_session_set_passes(DirectSession *s, const PassOptions *passes); /* before its first run; else all run */
void direct_session_free(DirectSession *s); /* no run may be under way */

/* Waits for the step. feeds in the order of the signature; fetches are filled, one reference each. timeout_ms 0: none. */
Error *direct_session_run(DirectSession *s, const RunSignature *signature, Tensor *const *feeds, Tensor **fetches, int64_t timeout_ms) MUST_CHECK;
