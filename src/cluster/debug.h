/* debug.h: what TensorFlow's debugger asks of a run: graphs with nodes that look at values, and files that say what was run. */
#pragma once
#include "base/error.h"
#include "graph/prune.h"
#include "proto/config.pb-c.h"
#include "runtime/executable.h"

/* The serialised DebugOptions in serialised RunOptions; "" when there are none. */
Str debug_options_of(Str run_options);
/* The graph with the nodes that the options ask for. It is written to the debugger's URLs, under the task's first device. */
Error *debug_executable(Str graph_def, const Pb__DebugOptions *o, const DeviceSet *devices, SessionState *session, Executable **out) MUST_CHECK;
/* Writes what is about to be run: the `run`-th watched run of the session, the `same`-th of this signature. */
Error *debug_publish_run(const Pb__DebugOptions *o, const RunSignature *signature, int64_t run, int64_t same) MUST_CHECK;
