/* collective_service.h: what a task is asked as the leader of groups of collectives, on the wire. Handlers get a Services as arg. */
#pragma once
#include "net/transport.h"

void collective_service_group(void *arg, ServerCall *call);
void collective_service_instance(void *arg, ServerCall *call);
void collective_service_step_sequence(void *arg, ServerCall *call);
