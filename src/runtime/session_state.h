/* session_state.h: what a session keeps between steps: state of its kernels, its private resources, its functions. */
#pragma once
#include "base/error.h"
#include "graph/function.h"
#include "runtime/device.h"
#include "runtime/kernel.h"
#include "runtime/resource.h"

typedef struct SessionState SessionState;

/* With `isolate` the session has resource managers of its own. A task_name other than "" gives the devices that task's names: a client may bring a
 * cluster that calls this task something else. Shared by reference: plans and steps hold one. */
SessionState *session_state_new(const DeviceSet *devices, Str task_name, bool isolate);
const DeviceSet *session_devices(const SessionState *s); /* as the session names them */
SessionState *session_state_ref(SessionState *s);
void session_state_unref(SessionState *s);
/* The session is closed: deletes its private resources; whoever waits on them is told. */
void session_state_close(SessionState *s);

/* What the collectives of its graphs work with (collective/session.h), given once by who has it; NULL: there are none. */
typedef struct CollectiveSession CollectiveSession;
void session_set_collectives(SessionState *s, CollectiveSession *c); /* outlives the steps of the session */
CollectiveSession *session_collectives(const SessionState *s);

ResourceManager *session_resources(SessionState *s, Device *d);

/* The state of a KERNEL_PER_SESSION kernel, made on first use; lives as long as the session. */
Error *session_kernel_state(SessionState *s, const Node *node, const KernelDef *def, void **out) MUST_CHECK;

/* The private resource of a node: its name, chosen once ("_3_queue"). */
Str session_private_name(SessionState *s, Device *d, Str node_name, const ResourceType *type);
