/* cluster_model.h: models run by a cluster: sessions at a master, for model/model.h. */
#pragma once
#include "model/model.h"

/* The argument is the target, a const char *: "grpc://host:port". Variables are the session's own: those of jobs that run
 * there are not touched. */
extern const ModelSessions cluster_sessions;
