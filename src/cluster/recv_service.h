/* recv_service.h: what peers fetch from this task: RecvTensor and RecvBuf on the wire. Handlers get a Services as arg. */
#pragma once
#include "net/transport.h"

void recv_service_tensor(void *arg, ServerCall *call);
void recv_service_buf(void *arg, ServerCall *call);
