/* push.h: tensors that go to another task unasked. */
#pragma once
#include "net/transport.h"
#include "runtime/rendezvous.h"

#define PUSH_TENSOR_PATH "/rill.WorkerService/PushTensor"

Error *push_tensor(void *entry, Rendezvous *r, Str key, Tensor *value, bool is_dead) MUST_CHECK; /* of RemoteWay */
void push_service(void *arg, ServerCall *call);
