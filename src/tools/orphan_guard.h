/* orphan_guard.h: OrphanGuard, a small process that outlives this one by a moment and kills the process groups it left behind.

   A child can ask to die with its parent, but what that child has started cannot: a shell's programs would go on when rill up is killed. */
#pragma once
#include <sys/types.h>

#include "base/error.h"

typedef struct OrphanGuard {
    pid_t pid;
    int socket; /* what it is told; its end says that we are gone */
} OrphanGuard;

Error *orphan_guard_start(OrphanGuard *g) MUST_CHECK;
void orphan_guard_add(OrphanGuard *g, pid_t group);
void orphan_guard_remove(OrphanGuard *g, pid_t group); /* it is gone: its number may be somebody else's */
void orphan_guard_stop(OrphanGuard *g);
