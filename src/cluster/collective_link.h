/* collective_link.h: how the collectives of a session reach their leader and each other. */
#pragma once
#include "cluster/worker_session.h"
#include "collective/session.h"

/* self is the WorkerSession, which must outlive it. */
CollectiveLink collective_link(WorkerSession *s);
